"""Measures through `evaluate`: the numbers that there are without it, and nothing is lost."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, Features, List
from datasets import Image as ImageFeature
from PIL import Image

import echo_hf
from echo_hf.errors import EchoError, MissingExtraError, ScoreError, TableError
from echo_hf.hub.evaluate_metric import (
    AT_ONCE,
    CONFIGS,
    MOST_BATCH_BYTES,
    MOST_SAMPLES,
    plain,
    store_images,
    store_ratings,
)
from echo_hf.metrics import color_shift, text_rendering
from echo_hf.metrics.result import check_extra
from echo_hf.scores import human_corrected, win_rate
from tests.images_for_tests import encoded
from tests.metrics.images_for_metrics import noise
from tests.metrics.published_colors import INPUTS as PUBLISHED_INPUTS
from tests.metrics.published_colors import PUBLISHED
from tests.scores.ratings_for_tests import rows_of

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


def _of_mean(levels: tuple[float, float, float]) -> Image.Image:
    channels = []
    for level in levels:
        low, high = int(level) - 30, int(level) + 31
        channel = np.full((500, 1000), low, np.uint8)
        channel.ravel()[: round((level - low) / (high - low) * channel.size)] = high
        channels.append(channel)
    return Image.fromarray(np.stack(channels, axis=-1))


@pytest.mark.parametrize("system", ["Nano Banana", "4o Image Gen"])
def test_color_shifts_are_the_published_ones(load_measure: Load, system: str) -> None:
    colors, shift = PUBLISHED[system]
    found = load_measure("color_shift", protocol="published").compute(
        predictions=[_of_mean(colors)], references=[_of_mean(PUBLISHED_INPUTS)]
    )
    assert found["value"] == pytest.approx(shift, abs=0.006)
    assert found["definition"]["protocol"] == "published"


@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_results_are_those_of_the_functions(
    load_measure: Load, protocol: Literal["published", "corrected"]
) -> None:
    rated: dict[str, Any] = {"protocol": protocol, "n_boot": 50, "seed": 3}
    rates, text, shift = (load_measure(name) for name in PLAIN)
    images = {"predictions": MIXED_OUTPUTS, "references": MIXED_INPUTS}
    assert rates.compute(predictions=RATINGS, **rated) == plain(win_rate(RATINGS, **rated))
    found = text.compute(predictions=RATINGS, system="ash", **rated)
    assert found == plain(text_rendering(RATINGS, system="ash", **rated))
    assert found["value"] == pytest.approx((0.55 + 0.2 + 0.3 + 0.2) / 4)  # the mean, of ten
    found = shift.compute(**images, threads=1, **rated)
    assert found == plain(color_shift(MIXED_INPUTS, MIXED_OUTPUTS, **rated))


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_batches_add_up_to_the_whole(
    load_measure: Load, tmp_path: Path, keep_in_memory: bool
) -> None:
    """And nothing is kept from one computation to the next."""
    one_by_one, batches = (
        load_measure("color_shift", keep_in_memory=keep_in_memory) for _ in range(2)
    )
    for made, given in zip(MIXED_OUTPUTS, MIXED_INPUTS, strict=True):
        one_by_one.add(prediction=made, reference=given)
    for some in (slice(0, 1), slice(1, 1), slice(1, 6)):
        batches.add_batch(predictions=MIXED_OUTPUTS[some], references=MIXED_INPUTS[some])
    expected = plain(color_shift(MIXED_INPUTS, MIXED_OUTPUTS))
    assert [one_by_one.compute(), batches.compute()] == [expected, expected]
    rates = load_measure("win_rate", keep_in_memory=keep_in_memory)
    for row in RATINGS[:5]:
        rates.add(prediction=row)
    rates.add_batch(predictions=RATINGS[5:20])
    for rest in (RATINGS[20:], RATINGS):
        assert rates.compute(predictions=rest) == plain(win_rate(RATINGS))
    assert list(tmp_path.rglob("*.arrow")) == []
    with pytest.raises(ScoreError, match=r"^win_rate: nothing was added: expected predictions="):
        rates.compute()


def test_every_form_of_an_image_is_the_same_image(load_measure: Load, tmp_path: Path) -> None:
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
        metric = load_measure("color_shift")
        assert metric.compute(predictions=given, references=table["given"]) == expected


def test_files_stay_the_bytes_they_were(load_measure: Load) -> None:
    data = encoded(noise(4, size=(40, 40)), "JPEG", quality=60)
    metric = load_measure("color_shift", keep_in_memory=True)
    metric.add_batch(predictions=[data], references=[[data, OUTPUTS[0]]])
    metric.writer.finalize()
    stored = Dataset.from_buffer(metric.buf_writer.getvalue()).with_format("arrow")[:]
    assert stored["predictions"].to_pylist() == [{"bytes": data, "path": None}]
    assert stored["references"][0].as_py()[0] == {"bytes": data, "path": None}
    metric.writer = None


def test_optional_columns_count_where_they_are(load_measure: Load) -> None:
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


ROW = RATINGS[0]
GOOD = [encoded(noise(0), "PNG")] * (2 * MOST_SAMPLES)
WRONG_IMAGES: dict[str, tuple[Any, Any, str]] = {
    "no outputs": (None, INPUTS, "no predictions: expected the system's"),
    "no inputs": (OUTPUTS, None, "no references: expected the inputs"),
    "lengths": (OUTPUTS, [], "0 inputs and 12 out"),
    "lengths of streams": (iter(GOOD), iter([*GOOD, GOOD[0]]), "end after 16 samples"),
    "the last is no image": ([*GOOD, 7], [*GOOD, GOOD[0]], r"outputs\[16\]: 'int' is not an image"),
    "rows": (
        [{"id": 1, "made": OUTPUTS[0]}],
        INPUTS[:1],
        r"outputs\[0\]: a dict with the keys \['id', 'made'\] is not an image: expected",
    ),
    "one image": (OUTPUTS[0], INPUTS[0], "'Image' is not one entry for each sample: expected a li"),
}
WRONG_RATINGS: dict[str, tuple[dict[str, Any], str]] = {
    "references": (
        {"predictions": RATINGS, "references": INPUTS},
        "win_rate: unknown argument 'references'; known: predictions",
    ),
    "argument": ({"predicitons": RATINGS}, "'predicitons'; did you mean 'predictions'"),
    "missing": ({"predictions": [{"system": "a"}]}, "row 0 is {'system': 'a'}: expected"),
    "extra": (
        {"predictions": [ROW, {**ROW, "rubrik": "overall"}]},
        "ratings: unknown column 'rubrik'; did you mean 'rubric'",
    ),
    "type": ({"predictions": [{**ROW, "rating": "9"}]}, "has type 'string': expected numbers"),
    "mixed": ({"predictions": [ROW, {**ROW, "rating": "9"}]}, "not a table with one"),
    "null": ({"predictions": [{**ROW, "judge": None}]}, "'judge' is null in row 0"),
    "null rubric": ({"predictions": [{**ROW, "rubric": None}]}, "'rubric' is null in"),
    "no rows": ({"predictions": [3]}, "row 0 is 3: expected a dict"),
}
WRONG = {
    **{
        name: ("color_shift", {"predictions": made, "references": given}, said)
        for name, (made, given, said) in WRONG_IMAGES.items()
    },
    **{name: ("win_rate", *given) for name, given in WRONG_RATINGS.items()},
}


@pytest.mark.parametrize(("name", "given", "expected"), WRONG.values(), ids=WRONG)
def test_a_wrong_batch_is_one_line_and_adds_nothing(
    load_measure: Load, name: str, given: dict[str, Any], expected: str
) -> None:
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
def test_a_failed_computation_loses_nothing(
    load_measure: Load, tmp_path: Path, options: dict[str, Any], expected: str
) -> None:
    metric = load_measure("color_shift")
    metric.add_batch(predictions=OUTPUTS, references=INPUTS)
    for given in ({}, {"predictions": [None], "references": [None]}):
        with pytest.raises(ScoreError, match=expected):
            metric.compute(**given, **options)
    assert metric.compute() == plain(color_shift(INPUTS, OUTPUTS))
    assert list(tmp_path.rglob("*.arrow")) == []


def test_parameters_can_be_given_on_loading(load_measure: Load) -> None:
    metric = load_measure("win_rate", protocol="published", n_boot=7)
    assert metric.compute(predictions=RATINGS)["definition"]["protocol"] == "published"
    other = metric.compute(predictions=RATINGS, protocol="corrected")
    assert (other["protocol"], other["definition"]["interval"]["draws"]) == ("corrected", 7)
    with pytest.raises(ScoreError, match="color_shift: unknown parameter 'judges'"):
        load_measure("color_shift", judges=["jay"])


def test_people_correct_ratings(load_measure: Load) -> None:
    """As the function does; without people, a line says what to give."""
    rows = [
        {"sample_id": str(at), "system": system, "judge": "jay", "rating": (at * 7 + place) % 5}
        for at in range(30)
        for place, system in enumerate(("ash", "birch"))
    ]
    ranks = [
        {"sample_id": row["sample_id"], "rater": "ada", "system": row["system"], "rank": 1 + at % 3}
        for at, row in enumerate(rows[:40])
    ]
    metric = load_measure("human_corrected")
    found = metric.compute(predictions=rows, human=ranks, confidence=0.9)
    assert found == plain(human_corrected(rows, ranks, confidence=0.9))
    said = CONFIGS["human_corrected"].gives
    assert sorted(said.split(", ")) == sorted(found)
    loaded = load_measure("human_corrected", human=ranks)
    assert loaded.compute(predictions=rows)["win_rate"] == found["win_rate"]
    metric.add_batch(predictions=rows)
    for given in ({}, {"human": None}):
        with pytest.raises(ScoreError, match=r"^human_corrected: no human: expected compute\("):
            metric.compute(**given)
    assert len(metric) == len(rows)


def test_measures_combine(load_measure: Load) -> None:
    import evaluate

    pair = [load_measure("win_rate"), load_measure("text_rendering", system="birch")]
    both = evaluate.combine(pair)
    both.add(prediction=RATINGS[0])
    both.add_batch(predictions=RATINGS[1:])
    found = both.compute(n_boot=20)
    rates = plain(win_rate(RATINGS, n_boot=20))
    text = plain(text_rendering(RATINGS, system="birch", n_boot=20))
    assert (found["win_rate"], found["value"]) == (rates["win_rate"], text["value"])
    shared = {f"text_rendering_{name}" for name in rates.keys() & text.keys()}
    assert {name for name in found if name.startswith("text_rendering_")} == shared
    assert found["win_rate_interval"] == rates["interval"]


PART = """
import sys, evaluate, echo_hf
from tests.hub.test_evaluate_metric import RATINGS
from echo_hf.hub.evaluate_metric import plain
part = int(sys.argv[1])
options = {"num_process": 2, "process_id": part, "experiment_id": "ours", "timeout": 60}
metric = evaluate.load(echo_hf.evaluate_module(), "win_rate", **options)
metric.add_batch(predictions=RATINGS[part::2])
found = metric.compute()
assert (found is None) == (part == 1)
if part == 0:
    assert found == plain(echo_hf.scores.win_rate(RATINGS))
"""


@pytest.mark.slow
def test_two_processes_add_and_the_first_computes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path)}
    given: dict[str, Any] = {"cwd": ROOT, "env": environment, "stderr": subprocess.PIPE}
    running = [
        subprocess.Popen([sys.executable, "-c", PART, part], text=True, **given) for part in "10"
    ]
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said


@pytest.mark.parametrize("name", ["face_identity", "structure_distance"])
def test_a_missing_extra_is_one_line(load_measure: Load, name: str) -> None:
    config = CONFIGS[name]
    try:
        check_extra(name, config.extra or "", config.packages)
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


PLAIN = ("win_rate", "text_rendering", "color_shift")
GREY = Image.linear_gradient("L")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_of_a_measure_passes_and_no_other(name: str) -> None:
    """The documented keys are those of its result, where its packages are here."""
    config = CONFIGS[name]
    measure = getattr(getattr(echo_hf, config.part), name)
    known = list(inspect.signature(measure).parameters)
    data = list(config.columns.features)
    config.check_options(known[len(data) :])
    for option in known[: len(data)]:
        with pytest.raises(ScoreError, match=f"{name}: unknown parameter '{option}'"):
            config.check_options([option])
    if name in PLAIN:
        result = measure([GREY], [GREY]) if len(data) == 2 else measure([ROW])
        said = config.gives.replace(" (of reasons)", "")
        assert sorted(said.split(", ")) == sorted(plain(result))


def test_a_plain_result_is_what_its_json_gives() -> None:
    found = plain(color_shift([GREY, GREY, GREY], [GREY, None, None], n_boot=0))
    assert json.loads(json.dumps(found)) == found
    assert found["per_sample"] == [0.0, None, None]
    assert found["counts"] == {"missing_output": 2}
    assert {type(key) for key in found["counts"]} == {str}
    assert found["reasons"][1]["reason"] == "missing_output"

    @dataclass
    class Odd:
        def as_json(self) -> dict[str, Any]:
            return {"value": math.nan}

    with pytest.raises(ValueError, match="JSON"):
        plain(Odd())


def test_a_part_has_so_many_samples_and_bytes() -> None:
    for count in (0, 1, MOST_SAMPLES, MOST_SAMPLES + 1, 3 * MOST_SAMPLES):
        parts = list(store_images(GOOD[:1] * count, [None] * count))
        sizes = [len(part["predictions"]) for part in parts]
        assert (sum(sizes), min(sizes, default=1) > 0) == (count, True)
        assert max(sizes, default=0) <= MOST_SAMPLES
    half = bytes(MOST_BATCH_BYTES // 2)
    for count, given, expected in ((5, None, [2, 2, 1]), (2, half, [1, 1])):
        parts = list(store_images([half] * count, [given] * count))
        assert [len(part["references"]) for part in parts] == expected


def _images(count: int) -> Iterator[Image.Image]:
    for seed in range(count):
        yield noise(seed, size=(200, 200))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_batch(load_measure: Load) -> None:
    metric, peaks = load_measure("color_shift"), []
    metric.add_batch(predictions=_images(8), references=_images(8))
    for count in (24, 120):
        tracemalloc.start()
        try:
            metric.add_batch(predictions=_images(count), references=_images(count))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def _rows(given: Any) -> list[dict[str, Any]]:
    return [row for part in store_ratings(given) for row in part["predictions"]]


class Streamed:
    """A table of a library that has nothing of Arrow but its stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_every_form_of_a_table_is_taken_but_for_an_unknown_column() -> None:
    table = Dataset.from_list([{**ROW, "explanation": "Sharp."}])
    arrow = table.with_format("arrow")[:]
    for given in (table, table.to_pandas(), table.to_dict(), arrow, Streamed(arrow)):
        assert _rows(given) == _rows([ROW])
    many = [{**ROW, "sample_id": f"s{number}"} for number in range(2 * AT_ONCE + 1)]
    assert [len(part["predictions"]) for part in store_ratings(many)] == [AT_ONCE, AT_ONCE, 1]
    assert [row["sample_id"] for row in _rows(many)] == [row["sample_id"] for row in many]
    misspelt = arrow.append_column("rubrik", [["x"]])
    for given in (Streamed(misspelt), misspelt, misspelt.to_pydict(), misspelt.to_pylist()):
        with pytest.raises(TableError, match="unknown column 'rubrik'; did you mean 'rubric'"):
            _rows(given)
