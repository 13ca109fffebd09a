"""The leaderboard of a dataset repository: boards of its releases as HTML, and the Space."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
from huggingface_hub import CommitOperationAdd, HfApi
from pydantic import ValidationError

from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.text import percent, plain, rounded, rounded_interval
from echo_hf.config.checks import AnsweredBy
from echo_hf.errors import EchoError, HubError
from echo_hf.hub.publish import check_repository
from echo_hf.hub.remote import MAIN, Remote, hub_errors
from echo_hf.hub.run_tables import STRENGTH, Anchor, models_in
from echo_hf.hub.scored import (
    COMPARABLE,
    NO_RESULTS,
    Figure,
    decay,
    orders,
    unrated,
    verdict,
)
from echo_hf.hub.scored import ScoredRelease as ScoredRelease  # where Spaces look for them
from echo_hf.hub.scored import read_scored as read_scored
from echo_hf.metrics.names import BETTER
from echo_hf.scores import tiers, win_rate
from echo_hf.scores.board import METRIC, BoardRow, board_of, ranked
from echo_hf.scores.votes import Protocol

if TYPE_CHECKING:
    from jinja2 import Template

NO_RATINGS = "the release holds no ratings, from which tiers would be computed"
NO_INTERVALS = "without intervals nothing says how far others may differ: no tiers"
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Board:
    """The win rates of one split, the best first; who decided, and on how many samples."""

    lines: tuple[BoardRow, ...]
    judges: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]  # what judges failed their audit on
    samples: int | None
    why: str = ""  # tiers are left out
    models: Mapping[str, AnsweredBy] = field(default_factory=dict)  # of the judges

    @property
    def note(self) -> str:
        """What is left out, and why."""
        known = not self.lines or any(line.interval for line in self.lines)
        return self.why if known else NO_INTERVALS


def splits_of(release: ScoredRelease) -> list[str]:
    held = {split for split, samples in release.samples.items() if samples}
    return sorted(held | {str(each["split"]) for each in release.figures})


def metrics_of(
    release: ScoredRelease, split: str, protocol: str
) -> dict[str, tuple[BoardRow, ...]]:
    return {
        metric: tuple(sorted(map(_line, figures), key=lambda line: line.system))
        for metric, figures in sorted(release.rows(split, protocol).items())
        if metric not in (METRIC, STRENGTH)
    }


def strengths_of(release: ScoredRelease, split: str, protocol: str) -> list[tuple[BoardRow, str]]:
    """Strengths beside anchors, the best first, each with what it rests on; none without."""
    figures = {each["system"]: each for each in release.rows(split, protocol).get(STRENGTH, ())}
    found = []
    for line in ranked(map(_line, figures.values()), ()):
        told = figures[line.system]["definition"].get("anchor")
        try:
            said = Anchor.model_validate(told).said if told else f"joined in {release.tag}"
        except ValidationError:
            said = "of an origin that cannot be read"
        found.append((line, said))
    return found


def published_board(release: ScoredRelease, split: str, protocol: Protocol) -> Board:
    figures = release.rows(split, protocol).get(METRIC, [])
    definition = figures[0]["definition"] if figures else {}
    groups, note = _tiers(release.ratings_of(split), protocol) if figures else ((), "")
    failed = definition.get("failed_audit")
    flags = failed if isinstance(failed, Mapping) else {}
    return Board(
        ranked(map(_line, figures), groups),
        _names(definition.get("judges")),
        {str(judge): _names(some) for judge, some in flags.items()},
        definition.get("samples"),
        note,
        models_in(definition, "judges"),
    )


def judge_board(release: ScoredRelease, split: str, protocol: Protocol, judge: str) -> Board:
    """The win rates that one judge alone gives, computed from the released ratings."""
    ratings = release.ratings_of(split, judge)
    if ratings is None or not ratings.num_rows:
        return Board((), (judge,), {}, None, f"the release holds no ratings by {judge!r} here")
    try:
        rates = win_rate(ratings, protocol=protocol)
    except EchoError as error:
        return Board((), (judge,), {}, None, str(error))
    groups, note = _tiers(ratings, protocol)
    everyone = published_board(release, split, protocol)
    flags = {name: flags for name, flags in everyone.flags.items() if name == judge}
    figures = release.rows(split, protocol).get(METRIC, [])
    systems = models_in(figures[0]["definition"], "systems") if figures else {}
    lines, samples = board_of(rates, groups, systems), rates.definition["samples"]
    return Board(lines, (judge,), flags, samples, note, everyone.models)


def _tiers(ratings: pa.Table | None, protocol: Protocol) -> tuple[Groups, str]:
    if ratings is None:
        return (), NO_RATINGS
    try:
        return tiers(ratings, protocol=protocol).tiers, ""
    except EchoError as error:
        return (), str(error)


def _line(figure: Figure) -> BoardRow:
    low, high = figure["low"], figure["high"]
    missing = figure["definition"].get("missing") if figure["value"] is None else None
    system = str(figure["system"])
    known = models_in(figure["definition"], "systems").get(system, AnsweredBy())
    return BoardRow(
        system,
        figure["value"],
        None if low is None or high is None else (low, high),
        figure["coverage"],
        figure["n"],
        None if missing is None else str(missing),
        in_place_of=known.in_place_of,
    )


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


EVERY = "all judges"
LONGEST = 60


def shown(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None = "corrected",
    judge: str | None = None,
    beside: str | None = None,
    problem: str = "",
) -> str:
    """The page as HTML: what went wrong, the board of a tag, and that of another beside it."""
    parts: list[str | dict[str, Any]] = [problem] if problem else []
    by_tag = {each.tag: each for each in releases}
    release, other = by_tag.get(tag or ""), by_tag.get(beside or "")
    alone = None if judge in (None, EVERY) else judge
    if release is None:
        parts.append("no such release" if releases else "no release to show")
    elif release.problem not in (None, NO_RESULTS):
        parts.append(str(release.problem))
    elif not split or protocol not in get_args(Protocol):
        parts.append("choose a split and a protocol")
    else:
        arithmetic: Protocol = "published" if protocol == "published" else "corrected"
        parts.append(_part(releases, release, split, arithmetic, alone))
        if beside and beside != tag:
            why = release.problem or (other.problem if other else "no such release")
            if other is None or why:
                parts.append(f"nothing to compare with: {why}")
            else:
                said = verdict(release, other, split, arithmetic)
                comparable = said.startswith(COMPARABLE)
                second = _part(releases, other, split, arithmetic, alone) if comparable else {}
                moved = orders(release, other, split, arithmetic)
                two = {"versus": (release.tag, other.tag), "said": said, "orders": moved}
                parts.append({**second, **two})
    if releases:
        parts.append({"tags": [_summary(releases, each) for each in releases]})
    return _template().render(parts=parts, better=BETTER)


def _summary(releases: Sequence[ScoredRelease], release: ScoredRelease) -> dict[str, Any]:
    """A tag in the list of all."""
    split_of = {split for each in releases for split, _ in each.rated}
    return {
        "release": release,
        "samples": sum(map(len, release.samples.values())),
        "rated": len({system for _, system in release.rated}),
        "unrated": len({name for split in split_of for name in unrated(releases, release, split)}),
        "decay": decay(releases, release),
    }


def _part(
    releases: Sequence[ScoredRelease],
    release: ScoredRelease,
    split: str,
    protocol: Protocol,
    judge: str | None,
) -> dict[str, Any]:
    if judge:
        board = judge_board(release, split, protocol, judge)
    else:
        board = published_board(release, split, protocol)
    judges = [plain(each, LONGEST) for each in board.judges] or ["nobody"]
    for at, each in enumerate(board.judges):
        if place := board.models.get(each, AnsweredBy()).in_place_of:
            judges[at] += f" (in place of {plain(place, LONGEST)})"
    samples = "" if board.samples is None else f"; {board.samples} samples"
    source = "; computed from the released ratings" if judge else ""
    target = plain(release.target, LONGEST)
    said = f"judged by {', '.join(judges)}{samples}{source}"
    about = f"posts about {target}; protocol {protocol}; {said}"
    return {
        "release": release,
        "split": split,
        "board": board,
        "about": release.problem or about,
        "unrated": unrated(releases, release, split),
        "decay": decay(releases, release),
        "metrics": metrics_of(release, split, protocol),
        "strengths": strengths_of(release, split, protocol),
    }


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def finite(value: float | None) -> bool:
        return value is not None and math.isfinite(value)

    def interval(ends: Interval | None) -> str:
        return rounded_interval(ends if ends and all(map(finite, ends)) else None)

    def across(value: float) -> str:
        return f"{200 * min(max(value, 0.0), 1.0) if finite(value) else 0.0:.1f}"

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "plain": lambda text, longest=LONGEST: plain(text, longest),
        "finite": finite,
        "number": lambda value: rounded(value if finite(value) else None),
        "signed": lambda value: f"{value:+.3f}",
        "interval": interval,
        "share": lambda value: percent(value if finite(value) else None),
        "across": across,
    }
    return made.get_template("leaderboard.html.jinja")


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
    if folder.exists() and not folder.is_dir():
        raise HubError(f"{str(folder)!r} is a file: expected a folder that is empty, or new")
    folder.mkdir(parents=True, exist_ok=True)
    _check_ours({path.name for path in folder.iterdir()}, repr(str(folder)))
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def create_space(
    repo_id: str, space: str, *, private: bool = False, api: HfApi | None = None
) -> str:
    api = api or HfApi()
    files = space_files(repo_id)
    check_repository(space)
    Remote(api, space).check_token()
    Remote(api, repo_id).existing()
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
    operations = [CommitOperationAdd(name, data) for name, data in files.items()]
    with hub_errors(f"write to the Space {space!r}"):
        api.create_commit(
            space,
            operations,
            commit_message="Show the leaderboard",
            repo_type=KIND,
            revision=MAIN,
            parent_commit=str(info.sha),
        )
    return f"{api.endpoint}/spaces/{space}"


def _check_ours(held: set[str], where: str) -> None:
    """Refuses to write over what is no leaderboard; what the Hub puts into a new one is no loss."""
    foreign = sorted(held - {".gitattributes", "README.md"})
    if foreign and NAMED_IN not in held:
        raise HubError(
            f"{where} holds {foreign[0]!r} and no leaderboard: choose another name, or empty it"
        )
