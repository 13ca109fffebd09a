"""Measures are held against what people said of the outputs in posts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.config.evaluation import METRICS, MetricsOptions
from echo_hf.judging.complaints import (
    Comment,
    CommentedSample,
    Complaints,
    group_complaints,
    read_complaints,
)
from echo_hf.judging.validity import (
    ComplaintMeasures,
    GroupValidity,
    MeasureOptions,
    MeasureValidity,
    measure_complaints,
)
from echo_hf.metrics import Metric, MetricResult
from echo_hf.metrics.base import register
from echo_hf.metrics.result import MetricReason, Unmeasured
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.checks import Check, CheckCertificate
from echo_hf.tables import APPLICABILITY
from tests.judging.complaints_for_tests import LAYOUT, PRAISED, SPELLING, TINT, write_benchmark


def hold(release: Path, folder: Path, **options: Any) -> ComplaintMeasures:
    place = RunFolder(folder)
    found = read_complaints(Benchmark(str(release)), place)
    groups = group_complaints(found)
    return measure_complaints(groups, place.images, MeasureOptions(**options), found.left_out)


def group_of(found: ComplaintMeasures, keyword: str) -> GroupValidity:
    return next(group for group in found.groups if group.keyword == keyword)


def cell(found: ComplaintMeasures, keyword: str, measure: str) -> MeasureValidity:
    held = group_of(found, keyword).find(measure)
    assert held is not None
    return held


def holds_half(held: MeasureValidity) -> bool:
    return held.low is not None and held.high is not None and held.low <= 0.5 <= held.high


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    threads = {TINT: 18, SPELLING: 18, LAYOUT: 18, PRAISED: 22}
    return write_benchmark(tmp_path_factory.mktemp("boards"), threads)


def test_color_shift_separates_tints_and_nothing_else(release: Path, tmp_path: Path) -> None:
    found = hold(release, tmp_path)
    tint = cell(found, TINT, "color_shift")
    assert tint.auc is not None
    assert tint.auc >= 0.9
    assert tint.verdict == "yes"
    assert (tint.complaint_threads, tint.praise_threads) == (18, 22)
    assert (tint.complaints, tint.praise) == (24, 30)
    for keyword in (SPELLING, LAYOUT):
        other = cell(found, keyword, "color_shift")
        assert holds_half(other)
        assert other.verdict == "no"


@pytest.mark.extras
def test_ocr_accuracy_separates_misspellings_and_nothing_else(
    release: Path, tmp_path: Path
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    pytest.importorskip("spellchecker", reason="needs the extra `ocr`")
    named = MetricsOptions.model_validate({"ocr_accuracy": {}})
    found = hold(release, tmp_path, metrics=named)
    spelling = cell(found, SPELLING, "ocr_accuracy")
    assert spelling.auc is not None
    assert spelling.auc >= 0.9
    assert spelling.verdict == "yes"
    for keyword in (TINT, LAYOUT):
        other = cell(found, keyword, "ocr_accuracy")
        assert holds_half(other)
        assert other.verdict == "no"


def test_what_is_not_measured_says_why(release: Path, tmp_path: Path) -> None:
    """A metric that is not named, one that needs ratings, and those whose packages are missing."""
    found = hold(release, tmp_path)
    missing = {measure.name: measure.missing for measure in found.measures}
    assert missing["color_shift"] is None
    assert missing["ocr_accuracy"] == (
        "it is measured where a config names it (metrics: {ocr_accuracy: {}})"
    )
    assert str(missing["text_rendering"]).startswith("judges rate the outputs of systems")
    measured = {held.measure for held in group_of(found, TINT).measures}
    assert measured == {name for name, reason in missing.items() if reason is None}


def comments(verdict_keyword: str) -> tuple[Comment, ...]:
    form = verdict_keyword or None
    return (Comment("https://posts.example/c", "so", form, form),)


def sample(
    name: str, keyword: str, thread: str | None = None, outputs: int = 1, prompt: str = ""
) -> CommentedSample:
    return CommentedSample(
        sample_id=name,
        thread=thread or name,
        prompt=prompt or f"{keyword} {name}",
        digest="",
        urls=(f"https://posts.example/{name}",),
        inputs=(),
        outputs=tuple(f"{name}.{number}" for number in range(outputs)),
        comments=comments(keyword),
        is_praised=not keyword,
    )


def corpus(**threads: int) -> list[CommentedSample]:
    """Complaints under each name, praise under `praise`; a sample a thread."""
    return [
        sample(f"{name}{number:03}", "" if name == "praise" else name)
        for name, count in threads.items()
        for number in range(count)
    ]


@contextmanager
def plugged(*metrics: type[Metric]) -> Iterator[None]:
    before = dict(METRICS.entries)
    try:
        for metric in metrics:
            register(metric)
        yield
    finally:
        METRICS.entries.clear()
        METRICS.entries.update(before)


def make_metric(
    number_of: Callable[[str], float | None], seen: list[Sequence[str]]
) -> type[Metric]:
    """A plug-in that reads prompts, and keeps the samples that it was asked about."""

    class Length(Metric):
        name, needs, better = "made_up", ("prompts",), "lower"

        def measure(self, *columns: Any, **context: Any) -> MetricResult:
            (prompts,) = columns
            seen.append(context["names"])
            values = tuple(map(number_of, prompts))
            none = Unmeasured(MetricReason.TOO_FEW_WORDS)
            return MetricResult(
                value=None,
                per_sample=values,
                interval=None,
                n=len(values),
                coverage=1.0,
                reasons=tuple(none if value is None else None for value in values),
                definition={},
            )

    return Length


def measure(
    samples: Iterable[CommentedSample], metric: type[Metric], tmp_path: Path, **options: Any
) -> ComplaintMeasures:
    groups = group_complaints(Complaints(tuple(samples), {}))
    with plugged(metric):
        images = RunFolder(tmp_path).images
        return measure_complaints(groups, images, MeasureOptions(n_boot=200, **options), {})


def test_a_plug_in_is_held_against_complaints_and_each_output_measured_once(tmp_path: Path) -> None:
    """Two groups share the praise, and one sample complains of both; a call is for one output."""
    seen: list[Sequence[str]] = []
    metric = make_metric(lambda prompt: float(prompt.startswith("blur")), seen)
    both = CommentedSample(
        **{
            **vars(sample("both", "blur", outputs=3)),
            "comments": comments("blur") + comments("dim"),
        }
    )
    found = measure([*corpus(blur=20, dim=20, praise=20), both], metric, tmp_path)
    asked = [(name, turn) for turn, names in enumerate(seen) for name in names]
    assert len(asked) == len({*asked}) == 60 + 3
    blur = cell(found, "blur", "made_up")
    assert (blur.auc, blur.verdict, blur.threshold, blur.j) == (1, "yes", 1, 1)
    assert (blur.complaints, blur.complaint_threads, blur.praise) == (23, 21, 20)
    assert cell(found, "dim", "made_up").verdict == "no"


@pytest.mark.parametrize(
    ("complaints", "praise", "verdict"),
    [(4, 30, None), (30, 4, None), (5, 5, "too few"), (15, 14, "too few"), (15, 15, "yes")],
)
def test_few_threads_are_counted_and_fewer_than_five_of_a_kind_not_measured(
    complaints: int, praise: int, verdict: str | None, tmp_path: Path
) -> None:
    metric = make_metric(lambda prompt: float(prompt.startswith("blur")), [])
    found = measure(corpus(blur=complaints, praise=praise), metric, tmp_path)
    group = group_of(found, "blur")
    assert (group.complaint_threads, group.praise_threads) == (complaints, praise)
    held = group.find("made_up")
    assert (held and held.verdict) == verdict


def test_outputs_of_a_thread_count_as_one_thread(tmp_path: Path) -> None:
    metric = make_metric(lambda prompt: float(prompt.startswith("blur")), [])
    alike = [sample(f"a{number:02}", "blur", thread=f"t{number % 6}") for number in range(30)]
    held = cell(measure([*alike, *corpus(praise=20)], metric, tmp_path), "blur", "made_up")
    assert (held.complaints, held.complaint_threads, held.verdict) == (30, 6, "too few")


def test_work_is_bounded_by_threads_drawn_and_by_groups(tmp_path: Path) -> None:
    """100 threads of each kind, whatever the order of samples, and the 12 largest groups."""
    seen: list[Sequence[str]] = []
    metric = make_metric(lambda _: 1.0, seen)
    many = corpus(blur=140, praise=130)
    held = cell(measure(many, metric, tmp_path), "blur", "made_up")
    assert (held.complaint_threads, held.praise_threads) == (100, 100)
    first = {name for names in seen for name in names}
    seen.clear()
    measure(reversed(many), metric, tmp_path)
    assert {name for names in seen for name in names} == first
    kinds = {f"kind{number:02}": 6 for number in range(15)}
    found = measure(corpus(**kinds, praise=6), metric, tmp_path)
    assert len(found.groups) == 15
    assert sum(bool(group.measures) for group in found.groups) == 12


def test_outputs_without_a_number_are_counted_by_reason(tmp_path: Path) -> None:
    """What a metric has no number for, and samples that somebody said it does not fit."""
    metric = make_metric(
        lambda prompt: None if prompt[-3:] in ("003", "004") else float("blur" in prompt), []
    )
    rows = [
        {"sample_id": name, "metric": "made_up", "applies": applies, "outcome": "ok"}
        for name, applies in (("blur000", False), ("blur001", True), ("blur002", None))
    ]
    table = pa.Table.from_pylist(rows, APPLICABILITY.schema)
    found = measure(corpus(blur=20, praise=20), metric, tmp_path, applicability=table)
    held = cell(found, "blur", "made_up")
    assert held.without_number == {"not_fitting": 1, "too_few_words": 4}
    assert (held.complaints, held.praise) == (20 - 1 - 2, 20 - 2)


def test_a_metric_takes_the_samples_of_its_splits(tmp_path: Path) -> None:
    """Without inputs a sample is no edit, whatever it shows."""
    metric = make_metric(lambda _: 1.0, [])
    metric.splits = ("image_to_image",)
    held = cell(measure(corpus(blur=20, praise=20), metric, tmp_path), "blur", "made_up")
    assert (held.auc, held.without_number, held.reason) == (
        None,
        {"not_fitting": 40},
        "no_complaints",
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda _: 1 / 0, "it failed: "),
        (lambda _: float("nan"), "metric 'made_up' gave a number that is not finite"),
    ],
)
def test_a_plug_in_that_fails_leaves_the_others_their_figures(
    broken: Callable[[str], float], message: str, tmp_path: Path
) -> None:
    found = measure(corpus(blur=20, praise=20), make_metric(broken, []), tmp_path)
    (missing,) = (one.missing for one in found.measures if one.name == "made_up")
    assert str(missing).startswith(message)
    assert cell(found, "blur", "color_shift").reason == "no_complaints"


def check_of(keyword: str, status: str = "kept", judges: Sequence[str] = ("vote", "a")) -> Check:
    certificates = [
        CheckCertificate(
            judge=judge,
            j=0.6 if judge == "vote" else 0.5,
            low=0.3,
            high=0.8,
            p=0.001,
            complaints=40,
            praise=44,
            complaint_threads=18,
            praise_threads=20,
            kept=status == "kept",
        )
        for judge in reversed(judges)
    ]
    return Check(
        name="blurry",
        version=2,
        title="Blurry",
        question="Is it blurry?",
        counts_as_yes="Edges are soft.",
        instructions="Look. {form}",
        keywords=(keyword,),
        certificates=tuple(certificates),
        status=status,
    )


def test_kept_checks_are_measures_by_the_numbers_of_their_certificate(tmp_path: Path) -> None:
    """The vote's before a judge's, and beside the group of their keyword alone."""
    metric = make_metric(lambda _: 1.0, [])
    samples = corpus(blur=3, dim=3, praise=3)
    found = measure(samples, metric, tmp_path, checks=[check_of("Blur")])
    held = cell(found, "blur", "blurry@2")
    assert held.auc == pytest.approx((1 + 0.6) / 2)
    assert (held.low, held.high) == pytest.approx((0.65, 0.9))
    assert (held.verdict, held.complaints, held.praise_threads) == ("yes", 40, 20)
    assert group_of(found, "dim").find("blurry@2") is None
    assert [one.kind for one in found.measures if one.name == "blurry@2"] == ["check"]
    alone = measure(samples, metric, tmp_path, checks=[check_of("blur", judges=["a"])])
    assert cell(alone, "blur", "blurry@2").auc == pytest.approx(0.75)
    fell = measure(samples, metric, tmp_path, checks=[check_of("blur", "fell")])
    assert group_of(fell, "blur").measures == ()


def test_a_release_without_its_words_measures_nothing(tmp_path: Path) -> None:
    release = write_benchmark(tmp_path, {TINT: 2, PRAISED: 2}, dehydrated=True)
    place = RunFolder(tmp_path / "run")
    found = read_complaints(Benchmark(str(release)), place)
    assert found.samples == ()
    assert {str(reason): count for reason, count in found.left_out.items()} == {"dehydrated": 4}
