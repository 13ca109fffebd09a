"""Two tiny networks: boxes and embeddings as drawn, and one line for each pack that cannot be."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics import FaceIdentity, face_identity
from echo_hf.metrics.face_reader import FaceOptions, FaceReader
from tests.metrics.faces_for_tests import GREY, SIDE, drawn, embedding
from tests.metrics.tiny_face_pack import write_detector, write_pack, write_recognizer

RED, ROSE = (250, 20, 10), (220, 60, 70)


def _options(pack: Path, **changed: Any) -> FaceOptions:
    settings = {"revision": None, "det_size": SIDE, "det_thresh": 0.5, "providers": None}
    return FaceOptions(pack=pack, **{**settings, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["insightface", "onnxruntime"])
def test_a_missing_package_is_told_at_first_use(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line that says what to install; making an accumulator needs none."""
    monkeypatch.setitem(sys.modules, package, None)
    measured = FaceIdentity()
    for use in (lambda: measured.add([], []), lambda: face_identity([], [])):
        with pytest.raises(MissingExtraError, match=r"'?face_identity'? .*\"echo-hf\[face\]\"$"):
            use()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"det_size": 100}, "det_size is 100: expected a multiple of 32, such as 640"),
        ({"det_size": 0}, "det_size is 0: "),
        ({"det_size": (640, 640)}, r"det_size is \(640, 640\): "),
        ({"det_thresh": 0}, "det_thresh is 0: expected a number above 0, at most 1"),
        ({"det_thresh": 1.5}, "det_thresh is 1.5: "),
        ({"det_thresh": "0.5"}, "det_thresh is '0.5': "),
    ],
)
def test_impossible_numbers_are_told_at_once(changed: dict[str, Any], message: str) -> None:
    """Before a network is looked for."""
    with pytest.raises(ScoreError, match=message):
        FaceIdentity(pack="nowhere", **changed)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two tiny networks."""
    pytest.importorskip("insightface", reason="needs the extra `face`")
    pytest.importorskip("onnx", reason="needs the extra `face`")
    return write_pack(tmp_path_factory.mktemp("faces") / "pack")


def _bgr(image: Image.Image) -> Any:
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


@pytest.mark.extras
def test_faces_are_where_they_are_drawn(pack: Path) -> None:
    """Best first: the score is the red less the blue, over 256."""
    quarters = [RED, ROSE, RED, (200, 0, 0)]
    image = drawn({(1, 2): [ROSE] * 4, (3, 0): quarters})
    found = FaceReader(_options(pack)).faces(_bgr(image))
    assert found.failed == ""
    assert found.boxes.tolist() == [[0, 96, 32, 128], [64, 32, 96, 64]]
    expected = [embedding(quarters), embedding([ROSE] * 4)]
    np.testing.assert_allclose(found.embeddings, expected, atol=1e-6)


@pytest.mark.extras
def test_the_threshold_is_met_from_above(pack: Path) -> None:
    """150 levels over 256 are 0.586 (the networks see numbers over 128)."""
    image = drawn({(0, 0): [(190, 60, 40)] * 4})
    for threshold, faces in ((0.58, 1), (0.59, 0)):
        reader = FaceReader(_options(pack, det_thresh=threshold))
        assert len(reader.faces(_bgr(image)).boxes) == faces


@pytest.mark.extras
def test_boxes_are_pixels_of_the_image_itself(pack: Path) -> None:
    """However large it is beside what the detector sees."""
    large = drawn({(1, 2): [RED] * 4}).resize((3 * SIDE, 3 * SIDE), Image.Resampling.NEAREST)
    found = FaceReader(_options(pack)).faces(_bgr(large))
    assert found.boxes.tolist() == [[192, 96, 288, 192]]


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3)])
def test_an_image_that_the_networks_cannot_take_is_said_to_fail(
    pack: Path, shape: tuple[int, ...]
) -> None:
    """In their own words, and no error."""
    found = FaceReader(_options(pack)).faces(np.zeros(shape, np.uint8))
    assert "resize" in found.failed
    assert "\n" not in found.failed
    assert len(found.boxes) == 0


@pytest.mark.extras
def test_everything_that_decides_the_faces_is_told(pack: Path) -> None:
    """As JSON: both files by their digests, and no path."""
    definition = FaceReader(_options(pack)).definition
    assert str(pack.parent) not in json.dumps(definition)
    assert definition["pack"] == "pack"
    assert definition["commit"] is None
    assert definition["det_size"] == [SIDE, SIDE]
    assert definition["det_thresh"] == 0.5
    assert definition["providers"][-1] == "CPUExecutionProvider"
    assert set(definition["versions"]) == {"insightface", "onnxruntime", "cv2", "skimage"}
    files = {definition[part]["file"] for part in ("detector", "recognizer")}
    assert files == {"scrfd_10g_bnkps.onnx", "glintr100.onnx"}


@pytest.mark.extras
def test_a_pack_that_cannot_be_used_is_told_in_one_line(pack: Path, tmp_path: Path) -> None:
    """Empty, one network alone, no network at all, or a detector of another size."""
    lone_detector, lone_recognizer, text = (tmp_path / name for name in "abc")
    for folder in (lone_detector, lone_recognizer, text, tmp_path / "empty"):
        folder.mkdir()
    write_detector(lone_detector / "scrfd.onnx")
    write_recognizer(lone_recognizer / "arcface.onnx")
    (text / "scrfd.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    for folder in (lone_detector, lone_recognizer, text, tmp_path / "empty"):
        with pytest.raises(ScoreError) as caught:
            FaceReader(_options(folder))
        assert str(caught.value).startswith(f"pack {folder.name!r} cannot be used (")
        assert "expected a detector and a recognizer of faces" in str(caught.value)
        assert "\n" not in str(caught.value)
    fixed = write_pack(tmp_path / "fixed", side=64)
    with pytest.raises(ScoreError, match=f"det_size is {SIDE}: expected 64, the only one that"):
        FaceReader(_options(fixed))
    assert len(FaceReader(_options(fixed, det_size=64)).faces(_bgr(drawn({}))).boxes) == 0


@pytest.mark.extras
def test_an_unknown_provider_is_told(pack: Path) -> None:
    """With those that there are."""
    with pytest.raises(ScoreError, match=r"unknown provider of onnxruntime 'CPU'; .*known: "):
        FaceReader(_options(pack, providers=("CPU",)))


@pytest.mark.extras
def test_a_wrong_name_never_reaches_the_network(
    pack: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A release of that name would be looked for; a folder that is there needs nobody."""
    monkeypatch.chdir(tmp_path)

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    with pytest.raises(ScoreError, match="'buffalo_l' is neither a folder nor a name on the Hub"):
        face_identity([GREY], [GREY], pack="buffalo_l")
    assert FaceReader(_options(pack)).faces(_bgr(drawn({}))).failed == ""
