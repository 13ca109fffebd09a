"""Where a server is, whether that is inside one's own network, and the key that it wants."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from echo_hf.errors import EngineError

ENDPOINTS = ("/chat/completions", "/images/edits", "/images/generations", "/moderations")
PRIVATE_ENDINGS = (".local", ".localhost", ".localdomain", ".internal", ".lan", ".home.arpa")
PRIVATE = "private"
HIDDEN = "(key)"


@dataclass(frozen=True, slots=True)
class Server:
    """A server by its address.

    Attributes:
        base_url: The address that one of `ENDPOINTS` is added to.
    """

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
        """Checks that the address can be asked and holds nothing else.

        Raises:
            EngineError: It is no address, or has parts that may hold a secret: those do not show.
        """
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
        """The key for this server.

        Args:
            variable: Environment variable that holds it; null where no key is wanted.
            environment: The environment.

        Returns:
            The key, empty where none is needed.

        Raises:
            EngineError: A public server's key is missing, cannot be a key, or would travel
                unencrypted.
        """
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
    """A key, and how to keep it out of messages.

    Attributes:
        secret: The key, empty when there is none; it does not show when printed.
    """

    secret: SecretStr

    def __bool__(self) -> bool:
        return bool(self.secret.get_secret_value())

    def hidden_in(self, text: str) -> str:
        """The text with something else in the key's places."""
        key = self.secret.get_secret_value()
        return text.replace(key, HIDDEN) if key else text


def is_private(host: str) -> bool:
    """Whether a host is this machine or in a network of its own, as far as its name says.

    Args:
        host: A name or number.

    Returns:
        True for loopback and private addresses, and for names that no public server has.

    Example:
        >>> [is_private(host) for host in ("127.0.0.1", "gpu-node", "10.1.2.3", "api.openai.com")]
        [True, True, True, False]
    """
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.lower().endswith(PRIVATE_ENDINGS)
