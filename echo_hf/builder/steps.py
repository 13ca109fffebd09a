"""The stages of a build, in order; `build.py` runs them and writes the release."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from echo_hf.errors import StageError, unknown

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import Stage


class Step(NamedTuple):
    about: str
    where: str


STEPS: Mapping[str, Step] = {
    "collect": Step(
        "read the posts of all sources, and merge what is there twice",
        "echo_hf.collect.collect:Collect",
    ),
    "relevance": Step("score how likely posts are on topic", "echo_hf.collect.relevance:Relevance"),
    "threads": Step("join posts into reply trees", "echo_hf.samples.threads:Threads"),
    "download": Step(
        "fetch images that posts name by address, and link copies",
        "echo_hf.collect.download:Download",
    ),
    "extract": Step("find prompts, their posts, and feedback", "echo_hf.samples.extract:Extract"),
    "roles": Step(
        "tell input images from outputs, and fill templates", "echo_hf.samples.roles:Roles"
    ),
    "screenshots": Step(
        "read prompts in screenshots, and cut out the images they show",
        "echo_hf.samples.screenshots:Screenshots",
    ),
    "feedback": Step(
        "name the kind of each task, and what people say failed",
        "echo_hf.curate.feedback:Feedback",
    ),
    # Asks a model of its own: after all that the reader is asked, so that each is loaded once.
    "safety": Step("screen texts and images for hazards", "echo_hf.curate.safety:Safety"),
    "privacy": Step(
        "hash authors, mask personal data, and say what a person has to review",
        "echo_hf.curate.privacy:Privacy",
    ),
    "splits": Step("draw the benchmark from the samples", "echo_hf.curate.splits:Splits"),
}
STAGES = tuple(STEPS)


def stage_class(name: str) -> type[Stage]:
    if name not in STEPS:
        raise StageError(unknown("stage", name, STAGES))
    module, _, attribute = STEPS[name].where.partition(":")
    found: type[Stage] = getattr(import_module(module), attribute)
    return found


def up_to(name: str) -> tuple[str, ...]:
    """The stages that lead to one, itself included."""
    if name not in STEPS:
        raise StageError(unknown("stage", name, STAGES))
    return STAGES[: STAGES.index(name) + 1]
