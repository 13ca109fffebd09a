"""The leaderboard of a dataset repository: boards of its releases as HTML, and the Space."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from huggingface_hub import CommitOperationAdd, HfApi
from pydantic import ValidationError

from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.text import percent, plain, rounded, rounded_interval
from echo_hf.config.checks import AnsweredBy
from echo_hf.errors import EchoError, HubError
from echo_hf.hub.publish import check_repository
from echo_hf.hub.remote import MAIN, Remote, hub_errors
from echo_hf.hub.run_tables import STRENGTH, Anchor, models_in
from echo_hf.hub.scored import NO_RESULTS, Figure, decay, orders, unrated
from echo_hf.hub.scored import ScoredRelease as ScoredRelease  # where Spaces look for them
from echo_hf.hub.scored import read_scored as read_scored
from echo_hf.metrics.names import BETTER
from echo_hf.scores import tiers
from echo_hf.scores.board import METRIC, BoardRow, ranked
from echo_hf.scores.votes import Protocol

if TYPE_CHECKING:
    from jinja2 import Template

NO_RATINGS = "the release holds no ratings, from which tiers would be computed"
NO_INTERVALS = "without intervals nothing says how far others may differ: no tiers"
LONGEST = 60


def splits_of(release: ScoredRelease) -> list[str]:
    held = {split for split, samples in release.samples.items() if samples}
    return sorted(held | {str(each["split"]) for each in release.figures})


def shown(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None = "corrected",
    beside: str | None = None,
    problem: str = "",
) -> str:
    """The page as HTML: what went wrong, the board of a tag, and who changed places since another.

    Below stands every tag.
    """
    parts: list[str | dict[str, Any]] = [problem] if problem else []
    by_tag = {each.tag: each for each in releases}
    release, other = by_tag.get(tag or ""), by_tag.get(beside or "")
    if release is None:
        parts.append("no such release" if releases else "no release to show")
    elif release.problem not in (None, NO_RESULTS):
        parts.append(str(release.problem))
    elif not split or protocol not in get_args(Protocol):
        parts.append("choose a split and a protocol")
    else:
        arithmetic = cast(Protocol, protocol)
        parts.append(published_board(releases, release, split, arithmetic))
        if other and beside != tag:
            moved, said = orders(release, other, split, arithmetic)
            parts.append({"versus": (release.tag, other.tag), "moved": moved, "said": said})
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


def published_board(
    releases: Sequence[ScoredRelease], release: ScoredRelease, split: str, protocol: Protocol
) -> dict[str, Any]:
    """The figures of one split, those with the best win rates first, and who decided."""
    rows = release.rows(split, protocol)
    figures = rows.pop(METRIC, [])
    strengths = {each["system"]: each for each in rows.pop(STRENGTH, [])}
    definition = figures[0]["definition"] if figures else {}
    groups, note, ratings = (), "", release.ratings_of(split)
    if ratings is None:
        note = NO_RATINGS if figures else ""
    elif figures:
        try:
            groups = tiers(ratings, protocol=protocol).tiers
        except EchoError as error:
            note = str(error)
    lines = ranked(map(_line, figures), groups)
    if lines and not any(line.interval for line in lines):
        note = NO_INTERVALS
    models, judges = models_in(definition, "judges"), []
    for name in _names(definition.get("judges")):
        place = models.get(name, AnsweredBy()).in_place_of
        instead = f" (in place of {plain(place, LONGEST)})" if place else ""
        judges.append(f"{plain(name, LONGEST)}{instead}")
    samples = "" if definition.get("samples") is None else f"; {definition['samples']} samples"
    target, said = plain(release.target, LONGEST), ", ".join(judges) or "nobody"
    about = f"posts about {target}; protocol {protocol}; judged by {said}{samples}"
    failed = definition.get("failed_audit")
    return {
        "release": release,
        "split": split,
        "lines": lines,
        "note": note,
        "flags": {name: _names(some) for name, some in failed.items()}
        if isinstance(failed, dict)
        else {},
        "about": release.problem or about,
        "unrated": unrated(releases, release, split),
        "decay": decay(releases, release),
        "metrics": {
            metric: sorted(map(_line, some), key=lambda line: line.system)
            for metric, some in sorted(rows.items())
        },
        "strengths": [
            (line, _origin(strengths[line.system], release.tag))
            for line in ranked(map(_line, strengths.values()), ())
        ],
    }


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


def _origin(strength: Figure, tag: str) -> str:
    """What a strength beside anchors rests on."""
    told = strength["definition"].get("anchor")
    try:
        return Anchor.model_validate(told).said if told else f"joined in {tag}"
    except ValidationError:
        return "of an origin that cannot be read"


def _names(value: Any) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else []


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
