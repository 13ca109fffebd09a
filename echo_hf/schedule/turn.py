"""One turn of the loop, from collecting to proposing a release; its run is kept in between."""

from __future__ import annotations

import json
import os
import re
import reprlib
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import HfApi

from echo_hf._infra.atomic import replaced_file, write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import escaped, one_line
from echo_hf.apps.takedown import forget
from echo_hf.builder import build, update
from echo_hf.builder.refresh import refresh
from echo_hf.collect.crawl import crawl_posts, searches
from echo_hf.collect.takedown import TOMBSTONES, read_tombstones
from echo_hf.config.loading import Config, load_config
from echo_hf.config.sections import ScheduleOptions
from echo_hf.errors import ConfigError, EchoError, RunError
from echo_hf.hub.publish import publish
from echo_hf.hub.release import read_release
from echo_hf.hub.remote import Remote, Request
from echo_hf.pipeline.progress import LOG, NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import CrawlEnd, Failed
from echo_hf.report.evaluation import evaluate_systems
from echo_hf.schedule.lease import Lease

COMPLETE = (CrawlEnd.NOTHING_LEFT, CrawlEnd.ROUNDS_DONE, CrawlEnd.EXPANSION_FULL)
NEED_ALL = ("collect", "refresh", "update", "eval")  # none goes on where one of them stopped
STEPS: dict[str, str] = {
    "fetch": "bring the run here from where it is kept",
    "settle": "tag what somebody has merged since",
    "collect": "ask platforms for posts, each within its budget",
    "refresh": "forget the posts that are gone",
    "update": "build from the posts there are now",
    "eval": "generate, judge and score what is new, within the budget",
    "propose": "open a pull request with the release and what changed in it",
}


@dataclass(frozen=True)
class Turn:
    """What each step of a turn did, and why nothing was proposed."""

    steps: dict[str, str]
    held: tuple[str, ...] = ()  # empty too where nothing changed
    request: str | None = None  # the pull request that has the release, or says why there is none
    tagged: tuple[str, ...] = ()  # the tags that merged requests were given


def schedule_of(config: Config) -> ScheduleOptions:
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
    told: Callable[[str, str], None] | None = None,
    api: HfApi | None = None,
) -> Turn:
    """Takes one turn; ended at any moment, the next one goes on with the answers that were kept.

    A run is kept in `state` between turns, such as a mount of a bucket; null where this machine
    keeps it. Of several turns on one state, one works, and the others are refused. Each step is
    `told` with what it came to.
    """
    config = load_config(config)
    options = schedule_of(config)
    run = run_folder(config, runs)
    kept = KeptRun(run.root, Path(state) / config.name if state else None)
    watch = Keeping(kept, watch or NullProgress())
    loop = Loop(config, options, run.root.parent, watch, Remote(api or HfApi(), options.repo_id))
    tell = told or (lambda *_: None)
    with kept.leased():
        steps = {"fetch": kept.fetch()}
        tell("fetch", steps["fetch"])
        for name in tuple(STEPS)[1:]:
            if loop.stopped and name in NEED_ALL:
                continue
            try:
                steps[name] = getattr(loop, name)()
            except EchoError as error:
                loop.stopped = loop.stopped or name in NEED_ALL
                loop.held.append(f"{name} stopped: {error}")
                steps[name] = f"stopped: {error}"
            finally:
                kept.keep()
            tell(name, steps[name])
    return Turn(steps, tuple(loop.held), loop.request, tuple(loop.tagged))


@dataclass
class Loop:
    """The steps of a turn, each of which goes on where an earlier turn was ended."""

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

    def number(self, tag: str) -> int | None:
        """Which release of this benchmark a tag names, from 0; null where it is another's."""
        found = re.fullmatch(rf"{re.escape(self.config.name)}(?:\.([1-9][0-9]{{0,5}}))?", tag)
        return int(found[1] or 0) if found else None

    def tags(self) -> dict[int, str]:
        state = self.remote.state()
        tags = () if state is None else state.tags
        return {number: tag for tag in tags if (number := self.number(tag)) is not None}

    def requests(self) -> dict[Request, str | None]:
        """Requests that turns have made, with the tags they are for; null: not ready for any."""
        if self.remote.state() is None:
            return {}
        found: dict[Request, str | None] = {}
        for one in self.remote.requests():
            word, _, tag = one.title.partition(" ")
            if one.title == self.not_ready:
                found[one] = None
            elif word == "Publish" and self.number(tag) is not None:
                found[one] = tag
        return found

    @property
    def not_ready(self) -> str:
        return f"{self.config.name} is not ready to be published"

    def settle(self) -> str:
        there = set(self.tags().values())
        for one, tag in self.requests().items():
            if tag is None or tag in there or one.status != "merged":
                continue
            if commit := self.remote.merged_as(one):
                self.remote.tag(tag, commit)
                self.tagged.append(tag)
        return f"tagged {', '.join(self.tagged)}" if self.tagged else "nothing was merged since"

    def collect(self) -> str:
        said = []
        if searches(self.config):
            for one in crawl_posts(
                self.config, RunFolder(self.runs / self.config.name), self.watch
            ):
                said.append(f"{one.platform}: {one.end}")
                if one.end not in COMPLETE:
                    self.held.append(f"collect, {one.platform}: {one.end.meaning}")
        result = build.run_until(self.config, "collect", runs=self.runs, watch=self.watch)[-1]
        return "; ".join([*said, f"{len(result.dataset):,} posts"])

    def refresh(self) -> str:
        only = list(searches(self.config))
        if not only:
            return "no platform is searched, so none is asked"
        done = refresh(self.config, self.watch, runs=self.runs, only=only)
        if doubtful := [one.platform for one in done.platforms if one.is_doubtful]:
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
        done = update.update(self.config, runs=self.runs, allow_empty=True, watch=self.watch)
        waiting = sum(
            count
            for one in done.stats
            for reason, count in one.quarantined.items()
            if reason != Failed.NEEDS_MODEL
        )
        if waiting:
            self.notes.append(f"{waiting:,} rows wait for an answer that failed.")
        return f"{done.asked:,} calls made, {done.reused:,} answers used again"

    def eval(self) -> str:
        if not self.config.systems:
            return "the config names no systems"
        budget = self.options.budget_usd
        done = evaluate_systems(self.config, runs=self.runs, budget_usd=budget, watch=self.watch)
        self.held += [f"eval: {one}" for one in done.stopped]
        if done.spent:
            self.held.append(f"eval: the budget of ${budget:.2f} ended before all was asked")
        # Once more, for the release to hold what systems drew and judges said.
        build.build(self.config, runs=self.runs, offline=True, allow_empty=True, watch=self.watch)
        return f"{len(done.board):,} rows on the board, ${done.cost_usd:.2f}"

    def propose(self) -> str:
        release = RunFolder(self.runs / self.config.name).release
        if not self.held and (reviews := read_release(release).manifest.open_reviews):
            self.held.append(f"review: {reviews:,} samples wait for `echo-hf review --app`")
        return self._say_why() if self.held else self._publish(release)

    def _publish(self, release: Path) -> str:
        tags = self.tags()
        number = max(tags, default=-1) + 1
        tag = f"{self.config.name}.{number}" if number else self.config.name
        before = f"{self.options.repo_id}@{tags[number - 1]}" if number else None
        published = publish(
            release,
            self.options.repo_id,
            tag,
            previous=before,
            create_pr=True,
            private=self.options.private,
            note="\n".join(self.notes) or None,
            allow_rules=self.options.allow_rules,
            allow_unscreened=self.options.allow_unscreened,
            api=self.remote.api,
        )
        found = [one for one in self.requests() if one.is_open]
        self.request = next((one.url for one in found if one.url == published.url), None)
        for one in found:
            if one.url != self.request:
                self.remote.close(one, f"Newer: {self.request or self.remote.page}")
        if self.request:
            return f"proposed as {tag}: {self.request}"
        return f"nothing changed since {before}"

    def _say_why(self) -> str:
        """Says on the Hub why nothing is proposed, once for the same reasons."""
        if self.remote.state() is None:
            return "held, and there is no dataset yet to say so"
        text = "\n".join(
            ["Nothing new is proposed:", "", *(f"- {escaped(why)}" for why in self.held)]
        )
        found = [one for one, tag in self.requests().items() if one.is_open and tag is None]
        if found:
            self.remote.comment(found[0], text)
        self.request = found[0].url if found else self.remote.ask(self.not_ready, text)
        return f"held; {self.request} says why"


MOST_COUNT_BYTES, MOST_KEPT = 1 << 16, 10**12
COUNT = "schedule.json"  # how often the run was kept: of two copies the newer has more
UNFINISHED = ".unfinished"
DATABASE = ".sqlite"
REMADE = ("stages", "release", "previous")  # from stored answers, at no cost
HERE_ALONE = ("cache", LOG, UNFINISHED)
ENDINGS = (f"{DATABASE}-wal", f"{DATABASE}-shm", ".partial", ".lock")
SECONDS = 600.0  # between two keepings while one stage goes on


@dataclass
class KeptRun:
    """A run's folder, and where it is kept; null where it stays on this machine."""

    folder: Path
    place: Path | None
    lease: Lease | None = None

    @contextmanager
    def leased(self) -> Iterator[None]:
        """Keeps turns of other machines out of where it is kept."""
        if self.place is None:
            yield
            return
        self._check_mounted(self.place.parent)
        self.lease = Lease(self.place.with_name(f".{self.place.name}.lease"))
        with self.lease.held():
            yield

    def _check_mounted(self, state: Path) -> None:
        if not state.is_dir():
            raise RunError(f"--state is {str(state)!r}: expected a folder; mount it, or make it")

    def fetch(self) -> str:
        """Brings the run here, unless what is here is newer, as after a killed turn."""
        if self.place is None:
            return "it is on this machine"
        self._check_mounted(self.place.parent)
        place, folder = self.place.resolve(), self.folder.resolve()
        ours = any((place / one).exists() for one in (COUNT, UNFINISHED))
        is_apart = not (place.is_relative_to(folder) or folder.is_relative_to(place))
        if not is_apart or (place.is_dir() and any(place.iterdir()) and not ours):
            raise RunError(
                f"{str(self.place)!r} has other files, which a turn would delete: expected a "
                "folder that turns have made, or an empty one, apart from the run; name another "
                "by --state"
            )
        check_plain(place)
        here, there = _count(self.folder), _count(self.place)
        if there <= here:
            return "what is here is the newest" if here else "nothing is kept yet"
        begun = self.folder / UNFINISHED
        if not here and not begun.exists() and any(_names(self.folder, ())):
            raise RunError(
                f"{str(self.folder)!r} was built without --state, and what {str(place)!r} keeps "
                "would replace it: move one of them away, or name another folder by --runs"
            )
        forgotten = read_tombstones(folder / TOMBSTONES).hashes
        if undone := forgotten - read_tombstones(place / TOMBSTONES).hashes:
            raise RunError(
                f"{str(self.folder)!r} has forgotten {len(undone):,} posts that "
                f"{str(place)!r}, which is newer, would bring back: move {str(self.folder)!r} "
                "away, and forget them again after this turn"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        begun.touch()
        skipped = REMADE if (self.place / UNFINISHED).exists() else ()
        fetched = _mirror(self.place, self.folder, skipped)
        begun.unlink()
        return f"{fetched:,} files fetched"

    def keep(self) -> None:
        """Writes what changed to where it is kept; one that is killed there is made up for."""
        if not self.folder.is_dir():
            return
        if self.lease is not None:
            self.lease.check()  # first: of two copies, one that was not kept is the older
        write_json(self.folder / COUNT, {"kept": _count(self.folder) + 1})
        if self.place is None:
            return
        self.place.mkdir(exist_ok=True)
        check_plain(self.place.resolve())
        (self.place / UNFINISHED).touch()
        _mirror(self.folder, self.place, snapshots=True)
        (self.place / UNFINISHED).unlink()


def _count(folder: Path) -> int:
    """How often a run was kept, 0 where it never was."""
    path = folder / COUNT
    try:
        kept = json.loads(read_regular(path, folder, most_bytes=MOST_COUNT_BYTES))["kept"]
        if isinstance(kept, int) and 0 <= kept <= MOST_KEPT:
            return int(kept)
        said = f"kept is {reprlib.repr(kept)}, expected a whole number"
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = one_line(error) or type(error).__name__
    raise RunError(
        f"{str(path)!r} does not say how often the run was kept ({said[:200]}), and which copy is "
        "the newest: bring the file back from a copy of that folder"
    )


def _mirror(
    source: Path, target: Path, skipped: tuple[str, ...] = (), *, snapshots: bool = False
) -> int:
    """Makes a folder like another one; a database that is in use is copied as it is at a moment."""
    copied, names = 0, set(_names(source, skipped))
    # The count comes last: whoever finds it new finds all else.
    for name in sorted(names, key=lambda name: (name == COUNT, name)):
        path, copy = source / name, target / name
        try:
            changed = _changed(path)
            if copy.exists() and _changed(copy) == changed:
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(copy) as partial:
                if snapshots and path.suffix == DATABASE:
                    _snapshot(path, partial)
                else:
                    shutil.copyfile(path, partial)
            os.utime(copy, ns=(changed, changed))
            copied += 1
        except FileNotFoundError:
            continue  # replaced meanwhile: the next keeping has it
    for name in set(_names(target, ())) - names:
        (target / name).unlink(missing_ok=True)
    if not snapshots:
        # A log of an older database beside a newer one would be taken for its own.
        for log in (one for ending in ENDINGS[:2] for one in target.glob(f"*{ending}")):
            log.unlink(missing_ok=True)
    return copied


def check_plain(folder: Path) -> None:
    """Refuses links and pipes in what is kept: they would lead a turn to files elsewhere."""
    for at, folders, files in os.walk(folder):
        for path in (Path(at) / name for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise RunError(
                    f"{str(path)!r} is neither a file nor a folder, and a turn keeps no others: "
                    "move it away"
                )


def _names(folder: Path, skipped: tuple[str, ...]) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        place = Path(at).relative_to(folder)
        if place == Path():
            folders[:] = [one for one in folders if one not in (*HERE_ALONE, *skipped)]
        for name in files:
            alone = place == Path() and name in HERE_ALONE
            if not (alone or name.endswith(ENDINGS) or name.startswith(".echo-hf-")):
                yield str(place / name)


def _changed(path: Path) -> int:
    """When a file changed last, of a database also what its log says."""
    log = path.with_name(f"{path.name}-wal")
    return max(one.stat().st_mtime_ns for one in (path, log) if one == path or one.exists())


def _snapshot(path: Path, copy: Path) -> None:
    # A network disk has no locks that SQLite could trust: the copy is made beside it.
    with TemporaryDirectory() as aside:
        whole = Path(aside) / "copy"
        with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(whole)) as there:
            here.backup(there)
        shutil.copyfile(whole, copy)


@dataclass
class Keeping(ProgressListener):
    """Keeps a run when a stage has its result, and now and then while one goes on."""

    run: KeptRun
    watch: ProgressListener
    _last: float = field(default_factory=time.monotonic)

    def started(self, what: str, total: int, plan: object) -> None:
        self.watch.started(what, total, plan)

    def advanced(self, what: str, done: int, stats: object, total: int | None = None) -> None:
        self.watch.advanced(what, done, stats, total)
        if time.monotonic() - self._last > SECONDS:
            self._keep()

    def waits(self, who: str, seconds: float) -> None:
        self.watch.waits(who, seconds)

    def noticed(self, remark: str) -> None:
        self.watch.noticed(remark)

    def finished(self, result: object) -> None:
        self.watch.finished(result)
        self._keep()

    def _keep(self) -> None:
        self.run.keep()
        self._last = time.monotonic()
