"""A model in an environment of its own: a worker process that is told a task a line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StringConstraints

from echo_hf.config.checks import File, Section, Whole, secrets_in
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError, unknown
from echo_hf.images.decode import format_of
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import (
    SHORTEST,
    GenerationResult,
    Task,
    by_config,
    is_secret,
    unsupported_task,
    without_folders,
)
from echo_hf.systems.command_worker import (
    OUTPUT,
    VERSION,
    Crew,
    Launch,
    Worker,
    WorkerAnswer,
    answers,
    request_line,
)
from echo_hf.systems.external_results import (
    BadFileError,
    JsonMapping,
    read_image,
    read_told,
    result_as_reported,
)
from echo_hf.systems.registry import options_of, register

SHIPPED = "worker:"
WORKERS = Path(__file__).resolve().parent / "workers"
LARGEST_SCRIPT = 1024 * 1024
PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$")


def resolved(command: Sequence[str], place: str) -> list[str]:
    return [_shipped(one, place) if one.startswith(SHIPPED) else one for one in command]


def signed(command: Sequence[str], folder: Path) -> list[Any]:
    """What of a command decides an image."""
    program, *arguments = command
    name = Path(program).name
    is_python = PYTHON.match(name) is not None
    return ["python" if is_python else name, *(_signed(one, folder) for one in arguments)]


def portable(value: Any) -> Any:
    """What a config says, without the folders of one machine."""
    if isinstance(value, Mapping):
        return {name: portable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [portable(one) for one in value]
    return without_folders(value.rstrip("/")) if isinstance(value, str) else value


def check_command(command: Sequence[str], folder: Path, path: str | None, place: str) -> None:
    """Makes sure that a command can be started, without starting it."""
    if not folder.is_dir():
        raise GenerationError(f"{place}: no folder {str(folder)!r}: set parameters.folder")
    program = command[0]
    # A name with a slash is looked for from the folder on; others are looked for in the path.
    found = folder / program if os.sep in program else shutil.which(program, path=path)
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        raise GenerationError(
            f"{place}: no program {program!r}, as seen from {str(folder)!r}: make its environment "
            "or set parameters.command"
        )
    missing = next(_missing_scripts(command, folder), None)
    if missing is not None:
        raise GenerationError(
            f"{place}: no script {missing!r} in {str(folder)!r}: set parameters.folder or command"
        )


def _missing_scripts(command: Sequence[str], folder: Path) -> Iterator[str]:
    for argument in command[1:]:
        is_script = argument.endswith(".py") and not argument.startswith("-")
        if is_script and not (folder / argument).is_file():
            yield argument


def _shipped(argument: str, place: str) -> str:
    name = argument.removeprefix(SHIPPED)
    known = {path.stem: path for path in WORKERS.glob("[a-z]*.py")}
    if name not in known:
        raise GenerationError(unknown("worker", name, known, f"{place}: parameters.command"))
    return str(known[name])


def _signed(argument: str, folder: Path) -> Any:
    path = folder / argument
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_SCRIPT:
            return portable(argument)
        return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    except (OSError, ValueError):
        return portable(argument)


def _argument(given: str) -> str:
    if not given or not given.isprintable():
        raise ValueError("expected an argument without control characters")
    name = given.lstrip("-").partition("=")[0]
    if next(secrets_in({name: given}), None) is not None:
        raise ValueError(
            "expected no secret in a command, which a config keeps: put it into an environment "
            "variable and name that in pass_environment"
        )
    return given


def _public(given: Mapping[str, str]) -> Mapping[str, str]:
    secret = next(filter(is_secret, given), None)
    if secret is not None:
        raise ValueError(f"expected no secret, and {secret!r} is one: name it in pass_environment")
    return given


Argument = Annotated[str, Field(max_length=4096), AfterValidator(_argument)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Value = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class CommandOptions(Section):
    """The parameters of `command`.

    Attributes:
        command: The program and its arguments; no shell reads them. `worker:NAME` stands for the
            file of a worker that echo-hf brings.
        folder: Where the worker runs; null for a temporary folder.
        environment: Variables that are set for it, beside the few that it has anyway.
        pass_environment: Names of variables that it gets from the environment of echo-hf.
        most_inputs: Most input images of a task; null for what the worker says.
        start_timeout_s: Longest wait for its first line, in seconds: it may load its model before.
        most_restarts: In how many tasks in a row workers may end without an answer before the run
            does; each is tried again as `limits.attempts` says.
        workers: How many run at a time, each on one task.
        parameters: What each request carries, for the worker to understand.
    """

    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=256)]
    folder: File | None = None
    environment: Annotated[Mapping[Variable, Value], AfterValidator(_public)] = {}
    pass_environment: tuple[Variable, ...] = ()
    most_inputs: Annotated[Whole, Field(ge=0)] | None = None
    start_timeout_s: Seconds = 1800.0
    most_restarts: Annotated[Whole, Field(ge=0, le=1000)] = 20
    workers: Annotated[Whole, Field(ge=1, le=64)] = 1
    parameters: JsonMapping = {}  # noqa: RUF012 - a Section is frozen


KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TORCH_HOME",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
# A worker in Python speaks UTF-8, and no line of its own waits in a buffer.
PYTHON_SETTINGS = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


def worker_environment(
    variables: Mapping[str, str], passed: Sequence[str], parent: Mapping[str, str]
) -> dict[str, str]:
    names = [name for name in (*KEPT, *passed) if name in parent]
    return {**PYTHON_SETTINGS, **{name: parent[name] for name in names}, **variables}


def hidden(output: bytes, passed: Sequence[str], parent: Mapping[str, str]) -> bytes:
    """What a worker wrote, without the secrets that were passed on to it."""
    # The longest first: one may be a part of another.
    secrets = [(parent.get(name, ""), name) for name in passed if is_secret(name)]
    for value, name in sorted(secrets, key=lambda one: -len(one[0])):
        if len(value) < SHORTEST:
            continue
        # As it is, and as it stands in a line of JSON.
        written = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
        for one in (value, *written):
            output = output.replace(os.fsencode(one), f"${name}".encode())
    return output


SUFFIXES = {
    "AVIF": ".avif",
    "BMP": ".bmp",
    "GIF": ".gif",
    "JPEG": ".jpg",
    "PNG": ".png",
    "TIFF": ".tiff",
    "WEBP": ".webp",
}


class InputError(Exception):
    """An input of a task cannot be read."""


@contextmanager
def placed(task: Task) -> Iterator[tuple[Task, Path]]:
    """Puts the inputs of a task where a worker may do with them what it likes."""
    with TemporaryDirectory(prefix="echo-hf-task-", ignore_cleanup_errors=True) as folder:
        place = Path(folder).resolve()
        inputs = tuple(_copied(image, place, number) for number, image in enumerate(task.inputs))
        yield replace(task, inputs=inputs), place


def _copied(image: ImageRef, place: Path, number: int) -> ImageRef:
    if image.file is None:
        raise InputError(f"input {number} has no file")
    try:
        data = image.file.read_bytes()
    except OSError as error:
        raise InputError(f"input {number} cannot be read: {error.strerror}") from None
    path = place / f"input_{number}{SUFFIXES.get(format_of(data) or '', '')}"
    path.write_bytes(data)
    return replace(image, file=path)


@register("command", "a model in an environment of its own, behind a worker process")
class CommandSystem:
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
        """The command with a digest of its scripts, the model, the parameters, size and seed."""
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
        """Makes sure that the worker can be started; it is not started yet."""
        check_command(self._command, self._folder, self._environment.get("PATH"), self._place)
        missing = next((one for one in self._options.pass_environment if one not in os.environ), "")
        if missing:
            raise GenerationError(
                f"{self._place}: environment variable {missing!r} is not set: set it, or take it "
                "out of parameters.pass_environment"
            )

    def draw(self, task: Task) -> GenerationResult:
        crew = self._workers()
        with crew.borrowed(task.sample_id) as worker:
            self.determinism = worker.hello.determinism or self.determinism
            unfit = unsupported_task(task, 0, self._most_inputs(worker), "the worker")
            if unfit is not None:
                return by_config(unfit, self._config)
            try:
                with placed(task) as (given, place):
                    longest = self._config.limits.timeout_s
                    line = crew.ask(worker, self._request(given, place), longest)
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

    def _answered(self, line: bytes, worker: Worker, place: Path) -> GenerationResult:
        try:
            answer = read_told(line, WorkerAnswer, "the worker's answer")
        except ValueError as error:
            return _without("bad_answer", str(error), stage=OutcomeStage.ANSWER)
        details = {
            "worker": worker.hello.model_dump(include={"name", "version", "determinism"}),
            "worker_says": dict(answer.details),
        }
        if answer.outcome is not Outcome.OK:
            return result_as_reported(answer, None, details)
        try:
            image = read_image(place / (answer.output or OUTPUT), place)
        except BadFileError as error:
            return error.drawn()
        return result_as_reported(answer, image, details)


def _without(code: str, text: str, stage: OutcomeStage = OutcomeStage.REQUEST) -> GenerationResult:
    return GenerationResult(Outcome.FAILED, stage=stage, code=code, text=text)
