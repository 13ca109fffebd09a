"""Who works in an app: pseudonyms, and passwords where strangers could reach the page."""

from __future__ import annotations

import ipaddress
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from echo_hf.errors import RunError

PASSWORDS = "ECHO_HF_PEOPLE"
SIGNED_IN = "auth"
NAME = re.compile(r"[\w-]{1,40}")
LEAST_LETTERS = 8


@dataclass(frozen=True)
class People:
    """Who may work in an app.

    Attributes:
        names: Their pseudonyms; empty where everybody may choose one.
        passwords: Passwords by pseudonym; empty where nobody has to sign in.
    """

    names: tuple[str, ...] = ()
    passwords: Mapping[str, str] | None = None

    def admitted(self, name: str) -> str:
        """The pseudonym of somebody who may work.

        Args:
            name: As a person typed it.

        Returns:
            It, in the form in which it is written down.

        Raises:
            RunError: It is no pseudonym, or none of those who may.
        """
        found = pseudonym(name)
        if self.names and found not in self.names:
            raise RunError(f"{found!r} is not on the list: choose one of {', '.join(self.names)}")
        return found


def pseudonym(name: str) -> str:
    """The form in which a pseudonym is written down, so that a capital makes nobody a second one.

    Args:
        name: As a person typed it.

    Returns:
        It in small letters, without spaces around it.

    Raises:
        RunError: It may be an address, or is no word.

    Example:
        >>> pseudonym(" Ada ")
        'ada'
    """
    found = unicodedata.normalize("NFKC", name).strip().lower()
    if not NAME.fullmatch(found):
        raise RunError(
            f"{name[:60]!r} is no pseudonym: expected 1 to 40 letters, digits, - or _, and not the "
            "name of a person"
        )
    return found


def people_of(given: Iterable[str]) -> People:
    """Reads who may work in an app from the command line.

    Args:
        given: Pseudonyms; or `auth` alone, for those whose passwords the environment has; or
            nothing, where everybody may choose a pseudonym.

    Returns:
        Who may.

    Raises:
        RunError: One is no pseudonym, or the passwords are missing or cannot be read.
    """
    names = tuple(given)
    if SIGNED_IN not in names:
        return People(tuple(dict.fromkeys(map(pseudonym, names))))
    if len(names) > 1:
        raise RunError(f"--people {SIGNED_IN} stands alone: the names are in {PASSWORDS}")
    passwords = _passwords(os.environ.get(PASSWORDS, ""))
    return People(tuple(passwords), passwords)


def check_reachable(host: str, people: People, *, anyone: bool) -> None:
    """Refuses to let strangers in by accident.

    Args:
        host: Address that the app listens on.
        people: Who may work.
        anyone: Whether it was said that whoever reaches the page may work.

    Raises:
        RunError: Others than this machine's users could reach the page, and need no password.
    """
    if not is_loopback(host) and not people.passwords and not anyone:
        raise RunError(
            f"{host!r} can be reached from other machines: give people passwords ({PASSWORDS}="
            f"'ada:PASSWORD ben:PASSWORD' and --people {SIGNED_IN}), or say --anyone"
        )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
        (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _passwords(text: str) -> dict[str, str]:
    pairs = [one.partition(":") for one in text.split()]
    found = {pseudonym(name): password for name, _, password in pairs}
    if not found or len(found) < len(pairs):
        raise RunError(
            f"{PASSWORDS} names {len(pairs)} people, {len(found)} of them distinct: expected "
            "'ada:PASSWORD ben:PASSWORD' in the environment"
        )
    short = next((name for name, word in found.items() if len(word) < LEAST_LETTERS), None)
    if short is not None:  # the password itself is never shown
        raise RunError(
            f"{PASSWORDS}: the password of {short!r} is short: expected at least {LEAST_LETTERS} "
            "characters"
        )
    return found
