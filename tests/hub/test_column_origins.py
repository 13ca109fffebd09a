"""The card knows for every column who made it."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.hub.card_sections import ORIGINS, made_by
from echo_hf.tables import SAMPLES

MODEL: dict[str, Any] = {"digest": "d", "engine": {"kind": "vllm", "model": "m"}}
RULES: dict[str, Any] = {"digest": "d", "engine": {"kind": "rules"}}


def test_every_column_of_the_samples_has_an_origin() -> None:
    """A column that is added to the samples has to say who makes it."""
    assert list(ORIGINS) == list(SAMPLES.columns)


@pytest.mark.parametrize(
    ("column", "stages", "said"),
    [
        ("task", {"feedback": MODEL}, "a model, in `feedback`"),
        (
            "task",
            {"feedback": RULES},
            "plain rules or recorded answers instead of a model, in `feedback`",
        ),
        (
            "prompt",
            {"extract": MODEL, "roles": RULES},
            "a model, or plain rules or recorded answers in its place, in `extract` and `roles`",
        ),
        ("safety", {"feedback": MODEL}, "nobody: no `safety` in this build"),
        ("review", {}, "nobody: no `roles` or `privacy` in this build"),
        ("sample_digest", {}, "a fixed rule"),
        ("post_id", {"collect": {"digest": "d", "engine": None}}, "copied, in `collect`"),
    ],
)
def test_who_made_a_column_depends_on_the_build(
    column: str, stages: dict[str, Any], said: str
) -> None:
    """Stages that did not run are not named as makers."""
    assert made_by(column, stages) == said
