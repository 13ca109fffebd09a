"""Which model follows whose rule, and within which budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.engines.checkpoint import FAMILIES, Budget, budget_of, family_of
from echo_hf.errors import EngineError


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("Qwen/Qwen2.5-VL-3B-Instruct", "qwen2_5_vl"),
        ("Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "qwen2_5_vl"),
        ("unsloth/qwen2.5-vl-7b-instruct-bnb-4bit", "qwen2_5_vl"),
        ("Qwen/Qwen2-VL-7B-Instruct", "qwen2_vl"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "qwen3_vl"),
        ("Qwen/Qwen3.5-27B", "qwen3_vl"),
        ("qwen2_vl", "qwen2_vl"),
        ("qwen2_5_vl", "qwen2_5_vl"),
        ("qwen3_vl", "qwen3_vl"),
        ("qwen3_vl_moe", "qwen3_vl"),
        ("qwen3_5", "qwen3_vl"),
        ("qwen3_5_moe", "qwen3_vl"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("Qwen/Qwen3-32B", None),
        ("Qwen/Qwen-VL-Chat", None),
        ("meta-llama/Llama-Guard-4-12B", None),
        ("llama4", None),
        ("llava", None),
        ("gpt-4o-2024-11-20", None),
        ("", None),
    ],
)
def test_a_family_is_told_by_name_or_type(model: str, family: str | None) -> None:
    """Names on the Hub, those of copies, and the types in configurations; others are nobody's."""
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("model_type", "family"), [("qwen2_5_vl", "qwen2_5_vl"), ("gemma3", None), (None, None)]
)
def test_a_folder_is_told_by_its_configuration(
    tmp_path: Path, model_type: str | None, family: str | None
) -> None:
    """What the folder is called does not matter, even where it is called like another model."""
    folder = tmp_path / "Qwen3-VL-finetuned"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    assert family_of(str(folder)) == family


@pytest.mark.parametrize("text", ["{", "[]", "\x80"])
def test_a_configuration_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    """One line with the file; nothing is guessed from its name."""
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(EngineError) as caught:
        family_of(str(tmp_path))
    assert str(caught.value).startswith(f"cannot read {str(tmp_path / 'config.json')!r}: ")
    assert "\n" not in str(caught.value)


def test_the_families_own_budgets() -> None:
    """What the published checkpoints' preprocessor settings say, in pixels."""
    assert {name: (own.min_pixels, own.max_pixels) for name, own in FAMILIES.items()} == {
        "qwen2_vl": (3136, 12_845_056),
        "qwen2_5_vl": (3136, 12_845_056),
        "qwen3_vl": (65_536, 16_777_216),
    }


def test_what_is_asked_for_replaces_the_familys_own() -> None:
    """Each bound by itself; without a family there is no bound but those asked for."""
    assert budget_of("qwen2_5_vl") == Budget(28, 3136, 12_845_056)
    assert budget_of("qwen2_5_vl", max_pixels=602_112) == Budget(28, 3136, 602_112)
    assert budget_of("qwen3_vl", min_pixels=4096) == Budget(32, 4096, 16_777_216)
    assert budget_of(None) == Budget(1, 1, None)
    assert budget_of(None, max_pixels=5) == Budget(1, 1, 5)


@pytest.mark.parametrize(
    ("family", "least", "most"),
    [
        ("qwen2_5_vl", 0, None),
        ("qwen2_5_vl", None, 3135),
        ("qwen2_5_vl", 100, 783),
        ("qwen3_vl", 16_777_217, None),
        (None, 6, 5),
        (None, None, 0),
        (None, -1, None),
    ],
)
def test_a_budget_that_no_image_meets_is_told(
    family: str | None, least: int | None, most: int | None
) -> None:
    """One line with both bounds."""
    with pytest.raises(EngineError, match=r"^no image has min_pixels -?\d+ and max_pixels \S+:"):
        budget_of(family, least, most)


def test_an_unknown_family_is_told_with_the_nearest() -> None:
    """One line with the families that are known."""
    with pytest.raises(EngineError) as caught:
        budget_of("qwen25_vl")
    assert str(caught.value) == (
        "unknown family 'qwen25_vl'; did you mean 'qwen2_5_vl'? "
        "known: qwen2_5_vl, qwen2_vl, qwen3_vl"
    )
