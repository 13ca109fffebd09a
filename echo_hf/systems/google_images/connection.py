"""The way to Google's server and back: one request, without the client's own retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from echo_hf.engines.openai.reply import Reply
from echo_hf.engines.openai.server import ApiKey
from echo_hf.systems.base import Passing
from echo_hf.systems.hosted import NO_KEY, Host, connection_errors, one_line
from echo_hf.systems.limited_client import http_library, limited

if TYPE_CHECKING:
    from google.genai import Client

LONGEST_ERROR = 200


class UnreadableError(Exception):
    """An answer is not what the client understands, such as a web page."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Asks Google's server, once for each call.

    Attributes:
        client: The client.
        key: Its key, which stays out of every message.
        host: Who is asked.
        timeout_s: Longest wait for a whole answer, in seconds.
    """

    client: Client
    key: ApiKey
    host: Host
    timeout_s: float

    def ask(self, send: Callable[..., Any], **arguments: Any) -> Any:
        """Sends a request.

        Args:
            send: One of the client's methods.
            **arguments: What it is called with.

        Returns:
            The client's model of the answer; a `Reply` where the server answered with an error.

        Raises:
            Passing: No answer came in time, or the connection failed or was cut.
            UnreadableError: The answer is not what the client understands.
            TooMuchError: The answer is larger than any picture that is kept.
        """
        from google.genai.errors import APIError

        try:
            return send(**arguments)
        except APIError as error:
            response = error.response
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, headers, response.text)
        except TimeoutError as error:
            raise self._lost(error) from None
        except connection_errors() as error:
            raise self._lost(error) from None
        except ValueError as error:  # of JSON, or of what should stand in it
            said = one_line(str(error), self.key)[:LONGEST_ERROR]
            raise UnreadableError(f"the answer cannot be read: {said}") from None

    def _lost(self, error: Exception) -> Passing:
        if "timeout" in type(error).__name__.lower():
            return Passing(f"no answer within {self.timeout_s:g} s", "timeout")
        said = one_line(str(error), self.key) or type(error).__name__
        place = self.host.server.base_url
        return Passing(f"the connection to {place!r} failed: {said}", "connection")


@contextmanager
def connected(host: Host, timeout_s: float, api_version: str) -> Iterator[Connection]:
    """Opens a connection; nothing is sent yet.

    Args:
        host: Who is to be asked.
        timeout_s: Longest wait for a whole answer, in seconds.
        api_version: Of the API.

    Yields:
        The connection.

    Raises:
        GenerationError: There is no usable key.
    """
    from google.genai import Client
    from google.genai.types import HttpOptions

    key = host.key()
    # The client wants a key even for a gateway without.
    secret = key.secret.get_secret_value() or NO_KEY
    # A redirect would take prompts and pictures to a server that nobody named.
    with limited(http_library().Client, timeout_s)(follow_redirects=False) as http_client:
        options = HttpOptions(
            base_url=host.server.base_url,
            api_version=api_version,
            timeout=max(1, round(timeout_s * 1000)),
            httpx_client=http_client,
        )
        client = Client(api_key=secret, vertexai=False, http_options=options)
        try:
            yield Connection(client, key, host, timeout_s)
        finally:
            client.close()
