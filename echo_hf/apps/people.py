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
class AppUsers:
    """Who may work in an app.

    Attributes:
        names: Their pseudonyms; empty where everybody may choose one.
        passwords: Passwords by pseudonym; empty where nobody has to sign in.
    """

    names: tuple[str, ...] = ()
    passwords: Mapping[str, str] | None = None

    def admitted(self, name: str) -> str:
        found = pseudonym(name)
        if self.names and found not in self.names:
            raise RunError(f"{found!r} is not on the list: choose one of {', '.join(self.names)}")
        return found


def pseudonym(name: str) -> str:
    """The written form of a pseudonym: a capital makes nobody a second one."""
    found = unicodedata.normalize("NFKC", name).strip().lower()
    if not NAME.fullmatch(found):
        raise RunError(
            f"{name[:60]!r} is not a pseudonym: expected 1 to 40 letters, digits, - or _, and "
            "not the "
            "name of a person"
        )
    return found


def people_of(people: Iterable[str]) -> AppUsers:
    """Reads who may work in an app from the command line."""
    names = tuple(people)
    if SIGNED_IN not in names:
        return AppUsers(tuple(dict.fromkeys(map(pseudonym, names))))
    if len(names) > 1:
        raise RunError(f"--people {SIGNED_IN} stands alone: the names are in {PASSWORDS}")
    passwords = _passwords(os.environ.get(PASSWORDS, ""))
    return AppUsers(tuple(passwords), passwords)


def check_reachable(host: str, people: AppUsers, *, anyone: bool) -> None:
    """Refuses to let strangers in by accident."""
    if not is_loopback(host) and not people.passwords and not anyone:
        raise RunError(
            f"{host!r} can be reached from other machines: give people passwords ({PASSWORDS}="
            f"'ada:PASSWORD ben:PASSWORD' and --people {SIGNED_IN}), or say --anyone"
        )


def is_loopback(host: str) -> bool:
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
