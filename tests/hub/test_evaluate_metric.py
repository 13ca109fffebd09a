"""Measures through `evaluate`: the numbers that there are without it, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from datasets import Dataset, Features, List
from datasets import Image as ImageFeature
from PIL import Image

from echo_hf.errors import EchoError, MissingExtraError, ScoreError
from echo_hf.hub.evaluate_configs import CONFIGS, plain
from echo_hf.metrics import color_shift, text_rendering
from echo_hf.scores import win_rate
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import noise, trimmed_shift
from tests.metrics.published_colors import INPUTS as PUBLISHED_INPUTS
from tests.metrics.published_colors import PUBLISHED
from tests.scores.ratings_for_tests import counted_rates, rows_of

ROOT = Path(__file__).resolve().parents[2]
Load = Callable[..., Any]
CUBE = {
    "jay": {"ash": [4, 3, None, 2], "birch": [2, 3, 5, 4], "cedar": [1, 4, 2, None]},
    "kite": {"ash": [7, 1, 3, 2], "birch": [8, 2, 3, 1], "cedar": [2, 2, 9, 1]},
}
RATINGS = rows_of(CUBE)
INPUTS = [noise(seed, 20, 200 + seed, size=(6 + seed, 8)) for seed in range(12)]
OUTPUTS = [noise(seed + 50, 30, 240, size=(9, 7)) for seed in range(12)]
CUT = encoded(noise(2, size=(200, 200)), "PNG")[:9000]
# All that a sample can be: several inputs, none, no output, a broken one.
MIXED_INPUTS = [INPUTS[0], [INPUTS[1], INPUTS[2]], [], INPUTS[3], None, [INPUTS[4], None]]
MIXED_OUTPUTS = [OUTPUTS[0], OUTPUTS[1], OUTPUTS[2], None, OUTPUTS[4], CUT]
TEN_MORE = {"n_boot": 50, "seed": 3}


def _of_mean(levels: tuple[float, float, float]) -> Image.Image:
    """An image of half a million pixels with this mean color."""
    channels = []
    for level in levels:
        low, high = int(level) - 30, int(level) + 31
        channel = np.full((500, 1000), low, np.uint8)
        channel.ravel()[: round((level - low) / (high - low) * channel.size)] = high
        channels.append(channel)
    return Image.fromarray(np.stack(channels, axis=-1))


@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_win_rates_are_those_that_counting_gives(load_measure: Load, protocol: str) -> None:
    """Each comparison counted by hand, in a loop over plain numbers."""
    found = load_measure("win_rate").compute(predictions=RATINGS, protocol=protocol)
    assert found["win_rate"] == pytest.approx(counted_rates(CUBE, protocol))
    assert found["protocol"] == protocol


@pytest.mark.parametrize("system", ["Nano Banana", "4o Image Gen"])
def test_color_shifts_are_the_published_ones(load_measure: Load, system: str) -> None:
    """Images of the printed mean colors give the printed shift."""
    colors, shift = PUBLISHED[system]
    found = load_measure("color_shift", protocol="published").compute(
        predictions=[_of_mean(colors)], references=[_of_mean(PUBLISHED_INPUTS)]
    )
    assert found["value"] == pytest.approx(shift, abs=0.006)
    assert found["definition"]["protocol"] == "published"


def test_color_shift_is_that_of_all_pixels(load_measure: Load) -> None:
    """Counted pixel by pixel."""
    found = load_measure("color_shift").compute(predictions=OUTPUTS, references=INPUTS)
    before, after = ([np.asarray(one) for one in side] for side in (INPUTS, OUTPUTS))
    assert found["value"] == pytest.approx(trimmed_shift(before, after))
    assert (found["n"], found["coverage"]) == (12, 1.0)


def test_text_rendering_is_the_mean_of_ten(load_measure: Load) -> None:
    """Judges of a sample first, then samples: (.55 + .2 + .3 + .2) / 4 by hand."""
    found = load_measure("text_rendering").compute(predictions=RATINGS, system="ash")
    assert found["value"] == pytest.approx((0.55 + 0.2 + 0.3 + 0.2) / 4)
    assert found["sample_ids"] == ["s000", "s001", "s002", "s003"]


@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_results_are_those_of_the_functions(
    load_measure: Load, protocol: Literal["published", "corrected"]
) -> None:
    """Every key of them, with parameters passed on."""
    rated = {"protocol": protocol, **TEN_MORE}
    found = [
        load_measure("win_rate").compute(predictions=RATINGS, **rated),
        load_measure("text_rendering").compute(predictions=RATINGS, system="cedar", **rated),
        load_measure("color_shift").compute(
            predictions=MIXED_OUTPUTS, references=MIXED_INPUTS, threads=1, **rated
        ),
    ]
    assert found == [
        plain(win_rate(RATINGS, protocol=protocol, n_boot=50, seed=3)),
        plain(text_rendering(RATINGS, system="cedar", protocol=protocol, n_boot=50, seed=3)),
        plain(color_shift(MIXED_INPUTS, MIXED_OUTPUTS, protocol=protocol, n_boot=50, seed=3)),
    ]


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_batches_add_up_to_the_whole(load_measure: Load, keep_in_memory: bool) -> None:
    """One by one, in batches of any size, or at once."""
    load = [load_measure(name, keep_in_memory=keep_in_memory) for name in ["color_shift"] * 2]
    one_by_one, batches = load
    for made, given in zip(MIXED_OUTPUTS, MIXED_INPUTS, strict=True):
        one_by_one.add(prediction=made, reference=given)
    for some in (slice(0, 1), slice(1, 1), slice(1, 6)):
        batches.add_batch(predictions=MIXED_OUTPUTS[some], references=MIXED_INPUTS[some])
    whole = load_measure("color_shift").compute(predictions=MIXED_OUTPUTS, references=MIXED_INPUTS)
    assert [one.compute() for one in load] == [whole, whole]
    rates = load_measure("win_rate", keep_in_memory=keep_in_memory)
    for row in RATINGS[:5]:
        rates.add(prediction=row)
    rates.add_batch(predictions=RATINGS[5:20])
    assert rates.compute(predictions=RATINGS[20:]) == plain(win_rate(RATINGS))


def test_nothing_is_kept_from_one_computation_to_the_next(
    load_measure: Load, tmp_path: Path
) -> None:
    """Neither rows nor files."""
    metric = load_measure("win_rate")
    first = metric.compute(predictions=RATINGS)
    assert metric.compute(predictions=RATINGS) == first
    assert list(tmp_path.rglob("*.arrow")) == []
    with pytest.raises(
        ScoreError, match=r"^win_rate: nothing was added: expected predictions=, or"
    ):
        metric.compute()


def test_more_rows_than_are_written_at_once(load_measure: Load) -> None:
    """Every one of them counts, in the order in which they came."""
    assert len(INPUTS) > CONFIGS["color_shift"].columns.at_once
    found = load_measure("color_shift").compute(predictions=OUTPUTS, references=INPUTS)
    assert found["per_sample"] == list(color_shift(INPUTS, OUTPUTS).per_sample)


def test_every_form_of_an_image_is_the_same_image(load_measure: Load, tmp_path: Path) -> None:
    """Pillow's, a path, bytes, a dict, a column of a dataset: decoded, not decoded, of lists."""
    files = [encoded(one, "PNG") for one in OUTPUTS[:3]]
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    rows = {"made": files, "given": [[encoded(one, "PNG")] for one in INPUTS[:3]]}
    features = Features({"made": ImageFeature(), "given": List(ImageFeature())})
    table = Dataset.from_dict(rows, features=features)
    raw = table.cast_column("made", ImageFeature(decode=False))
    expected = plain(color_shift(INPUTS[:3], OUTPUTS[:3]))
    forms = (OUTPUTS[:3], files, paths, [str(path) for path in paths], table["made"], raw["made"])
    for given in (*forms, [{"bytes": data, "path": None} for data in files]):
        for references in (INPUTS[:3], table["given"]):
            metric = load_measure("color_shift")
            assert metric.compute(predictions=given, references=references) == expected


def test_files_stay_the_bytes_they_were(load_measure: Load) -> None:
    """What evaluate keeps of a photograph is the photograph, not a copy that was packed anew."""
    data = encoded(noise(4, size=(40, 40)), "JPEG", quality=60)
    metric = load_measure("color_shift", keep_in_memory=True)
    metric.add_batch(predictions=[data], references=[[data, OUTPUTS[0]]])
    metric.writer.finalize()
    stored = Dataset.from_buffer(metric.buf_writer.getvalue()).with_format("arrow")[:]
    assert stored["predictions"].to_pylist() == [{"bytes": data, "path": None}]
    assert stored["references"][0].as_py()[0] == {"bytes": data, "path": None}
    metric.writer = None


def test_ratings_come_in_every_form_of_a_table(load_measure: Load) -> None:
    """A dataset, a data frame, columns; what a released table has beside them may stay in."""
    table = Dataset.from_list([{**row, "explanation": "Sharp."} for row in RATINGS])
    expected = plain(win_rate(RATINGS))
    for given in (table, table.to_pandas(), table.to_dict(), table.with_format("arrow")[:]):
        assert load_measure("win_rate").compute(predictions=given) == expected


def test_optional_columns_count_where_they_are(load_measure: Load) -> None:
    """Rubrics part the ratings, repeats are averaged, other digests are left out and counted."""
    rows = [
        {**row, "rubric": rubric, "repeat": repeat, "sample_digest": "d"}
        for row in RATINGS
        for rubric in ("overall", "text_rendering")
        for repeat in (0, 1)
    ]
    outputs = [
        {"sample_id": sample, "system": system, "outcome": "ok", "sample_digest": digest}
        for system in ("ash", "birch", "cedar")
        for sample, digest in (("s000", "d"), ("s001", "e"), ("s002", "d"), ("s003", "d"))
    ]
    found = load_measure("win_rate").compute(predictions=rows, outputs=outputs, missing="loss")
    assert found == plain(win_rate(rows, outputs, missing="loss"))
    assert found["ignored"]["other_rubric"] == len(rows) // 2
    assert found["ignored"]["other_digest"] > 0


def test_no_samples_have_no_number(load_measure: Load) -> None:
    """An empty list is a result without a value, as it is without evaluate."""
    found = load_measure("color_shift").compute(predictions=[], references=[])
    assert (found["value"], found["n"], found["coverage"]) == (None, 0, None)
    assert load_measure("win_rate").compute(predictions=[])["win_rate"] == {}


ROW = RATINGS[0]
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no outputs": ("color_shift", {"references": INPUTS}, "no predictions: expected the system's"),
    "no inputs": ("color_shift", {"predictions": OUTPUTS}, "no references: expected the inputs"),
    "lengths": ("color_shift", {"predictions": OUTPUTS, "references": []}, "0 inputs and 12 out"),
    "no image": (
        "color_shift",
        {"predictions": [OUTPUTS[0], 7], "references": INPUTS[:2]},
        r"outputs\[1\]: 'int' is not an image: expected an image of Pillow's, a path",
    ),
    "rows": (
        "color_shift",
        {"predictions": [{"id": 1, "made": OUTPUTS[0]}], "references": INPUTS[:1]},
        r"outputs\[0\]: a dict with the keys \['id', 'made'\] is not an image: expected",
    ),
    "one image": (
        "color_shift",
        {"predictions": OUTPUTS[0], "references": INPUTS[0]},
        "inputs: 'Image' is not one entry for each sample: expected a list",
    ),
    "references": (
        "win_rate",
        {"predictions": RATINGS, "references": INPUTS},
        "win_rate: unknown argument 'references'; known: predictions",
    ),
    "argument": (
        "win_rate",
        {"predicitons": RATINGS},
        "unknown argument 'predicitons'; did you mean 'predictions'",
    ),
    "missing": ("win_rate", {"predictions": [{"system": "a"}]}, "row 0 has no 'sample_id'"),
    "extra": (
        "text_rendering",
        {"predictions": [ROW, {**ROW, "rubrik": "overall"}]},
        "ratings: unknown column 'rubrik'; did you mean 'rubric'",
    ),
    "type": (
        "win_rate",
        {"predictions": [{**ROW, "rating": "9"}]},
        "column 'rating' has type 'string': expected numbers",
    ),
    "mixed": ("win_rate", {"predictions": [ROW, {**ROW, "rating": "9"}]}, "not a table with one"),
    "null": ("win_rate", {"predictions": [{**ROW, "judge": None}]}, "'judge' is null in row 0"),
    "null rubric": ("win_rate", {"predictions": [{**ROW, "rubric": None}]}, "'rubric' is null in"),
    "no rows": ("win_rate", {"predictions": [3]}, "row 0 is 3: expected a dict"),
}


@pytest.mark.parametrize(("name", "given", "expected"), WRONG.values(), ids=WRONG)
def test_a_wrong_batch_is_one_line_and_adds_nothing(
    load_measure: Load, name: str, given: dict[str, Any], expected: str
) -> None:
    """What was added before is still there, and none of the batch."""
    metric = load_measure(name)
    images: dict[str, Any] = {"predictions": OUTPUTS[:2], "references": INPUTS[:2]}
    metric.add_batch(**(images if name == "color_shift" else {"predictions": RATINGS}))
    before = len(metric)
    with pytest.raises(EchoError, match=expected) as caught:
        metric.add_batch(**given)
    assert "\n" not in str(caught.value)
    assert len(metric) == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"protcol": "published"}, "unknown parameter 'protcol'; did you mean 'protocol'"),
        ({"protocol": "publishd"}, "unknown protocol 'publishd'; did you mean 'published'"),
        ({"n_boot": -1}, "n_boot is -1"),
    ],
)
@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_a_failed_computation_loses_nothing(
    load_measure: Load,
    tmp_path: Path,
    options: dict[str, Any],
    expected: str,
    keep_in_memory: bool,
) -> None:
    """What was added stays, what the failed call brought does not; the next one is right."""
    metric = load_measure("color_shift", keep_in_memory=keep_in_memory)
    metric.add_batch(predictions=OUTPUTS, references=INPUTS)
    for given in ({}, {"predictions": [None], "references": [None]}):
        with pytest.raises(ScoreError, match=expected):
            metric.compute(**given, **options)
    assert metric.compute() == plain(color_shift(INPUTS, OUTPUTS))
    assert list(tmp_path.rglob("*.arrow")) == []


def test_parameters_can_be_given_on_loading(load_measure: Load) -> None:
    """They hold for every computation that is given no others; unknown ones are refused at once."""
    metric = load_measure("win_rate", protocol="published", n_boot=7)
    assert metric.compute(predictions=RATINGS)["definition"]["protocol"] == "published"
    other = metric.compute(predictions=RATINGS, protocol="corrected")
    assert (other["protocol"], other["definition"]["interval"]["draws"]) == ("corrected", 7)
    with pytest.raises(ScoreError, match="color_shift: unknown parameter 'judges'"):
        load_measure("color_shift", judges=["jay"])


def test_measures_combine(load_measure: Load) -> None:
    """Keys that both have begin with their names; each measure has parameters of its own."""
    import evaluate

    pair = [load_measure("win_rate"), load_measure("text_rendering", system="birch")]
    both = evaluate.combine(pair)
    both.add(prediction=RATINGS[0])
    both.add_batch(predictions=RATINGS[1:])
    found = both.compute(n_boot=20)
    rates = plain(win_rate(RATINGS, n_boot=20))
    text = plain(text_rendering(RATINGS, system="birch", n_boot=20))
    assert found["win_rate"] == rates["win_rate"]
    assert found["value"] == text["value"]
    shared = rates.keys() & text.keys()
    assert {name for name in found if name.startswith("text_rendering_")} == {
        f"text_rendering_{name}" for name in shared
    }
    assert found["win_rate_interval"] == rates["interval"]


def test_measures_of_images_combine(load_measure: Load) -> None:
    """Under names of the user's choice, where one measure is there twice."""
    import evaluate

    both = evaluate.combine(
        {name: load_measure("color_shift", protocol=name) for name in ("published", "corrected")}
    )
    found = both.compute(predictions=MIXED_OUTPUTS, references=MIXED_INPUTS)
    for name in ("published", "corrected"):
        alone = color_shift(MIXED_INPUTS, MIXED_OUTPUTS, protocol=name)
        assert found[f"{name}_value"] == alone.value
        assert found[f"{name}_definition"]["protocol"] == name


PART = """
import sys, evaluate, echo_hf
from tests.hub.test_evaluate_metric import RATINGS
from echo_hf.hub.evaluate_configs import plain
part = int(sys.argv[1])
options = {"num_process": 2, "process_id": part, "experiment_id": "ours", "timeout": 60}
metric = evaluate.load(echo_hf.evaluate_module(), "win_rate", **options)
metric.add_batch(predictions=RATINGS[part::2])
found = metric.compute()
assert (found is None) == (part == 1)
if part == 0:
    assert found == plain(echo_hf.scores.win_rate(RATINGS))
"""


def test_two_processes_add_and_the_first_computes(tmp_path: Path) -> None:
    """Every second rating each; the result is that of all, and the other process has none."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PART, str(part)],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
        )
        for part in (1, 0)
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said


@pytest.mark.parametrize("name", ["face_identity", "structure_distance"])
def test_a_missing_extra_is_one_line(load_measure: Load, name: str) -> None:
    """It says what installs it when the measure is computed, and what was added stays."""
    config = CONFIGS[name]
    try:
        config.check_installed()
    except MissingExtraError:
        metric = load_measure(name)
        metric.add_batch(predictions=OUTPUTS[:2], references=INPUTS[:2])
        with pytest.raises(MissingExtraError) as caught:
            metric.compute()
        install = f'pip install "echo-hf[{config.extra}]"'
        assert str(caught.value) == f"{name} needs packages that are not here: {install}"
        assert len(metric) == 2
    else:
        pytest.skip(f"the packages of the extra {config.extra!r} are installed")
