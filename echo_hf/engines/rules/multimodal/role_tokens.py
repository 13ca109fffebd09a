"""Find the words of a text that say a picture's role, or which picture is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from echo_hf.engines.rules.folding import words_of
from echo_hf.engines.rules.multimodal import ordinals as which
from echo_hf.engines.rules.multimodal import role_words as said
from echo_hf.engines.rules.names import Names

Role = Literal["input", "output", "neither"]

MOST_TOKENS = 400
NEARBY = 24
# The same place of a text may match several: the first counts.
TOKEN = said.first_of(
    ("idiom", said.BEFORE_AFTER),
    ("reversed", said.AFTER_BEFORE),
    ("few", which.FIRST_FEW),
    ("last_few", which.LAST_FEW),
    ("rest", which.REST),
    ("nth", which.NTH),
    *(
        (f"n{n}", rf"{said.START}(?:{word}){said.END}{which.NOT_A_TRY}")
        for n, word in which.NUMBER_WORDS.items()
    ),
    (
        "last",
        rf"{said.START}(?:{which.LAST_WORDS}){said.END}(?!\s(?:night|month"
        rf"|year)){which.NOT_A_TRY}|最[后後](?:一[张張])?",
    ),
    ("left", which.LEFT),
    ("right", which.RIGHT),
    ("neither", said.NEITHER),
    ("input", said.IN),
    ("output", said.OUT),
    ("owned", said.OWNED),
    ("stop", r"(?:[;!?\n…！？；。]|\.(?=\s|$))+"),
    ("pause", rf"[,，、/|·→➡]|->|{said.START}(?:and|y|et|und|e){said.END}|[和と]"),
)
ROLES: dict[str, Role] = {"input": "input", "output": "output", "neither": "neither"}
# Who owns or made a picture says its role where nothing else does.
HINTS: dict[str, Role] = {"owned": "input", "maker": "output"}
NO_PICTURE = frozenset({*ROLES, *HINTS, "idiom", "reversed", "stop", "pause"})


class Token(NamedTuple):
    """A word of a text that says a role, or which picture is meant, or where a clause ends."""

    kind: str
    start: int
    end: int
    text: str


def tokens_of(folded: str, names: Names) -> list[Token]:
    """The tokens of a folded text; the target's name counts as who made a result."""
    found = [
        Token(str(match.lastgroup), *match.span(), match.group())
        for match in islice(TOKEN.finditer(folded), MOST_TOKENS)
    ]
    words = frozenset(words_of(folded))
    found += [
        Token("maker", *one.span(), one.group()) for one in names.clear.finditer(folded, words)
    ]
    for other in islice(names.others.finditer(folded, words), MOST_TOKENS):
        if _made(folded, other, names):
            found += [Token("neither", *other.span(), other.group())]
    return sorted(found, key=lambda token: token.start)


def _made(folded: str, other: re.Match[str], names: Names) -> bool:
    # "better than Paintbox" is not by Paintbox.
    around = folded[max(0, other.start() - NEARBY) : other.end() + NEARBY]
    return names.uses_other(around, frozenset(words_of(around)))


def parts_of(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens between pauses; one that begins a sentence has its end before them."""
    part: list[Token] = []
    for token in tokens:
        if token.kind in ("stop", "pause"):
            yield part
            part = [token] if token.kind == "stop" else []
        else:
            part.append(token)
    yield part
