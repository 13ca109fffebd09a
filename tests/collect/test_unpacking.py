"""Bodies that come piece by piece."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.image_client import Body
from echo_hf.images.decode import BadPictureError
from echo_hf.reasons import BadPicture
from tests.pictures_for_tests import encoded, noise

PICTURE = encoded(noise((64, 64)), "PNG")
ENDLESS = PICTURE[:64] + bytes(64 * 1024 * 1024)
PACKERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _refused(encoding: str | None, data: bytes, most: int, size: int = 4096) -> BadPictureError:
    with pytest.raises(BadPictureError) as caught:
        _whole(encoding, data, most, size)
    return caught.value


def _whole(encoding: str | None, data: bytes, most: int, size: int) -> bytes:
    body = Body(encoding, most)
    for piece in _pieces(data, size):
        body.add(piece)
    return body.whole()


@given(st.sampled_from([None, "", "identity", " GZIP ", *PACKERS]), st.integers(1, 9000))
def test_a_picture_comes_out_as_its_bytes(encoding: str | None, size: int) -> None:
    """However it is packed and cut into pieces."""
    packed = PACKERS.get((encoding or "").strip().lower(), bytes)(PICTURE)
    assert _whole(encoding, packed, len(packed) + len(PICTURE), size) == PICTURE


def test_the_limit_is_exact() -> None:
    """As many bytes as allowed pass, one more does not."""
    assert _whole(None, PICTURE, len(PICTURE), 1000) == PICTURE
    assert _refused(None, PICTURE, len(PICTURE) - 1).reason is BadPicture.TOO_MANY_BYTES
    assert _refused("gzip", gzip.compress(PICTURE), len(PICTURE) - 1).reason is (
        BadPicture.TOO_MANY_BYTES
    )


def test_a_bomb_is_unpacked_no_further_than_the_limit() -> None:
    """64 KB that would become 64 MB take about as much memory as is allowed."""
    packed, most = gzip.compress(ENDLESS), 100_000
    assert len(packed) < 80_000
    tracemalloc.start()
    try:
        assert _refused("gzip", packed, most, len(packed)).reason is BadPicture.TOO_MANY_BYTES
        assert tracemalloc.get_traced_memory()[1] < 10 * most
    finally:
        tracemalloc.stop()


def test_packed_data_that_unpacks_to_nothing_has_a_limit_too() -> None:
    """What follows the end of the packed data is counted as it comes."""
    packed = gzip.compress(PICTURE) + bytes(50_000)
    assert _refused("gzip", packed, 20_000).reason is BadPicture.TOO_MANY_BYTES


@pytest.mark.parametrize(
    ("encoding", "data", "reason"),
    [
        ("br", PICTURE, BadPicture.DAMAGED),
        ("gzip, gzip", gzip.compress(gzip.compress(PICTURE, mtime=0), mtime=0), BadPicture.DAMAGED),
        ("gzip", PICTURE, BadPicture.DAMAGED),
        ("gzip", gzip.compress(PICTURE, mtime=0)[:-20], BadPicture.TRUNCATED),
        (None, b"", BadPicture.NOT_A_PICTURE),
        (None, b"<!doctype html><p>no", BadPicture.HTML),
        ("gzip", gzip.compress(b"<svg/>", mtime=0), BadPicture.SVG),
    ],
)
def test_what_cannot_be_a_picture_has_its_reason(
    encoding: str | None, data: bytes, reason: BadPicture
) -> None:
    """Encodings that were not asked for, broken packing, and other things than pictures."""
    assert _refused(encoding, data, 100_000).reason is reason


def test_what_begins_as_no_picture_is_given_up_at_once() -> None:
    """A film is not loaded to its end to learn that it is none."""
    body = Body(None, 10**9)
    body.add(bytes(1023))
    with pytest.raises(BadPictureError) as caught:
        body.add(b"\x00")
    assert caught.value.reason is BadPicture.NOT_A_PICTURE
