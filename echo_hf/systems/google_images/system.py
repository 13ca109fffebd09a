"""The system that asks a Gemini model for pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from echo_hf.engines.openai.reply import Fault, Reply, fault_of
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.retry_after import retry_after
from echo_hf.systems.base import Drawn, Passing, Retired, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.google_images.answer import drawn_from
from echo_hf.systems.google_images.connection import Connection, UnreadableError, connected
from echo_hf.systems.google_images.options import read_options
from echo_hf.systems.google_images.request import arguments, aspect_ratio
from echo_hf.systems.hosted_faults import fate, retired_by
from echo_hf.systems.hosted_system import HostedSystem
from echo_hf.systems.limited_client import TooMuchError
from echo_hf.systems.registry import register
from echo_hf.systems.sent_pictures import SentInput

ADAPTER = "google"
# Raised when the same task is put to the model in another way, which may change pictures.
WORDING = 2
SEEDED = "the seed is sent, and the model repeats a picture as best it can"
UNSEEDED = "no seed is sent: two pictures for one task differ"
DELAY = "retryDelay"


class GoogleImages(HostedSystem[Connection]):
    """Asks a Gemini model, over Google's own API.

    Args:
        config: The config of the system; `GoogleOptions` are its parameters.

    Raises:
        GenerationError: A parameter is unknown or has a bad value, or there is no model.
    """

    def __init__(self, config: SystemConfig) -> None:
        self._options = read_options(config)
        self._seed = config.seed if self._options.send_seed else None
        determinism = SEEDED if self._options.send_seed else UNSEEDED
        connect = partial(connected, api_version=self._options.api_version)
        super().__init__(config, self._options, determinism, connect)

    def signature(self) -> Mapping[str, Any]:
        """What reaches the server and decides a picture; neither its key nor a private address."""
        return self._described(ADAPTER, WORDING, self._seed)

    def _looked(self, connection: Connection) -> Retired | None:
        try:
            found = connection.ask(connection.client.models.get, model=self._host.model)
        except (Passing, TooMuchError, UnreadableError):
            return None
        return retired_by(fault_of(found), self._host) if isinstance(found, Reply) else None

    def _asked(self, connection: Connection, task: Task, inputs: Sequence[SentInput]) -> Drawn:
        ratio = aspect_ratio(self._config.size, inputs, self._options)
        asked = {
            "aspect_ratio": ratio,
            "image_size": self._options.image_size,
            "inputs": [one.details() for one in inputs],
        }
        sent = arguments(self._host.model, task.prompt, inputs, ratio, self._seed, self._options)
        try:
            drawn = self._read(connection.ask(connection.client.models.generate_content, **sent))
        except (TooMuchError, UnreadableError) as error:
            drawn = Drawn(Outcome.FAILED, stage=OutcomeStage.ANSWER, text=str(error))
        return replace(drawn, seed=self._seed, details={**drawn.details, **asked})

    def _read(self, answer: Any) -> Drawn:
        if not isinstance(answer, Reply):
            return drawn_from(answer.model_dump(), self._config.price)
        fault = fault_of(answer)
        wait_s = retry_after(answer.headers)
        return fate(fault, self._host, told_wait_s(fault) if wait_s is None else wait_s)


def told_wait_s(fault: Fault) -> float | None:
    """How long an error's details ask to wait.

    Args:
        fault: The error.

    Returns:
        Seconds; null where they do not say, or not in a way that can be read.

    Example:
        >>> told_wait_s(Fault(429, "busy", error={"details": [{"retryDelay": "17.5s"}]}))
        17.5
    """
    details = fault.error.get("details")
    for one in details if isinstance(details, list) else ():
        said = one.get(DELAY) if isinstance(one, dict) else None
        number = said.removesuffix("s") if isinstance(said, str) else ""
        if number.replace(".", "", 1).isdecimal():
            return float(number)
    return None


register(
    ADAPTER,
    "Gemini models that draw: Nano Banana and its successors",
    extra="google",
    packages=("google.genai",),
    key="GEMINI_API_KEY",
)(GoogleImages)
