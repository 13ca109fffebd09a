"""How far a crawl is, and who is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from echo_hf.collect.crawl_spent import Spent


@dataclass
class CrawlProgress:
    """How far a run is.

    Attributes:
        platform: Who is asked.
        requests: Pages that came in this run.
        posts: Posts in them, as the platform counts them.
        round: 0 while the plan is asked, then the round of replies.
        waits: How often the platform wanted to be left alone.
        waited_s: For how long, in all.
        seconds: Since the beginning.
        spent: What all runs have taken.
    """

    platform: str
    requests: int = 0
    posts: int = 0
    round: int = 0
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0
    spent: Spent = field(default_factory=lambda: Spent(0, 0, 0.0, 0, 0))


class CrawlWatcher(Protocol):
    """Told of a crawl as it goes on."""

    def crawled(self, progress: CrawlProgress) -> None:
        """A page is written down."""
        ...

    def waits(self, platform: str, seconds: float) -> None:
        """The platform wants to be left alone for so long, and will be."""
        ...

    def noticed(self, remark: str) -> None:
        """Something is not as one might take it to be; one line."""
        ...
