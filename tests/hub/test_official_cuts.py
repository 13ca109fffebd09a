"""Images are cut as the authors' own loader cuts them, and what is missing has a reason."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.fetch import FetchResult
from echo_hf.hub.official import FetchedImages, boxes_of, inset_box
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Notice, Unfetched

SIDES = st.integers(-30, 150)
NOISE = np.random.default_rng(0).integers(0, 256, (80, 120, 3), dtype=np.uint8)


@pytest.fixture
def named(images: ImageStore) -> FetchedImages:
    """A screenshot of noise, `here`, and one that is `gone`."""
    sink = io.BytesIO()
    Image.fromarray(NOISE).save(sink, "PNG")
    digest = images.put(sink.getvalue())
    gone = FetchResult("g", None, Unfetched.GONE, "status 404")
    return FetchedImages(images, {"here": FetchResult("h", digest), "gone": gone})


def pixels(named: FetchedImages, digest: str | None) -> np.ndarray[Any, Any]:
    """A stored image as an array."""
    assert digest is not None
    return np.asarray(Image.open(io.BytesIO(named.store.open(digest))))


def test_ten_pixels_along_each_side_are_left_out(named: FetchedImages) -> None:
    """The pixels are those of the screenshot, clamped at its edge, in the order of the boxes."""
    boxes = [[10.0, 0.0, 70.9, 60.0], [50.0, 30.0, 500.0, 500.0]]
    first, second = named.shown(["here"], boxes)
    assert np.array_equal(pixels(named, first.digest), NOISE[10:50, 20:60])
    assert np.array_equal(pixels(named, second.digest), NOISE[40:80, 60:120])
    assert [each.position for each in (first, second)] == [0, 0]


def test_without_boxes_an_image_is_its_bytes(named: FetchedImages) -> None:
    """Nothing is encoded again."""
    for boxes in (None, []):
        (shown,) = named.shown(["here"], boxes)
        assert shown.digest == named.found["here"].sha256


def test_a_box_of_nothing_stands_for_nothing(named: FetchedImages) -> None:
    """It is left out, as in the authors' loader, and named; the other boxes stay."""
    empty, full = named.shown(["here"], [[0.0, 0.0, 20.0, 80.0], [0.0, 0.0, 60.0, 60.0]])
    assert (empty.reason, empty.has_place) == (Notice.DEGENERATE_BOX, False)
    assert "[0.0, 0.0, 20.0, 80.0] in 120 x 80" in empty.detail
    assert full.digest is not None


def test_what_is_gone_keeps_its_place(named: FetchedImages) -> None:
    """A null for each part of it, so that the others stay where they were."""
    boxes = [[0.0, 0.0, 60.0, 60.0], [10.0, 0.0, 70.0, 60.0]]
    shown = list(named.shown(["gone", "here"], boxes))
    assert [each.digest is None for each in shown] == [True, True, False, False]
    assert [each.position for each in shown] == [0, 0, 1, 1]
    assert {each.reason for each in shown[:2]} == {Unfetched.GONE}


def test_unreadable_boxes_give_no_image(named: FetchedImages) -> None:
    """The screenshot itself is not passed off as what is in it."""
    (shown,) = named.shown(["here"], "'x': expected a list of boxes")
    assert (shown.digest, shown.reason, shown.has_place) == (None, Notice.BAD_FIELD, True)


def test_embedded_images_are_taken_as_they_are(named: FetchedImages) -> None:
    """Bytes are stored unchanged; bytes that are no image are named."""
    data = named.store.open(named.found["here"].sha256 or "")
    good, bad, none = named.shown(
        [{"bytes": data, "path": "a.png"}, {"bytes": b"x", "path": None}, {"bytes": None}], None
    )
    assert good.digest == named.found["here"].sha256
    assert bad.reason == none.reason == Unfetched.UNDECODABLE


@given(st.tuples(SIDES, SIDES, SIDES, SIDES))
def test_a_cut_is_what_slicing_an_array_gives(box: tuple[int, int, int, int]) -> None:
    """For any box: the pixels whose coordinates lie in it, ten from each side, or none."""
    ys, xs = np.mgrid[:50, :100]
    left, top, right, bottom = box
    inside = (xs >= left + 10) & (xs < right - 10) & (ys >= top + 10) & (ys < bottom - 10)
    found = inset_box(box, (100, 50))
    if found is None:
        assert not inside.any()
    else:
        assert found == (
            xs[inside].min(),
            ys[inside].min(),
            xs[inside].max() + 1,
            ys[inside].max() + 1,
        )


@pytest.mark.parametrize(
    ("value", "boxes"),
    [
        (None, None),
        ("", None),
        ("null", None),
        ("[]", []),
        ([], []),
        ([[1, 2, 3, 4]], [[1.0, 2.0, 3.0, 4.0]]),
        ("[[1, 2.5, 3, 4]]", [[1.0, 2.5, 3.0, 4.0]]),
        ("[[1, 2", "expected a list of boxes"),
        ("3", "expected a list of boxes"),
        ([[1, 2, 3]], "expected four numbers"),
        ([["a", 2, 3, 4]], "expected a list of boxes"),
        ("[[NaN, 0, 1, 1]]", "expected finite numbers"),
    ],
)
def test_boxes_are_a_list_or_its_json(value: Any, boxes: Any) -> None:
    """Whatever else they are is said in words, with the value."""
    found = boxes_of(value)
    if isinstance(boxes, str):
        assert isinstance(found, str)
        assert boxes in found
        assert str(value)[:80] in found
    else:
        assert found == boxes
