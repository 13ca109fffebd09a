"""List the models of a server."""

from __future__ import annotations

import json
import os
import time

import httpcore2

from echo_hf._infra.text import clean, one_line
from echo_hf.engines.base import KEY_VARIABLE
from echo_hf.engines.server import Server
from echo_hf.errors import EngineError

MAX_WAIT_SECONDS = 5.0
MAX_NAME_CHARACTERS = 200
MAX_RESPONSE_BYTES = 1 << 22
EXPECTED = "start it, or name another address, mostly one that ends in /v1"


def list_served_models(base_url: str) -> list[str]:
    """Return the names of a server's models, in its order.

    Raises:
        EngineError: Nothing answers there, or what answers lists no models.
    """
    server = Server(base_url)
    server.check()
    key = server.read_key(KEY_VARIABLE if os.environ.get(KEY_VARIABLE) else None, os.environ)
    headers: dict[bytes | str, bytes | str] = {}
    if key:
        headers["Authorization"] = f"Bearer {key.secret.get_secret_value()}"
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), MAX_WAIT_SECONDS)
    address, data = f"{base_url.rstrip('/')}/models", bytearray()
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    try:
        with httpcore2.stream(
            "GET", address, headers=headers, extensions={"timeout": timeouts}
        ) as response:
            for part in response.iter_stream():
                data += part
                if len(data) > MAX_RESPONSE_BYTES or time.monotonic() > deadline:
                    raise ValueError("its answer does not end")
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        names = [model["id"] for model in json.loads(data)["data"]]
        if not names or not all(isinstance(name, str) and name.isprintable() for name in names):
            raise ValueError("it names none")
        if (longest := max(map(len, names))) > MAX_NAME_CHARACTERS:
            raise ValueError(f"a name of {longest:,} characters")
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
        reason = one_line(error) or type(error).__name__
        raise EngineError(f"no server answers at {address!r} ({reason}): {EXPECTED}") from error
    except (httpcore2.ProtocolError, ValueError, TypeError, LookupError, RecursionError) as error:
        reason = clean(str(error), 100)
        raise EngineError(f"{address!r} lists no models ({reason}): {EXPECTED}") from error
    return list(dict.fromkeys(names))
