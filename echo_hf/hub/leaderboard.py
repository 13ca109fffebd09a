"""The leaderboard of a dataset repository across its tags, as HTML and as a Space."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub import CommitOperationAdd, HfApi
from pydantic import ValidationError

from echo_hf._infra.bootstrap import LEVEL, Interval
from echo_hf._infra.renamed import make_module_getattr
from echo_hf._infra.text import clean, format_interval, format_rounded, percent
from echo_hf.config.checks import ModelIdentity
from echo_hf.errors import EchoError, HubError
from echo_hf.hub.check_changes import FAILURE_RATE
from echo_hf.hub.facts import BENCHMARK_CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.publish import check_ownership, check_repository
from echo_hf.hub.remote import MAIN_BRANCH, Remote, hub_errors
from echo_hf.hub.ruler import (
    LINKS,
    RatedRelease,
    describe_lead,
    describe_ruler,
    measure_splits,
    rank_systems,
    sort_by_age,
)
from echo_hf.hub.run_tables import (
    CHOICES,
    CHOICES_BY_PEOPLE,
    STRENGTH,
    Anchor,
    parse_definition,
    read_certificate_facts,
    read_models,
)
from echo_hf.hub.submissions import Placement, read_placements
from echo_hf.metrics import registered
from echo_hf.metrics.base import ARROWS
from echo_hf.scores import samples_needed, tiers
from echo_hf.scores.rating_table import RUBRIC, DrawChoice
from echo_hf.scores.reliability import PASS_AT, PER_SUCCESS, SUCCESS, describe_success
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC, BoardRow, rank_rows
from echo_hf.tables import CARRIED_RATINGS

if TYPE_CHECKING:
    from jinja2 import Template

NO_RESULTS = "this release holds no results: score a run, build it again and publish it"
COLUMNS = ["id", "sample_digest", "post_urls"]
RATES = re.compile(rf"{FAILURE_RATE}_(.+@\d+)")  # as plug-ins cannot name a metric
PASSED = re.compile(PASS_AT.format(r"(\d{1,3})"))
AMOUNTS = ("tries", "dollars")  # of a success, as a board shows them
BY_LABELS = ("prediction_powered", "exact")
FigureRow = Mapping[str, Any]
SampleVersions = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class ScoredRelease:
    """A tag's benchmark, figures and samples by split, and each sample's post."""

    tag: str
    commit: str
    target: str | None = None
    figures: tuple[FigureRow, ...] = ()
    ratings: pa.Table | None = field(default=None, compare=False)
    samples: Mapping[str, SampleVersions] = field(default_factory=dict)
    problem: str | None = None
    benchmark: str | None = None
    posts: Mapping[str, str | None] = field(default_factory=dict, compare=False)
    released: datetime.date | None = None
    carried: pa.Table | None = field(default=None, compare=False)
    manifest: str | None = field(default=None, compare=False)  # its sha256
    submitted: tuple[Placement, ...] = field(default=(), compare=False)
    head: str | None = field(default=None, compare=False)  # the commit that was read for these

    def group_figures(self, split: str, protocol: str) -> dict[str, list[FigureRow]]:
        by_metric: dict[str, list[FigureRow]] = {}
        for figure in self.figures:
            if (figure["split"], figure["protocol"]) == (split, protocol):
                by_metric.setdefault(str(figure["metric"]), []).append(figure)
        return by_metric

    @cached_property
    def rated_systems(self) -> frozenset[tuple[str, str]]:
        """Each split with the systems that have a win rate on it."""
        return frozenset(
            (str(figure["split"]), str(figure["system"]))
            for figure in self.figures
            if figure["metric"] == METRIC and figure["value"] is not None
        )

    def select_ratings(self, split: str) -> pa.Table | None:
        """Select the ratings of a split's current samples."""
        if self.ratings is None:
            return None
        columns = (self.ratings[name].to_pylist() for name in ("sample_id", "sample_digest"))
        pairs = self.samples.get(split, frozenset())
        mask = [pair in pairs for pair in zip(*columns, strict=True)]
        return self.ratings.filter(pa.array(mask, pa.bool_()))


def read_scored(
    repo_id: str, *, known: Sequence[ScoredRelease] = (), api: HfApi | None = None
) -> tuple[ScoredRelease, ...]:
    """Read the releases of a repository's tags, newest first; known ones are reused."""
    remote = Remote(api or HfApi(), repo_id)
    releases = {(release.tag, release.commit): release for release in known}
    state = remote.require_state()
    tags = sorted(state.tags.items(), key=lambda pair: _make_sort_key(pair[0]), reverse=True)
    scored = [releases.get(tagged) or _read_release(remote, *tagged) for tagged in tags]
    if all(release.head == state.head for release in scored):
        return tuple(scored)
    submitted: dict[tuple[str, str | None], list[Placement]] = {}
    for placement in read_placements(remote, state.head):
        submitted.setdefault((placement.tag, placement.manifest), []).append(placement)
    return tuple(
        replace(
            release,
            submitted=tuple(submitted.get((release.tag, release.manifest), ())),
            head=state.head,
        )
        for release in scored
    )


def _make_sort_key(tag: str) -> list[str | int]:
    """Return a sort key that puts NAME.10 after NAME.9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", tag)]


def _read_release(remote: Remote, tag: str, commit: str) -> ScoredRelease:
    def load_table(config: str) -> pa.Table:
        dataset = load_benchmark(remote.repo_id, config, revision=commit, api=remote.api)
        return dataset.with_format("arrow")[:]

    try:
        manifest = load_manifest(remote.repo_id, revision=commit, api=remote.api)
        configs = manifest.configs
        samples: dict[str, SampleVersions] = dict.fromkeys(BENCHMARK_CONFIGS, frozenset())
        posts: dict[str, str | None] = {}
        for name in filter(configs.__contains__, SAMPLE_CONFIGS):
            # Three columns of its files, of which no other bytes are fetched.
            tables = (
                remote.read_columns(commit, file.path, COLUMNS) for file in configs[name].files
            )
            rows = [row for table_rows in tables for row in table_rows.to_pylist()]
            posts |= {row.get("id"): next(iter(row.get("post_urls") or ()), None) for row in rows}
            if name in samples:
                samples[name] = frozenset((row.get("id"), row.get("sample_digest")) for row in rows)
        has_results = "results" in configs
        figures = load_table("results").to_pylist() if has_results else []
        return ScoredRelease(
            tag,
            commit,
            manifest.target.name,
            figures=tuple({**row, "definition": parse_definition(row)} for row in figures),
            ratings=load_table("ratings") if has_results and "ratings" in configs else None,
            samples=samples,
            problem=None if has_results else NO_RESULTS,
            benchmark=manifest.name,
            posts=posts,
            released=manifest.target.released,
            carried=load_table(CARRIED_RATINGS.name) if CARRIED_RATINGS.name in configs else None,
            manifest=manifest.compute_digest(),
        )
    except EchoError as error:
        return ScoredRelease(tag, commit, problem=str(error))


def _find_changed_models(
    a: ScoredRelease, b: ScoredRelease, split: str, protocol: str, kind: str
) -> set[str]:
    """Return names whose model differs between two releases."""
    boards = [release.group_figures(split, protocol).get(METRIC) for release in (a, b)]
    own_models, others = (
        read_models(board[0]["definition"] if board else {}, kind) for board in boards
    )
    return {
        name
        for name in own_models.keys() & others.keys()
        if (own_models[name].model, own_models[name].status)
        != (others[name].model, others[name].status)
    }


class CheckColumn(NamedTuple):
    """How often systems fail by a question that complaints became."""

    title: str
    question: str
    basis: str
    lines: Mapping[str, BoardRow]
    complaint_threads: int  # with complaints, of those that prove it

    @property
    def head(self) -> str:
        return f"{clean(self.title, MAX_NAME_CHARACTERS - 2)} {ARROWS['lower']}"


def _make_check_column(check: str, figures: Sequence[FigureRow]) -> CheckColumn:
    """Make the column of a check's corrected rates, with what they rest on."""
    definitions = {str(figure["system"]): figure["definition"] for figure in figures}
    first = figures[0]["definition"]
    measurers = {str(each["measurer"]) for each in definitions.values() if each.get("measurer")}
    raw = {
        system: percent(each["raw"])
        for system, each in definitions.items()
        if isinstance(each.get("raw"), float | int) and math.isfinite(each["raw"])
    }
    shares = ", ".join(f"{clean(name, MAX_NAME_CHARACTERS)} {share}" for name, share in raw.items())
    labelled = [name for name, each in definitions.items() if each.get("method") in BY_LABELS]
    lines = {line.system: line for line in map(_make_line, figures)}
    parts = {
        "answered by": ", ".join(sorted(measurers)),
        "share of yes": shares,
        "by people's labels": ", ".join(labelled),
        "no rate": ", ".join(
            dict.fromkeys(line.missing for line in lines.values() if line.missing)
        ),
    }
    basis = "; ".join(f"{name}: {text}" for name, text in parts.items() if text)
    title, question = (str(first.get(name) or "") for name in ("title", "question"))
    threads = first.get("complaint_threads")
    return CheckColumn(
        title or check, question, basis, lines, threads if type(threads) is int else 0
    )


def find_unrated(
    releases: Sequence[ScoredRelease], release: ScoredRelease, split: str
) -> list[str]:
    """Return systems that another tag has rated on this split, and this one has not."""
    systems = {str(figure["system"]) for figure in release.figures if figure["split"] == split}
    rated = {system for other in releases for name, system in other.rated_systems if name == split}
    return sorted(rated - systems)


class GoneSamples(NamedTuple):
    """How many of a tag's samples are of posts that the newest tag no longer names.

    Those were found gone and forgotten, or are read otherwise: no release names what was
    forgotten, so that this is the most there are.
    """

    newest: str
    samples: int
    gone: int

    @property
    def share(self) -> float | None:
        return self.gone / self.samples if self.samples else None


def count_gone_samples(
    releases: Sequence[ScoredRelease], release: ScoredRelease
) -> GoneSamples | None:
    """Count a tag's gone samples; null for the newest tag, or an unreadable release."""
    newest = next((other for other in releases if other.benchmark == release.benchmark), release)
    if newest is release or release.benchmark is None:
        return None
    ids = {name for pairs in release.samples.values() for name, _ in pairs}
    others = {post for post in newest.posts.values() if post}
    gone = [name for name in ids - newest.posts.keys() if release.posts.get(name) not in others]
    return GoneSamples(newest.tag, len(ids), len(gone))


class Lead(NamedTuple):
    """The difference of two systems' win rates."""

    value: float
    interval: Interval | None

    @property
    def is_sure(self) -> bool:
        return self.interval is not None and self.interval[0] * self.interval[1] > 0


class SwappedPair(NamedTuple):
    """Two systems that changed places between two tags, and the leads of the first."""

    systems: tuple[str, str]
    leads: tuple[Lead, Lead]

    @property
    def is_sure(self) -> bool:
        return all(lead.is_sure for lead in self.leads)


ORDERS_BASIS = (
    "computed from the ratings of the systems ({systems}) and judges ({judges}) that both tags "
    "have; intervals of a lead are paired by sample, at 95 % over all {pairs} pairs together"
)
NOT_COMPARED = "orders not compared: {}"
NO_BOTH_RATINGS = NOT_COMPARED.format("both tags need ratings")
NOTHING_SHARED = NOT_COMPARED.format("no two systems, or no judge, are in both tags")


def find_swapped_pairs(
    a: ScoredRelease, b: ScoredRelease, split: str, protocol: ProtocolName
) -> tuple[list[SwappedPair], str]:
    """Find systems that changed places between two tags, and say how that was found.

    A change is sure where the lead is sure on either tag, each by its own samples.
    """
    tables = [release.select_ratings(split) for release in (a, b)]
    usable = [
        table.filter((pc.field("rubric") == RUBRIC) & pc.field("rating").is_valid())
        for table in tables
        if table is not None
    ]
    if len(usable) < 2:
        return [], NO_BOTH_RATINGS
    shared: dict[str, list[str]] = {}
    for kind in ("system", "judge"):
        names_held = [set(table[kind].to_pylist()) for table in usable]
        changed = _find_changed_models(a, b, split, protocol, f"{kind}s")
        shared[kind] = sorted((names_held[0] & names_held[1]) - changed)
    if len(shared["system"]) < 2 or not shared["judge"]:
        return [], NOTHING_SHARED
    for kind, names in shared.items():
        usable = [table.filter(pc.field(kind).isin(names)) for table in usable]
    try:
        old_leads, new_leads = (_compute_leads(table, protocol) for table in usable)
    except EchoError as error:
        return [], NOT_COMPARED.format(error)
    swapped = [
        SwappedPair(pair, (old_leads[pair], new_leads[pair]))
        for pair in sorted(old_leads.keys() & new_leads.keys())
        if old_leads[pair].value > 0 > new_leads[pair].value
    ]
    basis = ORDERS_BASIS.format(
        systems=", ".join(shared["system"]),
        judges=", ".join(shared["judge"]),
        pairs=math.comb(len(shared["system"]), 2),
    )
    basis = basis if swapped else f"no two systems have changed places; {basis}"
    return sorted(swapped, key=lambda swap: not swap.is_sure), basis


def _compute_leads(ratings: pa.Table, protocol: ProtocolName) -> dict[tuple[str, str], Lead]:
    """Compute the lead of each system over each other one."""
    from scipy.special import stdtrit  # it takes longer to import than all of this

    needed = samples_needed(ratings, protocol=protocol)
    samples, pairs = needed.definition["samples"], list(combinations(needed.pairs, 2))
    leads = {}
    for first, second in pairs:
        pair = needed.pairs[first][second]
        if pair.difference is None:
            continue
        lead, reverse = Lead(pair.difference, None), Lead(-pair.difference, None)
        if pair.deviation is not None:
            tail = (1 - LEVEL) / 2 / len(pairs)
            half_width = -stdtrit(samples - 1, tail) * pair.deviation / math.sqrt(samples)
            low, high = pair.difference - half_width, pair.difference + half_width
            lead, reverse = Lead(lead.value, (low, high)), Lead(reverse.value, (-high, -low))
        leads[first, second], leads[second, first] = lead, reverse
    return leads


NO_RATINGS = "the release holds no ratings, from which tiers would be computed"
NO_INTERVALS = "without intervals nothing says how far others may differ: no tiers"
MAX_NAME_CHARACTERS = 60
MAX_CHECKS = 4  # columns of a table that fits a window


def list_splits(release: ScoredRelease) -> list[str]:
    splits = {split for split, samples in release.samples.items() if samples}
    return sorted(splits | {str(figure["split"]) for figure in release.figures})


def render_leaderboard(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None = "corrected",
    beside: str | None = None,
    problem: str = "",
) -> str:
    """Render the page: problems, the board of a tag, and changes since another tag.

    Below stands every tag.
    """
    parts: list[str | dict[str, Any]] = [problem] if problem else []
    by_tag = {release.tag: release for release in releases}
    release, other = by_tag.get(tag or ""), by_tag.get(beside or "")
    if release is None:
        parts.append("no such release" if releases else "no release to show")
    elif release.problem not in (None, NO_RESULTS):
        parts.append(str(release.problem))
    elif not split or protocol not in get_args(ProtocolName):
        parts.append("choose a split and a protocol")
    else:
        arithmetic = cast(ProtocolName, protocol)
        parts.append(build_board(releases, release, split, arithmetic))
        if other and beside != tag:
            swapped, basis = find_swapped_pairs(release, other, split, arithmetic)
            parts.append({"versus": (release.tag, other.tag), "moved": swapped, "said": basis})
    if split and any(tagged.carried is not None for tagged in releases):
        parts.append(build_through_time(releases, split))
    if releases:
        tags = [
            {
                "release": tagged,
                "samples": sum(map(len, tagged.samples.values())),
                "rated": len({system for _, system in tagged.rated_systems}),
                "decay": count_gone_samples(releases, tagged),
            }
            for tagged in releases
        ]
        parts.append({"tags": tags})
    better = {name: ARROWS[metric.better] for name, metric in registered().items()}
    return _read_template().render(parts=parts, better=better)


def build_board(
    releases: Sequence[ScoredRelease], release: ScoredRelease, split: str, protocol: ProtocolName
) -> dict[str, Any]:
    """Build the board of one split, best win rates first, with its judges."""
    rows = release.group_figures(split, protocol)
    figures = rows.pop(METRIC, [])
    strengths = {figure["system"]: figure for figure in rows.pop(STRENGTH, [])}
    chosen = rows.pop(CHOICES, [])
    choices = _read_choices(chosen, rows.pop(CHOICES_BY_PEOPLE, []), figures)
    definition = figures[0]["definition"] if figures else {}
    worth = [("ratings", definition), *(("choices", row["definition"]) for row in chosen[:1])]
    groups: tuple[tuple[str, ...], ...] = ()
    note, ratings = "", release.select_ratings(split)
    if ratings is None:
        note = NO_RATINGS if figures else ""
    elif figures:
        try:
            draws: DrawChoice = "all" if definition.get("draws") else "first"
            groups = tiers(ratings, protocol=protocol, draws=draws).tiers
        except EchoError as error:
            note = str(error)
    lines = rank_rows(map(_make_line, figures), groups)
    if lines and not any(line.interval for line in lines):
        note = NO_INTERVALS
    models, judges = read_models(definition, "judges"), []
    for name in _read_names(definition.get("judges")):
        stand_in = models.get(name, ModelIdentity()).in_place_of
        note_text = f" (in place of {clean(stand_in, MAX_NAME_CHARACTERS)})" if stand_in else ""
        judges.append(f"{clean(name, MAX_NAME_CHARACTERS)}{note_text}")
    samples = "" if definition.get("samples") is None else f"; {definition['samples']} samples"
    target, judge_names = clean(release.target, MAX_NAME_CHARACTERS), ", ".join(judges) or "nobody"
    about = f"posts about {target}; protocol {protocol}; judged by {judge_names}{samples}"
    failed = definition.get("failed_audit")
    checks = list[CheckColumn]()
    for metric in sorted(rows):
        if match := RATES.fullmatch(metric):
            checks.append(_make_check_column(match[1], rows.pop(metric)))
            rows.pop(match[1], None)  # its share of yes stands beside the rate
    checks.sort(key=lambda column: -column.complaint_threads)
    shown = checks[:MAX_CHECKS]
    succeeded = rows.get(SUCCESS, [])
    rule = describe_success(succeeded[0]["definition"]) if succeeded else ""
    tries, tried = _pop_tries(rows)
    return {
        "release": release,
        "split": split,
        "lines": lines,
        "choices": choices,
        "note": note,
        "flags": {name: _read_names(names) for name, names in failed.items()}
        if isinstance(failed, dict)
        else {},
        "certificates": [
            (f"{name}, by {way}", facts.summary, facts.reason is not None)
            for way, facts_of in worth
            for name, facts in read_certificate_facts(facts_of).items()
        ],
        "about": release.problem or about,
        "unrated": find_unrated(releases, release, split),
        "decay": count_gone_samples(releases, release),
        "tries": tries,
        "tried": tried,
        "rule": rule,
        "checks": shown,
        "other_checks": len(checks) - len(shown),
        "checked": sorted(
            {line.system: line for column in shown for line in column.lines.values()}.items()
        ),
        "metrics": {
            metric: sorted(map(_make_line, figures_of), key=lambda line: line.system)
            for metric, figures_of in sorted(rows.items())
        },
        "strengths": [
            (line, _describe_origin(strengths[line.system], release.tag))
            for line in rank_rows(map(_make_line, strengths.values()), ())
        ],
        "submitted": [
            (placement, placement.splits[split])
            for placement in release.submitted
            if split in placement.splits
        ],
    }


def _read_choices(
    figures: Sequence[FigureRow], by_people: Sequence[FigureRow], rated: Sequence[FigureRow]
) -> dict[str, Any] | None:
    """Read the board by choices between two outputs, with people and ratings beside it."""
    if not figures:
        return None
    definition = figures[0]["definition"]
    tiers = {str(figure["system"]): figure["definition"].get("tier") for figure in figures}
    lines = [
        replace(line, tier=tier if type(tier := tiers[line.system]) is int else None)
        for line in map(_make_line, figures)
    ]
    lines.sort(key=lambda line: (line.tier or math.inf, -_finite(line.value), line.system))
    beside = [
        {line.system: line for line in map(_make_line, others)} for others in (by_people, rated)
    ]
    failed = definition.get("failed_audit")
    return {
        "lines": [(line, *(others.get(line.system) for others in beside)) for line in lines],
        "said": str(definition.get("said") or ""),
        "judges": ", ".join(_read_names(definition.get("judges"))) or "nobody",
        "flags": {name: _read_names(names) for name, names in failed.items()}
        if isinstance(failed, dict)
        else {},
    }


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else -math.inf


def _pop_tries(
    rows: dict[str, list[FigureRow]],
) -> tuple[dict[str, dict[str, BoardRow]], tuple[BoardRow, ...]]:
    """Take what several outputs of a sample tell out of figures: columns, and systems in order."""
    numbers = [int(number[1]) for metric in rows if (number := PASSED.fullmatch(metric))]
    largest = max(numbers, default=0)
    heads = {SUCCESS: "succeed", PASS_AT.format(largest): f"in {largest}"}
    heads |= {PER_SUCCESS[figure]: figure for figure in AMOUNTS}
    columns = {
        head: {line.system: line for line in map(_make_line, rows[metric])}
        for metric, head in heads.items()
        if metric in rows
    }
    if SUCCESS not in rows:
        return {}, ()
    for metric in [*rows]:
        if metric in (SUCCESS, *PER_SUCCESS.values()) or PASSED.fullmatch(metric):
            del rows[metric]
    return columns, rank_rows(columns["succeed"].values())


def build_through_time(releases: Sequence[ScoredRelease], split: str) -> dict[str, Any] | str:
    """Put the systems of all tags on one scale, which tags with carried samples link."""
    rated = [
        RatedRelease(
            release.tag,
            release.released,
            release.ratings,
            release.carried,
            {
                kind: {
                    name: model
                    for figure in release.figures
                    for name, model in read_models(figure["definition"], kind).items()
                }
                for kind in ("systems", "judges")
            },
        )
        for release in releases[::-1]
        if release.ratings is not None or release.carried is not None
    ]
    try:
        scale = measure_splits(sort_by_age(rated), [split]).get(split)
    except EchoError as error:
        return f"not on one scale: {error}"
    if scale is None:
        return "not on one scale: fewer than two systems were rated"
    lead = describe_lead(scale)
    rows = [(name, scale.strength[name], scale.interval[name]) for name in rank_systems(scale)]
    return {
        "scale": scale,
        "rows": rows,
        "links": LINKS,
        "sentences": [*([lead] if lead else []), *describe_ruler(scale)],
    }


def _make_line(figure: FigureRow) -> BoardRow:
    low, high = figure["low"], figure["high"]
    missing = figure["definition"].get("missing") if figure["value"] is None else None
    system = str(figure["system"])
    model = read_models(figure["definition"], "systems").get(system, ModelIdentity())
    return BoardRow(
        system,
        figure["value"],
        None if low is None or high is None else (low, high),
        figure["coverage"],
        figure["n"],
        None if missing is None else str(missing),
        in_place_of=model.in_place_of,
    )


def _describe_origin(strength: FigureRow, tag: str) -> str:
    """Describe what a strength beside anchors rests on."""
    anchor = strength["definition"].get("anchor")
    try:
        return Anchor.model_validate(anchor).description if anchor else f"joined in {tag}"
    except ValidationError:
        return "of an origin that cannot be read"


def _read_names(value: Any) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else []


@cache
def _read_template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def is_finite(value: float | None) -> bool:
        return value is not None and math.isfinite(value)

    def format_share(value: float | None) -> str:
        return percent(value if is_finite(value) else None)

    def format_ends(ends: Interval | None) -> str:
        return format_interval(ends if ends and all(map(is_finite, ends)) else None)

    def format_amount(line: BoardRow) -> str:
        if not is_finite(line.value):
            return "-"
        ends = f" ({' to '.join(f'{end:.3g}' for end in line.interval)})" if line.interval else ""
        return f"{line.value:.3g}{ends}"

    def scale_to_bar(value: float) -> str:
        return f"{200 * min(max(value, 0.0), 1.0) if is_finite(value) else 0.0:.1f}"

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": lambda text, longest=MAX_NAME_CHARACTERS: clean(text, longest),
        "finite": is_finite,
        "number": lambda value: format_rounded(value if is_finite(value) else None),
        "signed": lambda value: f"{value:+.3f}",
        "interval": format_ends,
        "share": format_share,
        "shares": lambda ends: " to ".join(map(format_share, ends or ())),
        "across": scale_to_bar,
        "amount": format_amount,
    }
    return environment.get_template("leaderboard.html.jinja")


SPACE_FOLDER = Path(__file__).parent / "leaderboard_space"
SPACE_FILES = ("README.md", "app.py", "requirements.txt")
DATASET_FILE = "leaderboard.json"
DATASET_PLACEHOLDER = "ORGANISATION/NAME"
KIND = "space"
SDK = "gradio"


def build_space_files(repo_id: str) -> dict[str, bytes]:
    check_repository(repo_id)
    texts = {name: (SPACE_FOLDER / name).read_text("utf-8") for name in SPACE_FILES}
    texts["README.md"] = texts["README.md"].replace(DATASET_PLACEHOLDER, repo_id)
    texts[DATASET_FILE] = json.dumps({"dataset": repo_id}) + "\n"
    return {name: text.encode() for name, text in texts.items()}


def write_space(repo_id: str, folder: Path) -> Path:
    """Write the files of a Space into a folder, without asking the Hub."""
    files = build_space_files(repo_id)
    if folder.exists() and not folder.is_dir():
        raise HubError(f"{str(folder)!r} is a file: expected a folder that is empty, or new")
    folder.mkdir(parents=True, exist_ok=True)
    check_ownership({path.name for path in folder.iterdir()}, repr(str(folder)), DATASET_FILE)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def create_space(
    repo_id: str, space: str, *, private: bool = False, api: HfApi | None = None
) -> str:
    api = api or HfApi()
    files = build_space_files(repo_id)
    check_repository(space)
    Remote(api, space).check_token()
    Remote(api, repo_id).require_state()
    with hub_errors(f"make the Space {space!r}"):
        api.create_repo(space, repo_type=KIND, space_sdk=SDK, private=private, exist_ok=True)
        info = api.space_info(space)
        present = set(api.list_repo_files(space, repo_type=KIND, revision=info.sha))
    if private and not info.private:
        raise HubError(
            f"the Space {space!r} is public, and --private is for new ones: change it at "
            f"{api.endpoint}/spaces/{space}/settings first"
        )
    check_ownership(present, f"the Space {space!r}", DATASET_FILE)
    operations = [CommitOperationAdd(name, data) for name, data in files.items()]
    with hub_errors(f"write to the Space {space!r}"):
        api.create_commit(
            space,
            operations,
            commit_message="Show the leaderboard",
            repo_type=KIND,
            revision=MAIN_BRANCH,
            parent_commit=str(info.sha),
        )
    return f"{api.endpoint}/spaces/{space}"


__getattr__ = make_module_getattr(
    __name__, {"shown": "render_leaderboard", "splits_of": "list_splits"}
)
