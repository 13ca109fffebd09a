"""The task `echo_hf/echo` of inspect_ai: a release, drawn by any model that answers with images."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from echo_hf.errors import ConfigError, EchoError, ImageError, unknown

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Metric, Score, Scorer, Target
    from inspect_ai.solver import TaskState

    from echo_hf import metrics
    from echo_hf.images.store import ImageStore
    from echo_hf.metrics import MetricResult
    from echo_hf.systems import base

DIGEST = "output_sha256"
WITHOUT_JUDGES = frozenset({"inputs", "outputs", "prompts"})
logger = logging.getLogger(__name__)


def __getattr__(name: str) -> Any:
    """Register the task for the entry point, which inspect_ai loads: others need none of it."""
    if name != "echo":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from inspect_ai import task

    return task(name=name)(_draw_release)


def _draw_release(release: str | None = None, split: str | None = None) -> Task:
    """Draw the samples of a release, and score them by what needs no judge.

    `drawn` is the share of samples with an image. Every metric of `echo_hf.metrics` that is
    installed is a score, whose `value` is that of `echo-hf score` over the samples that have a
    number. Judges rate the outputs after `echo-hf judge CONFIG --import LOGS --format inspect`.

    Args:
        release: Folder of a release, a run, or ORGANIZATION/NAME@TAG on the Hub.
        split: `image_to_image` or `text_to_image`; both where null.
    """
    # Of all errors inspect_ai shows this class alone in a line, and exports it nowhere.
    from inspect_ai._util.error import PrerequisiteError
    from rich.markup import escape

    if release is None:
        raise PrerequisiteError("no release: name one, as -T release=ORGANIZATION/NAME@TAG")
    try:
        return _make_task(str(release), split)
    except EchoError as error:  # which is a line, and no traceback
        raise PrerequisiteError(escape(f"echo-hf: {error}")) from None


def _make_task(release: str, split: str | None) -> Task:
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import GenerateConfig
    from inspect_ai.solver import generate

    from echo_hf.curate.splits import BENCHMARKS
    from echo_hf.hub.authors_dataset import open_cache
    from echo_hf.systems.benchmark import Benchmark, find_release_folder

    if split not in (None, *BENCHMARKS):
        raise ConfigError(unknown("split", split, BENCHMARKS))
    benchmark, images = Benchmark(str(find_release_folder(release))), open_cache()
    read = benchmark.tasks(images)
    left_out = {str(reason): number for reason, number in read.left_out.items()}
    for reason, number in read.left_out.items():
        logger.warning(
            "%s samples of the release left out, %s: %s", f"{number:,}", reason, reason.meaning
        )
    tasks = {each.sample_id: each for each in read.tasks if split in (None, each.split)}
    if not tasks:
        raise ConfigError(f"{release!r} has no sample to draw (left out: {left_out or 'none'})")
    scorers, not_measured = _make_scorers(tasks, images)
    identity = benchmark.identity()
    return Task(
        dataset=MemoryDataset(
            [*map(_make_sample, tasks.values())],
            name=identity["on_hub"] or identity["name"] or "echo",
        ),
        solver=generate(),
        scorer=scorers,
        config=GenerateConfig(modalities=["image"]),
        metadata={"benchmark": identity, "left_out": left_out, "not_measured": not_measured},
    )


def _make_sample(task: base.Task) -> Sample:
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText

    from echo_hf.engines.pixels import encode_data_url

    inputs = (ContentImage(image=encode_data_url(image, None)) for image in task.inputs)
    content = [ContentText(text=task.prompt), *inputs]
    metadata = {"split": task.split, "sample_digest": task.sample_digest}
    return Sample(
        [ChatMessageUser(content=content)], target="", id=task.sample_id, metadata=metadata
    )


def _make_scorers(
    tasks: Mapping[str, base.Task], images: ImageStore
) -> tuple[list[Scorer], dict[str, str]]:
    """Make a score of what was drawn and of each metric; say what one that is missing lacks."""
    from echo_hf.errors import MissingExtraError
    from echo_hf.metrics import registered

    scorers, not_measured = [_score_drawn(images)], dict[str, str]()
    for name, metric_class in registered().items():
        fitting = {
            task.sample_id: task
            for task in tasks.values()
            if task.split in metric_class.splits
            and (task.inputs or "inputs" not in metric_class.needs)
        }
        if (
            not metric_class.enabled
            or not fitting
            or not WITHOUT_JUDGES.issuperset(metric_class.needs)
        ):
            continue
        try:
            metric_class.check_installed()
        except MissingExtraError as error:
            not_measured[name] = str(error)
        else:
            scorers.append(_Measurement(metric_class(n_boot=0), fitting, images).make_scorer())
    return scorers, not_measured


def _score_drawn(images: ImageStore) -> Scorer:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    def drawn() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            del target
            outcome, reason, _ = _read_output(state, images)
            return Score(value=float(outcome == "ok"), answer=outcome, explanation=reason)

        return score

    make: Callable[[], Scorer] = scorer(metrics=[mean(), stderr()], name="drawn")(drawn)
    return make()


def _read_output(state: TaskState, images: ImageStore) -> tuple[str, str | None, str | None]:
    """Read what became of a sample: the outcome, what was said or is wrong, and the image."""
    from echo_hf.judging.imports import find_image
    from echo_hf.tables import Outcome

    try:
        image = find_image([state.output.message.content]) if state.output.choices else None
        digest = images.put(image) if image is not None else None
    except (ImageError, ValueError) as error:
        return Outcome.FAILED, str(error), None
    if digest is not None:
        return Outcome.OK, None, digest
    refused = state.output.choices and state.output.stop_reason == "content_filter"
    return (Outcome.REFUSED if refused else Outcome.NO_IMAGE), state.output.completion, None


class _Measurement:
    """One metric on the samples that it fits; its objects share what they compute of inputs."""

    def __init__(
        self, metric: metrics.Metric, tasks: Mapping[str, base.Task], images: ImageStore
    ) -> None:
        self.metric, self.tasks, self.images = metric, tasks, images
        self.lock = Lock()  # samples are scored in threads
        self.missing: str | None = None

    def make_scorer(self) -> Scorer:
        from anyio.to_thread import run_sync
        from inspect_ai.scorer import SampleScore, Score, metric, scorer

        def value() -> Metric:
            def compute(scores: list[SampleScore]) -> float:
                digests = {
                    str(score.sample_id): (score.score.metadata or {}).get(DIGEST)
                    for score in scores
                }
                result = self.measure(list(digests), list(digests.values()))
                return float("nan") if result is None or result.value is None else result.value

            # inspect_ai looks these up, by names that this module has for checkers of types alone.
            compute.__annotations__ = {"scores": list[SampleScore], "return": float}
            return compute

        def measurement() -> Scorer:
            async def score(state: TaskState, target: Target) -> Score:
                del target
                name = str(state.sample_id)
                if name not in self.tasks:
                    return Score.unscored(explanation=f"it does not fit {state.metadata['split']}")
                _, _, digest = _read_output(state, self.images)
                result = await run_sync(self.measure, [name], [digest])
                if result is None:
                    return Score.unscored(explanation=self.missing)
                number, missing = result.per_sample[0], result.reasons[0]
                if number is None:
                    return Score.unscored(explanation=missing and str(missing.reason))
                return Score(value=number, metadata={DIGEST: digest})

            return score

        whole = metric(name="value")(value)()
        make: Callable[[], Scorer] = scorer([whole], name=self.metric.name)(measurement)
        return make()

    def measure(self, names: Sequence[str], digests: Iterable[str | None]) -> MetricResult | None:
        """Measure outputs; null where the metric lacks something, such as its weights."""
        from echo_hf.config.evaluation import MetricsOptions
        from echo_hf.judging.score import read_image, run_metric

        tasks = [self.tasks[name] for name in names]
        columns = {
            "inputs": lambda: [
                [read_image(self.images, image.sha256) for image in task.inputs] for task in tasks
            ],
            "outputs": lambda: [read_image(self.images, digest) for digest in digests],
            "prompts": lambda: [task.prompt for task in tasks],
        }
        with self.lock:
            if self.missing is not None:  # which the next sample would look for again
                return None
            result, self.missing = run_metric(
                self.metric, columns, names, MetricsOptions({}), "corrected"
            )
        return result
