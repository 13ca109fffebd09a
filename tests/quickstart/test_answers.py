"""The recorded answers of the bundled posts agree with the gold."""

from __future__ import annotations

from pathlib import Path

from echo_hf.builder.gold.check import check_engine
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import register
from echo_hf.engines.recorded import RecordedEngine


def test_the_answers_agree_with_the_gold(tmp_path: Path) -> None:
    """By every measure of every stage, each answer is one that a careful reader could give."""
    register("written_down")(RecordedEngine)
    written = EngineChoice(kind="written_down", source="quickstart")
    found = check_engine(engine=written, half="all", runs=tmp_path)

    assert not [one for stage in found.stages for one in stage.failed]
    wrong = [one for one in found.measures if one.value != 1 or one.answered < one.asked]
    assert wrong == []
