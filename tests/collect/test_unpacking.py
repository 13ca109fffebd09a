"""Bodies that come piece by piece."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.network import Body
from echo_hf.images.decode import BadImageError
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded, noise

IMAGE = encoded(noise((64, 64)), "PNG")
ENDLESS = IMAGE[:64] + bytes(64 * 1024 * 1024)
PACKERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _refused(encoding: str | None, data: bytes, most: int, size: int = 4096) -> BadImageError:
    with pytest.raises(BadImageError) as caught:
        _whole(encoding, data, most, size)
    return caught.value


def _whole(encoding: str | None, data: bytes, most: int, size: int) -> bytes:
    body = Body(encoding, most)
    for piece in _pieces(data, size):
        body.add(piece)
    return body.whole()


@given(st.sampled_from([None, "", "identity", " GZIP ", *PACKERS]), st.integers(1, 9000))
def test_an_image_comes_out_as_its_bytes(encoding: str | None, size: int) -> None:
    """However it is packed and cut into pieces."""
    packed = PACKERS.get((encoding or "").strip().lower(), bytes)(IMAGE)
    assert _whole(encoding, packed, len(packed) + len(IMAGE), size) == IMAGE


def test_the_limit_is_exact() -> None:
    """As many bytes as allowed pass, one more does not."""
    assert _whole(None, IMAGE, len(IMAGE), 1000) == IMAGE
    assert _refused(None, IMAGE, len(IMAGE) - 1).reason is BadImage.TOO_MANY_BYTES
    assert _refused("gzip", gzip.compress(IMAGE), len(IMAGE) - 1).reason is (
        BadImage.TOO_MANY_BYTES
    )


def test_a_bomb_is_unpacked_no_further_than_the_limit() -> None:
    """64 KB that would become 64 MB take about as much memory as is allowed."""
    packed, most = gzip.compress(ENDLESS), 100_000
    assert len(packed) < 80_000
    tracemalloc.start()
    try:
        assert _refused("gzip", packed, most, len(packed)).reason is BadImage.TOO_MANY_BYTES
        assert tracemalloc.get_traced_memory()[1] < 10 * most
    finally:
        tracemalloc.stop()


def test_packed_data_that_unpacks_to_nothing_has_a_limit_too() -> None:
    """What follows the end of the packed data is counted as it comes."""
    packed = gzip.compress(IMAGE) + bytes(50_000)
    assert _refused("gzip", packed, 20_000).reason is BadImage.TOO_MANY_BYTES


@pytest.mark.parametrize(
    ("encoding", "data", "reason"),
    [
        ("br", IMAGE, BadImage.DAMAGED),
        ("gzip, gzip", gzip.compress(gzip.compress(IMAGE, mtime=0), mtime=0), BadImage.DAMAGED),
        ("gzip", IMAGE, BadImage.DAMAGED),
        ("gzip", gzip.compress(IMAGE, mtime=0)[:-20], BadImage.TRUNCATED),
        (None, b"", BadImage.NOT_AN_IMAGE),
        (None, b"<!doctype html><p>no", BadImage.HTML),
        ("gzip", gzip.compress(b"<svg/>", mtime=0), BadImage.SVG),
    ],
)
def test_what_cannot_be_an_image_has_its_reason(
    encoding: str | None, data: bytes, reason: BadImage
) -> None:
    """Encodings that were not asked for, broken packing, and other things than images."""
    assert _refused(encoding, data, 100_000).reason is reason


def test_what_begins_as_no_image_is_given_up_at_once() -> None:
    """A film is not loaded to its end to learn that it is none."""
    body = Body(None, 10**9)
    body.add(bytes(1023))
    with pytest.raises(BadImageError) as caught:
        body.add(b"\x00")
    assert caught.value.reason is BadImage.NOT_AN_IMAGE
