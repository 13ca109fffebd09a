"""Pillow's process-wide switches."""

from __future__ import annotations

import warnings
from threading import Barrier, Thread

import pytest
from PIL import ImageFile

from echo_hf.images.decode import PillowGuard


@pytest.fixture
def accepting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another library has made Pillow accept half images."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)


@pytest.mark.usefixtures("accepting")
def test_half_images_are_refused_inside_and_the_switch_is_put_back() -> None:
    """Inside it is off whatever it was, outside it is what it was, after an error too."""
    with pytest.raises(ZeroDivisionError), PillowGuard():
        raise ZeroDivisionError
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True
    with PillowGuard():
        assert ImageFile.LOAD_TRUNCATED_IMAGES is False
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_warnings_are_quiet_inside_only() -> None:
    """What Pillow warns of while decoding is not shown; a warning outside still is."""
    with PillowGuard():
        warnings.warn("of an oddity", stacklevel=1)
    with pytest.raises(UserWarning, match="outside"):
        warnings.warn("outside", stacklevel=1)


@pytest.mark.usefixtures("accepting")
def test_threads_that_overlap_leave_all_as_it_was() -> None:
    """The first in sets, the last out puts back, in whatever order they leave."""
    guard, before = PillowGuard(), list(warnings.filters)
    both_in, first_out = Barrier(2), Barrier(2)
    seen: list[bool] = []

    def enters_first() -> None:
        with guard:
            both_in.wait(10)
        first_out.wait(10)

    def leaves_last() -> None:
        with guard:
            both_in.wait(10)
            first_out.wait(10)
            seen.append(ImageFile.LOAD_TRUNCATED_IMAGES)

    threads = [Thread(target=one) for one in (enters_first, leaves_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == [False]
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True
    assert list(warnings.filters) == before
