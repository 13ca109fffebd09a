"""Face identity on drawn faces: both protocols against cosines of the drawn colors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics import FaceIdentityResult, InputCache, face_identity
from echo_hf.metrics.image_features import Protocol
from echo_hf.reasons import MetricReason
from tests.images_for_tests import encoded
from tests.metrics.faces_for_tests import GREY, SIDE, cosine, drawn
from tests.metrics.images_for_metrics import BOTH
from tests.metrics.tiny_face_pack import write_pack

pytestmark = pytest.mark.extras
pytest.importorskip("insightface", reason="needs the extra `face`")
pytest.importorskip("onnx", reason="needs the extra `face`")

ANNA = [(250, 20, 10), (240, 90, 30), (255, 0, 0), (230, 10, 60)]
BODO = [(200, 120, 20), (250, 200, 100), (190, 0, 40), (255, 250, 10)]
CARLA = [(255, 255, 100), (180, 20, 0), (255, 130, 20), (200, 10, 20)]
FEW = ("anna", "bodo", "carla")
PEOPLE = dict(zip(FEW, (ANNA, BODO, CARLA), strict=True))
# Blue where others are red: a face only to networks that are given the channels swapped.
SMURF = [(10, 20, 250), (60, 0, 255), (0, 90, 200), (20, 20, 240)]
NOBODY = drawn({})
CUT = encoded(drawn({(0, 0): ANNA}).resize((400, 400)), "PNG")[:300]


def _shown(*names: str, at: int = 0) -> Image.Image:
    return drawn({(at, number): PEOPLE[name] for number, name in enumerate(names)})


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack(tmp_path_factory.mktemp("faces") / "pack")


def _measure(pack: Path | str, inputs: Any, outputs: Any, **options: Any) -> FaceIdentityResult:
    settings: Mapping[str, Any] = {"pack": pack, "det_size": SIDE, "n_boot": 0, **options}
    return face_identity(inputs, outputs, **settings)


def test_a_face_that_stays_has_a_cosine_of_one(pack: Path) -> None:
    result = _measure(
        pack, [_shown("anna"), _shown("anna")], [_shown("anna", at=3), _shown("bodo")]
    )
    expected = (1.0, cosine(ANNA, BODO))
    assert result.per_sample == pytest.approx(expected, abs=1e-6)
    assert result.value == pytest.approx(np.mean(expected), abs=1e-6)
    assert (result.n, result.coverage, result.counts) == (2, 1.0, {})


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


@pytest.mark.parametrize(
    ("given", "made", "reason"),
    [
        (NOBODY, _shown("anna"), "no_face_in_input"),
        (_shown("anna"), NOBODY, "no_face_in_output"),
        (_shown("anna"), None, "missing_output"),
        ([_shown("anna"), CUT], _shown("anna"), "bad_input"),
        (_shown("anna"), _shown("anna").resize((2000, 3)), "model_failed"),
    ],
)
@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_without_two_faces_there_is_a_reason_and_no_number(
    pack: Path, given: Any, made: Any, reason: str, protocol: Protocol
) -> None:
    blue = drawn({(0, 0): SMURF, (2, 2): ANNA})
    if protocol == "published" and reason in ("no_face_in_output", "model_failed"):
        given, reason = blue, {"model_failed": "size_not_taken"}.get(reason, reason)
    result = _measure(pack, [given, blue], [made, blue], protocol=protocol)
    assert [one and one.reason for one in result.reasons] == [MetricReason(reason), None]  # type: ignore[call-arg]
    assert result.per_sample[0] is None
    assert result.per_sample[1] == result.value == pytest.approx(1)
    assert (result.n, result.coverage, result.matches[0]) == (1, 0.5, None)


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


def test_several_inputs_count_or_are_dropped(pack: Path) -> None:
    faces, others = (drawn({(0, 0): SMURF, (1, 1): person}) for person in (ANNA, BODO))
    for protocol, counts in (("corrected", {}), ("published", {MetricReason.SEVERAL_INPUTS: 1})):
        result = _measure(pack, [[faces, others], faces], [others, faces], protocol=protocol)
        assert result.counts == counts
        assert result.value == pytest.approx(1)


SAMPLES: list[tuple[Any, Any]] = [
    (_shown("anna"), _shown("bodo")),
    ([_shown("bodo"), _shown("carla")], _shown("carla", at=2)),
    (_shown("carla"), None),
    (_shown("anna", "bodo"), NOBODY),
    (CUT, _shown("anna")),
    (_shown("carla"), GREY),
    (_shown("carla", at=1), _shown("anna", at=1)),
]


def _sides(samples: list[tuple[Any, Any]]) -> list[list[Any]]:
    return [[one[side] for one in samples] for side in (0, 1)]


def test_threads_find_what_one_finds_and_nothing_is_printed(
    pack: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sides = _sides(SAMPLES * 4)
    assert _measure(pack, *sides, threads=4) == _measure(pack, *sides, threads=1)
    assert capfd.readouterr() == ("", "")


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
