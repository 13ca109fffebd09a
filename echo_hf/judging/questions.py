"""What is asked of whom: a question for each judge and rubric, or one about applicability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from datasets import Dataset

from echo_hf.config.evaluation import Evaluated
from echo_hf.config.judges import ApplicabilityConfig, ImageSize, JudgeConfig
from echo_hf.engines.base import ImageRef
from echo_hf.errors import ConfigError
from echo_hf.images.store import ImageStore
from echo_hf.judging.applicability import Fitting, to_classify
from echo_hf.judging.compare import Compare, to_compare
from echo_hf.judging.outputs import TEXT, ToRate, has_text, shown_images
from echo_hf.judging.rate import PUBLISHED_SCALE, Protocol, Rate
from echo_hf.judging.session import JudgeTask
from echo_hf.judging.stage import rubric_prompt
from echo_hf.systems.base import Task

APPLICABILITY = "applicability"
PAIRWISE = "pairwise"


@dataclass
class SentImages:
    images: ImageStore
    _known: dict[ImageSize, dict[str, ImageRef]] = field(default_factory=dict)

    def of(self, digests: Iterable[str], how: ImageSize) -> dict[str, ImageRef]:
        """By digest what is sent; these images and those of earlier calls."""
        known = self._known.setdefault(how, {})
        new = [digest for digest in dict.fromkeys(digests) if digest not in known]
        known.update(shown_images(self.images, new, how))
        return known


def rating_questions(
    config: Evaluated,
    judges: Sequence[JudgeConfig],
    rubrics: Sequence[str],
    to_rate: ToRate,
    applicability: pa.Table | None,
    shown: SentImages,
) -> Iterator[JudgeTask]:
    """A question for each judge and each of its rubrics, in the order of the config."""
    for judge in judges:
        check_scale(judge, config.protocol)
        for rubric in (one for one in judge.rubrics if one in rubrics):
            fits = has_text(judge, applicability) if rubric == TEXT else _every
            rows = to_rate.rows(judge, fits)
            yield rating_question(judge, rubric, config.protocol, rows, shown)


def pairwise_questions(
    config: Evaluated, judges: Sequence[JudgeConfig], outputs: ToRate, shown: SentImages
) -> Iterator[JudgeTask]:
    for judge in judges:
        rows, how = to_compare(judge, outputs), judge.pictures or _usual(config.protocol)
        inputs = [digest for row in rows["inputs"] for digest in row]
        images = shown.of([*inputs, *rows["output_a"], *rows["output_b"]], how)
        yield JudgeTask(judge.name, PAIRWISE, Compare(judge=judge, how=how, shown=images), rows)


def fitting_question(
    options: ApplicabilityConfig, tasks: Sequence[Task], shown: SentImages
) -> JudgeTask:
    digests = (image.sha256 for task in tasks for image in task.inputs)
    stage = Fitting(options, shown.of(digests, "model_budget"))
    return JudgeTask(APPLICABILITY, APPLICABILITY, stage, to_classify(tasks))


def check_scale(judge: JudgeConfig, protocol: Protocol) -> None:
    """Refuses a judge whose ratings the published protocol would misread."""
    plain = judge.scale == PUBLISHED_SCALE and not judge.decimals
    if protocol == "published" and judge.mode == "text" and not plain:
        lowest, highest = judge.scale
        raise ConfigError(
            f"judge {judge.name!r} rates from {lowest:g} to {highest:g}"
            f"{' with decimals' if judge.decimals else ''}, and protocol 'published' reads whole "
            "numbers from 1 to 10: give it that scale, or write protocol: corrected"
        )


def _every(task: Task) -> bool:
    del task
    return True


def rating_question(
    judge: JudgeConfig, rubric: str, protocol: Protocol, rows: Dataset, shown: SentImages
) -> JudgeTask:
    how = judge.pictures or _usual(protocol)
    inputs = [] if rubric == TEXT else [one for row in rows["inputs"] for one in row]
    images = shown.of([*inputs, *rows["output"]], how)
    stage = Rate(
        judge=judge,
        rubric=rubric,
        instructions=rubric_prompt(judge, rubric),
        protocol=protocol,
        how=how,
        shown=images,
    )
    return JudgeTask(judge.name, rubric, stage, rows)


def _usual(protocol: Protocol) -> ImageSize:
    return "published" if protocol == "published" else "model_budget"
