"""Looking at images in threads, what gets no number and why, and what is cached of inputs."""

from __future__ import annotations

import gc
import io
import pickle
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.images.loader import load_image, load_rgb
from echo_hf.metrics import FaceCache, SimilarityCache
from echo_hf.metrics.face_identity import Faces
from echo_hf.metrics.image_features import (
    AHEAD,
    FLAT_LEVELS,
    LOADERS,
    InputCache,
    LoadedOnce,
    SampleFeatures,
    check_protocol,
    in_order,
    is_flat,
    notices_of,
    reasons_of,
    seen,
)
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.samples import prompted, samples_of
from echo_hf.reasons import BadImage, ImageNotice, MetricReason
from tests.images_for_tests import encoded, rgb_profile
from tests.metrics.images_for_metrics import noise

GOOD, OTHER = (encoded(noise(seed), "PNG") for seed in (0, 1))
CUT = encoded(noise(2, size=(200, 200)), "PNG")[:9000]
CARD = encoded(noise(8), "PNG")
SHEET = encoded(Image.new("RGB", (8, 8), "white"), "PNG")
CLEAR = encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG")


def _size(image: Image.Image) -> tuple[int, int]:
    return image.size


def _seen(
    inputs: list[Any], outputs: list[Any], **options: Any
) -> list[SampleFeatures[tuple[int, int]]]:
    return list(seen(samples_of(inputs, outputs), _size, load=load_image, **options))


def _reasons(inputs: list[Any], outputs: list[Any]) -> list[MetricReason | None]:
    return [one and one.reason for one in reasons_of(_seen(inputs, outputs))]


@pytest.mark.parametrize(
    ("given", "made", "reason", "cause"),
    [
        (GOOD, None, "missing_output", None),
        (GOOD, CUT, "bad_output", "truncated"),
        (GOOD, b"<html>not found</html>", "bad_output", "html"),
        (GOOD, Path("nowhere.png"), "bad_output", "no_file"),
        (GOOD, Image.new("RGB", (1, 1)), "bad_output", "too_small"),
        (GOOD, SHEET, "blank_output", None),
        (GOOD, CLEAR, "blank_output", None),
        (None, GOOD, "no_input", None),
        ([], GOOD, "no_input", None),
        ([GOOD, None], OTHER, "no_input", None),
        ([GOOD, CUT], OTHER, "bad_input", "truncated"),
        ([GOOD, SHEET], OTHER, "blank_input", None),
        (CUT, CUT, "bad_output", "truncated"),
    ],
)
def test_a_sample_is_measured_whole_or_not_at_all(
    given: Any, made: Any, reason: str, cause: str | None
) -> None:
    (found,) = _seen([given], [made])
    assert found.unmeasured is not None
    assert (found.unmeasured.reason, found.unmeasured.cause) == (reason, cause)
    assert isinstance(found.unmeasured.reason, MetricReason)
    assert cause is None or isinstance(found.unmeasured.cause, BadImage)


def test_the_detail_says_which_image_it_is() -> None:
    (cut,), (blank,), (path,) = (
        _seen([given], [made])
        for given, made in [([GOOD, CUT], OTHER), (GOOD, SHEET), (GOOD, Path("a.png"))]
    )
    assert cut.unmeasured == Unmeasured(
        MetricReason.BAD_INPUT,
        BadImage.TRUNCATED,
        "input 2: the file ends before the image does (9000 bytes: fetch it again)",
    )
    assert blank.unmeasured == Unmeasured(MetricReason.BLANK_OUTPUT, None, "output")
    assert path.unmeasured is not None
    assert path.unmeasured.detail.startswith("output: the file does not exist or cannot be read")


def test_inputs_are_looked_at_alone_when_asked() -> None:
    for lone, expected in ((False, ()), (True, ((10, 12),))):
        for made in (None, CUT, SHEET):
            (found,) = _seen([GOOD], [made], lone_inputs=lone)
            assert found.inputs == expected
            assert found.unmeasured is not None
            assert found.unmeasured.reason.value.endswith("_output")


def test_a_card_that_several_tasks_got_is_no_output() -> None:
    card, card_again = noise(7), noise(7)
    assert _reasons([GOOD, OTHER, noise(3)], [CARD, OTHER, CARD]) == [
        MetricReason.PLACEHOLDER,
        None,
        MetricReason.PLACEHOLDER,
    ]
    assert _reasons([GOOD, OTHER], [card, card_again]) == [MetricReason.PLACEHOLDER] * 2


def test_the_same_task_may_have_the_same_output_twice() -> None:
    assert _reasons([GOOD, GOOD], [OTHER, OTHER]) == [None, None]
    assert _reasons([GOOD, OTHER], [GOOD, OTHER]) == [None, None]
    assert (
        _reasons([[GOOD, OTHER], [OTHER, GOOD]], [noise(3)] * 2) == [MetricReason.PLACEHOLDER] * 2
    )


def test_what_had_to_be_decided_on_loading_is_counted() -> None:
    half = encoded(noise(4).convert("RGBA").point(lambda level: level // 2), "PNG")
    deep = encoded(Image.fromarray(np.arange(0, 6400, 100, np.uint16).reshape(8, 8)), "PNG")
    found = _seen([[half, half], deep, half], [OTHER, half, None])
    assert notices_of(found) == {ImageNotice.SIXTEEN_BITS: 1, ImageNotice.TRANSPARENT: 3}


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_see_what_one_sees(threads: int) -> None:
    shared = noise(9)
    inputs = [[GOOD, shared], shared, CUT, None, shared, GOOD] * 5
    outputs = [OTHER, SHEET, OTHER, OTHER, None, shared] * 5
    assert _seen(inputs, outputs, threads=threads) == _seen(inputs, outputs, threads=1)


def test_outputs_of_prompts_are_seen_without_inputs() -> None:
    prompts, outputs = ["a", "b", "c", "a", "d", "e"], [GOOD, CARD, CARD, GOOD, None, CUT]
    found = list(seen(prompted(prompts, outputs)[1], _size, load=load_image, threads=2))
    assert [one.output for one in found] == [(10, 12)] * 4 + [None] * 2
    assert [one and one.reason.value for one in reasons_of(found)] == [
        None, "placeholder", "placeholder", None, "missing_output", "bad_output"
    ]  # fmt: skip


def _exif(turn: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = turn
    return exif


FULL = np.random.default_rng(1).integers(0, 65_536, (8, 6), dtype=np.uint16)
SPECIAL = {
    "turned": encoded(noise(0), "PNG", exif=_exif(6)),
    "profile": encoded(noise(0), "PNG", icc_profile=rgb_profile("adobe", 2.2)),
    "transparent": encoded(Image.new("RGBA", (4, 4), (200, 10, 30, 0)), "PNG"),
    "16 bits": encoded(Image.fromarray(FULL), "PNG"),
}
PLAIN = {
    "turned": np.asarray(noise(0)),
    "profile": np.asarray(noise(0)),
    "transparent": np.full((4, 4, 3), (200, 10, 30)),
    "16 bits": np.minimum(FULL, 255)[..., None].repeat(3, axis=2),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_the_published_way_takes_numbers_as_they_stand(name: str) -> None:
    plain, canonical = (np.asarray(LOADERS[one](SPECIAL[name]).image) for one in LOADERS)
    assert np.array_equal(plain, PLAIN[name])
    assert np.array_equal(canonical, np.asarray(load_rgb(SPECIAL[name])))
    assert not np.array_equal(plain, canonical)


def test_a_digest_is_that_of_the_bytes_or_of_the_pixels_in_memory(tmp_path: Path) -> None:
    data, other = SPECIAL["turned"], encoded(noise(0), "BMP")
    (tmp_path / "a.png").write_bytes(data)
    again = Image.fromarray(np.asarray(noise(3)).reshape(10, 12, 3))
    sources = [data, tmp_path / "a.png", other, noise(3), noise(3), noise(4), again]
    found = [one.digests[1] for one in _seen([GOOD] * 7, sources)]
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert len(set(found)) == 5


@pytest.mark.parametrize("load", list(LOADERS.values()), ids=list(LOADERS))
def test_one_unread_image_may_be_shared_by_threads(load: Any) -> None:
    data = encoded(noise(0, size=(300, 200)), "PNG", exif=_exif(6))
    expected = load(data).image.tobytes()
    for _ in range(20):
        shared = Image.open(io.BytesIO(data))
        samples = samples_of([shared] * 8, [shared] * 8)
        found = list(seen(samples, lambda image: image.tobytes(), load=load, threads=8))
        assert {one.output for one in found} == {expected}
        assert len({digest for one in found for digest in one.digests}) == 1


def test_a_protocol_has_a_name() -> None:
    check_protocol("published")
    with pytest.raises(ScoreError, match="unknown protocol 'publised'; did you mean 'published'"):
        check_protocol("publised")  # type: ignore[arg-type]


DIGESTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""])))


@given(
    arrays(np.uint8, st.tuples(st.integers(2, 40), st.integers(2, 40), st.just(3)),
           elements=st.integers(100, 104), fill=st.just(101))
)  # fmt: skip
def test_a_sheet_has_no_channel_with_levels_far_apart(levels: NDArray[np.uint8]) -> None:
    widest = max(int(one.max()) - int(one.min()) for one in np.moveaxis(levels, -1, 0))
    assert is_flat(Image.fromarray(levels)) == (widest <= FLAT_LEVELS)


@given(DIGESTS)
def test_placeholders_are_outputs_with_two_kinds_of_inputs(digests: list[tuple[str, str]]) -> None:
    expected = {
        at
        for at, (inputs, output) in enumerate(digests)
        if output and any(output == other and inputs != its for its, other in digests)
    }
    samples: list[SampleFeatures[int]] = [SampleFeatures(digests=one) for one in digests]
    reasons = enumerate(reasons_of(samples))
    assert {at for at, one in reasons if one == Unmeasured(MetricReason.PLACEHOLDER)} == expected


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_results_come_in_the_order_of_the_items(threads: int | None) -> None:
    def slow_when_even(number: int) -> int:
        time.sleep(0.002 if number % 2 == 0 else 0)
        return -number

    assert list(in_order(slow_when_even, range(40), threads=threads)) == [-n for n in range(40)]


def test_only_a_few_items_are_taken_ahead() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = in_order(abs, items(), threads=3)
    for number in range(20):
        assert next(results) == number
        assert taken <= number + AHEAD * 3
    results.close()  # type: ignore[attr-defined]


def test_two_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)
    assert sorted(in_order(lambda _: both.wait(), [0, 0], threads=2)) == [0, 1]


def test_an_error_comes_where_its_result_would() -> None:
    before = threading.active_count()
    results = in_order(lambda number: 1 // number, [1, -1, 0, 1], threads=2)
    assert [next(results), next(results)] == [1, -1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_are_a_number(threads: object) -> None:
    with pytest.raises(ScoreError, match=r"threads is .*: expected a whole number from 1, or null"):
        list(in_order(abs, [1], threads=threads))  # type: ignore[arg-type]


KEYS = st.tuples(st.sampled_from(["vit", "other"]), st.sampled_from([b"a", b"b", b"c", b"d"]))
Cache = InputCache[Any, Any]


def _faces(count: int, failed: str = "") -> Faces:
    boxes, embeddings = (np.zeros((count, wide), np.float32) for wide in (4, 512))
    return Faces(boxes, embeddings, failed)


def _similarity(tokens: int) -> Any:
    return np.zeros((tokens, tokens), np.float32)


CACHES: dict[str, tuple[Any, Any]] = {
    "similarities": (SimilarityCache, _similarity),
    "faces": (FaceCache, _faces),
}


def _filled(cache: Cache, keys: list[tuple[str, bytes]], value: Any) -> int:
    for key in keys:
        cache.keep(key, value)
    return cache.kept_bytes


@pytest.mark.parametrize("kind", CACHES)
@given(st.lists(KEYS, max_size=20), st.integers(0, 7), st.integers(-1, 1))
def test_what_is_kept_is_the_first_that_fits(
    kind: str, keys: list[tuple[str, bytes]], rooms: int, more: int
) -> None:
    make, value_of = CACHES[kind]
    value = value_of(4)
    each = _filled(make(), [("vit", b"a")], value)
    most = max(0, rooms * each + more)
    cache = make(most_bytes=most)
    expected = list(dict.fromkeys(keys))[: most // each]
    assert _filled(cache, keys, value) == each * len(expected) <= most
    assert len(cache) == len(expected)
    for key in keys:
        assert (cache.find(key) is not None) == (key in expected)


def test_what_is_kept_holds_on_to_nothing_else() -> None:
    similarities, faces = SimilarityCache(), FaceCache()
    batch, boxes = np.zeros((8, 4, 4), np.float32), np.zeros((9, 4), np.float32)
    similarities.keep(("vit", b"a"), batch[3])
    faces.keep(("pack", b"a"), Faces(boxes[:1], boxes[2:3]))
    batch += 1
    boxes += 1
    kept, found = similarities.find(("vit", b"a")), faces.find(("pack", b"a"))
    assert kept is not None
    assert found is not None
    for array in (kept, found.boxes, found.embeddings):
        assert array.base is None
        assert array.sum() == 0


@pytest.mark.parametrize("kind", CACHES)
def test_a_copy_for_another_process_is_empty(kind: str) -> None:
    make, value_of = CACHES[kind]
    each = _filled(make(), [("vit", b"a")], value_of(4))
    cache = make(most_bytes=2 * each)
    _filled(cache, [("vit", b"a")], value_of(4))
    copy = pickle.loads(pickle.dumps(cache))  # noqa: S301 - what was just written
    assert (type(copy), len(copy), copy.kept_bytes) == (make, 0, 0)
    assert _filled(copy, [("vit", b"%d" % at) for at in range(3)], value_of(4)) == 2 * each


@pytest.mark.parametrize("make", [SimilarityCache, FaceCache])
@pytest.mark.parametrize("most", [-1, 1.5, "1 GB", None])
def test_a_bound_is_a_number_of_bytes(make: Any, most: object) -> None:
    with pytest.raises(ScoreError, match=r"^most_bytes is .*: expected a whole number from 0$"):
        make(most_bytes=most)


class Network:
    """Stands for weights."""


def test_the_same_network_is_given_to_all() -> None:
    networks: LoadedOnce[Network] = LoadedOnce()
    loads: list[str] = []

    def load(name: str) -> Network:
        loads.append(name)
        return Network()

    given = [networks.get(name, lambda name=name: load(name)) for name in "aabab"]  # type: ignore[misc]
    assert loads == ["a", "b"]
    assert len({id(one) for one in given}) == 2
    assert given[0] is given[3]


def test_what_cannot_be_loaded_is_tried_once() -> None:
    networks: LoadedOnce[Network] = LoadedOnce()
    attempts: list[weakref.ref[Network]] = []

    def fail() -> Network:
        half = Network()
        attempts.append(weakref.ref(half))
        try:
            raise ConnectionError("no route")
        except ConnectionError as error:
            raise ScoreError("not a model 'a'") from error

    for _ in range(3):
        with pytest.raises(ScoreError, match=r"^not a model 'a'$") as caught:
            networks.get("a", fail)
        assert isinstance(caught.value.__cause__, ConnectionError)
    del caught
    gc.collect()
    assert len(attempts) == 1
    assert attempts[0]() is None


def test_few_are_kept_and_all_go_at_last() -> None:
    networks: LoadedOnce[Network] = LoadedOnce()
    held = {name: weakref.ref(networks.get(name, Network)) for name in "ab"}
    networks.get("a", Network)
    held["c"] = weakref.ref(networks.get("c", Network))
    gc.collect()
    assert {name for name, one in held.items() if one() is not None} == {"a", "c"}
    del networks
    gc.collect()
    assert {one() for one in held.values()} == {None}
