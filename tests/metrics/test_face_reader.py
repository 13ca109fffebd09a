"""The networks that find faces: where their files are, what they take, and what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics import FaceIdentity, face_identity
from echo_hf.metrics.face_identity import FILES, FaceOptions, FaceReader, find_pack
from tests.metrics.faces_for_tests import SIDE, drawn
from tests.metrics.tiny_face_pack import write_detector, write_pack, write_recognizer
from tests.stages_for_tests import ROOT

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# Asks for the pack of the first argument where every connection is an error.
ASK = """
import socket, sys
def refused(*_, **__):
    raise SystemExit("asked the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from echo_hf.errors import ScoreError
from echo_hf.metrics.face_identity import find_pack
try:
    print(find_pack(sys.argv[1]))
except ScoreError as error:
    print(error)
"""


def _asked(pack: str, home: Path, **more: str) -> str:
    environment = {**os.environ, "HF_HOME": str(home), **more}
    return subprocess.run(
        [sys.executable, "-c", ASK, pack],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip


def _cached(home: Path, names: tuple[str, ...]) -> Path:
    repository = home / "hub" / "models--mira--faces"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for name in names:
        (folder / name).write_bytes(b"onnx")
    return folder


def test_a_folder_is_known_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    for given in (tmp_path / "pack", str(tmp_path / "pack")):
        assert find_pack(given) == ((tmp_path / "pack").resolve(), None)


def test_a_folder_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="is a folder, which has no revision 'v1': leave it out"):
        find_pack(tmp_path, "v1")


@pytest.mark.parametrize("pack", ["auraface", "./packs/none", "/nowhere/pack", "a/b/c", "a b/c"])
def test_what_is_neither_folder_nor_name_is_told_without_asking(pack: str, tmp_path: Path) -> None:
    shown = _asked(pack, tmp_path)
    assert shown.startswith(f"pack {pack!r} is neither a folder nor a name on the Hub: expected")
    assert "\n" not in shown


def test_a_pack_in_the_cache_is_known_by_its_commit(tmp_path: Path) -> None:
    folder = _cached(tmp_path, FILES)
    shown = _asked("mira/faces", tmp_path, HF_HUB_OFFLINE="1")
    assert shown == repr((folder, COMMIT))


def test_a_pack_that_lacks_a_network_is_told(tmp_path: Path) -> None:
    _cached(tmp_path, FILES[:1])
    shown = _asked("mira/faces", tmp_path, HF_HUB_OFFLINE="1")
    assert shown.startswith(f"pack 'mira/faces' at '{COMMIT}' lacks {FILES[1]}: expected")


def test_the_two_networks_are_asked_for_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _cached(tmp_path, FILES)
    asked: list[Any] = []

    def download(*given: Any, **options: Any) -> str:
        asked.append((given, options))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert find_pack("mira/faces", "main") == (folder, COMMIT)
    assert asked == [(("mira/faces",), {"revision": "main", "allow_patterns": list(FILES)})]


RED = (250, 20, 10)


def _options(pack: Path, **changed: Any) -> FaceOptions:
    settings = {"revision": None, "det_size": SIDE, "det_thresh": 0.5, "providers": None}
    return FaceOptions(pack=pack, **{**settings, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["insightface", "onnxruntime"])
def test_a_missing_package_is_told_at_first_use(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with pytest.raises(ScoreError, match=message):
        FaceIdentity(pack="nowhere", **changed)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("insightface", reason="needs the extra `face`")
    pytest.importorskip("onnx", reason="needs the extra `face`")
    return write_pack(tmp_path_factory.mktemp("faces") / "pack")


def _bgr(image: Image.Image) -> Any:
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


@pytest.mark.extras
def test_the_threshold_is_met_from_above(pack: Path) -> None:
    image = drawn({(0, 0): [(190, 60, 40)] * 4})
    for threshold, faces in ((0.58, 1), (0.59, 0)):
        reader = FaceReader(_options(pack, det_thresh=threshold))
        assert len(reader.faces(_bgr(image)).boxes) == faces


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3)])
def test_an_image_that_the_networks_cannot_take_is_said_to_fail(
    pack: Path, shape: tuple[int, ...]
) -> None:
    found = FaceReader(_options(pack)).faces(np.zeros(shape, np.uint8))
    assert "resize" in found.failed
    assert "\n" not in found.failed
    assert len(found.boxes) == 0


@pytest.mark.extras
def test_a_pack_that_cannot_be_used_is_told_in_one_line(pack: Path, tmp_path: Path) -> None:
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
    with pytest.raises(ScoreError, match=r"unknown provider of onnxruntime 'CPU'; .*known: "):
        FaceReader(_options(pack, providers=("CPU",)))
