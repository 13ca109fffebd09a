"""The crawl: the questions of a plan (figure D.1), each asked to its end, then the reply trees."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from echo_hf._infra.atomic import replaced_file
from echo_hf._infra.retry import RetryPolicy
from echo_hf.collect.crawl_ledger import (
    LEDGER,
    CrawlLedger,
    CrawlStats,
    LedgerQuestion,
    QuestionState,
    Spent,
)
from echo_hf.collect.platforms.base import (
    Answer,
    Platform,
    Question,
    RateLimitedError,
    StaleCursorError,
    Tariff,
    TimeWindow,
    UnanswerableError,
    make_platform,
)
from echo_hf.collect.sources.base import Post, Source, make_source, posts_in
from echo_hf.collect.takedown import TOMBSTONES, Tombstones, read_tombstones, without_posts
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import Config
from echo_hf.errors import ConfigError, EchoError, PlatformError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd

STATS = "crawl.json"
POSTS_AT_ONCE = 500
MOST_BEGINNINGS = 5  # of a question whose cursors get lost
MOST_TROUBLES = 3  # one after the other: then it is the platform, not the question
MOST_IDLE = 20  # pages in a row of one question without a new post
LONGEST_ERROR = 200
Waits = Callable[[float], None]
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Query:
    phase: int
    question: Question
    cut: bool = False


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    platform: str
    query: Query
    done: bool
    posts: int | None
    requests: int
    usd: float | None


def searches(config: Config) -> dict[str, Search]:
    return {entry.source: entry.search for entry in config.posts if entry.search is not None}


def midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def planned(search: Search, released: datetime.date, now: datetime.datetime) -> Iterator[Query]:
    hour = now.astimezone(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    spans = phase_spans(search.phases, released)
    for number, (phase, span) in enumerate(zip(search.phases, spans, strict=True)):
        start = midnight(span.start)
        until = midnight(span.until) if span.until is not None else None
        while start < min(hour, until or hour):
            end = min(start + phase.length, until or start + phase.length)
            window = TimeWindow(start, min(end, hour))
            for term in phase.terms:
                for language in phase.languages or (None,):
                    question = Question("search", (term,), window, language)
                    yield Query(number, question, cut=hour < end)
            start = end


def take_plan(
    ledger: CrawlLedger,
    platform: str,
    search: Search,
    released: datetime.date,
    now: datetime.datetime,
) -> None:
    """Opens the questions that a search asks now, and none of a term or language taken out."""
    wanted = {
        ((term,), language)
        for phase in search.phases
        for term in phase.terms
        for language in phase.languages or (None,)
    }
    ledger.try_again(platform)
    for asked in ledger.open_searches(platform):
        if (asked.question.about, asked.question.language) not in wanted:
            ledger.put_aside(asked, QuestionState.UNPLANNED)
    asks = (query.question for query in planned(search, released, now))
    ledger.add_searches(platform, uncovered(ledger, platform, asks))


def uncovered(ledger: CrawlLedger, platform: str, asks: Iterable[Question]) -> Iterator[Question]:
    """The part of each window that no earlier question has asked for."""
    for ask in asks:
        end = ledger.covered(platform, ask)
        if ask.window is None or end is None:
            yield ask
        elif end < ask.window.end:
            yield Question(ask.kind, ask.about, TimeWindow(end, ask.window.end), ask.language)


def open_questions(config: Config, root: Path, now: datetime.datetime) -> Iterator[tuple[str, int]]:
    """How many questions are not answered yet: of the plan, and about replies."""
    for name, search in searches(config).items():
        asks = [query.question for query in planned(search, config.target.released, now)]
        count = len(asks)
        if (root / LEDGER).exists():
            with CrawlLedger(root / LEDGER) as ledger:
                states = ledger.states(name)
                count = sum(1 for _ in uncovered(ledger, name, asks))
                count += states.get("open", 0) + states.get("troubled", 0)
        if count:
            yield name, count


def planned_queries(
    config: Config,
    root: Path,
    now: datetime.datetime,
    *,
    estimate: bool = False,
    noticed: Callable[[str], None],
    make: Callable[[str], Platform] = make_platform,
) -> Iterator[PlannedQuery]:
    for name, search in searches(config).items():
        with ExitStack() as closing:
            tariff, platform = _counting(name, estimate, noticed, make, closing)
            ledger = None
            if (root / LEDGER).exists():
                ledger = closing.enter_context(CrawlLedger(root / LEDGER))
            for query in planned(search, config.target.released, now):
                if ledger is not None and _is_done(ledger, name, query.question):
                    yield PlannedQuery(name, query, True, 0, 0, 0.0)
                    continue
                posts = None
                try:
                    posts = platform.estimate(query.question) if platform else None
                except (UnanswerableError, StaleCursorError):
                    pass
                except (EchoError, OSError, RateLimitedError) as error:
                    platform = None
                    noticed(f"{name} gives no more numbers of posts: {error}")
                price = tariff.usd_per_post
                usd = 0.0 if price == 0 else None
                if posts is not None and price is not None:
                    usd = posts * price
                requests = max(1, math.ceil((posts or 0) / tariff.posts_per_page))
                yield PlannedQuery(name, query, False, posts, requests, usd)


def _is_done(ledger: CrawlLedger, platform: str, question: Question) -> bool:
    state = ledger.state(platform, question)
    if state is not None:
        return state in (QuestionState.DONE, QuestionState.REFUSED)
    return not list(uncovered(ledger, platform, [question]))


def _counting(
    name: str,
    estimate: bool,
    noticed: Callable[[str], None],
    make: Callable[[str], Platform],
    closing: ExitStack,
) -> tuple[Tariff, Platform | None]:
    """What a platform charges, and itself where it can be asked for numbers of posts."""
    tariff = Tariff()
    try:
        platform = make(name)
        tariff, price = platform.tariff, platform.tariff.usd_per_estimate
        if tariff.usd_per_post:
            noticed(f"{name} charges ${tariff.usd_per_post:g} a post")
        if price and not estimate:
            noticed(f"{name} counts posts beforehand for ${price:g} a query: --estimate asks it to")
        elif price is not None:
            return tariff, closing.enter_context(platform)
    except (EchoError, OSError, RateLimitedError) as error:
        noticed(f"{name} cannot be asked how many posts there are: {error}")
    return tariff, None


def as_json(one: PlannedQuery) -> dict[str, object]:
    question, window = one.query.question, one.query.question.window
    return {
        "platform": one.platform,
        "phase": one.query.phase + 1,
        "term": question.about[0],
        "language": question.language,
        "start": window.start.isoformat() if window else None,
        "end": window.end.isoformat() if window else None,
        "cut": one.query.cut,
        "done": one.done,
        "posts": one.posts,
        "requests": one.requests,
        "usd": one.usd,
    }


class LongWaitError(RateLimitedError):
    """The platform wants to be left alone for longer than a run should take."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a question is asked, and how long the crawl waits in between."""

    attempts: int = 6
    backoff_s: float = 1.0
    longest_wait_s: float = 2 * 3600.0
    sleep: Callable[[float], None] = time.sleep

    @contextmanager
    def connected(self, platform: Platform, waits: Waits) -> Iterator[Platform]:
        self.until_done(platform.__enter__, waits)
        try:
            yield platform
        finally:
            platform.__exit__(None, None, None)

    def until_done(self, call: Callable[[], Given], waits: Waits) -> Given:
        """Calls until it is answered, whatever a platform is asked; tells of waits it asks for."""

        def heeded() -> Given:
            told, waited = 0, 0.0
            while True:
                try:
                    return call()
                except RateLimitedError as error:
                    # The second time in a row never less than the backoff.
                    least = self.backoff_s * 2 ** min(told - 1, 6) if told else 0.0
                    seconds = max(error.seconds, least)
                told, waited = told + 1, waited + seconds
                # A limit of a month may be told as one of a moment; no number ends it, too.
                if not waited <= self.longest_wait_s:
                    raise LongWaitError(seconds)
                waits(seconds)
                self.sleep(seconds)

        policy = RetryPolicy(self.attempts, self.backoff_s, also=(OSError,))
        return policy.call(heeded, self.sleep)


@dataclass
class CrawlProgress:
    platform: str
    requests: int = 0
    posts: int = 0
    round: int = 0
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0
    spent: Spent = field(default_factory=Spent)

    def __str__(self) -> str:
        rate = self.posts / self.seconds if self.seconds else 0.0
        what = f"round {self.round} of replies" if self.round else "search"
        return (
            f"{self.platform}: {what}, {self.requests:,} requests, {self.posts:,} posts "
            f"({rate:,.0f}/s), {self.spent.cost} in all"
        )


@dataclass
class Crawl:
    platform: Platform
    source: Source
    search: Search
    ledger: CrawlLedger
    watch: ProgressListener
    patience: Patience = field(default_factory=Patience)
    forgotten: Tombstones = field(default_factory=Tombstones)

    def __post_init__(self) -> None:
        self._name = self.platform.name
        if self.search.budget.usd is not None and self.platform.tariff.usd_per_post is None:
            raise ConfigError(
                f"budget.usd is {self.search.budget.usd}, and what {self._name!r} charges is not "
                "known: expected budget.posts"
            )
        self.progress = CrawlProgress(self._name, spent=self.ledger.spent(self._name))
        self._began = time.monotonic()
        self._troubles = 0
        self._question = (0, 0)  # the last one, and the attempt at it
        self._seen, self._idle = set[str](), 0  # its posts; pages in a row without a new one

    def run(self, released: datetime.date, now: datetime.datetime) -> CrawlEnd:
        take_plan(self.ledger, self._name, self.search, released, now)
        while True:
            while (asked := self.ledger.next_question(self._name)) is not None:
                self.progress.round = asked.round
                if end := self._limit(asked) or self._ask(asked):
                    return end
            if not self._expand():
                break
        if self.ledger.states(self._name).get(QuestionState.TROUBLED):
            return CrawlEnd.SOME_FAILED
        left = self.ledger.unexpanded(self._name, 1)
        return CrawlEnd.ROUNDS_DONE if left else CrawlEnd.NOTHING_LEFT

    def _limit(self, asked: LedgerQuestion) -> CrawlEnd | None:
        spent, budget, expand = self.progress.spent, self.search.budget, self.search.expand
        if budget.posts is not None and spent.posts >= budget.posts:
            return CrawlEnd.POSTS_SPENT
        if budget.usd is not None and spent.cost_usd >= budget.usd:
            return CrawlEnd.DOLLARS_SPENT
        if asked.round and expand.rounds is not None and asked.round > expand.rounds:
            return CrawlEnd.ROUNDS_DONE
        if asked.round and expand.posts is not None and spent.by_replies >= expand.posts:
            return CrawlEnd.EXPANSION_FULL
        return None

    def _ask(self, asked: LedgerQuestion) -> CrawlEnd | None:
        try:
            answer = self.patience.until_done(
                lambda: self.platform.ask(asked.question, asked.cursor), self._waits
            )
        except StaleCursorError:
            if asked.attempt + 1 < MOST_BEGINNINGS:
                self.ledger.begin_again(asked)
            else:
                said = (
                    f"its cursors got lost {MOST_BEGINNINGS} times: some of its posts are missing"
                )
                self.ledger.put_aside(asked, QuestionState.REFUSED, said)
        except UnanswerableError as error:
            self.ledger.put_aside(asked, QuestionState.REFUSED, _one_line(error))
        except LongWaitError as error:
            self.watch.noticed(f"{self._name} {error}: come back then")
            return CrawlEnd.TOLD_TO_WAIT
        except OSError as error:
            said = _one_line(error)
            self.ledger.put_aside(asked, QuestionState.TROUBLED, said)
            self.watch.noticed(
                f"{self._name}: a question failed and waits for the next run: {said}"
            )
            self._troubles += 1
            return CrawlEnd.OUT_OF_REACH if self._troubles >= MOST_TROUBLES else None
        else:
            self._keep(asked, answer)
        return None

    def _keep(self, asked: LedgerQuestion, answer: Answer) -> None:
        price, question = self.platform.tariff.usd_per_post, asked.question
        priced = None if price is None else price * answer.posts
        cost = priced if answer.cost_usd is None else answer.cost_usd
        keywords = question.about if question.kind == "search" else ()
        posts = posts_in(answer.body, self.source, keywords)
        shown = map(self.forgotten.cleared, posts) if self.forgotten.hashes else posts
        # What somebody asked to have removed is not written down again.
        again = frozenset(post.url for post in posts if post.url in self.forgotten)
        if again:
            left = without_posts(answer.body, self._name, again, keywords)
            answer = dataclasses.replace(answer, body=left)
        self.ledger.keep(asked, answer, shown, cost)
        if answer.cursor is not None:
            self._look_ahead(asked, posts)
        self._troubles = 0
        progress = self.progress
        progress.requests += 1
        progress.posts += answer.posts
        progress.spent.add(answer.posts, cost, by_replies=asked.round > 0)
        progress.seconds = time.monotonic() - self._began
        self.watch.advanced(self._name, progress.requests, progress)

    def _look_ahead(self, asked: LedgerQuestion, posts: list[Post]) -> None:
        """Ends a question whose pages bring nothing new, for ever."""
        if self._question != (asked.id, asked.attempt):
            self._question, self._seen, self._idle = (asked.id, asked.attempt), set(), 0
        shown = {post.url for post in posts}
        self._idle = self._idle + 1 if shown <= self._seen else 0
        self._seen |= shown
        if self._idle >= MOST_IDLE:
            said = f"{MOST_IDLE} pages in a row brought nothing new: some of its posts are missing"
            self.ledger.put_aside(asked, QuestionState.REFUSED, said)

    def _waits(self, seconds: float) -> None:
        self.progress.waits += 1
        self.progress.waited_s += seconds
        self.watch.waits(self._name, seconds)

    def _expand(self) -> int:
        """Writes down what to ask about the posts of the last round: how many questions."""
        rounds, new = self.search.expand.rounds, 0
        while some := self.ledger.unexpanded(self._name, POSTS_AT_ONCE, rounds):
            for _, group in groupby(some, lambda post: post.round):
                posts = list(group)
                lacks = self.ledger.lacks_below
                about = [one for one in posts if one.incomplete or lacks(self._name, one)]
                # Some platforms find replies by the first post of their conversation alone.
                about += self.ledger.tops(self._name, about)
                questions = self.platform.around([one.post for one in about]) if about else []
                # A thread is asked for as a whole: the same for each of its posts that were found.
                origins = {
                    question.key: one.row
                    for one in about
                    for question in self.platform.around([one.post])
                    if question.kind == "thread"
                }
                new += self.ledger.expand(self._name, posts, questions, origins)
        return new


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_ERROR]


def crawl_posts(
    config: Config,
    folder: RunFolder,
    watch: ProgressListener,
    *,
    patience: Patience | None = None,
    make: Callable[[str], Platform] = make_platform,
) -> list[CrawlStats]:
    wanted, patience, refused = searches(config), patience or Patience(), list[PlatformError]()
    with folder.locked(), ExitStack() as connections:
        # A key that is missing is told before anybody is asked.
        connected = {name: _connected(make(name), patience, watch, connections) for name in wanted}
        ledger = connections.enter_context(CrawlLedger(folder.root / LEDGER))
        forgotten = read_tombstones(folder.root / TOMBSTONES)
        done = {}
        for name, platform in connected.items():
            if isinstance(platform, CrawlEnd):
                done[name] = ledger.stats(name, platform)
                continue
            search, source = wanted[name], make_source(name)
            crawl = Crawl(platform, source, search, ledger, watch, patience, forgotten)
            try:
                end = crawl.run(config.target.released, datetime.datetime.now(datetime.UTC))
            except PlatformError as error:
                watch.noticed(f"{name} is asked no more: {error}")
                refused.append(error)
                end = CrawlEnd.KEY_REFUSED
            told = {one: getattr(crawl.progress, one) for one in ("waits", "waited_s", "seconds")}
            done[name] = ledger.stats(name, end, **told)
        written = {
            name: {**dataclasses.asdict(one), "missed_by_terms": one.missed_by_terms}
            for name, one in done.items()
        }
        with replaced_file(folder.root / STATS) as partial:
            partial.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    if refused:
        raise refused[0]
    return list(done.values())


def _connected(
    platform: Platform, patience: Patience, watch: ProgressListener, connections: ExitStack
) -> Platform | CrawlEnd:
    """The platform, connected until the stack is left; or why nobody is there to be asked."""
    name = platform.name
    try:
        return connections.enter_context(
            patience.connected(platform, lambda seconds: watch.waits(name, seconds))
        )
    except LongWaitError as error:
        watch.noticed(f"{name} {error}: come back then")
        return CrawlEnd.TOLD_TO_WAIT
    except OSError as error:
        watch.noticed(f"{name} cannot be asked: {error}")
        return CrawlEnd.OUT_OF_REACH
