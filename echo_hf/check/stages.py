"""The stages that can be checked: what each needs, reads, and is measured by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from datasets import Dataset

from echo_hf.check.found import (
    found_roles,
    found_samples,
    found_scores,
    found_tasks,
    found_verdicts,
)
from echo_hf.check.gold import Gold
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.check.inputs import (
    Key,
    digest_of,
    posts_to_score,
    sample_key,
    samples_to_judge,
    samples_to_look_at,
    threads_to_read,
)
from echo_hf.check.measures import Scored
from echo_hf.check.score_extract import score_extract
from echo_hf.check.score_feedback import score_tasks, score_verdicts
from echo_hf.check.score_relevance import score_relevance
from echo_hf.check.score_roles import gold_roles, score_roles
from echo_hf.config import Config
from echo_hf.context.spans import squeezed
from echo_hf.curate.feedback import NOT_ASKED
from echo_hf.stage_result import StageResult


@dataclass(frozen=True)
class Material:
    """What stages are checked with.

    Attributes:
        config: The target and the options of the stages.
        gold: The lines of the chosen half.
        posts: The posts and their threads.
    """

    config: Config
    gold: Gold
    posts: GoldPosts

    @cached_property
    def samples(self) -> Dataset:
        """The samples as `roles` reads them."""
        extract, roles = self.gold.extract or (), self.gold.roles or ()
        return samples_to_look_at(extract, roles, self.posts, self.config.target)


@dataclass(frozen=True)
class Check:
    """How a stage is checked.

    Attributes:
        needs: Gold files that it cannot do without.
        compares: Gold files that its answers are compared with, of which one is enough.
        read: What the stage reads.
        score: What its answers are worth.
    """

    needs: tuple[str, ...]
    compares: tuple[str, ...]
    read: Callable[[Material], Dataset]
    score: Callable[[Material, Dataset, StageResult], list[Scored]]

    def lacks(self, gold: Gold) -> list[str]:
        """Names of the gold files that are missing for it.

        Args:
            gold: The lines that there are.

        Returns:
            Files, none when it can be checked.
        """
        there = gold.lines
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


def _score_feedback(given: Material, read: Dataset, result: StageResult) -> list[Scored]:
    asked = [row for row in read.to_list() if row["quality"] != NOT_ASKED]
    said = {one["post_url"] for row in asked for one in row["community_feedback"]}
    scored: list[Scored] = []
    if given.gold.feedback is not None:
        lines = [line for line in given.gold.feedback if line.post_url in said]
        scored += score_verdicts(lines, found_verdicts(result), given.posts.root_of)
    if given.gold.tasks is not None:
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
    "feedback": Check(
        ("extract", "roles"),
        ("feedback", "tasks"),
        lambda given: samples_to_judge(given.samples, given.gold.roles or (), given.posts),
        _score_feedback,
    ),
}


def left_out(given: Material, stages: Sequence[str]) -> Iterator[str]:
    """Says what gold holds that cannot be compared.

    Args:
        given: What stages are checked with.
        stages: The stages that are checked.

    Yields:
        A sentence each.
    """
    if not {"roles", "feedback"} & set(stages):
        return
    known = {sample_key(row) for row in given.samples.to_list()}
    every = [
        (line.root_url, squeezed(sample.prompt))
        for line in given.gold.extract or ()
        for sample in line.samples
    ]
    lacking = sum(key not in known for key in every)
    if lacking:
        yield (
            f"{lacking} of {len(every)} samples have no line in roles.jsonl: they are not in the "
            "figures of roles and feedback"
        )
    shown = [one for line in given.gold.roles or () for one in line.pictures]
    absent = sum(digest_of(one, given.posts) is None for one in shown)
    if absent:
        yield f"{absent} of {len(shown)} pictures with a role are not there: they are left out"
