"""The models that a server says it has."""

from __future__ import annotations

import json
import os
import time

import httpcore2

from echo_hf._infra.text import one_line, plain
from echo_hf.engines.base import KEY
from echo_hf.engines.server import Server
from echo_hf.errors import EngineError

LONGEST_WAIT_S = 5.0
MOST_BYTES = 1 << 22
EXPECTED = "start it, or name another address, mostly one that ends in /v1"


def served_models(base_url: str) -> list[str]:
    """The names of a server's models, in its order.

    Raises:
        EngineError: Nothing answers there, or what answers lists no models.
    """
    server = Server(base_url)
    server.check()
    key = server.key(KEY if os.environ.get(KEY) else None, os.environ)
    headers: dict[bytes | str, bytes | str] = {}
    if key:
        headers["Authorization"] = f"Bearer {key.secret.get_secret_value()}"
    seconds = dict.fromkeys(("connect", "read", "write", "pool"), LONGEST_WAIT_S)
    address, data = f"{base_url.rstrip('/')}/models", bytearray()
    until = time.monotonic() + LONGEST_WAIT_S
    try:
        with httpcore2.stream(
            "GET", address, headers=headers, extensions={"timeout": seconds}
        ) as response:
            for part in response.iter_stream():
                data += part
                if len(data) > MOST_BYTES or time.monotonic() > until:
                    raise ValueError("its answer does not end")
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        names = [one["id"] for one in json.loads(data)["data"]]
        if not names or not all(isinstance(name, str) and name.isprintable() for name in names):
            raise ValueError("it names none")
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
        why = one_line(error) or type(error).__name__
        raise EngineError(f"no server answers at {address!r} ({why}): {EXPECTED}") from error
    except (httpcore2.ProtocolError, ValueError, TypeError, LookupError, RecursionError) as error:
        why = plain(str(error), 100)
        raise EngineError(f"{address!r} lists no models ({why}): {EXPECTED}") from error
    return list(dict.fromkeys(names))
