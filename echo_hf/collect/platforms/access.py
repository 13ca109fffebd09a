"""What all platforms need to be asked: packages, keys from the environment, and quiet messages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec

from pydantic import SecretStr

from echo_hf.errors import MissingExtraError, PlatformError

EXTRA = "sources"
HIDDEN = "[key]"
LONGEST = 200


def check_package(platform: str, package: str) -> None:
    """Says what to install where a platform's library is missing; imports none.

    Args:
        platform: Name of the platform.
        package: Name of the library, as it is imported.

    Raises:
        MissingExtraError: It is not installed.
    """
    if find_spec(package) is None:
        raise MissingExtraError(f"platform {platform!r}", EXTRA)


def key_of(platform: str, variable: str, what: str) -> SecretStr:
    """A key, which only the environment holds.

    Args:
        platform: Name of the platform.
        variable: Name of the environment variable.
        what: What it should hold.

    Returns:
        The key, which does not show when printed.

    Raises:
        PlatformError: The variable is not set, or empty.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise PlatformError(
            f"environment variable {variable!r} is not set, and {platform!r} wants {what}: set it, "
            "and see docs/platforms.md for where to get one"
        )
    if not value.isascii() or not value.isprintable():
        raise PlatformError(f"environment variable {variable!r}: expected plain letters and signs")
    return SecretStr(value)


def quiet(text: str, secrets: Iterable[SecretStr] = ()) -> str:
    r"""What somebody else's code said, fit for a message: one line, short, without keys.

    Args:
        text: What it said.
        secrets: Keys that it may repeat.

    Returns:
        At most 200 characters.

    Example:
        >>> quiet("401\n  no such key: s3cr3t", [SecretStr("s3cr3t")])
        '401 no such key: [key]'
    """
    for secret in secrets:
        text = text.replace(secret.get_secret_value(), HIDDEN)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
