"""What asking a platform has taken so far."""

from __future__ import annotations

from dataclasses import dataclass

from echo_hf.collect.crawl_question import Asked
from echo_hf.collect.platforms.base import Answer

SPENT = """select coalesce(sum(requests), 0), coalesce(sum(posts), 0), coalesce(sum(cost_usd), 0),
    coalesce(sum(unpriced), 0), coalesce(sum(iif(kind = 'search', 0, posts)), 0)
    from questions where platform = ?"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What asking a platform has taken so far, in all runs.

    Attributes:
        requests: Pages that came, those of questions that were asked again included.
        posts: Posts as the platform counts them.
        cost_usd: What is known to be spent.
        unpriced: Pages whose price is unknown.
        by_replies: Posts that did not come by a search, as the platform counts them.
    """

    requests: int
    posts: int
    cost_usd: float
    unpriced: int
    by_replies: int

    def plus(self, asked: Asked, answer: Answer, cost_usd: float | None) -> Spent:
        """The same after one more page."""
        return Spent(
            self.requests + 1,
            self.posts + answer.posts,
            self.cost_usd + (cost_usd or 0.0),
            self.unpriced + (cost_usd is None),
            self.by_replies + (answer.posts if asked.round else 0),
        )
