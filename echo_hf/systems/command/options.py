"""The parameters of `command`: which worker to start, where, and with what around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from echo_hf.config_check import secrets_in
from echo_hf.config_fields import File, Section, Whole
from echo_hf.systems.secrecy import is_secret
from echo_hf.systems.told import JsonMapping


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
        most_inputs: Most input pictures of a task; null for what the worker says.
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
