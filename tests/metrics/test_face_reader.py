"""The networks that find faces: where their files are, what they take, and what they say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.errors import ScoreError, WeightsError
from echo_hf.metrics.face_identity import (
    FILES,
    FaceMatch,
    FaceOptions,
    FaceReader,
    Faces,
    best_match,
    find_pack,
    levels_of,
)
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason
from tests.errors_for_tests import said_by
from tests.metrics.faces_for_tests import SIDE, drawn
from tests.metrics.images_for_metrics import noise
from tests.metrics.tiny_face_pack import write_detector, write_pack, write_recognizer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the Hub's client, which cannot ask anybody."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def _cached(hub: Path) -> Path:
    repository = hub / "models--mira--faces"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for name in FILES:
        (folder / name).write_bytes(b"onnx")
    return folder


def test_a_folder_is_known_by_its_name_and_has_no_revision(tmp_path: Path) -> None:
    for pack in (tmp_path, str(tmp_path)):
        assert find_pack(pack) == (tmp_path.resolve(), None)
    with pytest.raises(ScoreError, match="is a folder, which has no revision: leave it out"):
        find_pack(tmp_path, "v1")


def test_a_pack_in_the_cache_is_known_by_its_commit(hub: Path) -> None:
    for name in ("mira/faces", "./none", "auraface"):
        said = f"no pack '{name}' at revision 'main': neither a folder, nor in the cache"
        with pytest.raises(WeightsError, match=said):
            find_pack(name)
    folder = _cached(hub)
    assert find_pack("mira/faces") == (folder, COMMIT)


def test_only_the_two_networks_are_asked_for(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, asked = _cached(hub), list[Any]()

    def download(*asked_for: Any, **options: Any) -> str:
        asked.append((asked_for, options))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert find_pack("mira/faces", "main") == (folder, COMMIT)
    assert asked == [(("mira/faces",), {"revision": "main", "allow_patterns": list(FILES)})]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("insightface", reason="needs the extra `face`")
    pytest.importorskip("onnx", reason="needs the extra `face`")
    return write_pack(tmp_path_factory.mktemp("faces") / "pack")


def _reader(pack: Path, **changed: Any) -> FaceReader:
    settings = {"revision": None, "det_size": SIDE, "det_thresh": 0.5, "providers": None}
    return FaceReader(FaceOptions(pack=pack, **{**settings, **changed}))  # type: ignore[arg-type]


@pytest.mark.extras
def test_the_threshold_is_met_from_above(pack: Path) -> None:
    image = np.asarray(drawn({(0, 0): [(190, 60, 40)] * 4}))
    for threshold, faces in ((0.58, 1), (0.59, 0)):
        found = _reader(pack, det_thresh=threshold).faces(np.ascontiguousarray(image[..., ::-1]))
        assert len(found.boxes) == faces


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3)])
def test_an_image_that_the_networks_cannot_take_is_said_to_fail(pack: Path, shape: Any) -> None:
    found = _reader(pack).faces(np.zeros(shape, np.uint8))
    assert "resize" in found.failed
    assert "\n" not in found.failed
    assert len(found.boxes) == 0


@pytest.mark.extras
def test_a_pack_that_cannot_be_used_is_told_in_one_line(pack: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("lone_detector", "lone_recognizer", "text", "empty")]
    for folder in folders:
        folder.mkdir()
    write_detector(folders[0] / "scrfd.onnx")
    write_recognizer(folders[1] / "arcface.onnx")
    (folders[2] / "scrfd.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    for folder in folders:
        said = said_by(ScoreError, _reader, folder)
        assert said.startswith(f"pack {folder.name!r} cannot be used (")
        assert "expected a detector and a recognizer of faces" in said
    fixed = write_pack(tmp_path / "fixed", side=64)
    with pytest.raises(ScoreError, match=f"det_size is {SIDE}: expected 64, all that"):
        _reader(fixed)
    assert _reader(fixed, det_size=64).faces(np.zeros((64, 64, 3), np.uint8)).failed == ""
    with pytest.raises(ScoreError, match=r"cannot be used .*'CPU'"):
        _reader(pack, providers=("CPU",))


NUMBERS = st.integers(-9, 9).map(float)
VECTORS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3).filter(any), max_size=4)
NOBODY = Faces(np.empty((0, 4), np.float32), np.empty((0, 0), np.float32))


def _faces(vectors: list[list[float]], failed: str = "") -> Faces:
    boxes = [[at, 0, at + 1, 1] for at in range(len(vectors))]
    return Faces(np.array(boxes, np.float32), np.array(vectors, np.float32), failed)


def _cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


@given(st.lists(VECTORS, min_size=1, max_size=3), VECTORS)
def test_the_highest_cosine_of_all_pairs_counts(inputs: Any, output: list[list[float]]) -> None:
    found = best_match([_faces(one) if one else NOBODY for one in inputs], _faces(output))
    pairs = [
        (_cosine(face, other), number, at, there)
        for number, one in enumerate(inputs)
        for at, face in enumerate(one)
        for there, other in enumerate(output)
    ]
    if not pairs:
        assert isinstance(found, Unmeasured)
        return
    assert isinstance(found, FaceMatch)
    assert found.cosine == pytest.approx(max(pairs)[0], abs=1e-9)
    chosen = found.input, int(found.input_box[0]), int(found.output_box[0])
    assert {pair[1:]: pair[0] for pair in pairs}[chosen] == pytest.approx(found.cosine)
    assert found.input_faces == sum(map(len, inputs))
    assert found.output_faces == len(output)


@pytest.mark.parametrize(
    ("inputs", "output", "reason"),
    [
        ([NOBODY], NOBODY, "no_face_in_input"),
        ([NOBODY], _faces([[1, 2]]), "no_face_in_input"),
        ([NOBODY, _faces([[1, 2]])], NOBODY, "no_face_in_output"),
        ([_faces([[0, 0]])], _faces([[1, 2]]), "zero_norm"),
    ],
)
def test_without_two_faces_there_is_a_reason(inputs: Any, output: Faces, reason: str) -> None:
    assert best_match(inputs, output) == Unmeasured(MetricReason(reason))  # type: ignore[call-arg]


def test_an_embedding_without_direction_is_passed_over() -> None:
    found = best_match([_faces([[0, 0], [0, 5]])], _faces([[0, 0], [0, -2]]))
    assert isinstance(found, FaceMatch)
    assert (found.cosine, found.input_box[0], found.output_box[0]) == (-1.0, 1.0, 1.0)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_the_networks_fail_on_is_named(number: float) -> None:
    fine, failed = _faces([[1, 2]]), Faces(NOBODY.boxes, NOBODY.embeddings, "error: too thin")
    odd = _faces([[1, 2], [number, 1]])
    lost = Faces(np.full((1, 4), number, np.float32), fine.embeddings)
    for inputs, output, said in (
        ([NOBODY, failed], NOBODY, "input 2: error: too thin"),
        ([fine], failed, "output: error: too thin"),
        ([fine, odd], fine, "input 2: a box or an embedding is not finite"),
        ([fine], odd, "output: a box or an embedding is not finite"),
        ([lost], fine, "input 1: a box or an embedding is not finite"),
    ):
        assert best_match(inputs, output) == Unmeasured(MetricReason.MODEL_FAILED, detail=said)


def test_channels_are_fed_as_the_protocol_has_them() -> None:
    image = noise(3)
    corrected, published = (levels_of(image, name) for name in ("corrected", "published"))
    np.testing.assert_array_equal(published.levels, np.asarray(image))
    for channel in range(3):
        np.testing.assert_array_equal(
            corrected.levels[..., channel], np.asarray(image)[..., 2 - channel]
        )
    assert corrected.levels.flags.c_contiguous


def test_images_are_known_by_what_is_fed() -> None:
    row, column = Image.new("RGB", (6, 2), "red"), Image.new("RGB", (2, 6), "red")
    grey = Image.new("RGB", (6, 2), (7, 7, 7))
    assert levels_of(row, "corrected").digest == levels_of(row.copy(), "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(column, "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(row, "published").digest
    assert levels_of(grey, "corrected").digest == levels_of(grey, "published").digest
