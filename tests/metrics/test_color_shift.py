"""The color shift: both protocols against plain counts of pixels, and the laws of its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from datasets import Dataset, Features, Image, List
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from echo_hf.errors import ScoreError
from echo_hf.images.loader import load_rgb
from echo_hf.metrics import ColorShift, ColorShiftResult, color_shift
from echo_hf.metrics.samples import Protocol
from echo_hf.reasons import ImageNotice, MetricReason
from tests.images_for_tests import encoded, rgb_profile
from tests.metrics.images_for_metrics import noise, trimmed_shift

INPUTS = [noise(seed, 20, 200 + seed, size=(6 + seed, 8)) for seed in range(12)]
OUTPUTS = [noise(seed + 50, 30, 240, size=(9, 7)) for seed in range(12)]
CUT = encoded(noise(2, size=(200, 200)), "PNG")[:9000]
WHITE = Pillow.new("RGB", (8, 8), "white")
# What a sample may be, so that laws are tested with all that can go wrong.
SAMPLES: list[tuple[Any, Any]] = [
    *zip(INPUTS[:4], OUTPUTS[:4], strict=True),
    ([INPUTS[4], INPUTS[5]], OUTPUTS[5]),
    (INPUTS[0], None),
    (INPUTS[1], CUT),
    (INPUTS[2], WHITE),
    (INPUTS[6], OUTPUTS[0]),
    ([], OUTPUTS[6]),
    (Pillow.fromarray(np.tile(np.array([[0], [255]], np.uint8), (4, 8))), OUTPUTS[7]),
]
MANY = [*SAMPLES, *zip(INPUTS, (noise(seed) for seed in range(80, 92)), strict=True)]
PARTS = st.lists(st.sampled_from(SAMPLES), max_size=5)
PROTOCOLS = st.sampled_from(get_args(Protocol))


def _accumulated(samples: list[tuple[Any, Any]], protocol: Protocol) -> ColorShift:
    found = ColorShift(protocol=protocol, threads=1)
    found.add([given for given, _ in samples], [made for _, made in samples])
    return found


def _of_the_whole(result: ColorShiftResult) -> list[Any]:
    beside = [*vars(result.wasserstein).values(), *vars(result.tint).values()]
    means = [(one.value, one.interval) for one in beside]
    return [result.value, result.interval, result.n, result.coverage, result.counts, means]


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_the_number_is_that_of_all_pixels_together(protocol: Protocol) -> None:
    """Plain images give the same both ways, and each sample alone its own."""
    result = color_shift(INPUTS, OUTPUTS, protocol=protocol, n_boot=100)
    before, after = ([np.asarray(one) for one in side] for side in (INPUTS, OUTPUTS))
    assert result.value == pytest.approx(trimmed_shift(before, after))
    assert result.per_sample == tuple(
        pytest.approx(trimmed_shift([one], [other]))
        for one, other in zip(before, after, strict=True)
    )
    assert (result.n, result.coverage, result.counts) == (12, 1.0, {})
    assert result.interval is not None
    assert result.interval[0] < result.interval[1]


def test_several_inputs_all_count_or_the_first() -> None:
    """`corrected` pools them, `published` looks at no other."""
    first, second, made = (np.asarray(one) for one in (INPUTS[0], INPUTS[1], OUTPUTS[0]))
    several = [[INPUTS[0], INPUTS[1]]]
    corrected, published = (
        color_shift(several, OUTPUTS[:1], protocol=name).value
        for name in ("corrected", "published")
    )
    assert corrected == pytest.approx(trimmed_shift([first, second], [made]))
    assert published == pytest.approx(trimmed_shift([first], [made]))
    unread = color_shift([[INPUTS[0], CUT]], OUTPUTS[:1], protocol="published")
    assert unread.value == published


def test_inputs_without_an_output_count_in_the_published_number_alone() -> None:
    """There, what a system fails on shifts its colors; here, both sides are of one set."""
    inputs, outputs = INPUTS[:3], [OUTPUTS[0], None, CUT]
    before, after = ([np.asarray(one) for one in side] for side in (inputs, OUTPUTS[:1]))
    corrected, published = (
        color_shift(inputs, outputs, protocol=name) for name in ("corrected", "published")
    )
    assert corrected.value == pytest.approx(trimmed_shift(before[:1], after))
    assert published.value == pytest.approx(trimmed_shift(before, after))
    for result in (corrected, published):
        assert (result.n, result.coverage) == (1, 1 / 3)
        assert result.counts == {MetricReason.BAD_OUTPUT: 1, MetricReason.MISSING_OUTPUT: 1}
        assert result.per_sample[1:] == (None, None)


def test_a_placeholder_takes_its_inputs_along() -> None:
    """What is pooled are samples with both sides; only the published number has lone inputs."""
    card = noise(77)
    inputs, outputs = INPUTS[:4], [*OUTPUTS[:2], card, card]
    before, after = ([np.asarray(one) for one in side] for side in (inputs, OUTPUTS[:2]))
    corrected, published = (
        color_shift(inputs, outputs, protocol=name) for name in ("corrected", "published")
    )
    assert corrected.value == pytest.approx(trimmed_shift(before[:2], after))
    assert published.value == pytest.approx(trimmed_shift(before, after))
    assert corrected.counts == published.counts == {MetricReason.PLACEHOLDER: 2}


def _exif(turn: int) -> Pillow.Exif:
    exif = Pillow.Exif()
    exif[0x0112] = turn
    return exif


SIXTEEN = np.random.default_rng(1).integers(4000, 60_000, (9, 9), dtype=np.uint16)
SPECIAL = {
    "turned by the camera": encoded(INPUTS[0], "PNG", exif=_exif(6)),
    "Adobe RGB": encoded(INPUTS[0], "PNG", icc_profile=rgb_profile("adobe", 2.2)),
    "half transparent": encoded(INPUTS[0].convert("RGBA").point(lambda one: one // 2), "PNG"),
    "16 bits": encoded(Pillow.fromarray(SIXTEEN), "PNG"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_images_are_loaded_as_everywhere_in_the_toolkit(name: str) -> None:
    """The same image, packed specially and plainly, has no shift towards itself."""
    plain = encoded(load_rgb(SPECIAL[name]), "PNG")
    for given_, made in ((SPECIAL[name], plain), (plain, SPECIAL[name])):
        result = color_shift([given_], [made])
        assert result.value == 0
        assert result.tint.difference.value == 0
        assert result.wasserstein.blue.value == 0


@pytest.mark.parametrize("name", list(SPECIAL)[1:])
def test_the_published_number_takes_packing_for_a_shift(name: str) -> None:
    """As it was computed: profiles, opacity and depth are levels like any others."""
    plain = encoded(load_rgb(SPECIAL[name]), "PNG")
    value = color_shift([plain], [SPECIAL[name]], protocol="published").value
    assert value is None or value > 1


def test_what_had_to_be_decided_is_counted() -> None:
    """Of both sides together."""
    result = color_shift([SPECIAL["16 bits"]], [SPECIAL["half transparent"]])
    assert result.notices == {ImageNotice.SIXTEEN_BITS: 1, ImageNotice.TRANSPARENT: 1}


@given(PARTS, PARTS, PARTS, PROTOCOLS)
def test_parts_merge_to_the_whole_in_any_grouping(
    first: list[Any], second: list[Any], third: list[Any], protocol: Protocol
) -> None:
    """Three batches, two groupings of three parts, and all at once: equal to the last bit."""
    parts = [first, second, third]
    whole = _accumulated([*first, *second, *third], protocol)
    batches = _accumulated([], protocol)
    for part in parts:
        batches.add([given_ for given_, _ in part], [made for _, made in part])
    left, middle, right = (_accumulated(part, protocol) for part in parts)
    left.merge(middle)
    left.merge(right)
    start, end, last = (_accumulated(part, protocol) for part in parts)
    end.merge(last)
    start.merge(end)
    expected = whole.compute(n_boot=20)
    assert all(one.compute(n_boot=20) == expected for one in (batches, left, start))
    assert len(whole) == len(left) == len(expected.per_sample)


@given(st.permutations(MANY), PROTOCOLS)
def test_the_order_of_samples_changes_only_the_order(
    shuffled: list[Any], protocol: Protocol
) -> None:
    """Every number of the whole is equal to the last bit; the samples' own move with them."""
    straight, other = (
        _accumulated(samples, protocol).compute(n_boot=20) for samples in (MANY, shuffled)
    )
    assert straight.interval is not None
    assert _of_the_whole(other) == _of_the_whole(straight)
    moved = [MANY.index(one) for one in shuffled]
    assert other.per_sample == tuple(straight.per_sample[at] for at in moved)
    assert other.reasons == tuple(straight.reasons[at] for at in moved)


@given(st.integers(0, 11), st.integers(0, 11))
def test_both_directions_are_equally_far(one: int, other: int) -> None:
    """Signs turn, sizes stay; and an image has no shift towards itself."""
    there, back = (
        color_shift([first], [second], n_boot=0, threads=1)
        for first, second in ((INPUTS[one], OUTPUTS[other]), (OUTPUTS[other], INPUTS[one]))
    )
    assert there.value == pytest.approx(back.value)
    assert there.tint.yellower.value == -(back.tint.yellower.value or 0.0)
    assert there.wasserstein.red.value == pytest.approx(back.wasserstein.red.value)
    assert color_shift([INPUTS[one]], [INPUTS[one]], n_boot=0, threads=1).value == 0


def test_a_placeholder_is_found_across_merged_parts() -> None:
    """Each part alone sees one output; together they are the same card."""
    card = noise(77)
    first, second = (_accumulated([(INPUTS[at], card)], "corrected") for at in (0, 1))
    assert first.compute().coverage == 1
    first.merge(second)
    result = first.compute()
    assert (result.value, result.coverage) == (None, 0)
    assert result.counts == {MetricReason.PLACEHOLDER: 2}


@pytest.mark.parametrize("protocol", get_args(Protocol))
@pytest.mark.parametrize(
    ("made", "reason"),
    [(None, "missing_output"), (CUT, "bad_output"), (WHITE, "blank_output")],
)
def test_nothing_is_a_number_where_there_is_no_work(
    made: Any, reason: str, protocol: Protocol
) -> None:
    """Null with a reason, under both protocols, everywhere in the result."""
    result = color_shift(INPUTS[:1], [made], protocol=protocol)
    assert (result.value, result.interval, result.n, result.coverage) == (None, None, 0, 0)
    assert [one and one.reason for one in result.reasons] == [reason]
    for estimate in (*vars(result.wasserstein).values(), *vars(result.tint).values()):
        assert (estimate.value, estimate.interval, estimate.per_sample) == (None, None, (None,))


def test_a_drawing_in_black_and_white_counts_with_the_others_only() -> None:
    """It has no level that is kept: no number of its own, but a distance and a tint."""
    drawing = Pillow.fromarray(np.tile(np.array([[0], [255]], np.uint8), (4, 8)))
    result = color_shift([INPUTS[0], drawing], [OUTPUTS[0], OUTPUTS[1]])
    before, after = [INPUTS[0], drawing.convert("RGB")], OUTPUTS[:2]
    expected = trimmed_shift(*([np.asarray(one) for one in side] for side in (before, after)))
    assert result.value == pytest.approx(expected)
    assert (result.n, result.coverage) == (2, 1.0)
    assert result.per_sample[1] is None
    assert result.counts == {MetricReason.NO_LEVELS: 1}
    assert result.wasserstein.green.per_sample[1] is not None


def test_no_samples_have_no_number() -> None:
    """And no share that is covered."""
    result = color_shift([], [])
    assert (result.value, result.n, result.coverage, result.per_sample) == (None, 0, None, ())


def test_columns_of_a_dataset_are_lists_of_files(tmp_path: Path) -> None:
    """A broken image is one sample's reason, and the others give what the files give."""
    inputs = [[encoded(one, "PNG")] for one in INPUTS[:3]]
    outputs = [encoded(OUTPUTS[0], "JPEG"), CUT, None]
    (tmp_path / "a.jpg").write_bytes(outputs[0] or b"")
    data = Dataset.from_dict(
        {
            "input_images": [[{"bytes": one} for one in several] for several in inputs],
            "output": [{"path": str(tmp_path / "a.jpg")}, {"bytes": CUT}, None],
        },
        features=Features({"input_images": List(Image()), "output": Image()}),
    )
    found = color_shift(data["input_images"], data["output"])
    assert found == color_shift(inputs, outputs)
    assert found.coverage == 1 / 3


@pytest.mark.parametrize("threads", [2, 6])
def test_threads_give_what_one_gives(threads: int) -> None:
    """In the whole and sample by sample, also where images are shared."""
    sides = [[one[side] for one in SAMPLES * 3] for side in (0, 1)]
    assert color_shift(*sides, threads=threads) == color_shift(*sides, threads=1)


def test_a_wrong_entry_costs_no_sample_that_was_there() -> None:
    """What was added before stays, and nothing of the batch is added."""
    found = _accumulated(SAMPLES, "corrected")
    before = found.compute(n_boot=0)
    with pytest.raises(ScoreError, match=r"outputs\[1\]: 'int' is not an image"):
        found.add(INPUTS[:2], [OUTPUTS[0], 3])
    assert found.compute(n_boot=0) == before


def test_protocols_do_not_mix() -> None:
    """Neither in a merge nor by a misspelt name."""
    with pytest.raises(ScoreError, match="'published' there and 'corrected' here"):
        ColorShift().merge(ColorShift(protocol="published"))
    with pytest.raises(ScoreError, match="unknown protocol 'correct'; did you mean 'corrected'"):
        color_shift([], [], protocol="correct")  # type: ignore[arg-type]


def test_the_definition_tells_all_that_decides_the_number() -> None:
    """As JSON, with what the protocols differ in and the versions of the decoders."""
    results = [
        json.loads(json.dumps(color_shift([], [], protocol=name, seed=7).as_json()))
        for name in get_args(Protocol)
    ]
    published, corrected = (one["definition"] for one in results)
    assert {key for key, value in published.items() if value != corrected[key]} == {
        "protocol", "loader", "inputs", "input_pool"
    }  # fmt: skip
    assert corrected["levels"] == [5, 250]
    assert corrected["interval"]["draws"] == 1000
    assert corrected["interval"]["seed"] == 7
    assert corrected["versions"]["pillow"] == Pillow.__version__
