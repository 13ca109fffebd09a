"""What goes wrong while a picture is fetched, in the words of the closed list."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2

from echo_hf.collect.checked_network import PrivateAddressError
from echo_hf.open_picture import BadPictureError
from echo_hf.reasons import BadPicture, Unfetched

LONGEST_DETAIL = 200
AS_A_PICTURE = {
    BadPicture.TOO_MANY_BYTES: Unfetched.TOO_LARGE,
    BadPicture.TOO_MANY_PIXELS: Unfetched.TOO_LARGE,
    BadPicture.TRUNCATED: Unfetched.UNDECODABLE,
    BadPicture.DAMAGED: Unfetched.UNDECODABLE,
}


class FetchError(Exception):
    """One attempt that gave no picture.

    Attributes:
        reason: Why.
        detail: What a person needs to see the cause.
        again: Whether the next attempt may go better.
        wait_s: Seconds that the server asks to wait before it; null when it does not say.
    """

    def __init__(
        self, reason: Unfetched, detail: str, *, again: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = " ".join(detail.split())[:LONGEST_DETAIL]
        self.again = again
        self.wait_s = wait_s


@contextmanager
def as_fetch_error() -> Iterator[None]:
    """Turns what the network and a decoder raise into a `FetchError`.

    Raises:
        FetchError: Something of that kind was raised inside.
    """
    try:
        yield
    except PrivateAddressError as error:
        raise FetchError(Unfetched.PRIVATE_ADDRESS, str(error)) from error
    except (TimeoutError, httpcore2.TimeoutException) as error:
        raise FetchError(Unfetched.TIMEOUT, _said(error), again=True) from error
    except httpcore2.NetworkError as error:
        again = not _is_lasting(error)
        raise FetchError(Unfetched.UNREACHABLE, _said(error), again=again) from error
    except httpcore2.ProtocolError as error:
        raise FetchError(Unfetched.UNREACHABLE, _said(error), again=True) from error
    except BadPictureError as error:
        reason = AS_A_PICTURE.get(error.reason, Unfetched.WRONG_TYPE)
        # A file that was cut may have been cut on its way.
        again = error.reason is BadPicture.TRUNCATED
        detail = f"{error.reason}: {error.detail}"
        raise FetchError(reason, detail, again=again) from error


def _is_lasting(error: BaseException | None) -> bool:
    """Whether there is no such name, or the certificate is not the name's."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            return error.errno == socket.EAI_NONAME
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
