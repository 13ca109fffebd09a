"""Whether the pages of a question lead on, or in circles."""

from __future__ import annotations

from collections.abc import Iterable

from echo_hf.collect.crawl_question import Asked


class Trail:
    """The pages of one question after the other, as far as this run has seen them."""

    def __init__(self) -> None:
        self._of: tuple[int, int] | None = None
        self._cursors: set[str | None] = set()
        self._shown: frozenset[str] = frozenset()
        self._idle = 0

    def leads_back(self, asked: Asked, cursor: str | None) -> bool:
        """Whether the cursor that came with a page led to one before.

        Args:
            asked: The question, and the cursor that brought the page.
            cursor: The one that came with it.

        Returns:
            Whether asking on would never end.
        """
        if self._of != (asked.id, asked.attempt):
            self._of, self._cursors = (asked.id, asked.attempt), set()
            self._shown, self._idle = frozenset(), 0
        self._cursors.add(asked.cursor)
        return cursor is not None and cursor in self._cursors

    def idle_pages(self, urls: Iterable[str]) -> int:
        """How many pages in a row, up to this one, showed nothing that the one before did not.

        Args:
            urls: Addresses of the posts of this page.

        Returns:
            0 for a page with a post that is new.
        """
        shown = frozenset(urls)
        self._idle = self._idle + 1 if shown <= self._shown else 0
        self._shown = shown or self._shown
        return self._idle
