"""Find and mask personal data in a text: addresses, names of accounts, numbers and keys."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from stdnum import iban, luhn

from echo_hf.config_check import KEY_FORM
from echo_hf.context.answers import LONGEST_PROMPT
from echo_hf.curate.accounts import accounts, nobody
from echo_hf.curate.phones import phones
from echo_hf.curate.readable import readable

UNSEARCHED = "unsearched"
KINDS = ("e-mail", "phone", "handle", "card", "iban", "ip", "key", UNSEARCHED)
# Of a longer text the rest is not searched, and counts as personal data itself. What begins before
# the edge and is longer than the rest has no end in what is searched.
MOST_SEARCHED = LONGEST_PROMPT
EDGE = MOST_SEARCHED - 400
FINE_SEARCHES = 4
# Cards as their issuers number them, which few seeds are that have the right last digit by chance.
CARD = re.compile(r"(?<![\w.,=-])\d(?:[ ._/\n\u2010-]?\d){12,18}(?![\w-]|[.,]\d)", re.ASCII)
ISSUED = re.compile(
    r"4\d{15}(?:\d{3})?|(?:5[1-5]|2[2-7]|35)\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}|62\d{14,17}"
)
NO_DATA = re.compile(r"(?:seed|version|\bv\.?)\W{0,3}$", re.IGNORECASE)
IBAN = re.compile(
    r"(?<![^\W_])[a-z]{2}\d\d(?:[ .\u2010-]?[a-z0-9]){11,30}", re.ASCII | re.IGNORECASE
)
END = re.compile(r"(?<=[^\W_])(?![^\W_])", re.ASCII)
IP = re.compile(
    r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)"
    # Of IPv6 what is in use; "cat::2 dog::1" weighs the parts of a prompt.
    r"|(?<![\w:.])(?:[23][0-9a-f]{3}|fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}):[0-9a-f:]{2,}(?![\w:])",
    re.ASCII | re.IGNORECASE,
)
# What tells a secret without the form of a key: a block, a web hook, a header.
LETTERS = re.compile(r"(?:hf_|gh[oprsu]_|glpat-|npm_|[rs]k_(?:live|test)_)[A-Za-z]{20,}")
SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----END))*(?:-----END [A-Z ]*-----)?"
    r"|(?<![\w.])hooks\.slack\.com/services/[\w/]+"
    r"|(?<=\bBearer )(?=\S*\d)[\w.~+/-]{20,}=*",
    re.ASCII,
)
BLANK = re.compile(r"\s")
Found = tuple[int, int, str]


class Piece(NamedTuple):
    """A character of a text, or a part of it that is masked.

    Attributes:
        shown: What is read there.
        start: Where it begins in the text.
        end: Where it ends there (exclusive).
        kind: What is masked; null for a character.
    """

    shown: str
    start: int
    end: int
    kind: str | None = None


def personal_data(
    text: str, products: Collection[str] = (), is_author: Callable[[str], bool] = nobody
) -> list[Found]:
    """Finds personal data, also in full-width letters or with invisible characters in between.

    The text is searched again with masks in place of what was found, until there is nothing more:
    a masked text holds no personal data.

    Args:
        text: Any text; what of it is not searched, after 12,000 characters, is one place of the
            kind `unsearched`.
        products: Names that are no person's, as `echo_hf.curate.accounts.bare` gives them.
        is_author: Whether `echo_hf.curate.accounts.names_of` the authors has this, in small
            letters.

    Returns:
        Start, end (exclusive) and kind (one of `KINDS`) of each place, in order; none overlap.

    Example:
        >>> personal_data("@mira_draws: noor@example.org, not 1024x1536")
        [(0, 11, 'handle'), (13, 29, 'e-mail')]
    """
    searched = readable(text[:MOST_SEARCHED])
    pieces = [Piece(shown, place, place + 1) for place, shown in enumerate(searched)]
    for nth in count():
        shown = "".join(piece.shown for piece in pieces)
        found = _found(shown, products, is_author)
        if not found:
            break
        pieces = list(_with_masks(pieces, found if nth < FINE_SEARCHES else _words(found, shown)))
    places = [(piece.start, piece.end, piece.kind) for piece in pieces if piece.kind]
    if len(text) <= MOST_SEARCHED:
        return places
    places = [place for place in places if place[0] < EDGE]
    return [*places, (max([EDGE, *(end for _, end, _ in places)]), len(text), UNSEARCHED)]


def masked(text: str, found: Iterable[Found]) -> str:
    """The text with a mask in place of each thing found.

    Args:
        text: The text.
        found: What `personal_data` found in it.

    Returns:
        The text; all else in it is as it was.

    Example:
        >>> masked("ask @mira_draws", [(4, 15, "handle")])
        'ask [handle]'
    """
    return _replaced(text, [(start, end, _mask(kind)) for start, end, kind in found])


def _mask(kind: str) -> str:
    return f"[{kind}]"


def _replaced(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    pieces, done = [], 0
    for start, end, new in parts:
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])


def _found(text: str, products: Collection[str], is_author: Callable[[str], bool]) -> list[Found]:
    named = _apart([*accounts(text, products, is_author), *_numbers(text), *_keys(text)])
    # Blanks of the same length: what is found in the rest keeps its place.
    rest = _replaced(text, [(start, end, " " * (end - start)) for start, end, _ in named])
    return _apart([*named, *((start, end, "phone") for start, end in phones(rest))])


def _numbers(text: str) -> Iterator[Found]:
    for found in CARD.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        if ISSUED.fullmatch(digits) and luhn.is_valid(digits) and not _is_named(text, found):
            yield *found.span(), "card"
    for found in IBAN.finditer(text):
        ends = [one.start() for one in END.finditer(text, found.start(), found.end() + 1)]
        for end in reversed(ends):  # words may follow it
            said = text[found.start() : end].replace("\u2010", "-")
            if end <= found.end() and iban.is_valid(said):
                yield found.start(), end, "iban"
    for found in IP.finditer(text):
        if _is_address(found[0]) and not _is_named(text, found):
            yield *found.span(), "ip"


def _is_named(text: str, found: re.Match[str]) -> bool:
    """Whether the word before a number says that it is another one."""
    return NO_DATA.search(text, max(found.start() - 11, 0), found.start()) is not None


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _keys(text: str) -> Iterator[Found]:
    for found in KEY_FORM.finditer(text):
        # "sk-ii-facial-essence" and "hf_hub_download" are none.
        if re.search(r"\d", found[0]) or LETTERS.fullmatch(found[0]):
            yield *found.span(), "key"
    yield from ((*found.span(), "key") for found in SECRET.finditer(text))


def _apart(found: Iterable[Found]) -> list[Found]:
    apart: list[Found] = []
    for one in sorted(found, key=lambda one: (one[0], -one[1])):
        if not apart or one[0] >= apart[-1][1]:
            apart.append(one)
    return apart


def _words(found: Iterable[Found], text: str) -> Iterator[Found]:
    """What was found, with all that is joined to it: of a long chain each search frees one link."""
    done = 0
    for start, end, kind in found:
        if start >= done:
            while start > done and not text[start - 1].isspace():
                start -= 1
            blank = BLANK.search(text, end)
            done = blank.start() if blank else len(text)
            yield start, done, kind


def _with_masks(pieces: Sequence[Piece], found: Iterable[Found]) -> Iterator[Piece]:
    owner = [number for number, piece in enumerate(pieces) for _ in piece.shown]
    done = 0
    for start, end, kind in found:
        first, last = owner[start], owner[end - 1]
        if first >= done:  # else they share a character that looks like several
            yield from pieces[done:first]
            yield Piece(_mask(kind), pieces[first].start, pieces[last].end, kind)
            done = last + 1
    yield from pieces[done:]
