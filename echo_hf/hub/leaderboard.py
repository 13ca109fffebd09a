"""The leaderboard of a dataset repository: scored releases, boards as HTML, and the Space."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import CommitOperationAdd, HfApi, HfFileSystem

from echo_hf._infra.text import BETTER, plain
from echo_hf.errors import EchoError, HubError
from echo_hf.hub.diff import Comparability, SharedSamples
from echo_hf.hub.facts import BENCHMARK_CONFIGS
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.publish import check_repository
from echo_hf.hub.remote import MAIN, Remote, hub_errors
from echo_hf.scores import tiers, win_rate
from echo_hf.scores.votes import Protocol

NO_RESULTS = "this release holds no results: score a run, build it again and publish it"
SEEN = ["id", "sample_digest"]
Figure = Mapping[str, Any]
Seen = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class ScoredRelease:
    tag: str
    commit: str
    target: str | None = None
    figures: tuple[Figure, ...] = ()
    ratings: pa.Table | None = field(default=None, compare=False)
    samples: Mapping[str, Seen] = field(default_factory=dict)
    problem: str | None = None

    def figures_of(self, split: str, protocol: str) -> list[Figure]:
        wanted = (split, protocol)
        return [each for each in self.figures if (each["split"], each["protocol"]) == wanted]


def read_scored(
    repo_id: str, *, known: Sequence[ScoredRelease] = (), api: HfApi | None = None
) -> tuple[ScoredRelease, ...]:
    remote = Remote(api or HfApi(), repo_id)
    state = remote.state()
    if state is None:
        raise HubError(
            f"there is no dataset {repo_id!r}, or this token may not see it: check its name"
        )
    held = {(each.tag, each.commit): each for each in known}
    tags = sorted(state.tags.items(), reverse=True)
    return tuple(held.get(tagged) or _read(remote, *tagged) for tagged in tags)


def _read(remote: Remote, tag: str, commit: str) -> ScoredRelease:
    try:
        manifest = load_manifest(remote.repo_id, revision=commit, api=remote.api)
        target = manifest.target.name
        if "results" not in manifest.configs:
            return ScoredRelease(tag, commit, target, problem=NO_RESULTS)
        figures = _table(remote, "results", commit).to_pylist()
        held = "ratings" in manifest.configs
        return ScoredRelease(
            tag,
            commit,
            target,
            tuple({**row, "definition": _definition(row["definition"])} for row in figures),
            _table(remote, "ratings", commit) if held else None,
            _samples(remote, manifest, commit),
        )
    except EchoError as error:
        return ScoredRelease(tag, commit, problem=str(error))


def _table(remote: Remote, config: str, commit: str) -> pa.Table:
    found = load_benchmark(remote.repo_id, config, revision=commit, api=remote.api)
    table: pa.Table = found.with_format("arrow")[:]
    return table


def _definition(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _samples(remote: Remote, manifest: Manifest, commit: str) -> dict[str, Seen]:
    """Two columns of each split's files, of which no other bytes are fetched."""
    files = HfFileSystem(endpoint=remote.api.endpoint, token=remote.api.token)
    found: dict[str, Seen] = {}
    for split in BENCHMARK_CONFIGS:
        rows = list[Mapping[str, Any]]()
        for entry in manifest.configs[split].files if split in manifest.configs else ():
            with (
                hub_errors(f"read {entry.path!r} of {remote.repo_id!r}"),
                files.open(f"datasets/{remote.repo_id}@{commit}/{entry.path}") as file,
            ):
                rows += pq.read_table(file, columns=SEEN).to_pylist()
        found[split] = frozenset((row["id"], row["sample_digest"]) for row in rows)
    return found


METRIC = "win_rate"
NO_RATINGS = "the release holds no ratings, from which tiers would be computed"
NO_INTERVALS = "without intervals nothing says how far others may differ: no tiers"
OTHERS = "not comparable: a win rate depends on who takes part, and systems or judges differ"


@dataclass(frozen=True)
class BoardRow:
    """One system on a board."""

    system: str
    value: float | None
    interval: tuple[float, float] | None
    coverage: float | None
    n: int | None
    tier: int | None = None
    missing: str | None = None


@dataclass(frozen=True)
class Board:
    """The win rates of one split.

    Attributes:
        lines: The systems, the best first; those without a figure last.
        judges: Who decided.
        flags: For each judge that failed its audit, what it failed on.
        samples: How many samples were rated; null where that was not said.
        note: What is left out and why; empty where nothing is.
    """

    lines: tuple[BoardRow, ...]
    judges: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    samples: int | None
    note: str = ""


def splits_of(release: ScoredRelease) -> list[str]:
    return sorted({str(each["split"]) for each in release.figures})


def metrics_of(
    release: ScoredRelease, split: str, protocol: str
) -> dict[str, tuple[BoardRow, ...]]:
    found: dict[str, list[BoardRow]] = {}
    for figure in release.figures_of(split, protocol):
        if figure["metric"] != METRIC:
            found.setdefault(str(figure["metric"]), []).append(_line(figure))
    return {
        metric: tuple(sorted(lines, key=lambda line: line.system))
        for metric, lines in sorted(found.items())
    }


def published_board(release: ScoredRelease, split: str, protocol: Protocol) -> Board:
    figures = [each for each in release.figures_of(split, protocol) if each["metric"] == METRIC]
    definition = figures[0]["definition"] if figures else {}
    groups, note = _tiers(_ratings(release, split), protocol) if figures else ((), "")
    lines = [_line(each, _tier_of(str(each["system"]), groups)) for each in figures]
    if lines and not any(line.interval for line in lines):
        # One tier for all would read as no difference.
        lines, note = [_line(each) for each in figures], NO_INTERVALS
    return Board(
        tuple(sorted(lines, key=_place)),
        _names(definition.get("judges")),
        _flags(definition),
        definition.get("samples"),
        note,
    )


def judge_board(release: ScoredRelease, split: str, protocol: Protocol, judge: str) -> Board:
    """The win rates that one judge alone gives, computed from the released ratings."""
    everyone = published_board(release, split, protocol)
    ratings = _ratings(release, split, judge)
    if ratings is None or not ratings.num_rows:
        return Board((), (judge,), {}, None, f"the release holds no ratings by {judge!r} here")
    try:
        rates = win_rate(ratings, protocol=protocol)
    except EchoError as error:
        return Board((), (judge,), {}, None, str(error))
    groups, note = _tiers(ratings, protocol)
    if not any(rates.interval.values()):
        groups, note = (), NO_INTERVALS
    lines = tuple(
        BoardRow(
            system,
            value,
            rates.interval[system],
            rates.coverage[system],
            sum(rates.pairs[system].values()),
            _tier_of(system, groups),
        )
        for system, value in rates.win_rate.items()
    )
    flags = {name: flags for name, flags in everyone.flags.items() if name == judge}
    return Board(lines, (judge,), flags, rates.definition["samples"], note)


def verdict(a: ScoredRelease, b: ScoredRelease, split: str, protocol: Protocol) -> str:
    """Whether the boards of two releases may be read beside each other."""
    one, other = a.samples.get(split, frozenset()), b.samples.get(split, frozenset())
    shared = SharedSamples(len(one & other), len(one - other), len(other - one))
    said = Comparability(True, {split: shared}).verdict(split)
    if said.startswith("comparable: ") and _setting(a, split, protocol) != _setting(
        b, split, protocol
    ):
        return OTHERS
    return said


def may_stand_together(said: str) -> bool:
    """Whether a verdict lets two boards stand beside each other."""
    return said.startswith("comparable: ")


def _setting(release: ScoredRelease, split: str, protocol: Protocol) -> list[Any]:
    """Systems and definition of a board's win rates, but for what judges failed on."""
    rates = [each for each in release.figures_of(split, protocol) if each["metric"] == METRIC]
    return [
        {**each["definition"], "failed_audit": None, "system": each["system"]}
        for each in sorted(rates, key=lambda each: str(each["system"]))
    ]


def _ratings(release: ScoredRelease, split: str, judge: str | None = None) -> pa.Table | None:
    """The ratings of a split's samples as they are now, of one judge or of all."""
    if release.ratings is None:
        return None
    names = ("sample_id", "sample_digest", "judge")
    columns = zip(*(release.ratings[name].to_pylist() for name in names), strict=True)
    seen = release.samples.get(split, frozenset())
    wanted = [(name, digest) in seen and judge in (None, by) for name, digest, by in columns]
    return release.ratings.filter(pa.array(wanted, pa.bool_()))


def _tiers(ratings: pa.Table | None, protocol: Protocol) -> tuple[tuple[tuple[str, ...], ...], str]:
    if ratings is None:
        return (), NO_RATINGS
    try:
        return tiers(ratings, protocol=protocol).tiers, ""
    except EchoError as error:
        return (), str(error)


def _tier_of(system: str, groups: tuple[tuple[str, ...], ...]) -> int | None:
    return next((at for at, names in enumerate(groups, 1) if system in names), None)


def _line(figure: Figure, tier: int | None = None) -> BoardRow:
    low, high = figure["low"], figure["high"]
    missing = figure["definition"].get("missing") if figure["value"] is None else None
    return BoardRow(
        str(figure["system"]),
        figure["value"],
        None if low is None or high is None else (low, high),
        figure["coverage"],
        figure["n"],
        tier,
        None if missing is None else str(missing),
    )


def _place(line: BoardRow) -> tuple[bool, float, str]:
    return line.value is None, -(line.value or 0.0), line.system


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _flags(definition: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    failed = definition.get("failed_audit")
    if not isinstance(failed, Mapping):
        return {}
    return {str(judge): _names(flags) for judge, flags in failed.items()}


NOTHING, EVERY = "-", "all judges"
LONGEST, LONGEST_NOTE = 60, 400
STYLE = """<style>
.echo-board .wide{overflow-x:auto}
.echo-board table{border-collapse:collapse;width:100%;min-width:42rem;margin:.5rem 0 1rem}
.echo-board :is(table,thead,tbody,tr){border:0!important}
.echo-board table :is(th,td){white-space:nowrap;text-align:right!important;
padding:.4rem .7rem!important;border:0!important;border-bottom:1px solid #8884!important;
font-variant-numeric:tabular-nums}
.echo-board table :is(th,td):first-child{text-align:left!important;min-width:9rem;
white-space:normal;overflow-wrap:anywhere}
.echo-board table th{font-weight:600;opacity:.75}
.echo-board svg{width:12rem;height:1rem;display:block;margin-left:auto}
.echo-board .quiet{opacity:.75}.echo-board .flag{color:#d4622a;font-weight:600}
</style>"""


def shown(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None = "corrected",
    judge: str | None = None,
    beside: str | None = None,
    problem: str = "",
) -> str:
    """The page for what a visitor chose."""
    start = [_note(problem)] if problem else []
    return _page([*start, *_chosen(releases, tag, split, protocol, judge, beside)])


def _page(parts: Sequence[str]) -> str:
    return f'{STYLE}<div class="echo-board">{"".join(parts)}</div>'


def _chosen(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None,
    judge: str | None,
    beside: str | None,
) -> list[str]:
    by_tag = {each.tag: each for each in releases}
    release = by_tag.get(tag or "")
    if release is None:
        return [_note("no such release" if releases else "no release to show")]
    if release.problem:
        return [_note(release.problem)]
    if not split or protocol not in get_args(Protocol):
        return [_note("choose a split and a protocol")]
    arithmetic: Protocol = "published" if protocol == "published" else "corrected"
    alone = None if judge in (None, EVERY) else judge
    parts = list(_release(release, split, arithmetic, alone))
    if beside and beside != tag:
        parts += _compared(release, by_tag.get(beside), split, arithmetic, alone)
    return parts


def _release(
    release: ScoredRelease, split: str, protocol: Protocol, judge: str | None
) -> Iterator[str]:
    yield f"<h3>{_text(release.tag)}: {_text(split)}</h3>"
    board = (
        judge_board(release, split, protocol, judge)
        if judge
        else published_board(release, split, protocol)
    )
    yield _note(_about(release, board, protocol, computed=bool(judge)))
    for name, flags in board.flags.items():
        yield f'<p class="flag">{_text(name)} failed its audit: {_text(", ".join(flags))}</p>'
    yield _win_rates(board) if board.lines else _note("no win rates here")
    if board.note:
        yield _note(board.note)
    yield from _metrics(metrics_of(release, split, protocol))


def _about(release: ScoredRelease, board: Board, protocol: str, *, computed: bool) -> str:
    judges = ", ".join(plain(each, LONGEST) for each in board.judges) or "nobody"
    samples = "" if board.samples is None else f"; {board.samples} samples"
    source = "; computed from the released ratings" if computed else ""
    target = plain(release.target, LONGEST)
    return f"posts about {target}; protocol {protocol}; judged by {judges}{samples}{source}"


def _compared(
    a: ScoredRelease,
    b: ScoredRelease | None,
    split: str,
    protocol: Protocol,
    judge: str | None,
) -> list[str]:
    if b is None or b.problem:
        return [_note(f"nothing to compare with: {b.problem if b else 'no such release'}")]
    said = verdict(a, b, split, protocol)
    parts = [f"<h3>{_text(a.tag)} and {_text(b.tag)}</h3>", _note(said)]
    return [*parts, *_release(b, split, protocol, judge)] if may_stand_together(said) else parts


def _win_rates(board: Board) -> str:
    heads = ("system", "win rate", "95 %", "0 to 1, line at 0.5", "tier", "coverage")
    rows = (
        (
            _text(line.system),
            _number(line.value),
            _interval(line),
            _bar(line),
            NOTHING if line.tier is None else str(line.tier),
            _share(line.coverage),
        )
        for line in board.lines
    )
    return _page_table(heads, rows)


def _metrics(metrics: Mapping[str, Sequence[BoardRow]]) -> Iterator[str]:
    if metrics:
        yield "<h4>What people complain about</h4>"
    for metric, lines in metrics.items():
        arrow = BETTER.get(metric, "")
        reasons = {line.missing for line in lines}
        if len(reasons) == 1 and (why := lines[0].missing) is not None:
            yield _note(f"{metric} {arrow}: {why}")
            continue
        heads = (f"{metric} {arrow}", "value", "95 %", "n", "coverage")
        rows = (
            (
                _text(line.system),
                _number(line.value),
                _interval(line),
                NOTHING if line.n is None else str(line.n),
                _share(line.coverage),
            )
            for line in lines
        )
        yield _page_table(heads, rows)


def _page_table(heads: Sequence[str], rows: Any) -> str:
    """A table of cells that are markup already."""
    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _bar(line: BoardRow) -> str:
    """A dot with its interval between 0 and 1."""
    if line.value is None or not math.isfinite(line.value):
        return ""
    low, high = (_across(end) for end in line.interval or (line.value, line.value))
    said = f"{_number(line.value)}, {_interval(line)}"
    return (
        f'<svg viewBox="0 0 200 16" role="img" aria-label="{said}">'
        '<path d="M0 8H200" stroke="#8886"/><path d="M100 0V16" stroke="#888" '
        f'stroke-dasharray="3"/><path d="M{low} 8H{high}" stroke="#0969da" stroke-width="6" '
        f'stroke-opacity=".45"/><circle cx="{_across(line.value)}" cy="8" r="4" fill="#0969da"/>'
        "</svg>"
    )


def _across(value: float) -> str:
    inside = min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
    return f"{200 * inside:.1f}"


def _note(text: str) -> str:
    return f'<p class="quiet">{_text(text, LONGEST_NOTE)}</p>'


def _text(text: str, longest: int = LONGEST) -> str:
    return escape(plain(text, longest))


def _number(value: float | None) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.3f}"


def _interval(line: BoardRow) -> str:
    ends = [_number(end) for end in line.interval or ()]
    return f"{ends[0]} to {ends[1]}" if ends and NOTHING not in ends else NOTHING


def _share(value: float | None) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{100 * value:.0f} %"


SOURCE = Path(__file__).parent / "leaderboard_space"
FILES = ("README.md", "app.py", "requirements.txt")
NAMED_IN = "leaderboard.json"
DATASET = "ORGANISATION/NAME"
KIND = "space"
SDK = "gradio"


def space_files(repo_id: str) -> dict[str, bytes]:
    check_repository(repo_id)
    texts = {name: (SOURCE / name).read_text("utf-8") for name in FILES}
    texts["README.md"] = texts["README.md"].replace(DATASET, repo_id)
    texts[NAMED_IN] = json.dumps({"dataset": repo_id}) + "\n"
    return {name: text.encode() for name, text in texts.items()}


def write_space(repo_id: str, folder: Path) -> Path:
    """Writes the files of a Space into a folder, and asks nobody."""
    files = space_files(repo_id)
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if folder.exists() and not folder.is_dir():
        raise HubError(f"{str(folder)!r} is a file: expected a folder that is empty, or new")
    _check_ours(held, repr(str(folder)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def create_space(
    repo_id: str, space: str, *, private: bool = False, api: HfApi | None = None
) -> str:
    """Makes a Space, or brings it up to date."""
    api = api or HfApi()
    files = space_files(repo_id)
    check_repository(space)
    Remote(api, space).check_token()
    if Remote(api, repo_id).state() is None:
        raise HubError(
            f"there is no dataset {repo_id!r}, or this token may not see it: check --repo-id"
        )
    with hub_errors(f"make the Space {space!r}"):
        api.create_repo(space, repo_type=KIND, space_sdk=SDK, private=private, exist_ok=True)
        info = api.space_info(space)
        held = set(api.list_repo_files(space, repo_type=KIND, revision=info.sha))
    if private and not info.private:
        raise HubError(
            f"the Space {space!r} is public, and --private is for new ones: change it at "
            f"{api.endpoint}/spaces/{space}/settings first"
        )
    _check_ours(held, f"the Space {space!r}")
    _commit(api, space, str(info.sha), files)
    return f"{api.endpoint}/spaces/{space}"


def _check_ours(held: set[str], where: str) -> None:
    """Refuses to write over what is no leaderboard; what the Hub puts into a new one is no loss."""
    foreign = sorted(name for name in held if name not in (".gitattributes", "README.md"))
    if foreign and NAMED_IN not in held:
        raise HubError(
            f"{where} holds {foreign[0]!r} and no leaderboard: choose another name, or empty it"
        )


def _commit(api: HfApi, space: str, parent: str, files: dict[str, bytes]) -> None:
    operations = [CommitOperationAdd(name, data) for name, data in files.items()]
    with hub_errors(f"write to the Space {space!r}"):
        api.create_commit(
            space,
            operations,
            commit_message="Show the leaderboard",
            repo_type=KIND,
            revision=MAIN,
            parent_commit=parent,
        )
