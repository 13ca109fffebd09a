"""Logs of inspect_ai: what a system was asked, what it drew, and what judges said."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echo_hf._infra.registry import Needs
from echo_hf.errors import ImageError
from echo_hf.hub.manifest import toolkit_version
from echo_hf.images.decode import format_of
from echo_hf.report.export.export import FORMATS, ExportedRun, file_names
from echo_hf.report.run_data import Rating
from echo_hf.scores.rating_table import RUBRIC

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample, EvalScore


@FORMATS.register("inspect", Needs(extra="inspect", packages=("inspect_ai",)))
def inspect_log(run: ExportedRun, folder: Path) -> None:
    """`SYSTEM_SPLIT.eval`: samples with their images, ratings as scores, figures as metrics."""
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalResults,
        EvalSpec,
        write_eval_log,
    )

    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    names = file_names(run.data.systems)
    for system in run.data.systems:
        for split in run.data.splits:
            samples = list(_samples(run, system, split))
            if not samples:
                continue
            model = run.data.results.system_models.get(system)
            spec = EvalSpec(
                created=created,
                eval_id=f"{names[system]}_{split}",
                run_id=run.config.name,
                task=f"echo/{split}",
                task_id=f"{names[system]}_{split}",
                dataset=EvalDataset(
                    name=run.data.results.benchmark.on_hub or run.name,
                    samples=len(samples),
                    sample_ids=[one.id for one in samples],
                ),
                model=(model and model.model) or system,
                config=EvalConfig(),
                packages={"echo-hf": toolkit_version()},
                metadata={"system": system, "protocol": run.data.results.protocol},
            )
            counts = {"total_samples": len(samples), "completed_samples": len(samples)}
            scores = list(_figures(run, system, split))
            log = EvalLog(
                status="success",
                eval=spec,
                results=EvalResults(**counts, scores=scores),
                samples=samples,
            )
            write_eval_log(log, str(folder / f"{names[system]}_{split}.eval"))


def _samples(run: ExportedRun, system: str, split: str) -> Iterator[EvalSample]:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageUser,
        ContentImage,
        ContentText,
        ModelOutput,
    )
    from inspect_ai.scorer import Score

    def images(digests: Iterable[str | None]) -> list[Any]:
        found = (_address(run, one) for one in digests)
        return [ContentImage(image=one) for one in found if one]

    for sample in run.data.of_split(split):
        output = run.data.outputs.get((sample.id, system))
        rated = [one for one in run.data.ratings.get(sample.id, ()) if one.system == system]
        if output is None and not rated:
            continue
        asked = ChatMessageUser(content=[ContentText(text=sample.prompt), *images(sample.inputs)])
        drawn = images([output.image]) if output else []
        said = " ".join(filter(None, (output.outcome, output.reason))) if output else ""
        answer = ChatMessageAssistant(content=drawn or [ContentText(text=said)], model=system)
        yield EvalSample(
            id=sample.id,
            epoch=1,
            input=[asked],
            target="",
            messages=[asked, answer],
            output=ModelOutput(model=system, completion="" if drawn else said),
            scores={
                _score_name(one): Score(
                    value=one.value,
                    explanation=one.explanation,
                    metadata={"judge": one.judge, "rubric": one.rubric, "repeat": one.repeat},
                )
                for one in rated
                if one.value is not None
            },
            metadata={
                "sample_id": sample.id,
                "task": sample.task,
                **({"outcome": output.outcome} if output else {}),
            },
        )


def _score_name(one: Rating) -> str:
    parts = [one.judge, *([one.rubric] if one.rubric != RUBRIC else [])]
    return " ".join([*parts, *([f"#{one.repeat + 1}"] if one.repeat else [])])


def _figures(run: ExportedRun, system: str, split: str) -> Iterator[EvalScore]:
    from inspect_ai.log import EvalMetric, EvalScore

    for row in run.data.results.results:
        if (row.system, row.split) == (system, split) and row.value is not None:
            ends = (("low", row.low), ("high", row.high))
            every = {row.metric: row.value, **{name: end for name, end in ends if end is not None}}
            metrics = {name: EvalMetric(name=name, value=value) for name, value in every.items()}
            yield EvalScore(
                name=f"{row.metric} ({row.protocol})", scorer="echo-hf", metrics=metrics
            )


def _address(run: ExportedRun, digest: str | None) -> str | None:
    """An image as a log holds it, null where it is not there."""
    try:
        data = run.data.images.open(digest) if digest else b""
    except ImageError:
        return None
    kind = format_of(data)
    return kind and f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"
