"""The lines that echo-hf and a worker exchange.

`docs/systems_command.md` is for whoever writes a worker.

Whatever else a worker prints, such as a library's greeting, is no line of the protocol: only an
object with `echo_hf_worker` or with `id` is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from echo_hf.config_fields import Section, Statement, Whole, Words
from echo_hf.systems.base import Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.told import Told

GREETING = "echo_hf_worker"
ANSWER = "id"
OUTPUT = "output.png"
VERSION = 1


class Hello(Section):
    """The first line of a worker, when it is ready.

    Attributes:
        echo_hf_worker: The version of the protocol.
        name: What it calls itself.
        version: Its version, or that of what it runs.
        determinism: What the same seed gives, in a sentence.
        most_inputs: Most input pictures of a task.
    """

    echo_hf_worker: Literal[1]
    name: Words
    version: Words | None = None
    determinism: Statement | None = None
    most_inputs: Annotated[Whole, Field(ge=0)] | None = None


class Answer(Told):
    """What became of a request.

    Attributes:
        id: That of the request.
        output: Where the picture lies; null for where it was asked for.
    """

    id: str
    output: str | None = None


def request_line(
    task: Task, config: SystemConfig, parameters: Mapping[str, Any], place: Path
) -> bytes:
    """One request, in pure ASCII so that no character of a prompt ends the line.

    Args:
        task: The sample; its inputs are files in the place.
        config: The config of the system.
        parameters: What the config says for the worker.
        place: Folder of the request's files.

    Returns:
        The line, with its end.
    """
    request = {
        "id": task.sample_id,
        "prompt": task.prompt,
        "inputs": [str(one.file) for one in task.inputs],
        "output": str(place / OUTPUT),
        "seed": config.seed,
        "size": config.model_dump(mode="json")["size"],
        "parameters": dict(parameters),
    }
    return json.dumps(request, allow_nan=False).encode("ascii") + b"\n"


def has_key(line: bytes, key: str) -> bool:
    """Whether a line is a JSON object with a key.

    Example:
        >>> has_key(b'{"id": "a1"}', ANSWER), has_key(b"loading id ...", ANSWER)
        (True, False)
    """
    return key in _object(line)


def answers(line: bytes, request_id: str) -> bool:
    """Whether an answer is that to a request.

    Example:
        >>> answers(b'{"id": "a1"}', "a1"), answers(b'{"id": "a1"}', "b2")
        (True, False)
    """
    return _object(line).get(ANSWER) == request_id


def _object(line: bytes) -> Mapping[str, Any]:
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
