"""Measures through `evaluate`: the numbers that there are without it."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from datasets import Dataset, Features, List
from datasets import Image as ImageFeature
from PIL import Image

import echo_hf
from echo_hf.errors import EchoError, MissingExtraError, ScoreError, TableError
from echo_hf.hub.evaluate_metric import list_configs, store_image, to_plain_values
from echo_hf.images.loader import ImageNotice, load_image
from echo_hf.metrics import color_shift, registered, text_rendering
from echo_hf.scores import human_corrected, reliability, ruler, win_rate
from tests.images_for_tests import encoded, rgb_profile
from tests.metrics.images_for_metrics import INPUTS as PUBLISHED_INPUTS
from tests.metrics.images_for_metrics import PUBLISHED, noise
from tests.scores.ratings_for_tests import rows_of

ROOT = Path(__file__).resolve().parents[2]
Load = Callable[..., Any]
CUBE = {
    "jay": {"ash": [4, 3, None, 2], "birch": [2, 3, 5, 4], "cedar": [1, 4, 2, None]},
    "kite": {"ash": [7, 1, 3, 2], "birch": [8, 2, 3, 1], "cedar": [2, 2, 9, 1]},
}
RATINGS = rows_of(CUBE)
INPUTS = [noise(seed, 20, 200 + seed, size=(6 + seed, 8)) for seed in range(5)]
OUTPUTS = [noise(seed + 50, 30, 240, size=(9, 7)) for seed in range(5)]
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


def test_color_shifts_are_the_published_ones(load_measure: Load) -> None:
    colors, shift = PUBLISHED["Nano Banana"]
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
    assert rates.compute(predictions=RATINGS, **rated) == to_plain_values(
        win_rate(RATINGS, **rated)
    )
    found = text.compute(predictions=RATINGS, system="ash", **rated)
    assert found == to_plain_values(text_rendering(RATINGS, system="ash", **rated))
    assert found["value"] == pytest.approx((0.55 + 0.2 + 0.3 + 0.2) / 4)  # the mean, of ten
    found = shift.compute(**images, threads=1, **rated)
    assert found == to_plain_values(color_shift(MIXED_INPUTS, MIXED_OUTPUTS, **rated))
    assert json.loads(json.dumps(found)) == found
    assert found["counts"]["missing_output"] == 1


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
    expected = to_plain_values(color_shift(MIXED_INPUTS, MIXED_OUTPUTS))
    assert [one_by_one.compute(), batches.compute()] == [expected, expected]
    rates = load_measure("win_rate", keep_in_memory=keep_in_memory)
    rates.add(prediction=RATINGS[0])
    rates.add_batch(predictions=RATINGS[1:20])
    for rest in (RATINGS[20:], RATINGS):
        assert rates.compute(predictions=rest) == to_plain_values(win_rate(RATINGS))
    assert list(tmp_path.rglob("*.arrow")) == []
    with pytest.raises(ScoreError, match=r"^win_rate: nothing was added: expected predictions="):
        rates.compute()


def test_every_form_of_an_image_is_the_same_image(load_measure: Load, tmp_path: Path) -> None:
    files = [encoded(one, "PNG") for one in OUTPUTS[:2]]
    paths = [tmp_path / f"{number}.png" for number in range(2)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    rows = {"made": files, "given": [[encoded(one, "PNG")] for one in INPUTS[:2]]}
    features = Features({"made": ImageFeature(), "given": List(ImageFeature())})
    table = Dataset.from_dict(rows, features=features)
    expected = to_plain_values(color_shift(INPUTS[:2], OUTPUTS[:2]))
    dicts = [{"bytes": data, "path": None} for data in files]
    for given in (files, paths, [str(path) for path in paths], table["made"], dicts):
        metric = load_measure("color_shift")
        assert metric.compute(predictions=given, references=table["given"]) == expected


LEVELS = np.random.default_rng(3).integers(0, 256, (9, 11, 4), dtype=np.uint8)
RGB = Image.fromarray(LEVELS[..., :3])
WIDE = Image.fromarray(np.arange(99, dtype=np.int32).reshape(9, 11) * 600)


def _having(image: Image.Image, **info: Any) -> Image.Image:
    image.info |= info
    return image


def _turned() -> Image.Image:
    exif = Image.Exif()
    exif[0x0112] = 6
    return Image.open(io.BytesIO(encoded(RGB, "JPEG", exif=exif)))


def _second_frame() -> Image.Image:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    animated = Image.open(io.BytesIO(data))
    animated.seek(1)
    return animated


IN_MEMORY = {
    **{mode: RGB.convert(mode) for mode in ("1", "L", "RGB", "CMYK", "YCbCr", "HSV")},
    "LA": Image.merge("LA", RGB.split()[:2]),
    "RGBA": Image.fromarray(LEVELS),
    "RGBa": Image.fromarray(LEVELS).convert("RGBa"),
    "LAB": Image.merge("LAB", RGB.split()),
    "I;16": Image.fromarray(np.asarray(WIDE).astype(np.uint16)),
    "I": WIDE,
    "transparent color": _having(RGB.copy(), transparency=RGB.getpixel((2, 3))),
    "palette": _having(RGB.quantize(7), transparency=bytes([0, 128, 255])),
    "orientation": _turned(),
    "profile": _having(RGB.copy(), icc_profile=rgb_profile("adobe", 2.2)),
    "frame": _second_frame(),
}


@pytest.mark.parametrize("image", IN_MEMORY.values(), ids=IN_MEMORY)
def test_no_pixel_of_an_image_in_memory_changes(image: Image.Image) -> None:
    stored = store_image(image, "p")
    assert stored is not None
    assert stored["path"] is None
    found, expected = load_image(stored["bytes"]), load_image(image)
    assert np.array_equal(np.asarray(found.image), np.asarray(expected.image))
    assert found.notices == expected.notices - {ImageNotice.ANIMATED}


def test_files_and_null_are_kept_and_a_closed_image_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {"bytes": None, "path": str(tmp_path / "later.png")}
    assert store_image(Path("later.png"), "p") == expected
    assert store_image(b"no picture", "p") == {"bytes": b"no picture", "path": None}
    assert store_image(None, "p") is None
    RGB.save("a.png")
    with Image.open("a.png") as image:
        pass
    with pytest.raises(ScoreError, match=r"^predictions\[3\]: .* or the path of its file"):
        store_image(image, "predictions[3]")


def test_optional_columns_count_where_they_are(load_measure: Load) -> None:
    rows = [
        {**row, "rubric": rubric, "repeat": 0, "sample_digest": "d"}
        for row in RATINGS
        for rubric in ("overall", "text_rendering")
    ]
    outputs = [
        {"sample_id": f"s00{at}", "system": system, "outcome": "ok", "sample_digest": digest}
        for system in ("ash", "birch", "cedar")
        for at, digest in enumerate("dedd")
    ]
    found = load_measure("win_rate").compute(predictions=rows, outputs=outputs, missing="loss")
    assert found == to_plain_values(win_rate(rows, outputs, missing="loss"))
    assert found["ignored"]["other_rubric"] == len(rows) // 2
    assert found["ignored"]["other_digest"] > 0


ROW = RATINGS[0]
GOOD = [encoded(noise(0), "PNG")]
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no outputs": ("color_shift", {"references": INPUTS}, "no predictions: expected the system's"),
    "no inputs": ("color_shift", {"predictions": OUTPUTS}, "no references: expected the inputs"),
    "lengths": (
        "color_shift",
        {"predictions": OUTPUTS, "references": []},
        "references are inputs, predictions are outputs: .*0 inputs and 5 out",
    ),
    "the last is no image": (
        "color_shift",
        {"predictions": [*GOOD, 7], "references": GOOD * 2},
        r"outputs\[1\]: 'int' is not an image",
    ),
    "references": (
        "win_rate",
        {"predictions": RATINGS, "references": INPUTS},
        "win_rate: unknown argument 'references'; known: predictions",
    ),
    "argument": ("win_rate", {"predicitons": RATINGS}, "'predicitons'; did you mean 'predictions'"),
    "missing": ("win_rate", {"predictions": [{"system": "a"}]}, "expected a dict with sample_id"),
    "extra": (
        "win_rate",
        {"predictions": [ROW, {**ROW, "rubrik": "overall"}]},
        "ratings: unknown column 'rubrik'; did you mean 'rubric'",
    ),
    "type": ("win_rate", {"predictions": [{**ROW, "rating": "9"}]}, "has type 'string': expected"),
    "null": ("win_rate", {"predictions": [{**ROW, "judge": None}]}, "'judge' is null in row 0"),
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
        ({"protcol": "published"}, "^color_shift: got an unexpected keyword argument 'protcol'"),
        ({"inputs": []}, "^color_shift: multiple values for argument 'inputs'"),
        ({"protocol": "publishd"}, "unknown protocol 'publishd'; did you mean 'published'"),
    ],
)
def test_a_wrong_parameter_is_one_line(
    load_measure: Load, options: dict[str, Any], expected: str
) -> None:
    metric = load_measure("color_shift")
    metric.add_batch(predictions=OUTPUTS, references=INPUTS)
    with pytest.raises(ScoreError, match=expected):
        metric.compute(**options)
    if "protocol" not in options:
        with pytest.raises(ScoreError, match=expected):
            load_measure("color_shift", **options)
        assert metric.compute() == to_plain_values(color_shift(INPUTS, OUTPUTS))


def test_parameters_can_be_given_on_loading(load_measure: Load) -> None:
    metric = load_measure("win_rate", protocol="published", n_boot=7)
    assert metric.compute(predictions=RATINGS)["definition"]["protocol"] == "published"
    other = metric.compute(predictions=RATINGS, protocol="corrected")
    assert (other["protocol"], other["definition"]["interval"]["draws"]) == ("corrected", 7)


def test_people_correct_the_rates_of_judges(load_measure: Load) -> None:
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
    assert found == to_plain_values(human_corrected(rows, ranks, confidence=0.9))
    assert sorted(list_configs()["human_corrected"].gives.split(", ")) == sorted(found)
    loaded = load_measure("human_corrected", human=ranks)
    assert loaded.compute(predictions=rows)["win_rate"] == found["win_rate"]
    with pytest.raises(ScoreError, match=r"^human_corrected: missing a required argument: 'human'"):
        metric.compute(predictions=rows)


@pytest.mark.parametrize("is_carried", [True, False])
def test_the_ruler_takes_rows_of_releases(load_measure: Load, is_carried: bool) -> None:
    """A column of nulls alone is none: a sample of both releases is the older one's then."""
    rows = [
        {"sample_id": f"{at}", "system": system, "judge": "jay", "rating": (at * 7 + place) % 5}
        | {"release": release}
        | ({"carried_from": "1" if release == "2" else None} if is_carried else {})
        for at in range(20)
        for release, systems in (("1", ["ash"]), ("2", ["ash", "birch"]))
        for place, system in enumerate(systems)
    ]
    found = load_measure("ruler").compute(predictions=rows)
    assert found == to_plain_values(ruler(rows))
    assert sorted(list_configs()["ruler"].gives.split(", ")) == sorted(found)
    assert found["differences"]["ash"]["birch"]["how"] == "common"
    with pytest.raises(TableError, match=r"expected a dict with .*, release"):
        load_measure("ruler").compute(predictions=RATINGS)


def test_reliability_takes_draws_and_what_outputs_cost(load_measure: Load) -> None:
    keys = [
        {"sample_id": f"{at:02}", "system": system, "draw": draw}
        for at in range(30)
        for system in ("ash", "birch")
        for draw in range(3)
    ]
    rows = [{**key, "judge": "jay", "rating": at * 7 % 11} for at, key in enumerate(keys)]
    outputs = [{**key, "outcome": "ok", "cost_usd": 0.5} for key in keys]
    found = load_measure("reliability").compute(predictions=rows, outputs=outputs, threshold=6)
    assert found == to_plain_values(reliability(rows, outputs, threshold=6))
    assert sorted(list_configs()["reliability"].gives.split(", ")) == sorted(found)
    assert [*found["pass_at"]["ash"]] == ["1", "2", "3"]
    assert found["dollars"]["ash"]["value"] > 0.5


def test_measures_combine(load_measure: Load) -> None:
    import evaluate

    pair = [load_measure("win_rate"), load_measure("text_rendering", system="birch")]
    both = evaluate.combine(pair)
    both.add(prediction=RATINGS[0])
    both.add_batch(predictions=RATINGS[1:])
    found = both.compute(n_boot=20)
    rates = to_plain_values(win_rate(RATINGS, n_boot=20))
    text = to_plain_values(text_rendering(RATINGS, system="birch", n_boot=20))
    assert (found["win_rate"], found["value"]) == (rates["win_rate"], text["value"])
    shared = {f"text_rendering_{name}" for name in rates.keys() & text.keys()}
    assert {name for name in found if name.startswith("text_rendering_")} == shared
    assert found["win_rate_interval"] == rates["interval"]


@pytest.mark.parametrize("name", ["face_identity", "structure_distance"])
def test_a_missing_extra_is_one_line(load_measure: Load, name: str) -> None:
    config = registered()[name]
    try:
        config.check_installed()
    except MissingExtraError:
        metric = load_measure(name)
        metric.add_batch(predictions=OUTPUTS[:2], references=INPUTS[:2])
        with pytest.raises(MissingExtraError) as caught:
            metric.compute()
        install = f'pip install "echo-hf[{config.extra}]"'
        assert str(caught.value).startswith(f"{name} needs packages that are not here: {install}")
        assert len(metric) == 2
    else:
        pytest.skip(f"the packages of the extra {config.extra!r} are installed")


PLAIN = ("win_rate", "text_rendering", "color_shift")
GREY = Image.linear_gradient("L")


@pytest.mark.parametrize("name", list_configs())
def test_every_parameter_of_a_measure_passes(name: str) -> None:
    """The documented keys are those of its result, where its packages are here."""
    config = list_configs()[name]
    measure = getattr(getattr(echo_hf, config.part), name)
    known = list(inspect.signature(measure).parameters)
    data = list(config.features)
    config.check_options(dict.fromkeys(known[len(data) :]), is_whole=True)
    if name in PLAIN:
        result = measure([GREY], [GREY]) if len(data) == 2 else measure([ROW])
        said = config.gives.replace(" (of reasons)", "")
        assert sorted(said.split(", ")) == sorted(to_plain_values(result))
