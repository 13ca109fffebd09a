"""Colors under profiles, against the formulas that the profiles state."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageCms

from echo_hf.images.loader import to_srgb
from echo_hf.reasons import ImageNotice
from tests.images_for_tests import (
    grey_profile,
    in_srgb,
    ink_profile,
    lab_in_srgb,
    rgb_profile,
    srgb_encoded,
)

LEVELS = np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8)
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _off(one: Image.Image, other: np.ndarray) -> int:
    return int(np.abs(np.asarray(one, np.int16) - other.astype(np.int16)).max())


@pytest.mark.parametrize(
    ("space", "gamma", "moved"), [("adobe", 563 / 256, 40), ("p3", 2.2, 40), ("srgb", 1.0, 60)]
)
def test_three_primaries_and_a_gamma_are_what_they_state(
    space: str, gamma: float, moved: int
) -> None:
    """Adobe RGB, P3 and linear light land where their matrix and curve put them."""
    shown, notice = to_srgb(Image.fromarray(LEVELS), rgb_profile(space, gamma))
    expected = in_srgb(LEVELS, space, gamma)
    assert notice is None
    assert shown.mode == "RGB"
    assert _off(shown, expected) <= 1
    assert np.abs(expected.astype(int) - LEVELS).max() > moved


def test_grey_with_a_gamma_is_what_it_states() -> None:
    """A grey level is light to the power of the profile's gamma, in all three channels."""
    ramp = np.arange(256, dtype=np.uint8)[None]
    shown, notice = to_srgb(Image.fromarray(ramp), grey_profile(1.0))
    expected = srgb_encoded((ramp / 255.0)[..., None].repeat(3, -1))
    assert notice is None
    assert _off(shown, expected) <= 1


def test_inks_are_looked_up_in_the_profile() -> None:
    """A full ink has the color that the profile measured for it, not the plain complement."""
    corners = np.full((16, 3), [0, 128, 128], np.uint8)
    corners[0] = 255, 128, 128
    corners[8], corners[4], corners[2] = (140, 110, 90), (125, 190, 120), (225, 120, 210)
    inks = Image.new("CMYK", (4, 1))
    for at, ink in enumerate([(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0)]):
        inks.putpixel((at, 0), ink)
    shown, notice = to_srgb(inks, ink_profile(corners))
    measured = corners[[0, 8, 4, 2]].astype(float)
    lab = np.stack([measured[:, 0] / 2.55, measured[:, 1] - 128, measured[:, 2] - 128], -1)
    assert notice is None
    assert _off(shown, lab_in_srgb(lab)[None]) <= 2
    assert _off(inks.convert("RGB"), lab_in_srgb(lab)[None]) > 30


@pytest.mark.parametrize(
    "profile",
    [SRGB, rgb_profile("srgb", None), rgb_profile("srgb", None, off=1e-4)],
    ids=["own", "in steps", "in four decimals"],
)
def test_what_is_srgb_already_keeps_its_numbers(profile: bytes) -> None:
    """A tag that says sRGB, whoever wrote it, changes not one level."""
    shown, notice = to_srgb(Image.fromarray(LEVELS), profile)
    assert notice is None
    assert np.array_equal(np.asarray(shown), LEVELS)


@pytest.mark.parametrize("profile", [b"", b"not a profile", SRGB[:200], SRGB[:128] + bytes(460)])
def test_an_unreadable_profile_is_none_and_said(profile: bytes) -> None:
    """The numbers stay, and the notice tells that the tag was there."""
    shown, notice = to_srgb(Image.fromarray(LEVELS), profile)
    assert notice is ImageNotice.BAD_PROFILE
    assert _off(shown, LEVELS) == 0


@pytest.mark.parametrize("mode", ["L", "CMYK", "LAB"])
def test_a_profile_for_other_channels_is_none_and_said(mode: str) -> None:
    """Grey under a profile for RGB is shown as plain grey."""
    image = Image.new(mode, (2, 2), 90)
    shown, notice = to_srgb(image, SRGB)
    assert notice is ImageNotice.OTHER_PROFILE
    assert shown.tobytes() == image.convert("RGB").tobytes()
