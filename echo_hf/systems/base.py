"""What a system under test is given and gives back.

A system is a context manager: the first `draw` loads its model or connects, leaving the context
frees it; entering costs nothing. `draw` blocks, and may be called by as many threads at a time as
`concurrency` says. What becomes of a task is a value, never an exception, but for two: `Passing`, a
failure that another attempt may not meet, and `GenerationError`, after which no task could succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from echo_hf.engines.base import ImageRef, Usage
from echo_hf.reasons import Outcome, OutcomeStage


@dataclass(frozen=True, slots=True)
class Task:
    """One sample as a system gets it.

    Attributes:
        sample_id: The sample.
        sample_digest: Sha256 of its prompt and inputs.
        split: Config of the benchmark that it is in.
        prompt: The instruction.
        inputs: Its input pictures, in order.
        sources: Addresses of the posts that it was made from.
    """

    sample_id: str
    sample_digest: str
    split: str
    prompt: str
    inputs: tuple[ImageRef, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """What became of a task.

    Attributes:
        outcome: What became of it.
        picture: The encoded picture, the very bytes that came; null when there is none.
        stage: Where it ended; null for `ok`.
        code: The system's own error code.
        text: What was said beside or instead of a picture, such as thoughts or a refusal.
        seed: Seed that was used, null when the system takes none.
        revised_prompt: The prompt as the system rewrote it.
        model_reported: Name of the model in the answer.
        usage: Tokens, null where the system counts none.
        cost_usd: Price in US dollars, null when unknown.
        details: What else decides or explains the picture, for its provenance: sizes, how several
            inputs were given, numbers of a request. JSON can hold it.
    """

    outcome: Outcome
    picture: bytes | None = None
    stage: OutcomeStage | None = None
    code: str | None = None
    text: str | None = None
    seed: int | None = None
    revised_prompt: str | None = None
    model_reported: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Passing(Exception):  # noqa: N818 - it is no error yet: another attempt may do
    """A failure that may pass: a busy server, a lost connection.

    Args:
        text: What happened, without anything secret.
        code: The system's own error code.
        wait_s: How long the system asks to wait before the next attempt, null when it does not say.
        usage: Tokens that were used all the same, null for none.
        cost_usd: Their price in US dollars, null when unknown.
    """

    def __init__(
        self,
        text: str,
        code: str | None = None,
        wait_s: float | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> None:
        super().__init__(text)
        self.text, self.code, self.wait_s = text, code, wait_s
        self.usage, self.cost_usd = usage, cost_usd


@dataclass(frozen=True, slots=True)
class Retired:
    """A model that is no longer there.

    Attributes:
        text: What its maker says, or answers.
        code: The system's own error code.
    """

    text: str
    code: str | None = None


@runtime_checkable
class System(Protocol):
    """Something that draws pictures for tasks.

    Attributes:
        concurrency: Most tasks at a time, unless a config says otherwise.
        determinism: What the same seed gives, in a sentence.
    """

    concurrency: int
    determinism: str

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides a picture: adapter, model, revision, parameters, size, seed.

        It is cheap, the same each time, holds no secret, and needs neither model nor network.
        """
        ...

    def preflight(self) -> Retired | None:
        """Finds out, before anything is spent, whether the model is still there.

        Returns:
            Null when it is, or when that cannot be known.

        Raises:
            GenerationError: No task could succeed, such as without a key.
        """
        ...

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for.

        Raises:
            Passing: Another attempt may go better.
            GenerationError: No task could succeed.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
