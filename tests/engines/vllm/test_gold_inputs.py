"""Every stage on the gold input of the one before it: chained, random answers leave nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.builder.gold.check import check_engine
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_order import load_stage_class

# Warnings of the libraries that run the model; ours are errors in all other tests.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]
ASKING = [name for name in STAGES if issubclass(load_stage_class(name), ModelStage)]
# A random model may fill an answer until there is no room left; nothing else may go wrong.
BY_CHANCE = {"cut"}


def test_all_stages_are_answered_and_asked_once(tiny: Path, tmp_path: Path) -> None:
    choice = EngineChoice.model_validate(
        {
            "kind": "vllm",
            "model": str(tiny),
            "dtype": "float32",
            "max_model_len": 32_768,
            "max_num_seqs": 16,
            "limit_images": 16,
            "max_pixels": 100_352,
            "enforce_eager": True,
        }
    )
    first = check_engine(engine=choice, half="tune", runs=tmp_path)

    assert [one.stage for one in first.stages] == ASKING
    for one in first.stages:
        assert one.fill.calls > 0
        assert set(one.failed) <= BY_CHANCE
        assert sum(one.failed.values()) < one.fill.requests / 2
    again = check_engine(engine=choice, half="tune", runs=tmp_path)
    answered = {one.stage: one.fill.requests - sum(one.failed.values()) for one in first.stages}
    assert {one.stage: one.fill.store_hits for one in again.stages} == answered
