"""The stages that can be checked: what each needs, reads, and is measured by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from datasets import Dataset

from echo_hf.check.found import (
    found_roles,
    found_safety,
    found_samples,
    found_scores,
    found_screenshots,
    found_tasks,
    found_verdicts,
)
from echo_hf.check.gold import Gold
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.check.inputs import (
    Key,
    Row,
    posts_to_score,
    sample_key,
    samples_to_judge,
    samples_to_look_at,
    samples_to_take_apart,
    threads_to_read,
)
from echo_hf.check.measures import Scored
from echo_hf.check.score_extract import score_extract
from echo_hf.check.score_feedback import score_tasks, score_verdicts
from echo_hf.check.score_relevance import score_relevance
from echo_hf.check.score_roles import gold_roles, score_roles
from echo_hf.check.score_safety import score_safety
from echo_hf.check.score_screenshots import compared_screenshots, score_screenshots
from echo_hf.config import Config
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

    @cached_property
    def judged(self) -> Dataset:
        """The samples as `feedback` and `safety` read them."""
        return samples_to_judge(self.samples, self.gold.roles or (), self.posts)


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
        """Names of the gold files that are missing for it, or have no line.

        Args:
            gold: The lines that there are.

        Returns:
            Files, none when it can be checked.
        """
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
    """The samples that `feedback` and `safety` ask about.

    Args:
        samples: Those that they read.

    Returns:
        All but Trash.
    """
    return [row for row in samples.to_list() if row["quality"] != NOT_ASKED]


def comments_of(samples: Iterable[Row]) -> set[str]:
    """The comments that `feedback` judges.

    Args:
        samples: Those that it asks about.

    Returns:
        The addresses of their posts.
    """
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
