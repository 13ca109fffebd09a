"""The answer that a library got, as it came, whatever the library makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import requests


class LastResponse:
    """Listens to a session of requests.

    Args:
        session: The session that a library asks through.
    """

    def __init__(self, session: requests.Session) -> None:
        self._last: requests.Response | None = None
        session.hooks["response"].append(self._heard)

    def of(self, call: Callable[[], object]) -> requests.Response:
        """The answer to a call of the library.

        Args:
            call: Makes the library ask.

        Returns:
            The last answer that came during it. Its library may have stumbled over what strangers
            wrote into it: that is for our own readers to judge.

        Raises:
            OSError: None came.
        """
        self._last = None
        try:
            call()
        except Exception:
            if self._last is None:
                raise
        if self._last is None:
            raise ConnectionError("nobody was asked")
        return self._last

    def _heard(self, response: requests.Response, *_: Any, **__: Any) -> None:
        self._last = response
