"""What every system that is asked over the network has in common: an address, a key, a model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from echo_hf.config_fields import Section, Whole
from echo_hf.engines.openai.server import ApiKey, Server
from echo_hf.engines.openai.server_options import VARIABLE
from echo_hf.errors import EngineError, GenerationError
from echo_hf.systems.adapter_options import model_of, options_of
from echo_hf.systems.base import Drawn
from echo_hf.systems.config import Size, SystemConfig

CONCURRENCY = 8
LONGEST_CONNECT_S = 10.0
NO_KEY = "none"
PATH_DIGITS = 16

Inputs = Annotated[Whole, Field(ge=0, le=1000)]


class HostedOptions(Section):
    """The options of every adapter that asks a server.

    Attributes:
        base_url: Where the server is.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        fewest_inputs: Fewest input pictures of a task; 1 for a model that only edits.
        most_inputs: Most input pictures of a task; 0 for a model that takes none.
        revision: What tells one deployment of the model from another.
    """

    base_url: str
    api_key_env: str | None
    fewest_inputs: Inputs = 0
    most_inputs: Inputs
    revision: str | None = None

    def signed(self, size: Size) -> dict[str, Any]:
        """Those that reach a request, as JSON holds them; defaults are left out.

        Args:
            size: The config's, which decides whether the sizes of a model count.
        """
        return self.model_dump(mode="json", include=set(self._sent(size)), exclude_defaults=True)

    def _sent(self, size: Size) -> Iterable[str]:
        """The names of the options that reach a request."""
        del size
        return ("revision",)


Checked = TypeVar("Checked", bound=HostedOptions)


def hosted_options(config: SystemConfig, options: type[Checked]) -> Checked:
    """The parameters of a system that is asked over the network.

    Args:
        config: The config of the system.
        options: Model of the parameters.

    Returns:
        The parameters, checked.

    Raises:
        GenerationError: One is unknown, missing, or has a bad value; what may be a secret does not
            show.
    """
    place = f"system {config.name!r}"
    _check_variable(config.parameters.get("api_key_env"), place)
    read = options_of(config, options)
    try:
        Server(read.base_url).check()
    except EngineError as error:
        raise GenerationError(f"{place}: {error}") from None
    if read.fewest_inputs > read.most_inputs:
        raise GenerationError(
            f"{place}: fewest_inputs is {read.fewest_inputs} and most_inputs {read.most_inputs}: "
            "expected no more than that"
        )
    return read


def _check_variable(variable: object, place: str) -> None:
    if isinstance(variable, str) and not VARIABLE.fullmatch(variable):
        # It may be the key itself.
        raise GenerationError(
            f"{place}: api_key_env is no name of an environment variable: expected letters, digits "
            "and _, such as OPENAI_API_KEY"
        )


@dataclass(frozen=True, slots=True)
class Host:
    """Who is asked, as far as messages name it.

    Attributes:
        name: What the config calls the system.
        server: Where it is.
        model: What is asked for.
        api_key_env: Environment variable of the key, null for none.
    """

    name: str
    server: Server
    model: str
    api_key_env: str | None

    @classmethod
    def of(cls, config: SystemConfig, options: HostedOptions) -> Host:
        """Who a config speaks of."""
        return cls(config.name, Server(options.base_url), model_of(config), options.api_key_env)

    @property
    def path(self) -> str:
        """A digest of the path on the server, which may hold names or keys of a gateway."""
        path = urlsplit(self.server.base_url).path.rstrip("/")
        return hashlib.sha256(path.encode()).hexdigest()[:PATH_DIGITS]

    def key(self) -> ApiKey:
        """The key, from the environment.

        Raises:
            GenerationError: It is missing, cannot be one, or would travel unencrypted.
        """
        try:
            return self.server.key(self.api_key_env, os.environ)
        except EngineError as error:
            raise GenerationError(f"system {self.name!r}: {error}") from None


def without_key(drawn: Drawn, key: ApiKey) -> Drawn:
    """An outcome in which no text repeats the key, or is more than a file can hold."""
    return replace(
        drawn,
        code=_shown(drawn.code, key),
        text=_shown(drawn.text, key),
        revised_prompt=_shown(drawn.revised_prompt, key),
        model_reported=_shown(drawn.model_reported, key),
        details=json.loads(_whole(key.hidden_in(json.dumps(drawn.details, ensure_ascii=False)))),
    )


def one_line(text: str, key: ApiKey) -> str:
    """A message in one line, without the key."""
    return " ".join(key.hidden_in(text).split())


def connection_errors() -> tuple[type[Exception], ...]:
    """What a lost connection raises, by whichever HTTP library the clients stand on."""
    installed = (name for name in ("httpx", "httpx2") if find_spec(name) is not None)
    return tuple(import_module(name).RequestError for name in installed)


def _shown(text: str | None, key: ApiKey) -> str | None:
    return None if text is None else _whole(key.hidden_in(text))


def _whole(text: str) -> str:
    # Half of a surrogate pair is no text that a file could hold.
    return text.encode("utf-8", "replace").decode()
