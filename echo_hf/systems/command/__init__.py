"""A model in an environment of its own: a worker process that is told a task a line.

For models whose packages exclude those of echo-hf, and for whatever a user has.
`docs/systems_command.md` says how a worker is written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Self

from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.adapter_options import options_of
from echo_hf.systems.base import Drawn, Task
from echo_hf.systems.command.crew import Crew, Launch, Worker
from echo_hf.systems.command.environment import hidden, worker_environment
from echo_hf.systems.command.launch import check_command, portable, resolved, signed
from echo_hf.systems.command.options import CommandOptions
from echo_hf.systems.command.place import InputError, placed
from echo_hf.systems.command.protocol import OUTPUT, VERSION, Answer, answers, request_line
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.misfit import by_config, misfit
from echo_hf.systems.picture_file import BadFileError, read_picture
from echo_hf.systems.registry import register
from echo_hf.systems.told import drawn_as_told, read_told


@register("command", "a model in an environment of its own, behind a worker process")
class CommandSystem:
    """Gives tasks to worker processes.

    Args:
        config: The config of the system.

    Attributes:
        determinism: What the worker says of it, once one has been started.
    """

    def __init__(self, config: SystemConfig) -> None:
        self._config, self._options = config, options_of(config, CommandOptions)
        self._place = f"system {config.name!r}"
        self._command = resolved(self._options.command, self._place)
        self.concurrency = self._options.workers
        self.determinism = "the worker does not say"
        self._crew: Crew | None = None
        self._left = False
        self._making = Lock()

    def signature(self) -> Mapping[str, Any]:
        """The command with a digest of its scripts, the model, the parameters, size and seed.

        What a script imports is not looked at: change `parameters` where it changes pictures. Of
        absolute paths the last name counts, as their folders differ from machine to machine.
        """
        config = self._config.model_dump(mode="json", include={"model", "size", "seed"})
        given = {
            "parameters": portable(self._options.parameters),
            "environment": portable(self._options.environment),
        }
        return {
            "adapter": "command",
            "protocol": VERSION,
            "command": self._signed,
            **{name: value for name, value in given.items() if value},
            **config,
        }

    def preflight(self) -> None:
        """Makes sure that the worker can be started; it is not started yet.

        Raises:
            GenerationError: The folder, the program, a script or a variable is missing.
        """
        check_command(self._command, self._folder, self._environment.get("PATH"), self._place)
        missing = next((one for one in self._options.pass_environment if one not in os.environ), "")
        if missing:
            raise GenerationError(
                f"{self._place}: environment variable {missing!r} is not set: set it, or take it "
                "out of parameters.pass_environment"
            )

    def draw(self, task: Task) -> Drawn:
        """Gives the task to a worker that has none.

        Args:
            task: The sample.

        Returns:
            What the worker says became of it.

        Raises:
            Passing: The worker ended or took too long; the next attempt has a new one.
            GenerationError: No worker can be started, or they keep ending.
        """
        crew = self._workers()
        with crew.borrowed(task.sample_id) as worker:
            self.determinism = worker.hello.determinism or self.determinism
            unfit = misfit(task, 0, self._most_inputs(worker), "the worker")
            if unfit is not None:
                return by_config(unfit, self._config)
            try:
                with placed(task) as (given, place):
                    line = crew.ask(worker, self._request(given, place), self._timeout_s)
                    if not answers(line, task.sample_id):
                        raise crew.dismiss(worker, f"it answered {line[:80]!r} to another request")
                    return self._answered(line, worker, place)
            except InputError as error:
                return _without("no_input", str(error))

    def __enter__(self) -> Self:
        self._left = False
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all workers, and with each everything that it has started."""
        with self._making:
            self._left, crew, self._crew = True, self._crew, None
        if crew is not None:
            crew.close()

    @property
    def _folder(self) -> Path:
        return self._options.folder or Path(tempfile.gettempdir())

    @cached_property
    def _signed(self) -> list[Any]:
        return signed(self._command, self._folder)

    @property
    def _environment(self) -> dict[str, str]:
        options = self._options
        return worker_environment(options.environment, options.pass_environment, os.environ)

    @property
    def _timeout_s(self) -> float:
        return self._config.limits.timeout_s

    def _hide(self, said: bytes) -> bytes:
        return hidden(said, self._options.pass_environment, os.environ)

    def _workers(self) -> Crew:
        with self._making:
            if self._left:
                raise GenerationError(f"{self._place}: its workers have been ended: enter it again")
            if self._crew is None:
                self._crew = Crew(self._launch(), self._options.workers)
            return self._crew

    def _launch(self) -> Launch:
        options = self._options
        return Launch(
            self._place,
            self._command,
            self._folder,
            self._environment,
            options.start_timeout_s,
            options.most_restarts,
            self._hide,
        )

    def _most_inputs(self, worker: Worker) -> int | None:
        own = self._options.most_inputs
        return worker.hello.most_inputs if own is None else own

    def _request(self, task: Task, place: Path) -> bytes:
        return request_line(task, self._config, self._options.parameters, place)

    def _answered(self, line: bytes, worker: Worker, place: Path) -> Drawn:
        try:
            answer = read_told(line, Answer, "the worker's answer")
        except ValueError as error:
            return _without("bad_answer", str(error), stage=OutcomeStage.ANSWER)
        details = {
            "worker": worker.hello.model_dump(include={"name", "version", "determinism"}),
            "worker_says": dict(answer.details),
        }
        if answer.outcome is not Outcome.OK:
            return drawn_as_told(answer, None, details)
        try:
            picture = read_picture(place / (answer.output or OUTPUT), place)
        except BadFileError as error:
            return error.drawn()
        return drawn_as_told(answer, picture, details)


def _without(code: str, text: str, stage: OutcomeStage = OutcomeStage.REQUEST) -> Drawn:
    return Drawn(Outcome.FAILED, stage=stage, code=code, text=text)
