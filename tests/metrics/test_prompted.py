"""Prompts and outputs in the forms in which users have them."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset, Features, Image, Value
from PIL import Image as Pillow

from echo_hf.errors import ScoreError
from echo_hf.metrics.samples import prompted
from tests.images_for_tests import encoded

PNG = encoded(Pillow.new("RGB", (4, 4), "teal"), "PNG")


@pytest.mark.parametrize(
    ("prompts", "outputs", "message"),
    [
        ("a card", [None], "prompts: 'str' is not one entry for each sample"),
        (7, [None], "prompts: 'int' is not one entry for each sample"),
        ([None], [None], r"prompts\[0\]: 'NoneType' is not text"),
        (["a", "b"], [None], "2 prompts and 1 outputs: expected one of each for a sample"),
        (["a"], [3], r"outputs\[0\]: 'int' is not an image"),
        (["a"], iter(()), "outputs end after 0 samples"),
        (["a"], iter((PNG, PNG)), "inputs end after 1 samples"),
        (["a"], PNG, "outputs: 'bytes' is not one entry for each sample"),
    ],
)
def test_entries_are_prompts_and_images(prompts: Any, outputs: Any, message: str) -> None:
    """One of each for a sample; what is wrong is named with its place."""
    with pytest.raises(ScoreError, match=message):
        list(prompted(prompts, outputs)[1])


def test_equal_prompts_have_one_digest() -> None:
    """And half characters are no error."""
    texts, pairs = prompted(["a", "b", "a", "\ud800"], [None] * 4)
    first, second, third, _ = (digest for digest, _ in pairs)
    assert texts[3] == "\ud800"
    assert first == third != second


def test_columns_of_a_dataset_are_taken() -> None:
    """Images as the files that they are, so that a broken one stops nothing."""
    data = Dataset.from_dict(
        {"prompt": ["a", "b", "c"], "output": [{"bytes": PNG}, {"bytes": b"broken"}, None]},
        features=Features({"prompt": Value("string"), "output": Image()}),
    )
    texts, pairs = prompted(data["prompt"], data["output"])
    assert texts == ["a", "b", "c"]
    assert [output for _, output in pairs] == [PNG, b"broken", None]
