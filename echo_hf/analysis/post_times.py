"""When posts were posted, as the table of posts says, or as X writes it into its identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

X_STATUS = re.compile(r"https://(?:x|twitter)\.com/(?:\w+/)*status/(\d{15,19})(?!\d)")
X_BEGAN = datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=UTC)  # of its identifiers' clock
BELOW_TIME = 22  # bits of an identifier that say which of a millisecond's posts it is


def time_in_address(url: str | None) -> datetime | None:
    """The moment that an address at X holds in its identifier.

    Args:
        url: Address of a post.

    Returns:
        The moment to a millisecond, in UTC; null for other addresses.

    Example:
        >>> time_in_address("https://x.com/i/status/1212092628029698048").isoformat()
        '2019-12-31T19:26:16.771000+00:00'
        >>> time_in_address("https://example.org/1212092628029698048")
    """
    found = X_STATUS.match(url or "")
    if found is None:
        return None
    return X_BEGAN + timedelta(milliseconds=int(found.group(1)) >> BELOW_TIME)


@dataclass(frozen=True)
class PostTimes:
    """When posts were posted.

    Attributes:
        known: By address, from a table of posts.
    """

    known: Mapping[str, datetime] = field(default_factory=dict)

    def of(self, url: str | None) -> datetime | None:
        """When the post of an address was posted, null when nothing says so."""
        return self.known.get(url or "") or time_in_address(url)

    def order(self, url: str) -> tuple[bool, datetime, str]:
        """What sorts posts by time, those without one last."""
        moment = self.of(url)
        return moment is None, moment or X_BEGAN, url

    def text(self, url: str | None) -> str | None:
        """The same in ISO 8601, to the second."""
        moment = self.of(url)
        return moment.astimezone(UTC).isoformat(timespec="seconds") if moment else None


def post_times(posts: pa.Table | None) -> PostTimes:
    """The times of a table of posts.

    Args:
        posts: Rows with url and timestamp; null for none.

    Returns:
        The times.
    """
    return PostTimes({} if posts is None else dict(_known(posts)))


def _known(posts: pa.Table) -> Iterator[tuple[str, datetime]]:
    times = posts["timestamp"].to_pylist()
    for url, moment in zip(posts["url"].to_pylist(), times, strict=True):
        if moment is not None:
            yield url, moment
