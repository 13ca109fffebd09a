"""A picture as it came from a server: nothing is kept that cannot be opened."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace

from echo_hf.errors import PictureError
from echo_hf.pictures import check_picture
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn

DATA_URL = re.compile(r"data:[a-z0-9.+/-]*(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
LONGEST_START = 100


def decoded(encoded: str) -> bytes:
    r"""The bytes of a picture that came as text.

    Args:
        encoded: Base64, or a data URL of it.

    Returns:
        The bytes, whatever they are.

    Raises:
        PictureError: It is neither; what stands at another address is never fetched.

    Example:
        >>> decoded("data:image/png;base64,iVBORw==")
        b'\x89PNG'
    """
    if ADDRESS.match(encoded):
        raise PictureError(
            "the answer names an address in place of a picture, and addresses are not followed: "
            "ask the server for base64, mostly by `extra: {response_format: b64_json}`"
        )
    start = DATA_URL.match(encoded[:LONGEST_START])
    try:
        return base64.b64decode(encoded[start.end() if start else 0 :], validate=True)
    except (binascii.Error, ValueError):
        raise PictureError("the answer's picture is no base64") from None


def with_picture(drawn: Drawn, data: bytes) -> Drawn:
    """An outcome with its picture.

    Args:
        drawn: Everything else that came.
        data: The bytes that came.

    Returns:
        `ok` with these very bytes where they are a picture within the limits of
        `echo_hf.pictures`; else a failure that says what is wrong with them.
    """
    try:
        check_picture(data)
    except PictureError as error:
        return unusable(drawn, str(error))
    return replace(drawn, outcome=Outcome.OK, picture=data, stage=None)


def unusable(drawn: Drawn, why: str) -> Drawn:
    """An outcome whose answer holds nothing that can be kept."""
    return replace(drawn, outcome=Outcome.FAILED, stage=OutcomeStage.ANSWER, text=why)
