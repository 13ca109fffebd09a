"""Find the names of the target, its maker, its chat window and other models in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from echo_hf.engines.rules.folding import LETTER, fold, words_of
from echo_hf.engines.rules.words import LOOK, MAKING, PICTURE

BEFORE, AFTER = rf"(?<!{LETTER})", rf"(?!{LETTER})"
# A target's name in prose often ends in what it does.
WHAT_IT_DOES = re.compile(r"\W+(?:native )?(?:image|picture|photo)s?(?:\W+\w+){0,3}$")
SHORTEST_CLEAR = 4
COMPARED_BEFORE = re.compile(
    r"(?:\b(?:than|vs|versus|unlike|beats?|beating|over|like|rip|bye|goodbye|outperforms?|kills?"
    r"|killed|replaces?|replaced|destroys?|compared (?:to|with)|not|no|que|als|wie|do que|di|como"
    r"|comme|come)|比|不是|より|像|不像|超越|吊打)"
    r"[\W_]{0,3}(?:(?:the|el|la|le|der|o|il|using|even|ever|with)\s){0,2}$"
)
COMPARED_AFTER = re.compile(
    r"\W{0,3}(?:v?\d[\d.]{0,3}\W{0,2})?"
    r"(?:风格|風格|スタイル|より|風|(?:styles?|styled|looks?|vibes?|level|vs|versus|can['’]?t|cannot"
    rf"|could never|is (?:dead|done|over|cooked|finished)|killers?|stil|estilo){AFTER})"
)
# Romance ordinals and the like, where "4o" is a fourth.
ORDINAL_AFTER = re.compile(
    r"\W{1,2}(?:ano|anos|año|grado|lugar|dia|día|puesto|semestre|trimestre|bimestre|periodo|período"
    r"|capítulo|congreso|encuentro|encontro|turno|piso|andar|piano|posto|anno|classe|class|eso|[ab]"
    r"|de|da|do|del|della|of|july|place|floor|grade|round|batalh\w+|batall\w+|sorteo)(?!\w)"
)
WINDOW = 40


@dataclass(frozen=True, slots=True)
class NameList:
    """Names to look for.

    Attributes:
        pattern: Any of them, as a whole word of a folded text; null when there are none.
        first_words: Words of which a text with one of the names has at least one.
    """

    pattern: re.Pattern[str] | None
    first_words: frozenset[str]

    def finditer(self, folded: str, in_it: Set[str]) -> Iterator[re.Match[str]]:
        """The places of the names in a folded text with these words."""
        if self.pattern and not (self.first_words and self.first_words.isdisjoint(in_it)):
            return self.pattern.finditer(folded)
        return iter(())


@dataclass(frozen=True, slots=True)
class Names:
    """The names around one target.

    Attributes:
        clear: The target's names that hardly mean anything else, and the application it is used in.
        short: Its names of fewer than four characters, such as "4o".
        developer: Who made it.
        others: Other image models.
    """

    clear: NameList
    short: NameList
    developer: NameList
    others: NameList

    def names_target(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names the target, or the application it is used in."""
        if any(self.clear.finditer(folded, in_it)):
            return True
        short = self.short.finditer(folded, in_it)
        return any(not ORDINAL_AFTER.match(folded, match.end()) for match in short)

    def names_developer(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names the target's maker."""
        return any(self.developer.finditer(folded, in_it))

    def uses_other(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names another model other than to compare with it."""
        others = self.others.finditer(folded, in_it)
        return any(not _compared(folded, match) for match in others)


def names_of(target: Mapping[str, Any]) -> Names:
    """The names around a target, ready for matching.

    Args:
        target: name, developer, aliases, others, chat_window.

    Returns:
        The same object for the same names.

    Example:
        >>> names = names_of({"name": "Lumen Image", "developer": "Northlight",
        ...     "aliases": ["L2"], "others": ["Dream-Mill"], "chat_window": None})
        >>> names.names_target("made with lumen!", {"made", "with", "lumen"})
        True
        >>> names.uses_other("better than dreammill", {"better", "than", "dreammill"})
        False
    """
    return _compiled(
        target["name"],
        target["developer"],
        tuple(target["aliases"]),
        tuple(target["others"]),
        target["chat_window"],
    )


@lru_cache(maxsize=16)
def _compiled(
    name: str, developer: str, aliases: tuple[str, ...], others: tuple[str, ...], window: str | None
) -> Names:
    own = [fold(one) for one in (name, *aliases)]
    own += [core for one in own if (core := WHAT_IT_DOES.sub("", one)) != fold(developer)]
    own += [fold(window)] if window else []
    clear = [one for one in own if len(_bare(one)) >= SHORTEST_CLEAR]
    short = [one for one in own if len(_bare(one)) < SHORTEST_CLEAR]
    rest = ([fold(developer)], [fold(one) for one in others])
    return Names(*map(_listed, (clear, short, *rest)))


def _listed(names: Sequence[str]) -> NameList:
    found = {name: _parts(name) for name in names if _bare(name)}
    patterns = [_pattern(name, parts) for name, parts in found.items()]
    first = {word for parts in found.values() for word in _first_words(parts)}
    if not all(found.values()):
        first = set()  # a name in a script without spaces: nothing to look up beforehand
    pattern = re.compile(BEFORE + "(?:" + "|".join(patterns) + ")" + AFTER) if patterns else None
    return NameList(pattern, frozenset(first))


def _pattern(name: str, parts: Sequence[str]) -> str:
    # "DALL-E", "DALL·E", "Dall E", "dalle" and "dalle3" are one name.
    if not parts:
        return re.escape(name)
    joined = r"[\W_]{0,2}".join(re.escape(part) for part in parts)
    ordinary = len(parts) == 1 and parts[0] in PICTURE | LOOK | MAKING
    return joined + (r"[\W_]{0,2}v?\d" if ordinary else r"\d?")


def _first_words(parts: Sequence[str]) -> Iterator[str]:
    for at in range(1, len(parts) + 1):
        joined = "".join(parts[:at])
        yield from (joined, *(joined + digit for digit in "0123456789"))


def _parts(name: str) -> list[str]:
    parts = words_of(name.replace("_", " "))
    # A name that is partly in another script is matched as it is written.
    return parts if sum(map(len, parts)) == len(_bare(name)) else []


def _bare(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum())


def _compared(folded: str, match: re.Match[str]) -> bool:
    before = folded[max(0, match.start() - WINDOW) : match.start()]
    after = folded[match.end() : match.end() + WINDOW]
    return bool(COMPARED_BEFORE.search(before) or COMPARED_AFTER.match(after))
