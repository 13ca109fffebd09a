"""What every system that is asked over the network has in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from echo_hf.engines.base import ImageRef
from echo_hf.engines.openai.server import ApiKey
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.hosted import HostedOptions, one_line, unfit, without_key
from tests.systems.drawing_for_tests import KEY, task

HELD = ApiKey(SecretStr(KEY))


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 6))
def test_a_task_fits_between_the_two_numbers(fewest: int, more: int, number: int) -> None:
    """Both included; anything else is unsupported, and says how many there are."""
    options = HostedOptions(
        base_url="http://127.0.0.1",
        api_key_env=None,
        fewest_inputs=fewest,
        most_inputs=fewest + more,
    )
    drawn = unfit(task(*[ImageRef("0" * 64)] * number), options)
    assert (drawn is None) is (fewest <= number <= fewest + more)
    if drawn is not None:
        assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert f"has {number} input pictures" in (drawn.text or "")


@pytest.mark.parametrize("name", ["code", "text", "revised_prompt", "model_reported"])
def test_no_text_of_an_outcome_holds_the_key(name: str) -> None:
    """Nor does it end the row that it stands in: half characters are replaced."""
    drawn = Drawn(Outcome.FAILED, **{name: f"a {KEY} \ud83e"})
    assert getattr(without_key(drawn, HELD), name) == "a (key) ?"


def test_no_detail_holds_the_key() -> None:
    """However deep it is."""
    drawn = Drawn(Outcome.FAILED, details={"a": [{KEY: f"x{KEY}"}], "n": 1.5, "none": None})
    assert without_key(drawn, HELD).details == {"a": [{"(key)": "x(key)"}], "n": 1.5, "none": None}


def test_a_message_is_one_line_without_the_key() -> None:
    """Whatever a server puts into it."""
    assert one_line(f"a\n\t{KEY}  b ", HELD) == "a (key) b"
