"""What every metric gives: means with intervals, reasons, plain JSON, and names that are there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm
from scipy.stats import t as student

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics import ColorShift, InputCache, color_shift, ocr_accuracy
from echo_hf.metrics.result import describe_error, estimate_mean
from tests.errors_for_tests import said_by
from tests.metrics.images_for_metrics import noise
from tests.metrics.test_cards import METRICS
from tests.stages_for_tests import ROOT

VALUES = st.lists(st.none() | st.floats(-1000, 1000), max_size=30)


@given(VALUES)
def test_missing_numbers_are_no_zeros(values: list[float | None]) -> None:
    known = [one for one in values if one is not None]
    found = estimate_mean(values, n_boot=0, seed=0)
    assert found.interval is None
    assert found.value == (pytest.approx(np.mean(known), abs=1e-9) if known else None)


def test_the_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(4).gamma(2.0, 3.0, 200)
    found = estimate_mean(values.tolist(), n_boot=20_000, seed=0).interval
    expected = bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * norm.cdf(np.sqrt(200 / 199) * student.ppf(0.025, 199)),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(9),
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


def test_draws_are_a_number_also_where_there_is_nothing_to_draw() -> None:
    assert estimate_mean([5.0] * 40, n_boot=100, seed=0).interval is None
    with pytest.raises(ScoreError, match=r"n_boot is 2.5: expected a whole number of draws"):
        estimate_mean([], n_boot=2.5, seed=0)  # type: ignore[arg-type]


def test_an_error_is_one_line_of_bounded_length() -> None:
    line = describe_error(ValueError("no\nroom " + "x" * 300))
    assert line.startswith("ValueError: no room xxx")
    assert len(line) == 200


INPUTS, OUTPUTS = [noise(1)], [noise(2)]
ROWS = [{"sample_id": "s", "system": "a", "judge": "j", "rating": 5}]
EXTRAS = {"structure_distance": "torch", "face_identity": "insightface", "ocr_accuracy": "rapidocr"}


def _of(name: str, folder: Path) -> Callable[..., Any]:
    """A metric of one sample, with the networks of a test."""
    if name in ("text_rendering", "win_rate"):
        return partial(METRICS[name], ROWS)
    if name == "ocr_accuracy":
        return lambda protocol: ocr_accuracy(
            ["a cat"], OUTPUTS, vocabulary=["cat"] if protocol == "published" else None
        )
    settings: dict[str, Any] = {}
    if name == "face_identity":
        from tests.metrics.tiny_face_pack import write_pack

        settings = {"pack": write_pack(folder / "pack"), "det_size": 128}
    if name == "structure_distance":
        from tests.metrics.vit_for_tests import TINY, weights_of, write_vit

        model = str(write_vit(folder / "vit", TINY, weights_of(TINY)))
        settings = {"model": model, "layer": 2, "size": TINY.side}
    return partial(METRICS[name], INPUTS, OUTPUTS, **settings)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.extras] * (one in EXTRAS))
        for one in METRICS
        if one != "human_corrected"  # which knows one protocol
    ],
)
def test_a_definition_is_plain_json(name: str, tmp_path: Path) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason=f"{name} needs {EXTRAS[name]}")
    measure = _of(name, tmp_path)
    for protocol in ("published", "corrected"):
        definition = measure(protocol=protocol).definition
        assert json.loads(json.dumps(definition, allow_nan=False)) == definition
        assert definition.get("metric", definition.get("measure")) == name


@pytest.mark.parametrize(
    ("name", "extra", "packages"),
    [
        ("face_identity", "face", ("insightface", "onnxruntime")),
        ("structure_distance", "metrics", ("torch", "transformers")),
        ("ocr_accuracy", "ocr", ("rapidocr", "onnxruntime", "spellchecker")),
    ],
)
def test_a_missing_package_is_told_at_first_use(
    name: str, extra: str, packages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in packages:
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, package, None)
            with pytest.raises(MissingExtraError, match=rf'^{name} .* "echo-hf\[{extra}\]", or'):
                METRICS[name]([], [])


READ, FACE, LAYOUT = (
    partial(METRICS[name], [], [])
    for name in ("ocr_accuracy", "face_identity", "structure_distance")
)


@pytest.mark.parametrize(
    ("make", "choices", "says"),
    [
        (FACE, {"det_size": 100}, "det_size is 100: expected a multiple of 32, such as 640"),
        (FACE, {"det_thresh": 0}, "det_thresh is 0: expected a number above 0, at most 1"),
        (READ, {"min_words": 0}, "min_words is 0: expected a whole number from 1"),
        (READ, {"min_confidence": 2}, "min_confidence is 2: expected a number from 0 to 1"),
        (READ, {"vocabulary": "words"}, "vocabulary holds something else than words: expected"),
        (READ, {"vocabulary": []}, "vocabulary is empty: expected words, or null for English"),
        (partial(color_shift, [], []), {"threads": 0}, "threads is 0: expected a whole number"),
        (partial(color_shift, [], []), {"threads": 1.5}, "threads is 1.5: expected a whole number"),
        (InputCache, {"most_bytes": -1}, "most_bytes is -1: expected a whole number from 0"),
        (InputCache, {"most_bytes": 1.5}, "most_bytes is 1.5: expected a whole number from 0"),
        (LAYOUT, {"reduction": "mini"}, "unknown reduction 'mini'; did you mean 'min'"),
        (LAYOUT, {"layer": -1}, "layer is -1: expected a whole number from 0"),
        (LAYOUT, {"batch_size": 2.5}, "batch_size is 2.5: expected a whole number from"),
        *(
            (
                make,
                {"protocol": "publised"},
                "unknown protocol 'publised'; did you mean 'published'",
            )
            for make in (ColorShift, FACE, LAYOUT)
        ),
    ],
)
def test_choices_that_there_are_not_are_told_at_once(make: Any, choices: Any, says: str) -> None:
    assert said_by(ScoreError, make, **choices).startswith(says)


HEAVY = (
    "datasets", "pyarrow", "pandas", "torch", "transformers", "scipy", "insightface",
    "onnxruntime", "cv2", "rapidocr", "spellchecker", "huggingface_hub",
)  # fmt: skip

NAMES = [name for name, metric in METRICS.items() if metric.__module__.endswith(f"metrics.{name}")]


def test_names_are_functions_whatever_is_imported_first() -> None:
    """And nothing heavy is imported for their names."""
    code = "; ".join(f"import echo_hf.metrics.{name}" for name in NAMES)
    told = (
        f"{code}; import sys; m = echo_hf.metrics; "
        f"print(all(callable(getattr(m, name)) for name in {NAMES!r}),"
        f" [name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", told]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["True", "[]"]
