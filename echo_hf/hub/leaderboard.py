"""The leaderboard of a dataset repository: what its tags say together, as HTML, and the Space."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub import CommitOperationAdd, HfApi
from pydantic import ValidationError

from echo_hf._infra.bootstrap import LEVEL, Interval
from echo_hf._infra.text import percent, plain, rounded, rounded_interval
from echo_hf.config.checks import AnsweredBy
from echo_hf.errors import EchoError, HubError
from echo_hf.hub.facts import BENCHMARK_CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.publish import check_ours, check_repository
from echo_hf.hub.remote import MAIN, Remote, hub_errors
from echo_hf.hub.run_tables import STRENGTH, Anchor, definition_of, models_in
from echo_hf.metrics import BETTER
from echo_hf.scores import samples_needed, tiers
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC, BoardRow, rank_rows

if TYPE_CHECKING:
    from jinja2 import Template

NO_RESULTS = "this release holds no results: score a run, build it again and publish it"
SEEN = ["id", "sample_digest", "post_urls"]
Figure = Mapping[str, Any]
Seen = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class ScoredRelease:
    """A tag: whose benchmark it is, its figures, its samples by split; of all samples the post."""

    tag: str
    commit: str
    target: str | None = None
    figures: tuple[Figure, ...] = ()
    ratings: pa.Table | None = field(default=None, compare=False)
    samples: Mapping[str, Seen] = field(default_factory=dict)
    problem: str | None = None
    benchmark: str | None = None
    posts: Mapping[str, str | None] = field(default_factory=dict, compare=False)

    def rows(self, split: str, protocol: str) -> dict[str, list[Figure]]:
        found: dict[str, list[Figure]] = {}
        for each in self.figures:
            if (each["split"], each["protocol"]) == (split, protocol):
                found.setdefault(str(each["metric"]), []).append(each)
        return found

    @cached_property
    def rated(self) -> frozenset[tuple[str, str]]:
        """Each split with the systems that have a win rate on it."""
        return frozenset(
            (str(each["split"]), str(each["system"]))
            for each in self.figures
            if each["metric"] == METRIC and each["value"] is not None
        )

    def ratings_of(self, split: str, judge: str | None = None) -> pa.Table | None:
        """The ratings of a split's samples as they are now, of one judge or of all."""
        if self.ratings is None:
            return None
        names = ("sample_id", "sample_digest", "judge")
        columns = zip(*(self.ratings[name].to_pylist() for name in names), strict=True)
        seen = self.samples.get(split, frozenset())
        wanted = [(name, digest) in seen and judge in (None, by) for name, digest, by in columns]
        return self.ratings.filter(pa.array(wanted, pa.bool_()))


def read_scored(
    repo_id: str, *, known: Sequence[ScoredRelease] = (), api: HfApi | None = None
) -> tuple[ScoredRelease, ...]:
    """The releases of a repository's tags, the last first; of known ones nothing is read again."""
    remote = Remote(api or HfApi(), repo_id)
    held = {(each.tag, each.commit): each for each in known}
    tags = sorted(remote.existing().tags.items(), key=lambda one: _order(one[0]), reverse=True)
    return tuple(held.get(tagged) or _read(remote, *tagged) for tagged in tags)


def _order(tag: str) -> list[str | int]:
    """Puts NAME.10 after NAME.9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", tag)]


def _read(remote: Remote, tag: str, commit: str) -> ScoredRelease:
    def table(config: str) -> pa.Table:
        found = load_benchmark(remote.repo_id, config, revision=commit, api=remote.api)
        return found.with_format("arrow")[:]

    try:
        manifest = load_manifest(remote.repo_id, revision=commit, api=remote.api)
        configs = manifest.configs
        samples: dict[str, Seen] = dict.fromkeys(BENCHMARK_CONFIGS, frozenset())
        posts: dict[str, str | None] = {}
        for name in filter(configs.__contains__, SAMPLE_CONFIGS):
            # Three columns of its files, of which no other bytes are fetched.
            read = (remote.columns(commit, file.path, SEEN) for file in configs[name].files)
            rows = [row for some in read for row in some.to_pylist()]
            posts |= {row.get("id"): next(iter(row.get("post_urls") or ()), None) for row in rows}
            if name in samples:
                samples[name] = frozenset((row.get("id"), row.get("sample_digest")) for row in rows)
        has_results = "results" in configs
        figures = table("results").to_pylist() if has_results else []
        return ScoredRelease(
            tag,
            commit,
            manifest.target.name,
            figures=tuple({**row, "definition": definition_of(row)} for row in figures),
            ratings=table("ratings") if has_results and "ratings" in configs else None,
            samples=samples,
            problem=None if has_results else NO_RESULTS,
            benchmark=manifest.name,
            posts=posts,
        )
    except EchoError as error:
        return ScoredRelease(tag, commit, problem=str(error))


def _changed_models(
    a: ScoredRelease, b: ScoredRelease, split: str, protocol: str, kind: str
) -> set[str]:
    """Names that another model answers to, or the same in another state."""
    boards = [release.rows(split, protocol).get(METRIC) for release in (a, b)]
    here, there = (models_in(board[0]["definition"] if board else {}, kind) for board in boards)
    return {
        name
        for name in here.keys() & there.keys()
        if (here[name].model, here[name].status) != (there[name].model, there[name].status)
    }


def unrated(releases: Sequence[ScoredRelease], release: ScoredRelease, split: str) -> list[str]:
    """Systems that another tag has rated on this split, and this one has not."""
    held = {str(one["system"]) for one in release.figures if one["split"] == split}
    rated = {system for one in releases for on, system in one.rated if on == split}
    return sorted(rated - held)


class Decay(NamedTuple):
    """How many of a tag's benchmark samples are of posts that the newest tag no longer names.

    Those were found gone and forgotten, or are read otherwise: no release names what was
    forgotten, so that this is the most there are.
    """

    newest: str
    samples: int
    gone: int

    @property
    def share(self) -> float | None:
        return self.gone / self.samples if self.samples else None


def decay(releases: Sequence[ScoredRelease], release: ScoredRelease) -> Decay | None:
    """Null for the newest tag of a benchmark, and for a release that could not be read."""
    newest = next((one for one in releases if one.benchmark == release.benchmark), release)
    if newest is release or release.benchmark is None:
        return None
    ids = {name for seen in release.samples.values() for name, _ in seen}
    there = {post for post in newest.posts.values() if post}
    lost = [name for name in ids - newest.posts.keys() if release.posts.get(name) not in there]
    return Decay(newest.tag, len(ids), len(lost))


class Lead(NamedTuple):
    """By how much the win rate of one system is above that of another."""

    value: float
    interval: Interval | None

    @property
    def is_sure(self) -> bool:
        return self.interval is not None and self.interval[0] * self.interval[1] > 0


class Reordered(NamedTuple):
    """Two systems, and the leads of the first on two tags: it is ahead on the first one alone."""

    systems: tuple[str, str]
    leads: tuple[Lead, Lead]

    @property
    def is_sure(self) -> bool:
        return all(lead.is_sure for lead in self.leads)


FROM_RATINGS = (
    "computed from the ratings of the systems ({systems}) and judges ({judges}) that both tags "
    "have; intervals of a lead are paired by sample, at 95 % over all {pairs} pairs together"
)
NOT_COMPARED = "orders not compared: {}"
NOT_BOTH = NOT_COMPARED.format("both tags need ratings")
NOTHING_SHARED = NOT_COMPARED.format("no two systems, or no judge, are in both tags")


def orders(
    a: ScoredRelease, b: ScoredRelease, split: str, protocol: ProtocolName
) -> tuple[list[Reordered], str]:
    """Which two systems have changed places from one tag to the other, and how that was found.

    A change is sure where the lead is sure on either tag, each by its own samples.
    """
    tables = [one.ratings_of(split) for one in (a, b)]
    usable = [
        table.filter((pc.field("rubric") == RUBRIC) & pc.field("rating").is_valid())
        for table in tables
        if table is not None
    ]
    if len(usable) < 2:
        return [], NOT_BOTH
    both: dict[str, list[str]] = {}
    for kind in ("system", "judge"):
        held = [set(table[kind].to_pylist()) for table in usable]
        other = _changed_models(a, b, split, protocol, f"{kind}s")
        both[kind] = sorted((held[0] & held[1]) - other)
    if len(both["system"]) < 2 or not both["judge"]:
        return [], NOTHING_SHARED
    for kind, names in both.items():
        usable = [table.filter(pc.field(kind).isin(names)) for table in usable]
    try:
        before, now = (_leads(table, protocol) for table in usable)
    except EchoError as error:
        return [], NOT_COMPARED.format(error)
    found = [
        Reordered(pair, (before[pair], now[pair]))
        for pair in sorted(before.keys() & now.keys())
        if before[pair].value > 0 > now[pair].value
    ]
    said = FROM_RATINGS.format(
        systems=", ".join(both["system"]),
        judges=", ".join(both["judge"]),
        pairs=math.comb(len(both["system"]), 2),
    )
    said = said if found else f"no two systems have changed places; {said}"
    return sorted(found, key=lambda one: not one.is_sure), said


def _leads(ratings: pa.Table, protocol: ProtocolName) -> dict[tuple[str, str], Lead]:
    """The lead of each system over each other one."""
    from scipy.special import stdtrit  # it takes longer to import than all of this

    found = samples_needed(ratings, protocol=protocol)
    samples, pairs = found.definition["samples"], list(combinations(found.pairs, 2))
    leads = {}
    for one, other in pairs:
        apart = found.pairs[one][other]
        if apart.difference is None:
            continue
        lead, turned = Lead(apart.difference, None), Lead(-apart.difference, None)
        if apart.deviation is not None:
            tail = (1 - LEVEL) / 2 / len(pairs)
            half = -stdtrit(samples - 1, tail) * apart.deviation / math.sqrt(samples)
            low, high = apart.difference - half, apart.difference + half
            lead, turned = Lead(lead.value, (low, high)), Lead(turned.value, (-high, -low))
        leads[one, other], leads[other, one] = lead, turned
    return leads


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
    elif not split or protocol not in get_args(ProtocolName):
        parts.append("choose a split and a protocol")
    else:
        arithmetic = cast(ProtocolName, protocol)
        parts.append(published_board(releases, release, split, arithmetic))
        if other and beside != tag:
            moved, said = orders(release, other, split, arithmetic)
            parts.append({"versus": (release.tag, other.tag), "moved": moved, "said": said})
    if releases:
        parts.append({"tags": [_summary(releases, each) for each in releases]})
    return _template().render(parts=parts, better=BETTER)


def _summary(releases: Sequence[ScoredRelease], release: ScoredRelease) -> dict[str, Any]:
    """A tag in the list of all."""
    return {
        "release": release,
        "samples": sum(map(len, release.samples.values())),
        "rated": len({system for _, system in release.rated}),
        "decay": decay(releases, release),
    }


def published_board(
    releases: Sequence[ScoredRelease], release: ScoredRelease, split: str, protocol: ProtocolName
) -> dict[str, Any]:
    """The figures of one split, those with the best win rates first, and who decided."""
    rows = release.rows(split, protocol)
    figures = rows.pop(METRIC, [])
    strengths = {each["system"]: each for each in rows.pop(STRENGTH, [])}
    definition = figures[0]["definition"] if figures else {}
    groups: tuple[tuple[str, ...], ...] = ()
    note, ratings = "", release.ratings_of(split)
    if ratings is None:
        note = NO_RATINGS if figures else ""
    elif figures:
        try:
            groups = tiers(ratings, protocol=protocol).tiers
        except EchoError as error:
            note = str(error)
    lines = rank_rows(map(_line, figures), groups)
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
            for line in rank_rows(map(_line, strengths.values()), ())
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
    check_ours({path.name for path in folder.iterdir()}, repr(str(folder)), NAMED_IN)
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
    check_ours(held, f"the Space {space!r}", NAMED_IN)
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
