"""The way to a server and back: one request, its whole answer, limits on its time and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from echo_hf.engines.openai.reply import OK, Reply
from echo_hf.engines.openai.server import ApiKey
from echo_hf.systems.base import Passing
from echo_hf.systems.hosted import (
    LONGEST_CONNECT_S,
    NO_KEY,
    Host,
    connection_errors,
    one_line,
)
from echo_hf.systems.limited_client import TooMuchError, limited

if TYPE_CHECKING:
    from openai import OpenAI

Send = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """Asks one server, once for each call.

    Attributes:
        client: The client.
        key: Its key, which stays out of every message.
        host: Who is asked.
        timeout_s: Longest wait for a whole answer, in seconds.
    """

    client: OpenAI
    key: ApiKey
    host: Host
    timeout_s: float

    def ask(self, send: Send, arguments: Mapping[str, Any]) -> Reply:
        """Sends a request.

        Args:
            send: One of the client's methods with a streamed response.
            arguments: What it is called with.

        Returns:
            What came back, whatever its status.

        Raises:
            Passing: No answer came in time, or the connection failed or was cut.
            TooMuchError: The answer is larger than any picture that is kept.
        """
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        try:
            with send(**arguments, extra_headers=self._headers()) as response:
                return Reply(OK, response.headers, response.read().decode("utf-8", "replace"))
        except APIStatusError as error:
            response = error.response
            return Reply(response.status_code, response.headers, response.text)
        except (APITimeoutError, TimeoutError):
            raise self._late() from None
        except APIConnectionError as error:
            if isinstance(error.__cause__, TooMuchError):
                raise error.__cause__ from None
            raise self._lost(error.__cause__ or error) from None
        except connection_errors() as error:
            raise self._lost(error) from None

    def _headers(self) -> dict[str, Any] | None:
        from openai import Omit

        return None if self.key else {"Authorization": Omit()}

    def _late(self) -> Passing:
        return Passing(f"no answer within {self.timeout_s:g} s", "timeout")

    def _lost(self, cause: BaseException) -> Passing:
        if "timeout" in type(cause).__name__.lower():
            return self._late()
        said = one_line(str(cause), self.key) or type(cause).__name__
        place = self.host.server.base_url
        return Passing(f"the connection to {place!r} failed: {said}", "connection")


@contextmanager
def connected(host: Host, timeout_s: float) -> Iterator[Connection]:
    """Opens a connection; nothing is sent yet.

    Args:
        host: Who is to be asked.
        timeout_s: Longest wait for a whole answer, in seconds.

    Yields:
        The connection.

    Raises:
        GenerationError: There is no usable key.
    """
    from openai import DefaultHttpxClient, OpenAI, Timeout

    key = host.key()
    client = OpenAI(
        # The client wants one even where the header is left out.
        api_key=key.secret.get_secret_value() or NO_KEY,
        base_url=host.server.base_url,
        max_retries=0,
        timeout=Timeout(timeout_s, connect=min(timeout_s, LONGEST_CONNECT_S)),
        # A redirect would take prompts and pictures to a server that nobody named.
        http_client=limited(DefaultHttpxClient, timeout_s)(follow_redirects=False),
    )
    with client:
        yield Connection(client, key, host, timeout_s)
