"""The board by choices between two outputs: its figures, its rows of results, and it in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf import scores
from echo_hf._infra.text import format_interval, pluralize
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.errors import ScoreError
from echo_hf.hub.run_tables import CHOICES, CHOICES_BY_PEOPLE, ResultRow
from echo_hf.judging.audit import add_failed
from echo_hf.judging.imports import PEOPLE_JUDGE
from echo_hf.judging.results import FailedAudits, SavedChoices
from echo_hf.metrics.result import coverage_of
from echo_hf.scores.choices import choice_tiers
from echo_hf.scores.votes import ProtocolName

PEOPLE_VOTES = "votes_of_people_left_out"


def drop_people(comparisons: pa.Table, config: EvaluationBase) -> pa.Table:
    """Drop imported votes of people, which are in the table as a judge that the config lacks."""
    if any(judge.name == PEOPLE_JUDGE for judge in config.judges):
        return comparisons
    return comparisons.filter(pc.not_equal(comparisons["judge"], PEOPLE_JUDGE))


def score_choices(
    comparisons: pa.Table, human: pa.Table | None, config: EvaluationBase
) -> SavedChoices | None:
    """Compute strengths, decided pairs and tiers, and strengths by people where they ranked.

    Votes of people are no judge's: without them there may be nothing to score.
    """
    every_choice, comparisons = comparisons, drop_people(comparisons, config)
    if not comparisons.num_rows:
        return None
    strengths, decided = scores.choice_strengths(comparisons), scores.choice_decisions(comparisons)
    by_people, missing = None, None
    try:
        by_people = scores.human_corrected_strengths(comparisons, human) if human else None
    except ScoreError as error:
        missing = str(error)
    if by_people and by_people.weight is None:
        missing = next(iter(by_people.reasons.values())).meaning
    said = describe_choices(strengths, decided)
    if votes := every_choice.num_rows - comparisons.num_rows:
        strengths = replace(strengths, definition={**strengths.definition, PEOPLE_VOTES: votes})
        said += f"; {pluralize(votes, 'vote')} of people {'is' if votes == 1 else 'are'} left out"
    return SavedChoices(
        is_board=config.board == "pairwise",
        said=said,
        strengths=strengths,
        decisions=decided,
        tiers=choice_tiers(strengths, decided),
        by_people=by_people,
        missing=missing,
    )


def describe_choices(strengths: scores.ChoiceStrengths, decided: scores.Decisions) -> str:
    """Say how many pairs are decided from how many choices, and what the first place gains."""
    pairs = len(decided.decided) + len(decided.undecided)
    text = (
        f"{len(decided.decided)} of {pluralize(pairs, 'pair')} decided from {strengths.choices:,} "
        f"choices on {pluralize(strengths.samples, 'sample')}"
    )
    if decided.not_needed:
        text += f", {decided.not_needed:,} not needed"
    if strengths.position is not None and (ends := strengths.position_interval):
        interval = f"{format_interval(ends, 2)} at 95 % over samples"
        text += f"; the output shown first gains {strengths.position:+.2f} log odds ({interval})"
    reasons = dict.fromkeys(strengths.reasons.values())
    return "; ".join([text, *(f"no intervals: {reason.meaning}" for reason in reasons)])


def make_choice_rows(
    saved: SavedChoices, split: str, protocol: ProtocolName, samples: int, failed: FailedAudits
) -> Iterator[ResultRow]:
    """Yield a row of results for each system, and one for its strength by people."""
    strengths, people, tiers = saved.strengths, saved.by_people, saved.tier_by_system
    pairs = {"decided": saved.decisions.decided, "undecided": saved.decisions.undecided}
    shared = {
        "said": saved.said,
        "position": strengths.position,
        "position_interval": strengths.position_interval and list(strengths.position_interval),
        "tie": strengths.tie,
    }
    figures: list[tuple[str, scores.ChoiceStrengths | scores.CorrectedStrengths, int]] = [
        (CHOICES, strengths, strengths.samples)
    ]
    figures += [(CHOICES_BY_PEOPLE, people, people.ranked)] if people else []
    for metric, figure, used in figures:
        by_judges = metric == CHOICES
        about = shared if by_judges else {"ranked": used, "samples": strengths.samples}
        definition = {**figure.definition, **about}
        definition = dict(add_failed(definition, definition["judges"], failed))
        for system, value in figure.strength.items():
            reason = figure.reasons.get(system)
            own: dict[str, object] = {"missing": reason} if reason else {}
            if by_judges:
                own["tier"] = tiers.get(system)
                own |= {
                    name: [list(pair) for pair in listed if system in pair]
                    for name, listed in pairs.items()
                }
            low, high = figure.interval[system] or (None, None)
            yield ResultRow(
                metric=metric,
                protocol=protocol,
                split=split,
                system=system,
                value=value,
                low=low,
                high=high,
                n=used,
                coverage=coverage_of(used, samples),
                definition={**definition, **own},
            )
