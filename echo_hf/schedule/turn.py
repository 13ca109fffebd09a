"""One turn of the loop, from collecting to proposing a release, and its run between turns."""

from __future__ import annotations

import json
import os
import re
import reprlib
import shutil
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import HfApi

from echo_hf._infra.atomic import replace_file, write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import escape_markdown, one_line
from echo_hf.builder import build, update
from echo_hf.builder.checks import check_complaints
from echo_hf.builder.refresh import refresh
from echo_hf.builder.takedown import forget
from echo_hf.collect.crawl import crawl_posts, find_searches
from echo_hf.collect.crawl_ledger import CrawlEnd
from echo_hf.collect.takedown import TOMBSTONES_FILE, read_tombstones
from echo_hf.config.loading import Config, load_config
from echo_hf.config.sections import ScheduleOptions
from echo_hf.engines.base import Failed
from echo_hf.errors import ConfigError, EchoError, RunError
from echo_hf.hub.check_changes import compare_checks
from echo_hf.hub.publish import list_sentences, publish
from echo_hf.hub.release import read_config_rows, read_release
from echo_hf.hub.remote import PullRequest, Remote
from echo_hf.hub.sealed import SEALED_FOLDER, SealedSamples
from echo_hf.hub.submissions import SUBMISSIONS_FOLDER
from echo_hf.pipeline.progress import LOG_FILE, NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.report.evaluation import evaluate_systems
from echo_hf.schedule.lease import RunLease
from echo_hf.submissions.accept import AcceptedSubmission, accept_submission
from echo_hf.submissions.requests import OpenSubmission, SubmissionRequests
from echo_hf.tables import CHECKS

COMPLETE_ENDS = (CrawlEnd.NOTHING_LEFT, CrawlEnd.ROUNDS_DONE, CrawlEnd.EXPANSION_FULL)
# None goes on where one of them stopped.
BUILD_STEPS = ("collect", "refresh", "update", "checks", "eval")
STEPS: dict[str, str] = {
    "fetch": "bring the run here from where it is kept",
    "settle": "tag what somebody has merged since",
    "collect": "ask platforms for posts, each within its budget",
    "refresh": "forget the posts that are gone",
    "update": "build from the posts there are now",
    "checks": "write and prove what complaints became, within the budget",
    "eval": "generate, judge and score what is new, within the budget",
    "propose": "open a pull request with the release and what changed in it",
    "submissions": "check what others submitted, and answer; nobody is asked, nothing costs",
}
MAX_COUNT_BYTES, MAX_COUNT = 1 << 16, 10**12
COUNT_FILE = "schedule.json"  # how often the run was kept: of two copies the newer has more
UNFINISHED_FILE = ".unfinished"
DATABASE_SUFFIX = ".sqlite"
REBUILT_FOLDERS = ("stages", "release", "previous")  # from stored answers, at no cost
LOCAL_NAMES = ("cache", LOG_FILE, UNFINISHED_FILE)
TEMPORARY = (f"{DATABASE_SUFFIX}-wal", f"{DATABASE_SUFFIX}-shm", ".partial", ".lock")
SECONDS_BETWEEN_SYNCS = 600.0  # between two keepings while one stage goes on


@dataclass(frozen=True)
class Turn:
    """The outcome of each step of a turn, and the reasons why nothing was proposed."""

    steps: dict[str, str]
    held: tuple[str, ...] = ()  # empty too where nothing changed
    request: str | None = None  # the pull request that has the release, or says why there is none
    tagged: tuple[str, ...] = ()  # the tags that merged requests were given


def get_schedule(config: Config) -> ScheduleOptions:
    if config.schedule is None:
        raise ConfigError(
            f"config {config.name!r} does not say what the loop may do: add, for example, "
            "`schedule: {repo_id: my-lab/echo, budget_usd: 20}`"
        )
    return config.schedule


def turn(
    config: Config | Path | str,
    *,
    runs: Path | str | None = None,
    state: Path | str | None = None,
    watch: ProgressListener | None = None,
    on_step: Callable[[str, str], None] | None = None,
    api: HfApi | None = None,
) -> Turn:
    """Take one turn; if it is stopped at any moment, the next one resumes from the kept answers.

    A run is kept in `state` between turns, such as a mount of a bucket; null where this machine
    keeps it. Of several turns on one state, one works, and the others are refused. `on_step` is
    called with each step and what it came to.
    """
    loop, synced_run = _open_loop(config, runs, state, watch, api)
    report_step = on_step or (lambda *_: None)
    with synced_run.hold_lease():
        steps = {"fetch": synced_run.fetch()}
        report_step("fetch", steps["fetch"])
        for name in tuple(STEPS)[1:]:
            if loop.stopped and name in BUILD_STEPS:
                continue
            try:
                steps[name] = getattr(loop, name)()
            except EchoError as error:
                loop.stopped = loop.stopped or name in BUILD_STEPS
                loop.held.append(f"{name} stopped: {error}")
                steps[name] = f"stopped: {error}"
            finally:
                synced_run.push()
            report_step(name, steps[name])
    return Turn(steps, tuple(loop.held), loop.request, tuple(loop.tagged))


def _open_loop(
    config: Config | Path | str,
    runs: Path | str | None,
    state: Path | str | None,
    watch: ProgressListener | None,
    api: HfApi | None,
) -> tuple[ScheduleLoop, SyncedRun]:
    config = load_config(config)
    options = get_schedule(config)
    run = open_run_folder(config, runs)
    synced_run = SyncedRun(run.root, Path(state) / config.name if state else None)
    progress = SyncProgress(synced_run, watch or NullProgress())
    remote = Remote(api or HfApi(), options.repo_id)
    return ScheduleLoop(config, options, run.root.parent, progress, remote), synced_run


@contextmanager
def open_submissions(
    config: Config | Path | str,
    *,
    runs: Path | str | None = None,
    state: Path | str | None = None,
    watch: ProgressListener | None = None,
    api: HfApi | None = None,
) -> Iterator[tuple[ScheduleLoop, SubmissionRequests]]:
    """Open the submissions to a config's dataset, with the run that keeps its answers to them."""
    loop, synced_run = _open_loop(config, runs, state, watch, api)
    requests = _open_requests(loop, synced_run.folder)
    with synced_run.hold_lease():
        synced_run.fetch()
        try:
            yield loop, requests
        finally:
            synced_run.push()


def _open_requests(loop: ScheduleLoop, folder: Path) -> SubmissionRequests:
    requests = loop.open_submissions(folder)
    if requests is None:
        raise ConfigError("the config takes no submissions: leave out schedule.submissions: null")
    return requests


def list_submissions(
    config: Config | Path | str,
    *,
    runs: Path | str | None = None,
    state: Path | str | None = None,
    api: HfApi | None = None,
) -> tuple[list[OpenSubmission], list[str]]:
    """List the open submissions to a config's dataset, each with its answer, and what went wrong.

    It only reads, also while a turn works on the same state.
    """
    loop, synced_run = _open_loop(config, runs, state, None, api)
    requests = _open_requests(loop, synced_run.find_newest())
    return requests.list_open(), requests.failed


def accept(
    config: Config | Path | str, number: int, *, budget_usd: float | None = None, **place: Any
) -> AcceptedSubmission:
    """Accept an open submission: judge it within a budget, the config's unless one is given."""
    with open_submissions(config, **place) as (loop, requests):
        budget = loop.options.budget_usd if budget_usd is None else budget_usd
        return accept_submission(loop.config, requests, number, budget, loop.watch)


@dataclass
class ScheduleLoop:
    """The steps of a turn; each resumes where an earlier turn was stopped."""

    config: Config
    options: ScheduleOptions
    runs: Path
    watch: ProgressListener
    remote: Remote
    held: list[str] = field(default_factory=list)
    tagged: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    request: str | None = None
    stopped: bool = False
    spent_usd: float = 0.0  # before the evaluation

    def parse_number(self, tag: str) -> int | None:
        """Return the number, from 0, of the release that a tag names; null for other tags."""
        match = re.fullmatch(rf"{re.escape(self.config.name)}(?:\.([1-9][0-9]{{0,5}}))?", tag)
        return int(match[1] or 0) if match else None

    def list_tags(self) -> dict[int, str]:
        state = self.remote.read_state()
        tags = () if state is None else state.tags
        return {number: tag for tag in tags if (number := self.parse_number(tag)) is not None}

    def list_requests(self) -> dict[PullRequest, str | None]:
        """Return the pull requests of earlier turns and their tags; null for a held release."""
        if self.remote.read_state() is None:
            return {}
        requests: dict[PullRequest, str | None] = {}
        for request in self.remote.list_own_requests():
            word, _, tag = request.title.partition(" ")
            if request.title == self.not_ready:
                requests[request] = None
            elif word == "Publish" and self.parse_number(tag) is not None:
                requests[request] = tag
        return requests

    @property
    def not_ready(self) -> str:
        return f"{self.config.name} is not ready to be published"

    def settle(self) -> str:
        tags, refused = set(self.list_tags().values()), list[str]()
        for request, tag in self.list_requests().items():
            if tag is None or tag in tags or request.status != "merged":
                continue
            if commit := self.remote.find_merge_commit(request):
                if self._adds_submission(commit):
                    refused.append(f"{request.url} adds a submission, and is no release")
                    continue
                self.remote.tag(tag, commit)
                self.tagged.append(tag)
        tagged = [f"tagged {', '.join(self.tagged)}"] if self.tagged else []
        return "; ".join([*tagged, *refused]) or "nothing was merged since"

    def _adds_submission(self, commit: str) -> bool:
        """Return whether a merge has brought what others submitted."""
        trees = [
            {path for path in self.remote.list_files(each) if path.startswith(SUBMISSIONS_FOLDER)}
            for each in self.remote.list_commits(commit)[:2]
        ]
        return bool(trees[0].difference(*trees[1:]))

    def collect(self) -> str:
        outcomes = []
        if find_searches(self.config):
            for crawl in crawl_posts(
                self.config, RunFolder(self.runs / self.config.name), self.watch
            ):
                outcomes.append(f"{crawl.platform}: {crawl.end}")
                if crawl.end not in COMPLETE_ENDS:
                    self.held.append(f"collect, {crawl.platform}: {crawl.end.meaning}")
        result = build.run_until(self.config, "collect", runs=self.runs, watch=self.watch)[-1]
        return "; ".join([*outcomes, f"{len(result.dataset):,} posts"])

    def refresh(self) -> str:
        only = list(find_searches(self.config))
        if not only:
            return "no platform is searched, so none is asked"
        done = refresh(self.config, self.watch, runs=self.runs, only=only)
        if doubtful := [platform.platform for platform in done.platforms if platform.is_doubtful]:
            self.held.append(
                f"refresh: most posts of {', '.join(doubtful)} are said to be gone; check the key, "
                "and forget them by `echo-hf refresh --apply --however-many` if that is so"
            )
            return "doubtful: nothing was forgotten"
        if not done.gone:
            return "no post is known to be gone"
        removal = forget(done.gone, self.config, runs=self.runs)
        return f"{removal.posts:,} posts and {len(removal.samples):,} samples forgotten"

    def update(self) -> str:
        done = update.update(
            self.config, runs=self.runs, allow_empty=True, checks=False, watch=self.watch
        )
        waiting = sum(
            count
            for stage in done.stats
            for reason, count in stage.quarantined.items()
            if reason != Failed.NEEDS_MODEL
        )
        if waiting:
            self.notes.append(f"{waiting:,} rows wait for an answer that failed.")
        return f"{done.calls_made:,} calls made, {done.reused_answers:,} answers used again"

    def checks(self) -> str:
        if self.config.checks is None:
            return "none"
        budget = self.options.budget_usd
        done = check_complaints(self.config, runs=self.runs, budget_usd=budget, watch=self.watch)
        self.spent_usd = done.cost_usd or 0.0
        if budget <= self.spent_usd and done.is_unfinished:
            self.held.append(f"checks: the budget of ${budget:.2f} ended before all was asked")
        if not self.config.systems:  # else the evaluation is followed by a build
            self._build_again()
        events = Counter(change.event for change in done.changes)
        changes = ", ".join(f"{count:,} {event}" for event, count in sorted(events.items()))
        return f"{changes or 'nothing changed'}, ${self.spent_usd:.2f}"

    def _build_again(self) -> None:
        """Build once more, for the release to hold what came of its samples."""
        build.build(self.config, runs=self.runs, offline=True, allow_empty=True, watch=self.watch)

    def eval(self) -> str:
        if not self.config.systems:
            return "the config names no systems"
        budget = max(self.options.budget_usd - self.spent_usd, 0.0)
        done = evaluate_systems(self.config, runs=self.runs, budget_usd=budget, watch=self.watch)
        self.held += [f"eval: {error}" for error in done.stopped]
        if done.spent:
            self.held.append(f"eval: the budget of ${budget:.2f} ended before all was asked")
        self._build_again()
        return f"{len(done.board):,} rows on the board, ${done.cost_usd:.2f}"

    def propose(self) -> str:
        release = RunFolder(self.runs / self.config.name).release
        if not self.held and (reviews := read_release(release).manifest.open_reviews):
            self.held.append(f"review: {reviews:,} samples wait for `echo-hf review --app`")
        return self._comment_reasons() if self.held else self._publish(release)

    def _publish(self, release: Path) -> str:
        tags = self.list_tags()
        number = max(tags, default=-1) + 1
        tag = f"{self.config.name}.{number}" if number else self.config.name
        previous = f"{self.options.repo_id}@{tags[number - 1]}" if number else None
        if previous is None:  # of others the comparison with it says so
            rows = read_config_rows(read_release(release), CHECKS.name)
            self.notes.append(list_sentences(compare_checks((), rows)))
        published = publish(
            release,
            self.options.repo_id,
            tag,
            previous=previous,
            create_pr=True,
            private=self.options.private,
            note="\n\n".join(filter(None, self.notes)) or None,
            allow_rules=self.options.allow_rules,
            allow_unscreened=self.options.allow_unscreened,
            api=self.remote.api,
        )
        pending = [request for request in self.list_requests() if request.is_open]
        self.request = next(
            (request.url for request in pending if request.url == published.url), None
        )
        for request in pending:
            if request.url != self.request:
                self.remote.close(request, f"Newer: {self.request or self.remote.page}")
        if self.request:
            return f"proposed as {tag}: {self.request}"
        return f"nothing changed since {previous}"

    def submissions(self) -> str:
        requests = self.open_submissions(self.runs / self.config.name)
        if requests is None:
            return "the config takes none"
        states = Counter(submission.state for submission in requests.answer_open())
        counts = [f"{count:,} {state}" for state, count in sorted(states.items())]
        # No request of others keeps a release from being proposed.
        return "; ".join([", ".join(counts) or "none is open", *requests.failed])

    def open_submissions(self, folder: Path) -> SubmissionRequests | None:
        """Open the requests of others, answered in a run; null where the config looks at none."""
        options = self.options.submissions
        if options is None:
            return None
        return SubmissionRequests(options, self.remote, RunFolder(folder), self.watch)

    def _comment_reasons(self) -> str:
        """Post the reasons why nothing is proposed on the Hub, once for the same reasons."""
        if self.remote.read_state() is None:
            return "held, and there is no dataset yet to say so"
        text = "\n".join(
            [
                "Nothing new is proposed:",
                "",
                *(f"- {escape_markdown(reason)}" for reason in self.held),
            ]
        )
        pending = [
            request
            for request, tag in self.list_requests().items()
            if request.is_open and tag is None
        ]
        if pending:
            self.remote.comment(pending[0], text)
        self.request = pending[0].url if pending else self.remote.open_request(self.not_ready, text)
        return f"held; {self.request} says why"


@dataclass
class SyncedRun:
    """A run's folder and the place that keeps it between turns; null if this machine keeps it."""

    folder: Path
    place: Path | None
    lease: RunLease | None = None

    @contextmanager
    def hold_lease(self) -> Iterator[None]:
        """Keep turns of other machines out while the body runs."""
        if self.place is None:
            yield
            return
        self._check_mounted(self.place.parent)
        self.lease = RunLease(self.place.with_name(f".{self.place.name}.lease"))
        with self.lease.hold():
            yield

    def _check_mounted(self, state: Path) -> None:
        if not state.is_dir():
            raise RunError(f"--state is {str(state)!r}: expected a folder; mount it, or make it")

    def find_newest(self) -> Path:
        """Find the newer one of the two copies of the run, without changing either."""
        if self.place is None:
            return self.folder
        self._check_mounted(self.place.parent)
        return max(self.folder, self.place, key=_read_count)

    def fetch(self) -> str:
        """Copy the kept run here, unless the copy here is newer, as after a killed turn."""
        if self.place is None:
            return "it is on this machine"
        self._check_mounted(self.place.parent)
        place, folder = self.place.resolve(), self.folder.resolve()
        is_synced = any((place / marker).exists() for marker in (COUNT_FILE, UNFINISHED_FILE))
        is_separate = not (place.is_relative_to(folder) or folder.is_relative_to(place))
        if not is_separate or (place.is_dir() and any(place.iterdir()) and not is_synced):
            raise RunError(
                f"{str(self.place)!r} has other files, which a turn would delete: expected a "
                "folder that turns have made, or an empty one, apart from the run; name another "
                "by --state"
            )
        check_regular_files(place)
        local_count, remote_count = _read_count(self.folder), _read_count(self.place)
        if remote_count <= local_count:
            return "what is here is the newest" if local_count else "nothing is kept yet"
        unfinished = self.folder / UNFINISHED_FILE
        if not local_count and not unfinished.exists() and any(_list_names(self.folder, ())):
            raise RunError(
                f"{str(self.folder)!r} was built without --state, and what {str(place)!r} keeps "
                "would replace it: move one of them away, or name another folder by --runs"
            )
        forgotten = read_tombstones(folder / TOMBSTONES_FILE).hashes
        if restored := forgotten - read_tombstones(place / TOMBSTONES_FILE).hashes:
            raise RunError(
                f"{str(self.folder)!r} has forgotten {len(restored):,} posts that "
                f"{str(place)!r}, which is newer, would bring back: move {str(self.folder)!r} "
                "away, and forget them again after this turn"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished.touch()
        skipped = REBUILT_FOLDERS if (self.place / UNFINISHED_FILE).exists() else ()
        fetched = _mirror(self.place, self.folder, skipped)
        unfinished.unlink()
        return f"{fetched:,} files fetched"

    def push(self) -> None:
        """Copy what changed to the place that keeps the run; a later turn repairs a killed copy."""
        if not self.folder.is_dir():
            return
        if self.lease is not None:
            self.lease.check()  # first: of two copies, one that was not kept is the older
        write_json(self.folder / COUNT_FILE, {"kept": _read_count(self.folder) + 1})
        if self.place is None:
            return
        self.place.mkdir(exist_ok=True)
        check_regular_files(self.place.resolve())
        (self.place / UNFINISHED_FILE).touch()
        _mirror(self.folder, self.place, snapshots=True)
        (self.place / UNFINISHED_FILE).unlink()


def _read_count(folder: Path) -> int:
    path = folder / COUNT_FILE
    try:
        count = json.loads(read_regular(path, folder, max_bytes=MAX_COUNT_BYTES))["kept"]
        if isinstance(count, int) and 0 <= count <= MAX_COUNT:
            return int(count)
        problem = f"kept is {reprlib.repr(count)}, expected a whole number"
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        problem = one_line(error) or type(error).__name__
    raise RunError(
        f"{str(path)!r} does not say how often the run was kept ({problem[:200]}), and which copy "
        "is the newest: bring the file back from a copy of that folder"
    )


def _mirror(
    source: Path, target: Path, skipped: tuple[str, ...] = (), *, snapshots: bool = False
) -> int:
    """Make a folder equal to another one; a database in use is copied by SQLite's backup."""
    copied, names = 0, set(_list_names(source, skipped))
    sealed = SealedSamples(RunFolder(target))
    if any(Path(name).parts[0] == SEALED_FOLDER for name in names):
        sealed.root.mkdir(exist_ok=True)
        sealed.close_folder()  # before anything lies in it
    # The count comes last: whoever finds it new finds all else.
    for name in sorted(names, key=lambda name: (name == COUNT_FILE, name)):
        path, copy = source / name, target / name
        try:
            modified_ns = _get_modified_ns(path)
            if copy.exists() and _get_modified_ns(copy) == modified_ns:
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(copy) as partial:
                if snapshots and path.suffix == DATABASE_SUFFIX:
                    _copy_database(path, partial)
                else:
                    shutil.copyfile(path, partial)
            os.utime(copy, ns=(modified_ns, modified_ns))
            copied += 1
        except FileNotFoundError:
            continue  # replaced meanwhile: the next keeping has it
    for name in set(_list_names(target, ())) - names:
        (target / name).unlink(missing_ok=True)
    sealed.close_to_others()
    if not snapshots:
        # A log of an older database beside a newer one would be taken for its own.
        for log in (match for ending in TEMPORARY[:2] for match in target.glob(f"*{ending}")):
            log.unlink(missing_ok=True)
    return copied


def check_regular_files(folder: Path) -> None:
    """Refuse links and pipes in what is kept: they would lead a turn to other files."""
    for root, folders, files in os.walk(folder):
        for path in (Path(root) / name for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise RunError(
                    f"{str(path)!r} is neither a file nor a folder, and a turn keeps no others: "
                    "move it away"
                )


def _list_names(folder: Path, skipped: tuple[str, ...]) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        relative = Path(root).relative_to(folder)
        if relative == Path():
            folders[:] = [child for child in folders if child not in (*LOCAL_NAMES, *skipped)]
        for name in files:
            is_local = relative == Path() and name in LOCAL_NAMES
            if not (is_local or name.endswith(TEMPORARY) or name.startswith(".echo-hf-")):
                yield str(relative / name)


def _get_modified_ns(path: Path) -> int:
    """Return when a file was last modified; for a database, its write-ahead log counts too."""
    log = path.with_name(f"{path.name}-wal")
    return max(file.stat().st_mtime_ns for file in (path, log) if file == path or file.exists())


def _copy_database(path: Path, copy: Path) -> None:
    # A network disk has no locks that SQLite could trust: the copy is made beside it.
    with TemporaryDirectory() as temporary:
        snapshot = Path(temporary) / "copy"
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(snapshot)) as target:
            source.backup(target)
        shutil.copyfile(snapshot, copy)


@dataclass
class SyncProgress(ProgressListener):
    """Keeps a run after each stage, and every ten minutes during one."""

    run: SyncedRun
    watch: ProgressListener
    _last: float = field(default_factory=time.monotonic)

    def report_start(self, part: str, total: int, plan: object) -> None:
        self.watch.report_start(part, total, plan)

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        self.watch.report_progress(part, done, stats, total)
        if time.monotonic() - self._last > SECONDS_BETWEEN_SYNCS:
            self._push()

    def report_wait(self, host: str, seconds: float) -> None:
        self.watch.report_wait(host, seconds)

    def report_notice(self, notice: str) -> None:
        self.watch.report_notice(notice)

    def report_result(self, result: object) -> None:
        self.watch.report_result(result)
        self._push()

    def _push(self) -> None:
        self.run.push()
        self._last = time.monotonic()
