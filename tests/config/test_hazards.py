"""The closed list of hazards."""

from __future__ import annotations

import json
import pickle

import pytest

from echo_hf.config.sections import NAMED, REMOVED, Hazard, in_order


def test_the_codes_are_those_of_llama_guard() -> None:
    """S1 to S14, in their order, and one more for what has no code."""
    assert [str(one) for one in Hazard] == [*(f"S{number}" for number in range(1, 15)), "unknown"]
    assert [*NAMED, Hazard.UNKNOWN] == [*Hazard]


def test_all_but_intellectual_property_are_removed() -> None:
    """A style is a question of licences."""
    assert set(NAMED) - set(REMOVED) == {Hazard("S8")}
    assert Hazard("S8").meaning == "intellectual property"


@pytest.mark.parametrize("hazard", Hazard)
def test_a_code_is_read_back_with_its_name(hazard: Hazard) -> None:
    """From a table, and by another process."""
    assert Hazard(hazard.value) is hazard
    assert pickle.loads(pickle.dumps(hazard)) is hazard  # noqa: S301 - our own bytes
    assert json.dumps(hazard) == f'"{hazard}"'
    assert hazard.meaning.strip() == hazard.meaning != ""


def test_names_are_told_apart() -> None:
    """No two codes have one name."""
    assert len({one.meaning for one in Hazard}) == len(Hazard)


def test_codes_stand_in_the_order_of_the_list() -> None:
    """Not in that of the alphabet, each once, the unknown one last."""
    given = [Hazard(code) for code in ("unknown", "S10", "S2", "S10", "S1")]
    assert in_order(given) == ["S1", "S2", "S10", "unknown"]
    assert in_order([]) == []
