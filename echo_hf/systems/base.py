"""The contract of a system under test: what it is given and returns, limits and redaction."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, Self, runtime_checkable

from pydantic import AfterValidator

from echo_hf._infra.renamed import make_module_getattr
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import CREDENTIALS
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef, Usage
from echo_hf.reasons import Reason
from echo_hf.tables import Outcome


class OutcomeStage(Reason):
    """Where a task ended that has no image: the values of `outputs.stage`."""

    PREFLIGHT = "preflight", "before anything was asked: the model is no longer there"
    TASK = "task", "the system does not take such a task, such as one with several inputs"
    INPUT = "input", "its prompt or its inputs were not accepted"
    OUTPUT = "output", "the image was made, and held back"
    REQUEST = "request", "the request to the system failed"
    ANSWER = "answer", "the answer is not an image that can be stored"


@dataclass(frozen=True, slots=True)
class Task:
    """One sample as a system gets it.

    Attributes:
        sample_id: The sample.
        sample_digest: Sha256 of its prompt and inputs.
        split: Config of the benchmark that it is in.
        prompt: The instruction.
        inputs: Its input images, in order.
        sources: Addresses of the posts that it was made from.
        draw: Number of the output, where a system draws several of a sample: its seed is that of
            the config plus this number.
    """

    sample_id: str
    sample_digest: str
    split: str
    prompt: str
    inputs: tuple[ImageRef, ...] = ()
    sources: tuple[str, ...] = ()
    draw: int = 0

    @property
    def output_key(self) -> tuple[str, int]:
        """Sample and draw, which tell a system's outputs apart."""
        return self.sample_id, self.draw


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """The result of a task.

    Attributes:
        outcome: What became of it.
        image: The encoded image, the very bytes that came; null when there is none.
        stage: Where it ended; null for `ok`.
        code: The system's own error code.
        text: What was said beside or instead of an image, such as thoughts or a refusal.
        seed: Seed that was used, null when the system takes none.
        revised_prompt: The prompt as the system rewrote it.
        model_reported: Name of the model in the answer.
        usage: Tokens, null where the system counts none.
        cost_usd: Price in US dollars, null when unknown.
        details: What else decides or explains the image, for its provenance: sizes, how several
            inputs were given, numbers of a request. JSON can hold it.
    """

    outcome: Outcome
    image: bytes | None = None
    stage: OutcomeStage | None = None
    code: str | None = None
    text: str | None = None
    seed: int | None = None
    revised_prompt: str | None = None
    model_reported: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def _check_json(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        json.dumps(mapping, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"expected what JSON can hold ({error})") from None
    return mapping


JsonMapping = Annotated[Mapping[str, Any], AfterValidator(_check_json)]
# Texts of a result, which a service or a model may have written.
TEXTS = ("code", "text", "revised_prompt", "model_reported")


class TransientError(RequestError):
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
        super().__init__(text, code, wait_s=wait_s)
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
    """Something that draws images for tasks.

    One of several models may have a method `estimate(tasks)` too, which gives the `ExpectedCost`
    that a dry run shows in place of the list's. One whose `is_batched` is true has a method
    `draw_batch(tasks)`, which yields each task with its result, or with a `TransientError`.

    Attributes:
        concurrency: Most tasks at a time, unless a config says otherwise.
        determinism: What the same seed gives, in a sentence.
    """

    concurrency: int
    determinism: str

    def signature(self) -> Mapping[str, Any]:
        """Return all that decides an image: adapter, model, revision, parameters, size, seed.

        It is cheap, the same each time, holds no secret, and needs neither model nor network.
        """
        ...

    def preflight(self) -> Retired | None:
        """Find out, before anything is spent, whether the model is still there.

        Returns:
            Null when it is, or when that cannot be known.

        Raises:
            GenerationError: No task could succeed, such as without a key.
        """
        ...

    def draw(self, task: Task) -> GenerationResult:
        """Draw the image that a task asks for.

        Raises:
            TransientError: Another attempt may go better.
            GenerationError: No task could succeed.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


# Key of an outcome's details: what the config said of the two numbers.
LIMITS = "limits"
NUMBERS = ("fewest_inputs", "most_inputs")


def unsupported_task(
    task: Task,
    fewest: int,
    most: int | None,
    taker: str = "the system",
    config: SystemConfig | None = None,
) -> GenerationResult | None:
    """Return `unsupported` for a task with too few or too many inputs; null where it fits.

    Inputs are never dropped to make a task fit. A config that may set the two numbers is told in
    the details: they are no part of a signature, and `may_be_supported` compares them later.

    Examples:
        >>> unsupported_task(Task("s1", "d" * 64, "image_to_image", "add a hat"), 1, 1).text
        'the task has 0 input images, and the system takes at least 1'
    """
    number = len(task.inputs)
    if number < fewest:
        code, takes = "too_few_inputs", f"at least {fewest}"
    elif most is not None and number > most:
        code, takes = "too_many_inputs", f"at most {most}" if most else "none"
    else:
        return None
    return GenerationResult(
        Outcome.UNSUPPORTED,
        stage=OutcomeStage.TASK,
        code=code,
        text=f"the task has {number} input images, and {taker} takes {takes}",
        details={} if config is None else {LIMITS: _read_input_numbers(config)},
    )


def may_be_supported(details: Mapping[str, Any], config: SystemConfig) -> bool:
    """Return whether a task was refused for limits that the config has changed since."""
    return LIMITS in details and details[LIMITS] != _read_input_numbers(config)


def _read_input_numbers(config: SystemConfig) -> dict[str, Any]:
    return {name: config.parameters[name] for name in NUMBERS if name in config.parameters}


def failure_result(
    text: str, code: str | None = None, stage: OutcomeStage = OutcomeStage.REQUEST, **fields: Any
) -> GenerationResult:
    """Return the outcome `failed`."""
    return GenerationResult(Outcome.FAILED, stage=stage, code=code, text=text, **fields)


# Shorter values would hide ordinary words.
MIN_SECRET_CHARACTERS = 6
SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:API)?KEYS?|TOKEN|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|BEARER"
    r"|AUTHORIZATION|COOKIE)\d*(?:_|$)|(?:^|_)AUTH$"
)
HIDDEN = "[hidden]"
IN_QUERY = re.compile(r"([?&](?:api_?)?(?:key|token|signature|sig)=)[^&\s'\"]+", re.IGNORECASE)


def is_secret(variable: str) -> bool:
    """Return whether an environment variable holds a secret, by its name.

    Examples:
        >>> is_secret("SHOP_KEY"), is_secret("TOKENIZERS_PARALLELISM")
        (True, False)
    """
    return SECRET_NAME.search(variable.upper()) is not None


def remove_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Remove the values of secret variables, passwords in URLs and keys in queries from a text.

    Examples:
        >>> remove_secrets("401 for https://mira:tulip@example.org/v1?key=abc", {})
        '401 for https://[hidden]@example.org/v1?key=[hidden]'
        >>> remove_secrets("bad key sk-123456", {"OPENAI_API_KEY": "sk-123456"})
        'bad key [hidden]'
    """
    secrets = (value.strip() for name, value in environment.items() if is_secret(name))
    # Longest first, since a secret may begin with another.
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= MIN_SECRET_CHARACTERS:
            text = text.replace(value, HIDDEN)
    text = CREDENTIALS.sub(f"://{HIDDEN}@", text)
    return IN_QUERY.sub(rf"\1{HIDDEN}", text)


__getattr__ = make_module_getattr(
    __name__, {"failed": "failure_result", "without_secrets": "remove_secrets"}
)
