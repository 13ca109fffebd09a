"""The forms in which images and prompts are given, and how they are paired with outputs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, Features, Image, List
from PIL import Image as Pillow

from echo_hf.errors import ScoreError
from echo_hf.metrics.image_features import MetricSample, prompted, samples_of
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import noise

PNG = encoded(noise(0), "PNG")
OTHER = encoded(noise(1), "JPEG", quality=90)


def _columns(**columns: list[Any]) -> Dataset:
    features = {
        name: List(Image()) if any(isinstance(one, list) for one in values) else Image()
        for name, values in columns.items()
    }
    return Dataset.from_dict(columns, features=Features(features))


def test_each_form_of_an_image_is_taken(tmp_path: Path) -> None:
    image, path = noise(0), tmp_path / "a.png"
    forms = [
        (image, image),
        (PNG, PNG),
        (bytearray(PNG), PNG),
        (memoryview(PNG), PNG),
        (path, path),
        (str(path), path),
        ({"bytes": PNG, "path": "elsewhere.png"}, PNG),
        ({"bytes": None, "path": str(path)}, path),
        ({"bytes": None, "path": None}, None),
        (None, None),
    ]
    given = [form for form, _ in forms]
    assert list(samples_of(given, given)) == [MetricSample((one,), one) for _, one in forms]


def test_a_sample_may_have_several_inputs_or_none() -> None:
    found = samples_of([[PNG, None, "b.png"], (PNG,), []], [PNG, None, PNG])
    assert [sample.inputs for sample in found] == [(PNG, None, Path("b.png")), (PNG,), ()]


def test_a_column_of_a_dataset_gives_the_files_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(OTHER)
    data = _columns(
        inputs=[[{"bytes": PNG}, {"path": str(path)}], [], None],
        output=[{"bytes": OTHER}, {"bytes": b"\x89PNG\r\n\x1a\nbroken"}, None],
    )
    assert list(samples_of(data["inputs"], data["output"])) == [
        MetricSample((PNG, path), OTHER),
        MetricSample((), b"\x89PNG\r\n\x1a\nbroken"),
        MetricSample((None,), None),
    ]


@pytest.mark.parametrize("form", [None, "numpy", "python"])
def test_rows_and_formats_of_a_dataset_do_not_matter(form: str | None) -> None:
    files = [encoded(noise(seed), "PNG") for seed in range(4)]
    data = _columns(image=[{"bytes": one} for one in files]).select([3, 1]).with_format(form)
    found = samples_of(data["image"], data["image"])
    assert [sample.output for sample in found] == [files[3], files[1]]


def test_a_transform_of_the_users_decides_what_the_rows_are() -> None:
    data = _columns(image=[{"bytes": PNG}])
    turned = data.with_transform(
        lambda rows: {
            "image": [one.transpose(Pillow.Transpose.ROTATE_180) for one in rows["image"]]
        }
    )
    (sample,) = samples_of(turned["image"], [None])
    (shown,) = sample.inputs
    assert np.array_equal(np.asarray(shown), np.asarray(noise(0))[::-1, ::-1])


def test_samples_are_taken_one_by_one() -> None:
    asked: list[str] = []

    def given(name: str) -> Iterable[bytes]:
        for _ in range(3):
            asked.append(name)
            yield PNG

    found = samples_of(given("input"), given("output"))
    next(found)
    assert asked == ["input", "output"]


@pytest.mark.parametrize("as_generator", [False, True])
@pytest.mark.parametrize(("inputs", "outputs"), [(2, 3), (3, 2), (0, 1)])
def test_both_sides_have_one_entry_for_each_sample(
    inputs: int, outputs: int, as_generator: bool
) -> None:
    sides = [[PNG] * inputs, [PNG] * outputs]
    says = f"{inputs} inputs and {outputs} outputs"
    if as_generator:
        sides = [(one for one in side) for side in sides]  # type: ignore[misc]
        fewer = "inputs" if inputs < outputs else "outputs"
        says = f"{fewer} end after {min(inputs, outputs)} samples"
    with pytest.raises(ScoreError, match=f"^{says}.*: expected one"):
        list(samples_of(*sides))


@pytest.mark.parametrize("given", ["a.png", PNG, Path("a.png"), noise(0), {"bytes": PNG}, None, 3])
def test_an_image_in_place_of_a_list_is_refused(given: Any) -> None:
    for side in ("inputs", "outputs"):
        sides = {"inputs": [], "outputs": [], side: given}
        expected = rf"^{side}: '\w+' is not one entry for each sample: expected a list"
        with pytest.raises(ScoreError, match=expected):
            samples_of(**sides)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *((one, r"'\w+' is not an") for one in (3.5, np.zeros((2, 2, 3), np.uint8), {1}, object())),
        ({}, r"a dict with the keys \[\] is not an"),  # a whole row is no missing image
        ({"id": "s", "image": {"bytes": PNG}}, r"a dict with the keys \['id', 'image'\] is not an"),
    ],
)
def test_what_is_no_image_is_refused_and_named(given: Any, said: str) -> None:
    for place, sides in (
        (r"inputs\[1\]", ([PNG, given], [PNG, PNG])),
        (r"inputs\[0\]", ([[given]], [PNG])),
        (r"outputs\[0\]", ([PNG], [given])),
    ):
        with pytest.raises(ScoreError, match=rf"^{place}: {said} image: expected an image of .*$"):
            list(samples_of(*sides))


TEAL = encoded(Pillow.new("RGB", (4, 4), "teal"), "PNG")


@pytest.mark.parametrize(
    ("prompts", "outputs", "message"),
    [
        ("a card", [None], "prompts: 'str' is not one entry for each sample"),
        (7, [None], "prompts: 'int' is not one entry for each sample"),
        ([None], [None], r"prompts\[0\]: 'NoneType' is not text"),
        (["a", "b"], [None], "2 prompts and 1 outputs: expected one of each for a sample"),
        (["a"], [3], r"outputs\[0\]: 'int' is not an image"),
        (["a"], iter(()), "outputs end after 0 samples"),
        (["a"], iter((TEAL, TEAL)), "inputs end after 1 samples"),
        (["a"], TEAL, "outputs: 'bytes' is not one entry for each sample"),
    ],
)
def test_entries_are_prompts_and_images(prompts: Any, outputs: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        list(prompted(prompts, outputs)[1])


def test_equal_prompts_are_one_task() -> None:
    texts, samples = prompted(["a", "b", "a", "\ud800"], [None] * 4)
    first, second, third, half = samples
    assert texts[3] == "\ud800"
    assert first == third == MetricSample((), None, first.task)
    assert len({first.task, second.task, half.task}) == 3
