"""What every system that is asked over the network has in common."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from echo_hf.engines.server import ApiKey
from echo_hf.reasons import Outcome
from echo_hf.systems.base import Drawn
from echo_hf.systems.hosted import one_line, without_key
from tests.systems.drawing_for_tests import KEY

HELD = ApiKey(SecretStr(KEY))


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
