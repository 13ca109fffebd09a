"""Where a server is, which key it wants, and what a config says about it."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from echo_hf.config.checks import first_error, secrets_in
from echo_hf.errors import EngineError

ENDPOINTS = ("/chat/completions", "/images/edits", "/images/generations", "/moderations")
PRIVATE_ENDINGS = (".local", ".localhost", ".localdomain", ".internal", ".lan", ".home.arpa")
PRIVATE = "private"
HIDDEN = "(key)"


@dataclass(frozen=True, slots=True)
class Server:
    base_url: str

    @property
    def host(self) -> str:
        """Its name or number, without port."""
        return self._parts.hostname or ""

    @property
    def is_private(self) -> bool:
        """Whether it is this machine, or in a network of its own."""
        return is_private(self.host)

    @property
    def label(self) -> str:
        """What a signature calls it: moving a private server to another port changes no answer."""
        return PRIVATE if self.is_private else self._parts.netloc.lower()

    def check(self) -> None:
        """Checks that the address can be asked and holds nothing else."""
        if any(mark in self.base_url for mark in "?#@"):
            raise EngineError(
                "base_url has more than scheme, host and path: expected an address without name, "
                "password, ? and #, and the key in an environment variable"
            )
        if not self._is_usable():
            raise EngineError(
                f"base_url is {self.base_url!r}: expected an address such as "
                "'http://127.0.0.1:8000/v1'"
            )
        added = next((end for end in ENDPOINTS if self.base_url.rstrip("/").endswith(end)), None)
        if added is not None:
            raise EngineError(
                f"base_url is {self.base_url!r}: leave out {added!r}, which is added to it"
            )

    def key(self, variable: str | None, environment: Mapping[str, str]) -> ApiKey:
        value = environment.get(variable, "").strip() if variable is not None else ""
        if variable is not None and not value and not self.is_private:
            raise EngineError(
                f"environment variable {variable!r} is not set, and {self.host!r} wants a key: set "
                "it, or give api_key_env the name of another one, or null for a server without keys"
            )
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise EngineError(
                f"environment variable {variable!r} holds no key: expected printable ASCII "
                "characters without spaces"
            )
        if value and self._parts.scheme == "http" and not self.is_private:
            raise EngineError(
                f"base_url is {self.base_url!r}, which would send the key unencrypted: expected "
                "https, or `api_key_env: null` for a server without keys"
            )
        return ApiKey(SecretStr(value))

    def _is_usable(self) -> bool:
        try:
            parts = self._parts
            return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # such as for a port that is no number
            return False

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.base_url)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, and how to keep it out of messages."""

    secret: SecretStr

    def __bool__(self) -> bool:
        return bool(self.secret.get_secret_value())

    def hidden_in(self, text: str) -> str:
        key = self.secret.get_secret_value()
        return text.replace(key, HIDDEN) if key else text


def is_private(host: str) -> bool:
    """Whether a host is this machine or in a network of its own, as far as its name says."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.lower().endswith(PRIVATE_ENDINGS)


OPENAI = "https://api.openai.com/v1"
MOST_CONCURRENCY = 1000  # connections that the client's pool holds
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1)]


class ServerOptions(BaseModel):
    """The options of every engine that asks a server; a key that is not here is an error.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
        base_url: Where the server is, mostly ending in `/v1`.
        api_key_env: Environment variable that holds the key; null for a server without keys.
        concurrency: Most requests under way at a time.
        requests_per_minute: Most requests in the long run, null for no limit.
        tokens_per_minute: Most tokens in the long run, prompts and answers, null for no limit.
        timeout_s: Longest wait for one answer, in seconds.
        max_attempts: How often a request is sent before its failure is reported.
        backoff_s: Longest wait before the second attempt; it doubles with each further one.
        extra_body: Further keys of the request, as the server documents them.
        max_pixels: Most pixels of an image; null sends it as large as the server takes it.
        usd_per_million_prompt_tokens: Price that replaces the price list's.
        usd_per_million_completion_tokens: Price that replaces the price list's.
        usd_per_million_cached_tokens: Price of prompt tokens from the server's cache; null where
            they cost as much as others.
        revision: What tells one deployment of the model from another; part of the signature.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ours: ClassVar[frozenset[str]] = frozenset({"model"})

    model: Name
    base_url: str = OPENAI
    api_key_env: str | None = "OPENAI_API_KEY"
    concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 32
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    timeout_s: Positive = 300.0
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    backoff_s: Annotated[float, Field(ge=0, le=60)] = 1.0
    extra_body: Mapping[str, Any] = {}
    max_pixels: Pixels | None = None
    usd_per_million_prompt_tokens: Price | None = None
    usd_per_million_completion_tokens: Price | None = None
    usd_per_million_cached_tokens: Price | None = None
    revision: str | None = None

    @property
    def server(self) -> Server:
        return Server(self.base_url)

    @field_validator("extra_body")
    @classmethod
    def _not_ours(cls, body: Mapping[str, Any]) -> Mapping[str, Any]:
        taken = sorted(cls.ours & set(body))
        if taken:
            raise ValueError(f"expected no {', '.join(taken)}, which the engine sets itself")
        try:
            json.dumps(body, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected what JSON can hold: {error}") from None
        return body

    @model_validator(mode="after")
    def _whole_price(self) -> Self:
        given = (self.usd_per_million_prompt_tokens, self.usd_per_million_completion_tokens)
        cached = self.usd_per_million_cached_tokens
        if (None in given and any(price is not None for price in (*given, cached))) or (
            self.usd_per_million_prompt_tokens is None and cached is not None
        ):
            raise ValueError(
                "expected usd_per_million_prompt_tokens and usd_per_million_completion_tokens "
                "together, or neither"
            )
        return self


Checked = TypeVar("Checked", bound=ServerOptions)


def checked_as(kind: type[Checked], raw: Mapping[str, Any], place: str) -> Checked:
    _without_secrets(raw, place)
    try:
        options = kind.model_validate(dict(raw))
    except ValidationError as error:
        raise EngineError(first_error(error, place, kind)) from None
    options.server.check()
    return options


def _without_secrets(given: Mapping[str, Any], place: str) -> None:
    secret = next(secrets_in(given), None)
    if secret is not None:
        raise EngineError(
            f"{place} has {secret!r}: put the secret into an environment variable and name that in "
            "api_key_env"
        )
    try:
        check_variable(given.get("api_key_env"))
    except EngineError as error:
        raise EngineError(f"{place}: {error}") from None


def check_variable(name: object) -> None:
    """Refuses what names no environment variable, unseen: it may be the key itself."""
    if isinstance(name, str) and not VARIABLE.fullmatch(name):
        raise EngineError(
            "api_key_env is not a name of an environment variable: expected letters, digits and _, "
            "such as OPENAI_API_KEY"
        )
