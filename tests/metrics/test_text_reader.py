"""The text reader alone: what it is given, and what it cannot take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import MissingExtraError
from echo_hf.metrics.text_reader import Lines, TextReader, blue_first


@pytest.mark.parametrize("package", ["rapidocr", "onnxruntime"])
def test_a_missing_package_is_told(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line that says what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"ocr_accuracy.*\"echo-hf\[ocr\]\"$"):
        TextReader()


def test_channels_are_given_as_the_networks_take_them() -> None:
    """Blue first, in one piece."""
    given = blue_first(Image.new("RGB", (3, 2), (250, 100, 7)))
    assert given.shape == (2, 3, 3)
    assert given[1, 2].tolist() == [7, 100, 250]
    assert given.flags.c_contiguous


@pytest.fixture(scope="module")
def reader() -> TextReader:
    """The networks that come with rapidocr."""
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    return TextReader()


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 20, 3), (20, 2, 3)])
def test_nothing_is_read_where_nothing_is_written(
    reader: TextReader, shape: tuple[int, ...]
) -> None:
    """In noise of a few pixels."""
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert reader.read(noise) == Lines(())


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3), (10, 101, 3)])
def test_a_strip_is_not_read(reader: TextReader, shape: tuple[int, ...]) -> None:
    """It would be enlarged until no memory is left."""
    said = f"{shape[1]} x {shape[0]} pixels, expected at most 1 to 10"
    assert reader.read(np.zeros(shape, np.uint8)) == Lines((), said)


@pytest.mark.extras
@pytest.mark.parametrize("levels", [np.zeros((4, 4, 7), np.uint8), np.zeros((9, 9, 3), object)])
def test_what_the_networks_fail_on_is_said(reader: TextReader, levels: Any) -> None:
    """In one line, and no error."""
    failed = reader.read(levels).failed
    assert "Error" in failed or "error" in failed
    assert "\n" not in failed


@pytest.mark.extras
def test_memory_that_is_short_is_no_fault_of_the_image(
    reader: TextReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on to whoever asked."""

    def short(*_: Any) -> Callable[..., None]:
        raise MemoryError

    monkeypatch.setattr(reader, "_engine", short)
    with pytest.raises(MemoryError):
        reader.read(np.zeros((9, 9, 3), np.uint8))


@pytest.mark.extras
def test_the_letters_that_it_can_write_are_known(reader: TextReader) -> None:
    """Latin, Greek, Chinese and Japanese; what the file of the network does not list, it cannot."""
    english = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"-&%$")
    assert english | set("éèàüöÖñçß€łčāΩα中國国あア") <= reader.signs
    assert not set("жд한글مب") & reader.signs
