"""Systems in an environment of their own: worker processes that read one task a line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import IO, Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, Field, StringConstraints

from echo_hf._infra.text import remove_folders
from echo_hf._infra.worker_pool import VISIBLE_DEVICES, count_processes
from echo_hf.config.checks import ReadablePath, Section, Statement, StrictInt, Words, find_secrets
from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError, ImageError, unknown
from echo_hf.images.loader import detect_format
from echo_hf.systems.base import (
    MIN_SECRET_CHARACTERS,
    GenerationResult,
    JsonMapping,
    OutcomeStage,
    Task,
    TransientError,
    failure_result,
    is_secret,
    unsupported_task,
)
from echo_hf.systems.files import BadFileError, ExternalResult, parse_result, read_image
from echo_hf.systems.registry import assign_devices, parse_options, register
from echo_hf.tables import Outcome

SHIPPED_PREFIX = "worker:"
WORKERS_FOLDER = Path(__file__).resolve().parent / "workers"
MAX_SCRIPT_BYTES = 1024 * 1024
PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$")
OUTPUT, SUFFIXES = "output.png", {"jpeg": "jpg"}


def _check_argument(argument: str) -> str:
    if not argument or not argument.isprintable():
        raise ValueError("expected an argument without control characters")
    name = argument.lstrip("-").partition("=")[0]
    if next(find_secrets({name: argument}), None) is not None:
        raise ValueError(
            "expected no secret in a command, which a config keeps: put it into an environment "
            "variable and name that in pass_environment"
        )
    return argument


def _check_public(variables: Mapping[str, str]) -> Mapping[str, str]:
    if (secret := next(filter(is_secret, variables), None)) is not None:
        raise ValueError(f"expected no secret, and {secret!r} is one: name it in pass_environment")
    return variables


Argument = Annotated[str, Field(max_length=4096), AfterValidator(_check_argument)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
VariableValue = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]
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
    folder: ReadablePath | None = None
    environment: Annotated[Mapping[Variable, VariableValue], AfterValidator(_check_public)] = {}
    pass_environment: tuple[Variable, ...] = ()
    most_inputs: Annotated[StrictInt, Field(ge=0)] | None = None
    start_timeout_s: Seconds = 1800.0
    most_restarts: Annotated[StrictInt, Field(ge=0, le=1000)] = 20
    workers: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    parameters: JsonMapping = {}  # noqa: RUF012 - a Section is frozen


# Variables that a worker inherits from echo-hf, beside those that a config passes on.
INHERITED_VARIABLES = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
    *("OMP_NUM_THREADS", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TORCH_HOME", "XDG_CACHE_HOME"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)
# So that a worker in Python writes UTF-8, and each line at once.
PYTHON_SETTINGS = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


def hide_secrets(output: bytes, passed: Sequence[str], parent: Mapping[str, str]) -> bytes:
    """Replace the secrets that were passed on to a worker in what it wrote."""
    secrets = [(parent.get(name, ""), name) for name in passed if is_secret(name)]
    # Longest first, since a secret may be a part of another.
    for value, name in sorted(secrets, key=lambda secret: -len(secret[0])):
        if len(value) >= MIN_SECRET_CHARACTERS:
            # As it is, and as it is in a line of JSON.
            in_json = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
            for spelling in (value, *in_json):
                output = output.replace(os.fsencode(spelling), f"${name}".encode())
    return output


def hide_local_paths(value: Any) -> Any:
    """Remove the folders of this machine from what a config says."""
    if isinstance(value, Mapping):
        return {name: hide_local_paths(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [hide_local_paths(inner) for inner in value]
    return remove_folders(value) if isinstance(value, str) else value


MAX_LINE_BYTES = 1024 * 1024
READ_BYTES, MAX_LOG_BYTES, LAST_LINES = 65_536, 8192, 3
POLL_SECONDS, GRACE_SECONDS = 0.1, 2.0
PROTOCOL_VERSION = 1


class Greeting(Section):
    """The first line of a worker, when it is ready."""

    echo_hf_worker: Literal[1] = 1
    name: Words
    version: Words | None = None
    determinism: Statement | None = None
    most_inputs: Annotated[StrictInt, Field(ge=0)] | None = None


class WorkerError(Exception):
    """A worker ended without an answer."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class WorkerProcess:
    """A worker process that is asked line by line; it ends with all that it started."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        hide: Callable[[bytes], bytes],
    ) -> None:
        self.greeting: Greeting | None = None
        self.has_ended = False
        self._hide, self._log, self._unread = hide, b"", b""
        self._process = subprocess.Popen(  # noqa: S603 - no shell, and the config's own command
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = cast("tuple[IO[bytes], ...]", pipes)
        os.set_blocking(self._stdin.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def ask(self, request: bytes, timeout_s: float, key: str = "id") -> bytes:
        """Send a line, and wait for one with a key; without an answer, the worker is ended."""
        try:
            if self.greeting is not None:  # before that, it may already have written its first line
                written_since = self._selector.select(0)
                for line in self._read_lines(written_since):
                    self._note(line)
            return self._hide(self._answer(request, timeout_s, key))
        except BaseException as error:
            self.stop()
            if isinstance(error, WorkerError):
                raise WorkerError(error.code, f"{error}{self._read_last_words()}") from None
            raise

    def kill(self) -> None:
        """Kill the worker and what it started; other threads may call this."""
        if not self.has_ended:  # else the number may belong to another process by now
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self, grace_s: float = 0.0) -> None:
        """Close the worker's input, wait for it to end by itself, and kill what is left."""
        if self.has_ended:
            return
        self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.kill()
        self.has_ended = True
        self._process.wait()
        self._selector.close()
        self._stdout.close()
        self._stderr.close()

    def _answer(self, unsent: bytes, timeout_s: float, key: str) -> bytes:
        deadline = time.monotonic() + timeout_s
        while (seconds := deadline - time.monotonic()) > 0:
            # Its input may be full; or closed, and it will end without an answer.
            with suppress(OSError):
                while unsent:
                    unsent = unsent[os.write(self._stdin.fileno(), unsent) :]
            is_gone = self._process.poll() is not None
            if is_gone:  # its last output is still read, without waiting for its children
                self.kill()
            ready = self._selector.select(0 if is_gone else min(seconds, POLL_SECONDS))
            answer = None
            for line in self._read_lines(ready):
                if answer is None and key in parse_object(line):
                    answer = line
                else:
                    self._note(line)
            if answer is not None:
                return answer
            if not ready and (is_gone or self._stdout not in self._selector.get_map()):
                self._note(self._unread)
                raise WorkerError("worker_ended", f"it ended{self._describe_end()}")
        raise WorkerError("timeout", f"it gave no answer in {timeout_s:g} s")

    def _read_lines(self, ready: Sequence[tuple[selectors.SelectorKey, int]]) -> Iterator[bytes]:
        """Yield the lines of its output; what it writes to stderr is noted."""
        for key, _ in ready:
            chunk = os.read(key.fd, READ_BYTES)
            if not chunk:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._stderr:
                self._note(chunk)
            else:
                *lines, self._unread = (self._unread + chunk).split(b"\n")
                yield from (line + b"\n" for line in lines)
                if len(self._unread) > MAX_LINE_BYTES:
                    message = f"it wrote {len(self._unread)} bytes without ending the line"
                    raise WorkerError("line_too_long", message)

    def _note(self, chunk: bytes) -> None:
        self._log = (self._log + chunk)[-MAX_LOG_BYTES:]

    def _describe_end(self) -> str:
        # A process closes its output a little before its status is known.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        status = self._process.poll()
        if status is None:
            return " its output"
        return f" with status {status}" if status >= 0 else f" by signal {-status}"

    def _read_last_words(self) -> str:
        text = self._hide(self._log).decode("utf-8", "replace").replace("\r", "\n")
        lines = ["".join(filter(str.isprintable, line)).strip() for line in text.split("\n")]
        last = [line[:200] for line in lines if line][-LAST_LINES:]
        return f"; its last words: {' | '.join(last)}" if last else ", without a word"


def parse_object(line: bytes) -> Mapping[str, Any]:
    """Parse the JSON object of a line; empty where it has none."""
    try:
        record = json.loads(line) if line.lstrip().startswith(b"{") else {}
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", record)


class CommandWorkers:
    """The workers of a system, each with one task at a time; a lost one is started again."""

    def __init__(
        self,
        name: str,
        start: Callable[[str | None], WorkerProcess],
        devices: Sequence[str | None],
        start_timeout_s: float,
        most_restarts: int,
    ) -> None:
        self.is_closed = False
        self._name, self._start, self._size = name, start, len(devices)
        self._start_timeout_s, self._most_restarts = start_timeout_s, most_restarts
        self._idle: SimpleQueue[tuple[str | None, WorkerProcess | None]] = SimpleQueue()
        for device in devices:
            self._idle.put((device, None))
        self._changing, self._was_greeted = Lock(), False
        self._busy, self._lost = set[WorkerProcess](), set[str]()

    @contextmanager
    def borrow_worker(self, task: str) -> Iterator[tuple[WorkerProcess, Greeting]]:
        """Wait for an idle worker, and start one where its place is empty."""
        device, worker = self._idle.get()
        try:
            with self._changing:
                if self.is_closed:
                    message = f"{self._name}: its workers have been ended: enter it again"
                    raise GenerationError(message)
                if worker is None or worker.has_ended:
                    worker = self._start(device)
                self._busy.add(worker)
            worker.greeting = worker.greeting or self._greet(worker, task)
            yield worker, worker.greeting
        finally:
            with self._changing:
                self._busy.difference_update([worker] if worker else [])
            self._idle.put((device, worker))

    def ask(self, worker: WorkerProcess, task: str, request: bytes, timeout_s: float) -> bytes:
        """Give a worker its task; one that answers to another task is ended."""
        try:
            line = worker.ask(request, timeout_s)
        except WorkerError as error:
            raise self._count_loss(task, error) from None
        with self._changing:
            self._lost.clear()
        if parse_object(line).get("id") != task:
            worker.stop()
            message = f"it answered {line[:80]!r} to another request"
            raise self._count_loss(task, WorkerError("wrong_id", message))
        return line

    def close(self) -> None:
        """End all workers, and kill those with a task."""
        with self._changing:
            self.is_closed = True
            for worker in self._busy:
                worker.kill()
        workers = [self._idle.get() for _ in range(self._size)]
        for device, idle in workers:
            if idle is not None:
                idle.stop(GRACE_SECONDS)
            self._idle.put((device, idle))

    def _greet(self, worker: WorkerProcess, task: str) -> Greeting:
        try:
            line = worker.ask(b"", self._start_timeout_s, "echo_hf_worker")
            greeting = parse_result(line, Greeting, f"{self._name}: the worker's first line")
        except WorkerError as error:
            if self._was_greeted:  # what started once may be started again
                raise self._count_loss(task, error) from None
            message = f"{self._name}: the worker could not be started: {error}"
            raise GenerationError(message) from None
        except ValueError as error:
            worker.stop()
            raise GenerationError(str(error)) from None
        self._was_greeted = True
        return greeting

    def _count_loss(self, task: str, error: WorkerError) -> Exception:
        # A task that kills workers does so at every attempt, which says nothing of other tasks.
        with self._changing:
            self._lost.add(task)
            lost = len(self._lost)
        if lost > self._most_restarts:
            return GenerationError(
                f"{self._name}: workers ended in {lost} tasks without an answer between, "
                f"the last one so: {error}"
            )
        return TransientError(f"the worker is gone: {error}", error.code)


class WorkerAnswer(ExternalResult):
    id: str
    output: str | None = None


@register("command", "a model in an environment of its own, behind a worker process", devices=True)
class CommandSystem:
    def __init__(self, config: SystemConfig) -> None:
        self._config, self._options = config, parse_options(config, CommandOptions)
        self._place, options = f"system {config.name!r}", self._options
        files = WORKERS_FOLDER.glob("[a-z]*.py")
        shipped = {f"{SHIPPED_PREFIX}{path.stem}": str(path) for path in files}
        for argument in options.command:
            if argument.startswith(SHIPPED_PREFIX) and argument not in shipped:
                place = f"{self._place}: parameters.command"
                raise GenerationError(unknown("worker", argument, shipped, place))
        self._command = [shipped.get(argument, argument) for argument in options.command]
        self._folder = options.folder or Path(tempfile.gettempdir())
        devices = config.limits.devices
        if devices is not None and (options.workers > 1 or VISIBLE_DEVICES in options.environment):
            raise GenerationError(
                f"{self._place}: limits.devices says how many workers run where: leave it out, or "
                f"parameters.workers and {VISIBLE_DEVICES!r} in parameters.environment"
            )
        self.concurrency = count_processes(devices or options.workers)
        self.determinism = "the worker does not say"
        self._pool: CommandWorkers | None = None

    def signature(self) -> Mapping[str, Any]:
        """Return the command with digests of its scripts, the model, parameters, size and seed."""
        options = self._options
        settings = {"parameters": options.parameters, "environment": options.environment}
        return {
            "adapter": "command",
            "protocol": PROTOCOL_VERSION,
            "command": self._signed_command,
            **{name: hide_local_paths(value) for name, value in settings.items() if value},
            **self._config.model_dump(mode="json", include={"model", "size", "seed"}),
        }

    def preflight(self) -> None:
        """Check that the worker can be started, without starting it."""
        assign_devices(self._config)
        folder, (program, *arguments) = self._folder, self._command
        # As in a shell, a name with a slash is a path, and others are looked for in PATH.
        path = self._environment.get("PATH")
        program_file = shutil.which(folder / program if os.sep in program else program, path=path)
        checks = {"folder": folder.is_dir(), f"program {program!r}": program_file is not None}
        for arg in arguments:
            if arg.endswith(".py") and not arg.startswith("-"):
                checks[f"script {arg!r}"] = (folder / arg).is_file()
        for variable in self._options.pass_environment:
            checks[f"variable {variable!r}"] = variable in os.environ
        for name, is_there in checks.items():
            if not is_there:
                raise GenerationError(
                    f"{self._place}: no {name}, as seen from {str(folder)!r}: make it, or set "
                    "parameters.folder, command or pass_environment"
                )

    def draw(self, task: Task) -> GenerationResult:
        pool, own = self._pool, self._options.most_inputs
        if pool is None:
            raise GenerationError(f"{self._place} is at work only inside of its context: enter it")
        with (
            pool.borrow_worker(task.sample_id) as (worker, greeting),
            TemporaryDirectory(prefix="echo-hf-task-", ignore_cleanup_errors=True) as folder,
        ):
            self.determinism = greeting.determinism or self.determinism
            max_inputs = greeting.most_inputs if own is None else own
            if unfit := unsupported_task(task, 0, max_inputs, "the worker", self._config):
                return unfit
            path = Path(folder).resolve()
            try:
                inputs = list(_copy_inputs(task, path))
            except ImageError as error:
                return failure_result(str(error), "no_input")
            request = {
                "id": task.sample_id,
                "prompt": task.prompt,
                "inputs": inputs,
                "output": str(path / OUTPUT),
                **self._config.model_dump(mode="json", include={"size"}),
                "seed": self._config.seed + task.draw,
                "parameters": dict(self._options.parameters),
            }
            # ASCII, so that no character of a prompt ends the line.
            line = json.dumps(request, allow_nan=False).encode("ascii") + b"\n"
            line = pool.ask(worker, task.sample_id, line, self._config.limits.timeout_s)
            try:
                answer = parse_result(line, WorkerAnswer, "the worker's answer")
                is_ok = answer.outcome is Outcome.OK
                image = read_image(path / (answer.output or OUTPUT), path) if is_ok else None
            except BadFileError as error:
                return error.to_result()
            except ValueError as error:
                return failure_result(str(error), "bad_answer", OutcomeStage.ANSWER)
        about = greeting.model_dump(include={"name", "version", "determinism"})
        return answer.build_result(image, {"worker": about, "worker_says": dict(answer.details)})

    def __enter__(self) -> Self:
        if self._pool is None or self._pool.is_closed:
            options = self._options
            limits = options.start_timeout_s, options.most_restarts
            devices = assign_devices(self._config) or [None] * options.workers
            self._pool = CommandWorkers(self._place, self._start_worker, devices, *limits)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.close()

    def _start_worker(self, device: str | None) -> WorkerProcess:
        own = {} if device is None else {VISIBLE_DEVICES: device}
        hide = partial(hide_secrets, passed=self._options.pass_environment, parent=os.environ)
        try:
            environment = {**self._environment, **own}
            return WorkerProcess(self._command, self._folder, environment, hide)
        except OSError as error:
            raise GenerationError(
                f"{self._place}: cannot start {self._command[0]!r} in {str(self._folder)!r} "
                f"({error.strerror}): set parameters.command"
            ) from None

    @property
    def _environment(self) -> dict[str, str]:
        names = (*INHERITED_VARIABLES, *self._options.pass_environment)
        passed = {name: os.environ[name] for name in names if name in os.environ}
        return {**PYTHON_SETTINGS, **passed, **self._options.environment}

    @cached_property
    def _signed_command(self) -> list[Any]:
        """The part of the command that decides an image; scripts count by their content."""
        program, *arguments = self._command
        name = Path(program).name
        signed: list[Any] = ["python" if PYTHON.match(name) else name]
        for argument in arguments:
            path, signed_argument = self._folder / argument, hide_local_paths(argument)
            # Not every argument can be the name of a file, and not every file can be read.
            with suppress(OSError, ValueError):
                if path.is_file() and path.stat().st_size <= MAX_SCRIPT_BYTES:
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    signed_argument = {"file": path.name, "sha256": digest}
            signed.append(signed_argument)
        return signed


def _copy_inputs(task: Task, folder: Path) -> Iterator[str]:
    """Copy the inputs, since a worker may change its files."""
    for number, image in enumerate(task.inputs):
        try:
            encoded = b"" if image.file is None else image.file.read_bytes()
        except OSError:
            encoded = b""
        if not encoded:
            raise ImageError(f"input {number} cannot be read")
        kind = (detect_format(encoded) or "").lower()
        suffix = f".{SUFFIXES.get(kind, kind)}" if kind else ""
        copy = folder / f"input_{number}{suffix}"
        copy.write_bytes(encoded)
        yield str(copy)
