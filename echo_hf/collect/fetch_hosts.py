"""Be a polite guest: few requests at a host at once, and none while it asks to wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio

from echo_hf.collect.fetch_policy import FetchPolicy
from echo_hf.collect.fetch_trouble import FetchError
from echo_hf.reasons import Unfetched


@dataclass
class Host:
    """One host.

    Attributes:
        places: Bounds the requests at once.
        closed_until: The loop's time before which it wants no request.
    """

    places: anyio.CapacityLimiter
    closed_until: float = 0.0


@dataclass
class Hosts:
    """The hosts of a run.

    Attributes:
        policy: Says how many requests at once, and how long a wait is kept.
    """

    policy: FetchPolicy
    _hosts: dict[str, Host] = field(default_factory=dict)

    @asynccontextmanager
    async def visit(self, url: str) -> AsyncIterator[None]:
        """Waits for a place at an address's host, and closes the host when it asks for that.

        Args:
            url: A web address.

        Yields:
            When the request may be made.

        Raises:
            FetchError: The host wants to be left alone for longer than is waited.
        """
        host = self._host(url)
        async with host.places:
            await self._wait(host)
            try:
                yield
            except FetchError as error:
                if error.wait_s is not None:
                    until = anyio.current_time() + error.wait_s
                    host.closed_until = max(host.closed_until, until)
                raise

    async def _wait(self, host: Host) -> None:
        left = host.closed_until - anyio.current_time()
        if left > self.policy.longest_wait_s:
            raise FetchError(
                Unfetched.RATE_LIMITED,
                f"the host asks to wait {left:.0f} s, expected {self.policy.longest_wait_s:.0f} s",
            )
        await anyio.sleep(max(0.0, left))

    def _host(self, url: str) -> Host:
        name = urlsplit(url).netloc
        if name not in self._hosts:
            self._hosts[name] = Host(anyio.CapacityLimiter(self.policy.per_host))
        return self._hosts[name]
