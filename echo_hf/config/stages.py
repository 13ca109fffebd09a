"""The stages of a build by name: ours in their order, and those of other packages."""

from __future__ import annotations

from typing import Any

from echo_hf._infra.registry import Registry
from echo_hf.errors import StageError

STAGES: Registry[Any, None] = Registry(
    "stage",
    "echo_hf.stages",
    {  # in the order in which they run
        "collect": "echo_hf.collect.collect",
        "relevance": "echo_hf.collect.relevance",
        "threads": "echo_hf.samples.threads",
        "download": "echo_hf.collect.download",
        "extract": "echo_hf.samples.extract",
        "roles": "echo_hf.samples.roles",
        "screenshots": "echo_hf.samples.screenshots",
        "feedback": "echo_hf.curate.feedback",
        # After all stages of the other model, so that each model is loaded once.
        "safety": "echo_hf.curate.safety",
        "privacy": "echo_hf.curate.privacy",
        "splits": "echo_hf.curate.splits",
    },
    StageError,
)


BUILT_IN_STAGES = tuple(STAGES.modules)


def list_stage_names() -> tuple[str, ...]:
    """Return the built-in stages in their order, and those of other packages."""
    return tuple(dict.fromkeys([*BUILT_IN_STAGES, *STAGES.list_names()]))
