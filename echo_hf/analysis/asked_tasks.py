"""Ask a model what kind of task each prompt of a reference set is, as the stage `feedback` asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.apply import run_stage
from echo_hf.config_fields import EngineChoice
from echo_hf.config_sections import Target
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT
from echo_hf.curate.feedback import Feedback
from echo_hf.engines.base import make_engine
from echo_hf.run_folder import RunFolder

UNKNOWN = "unknown"
NO_PICTURE = "0" * 64  # the stage asks how many pictures there are, not what they show


def asked_tasks(
    references: Sequence[PromptSet],
    inputs: Sequence[int],
    choice: EngineChoice,
    target: Target,
    folder: RunFolder,
) -> list[Counter[str]]:
    """Counts the tasks of reference sets by a model's answers, which the run's store keeps.

    Args:
        references: The sets.
        inputs: For each set, how many pictures its prompts come with.
        choice: The engine to ask.
        target: The model that the samples were given to, as the question names it.
        folder: The run's folder; what it has an answer for is not asked again.

    Returns:
        For each set, prompts by task; `unknown` where the call failed, or it is no task.

    Raises:
        EngineError: The engine is not usable.
        MissingExtraError: Its packages are not installed.
    """
    stage = Feedback(target)
    with make_engine(choice.kind, **choice.options) as engine, closing(folder.store()) as store:
        return [
            Counter(
                task or UNKNOWN
                for task in run_stage(
                    stage, _samples(one, pictures), engine=engine, store=store
                ).dataset["task"]
            )
            for one, pictures in zip(references, inputs, strict=True)
        ]


def _samples(one: PromptSet, pictures: int) -> Dataset:
    rows = pa.Table.from_pylist(list(_rows(one, pictures)), SAMPLES_IN_CONTEXT.schema)
    return Dataset(rows)


def _rows(one: PromptSet, pictures: int) -> Iterator[dict[str, Any]]:
    for name, prompt in zip(one.ids, one.prompts, strict=True):
        yield {
            **dict.fromkeys(SAMPLES_IN_CONTEXT.columns),
            "id": name,
            "prompt": prompt,
            "quality": "Benchmark",
            "post_urls": [f"reference:{one.name}"],
            "input_images": [NO_PICTURE] * pictures,
            "output_images": [],
            "community_feedback": [],
            "context": [],
            "provenance": "{}",
        }
