"""The stages that can be checked, what each needs, and why others are not checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from datasets import Dataset

from echo_hf.builder.gold.folder import Gold, GoldPosts
from echo_hf.builder.gold.image_scores import (
    GoldRoles,
    compared_screenshots,
    gold_roles,
    score_roles,
    score_screenshots,
)
from echo_hf.builder.gold.inputs import (
    Key,
    Row,
    digest_of,
    found_roles,
    found_safety,
    found_samples,
    found_scores,
    found_screenshots,
    found_tasks,
    found_verdicts,
    posts_to_score,
    sample_key,
    samples_to_judge,
    samples_to_look_at,
    samples_to_take_apart,
    threads_to_read,
)
from echo_hf.builder.gold.lines import folded
from echo_hf.builder.gold.measures import Scored
from echo_hf.builder.gold.sample_scores import (
    score_extract,
    score_relevance,
    score_safety,
    score_tasks,
    score_verdicts,
)
from echo_hf.builder.steps import STAGES
from echo_hf.config.loading import Config
from echo_hf.curate.feedback import NOT_ASKED
from echo_hf.errors import GoldError, StageError, unknown
from echo_hf.pipeline.result import StageResult
from echo_hf.samples.spans import squeezed


@dataclass(frozen=True)
class Material:
    """What stages are checked with."""

    config: Config
    gold: Gold
    posts: GoldPosts

    @cached_property
    def samples(self) -> Dataset:
        """The samples as `roles` reads them."""
        extract, roles = self.gold.extract or (), self.gold.roles or ()
        return samples_to_look_at(extract, roles, self.posts, self.config.target)

    @cached_property
    def judged(self) -> Dataset:
        """The samples as `feedback` and `safety` read them."""
        return samples_to_judge(self.samples, self.gold.roles or (), self.posts)


@dataclass(frozen=True)
class Check:
    """How a stage is checked."""

    needs: tuple[str, ...]
    compares: tuple[str, ...]
    read: Callable[[Material], Dataset]
    score: Callable[[Material, Dataset, StageResult], list[Scored]]

    def lacks(self, gold: Gold) -> list[str]:
        """Names of the gold files that are missing for it, or have no line."""
        there = [name for name, lines in gold.lines.items() if lines]
        lacking = [name for name in self.needs if name not in there]
        compared = any(name in there for name in self.compares)
        return lacking if compared else [*lacking, " or ".join(self.compares)]


def _score_relevance(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    del read
    keep = given.config.stages.relevance.keep
    found = found_scores(result)
    return score_relevance(given.gold.relevance or (), found, keep, given.posts.root_of)


def _score_extract(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    found = found_samples(result, read["root_url"], given.posts.root_of)
    return score_extract(given.gold.extract or (), found)


def _score_roles(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    gold = gold_roles(read.to_list(), given.gold.roles or (), given.posts)
    return score_roles(gold, found_roles(result))


def asked_about(samples: Dataset) -> list[Row]:
    """The samples that `feedback` and `safety` ask about."""
    return [row for row in samples.to_list() if row["quality"] != NOT_ASKED]


def comments_of(samples: Iterable[Row]) -> set[str]:
    """The comments that `feedback` judges."""
    return {one["post_url"] for row in samples for one in row["community_feedback"]}


def _score_screenshots(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    lines, found = given.gold.screenshots or (), found_screenshots(result)
    compared, skipped = compared_screenshots(read.to_list(), lines, found, given.posts)
    return score_screenshots(compared, skipped)


def _score_safety(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    keys: dict[str, Key] = {row["id"]: sample_key(row) for row in asked_about(read)}
    remove = given.config.stages.safety.remove
    return score_safety(given.gold.safety or (), keys, found_safety(result), remove)


def _score_feedback(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    asked = asked_about(read)
    said = comments_of(asked)
    scored: list[Scored] = []
    if given.gold.feedback:
        lines = [line for line in given.gold.feedback if line.post_url in said]
        scored += score_verdicts(lines, found_verdicts(result), given.posts.root_of)
    if given.gold.tasks:
        keys: dict[str, Key] = {row["id"]: sample_key(row) for row in asked}
        scored += score_tasks(given.gold.tasks, keys, found_tasks(result))
    return scored


CHECKS: Mapping[str, Check] = {
    "relevance": Check(
        (),
        ("relevance",),
        lambda given: posts_to_score(given.gold.relevance or (), given.posts),
        _score_relevance,
    ),
    "extract": Check(
        (),
        ("extract",),
        lambda given: threads_to_read(given.gold.extract or (), given.posts),
        _score_extract,
    ),
    "roles": Check(("extract",), ("roles",), lambda given: given.samples, _score_roles),
    "screenshots": Check(
        ("extract", "roles"),
        ("screenshots",),
        lambda given: samples_to_take_apart(given.samples, given.gold.roles or (), given.posts),
        _score_screenshots,
    ),
    "feedback": Check(
        ("extract", "roles"),
        ("feedback", "tasks"),
        lambda given: given.judged,
        _score_feedback,
    ),
    "safety": Check(
        ("extract", "roles"),
        ("safety",),
        lambda given: given.judged,
        _score_safety,
    ),
}


def check_names(stages: Sequence[str] | None) -> None:
    """Refuses names of what cannot be checked, whatever gold there is."""
    every = ", ".join(CHECKS)
    if stages is not None and not stages:
        raise StageError(
            f"stages {stages!r} would check nothing: expected some of {every}, or "
            "None for all that there is gold for"
        )
    for name in stages or ():
        if name in STAGES and name not in CHECKS:
            raise StageError(f"stage {name!r} asks no model: expected one that does, {every}")
        if name not in CHECKS:
            raise StageError(unknown("stage to check", name, CHECKS))


def chosen_stages(gold: Gold, half: str, stages: Sequence[str] | None) -> list[str]:
    """The stages to check, in order."""
    for name in stages or ():
        if why := _lack(name, gold, half):
            raise GoldError(f"stage {name!r} cannot be checked: {why}")
    wanted = CHECKS if stages is None else set(stages)
    return [name for name in CHECKS if name in wanted and not CHECKS[name].lacks(gold)]


def not_checked(gold: Gold, half: str, stages: Sequence[str] | None) -> Iterator[str]:
    """Says for what there is no gold."""
    for name, check in CHECKS.items():
        if name not in (CHECKS if stages is None else stages):
            continue
        if why := _lack(name, gold, half):
            yield f"{name} is not checked: {why}"
            continue
        empty = [file for file in check.compares if gold.lines.get(file) == ()]
        if empty:
            yield f"{name} is not compared with {empty[0]}: {_no_line(empty, half)}"


def _lack(name: str, gold: Gold, half: str) -> str:
    lacking = CHECKS[name].lacks(gold)
    empty = [files for files in lacking if any(one in gold.lines for one in files.split(" or "))]
    absent = [files for files in lacking if files not in empty]
    said = [f"there is no {', '.join(absent)} (.jsonl)"] if absent else []
    return ", and ".join([*said, *([_no_line(empty, half)] if empty else [])])


def _no_line(files: Sequence[str], half: str) -> str:
    of = "" if half == "all" else f" of half {half!r}"
    return f"there is no line{of} in {', '.join(files)} (.jsonl)"


NOT_SHOWN = (
    "roles is not shown {} of {} {}, such as those of Trash, of posts of no sample, or of a file "
    "given twice: they are not in its figures"
)
PARTS_NOT_ASKED = (
    "{} is not asked about {} of {} {}, such as those of Trash or of samples without roles: they "
    "are not in its figures"
)


def left_out(given: Material, stages: Sequence[str]) -> Iterator[str]:
    """Says what gold holds that cannot be compared."""
    if {"roles", "safety", "feedback"} & set(stages):
        yield from _samples(given)
        yield from _absent(given)
    if "roles" in stages:
        yield from _not_shown(given)
    if "safety" in stages:
        yield from _not_screened(given)
    if "feedback" in stages:
        yield from _not_judged(given)


def _samples(given: Material) -> Iterator[str]:
    looked_at = {line.key for line in given.gold.roles or ()}
    every = [
        (line.root_url, squeezed(sample.prompt))
        for line in given.gold.extract or ()
        for sample in line.samples
    ]
    lacking = sum(key not in looked_at for key in every)
    if lacking:
        yield (
            f"{lacking} of {len(every)} samples have no line in roles.jsonl: they are not in the "
            "figures of roles, safety and feedback"
        )


def _absent(given: Material) -> Iterator[str]:
    named = [one for line in given.gold.roles or () for one in line.pictures]
    absent = sum(digest_of(one, given.posts) is None for one in named)
    if absent:
        yield f"{absent} of {len(named)} pictures with a role are not there: they are left out"


def _not_shown(given: Material) -> Iterator[str]:
    lines = given.gold.roles or ()
    shown = gold_roles(given.samples.to_list(), lines, given.posts)
    yield from _pictures(given, shown)
    completions = {
        (one.output.post_url, one.output.index, folded(one.prompt))
        for line in lines
        for one in line.filled
    }
    lost = len(completions) - sum(len(one.completions) for one in shown)
    if lost:
        yield NOT_SHOWN.format(lost, len(completions), "completions")
    marked = [one for line in lines for one in (line.conversation, line.collage) if one]
    lost = len(marked) - sum(len(one.screenshots) for one in shown)
    if lost:
        yield NOT_SHOWN.format(lost, len(marked), "conversations and collages")


def _pictures(given: Material, shown: Sequence[GoldRoles]) -> Iterator[str]:
    there = {
        (one.post_url, one.index)
        for line in given.gold.roles or ()
        for one in line.pictures
        if digest_of(one, given.posts) is not None
    }
    lost = len(there) - sum(len(one.roles) for one in shown)
    if lost:
        yield NOT_SHOWN.format(lost, len(there), "pictures with a role")


def _not_screened(given: Material) -> Iterator[str]:
    keys = {sample_key(row) for row in asked_about(given.judged)}
    lines = given.gold.safety or ()
    lost = sum(line.key not in keys for line in lines)
    if lost:
        yield PARTS_NOT_ASKED.format("safety", lost, len(lines), "samples")


def _not_judged(given: Material) -> Iterator[str]:
    asked = asked_about(given.judged)
    comments, keys = comments_of(asked), {sample_key(row) for row in asked}
    verdicts, tasks = given.gold.feedback or (), given.gold.tasks or ()
    lost = sum(line.post_url not in comments for line in verdicts)
    if lost:
        yield PARTS_NOT_ASKED.format("feedback", lost, len(verdicts), "verdicts")
    lost = sum(line.key not in keys for line in tasks)
    if lost:
        yield PARTS_NOT_ASKED.format("feedback", lost, len(tasks), "tasks")
