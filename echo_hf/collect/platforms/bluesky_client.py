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
from urllib.parse import urlsplit

import httpx
from atproto import Client, Request, Session, SessionEvent
from pydantic import SecretStr

from echo_hf.collect.fields import Fields
from echo_hf.collect.platforms.access import quiet
from echo_hf.collect.platforms.http_trouble import check_answer, json_object
from echo_hf.errors import PlatformError

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

    def get(self, name: str, call: Callable[[Client], object]) -> tuple[int, str]:
        """Asks, with a new session where the old one has ended.

        Args:
            name: Of what is asked, for messages.
            call: Makes the library ask.

        Returns:
            Status and body of the answer, which is a success, or a 400 that says what was wrong.
        """
        status, body = self._heard(call)
        if status in (400, 401) and error_of(body) in EXPIRED:
            self._begin_session()
            status, body = self._heard(call)
        if status != 400:
            self._check(name)
        return status, body

    def refuse(self, name: str) -> None:
        """Raises what the last answer means, if it was no success."""
        self._check(name)

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.request.close()

    def _begin_session(self) -> None:
        self.close()
        self._client = self._new()
        password = next(iter(self._keys.values())).get_secret_value()
        status, _ = self._heard(
            lambda client: client.login(self._handle, password, fetch_bsky_profile=False)
        )
        if status == 400:
            status = 401  # an unknown account, or a second factor: nothing to do with a question
        self._check("createSession", status)
        self._check_home()

    def _heard(self, call: Callable[[Client], object]) -> tuple[int, str]:
        self._last = None
        try:
            call(self._client)
        # What the library makes of an answer is not needed: our own reader judges it.
        except Exception as error:
            if self._last is None:
                said = quiet(f"{type(error).__name__} {error}", self._keys.values())
                raise ConnectionError(f"Bluesky is out of reach: {said}") from None
        if self._last is None:
            raise ConnectionError("Bluesky was not asked")
        return self._last.status_code, self._last.text

    def _check(self, name: str, status: int | None = None) -> None:
        if self._last is not None:
            told = self._last.status_code if status is None else status
            body = f'{{"title": "{name}"}}' if not self._last.text else self._last.text
            check_answer("bluesky", told, self._last.headers, body, self._keys)

    def _check_home(self) -> None:
        """The server of the account, which it names itself, gets the session's key."""
        home = self._client._base_url
        if not home.startswith("https://") and urlsplit(home).netloc != urlsplit(self._host).netloc:
            raise PlatformError(f"the account's server is {home!r}, expected an https address")

    def _new(self) -> Client:
        hooks = {"response": [self._listen]}
        client = Client(self._host, request=Request(event_hooks=hooks, timeout=TIMEOUT_S))
        client.on_session_change(self._keep)
        return client

    def _listen(self, response: httpx.Response) -> None:
        response.read()
        self._last = response

    def _keep(self, event: SessionEvent, session: Session) -> None:
        if event is not SessionEvent.IMPORT:
            write_private(self._file, session.encode())


def error_of(body: str) -> str | None:
    """The name of what was wrong, as Bluesky gives it; null when it gives none.

    Example:
        >>> error_of('{"error": "ExpiredToken", "message": "Token has expired"}')
        'ExpiredToken'
    """
    try:
        return Fields(json_object("bluesky", body)).text("error")
    except OSError:
        return None


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
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        fresh.replace(path)
