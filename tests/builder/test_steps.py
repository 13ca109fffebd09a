"""The stages of a build: each fits the one before it, and is found by its name."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from echo_hf.builder.steps import STAGES, STEPS, stage_class, up_to
from echo_hf.config.loading import parse_config
from echo_hf.errors import StageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import ModelStage

CONFIG = parse_config(
    {
        "name": "lumen",
        "target": {"name": "Lumen", "developer": "Northlight", "released": "2026-03-02"},
        "posts": [{"source": "quickstart"}],
        "engines": {"main": {"kind": "rules"}},
    },
    "c.yaml",
)
IMAGES = ImageStore(Path("pictures"))


def test_the_stages_stand_in_the_order_of_the_paper() -> None:
    """Sections 3.1, 3.2, 3.3 and 4; the guard comes after all that the reader is asked."""
    assert STAGES == (
        "collect", "relevance", "threads", "download", "extract", "roles", "screenshots",
        "feedback", "safety", "privacy", "splits",
    )  # fmt: skip


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_called_by_its_own_name(name: str) -> None:
    """Verb, class and list agree, and a config can set it up."""
    stage = stage_class(name)

    assert stage.name == name
    assert stage.__name__.lower() == name
    assert isinstance(stage.from_config(CONFIG, IMAGES), stage)
    assert STEPS[name].about


@pytest.mark.parametrize(("before", "after"), list(pairwise(STAGES)))
def test_a_stage_reads_what_the_one_before_it_makes(before: str, after: str) -> None:
    """Every column that it needs is there, of the same type."""
    made, read = stage_class(before).outputs.schema, stage_class(after).inputs.schema

    assert [(one.name, one.type) for one in read] == [
        (one.name, made.field(one.name).type) for one in read
    ]


@pytest.mark.parametrize("name", STAGES)
def test_the_stages_that_ask_a_model_have_an_engine(name: str) -> None:
    """And no other one has."""
    asks = issubclass(stage_class(name), ModelStage)
    assert (CONFIG.stages.engine_of(name) is not None) == asks


@pytest.mark.parametrize("find", [stage_class, up_to])
def test_an_unknown_stage_is_named_with_the_nearest(find: object) -> None:
    """One line: the value, a suggestion, and all that there are."""
    assert callable(find)
    with pytest.raises(StageError, match=r"unknown stage 'rolls'; did you mean 'roles'\? known: "):
        find("rolls")


@pytest.mark.parametrize("number", range(len(STAGES)))
def test_the_stages_that_lead_to_one(number: int) -> None:
    """All before it, and itself."""
    assert up_to(STAGES[number]) == STAGES[: number + 1]


def test_the_list_imports_no_stage() -> None:
    """The command line shows its verbs before anything heavy is loaded."""
    script = (
        "import sys, echo_hf.builder.steps\n"
        "print([m for m in sys.modules if m.startswith(('datasets', 'pyarrow', 'pydantic'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
