"""The two ways in which images are loaded, and images that several threads share."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.images.decode import BadImageError
from echo_hf.images.loader import load_rgb
from echo_hf.metrics.samples import LOADERS, check_protocol, decoders, load_once, plain_rgb
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded, rgb_profile
from tests.metrics.images_for_metrics import noise


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
    """Orientation, profile, opacity and depth are not looked at; the other way looks at them."""
    plain, canonical = (np.asarray(LOADERS[one](SPECIAL[name]).image) for one in LOADERS)
    assert np.array_equal(plain, PLAIN[name])
    assert np.array_equal(canonical, np.asarray(load_rgb(SPECIAL[name])))
    assert not np.array_equal(plain, canonical)


def test_a_broken_image_has_its_reason_both_ways() -> None:
    """The released code would have stopped there."""
    cut = encoded(noise(0, size=(200, 200)), "PNG")[:9000]
    for load in LOADERS.values():
        with pytest.raises(BadImageError) as caught:
            load(cut)
        assert caught.value.reason is BadImage.TRUNCATED


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    """The same for bytes and for their file, another for the same pixels packed otherwise."""
    data, other = SPECIAL["turned"], encoded(noise(0), "BMP")
    (tmp_path / "a.png").write_bytes(data)
    found = [load_once(source, plain_rgb)[1] for source in (data, tmp_path / "a.png", other)]
    assert found[0] == found[1] != found[2]


def test_images_in_memory_are_told_apart_by_their_pixels() -> None:
    """Equal ones have one digest, and another shape or pixel another one."""
    same, copied = noise(3), noise(3)
    others = [noise(4), Image.fromarray(np.asarray(same).reshape(10, 12, 3))]
    digests = [load_once(one, plain_rgb)[1] for one in (same, copied, *others)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.parametrize("load", list(LOADERS.values()), ids=list(LOADERS))
def test_one_unread_image_may_be_shared_by_threads(load: Callable[..., object]) -> None:
    """Opened and not yet read, it is whole for each of them, upright and with one digest."""
    data = encoded(noise(0, size=(300, 200)), "PNG", exif=_exif(6))
    expected = np.asarray(load(data).image)  # type: ignore[attr-defined]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            shared = Image.open(io.BytesIO(data))
            found = list(pool.map(lambda one: load_once(one, load), [shared] * 8))  # type: ignore[arg-type]
            assert all(np.array_equal(np.asarray(one.image), expected) for one, _ in found)
            assert len({digest for _, digest in found}) == 1


def test_a_protocol_has_a_name() -> None:
    """Another one is refused, with the nearest that there is."""
    check_protocol("published")
    with pytest.raises(ScoreError, match="unknown protocol 'publised'; did you mean 'published'"):
        check_protocol("publised")  # type: ignore[arg-type]


def test_the_decoders_are_named_with_their_versions() -> None:
    """They are what decides the levels of a JPEG."""
    found = decoders()
    assert found["pillow"] == Image.__version__
    assert found["libjpeg_turbo"]
