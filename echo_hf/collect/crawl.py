"""The crawl: ask each question of the plan to its end, then about the trees of what was found.

Rounds of replies follow until nothing new comes, or a budget is reached (section 3.2). Everything
that is known of a crawl lies in its ledger: ended at any moment, it goes on from there.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from dataclasses import dataclass, field
from itertools import groupby

from echo_hf.collect.crawl_answers import posts_in
from echo_hf.collect.crawl_forget import without_posts
from echo_hf.collect.crawl_ledger import CrawlLedger
from echo_hf.collect.crawl_plan import take_plan
from echo_hf.collect.crawl_progress import CrawlProgress, CrawlWatcher
from echo_hf.collect.crawl_question import Asked, QuestionState
from echo_hf.collect.crawl_seen import Unexpanded
from echo_hf.collect.crawl_trail import Trail
from echo_hf.collect.patience import LongWaitError, Patience
from echo_hf.collect.platforms.base import (
    Answer,
    Platform,
    StaleCursorError,
    UnanswerableError,
)
from echo_hf.collect.search_config import Search
from echo_hf.collect.sources.base import Post, Source
from echo_hf.collect.tombstones import Tombstones
from echo_hf.errors import ConfigError
from echo_hf.reasons import CrawlEnd

POSTS_AT_ONCE = 500
MOST_BEGINNINGS = 5  # of a question whose cursors get lost
MOST_TROUBLES = 3  # one after the other: then it is the platform, not the question
MOST_IDLE = 20  # pages in a row of one question without a post that the one before had not
LONGEST_ERROR = 200


@dataclass
class Crawl:
    """A crawl of one platform.

    Attributes:
        platform: Who is asked; connected.
        source: Reads its answers.
        search: What is asked.
        ledger: Where all is written down.
        watch: Told of it.
        patience: How long to wait, and how often to try again.
        forgotten: Posts that were to be removed: their content is not kept when it comes again.
    """

    platform: Platform
    source: Source
    search: Search
    ledger: CrawlLedger
    watch: CrawlWatcher
    patience: Patience = field(default_factory=Patience)
    forgotten: Tombstones = field(default_factory=Tombstones)

    def __post_init__(self) -> None:
        if self.search.budget.usd is not None and self.platform.tariff.usd_per_post is None:
            raise ConfigError(
                f"budget.usd is {self.search.budget.usd}, and what {self._name!r} charges is not "
                "known: expected budget.posts"
            )
        self.progress = CrawlProgress(self._name, spent=self.ledger.spent(self._name))
        self._began = time.monotonic()
        self._troubles = 0
        self._trail = Trail()

    def run(self, released: datetime.date, now: datetime.datetime) -> CrawlEnd:
        """Asks until there is nothing left to ask, or a limit is reached.

        Args:
            released: The day on which the target was released.
            now: The time, with a zone.

        Returns:
            Why it ended.

        Raises:
            EchoError: The platform cannot be asked at all, or the ledger cannot be used; what
                came before is written down.
        """
        take_plan(self.ledger, self._name, self.search, released, now)
        while (end := self._ask_all()) is None:
            if not self._expand():
                return self._ran_dry()
        return end

    @property
    def _name(self) -> str:
        return self.platform.name

    def _ask_all(self) -> CrawlEnd | None:
        """Asks every open question to its end; null when none is left."""
        while (asked := self.ledger.next_question(self._name)) is not None:
            self.progress.round = asked.round
            if self.ledger.is_needless(asked):
                self.ledger.put_aside(asked, QuestionState.NEEDLESS)
                continue
            end = self._limit(asked) or self._ask(asked)
            if end is not None:
                return end
        return None

    def _limit(self, asked: Asked) -> CrawlEnd | None:
        spent, budget, expand = self.progress.spent, self.search.budget, self.search.expand
        if budget.posts is not None and spent.posts >= budget.posts:
            return CrawlEnd.POSTS_SPENT
        if budget.usd is not None and spent.cost_usd >= budget.usd:
            return CrawlEnd.DOLLARS_SPENT
        if not asked.round:
            return None
        if expand.rounds is not None and asked.round > expand.rounds:
            return CrawlEnd.ROUNDS_DONE
        if expand.posts is not None and spent.by_replies >= expand.posts:
            return CrawlEnd.EXPANSION_FULL
        return None

    def _ask(self, asked: Asked) -> CrawlEnd | None:
        try:
            answer = self.patience.ask(self.platform, asked.question, asked.cursor, self._waits)
        except StaleCursorError:
            self._begin_again(asked)
        except UnanswerableError as error:
            self.ledger.put_aside(asked, QuestionState.REFUSED, _one_line(error))
        except LongWaitError as error:
            self.watch.noticed(f"{self._name} {error}: come back then")
            return CrawlEnd.TOLD_TO_WAIT
        except OSError as error:
            return self._trouble(asked, _one_line(error))
        else:
            self._keep(asked, answer)
        return None

    def _keep(self, asked: Asked, answer: Answer) -> None:
        price = self.platform.tariff.usd_per_post
        priced = None if price is None else price * answer.posts
        cost = priced if answer.cost_usd is None else answer.cost_usd
        posts = posts_in(answer.body, asked.question, self.source)
        shown = map(self.forgotten.cleared, posts) if self.forgotten.hashes else posts
        self.ledger.keep(asked, self._without_forgotten(answer, posts), shown, cost)
        if answer.cursor is not None:
            self._look_ahead(asked, answer.cursor, posts)
        self._troubles = 0
        progress = self.progress
        progress.requests += 1
        progress.posts += answer.posts
        progress.spent = progress.spent.plus(asked, answer, cost)
        progress.seconds = time.monotonic() - self._began
        self.watch.crawled(progress)

    def _look_ahead(self, asked: Asked, cursor: str, posts: list[Post]) -> None:
        """Ends a question whose next page would bring nothing, for ever."""
        if self._trail.leads_back(asked, cursor):
            self._begin_again(asked)
        elif self._trail.idle_pages(post.url for post in posts) >= MOST_IDLE:
            said = f"{MOST_IDLE} pages in a row brought nothing new: some of its posts are missing"
            self.ledger.put_aside(asked, QuestionState.REFUSED, said)

    def _without_forgotten(self, answer: Answer, posts: list[Post]) -> Answer:
        """A page without what somebody asked to have removed, before it is written down."""
        again = frozenset(post.url for post in posts if post.url in self.forgotten)
        if not again:
            return answer
        body = without_posts(answer.body, self._name, again)
        return dataclasses.replace(answer, body="{}" if body is None else body)

    def _begin_again(self, asked: Asked) -> None:
        if asked.attempt + 1 < MOST_BEGINNINGS:
            self.ledger.begin_again(asked)
            return
        said = f"its cursors got lost {MOST_BEGINNINGS} times: some of its posts are missing"
        self.ledger.put_aside(asked, QuestionState.REFUSED, said)

    def _trouble(self, asked: Asked, said: str) -> CrawlEnd | None:
        self.ledger.put_aside(asked, QuestionState.TROUBLED, said)
        self.watch.noticed(f"{self._name}: a question failed and waits for the next run: {said}")
        self._troubles += 1
        return CrawlEnd.OUT_OF_REACH if self._troubles >= MOST_TROUBLES else None

    def _waits(self, seconds: float) -> None:
        self.progress.waits += 1
        self.progress.waited_s += seconds
        self.watch.waits(self._name, seconds)

    def _ran_dry(self) -> CrawlEnd:
        if self.ledger.has_troubled(self._name):
            return CrawlEnd.SOME_FAILED
        left = self.ledger.unexpanded(self._name, 1)
        return CrawlEnd.ROUNDS_DONE if left else CrawlEnd.NOTHING_LEFT

    def _expand(self) -> int:
        """Writes down what to ask about the posts of the last round: how many questions."""
        rounds, new = self.search.expand.rounds, 0
        while some := self.ledger.unexpanded(self._name, POSTS_AT_ONCE, rounds):
            for _, group in groupby(some, lambda post: post.round):
                new += self._expand_some(list(group))
        return new

    def _expand_some(self, posts: list[Unexpanded]) -> int:
        about = [one for one in posts if one.incomplete or self.ledger.lacks_below(self._name, one)]
        # Some platforms find replies by the first post of their conversation alone.
        about += self.ledger.tops(self._name, about)
        questions = list(self.platform.around([one.post for one in about])) if about else []
        # A thread is asked for as a whole: the same one for each of its posts that were found.
        origins = {
            question.key: one.row
            for one in (about if any(one.kind == "thread" for one in questions) else ())
            for question in self.platform.around([one.post])
            if question.kind == "thread"
        }
        return self.ledger.expand(self._name, posts, questions, origins)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_ERROR]
