"""What is missing is told, and what fails is quoted in one line."""

from __future__ import annotations

import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import MissingExtraError
from echo_hf.metrics.result import check_extra, error_line
from tests.stages_for_tests import ROOT


def test_a_package_that_is_missing_names_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them has to be there, and none is imported."""
    packages = ["json", "wave", "no_such_package"]
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    expected = r"^face_identity needs packages .*: pip install \"echo-hf\[face\]\"$"
    with pytest.raises(MissingExtraError, match=expected):
        check_extra("face_identity", "face", packages)
    check_extra("face_identity", "face", packages[:2])
    assert "wave" not in sys.modules


@given(st.text())
def test_an_error_is_one_line_of_bounded_length(words: str) -> None:
    """Its kind first, whatever it says."""
    line = error_line(KeyError(words))
    assert line.startswith("KeyError")
    assert len(line) <= 200
    assert len(line.splitlines()) == 1


def test_both_packages_of_opencv_are_of_one_version() -> None:
    """They write the same files, and the extras that bring them may be installed together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (face,) = (one for one in extras["face"] if one.startswith("opencv-python=="))
    (ocr,) = (one for one in extras["ocr"] if one.startswith("opencv-python-headless=="))
    assert face.partition("==")[2] == ocr.partition("==")[2]
