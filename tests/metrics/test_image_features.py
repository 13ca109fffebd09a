"""Looking at images in threads, what gets no number and why, and what is cached of inputs."""

from __future__ import annotations

import gc
import io
import threading
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from echo_hf.errors import ImageError, ScoreError, WeightsError
from echo_hf.images.loader import ImageNotice, load_rgb
from echo_hf.metrics import color_shift
from echo_hf.metrics.face_identity import Faces
from echo_hf.metrics.image_features import (
    FLAT_LEVELS,
    ITEMS_AHEAD_PER_THREAD,
    LOADERS,
    InputCache,
    MetricSample,
    SampleFeatures,
    extract,
    is_flat,
    map_in_order,
    pair_images,
    pair_prompts,
    reasons_of,
)
from echo_hf.metrics.result import MetricReason, Unmeasured
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import CUT, DEEP, SPECIAL, noise

GOOD, OTHER = (encoded(noise(seed), "PNG") for seed in (0, 1))
CARD = encoded(noise(8), "PNG")
SHEET = encoded(Image.new("RGB", (8, 8), "white"), "PNG")
CLEAR = encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG")


def _size(image: Image.Image) -> tuple[int, int]:
    return image.size


def _seen(inputs: list[Any], outputs: list[Any], **options: Any) -> list[SampleFeatures[Any]]:
    return list(extract(pair_images(inputs, outputs), _size, **options))


@pytest.mark.parametrize(
    ("given", "made", "reason", "detail"),
    [
        (GOOD, None, "missing_output", "output"),
        (GOOD, CUT, "bad_output truncated", "output: the file ends before the image does"),
        (GOOD, b"<html>not found</html>", "bad_output html", "output: "),
        (GOOD, Path("a.png"), "bad_output no_file", "output: the file does not exist or cannot be"),
        (GOOD, SHEET, "blank_output", "output"),
        (GOOD, CLEAR, "blank_output", "output"),
        (None, GOOD, "no_input", "input"),
        ([], GOOD, "no_input", ""),
        ([GOOD, None], OTHER, "no_input", "input 2"),
        ([GOOD, CUT], OTHER, "bad_input truncated", "input 2: the file ends before the image"),
        ([GOOD, SHEET], OTHER, "blank_input", "input 2"),
        (CUT, CUT, "bad_output truncated", "output: "),
    ],
)
def test_a_sample_is_measured_whole_or_not(given: Any, made: Any, reason: str, detail: str) -> None:
    (found,) = _seen([given], [made])
    why = found.unmeasured
    assert why is not None
    assert " ".join(filter(None, (why.reason, why.cause))) == reason
    assert why.detail.startswith(detail)


def test_inputs_are_looked_at_alone_when_asked() -> None:
    for lone, expected in ((False, ()), (True, ((10, 12),))):
        for made in (None, CUT, SHEET):
            (found,) = _seen([GOOD], [made], lone_inputs=lone)
            assert found.inputs == expected
            assert found.unmeasured is not None
            assert found.unmeasured.reason.value.endswith("_output")


@pytest.mark.parametrize(
    ("inputs", "outputs", "placeholders"),
    [
        ([GOOD, OTHER, noise(3)], [CARD, OTHER, CARD], [True, False, True]),
        ([GOOD, OTHER], [noise(7), noise(7)], [True, True]),
        ([[GOOD, OTHER], [OTHER, GOOD]], [noise(3)] * 2, [True, True]),
        # The same task may have the same output twice.
        ([GOOD, GOOD], [OTHER, OTHER], [False, False]),
        ([GOOD, OTHER], [GOOD, OTHER], [False, False]),
    ],
)
def test_a_card_that_several_tasks_got_is_no_output(
    inputs: list[Any], outputs: list[Any], placeholders: list[bool]
) -> None:
    reasons = reasons_of(_seen(inputs, outputs))
    card = Unmeasured(MetricReason.PLACEHOLDER)
    assert reasons == [card if one else None for one in placeholders]


def test_what_had_to_be_decided_on_loading_is_counted() -> None:
    half = encoded(noise(4).convert("RGBA").point(lambda level: level // 2), "PNG")
    deep = encoded(Image.fromarray(np.arange(0, 6400, 100, np.uint16).reshape(8, 8)), "PNG")
    found = color_shift([[half, half], deep, half], [OTHER, half, None])
    assert found.notices == {ImageNotice.SIXTEEN_BITS: 1, ImageNotice.TRANSPARENT: 3}


def test_threads_see_what_one_sees() -> None:
    shared = noise(9)
    inputs = [[GOOD, shared], shared, CUT, None, shared, GOOD] * 5
    outputs = [OTHER, SHEET, OTHER, OTHER, None, shared] * 5
    assert _seen(inputs, outputs, threads=5) == _seen(inputs, outputs, threads=1)


def test_outputs_of_prompts_are_seen_without_inputs() -> None:
    prompts, outputs = ["a", "b", "c", "a", "d", "e"], [GOOD, CARD, CARD, GOOD, None, CUT]
    found = list(extract(pair_prompts(prompts, outputs)[1], _size, threads=2))
    assert [one.output for one in found] == [(10, 12)] * 4 + [None] * 2
    assert [one and one.reason.value for one in reasons_of(found)] == [
        None, "placeholder", "placeholder", None, "missing_output", "bad_output"
    ]  # fmt: skip


def test_the_published_way_takes_numbers_as_they_stand() -> None:
    plain = {
        "turned by the camera": np.asarray(noise(0)),
        "Adobe RGB": np.asarray(noise(0)),
        "half transparent": np.asarray(noise(0)) // 2,
        "16 bits": np.minimum(DEEP, 255)[..., None].repeat(3, axis=2),
    }
    for name, data in SPECIAL.items():
        published, canonical = (np.asarray(LOADERS[one](data).image) for one in LOADERS)
        assert np.array_equal(published, plain[name])
        assert np.array_equal(canonical, np.asarray(load_rgb(data)))
        assert not np.array_equal(published, canonical)


def test_a_digest_is_that_of_the_bytes_or_of_the_pixels_in_memory(tmp_path: Path) -> None:
    data, other = SPECIAL["turned by the camera"], encoded(noise(0), "BMP")
    (tmp_path / "a.png").write_bytes(data)
    again = Image.fromarray(np.asarray(noise(3)).reshape(10, 12, 3))
    sources = [data, tmp_path / "a.png", other, noise(3), noise(3), noise(4), again]
    found = [one.digests[1] for one in _seen([GOOD] * 7, sources)]
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert len(set(found)) == 5


@pytest.mark.parametrize("protocol", LOADERS)
def test_one_unread_image_may_be_shared_by_threads(protocol: Any) -> None:
    data = encoded(noise(0, size=(300, 200)), "PNG")
    expected = LOADERS[protocol](data).image.tobytes()
    for _ in range(5):
        shared = Image.open(io.BytesIO(data))
        samples = pair_images([shared] * 8, [shared] * 8)
        found = list(extract(samples, lambda image: image.tobytes(), protocol=protocol, threads=8))
        assert {one.output for one in found} == {expected}
        assert len({digest for one in found for digest in one.digests}) == 1


@given(
    arrays(np.uint8, st.tuples(st.integers(2, 40), st.integers(2, 40), st.just(3)),
           elements=st.integers(100, 104), fill=st.just(101))
)  # fmt: skip
def test_a_sheet_has_no_channel_with_levels_far_apart(levels: NDArray[np.uint8]) -> None:
    widest = max(int(one.max()) - int(one.min()) for one in np.moveaxis(levels, -1, 0))
    assert is_flat(Image.fromarray(levels)) == (widest <= FLAT_LEVELS)


def test_only_a_few_items_are_taken_ahead() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = map_in_order(abs, items(), threads=3)
    for number in range(20):
        assert next(results) == number
        assert taken <= number + ITEMS_AHEAD_PER_THREAD * 3
    results.close()  # type: ignore[attr-defined]


def test_two_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)
    assert sorted(map_in_order(lambda _: both.wait(), [0, 0], threads=2)) == [0, 1]


def test_an_error_comes_where_its_result_would() -> None:
    before = threading.active_count()
    results = map_in_order(lambda number: 1 // number, [1, -1, 0, 1], threads=2)
    assert [next(results), next(results)] == [1, -1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert threading.active_count() == before


KEYS = st.tuples(st.sampled_from(["vit", "other"]), st.sampled_from([b"a", b"b", b"c", b"d"]))
KEPT: dict[str, Any] = {
    "similarities": np.zeros((4, 4), np.float32),
    "faces": Faces(np.zeros((4, 4), np.float32), np.zeros((4, 512), np.float32)),
}


def _filled(cache: InputCache, keys: list[tuple[str, bytes]], value: Any) -> int:
    for key in keys:
        cache.keep(key, value)
    return cache.kept_bytes


@pytest.mark.parametrize("kind", KEPT)
@given(st.lists(KEYS, max_size=20), st.integers(0, 7), st.integers(-1, 1))
def test_what_is_kept_is_the_first_that_fits(kind: str, keys: Any, rooms: int, more: int) -> None:
    value = KEPT[kind]
    each = _filled(InputCache(), [("vit", b"a")], value)
    most = max(0, rooms * each + more)
    cache = InputCache(most_bytes=most)
    expected = list(dict.fromkeys(keys))[: most // each]
    assert _filled(cache, keys, value) == each * len(expected) <= most
    assert {key for key in keys if cache.find(key) is not None} == set(expected)


def test_what_is_kept_holds_on_to_nothing_else() -> None:
    cache, boxes = InputCache(), np.zeros((9, 4), np.float32)
    cache.keep(("pack", b"a"), Faces(boxes[:1], boxes[2:3]))
    boxes += 1
    found = cache.find(("pack", b"a"))
    assert found is not None
    for array in (found.boxes, found.embeddings):
        assert array.base is None
        assert array.sum() == 0


class Network:
    """Stands for weights."""


def test_the_same_network_is_given_to_all_and_what_cannot_be_loaded_is_tried_once() -> None:
    cache: InputCache = InputCache(most_bytes=0)
    first, other, again = (cache.network(name, Network) for name in "aba")
    assert first is again is not other
    attempts: list[weakref.ref[Network]] = []

    def fail() -> Network:
        half = Network()
        attempts.append(weakref.ref(half))
        raise WeightsError("no such model")

    for _ in range(3):
        with pytest.raises(WeightsError, match=r"^no such model$"):
            cache.network("c", fail)
    gc.collect()
    (half,) = attempts
    assert half() is None


PNG = encoded(noise(0), "PNG")
JPEG = encoded(noise(1), "JPEG", quality=90)


def _dataset(**columns: list[Any]) -> datasets.Dataset:
    features = {
        name: datasets.List(datasets.Image())
        if any(isinstance(one, list) for one in values)
        else datasets.Image()
        for name, values in columns.items()
    }
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


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
    assert list(pair_images(given, given)) == [MetricSample((one,), one) for _, one in forms]
    found = pair_images([[PNG, None, "b.png"], (PNG,), []], [None] * 3)
    assert [sample.inputs for sample in found] == [(PNG, None, Path("b.png")), (PNG,), ()]


def test_a_column_of_a_dataset_gives_the_files_that_it_holds(tmp_path: Path) -> None:
    """A path in it is refused: the table may be a stranger's."""
    data = _dataset(
        inputs=[[{"bytes": PNG}, {"bytes": JPEG}], [], None],
        output=[{"bytes": JPEG}, {"bytes": b"\x89PNG\r\n\x1a\nbroken"}, None],
    )
    assert list(pair_images(data["inputs"], data["output"])) == [
        MetricSample((PNG, JPEG), JPEG),
        MetricSample((), b"\x89PNG\r\n\x1a\nbroken"),
        MetricSample((None,), None),
    ]
    path = tmp_path / "a.jpg"
    path.write_bytes(JPEG)
    named = _dataset(image=[{"bytes": PNG}, {"path": str(path)}])["image"]
    with pytest.raises(ImageError, match=r"row 1: an image holds '.*a\.jpg' in place of bytes"):
        list(pair_images(named, named))


@pytest.mark.parametrize("form", [None, "numpy"])
def test_rows_and_formats_of_a_dataset_do_not_matter(form: str | None) -> None:
    files = [encoded(noise(seed), "PNG") for seed in range(4)]
    data = _dataset(image=[{"bytes": one} for one in files]).select([3, 1]).with_format(form)
    found = pair_images(data["image"], data["image"])
    assert [sample.output for sample in found] == [files[3], files[1]]


def test_a_transform_of_the_users_decides_what_the_rows_are() -> None:
    data = _dataset(image=[{"bytes": PNG}])
    turned = data.with_transform(
        lambda rows: {"image": [one.transpose(Image.Transpose.ROTATE_180) for one in rows["image"]]}
    )
    (sample,) = pair_images(turned["image"], [None])
    (shown,) = sample.inputs
    assert np.array_equal(np.asarray(shown), np.asarray(noise(0))[::-1, ::-1])


def test_samples_are_taken_one_by_one() -> None:
    asked: list[str] = []

    def given(name: str) -> Iterable[bytes]:
        for _ in range(3):
            asked.append(name)
            yield PNG

    found = pair_images(given("input"), given("output"))
    next(found)
    assert asked == ["input", "output"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ([PNG, PNG], [PNG], "2 inputs and 1 outputs: expected one of each for a sample"),
        ([PNG, PNG], iter([PNG]), "outputs end after 1 samples: expected one for each sample"),
        (iter([]), iter([PNG]), "inputs end after 0 samples: expected one for each sample"),
        # An image in place of a list, and what is no image.
        *(
            ([], given, "outputs: .* is not one entry for each sample: expected a list")
            for given in ("a.png", PNG, Path("a.png"), noise(0), {"bytes": PNG}, None)
        ),
        ([PNG, DEEP], [PNG] * 2, r"inputs\[1\]: 'ndarray' is not an image: expected an image of "),
        ([[DEEP]], [PNG], r"inputs\[0\]: 'ndarray' is not an image"),
        ([PNG], [DEEP], r"outputs\[0\]: 'ndarray' is not an image"),
        # A whole row is no missing image.
        (
            [{"id": "s", "image": {"bytes": PNG}}],
            [PNG],
            r"inputs\[0\]: .*\['id', 'image'\] is not an",
        ),
    ],
)
def test_what_is_no_image_for_each_sample_is_refused(inputs: Any, outputs: Any, said: str) -> None:
    with pytest.raises(ScoreError, match=f"^{said}"):
        list(pair_images(inputs, outputs))


@pytest.mark.parametrize(
    ("prompts", "outputs", "said"),
    [
        ("a card", [None], "prompts: 'str' is not one entry for each sample"),
        ([None], [None], r"prompts\[0\]: 'NoneType' is not text"),
        (["a", "b"], [None], "2 prompts and 1 outputs: expected one of each for a sample"),
        (["a"], iter(()), "outputs end after 0 samples"),
    ],
)
def test_entries_are_prompts_and_images(prompts: Any, outputs: Any, said: str) -> None:
    with pytest.raises(ScoreError, match=said):
        list(pair_prompts(prompts, outputs)[1])


def test_equal_prompts_are_one_task() -> None:
    texts, samples = pair_prompts(["a", "b", "a", "\ud800"], [None] * 4)
    first, second, third, half = samples
    assert texts[3] == "\ud800"
    assert first == third == MetricSample((), None, first.task)
    assert len({first.task, second.task, half.task}) == 3
