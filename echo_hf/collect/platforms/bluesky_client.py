"""A signed-in connection to Bluesky that keeps its session, and gives answers as they came.

Signing in is allowed a few hundred times a day; the session is therefore kept in a private file of
the user's cache, and used until the platform no longer takes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from echo_hf.collect.fields import Fields
from echo_hf.collect.platforms.access import quiet
from echo_hf.collect.platforms.http_trouble import check_answer, json_object
from echo_hf.errors import PlatformError

if TYPE_CHECKING:
    import httpx
    from atproto import Client, Session, SessionEvent

TIMEOUT_S = 60.0
EXPIRED = frozenset({"ExpiredToken", "InvalidToken"})


class BlueskyClient:
    """A connection.

    Args:
        host: Where to sign in.
        handle: The account.
        keys: Its app password, by the environment variable that holds it.
    """

    def __init__(self, host: str, handle: str, keys: Mapping[str, SecretStr]) -> None:
        self._host, self._handle, self._keys = host, handle, keys
        self._file = session_file(host, handle)
        self._last: httpx.Response | None = None
        self._client = self._new()

    def sign_in(self) -> None:
        """Takes up the session that was kept, or begins one."""
        kept = read_private(self._file)
        try:
            if kept is None:
                raise ValueError("no session is kept")
            self._client.login(session_string=kept, fetch_bsky_profile=False)
            self._check_home()
        except ValueError:
            self._begin_session()

    def get(self, call: Callable[[Client], object]) -> httpx.Response:
        """Asks, with a new session where the old one has ended.

        Args:
            call: Makes the library ask.

        Returns:
            The answer: a success, or a 400, whose meaning depends on the question.
        """
        answer = self._heard(call)
        if answer is None or (answer.status_code in (400, 401) and error_of(answer) in EXPIRED):
            self._begin_session()
            answer = self._heard(call)
        if answer is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        if answer.status_code != 400:
            self.check(answer)
        return answer

    def check(self, answer: httpx.Response) -> None:
        """Raises what an answer means, if it is no success."""
        check_answer("bluesky", answer.status_code, answer.headers, body_of(answer), self._keys)

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.request.close()

    def _begin_session(self) -> None:
        self.close()
        self._client = self._new()
        password = next(iter(self._keys.values())).get_secret_value()
        answer = self._heard(
            lambda client: client.login(self._handle, password, fetch_bsky_profile=False)
        )
        if answer is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        if answer.status_code == 400:
            answer.status_code = 401  # an account that is none: nothing to do with a question
        self.check(answer)
        json_object("bluesky", body_of(answer), accessJwt=str, refreshJwt=str)
        self._check_home()

    def _heard(self, call: Callable[[Client], object]) -> httpx.Response | None:
        """The answer to a call; null where the session is so broken that none was made."""
        import httpx

        self._last = None
        try:
            call(self._client)
        # What the library makes of an answer is not needed: our own reader judges it.
        except Exception as error:
            # The last answer may be one to something else, such as a session that was prolonged.
            for lost in (error, error.__cause__):
                if isinstance(lost, httpx.TransportError):
                    said = quiet(f"{type(lost).__name__} {lost}")
                    raise ConnectionError(f"'bluesky' is out of reach: {said}") from None
        return self._last

    def _check_home(self) -> None:
        """The server of the account, which it names itself, gets the session's key."""
        home = self._client._base_url
        if not home.startswith("https://") and urlsplit(home).netloc != urlsplit(self._host).netloc:
            raise PlatformError(f"the account's server is {home!r}, expected an https address")

    def _new(self) -> Client:
        from atproto import Client, Request

        hooks = {"response": [self._listen]}
        client = Client(self._host, request=Request(event_hooks=hooks, timeout=TIMEOUT_S))
        client.on_session_change(self._keep)
        return client

    def _listen(self, response: httpx.Response) -> None:
        response.read()
        self._last = response

    def _keep(self, event: SessionEvent, session: Session) -> None:
        if event.value != "import":
            write_private(self._file, session.encode())


def error_of(answer: httpx.Response) -> str | None:
    """The name of what was wrong, as Bluesky gives it; null when it gives none."""
    try:
        return Fields(json_object("bluesky", body_of(answer))).text("error")
    except OSError:
        return None


def body_of(answer: httpx.Response) -> str:
    """The text of an answer."""
    content: bytes = answer.content
    return content.decode("utf-8", "replace")


def session_file(host: str, handle: str) -> Path:
    """Where the session of an account is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = hashlib.sha256(f"{host}\n{handle}".encode()).hexdigest()[:16]
    return Path(cache) / "echo-hf" / f"bluesky-{name}.session"


def read_private(path: Path) -> str | None:
    """A file that nobody else can read; null when it is none, or not there."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def write_private(path: Path, text: str) -> None:
    """Writes a file that nobody else can read; without a place for it, nothing is kept."""
    fresh = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600, exist_ok=False)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
