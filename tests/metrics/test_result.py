"""What every metric gives: means with intervals, reasons, plain JSON, and names that are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm
from scipy.stats import t as student

import echo_hf
from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics import (
    MetricResult,
    color_shift,
    face_identity,
    ocr_accuracy,
    structure_distance,
    text_rendering,
)
from echo_hf.metrics.result import (
    Unmeasured,
    check_extra,
    coverage_of,
    error_line,
    mean_of,
)
from echo_hf.reasons import BadImage, ImageNotice, MetricReason
from tests.metrics.images_for_metrics import noise
from tests.metrics.test_cards import METRICS
from tests.stages_for_tests import ROOT


def test_a_result_is_json() -> None:
    result = MetricResult(
        value=0.5,
        per_sample=(0.5, None),
        interval=(0.25, 0.75),
        n=1,
        coverage=0.5,
        reasons=(None, Unmeasured(MetricReason.BAD_OUTPUT, BadImage.HTML, "output: a page")),
        definition={"protocol": "corrected"},
        notices={ImageNotice.TRANSPARENT: 2},
    )
    assert json.loads(json.dumps(result.as_json(), allow_nan=False)) == {
        "value": 0.5,
        "per_sample": [0.5, None],
        "interval": [0.25, 0.75],
        "n": 1,
        "coverage": 0.5,
        "reasons": [None, {"reason": "bad_output", "cause": "html", "detail": "output: a page"}],
        "definition": {"protocol": "corrected"},
        "notices": {"transparent": 2},
    }


def test_no_samples_are_not_covered_and_not_uncovered() -> None:
    assert coverage_of(0, 0) is None
    assert coverage_of(0, 3) == 0


VALUES = st.lists(st.none() | st.floats(-1000, 1000), max_size=30)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_nothing(values: list[float | None], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (mean_of(one, n_boot=50, seed=1) for one in (values, shuffled))
    assert (first.value, first.interval) == (second.value, second.interval)
    assert second.per_sample == tuple(shuffled)


@given(VALUES)
def test_missing_numbers_are_no_zeros(values: list[float | None]) -> None:
    known = [one for one in values if one is not None]
    found = mean_of(values, n_boot=0, seed=0)
    assert found.interval is None
    assert found.value == (pytest.approx(np.mean(known), abs=1e-9) if known else None)


def test_the_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(4).gamma(2.0, 3.0, 200)
    found = mean_of(values.tolist(), n_boot=20_000, seed=0).interval
    expected = bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * norm.cdf(np.sqrt(200 / 199) * student.ppf(0.025, 199)),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(9),
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


@pytest.mark.parametrize("samples", [10, 20])
def test_intervals_of_few_samples_hold_the_truth(samples: int) -> None:
    trials, truth = 2500, 3.0
    values = np.random.default_rng(samples).normal(truth, 2.0, (trials, samples)).tolist()
    held = 0
    for seed, sample in enumerate(values):
        low, high = mean_of(sample, n_boot=1000, seed=seed).interval or (truth, truth)
        held += low < truth < high
    assert held / trials == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / trials))


@pytest.mark.parametrize("values", [[1.0, 2.0] * 4 + [3.0], [5.0] * 40, [None] * 40, []], ids=repr)
def test_what_says_nothing_of_others_has_no_interval(values: list[float | None]) -> None:
    assert mean_of(values, n_boot=100, seed=0).interval is None


@pytest.mark.parametrize("n_boot", [-1, 2.5, "9", None])
def test_draws_are_a_number(n_boot: object) -> None:
    for values in ([1.0, 2.0], []):
        with pytest.raises(ScoreError, match=r"n_boot is .*: expected a whole number of draws"):
            mean_of(values, n_boot=n_boot, seed=0)  # type: ignore[arg-type]


def test_a_package_that_is_missing_names_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packages = ["json", "wave", "no_such_package"]
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    expected = r"^face_identity needs packages .*: pip install \"echo-hf\[face\]\"$"
    with pytest.raises(MissingExtraError, match=expected):
        check_extra("face_identity", "face", packages)
    check_extra("face_identity", "face", packages[:2])
    assert "wave" not in sys.modules


@given(st.text())
def test_an_error_is_one_line_of_bounded_length(words: str) -> None:
    line = error_line(KeyError(words))
    assert line.startswith("KeyError")
    assert len(line) <= 200
    assert len(line.splitlines()) == 1


INPUTS, OUTPUTS = [noise(1)], [noise(2)]
ROWS = [{"sample_id": "s", "system": "a", "judge": "j", "rating": 5}]
BOTH = ("published", "corrected")
EXTRAS = {"structure_distance": "torch", "face_identity": "insightface", "ocr_accuracy": "rapidocr"}


def _of(name: str, folder: Path, protocol: Any) -> list[MetricResult]:
    if name == "color_shift":
        return [color_shift(INPUTS, OUTPUTS, protocol=protocol)]
    if name == "text_rendering":
        return [text_rendering(ROWS, protocol=protocol)]
    if name == "ocr_accuracy":
        return [ocr_accuracy(["a cat"], OUTPUTS, vocabulary=words) for words in (["cat"], None)]
    if name == "face_identity":
        from tests.metrics.tiny_face_pack import write_pack

        pack = write_pack(folder / "pack")
        return [face_identity(INPUTS, OUTPUTS, pack=pack, det_size=128, protocol=protocol)]
    from tests.metrics.vit_for_tests import TINY, weights_of, write_vit

    model = str(write_vit(folder / "vit", TINY, weights_of(TINY)))
    sizes: dict[str, Any] = {"model": model, "layer": 2, "size": TINY.side}
    return [structure_distance(INPUTS, OUTPUTS, protocol=protocol, **sizes)]


def _is_plain(definition: Any) -> None:
    assert json.loads(json.dumps(definition, allow_nan=False)) == definition


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize("name", sorted(set(METRICS) - set(EXTRAS) - {"win_rate"}))
def test_a_definition_is_plain_json(name: str, protocol: str, tmp_path: Path) -> None:
    for result in _of(name, tmp_path, protocol):
        _is_plain(result.definition)


@pytest.mark.extras
@pytest.mark.parametrize("name", EXTRAS)
def test_a_definition_of_a_metric_with_an_extra_is_plain_json(name: str, tmp_path: Path) -> None:
    pytest.importorskip(EXTRAS[name], reason=f"{name} needs {EXTRAS[name]}")
    for protocol in BOTH if name != "ocr_accuracy" else BOTH[:1]:
        for result in _of(name, tmp_path, protocol):
            _is_plain(result.definition)


@pytest.mark.parametrize("protocol", BOTH)
def test_the_definition_of_win_rates_is_plain_json(protocol: Any) -> None:
    _is_plain(echo_hf.scores.win_rate(ROWS, protocol=protocol).definition)


HEAVY = (
    "datasets", "pyarrow", "pandas", "torch", "transformers", "scipy", "insightface",
    "onnxruntime", "cv2", "rapidocr", "spellchecker", "huggingface_hub",
)  # fmt: skip

NAMES = ("color_shift", "face_identity", "ocr_accuracy", "text_rendering", "structure_distance")


@pytest.mark.parametrize(
    "code",
    [
        "from echo_hf.metrics.color_shift import ColorShift; import echo_hf.metrics as m",
        "from echo_hf.metrics import text_rendering; import echo_hf.metrics as m",
        "import echo_hf.metrics.structure_distance; import echo_hf.metrics as m",
        "from echo_hf.metrics.face_identity import FaceIdentity; import echo_hf.metrics as m",
        "from echo_hf.metrics.ocr_accuracy import OcrAccuracy; import echo_hf.metrics as m",
        "import echo_hf; m = echo_hf.metrics",
    ],
)
def test_names_are_functions_whatever_is_imported_first(code: str) -> None:
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}; import sys; print(all(callable(getattr(m, name)) for name in {NAMES!r}),"
            f" [name for name in {HEAVY!r} if name in sys.modules])",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.split() == ["True", "[]"]
