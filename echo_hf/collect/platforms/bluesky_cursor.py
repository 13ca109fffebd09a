"""Where a search of Bluesky is, so that it goes on where the platform's own cursor ends.

The platform says that its cursor may not lead through all results. When it ends, the search is
asked once more, for what is older than the oldest post seen, until nothing older comes.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from echo_hf.collect.fields import Fields, read_moment
from echo_hf.collect.platforms.base import StaleCursorError, Window

# `until` is exclusive, and several posts may be of one moment.
MOMENT = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """A place in a search.

    Attributes:
        theirs: The platform's cursor, null to begin at `until`.
        until: Only posts from before; null for all.
        oldest: The oldest post seen within the window, null before the first.
    """

    theirs: str | None = None
    until: datetime.datetime | None = None
    oldest: datetime.datetime | None = None

    @classmethod
    def read(cls, cursor: str | None, window: Window | None) -> SearchPlace:
        """The place of a cursor; the beginning of a search without one."""
        if cursor is None:
            return cls(until=window.end if window else None)
        try:
            given = Fields(dict(json.loads(cursor)))
        except (ValueError, TypeError):
            raise StaleCursorError from None
        return cls(given.text("cursor"), given.moment("until"), given.moment("oldest"))

    def written(self) -> str:
        """The place as a cursor."""
        times = {"until": self.until, "oldest": self.oldest}
        written = {name: time.isoformat() if time else None for name, time in times.items()}
        return json.dumps({"cursor": self.theirs, **written})

    def next(
        self,
        theirs: str | None,
        times: Iterable[datetime.datetime],
        window: Window | None,
    ) -> SearchPlace | None:
        """The place after a page.

        Args:
            theirs: The cursor that came with the page.
            times: When its posts were written.
            window: Of the search.

        Returns:
            The next place; null when the search is at its end.

        Example:
            >>> import datetime
            >>> noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
            >>> dry = SearchPlace().next(None, [noon], None)
            >>> dry.theirs, dry.until.isoformat()
            (None, '2026-03-01T12:00:00.001000+00:00')
            >>> dry.next(None, [noon], None) is None
            True
        """
        # Authors date their posts as they like: a time outside of the window says nothing.
        inside = [t for t in times if not window or window.start <= t < window.end]
        seen = min([*inside, *([self.oldest] if self.oldest else [])], default=None)
        if theirs is not None:
            return replace(self, theirs=theirs, oldest=seen)
        if seen is None or (self.until is not None and seen + MOMENT >= self.until):
            return None
        return SearchPlace(None, seen + MOMENT, seen)


def time_of(created: object, indexed: object) -> datetime.datetime | None:
    """The time by which Bluesky sorts a post: the earlier one of what author and platform say."""
    times = [time for time in (read_moment(created), read_moment(indexed)) if time is not None]
    return min(times, default=None)
