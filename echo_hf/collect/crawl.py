"""Crawl platforms: ask each question of the plan (figure D.1) to its end, then the reply trees."""

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

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.retry import RetryPolicy
from echo_hf.collect.crawl_ledger import (
    CRAWL_LEDGER_FILE,
    CrawlCost,
    CrawlEnd,
    CrawlLedger,
    CrawlStats,
    LedgerQuestion,
    QuestionState,
)
from echo_hf.collect.platforms.base import (
    Page,
    Platform,
    Question,
    RateLimitedError,
    StaleCursorError,
    Tariff,
    TimeWindow,
    UnanswerableError,
    make_platform,
)
from echo_hf.collect.sources.base import Post, Source, make_source, read_page_posts
from echo_hf.collect.takedown import TOMBSTONES_FILE, Tombstones, read_tombstones, remove_posts
from echo_hf.config.collection import Search, phase_dates
from echo_hf.config.loading import Config
from echo_hf.errors import ConfigError, EchoError, PlatformError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder

STATS_FILE = "crawl.json"
POSTS_PER_EXPANSION = 500
MAX_RESTARTS = 5  # at a question whose cursors get lost
MAX_CONSECUTIVE_FAILURES = 3  # after that many the platform is at fault, not the question
MAX_IDLE_PAGES = 20  # of one question in a row, without a new post
MAX_ERROR_CHARACTERS = 200
OnWait = Callable[[float], None]
ResultT = TypeVar("ResultT")


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
    tariff: Tariff = field(default_factory=Tariff)

    @property
    def most_usd(self) -> float | None:
        """Return its cost where every post has an author of its own, which `usd` leaves out."""
        return self.usd and self.usd + (self.posts or 0) * self.tariff.usd_per_author


def find_searches(config: Config) -> dict[str, Search]:
    return {entry.source: entry.search for entry in config.posts if entry.search is not None}


def midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def list_queries(
    search: Search, released: datetime.date, now: datetime.datetime
) -> Iterator[Query]:
    hour = now.astimezone(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    spans = phase_dates(search.phases, released)
    for phase_number, (phase, span) in enumerate(zip(search.phases, spans, strict=True)):
        start = midnight(span.start)
        until = midnight(span.until) if span.until is not None else None
        while start < min(hour, until or hour):
            end = min(start + phase.length, until or start + phase.length)
            window = TimeWindow(start, min(end, hour))
            for term in phase.terms:
                for language in phase.languages or (None,):
                    question = Question("search", (term,), window, language)
                    yield Query(phase_number, question, cut=hour < end)
            start = end


def update_questions(
    ledger: CrawlLedger,
    platform: str,
    search: Search,
    released: datetime.date,
    now: datetime.datetime,
) -> None:
    """Open the questions that a search asks now; put aside those that the config no longer asks."""
    planned_terms = {
        ((term,), language)
        for phase in search.phases
        for term in phase.terms
        for language in phase.languages or (None,)
    }
    ledger.resume_questions(platform)
    for pending in ledger.open_searches(platform):
        if (pending.question.about, pending.question.language) not in planned_terms:
            ledger.put_aside(pending, QuestionState.UNPLANNED)
    questions = (query.question for query in list_queries(search, released, now))
    ledger.add_searches(platform, find_uncovered(ledger, platform, questions))


def find_uncovered(
    ledger: CrawlLedger, platform: str, questions: Iterable[Question]
) -> Iterator[Question]:
    """Yield each question with the part of its window that no earlier one covers."""
    for question in questions:
        window, end = question.window, ledger.find_covered_end(platform, question)
        if window is None or end is None:
            yield question
        elif end < window.end:
            yield dataclasses.replace(question, window=TimeWindow(end, window.end))


def count_open(config: Config, root: Path, now: datetime.datetime) -> Iterator[tuple[str, int]]:
    """Count the questions that are not answered yet: of the plan, and about replies."""
    for name, search in find_searches(config).items():
        questions = [query.question for query in list_queries(search, config.target.released, now)]
        count = len(questions)
        if (root / CRAWL_LEDGER_FILE).exists():
            with CrawlLedger(root / CRAWL_LEDGER_FILE) as ledger:
                states = ledger.count_states(name)
                count = sum(1 for _ in find_uncovered(ledger, name, questions))
                count += states.get("open", 0) + states.get("troubled", 0)
        if count:
            yield name, count


def plan_queries(
    config: Config,
    root: Path,
    now: datetime.datetime,
    *,
    estimate: bool = False,
    notify: Callable[[str], None],
    make: Callable[[str], Platform] = make_platform,
) -> Iterator[PlannedQuery]:
    for name, search in find_searches(config).items():
        with ExitStack() as stack:
            tariff, platform = _open_estimator(name, estimate, notify, make, stack)
            ledger = None
            if (root / CRAWL_LEDGER_FILE).exists():
                ledger = stack.enter_context(CrawlLedger(root / CRAWL_LEDGER_FILE))
            for query in list_queries(search, config.target.released, now):
                if ledger is not None and _is_done(ledger, name, query.question):
                    yield PlannedQuery(name, query, True, 0, 0, 0.0, tariff)
                    continue
                posts = None
                try:
                    posts = platform.estimate(query.question) if platform else None
                except (UnanswerableError, StaleCursorError):
                    pass
                except (EchoError, OSError, RateLimitedError) as error:
                    platform = None
                    notify(f"{name} gives no more numbers of posts: {error}")
                price = tariff.usd_per_post
                usd = 0.0 if price == 0 else None
                if posts is not None and price is not None:
                    usd = posts * price
                requests = max(1, math.ceil((posts or 0) / tariff.posts_per_page))
                yield PlannedQuery(name, query, False, posts, requests, usd, tariff)


def _is_done(ledger: CrawlLedger, platform: str, question: Question) -> bool:
    state = ledger.get_state(platform, question)
    if state is not None:
        return state in (QuestionState.DONE, QuestionState.REFUSED)
    return not list(find_uncovered(ledger, platform, [question]))


def _open_estimator(
    name: str,
    estimate: bool,
    notify: Callable[[str], None],
    make: Callable[[str], Platform],
    stack: ExitStack,
) -> tuple[Tariff, Platform | None]:
    """Return what a platform charges, and the platform itself where it counts posts beforehand."""
    tariff = Tariff()
    try:
        platform = make(name)
        tariff, price = platform.tariff, platform.tariff.usd_per_estimate
        if tariff.usd_per_post:
            charge = f"{name} charges ${tariff.usd_per_post:g} a post"
            if tariff.usd_per_author:
                charge += f", up to ${tariff.usd_per_author:g} for its author"
            notify(f"{charge}, says {tariff.source}" if tariff.source else charge)
        if price and not estimate:
            notify(f"{name} counts posts beforehand for ${price:g} a query: --estimate asks it to")
        elif price is not None:
            return tariff, stack.enter_context(platform)
    except (EchoError, OSError, RateLimitedError) as error:
        notify(f"{name} cannot be asked how many posts there are: {error}")
    return tariff, None


def planned_query_to_json(planned_query: PlannedQuery) -> dict[str, object]:
    question, window = planned_query.query.question, planned_query.query.question.window
    return {
        "platform": planned_query.platform,
        "phase": planned_query.query.phase + 1,
        "term": question.about[0],
        "language": question.language,
        "start": window.start.isoformat() if window else None,
        "end": window.end.isoformat() if window else None,
        "cut": planned_query.query.cut,
        "done": planned_query.done,
        "posts": planned_query.posts,
        "requests": planned_query.requests,
        "usd": planned_query.usd,
        "most_usd": planned_query.most_usd,
    }


class LongWaitError(RateLimitedError):
    """Raised when a platform asks for a longer wait than a run should take."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a question is asked, and how long the crawl waits between attempts."""

    attempts: int = 6
    backoff_s: float = 1.0
    longest_wait_s: float = 2 * 3600.0
    sleep: Callable[[float], None] = time.sleep

    @contextmanager
    def connect(self, platform: Platform, on_wait: OnWait) -> Iterator[Platform]:
        self.call_until_done(platform.__enter__, on_wait)
        try:
            yield platform
        finally:
            platform.__exit__(None, None, None)

    def call_until_done(self, call: Callable[[], ResultT], on_wait: OnWait) -> ResultT:
        """Call until there is an answer; report each wait that the platform asks for."""

        def call_with_waits() -> ResultT:
            count, waited_s = 0, 0.0
            while True:
                try:
                    return call()
                except RateLimitedError as error:
                    # From the second wait in a row on, wait at least as long as the backoff.
                    floor = self.backoff_s * 2 ** min(count - 1, 6) if count else 0.0
                    seconds = max(error.seconds, floor)
                count, waited_s = count + 1, waited_s + seconds
                # Short waits may add up to a month; written so that NaN ends the loop, too.
                if not waited_s <= self.longest_wait_s:
                    raise LongWaitError(seconds)
                on_wait(seconds)
                self.sleep(seconds)

        policy = RetryPolicy(self.attempts, self.backoff_s, also=(OSError,))
        return policy.call(call_with_waits, self.sleep)


@dataclass
class CrawlProgress:
    platform: str
    requests: int = 0
    posts: int = 0
    round: int = 0
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0
    spent: CrawlCost = field(default_factory=CrawlCost)

    def __str__(self) -> str:
        rate = self.posts / self.seconds if self.seconds else 0.0
        activity = f"round {self.round} of replies" if self.round else "search"
        return (
            f"{self.platform}: {activity}, {self.requests:,} requests, {self.posts:,} posts "
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
        self.progress = CrawlProgress(self._name, spent=self.ledger.cost_of(self._name))
        self._began = time.monotonic()
        self._failures = 0
        self._question = (0, 0)  # id and attempt of the last question
        self._seen = set[str]()  # addresses of its posts
        self._idle = 0  # its pages in a row without a new post

    def run(self, released: datetime.date, now: datetime.datetime) -> CrawlEnd:
        update_questions(self.ledger, self._name, self.search, released, now)
        while True:
            while (pending := self.ledger.next_question(self._name)) is not None:
                self.progress.round = pending.round
                if end := self._check_limits(pending) or self._ask(pending):
                    return end
            if not self._expand():
                break
        if self.ledger.count_states(self._name).get(QuestionState.TROUBLED):
            return CrawlEnd.SOME_FAILED
        unexpanded = self.ledger.find_unexpanded(self._name, 1)
        return CrawlEnd.ROUNDS_DONE if unexpanded else CrawlEnd.NOTHING_LEFT

    def _check_limits(self, pending: LedgerQuestion) -> CrawlEnd | None:
        spent, budget, expand = self.progress.spent, self.search.budget, self.search.expand
        if budget.posts is not None and spent.posts >= budget.posts:
            return CrawlEnd.POSTS_SPENT
        if budget.usd is not None and spent.cost_usd >= budget.usd:
            return CrawlEnd.DOLLARS_SPENT
        if pending.round and expand.rounds is not None and pending.round > expand.rounds:
            return CrawlEnd.ROUNDS_DONE
        if pending.round and expand.posts is not None and spent.by_replies >= expand.posts:
            return CrawlEnd.EXPANSION_FULL
        return None

    def _ask(self, pending: LedgerQuestion) -> CrawlEnd | None:
        try:
            page = self.patience.call_until_done(
                lambda: self.platform.ask(pending.question, pending.cursor), self._report_wait
            )
        except StaleCursorError:
            if pending.attempt + 1 < MAX_RESTARTS:
                self.ledger.restart_question(pending)
            else:
                reason = f"its cursors got lost {MAX_RESTARTS} times: some of its posts are missing"
                self.ledger.put_aside(pending, QuestionState.REFUSED, reason)
        except UnanswerableError as error:
            self.ledger.put_aside(pending, QuestionState.REFUSED, _shorten_error(error))
        except LongWaitError as error:
            self.watch.report_notice(f"{self._name} {error}: come back then")
            return CrawlEnd.TOLD_TO_WAIT
        except OSError as error:
            reason = _shorten_error(error)
            self.ledger.put_aside(pending, QuestionState.TROUBLED, reason)
            self.watch.report_notice(
                f"{self._name}: a question failed and waits for the next run: {reason}"
            )
            self._failures += 1
            return CrawlEnd.OUT_OF_REACH if self._failures >= MAX_CONSECUTIVE_FAILURES else None
        else:
            self._store_page(pending, page)
        return None

    def _store_page(self, pending: LedgerQuestion, page: Page) -> None:
        price, question = self.platform.tariff.usd_per_post, pending.question
        tariff_cost = None if price is None else price * page.posts
        cost = tariff_cost if page.cost_usd is None else page.cost_usd
        keywords = question.about if question.kind == "search" else ()
        posts = read_page_posts(page.body, self.source, keywords)
        cleared_posts = map(self.forgotten.clear, posts) if self.forgotten.hashes else posts
        # A post that was taken down must not be stored again.
        forgotten_urls = frozenset(post.url for post in posts if post.url in self.forgotten)
        if forgotten_urls:
            cleared_body = remove_posts(page.body, self._name, forgotten_urls, keywords)
            page = dataclasses.replace(page, body=cleared_body)
        self.ledger.store_page(pending, page, cleared_posts, cost)
        if page.cursor is not None:
            self._stop_if_idle(pending, posts)
        self._failures = 0
        progress = self.progress
        progress.requests += 1
        progress.posts += page.posts
        progress.spent.add(page.posts, cost, by_replies=pending.round > 0)
        progress.seconds = time.monotonic() - self._began
        self.watch.report_progress(self._name, progress.requests, progress)

    def _stop_if_idle(self, pending: LedgerQuestion, posts: list[Post]) -> None:
        """Stop asking a question when many pages in a row bring no new post."""
        if self._question != (pending.id, pending.attempt):
            self._question, self._seen, self._idle = (pending.id, pending.attempt), set(), 0
        urls = {post.url for post in posts}
        self._idle = self._idle + 1 if urls <= self._seen else 0
        self._seen |= urls
        if self._idle >= MAX_IDLE_PAGES:
            reason = f"{MAX_IDLE_PAGES} pages in a row brought nothing new"
            reason += ": some of its posts are missing"
            self.ledger.put_aside(pending, QuestionState.REFUSED, reason)

    def _report_wait(self, seconds: float) -> None:
        self.progress.waits += 1
        self.progress.waited_s += seconds
        self.watch.report_wait(self._name, seconds)

    def _expand(self) -> int:
        """Write down what to ask about the last round's posts; return the number of questions."""
        rounds, new = self.search.expand.rounds, 0
        while unexpanded := self.ledger.find_unexpanded(self._name, POSTS_PER_EXPANSION, rounds):
            for _, group in groupby(unexpanded, lambda post: post.round):
                posts = list(group)
                lacks = self.ledger.lacks_below
                lacking = [post for post in posts if post.incomplete or lacks(self._name, post)]
                # Some platforms find replies only by the first post of their conversation.
                lacking += self.ledger.find_tops(self._name, lacking)
                questions = self.platform.around([post.post for post in lacking]) if lacking else []
                # A thread is one question for all of its posts: remember a post for each of them.
                origins = {
                    question.key: post.row
                    for post in lacking
                    for question in self.platform.around([post.post])
                    if question.kind == "thread"
                }
                new += self.ledger.expand(self._name, posts, questions, origins)
        return new


def _shorten_error(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_ERROR_CHARACTERS]


def crawl_posts(
    config: Config,
    folder: RunFolder,
    watch: ProgressListener,
    *,
    patience: Patience | None = None,
    make: Callable[[str], Platform] = make_platform,
) -> list[CrawlStats]:
    searches, patience = find_searches(config), patience or Patience()
    refusals: list[PlatformError] = []
    with folder.lock(), ExitStack() as connections:
        # Connect to all first: a missing key is reported before any platform is asked.
        platforms = {name: _connect(make(name), patience, watch, connections) for name in searches}
        ledger = connections.enter_context(CrawlLedger(folder.root / CRAWL_LEDGER_FILE))
        forgotten = read_tombstones(folder.root / TOMBSTONES_FILE)
        stats_by_platform = {}
        for name, platform in platforms.items():
            if isinstance(platform, CrawlEnd):
                stats_by_platform[name] = ledger.summarize(name, platform)
                continue
            search, source = searches[name], make_source(name)
            crawl = Crawl(platform, source, search, ledger, watch, patience, forgotten)
            try:
                end = crawl.run(config.target.released, datetime.datetime.now(datetime.UTC))
            except PlatformError as error:
                watch.report_notice(f"{name} is asked no more: {error}")
                refusals.append(error)
                end = CrawlEnd.KEY_REFUSED
            times = {key: getattr(crawl.progress, key) for key in ("waits", "waited_s", "seconds")}
            stats_by_platform[name] = ledger.summarize(name, end, **times)
        stats_json = {
            name: {**dataclasses.asdict(stats), "missed_by_terms": stats.missed_by_terms}
            for name, stats in stats_by_platform.items()
        }
        with replace_file(folder.root / STATS_FILE) as partial:
            partial.write_text(json.dumps(stats_json, indent=1) + "\n", "utf-8")
    if refusals:
        raise refusals[0]
    return list(stats_by_platform.values())


def _connect(
    platform: Platform, patience: Patience, watch: ProgressListener, connections: ExitStack
) -> Platform | CrawlEnd:
    """Connect a platform until the stack is closed, or return why it cannot be asked."""
    name = platform.name
    try:
        return connections.enter_context(
            patience.connect(platform, lambda seconds: watch.report_wait(name, seconds))
        )
    except LongWaitError as error:
        watch.report_notice(f"{name} {error}: come back then")
        return CrawlEnd.TOLD_TO_WAIT
    except OSError as error:
        watch.report_notice(f"{name} cannot be asked: {error}")
        return CrawlEnd.OUT_OF_REACH
