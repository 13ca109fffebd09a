"""Logs of inspect_ai: what a system was asked, what it drew, and what judges said."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echo_hf._infra.registry import Needs
from echo_hf.errors import ImageError
from echo_hf.hub.manifest import toolkit_version
from echo_hf.images.loader import format_of
from echo_hf.report.export.export import FORMATS, ExportedRun, file_names

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample, EvalScore


@FORMATS.register("inspect", Needs(extra="inspect", packages=("inspect_ai",)))
def inspect_log(run: ExportedRun, folder: Path) -> None:
    """`SYSTEM_SPLIT.eval`: samples with their images, ratings as scores, figures as metrics."""
    from inspect_ai import log

    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    results = run.data.results
    for system, name in file_names(run.data.systems).items():
        for split in run.data.splits:
            samples = list(_samples(run, system, split))
            if not samples:
                continue
            count, model = len(samples), results.system_models.get(system)
            spec = log.EvalSpec(
                created=created,
                run_id=run.config.name,
                task=f"echo/{split}",
                task_id=f"{name}_{split}",
                dataset=log.EvalDataset(
                    name=results.benchmark.on_hub or run.name,
                    samples=count,
                    sample_ids=[one.id for one in samples],
                ),
                model=(model and model.model) or system,
                config=log.EvalConfig(),
                packages={"echo-hf": toolkit_version()},
                metadata={"system": system, "protocol": results.protocol},
            )
            found = log.EvalResults(
                total_samples=count,
                completed_samples=count,
                scores=list(_figures(run, system, split)),
            )
            told = log.EvalLog(status="success", eval=spec, results=found, samples=samples)
            log.write_eval_log(told, str(folder / f"{name}_{split}.eval"))


def _samples(run: ExportedRun, system: str, split: str) -> Iterator[EvalSample]:
    from inspect_ai import log, model, scorer

    def images(digests: Iterable[str | None]) -> list[Any]:
        """Those that are there, as a log holds them."""
        found = []
        for digest in filter(None, digests):
            with suppress(ImageError):
                data = run.data.images.open(digest)
                address = f"data:image/{str(format_of(data)).lower()};base64,"
                found.append(model.ContentImage(image=address + base64.b64encode(data).decode()))
        return found

    for sample in run.data.of_split(split):
        output = run.data.outputs.get((sample.id, system))
        rated = [one for one in run.data.ratings.get(sample.id, ()) if one.system == system]
        if output is None and not rated:
            continue
        words = model.ContentText(text=sample.prompt)
        asked = model.ChatMessageUser(content=[words, *images(sample.inputs)])
        drawn = images([output.image]) if output else []
        said = " ".join(filter(None, (output.outcome, output.reason))) if output else ""
        content = drawn or [model.ContentText(text=said)]
        scores = {
            f"{one.judge} {one.rubric} {one.repeat}": scorer.Score(
                value=one.value,
                explanation=one.explanation,
                metadata={"judge": one.judge, "rubric": one.rubric, "repeat": one.repeat},
            )
            for one in rated
            if one.value is not None
        }
        yield log.EvalSample(
            id=sample.id,
            epoch=1,
            input=[asked],
            target="",
            messages=[asked, model.ChatMessageAssistant(content=content, model=system)],
            output=model.ModelOutput(model=system, completion="" if drawn else said),
            scores=scores,
            metadata={"task": sample.task, "outcome": output.outcome if output else None},
        )


def _figures(run: ExportedRun, system: str, split: str) -> Iterator[EvalScore]:
    from inspect_ai import log

    for row in run.data.results.results:
        if (row.system, row.split) == (system, split) and row.value is not None:
            every = ((row.metric, row.value), ("low", row.low), ("high", row.high))
            metrics = {
                name: log.EvalMetric(name=name, value=value)
                for name, value in every
                if value is not None
            }
            name = f"{row.metric} ({row.protocol})"
            yield log.EvalScore(name=name, scorer="echo-hf", metrics=metrics)
