"""A system that asks a server: the same steps and the same care for the key, whoever is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from echo_hf.engines.openai.server import ApiKey
from echo_hf.errors import GenerationError, PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Passing, Retired, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.hosted import CONCURRENCY, Host, HostedOptions, one_line, without_key
from echo_hf.systems.hosted_faults import SHUT_DOWN
from echo_hf.systems.misfit import by_config, misfit
from echo_hf.systems.opened import Opened
from echo_hf.systems.sent_pictures import SentInput, sent_input


class Keyed(Protocol):
    """A connection that knows the key which it must keep out of messages."""

    @property
    def key(self) -> ApiKey:
        """The key."""
        ...


Connection = TypeVar("Connection", bound=Keyed)
Connect = Callable[[Host, float], AbstractContextManager[Connection]]


class HostedSystem(ABC, Generic[Connection]):
    """Asks a server for each task, over one connection that opens at the first.

    Args:
        config: The config of the system.
        options: Its parameters, checked.
        determinism: What the same seed gives, in a sentence.
        connect: Opens the connection to a host, with the longest wait for an answer in seconds.

    Attributes:
        concurrency: Most tasks at a time, unless the config says otherwise.
    """

    concurrency = CONCURRENCY

    def __init__(
        self,
        config: SystemConfig,
        options: HostedOptions,
        determinism: str,
        connect: Connect[Connection],
    ) -> None:
        self.determinism = determinism
        self._config = config
        self._given = options
        self._host = Host.of(config, options)
        timeout_s = config.limits.timeout_s
        self._connection = Opened(lambda: connect(self._host, timeout_s))

    @abstractmethod
    def signature(self) -> Mapping[str, Any]:
        """Everything that decides a picture; neither key nor address of a private server."""

    @abstractmethod
    def _looked(self, connection: Connection) -> Retired | None:
        """Asks whether the model is still there."""

    @abstractmethod
    def _asked(self, connection: Connection, task: Task, inputs: Sequence[SentInput]) -> Drawn:
        """Puts a task to the server once."""

    def preflight(self) -> Retired | None:
        """Asks the server for the model; null where it is there, and where none is told.

        Of one that is known to be shut down its maker is not asked.

        Raises:
            GenerationError: There is no usable key, or the server does not accept it.
        """
        maker = type(self._given).model_fields["base_url"].default
        if self._host.model in SHUT_DOWN and self._given.base_url == maker:
            return Retired(f"{self._host.model} was shut down by its maker", "shut_down")
        connection = self._connection.get()
        with _hidden(connection.key):
            found = self._looked(connection)
        return None if found is None else Retired(one_line(found.text, connection.key), found.code)

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for.

        Args:
            task: The task.

        Returns:
            What became of it.

        Raises:
            Passing: The server is busy, late, or out of reach.
            GenerationError: No task could succeed, such as with a wrong key.
        """
        unfit = misfit(task, self._given.fewest_inputs, self._given.most_inputs)
        if unfit is not None:
            return by_config(unfit, self._config)
        try:
            inputs = [sent_input(one) for one in task.inputs]
        except PictureError as error:
            return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code="input", text=str(error))
        connection = self._connection.get()
        with _hidden(connection.key):
            return without_key(self._asked(connection, task, inputs), connection.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _described(self, adapter: str, wording: int, seed: int | None) -> dict[str, Any]:
        # Ports, variables and numbers of inputs change no picture.
        return {
            "adapter": adapter,
            "wording": wording,
            "server": self._host.server.label,
            "path": self._host.path,
            "model": self._host.model,
            "size": self._config.model_dump(mode="json")["size"],
            "seed": seed,
            **self._given.signed(self._config.size),
        }


@contextmanager
def _hidden(key: ApiKey) -> Iterator[None]:
    """Keeps the key out of what goes through."""
    try:
        yield
    except Passing as error:
        code = None if error.code is None else one_line(error.code, key)
        said = one_line(error.text, key)
        raise Passing(said, code, error.wait_s, error.usage, error.cost_usd) from None
    except GenerationError as error:
        raise GenerationError(one_line(str(error), key)) from None
