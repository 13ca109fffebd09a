"""What engines share that load a checkpoint on this machine: options, signature, life cycle."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import cached_property, partial
from typing import Annotated, Any, Literal, Self
from weakref import WeakSet

from PIL import Image
from pydantic import Field, FilePath, StringConstraints

from echo_hf.config.checks import Section, Whole
from echo_hf.engines.base import Completion, ImageRef, Request, check_installed, read_options
from echo_hf.engines.checkpoint import FAMILIES, Checkpoint, budget_of, find_checkpoint
from echo_hf.engines.pixels import sent_reference
from echo_hf.errors import EchoError, EngineError, unknown

# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for an image.
MAX_PIXELS = 1280 * 28 * 28

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Count = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class ModelOptions(Section):
    """The model, its images and its sampling; code that comes with a model is never run.

    Attributes:
        model: A name on the Hub, or a folder.
        revision: Branch, tag or commit on the Hub; null for the one in the local cache.
        family: Whose rule its images follow; null to read it from the model.
        dtype: Type of the weights in memory.
        min_pixels: Fewest pixels of an image; null for the family's own.
        max_pixels: Most pixels; a larger image is reduced before it is sent.
        temperature: 0 for the likeliest answer.
        top_p: Share of likeliest tokens that are drawn from.
        seed: Of the draws.
        chat_template: A Jinja file instead of the model's own template.
        chat_template_kwargs: Values for the template's switches.
    """

    model: Name
    revision: Name | None = None
    family: str | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    min_pixels: Count | None = None
    max_pixels: Count | None = MAX_PIXELS
    temperature: Annotated[Number, Field(ge=0)] = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    seed: Whole = 0
    chat_template: FilePath | None = None
    chat_template_kwargs: Mapping[str, Any] = {}


Answers = Generator[tuple[int, Completion], None, None]
LONGEST_REASON = 400


def reason(error: BaseException) -> str:
    """An error in one line: ours as it is, another library's with its kind."""
    said = " ".join(str(error).split())
    is_ours = isinstance(error, EchoError)
    return (said if is_ours else f"{type(error).__name__}: {said}")[:LONGEST_REASON]


def failure(error: BaseException) -> Completion:
    """An error as the answer to the one request that it belongs to."""
    return Completion(None, reason(error), "error")


class CheckpointEngine(ABC):
    """Loads a checkpoint on this machine with its first request, and frees it when it is left."""

    kind: str
    stored = True
    # What of the options decides an answer, beside what every model has.
    keyed: tuple[str, ...]
    options: ModelOptions

    def __init__(self, model: type[ModelOptions], given: Mapping[str, Any]) -> None:
        options = self.options = read_options(model, given, self.kind)
        if options.family is not None and options.family not in FAMILIES:
            place = f"engine {self.kind!r}"
            raise EngineError(unknown("family", options.family, FAMILIES, place))
        budget_of(options.family, options.min_pixels, options.max_pixels)
        self._loaded: Any = None
        self._streams: WeakSet[Answers] = WeakSet()

    def signature(self) -> dict[str, Any]:
        """What decides an answer; memory, devices and the number of requests at a time do not."""
        options, template = self.options, self.options.chat_template
        drawn = {"top_p": options.top_p, "seed": options.seed} if options.temperature else {}
        budget = budget_of(self._family, options.min_pixels, options.max_pixels)
        return {
            "kind": self.kind,
            "model": self._checkpoint.name,
            "revision": self._checkpoint.revision,
            **{name: getattr(options, name) for name in self.keyed},
            "sampling": {"temperature": options.temperature, **drawn},
            "pixels": list(astuple(budget)),
            # The model's own template belongs to its revision.
            "chat_template": template and hashlib.sha256(template.read_bytes()).hexdigest(),
            "chat_template_kwargs": dict(options.chat_template_kwargs),
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        answers = self._answers(iter(requests))
        self._streams.add(answers)
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for answers in list(self._streams):
            answers.close()
        if self._loaded is not None:
            self._free()

    @abstractmethod
    def _answers(self, requests: Iterator[Request]) -> Answers: ...

    @abstractmethod
    def _free(self) -> None:
        """Forgets the model, and gives its memory back."""

    def _read(self, reference: ImageRef) -> Image.Image:
        """An image in the size in which the model's own processor would leave it."""
        options = self.options
        return sent_reference(
            reference,
            family=self._family,
            min_pixels=options.min_pixels,
            max_pixels=options.max_pixels,
        )

    @property
    def _family(self) -> str | None:
        return self.options.family or self._checkpoint.family

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        options, before = self.options, partial(check_installed, self.kind)
        return find_checkpoint(options.model, options.revision, before_asking=before)
