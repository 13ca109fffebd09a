"""The answer that a library got, as it came, whatever the library makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from echo_hf.collect.platforms.access import quiet

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
            OSError: None came, or not the whole of it.
        """
        self._last = None
        try:
            call()
        except Exception as error:
            if self._last is None:
                if isinstance(error, OSError):
                    raise ConnectionError(f"out of reach: {_first_cause(error)}") from None
                raise
        if self._last is None:
            raise ConnectionError("nobody was asked")
        return self._last

    def _heard(self, response: requests.Response, *_: Any, **__: Any) -> None:
        self._last = response


def _first_cause(error: BaseException) -> str:
    """What was wrong in the first place; what is raised of it repeats the whole address."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return quiet(f"{type(error).__name__} {error}")
