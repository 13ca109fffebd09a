"""What a config may say about the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import make_engine
from echo_hf.engines.transformers_model import checked
from echo_hf.errors import EngineError

MODEL = "Qwen/Qwen2.5-VL-3B-Instruct"


def _refused(**options: Any) -> str:
    with pytest.raises(EngineError) as caught:
        checked(options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_defaults() -> None:
    """The likeliest answer, images of up to 1280 patches of 28 x 28, the model's own type."""
    options = checked({"model": MODEL})
    assert (options.temperature, options.top_p, options.seed) == (0.0, 1.0, 0)
    assert (options.min_pixels, options.max_pixels) == (None, 1_003_520)
    assert (options.dtype, options.revision, options.structured) == ("auto", None, "auto")


def test_a_model_must_be_named() -> None:
    """There is no default model."""
    assert _refused().startswith("engine 'transformers': model is missing")


def test_an_unknown_option_is_told_with_the_nearest() -> None:
    """One line with the option and the name that was probably meant."""
    message = _refused(model=MODEL, max_pixel=9)
    assert "unknown key 'max_pixel'; did you mean 'max_pixels'?" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", ""),
        ("model", None),
        ("batch_size", 0),
        ("batch_size", 2.0),
        ("batch_size", True),
        ("batch_size", "8"),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", True),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("seed", "1"),
        ("dtype", "float8"),
        ("structured", True),
        ("max_pixels", 0),
        ("min_pixels", -1),
        ("chat_template", "no_such_file.jinja"),
        ("chat_template_kwargs", [1]),
    ],
)
def test_a_bad_value_is_told(name: str, value: object) -> None:
    """One line with the option and its value."""
    message = _refused(**{"model": MODEL, name: value})
    assert message.startswith(f"engine 'transformers': {name} is {value!r}: ")


def test_a_whole_number_is_a_temperature() -> None:
    """As people write it in a config: 0, not 0.0."""
    assert checked({"model": MODEL, "temperature": 0}).temperature == 0.0


def test_code_from_the_hub_is_no_option() -> None:
    """Nothing in a config lets a model bring its own code."""
    assert "unknown key 'trust_remote_code'" in _refused(model=MODEL, trust_remote_code=True)


def test_an_unknown_family_is_told_with_the_nearest() -> None:
    """One line with the families that are known."""
    message = _refused(model=MODEL, family="qwen2.5-vl")
    assert message.startswith("engine 'transformers': unknown family 'qwen2.5-vl'; did you mean ")


def test_a_budget_that_no_image_meets_is_told() -> None:
    """It is noticed before a model is loaded."""
    assert "min_pixels 9000 and max_pixels 8000" in _refused(
        model=MODEL, min_pixels=9000, max_pixels=8000
    )


def test_the_engine_is_made_by_its_name(tmp_path: Path) -> None:
    """A config's other keys are its options; neither the model nor the network is needed."""
    engine = make_engine("transformers", model=str(tmp_path / "none"), batch_size=3)
    assert engine.stored
    with pytest.raises(EngineError, match="batch_size is 0"):
        make_engine("transformers", model=MODEL, batch_size=0)
