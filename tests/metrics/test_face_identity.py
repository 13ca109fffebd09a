"""Face identity on drawn faces: the networks, the best pair, and both protocols."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.errors import ScoreError, WeightsError
from echo_hf.metrics import FaceIdentityResult, InputCache, face_identity
from echo_hf.metrics.face_identity import (
    FILES,
    FaceMatch,
    FaceReader,
    FaceReaderOptions,
    Faces,
    best_match,
    find_pack,
    get_levels,
)
from echo_hf.metrics.result import MetricReason, Unmeasured
from echo_hf.scores.votes import ProtocolName
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import BOTH
from tests.metrics.tiny_face_pack import (
    SIDE,
    cosine,
    drawn,
    write_detector,
    write_pack,
    write_recognizer,
)

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
    return FaceReader(FaceReaderOptions(pack=pack, **{**settings, **changed}))  # type: ignore[arg-type]


@pytest.mark.extras
def test_the_threshold_is_met_from_above(pack: Path) -> None:
    image = np.asarray(drawn({(0, 0): [(190, 60, 40)] * 4}))
    for threshold, faces in ((0.58, 1), (0.59, 0)):
        found = _reader(pack, det_thresh=threshold).find_faces(
            np.ascontiguousarray(image[..., ::-1])
        )
        assert len(found.boxes) == faces


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3)])
def test_an_image_that_the_networks_cannot_take_is_said_to_fail(pack: Path, shape: Any) -> None:
    found = _reader(pack).find_faces(np.zeros(shape, np.uint8))
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
    assert _reader(fixed, det_size=64).find_faces(np.zeros((64, 64, 3), np.uint8)).failed == ""
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


def test_an_embedding_without_direction_is_passed_over() -> None:
    found = best_match([_faces([[0, 0], [0, 5]])], _faces([[0, 0], [0, -2]]))
    assert isinstance(found, FaceMatch)
    assert (found.cosine, found.input_box[0], found.output_box[0]) == (-1.0, 1.0, 1.0)
    none = best_match([_faces([[0, 0]])], _faces([[1, 2]]))
    assert none == Unmeasured(MetricReason.ZERO_NORM)


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


def test_images_are_known_by_what_is_fed() -> None:
    row, column = Image.new("RGB", (6, 2), "red"), Image.new("RGB", (2, 6), "red")
    grey = Image.new("RGB", (6, 2), (7, 7, 7))
    assert get_levels(row, "corrected").digest == get_levels(row.copy(), "corrected").digest
    assert get_levels(row, "corrected").digest != get_levels(column, "corrected").digest
    assert get_levels(row, "corrected").digest != get_levels(row, "published").digest
    assert get_levels(grey, "corrected").digest == get_levels(grey, "published").digest


ANNA = [(250, 20, 10), (240, 90, 30), (255, 0, 0), (230, 10, 60)]
BODO = [(200, 120, 20), (250, 200, 100), (190, 0, 40), (255, 250, 10)]
CARLA = [(255, 255, 100), (180, 20, 0), (255, 130, 20), (200, 10, 20)]
FEW = ("anna", "bodo", "carla")
PEOPLE = dict(zip(FEW, (ANNA, BODO, CARLA), strict=True))
# Blue where others are red: a face only to networks that are given the channels swapped.
SMURF = [(10, 20, 250), (60, 0, 255), (0, 90, 200), (20, 20, 240)]
EMPTY = drawn({})
CUT = encoded(drawn({(0, 0): ANNA}).resize((400, 400)), "PNG")[:300]


def _shown(*names: str, at: int = 0) -> Image.Image:
    return drawn({(at, number): PEOPLE[name] for number, name in enumerate(names)})


def _measure(pack: Path | str, inputs: Any, outputs: Any, **options: Any) -> FaceIdentityResult:
    settings: Mapping[str, Any] = {"pack": pack, "det_size": SIDE, "n_boot": 0, **options}
    return face_identity(inputs, outputs, **settings)


@pytest.mark.extras
def test_a_face_that_stays_has_a_cosine_of_one(
    pack: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing is printed."""
    result = _measure(
        pack, [_shown("anna"), _shown("anna")], [_shown("anna", at=3), _shown("bodo")]
    )
    expected = (1.0, cosine(ANNA, BODO))
    assert result.per_sample == pytest.approx(expected, abs=1e-6)
    assert result.value == pytest.approx(np.mean(expected), abs=1e-6)
    assert (result.n, result.coverage, result.counts) == (2, 1.0, {})
    assert capfd.readouterr() == ("", "")


@pytest.mark.extras
def test_the_best_pair_counts_over_several_inputs(pack: Path) -> None:
    inputs = [[_shown("bodo"), _shown("bodo", "carla")]]
    result = _measure(pack, inputs, [_shown("anna", "carla", at=2)])
    (match,) = result.matches
    assert match is not None
    assert match.cosine == result.value == pytest.approx(1, abs=1e-6)
    assert (match.input, match.input_faces, match.output_faces) == (1, 3, 2)
    assert match.input_box == (32, 0, 64, 32)
    assert match.output_box == (32, 64, 64, 96)
    pairs = {(a, b): cosine(PEOPLE[a], PEOPLE[b]) for a in ("bodo",) for b in ("anna", "carla")}
    without = _measure(pack, [[_shown("bodo")] * 2], [_shown("anna", "carla")])
    assert without.value == pytest.approx(max(pairs.values()), abs=1e-6)


@pytest.mark.extras
def test_swapped_channels_show_other_faces(pack: Path) -> None:
    before = drawn({(0, 0): ANNA, (1, 0): SMURF})
    pale = [(50, 60, 255), (100, 40, 255), (40, 130, 240), (60, 60, 255)]
    after = drawn({(0, 0): BODO, (1, 0): pale})
    corrected, published = (_measure(pack, [before], [after], protocol=name) for name in BOTH)
    assert corrected.value == pytest.approx(cosine(ANNA, BODO), abs=1e-6)
    # The order of the numbers in both embeddings is swapped alike: the cosine is the colors'.
    assert published.value == pytest.approx(cosine(SMURF, pale), abs=1e-6)
    assert corrected.value != pytest.approx(published.value, abs=0.01)
    boxes = [one.matches[0] and one.matches[0].input_box[1] for one in (corrected, published)]
    assert boxes == [0, 32]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("given", "made", "reason"),
    [
        (EMPTY, _shown("anna"), "no_face_in_input"),
        (_shown("anna"), EMPTY, "no_face_in_output"),
        (_shown("anna"), None, "missing_output"),
        ([_shown("anna"), CUT], _shown("anna"), "bad_input"),
        (_shown("anna"), _shown("anna").resize((2000, 3)), "model_failed"),
    ],
)
@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_without_two_faces_there_is_a_reason_and_no_number(
    pack: Path, given: Any, made: Any, reason: str, protocol: ProtocolName
) -> None:
    blue = drawn({(0, 0): SMURF, (2, 2): ANNA})
    if protocol == "published" and reason in ("no_face_in_output", "model_failed"):
        given, reason = blue, {"model_failed": "size_not_taken"}.get(reason, reason)
    result = _measure(pack, [given, blue], [made, blue], protocol=protocol)
    assert [one and one.reason for one in result.reasons] == [MetricReason(reason), None]  # type: ignore[call-arg]
    assert result.per_sample[0] is None
    assert result.per_sample[1] == result.value == pytest.approx(1)
    assert (result.n, result.coverage, result.matches[0]) == (1, 0.5, None)


@pytest.mark.extras
def test_a_cosine_below_zero_stays_or_is_dropped(pack: Path) -> None:
    dark, light = [(140, 0, 0)] * 4, [(255, 255, 120)] * 4
    expected = cosine(dark, light)
    assert expected < 0
    corrected = _measure(pack, [drawn({(0, 0): dark})], [drawn({(0, 0): light})])
    assert corrected.value == pytest.approx(expected, abs=1e-6)
    there, back = (drawn({(0, 0): [one[::-1] for one in face]}) for face in (dark, light))
    published = _measure(pack, [there, there], [back, there], protocol="published")
    assert published.value == pytest.approx(1)
    assert published.counts == {MetricReason.NOT_ABOVE_ZERO: 1}
    (reason, _) = published.reasons
    assert reason is not None
    assert float(reason.detail.removeprefix("cosine ")) == pytest.approx(expected, abs=1e-4)
    assert published.matches[0] is not None


@pytest.mark.extras
def test_several_inputs_count_or_are_dropped(pack: Path) -> None:
    faces, others = (drawn({(0, 0): SMURF, (1, 1): person}) for person in (ANNA, BODO))
    for protocol, counts in (("corrected", {}), ("published", {MetricReason.SEVERAL_INPUTS: 1})):
        result = _measure(pack, [[faces, others], faces], [others, faces], protocol=protocol)
        assert result.counts == counts
        assert result.value == pytest.approx(1)


@pytest.mark.extras
def test_an_input_is_looked_at_once_for_all(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from insightface.app import FaceAnalysis

    looked: list[object] = []
    get = FaceAnalysis.get

    def counted(app: Any, levels: Any) -> Any:
        looked.append(levels)
        return get(app, levels)

    cache, inputs = InputCache(), [_shown("anna"), [_shown("anna"), _shown("bodo")]]
    systems = [[_shown("anna", at=at), _shown("carla", at=at)] for at in (1, 2, 3)]
    expected = [_measure(pack, inputs, outputs) for outputs in systems]
    monkeypatch.setattr(FaceAnalysis, "get", counted)
    assert [_measure(pack, inputs, outputs, cache=cache) for outputs in systems] == expected
    # One trial, and for each system two outputs; of the three inputs two are equal.
    assert len(looked) == 1 + 3 * 2 + 2
    assert len(cache) == 2
    _measure(pack, inputs, systems[0], cache=cache, det_thresh=0.6)
    assert len(cache) == 4
    _measure(pack, inputs, systems[0], cache=cache, protocol="published")
    assert len(cache) == 5  # of the one sample that it takes
