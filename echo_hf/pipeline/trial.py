"""Send single requests of a plan to try a model; nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from datasets import Dataset

from echo_hf.engines.base import Completion, Engine, ImageRef, Request, Text
from echo_hf.images.loader import open_image
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, as_source, parse
from echo_hf.pipeline.stage import ModelStage
from echo_hf.tables import arrow_batches

ROWS_PER_BATCH = 100
NO_ANSWER = Completion(None, error="the engine gave no answer", finish_reason="error")


@dataclass(frozen=True)
class Trial:
    """A request and the answer to it.

    Attributes:
        who: Who was asked what.
        engine: Everything that decides an answer beside the request.
        request: What was sent.
        wanted: The form of an answer, in a few words.
        completion: The answer as it came.
        parsed: What was read from it; null where it cannot be used.
        problem: Why it cannot; null where it can.
        seconds: How long it took, with the loading of a model.
    """

    who: str
    engine: Mapping[str, Any]
    request: Request
    wanted: str
    completion: Completion
    parsed: Mapping[str, Any] | None
    problem: str | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values; an image is its size, its bytes and its digest."""
        request, completion = self.request, self.completion
        return {
            "who": self.who,
            "engine": dict(self.engine),
            "messages": [
                {"role": message.role, "parts": list(map(_render_part, message.parts))}
                for message in request.messages
            ],
            "schema": None if request.answer is None else request.answer.model_json_schema(),
            "regex": request.regex,
            "wanted": self.wanted,
            "max_tokens": request.max_tokens,
            "answer": completion.text,
            "error": completion.error,
            "finish_reason": completion.finish_reason,
            "parsed": self.parsed,
            "problem": self.problem,
            "usage": asdict(completion.usage),
            "seconds": self.seconds,
            "cost_usd": completion.cost_usd,
        }


def take_requests(stage: ModelStage, dataset: Dataset, engine: Engine, count: int) -> list[Request]:
    """Return a stage's first requests about these rows, answered before or not."""

    def list_requests(answering: ModelStage) -> Iterator[Request]:
        for rows in arrow_batches(dataset, ROWS_PER_BATCH):
            for row_requests in answering.requests(rows):
                yield from row_requests

    with closing(Store(":memory:")) as store:
        return list(islice(list_requests(stage.answered_by(as_source(engine, store))), count))


def send_trial(stage: ModelStage, request: Request, engine: Engine, who: str) -> Trial:
    began = time.perf_counter()
    completion = dict(engine.stream([request])).get(0, NO_ANSWER)
    seconds = time.perf_counter() - began
    answer, parsed, problem = parse(request, completion, b""), None, None
    if isinstance(answer, Failure):
        problem = f"{answer.reason}: {answer.detail}"
    elif (reason := stage.unusable(answer)) is not None:
        problem = f"{reason}: {reason.meaning}"
    else:
        parsed = stage.reading(answer)
    trial = who, engine.signature(), request, stage.wanted_form(request)
    return Trial(*trial, completion, parsed, problem, seconds)


def _render_part(part: Text | ImageRef) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    values: dict[str, Any] = {"image": part.sha256}
    if part.file is not None:
        with open_image(part.file) as image:
            values |= {"width": image.size[0], "height": image.size[1]}
        values["size_bytes"] = part.file.stat().st_size
    return values
