"""The stages of a build, in order; `build.py` runs them and writes the release."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from echo_hf.errors import StageError, unknown

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import Stage

STEPS: Mapping[str, str] = {  # module and class, imported when needed
    "collect": "echo_hf.collect.collect:Collect",
    "relevance": "echo_hf.collect.relevance:Relevance",
    "threads": "echo_hf.samples.threads:Threads",
    "download": "echo_hf.collect.download:Download",
    "extract": "echo_hf.samples.extract:Extract",
    "roles": "echo_hf.samples.roles:Roles",
    "screenshots": "echo_hf.samples.screenshots:Screenshots",
    "feedback": "echo_hf.curate.feedback:Feedback",
    # After all stages of the other model, so that each model is loaded once.
    "safety": "echo_hf.curate.safety:Safety",
    "privacy": "echo_hf.curate.privacy:Privacy",
    "splits": "echo_hf.curate.splits:Splits",
}
STAGES = tuple(STEPS)


def load_stage_class(name: str) -> type[Stage]:
    list_stages_through(name)
    module, _, attribute = STEPS[name].partition(":")
    loaded: type[Stage] = getattr(import_module(module), attribute)
    return loaded


def list_stages_through(name: str) -> tuple[str, ...]:
    """Return the stages up to one, itself included."""
    if name not in STEPS:
        raise StageError(unknown("stage", name, STAGES))
    return STAGES[: STAGES.index(name) + 1]
