"""Tell from words whether a prompt needs an image that was given with it: a reference image.

No phrases are listed. A clause is read as a row of tokens, each with the groups of words that it
belongs to in any language (`reference_images.yaml`), and a rule says which groups must stand near
each other: what marks an image as given, and what is done with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from echo_hf.engines.phrases import LETTER, read_words, straight

WORDS = Path(__file__).with_suffix(".yaml")
Groups = frozenset[str]
NONE: Groups = frozenset()
LETTERS = re.compile(f"{LETTER}+")
CLAUSE_END = re.compile(r"[!?。！？;；\n，]|\.(?=\s|$)")
QUOTED = re.compile(r"[\"“„«「『‘][^\"”»」』’\n]{2,80}[\"”»」』’]|(?<!\w)'[^'\n]{2,80}'(?!\w)")
NO_QUOTE = re.compile(r"[^\"“„«「『‘']*")
KEY = re.compile(r"\"\s{0,4}:")  # of JSON, whose strings are no words of a sign
# "image1", "reference_image", "Image A".
JOINED = re.compile(r"(?<=[^\W\d_])(?=[1-9](?!\w))|_")
LETTERED = re.compile(r"\b((?i:image|photo|picture|reference))\s[A-D]\b")
BRACKETS = frozenset("[【<{(（")
NUMBERS = frozenset("123456789")
OF = frozenset({"of", "by"})
WE = frozenset({"i", "we", "ich", "yo", "eu"})
SHORTEST_STEM, LONGEST_STEM = 4, 20
MOST_WORDS = 4  # of a phrase
WORD = 2  # the width of a word; a character of a script without spaces is half of one
CLOSE, NEAR, FAR = 1 * WORD, 3 * WORD, 12 * WORD


class Token(NamedTuple):
    """A word, a phrase or a sign, and where it begins and ends, in widths."""

    text: str
    groups: Groups
    start: int
    end: int
    is_spaced: bool


@dataclass(frozen=True)
class Vocabulary:
    """The groups of each word: of scripts with spaces, of what begins so, and of those without."""

    spaced: Mapping[str, Groups]
    stems: Mapping[str, Groups]
    unspaced: Mapping[str, Groups]

    def groups_of(self, word: str) -> Groups:
        if word in self.spaced:
            return self.spaced[word]
        cuts = range(SHORTEST_STEM, min(len(word), LONGEST_STEM) + 1)
        return NONE.union(*(self.stems.get(word[:n], NONE) for n in cuts))


@cache
def _vocabulary() -> Vocabulary:
    groups: dict[str, set[str]] = {}
    for group, languages in read_words(WORDS).items():
        for word in (word for words in languages.values() for word in words):
            groups.setdefault(_plain(word), set()).add(group)
    found = Vocabulary({}, {}, {})
    for word, names in groups.items():
        is_spaced = not any(ord(letter) > 0x2E7F for letter in word)
        key = " ".join(LETTERS.findall(word)) if is_spaced else word
        kind = found.unspaced if not is_spaced else found.stems if word[-1] == "*" else found.spaced
        kind[key] = frozenset(names)  # type: ignore[index]
    return found


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", straight(text)).lower()


def _tokens(clause: str) -> list[Token]:
    known, tokens = _vocabulary(), list[Token]()
    words = list(LETTERS.finditer(clause))
    of_word = {word.start(): number for number, word in enumerate(words)}
    longest = max(map(len, known.unspaced))
    at = width = 0

    def add(text: str, groups: Groups, wide: int, is_spaced: bool = True) -> None:
        nonlocal at, width
        tokens.append(Token(text, groups, width, width + wide, is_spaced))
        at, width = at + len(text), width + wide

    while at < len(clause):
        tail = clause[at : at + longest]
        inside = at > 0 and ord(clause[at - 1]) > 0x2E7F
        pieces = (tail[:n] for n in range(len(tail), 0, -1))
        fits = (one for one in pieces if one in known.unspaced and not (inside and one[-1] == " "))
        if text := next(fits, None):
            add(text, known.unspaced[text], len(text), is_spaced=False)
        elif at in of_word:
            some = words[of_word[at] : of_word[at] + MOST_WORDS]
            for count in range(len(some), 1, -1):
                text = clause[at : some[count - 1].end()]
                names = known.spaced.get(" ".join(word.group() for word in some[:count]), NONE)
                if names and not re.search(r"[^\w\s'-]", text):
                    add(text, names, WORD * count)
                    break
            else:
                text = some[0].group()
                add(text, known.groups_of(text), WORD)
        elif clause[at].isspace():
            at += 1
        else:
            letter = clause[at]
            add(letter, NONE, int(letter.isalnum()), is_spaced=ord(letter) <= 0x2E7F)
    return tokens


USED = frozenset({"use", "edit", "keep", "match", "put"})
NOUNS = frozenset({"image", "who", "trait"})
DEFINITE = frozenset({"the", "this", "mine"})


@dataclass(frozen=True)
class Clause:
    """A clause of a prompt; its first one can point at nothing that the prompt itself described."""

    tokens: list[Token]
    is_first: bool

    def before(self, place: int, width: int, *groups: str) -> int | None:
        """The nearest token of some groups that ends within a width before another."""
        start = self.tokens[place].start
        for number in range(place - 1, -1, -1):
            if start - self.tokens[number].end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return None

    def after(self, place: int, width: int, *groups: str) -> int | None:
        """The same, that begins after another."""
        end = self.tokens[place].end
        for number in range(place + 1, len(self.tokens)):
            if self.tokens[number].start - end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return None

    def has(self, *groups: str) -> bool:
        return any(not token.groups.isdisjoint(groups) for token in self.tokens)

    def is_used(self, place: int, *groups: str) -> bool:
        """Whether it is said what to do with something: before it, or in scripts without spaces
        anywhere in the clause."""
        is_after = not self.tokens[place].is_spaced and self.after(place, FAR, *groups) is not None
        return is_after or self.before(place, FAR, *groups) is not None

    def is_definite(self, place: int, width: int = CLOSE) -> bool:
        return (
            not DEFINITE.isdisjoint(self.tokens[place].groups)
            or self.before(place, width, *DEFINITE) is not None
            or any(
                self.tokens[place].start - token.end <= width
                for token in self.tokens[:place]
                if token.text in BRACKETS
            )
        )

    def needs_image(self) -> bool:
        """Whether it speaks of an image that is given."""
        for place, token in enumerate(self.tokens):
            if not NOUNS.isdisjoint(token.groups) and (
                self._is_sent(place)
                or self._is_reference(place)
                or self._is_original(place)
                or self._is_owned(place)
                or self._is_numbered(place)
                or ("image" in token.groups and self._is_edited(place))
                or ("who" in token.groups and self._is_changed_first(place))
            ):
                return True
            if "numbered" in token.groups and self._is_numbered(place):
                return True
            if "reference" in token.groups and self._is_matched(place):
                return True
            if "me" in token.groups and self._changes_me(place):
                return True
        return self.has("face") and self.has("keep") and self.has("unchanged")

    def asks_for_image(self) -> bool:
        """Whether it asks its reader to give an image."""
        if self.has("without"):
            return False
        for place, token in enumerate(self.tokens):
            if "image" not in token.groups:
                continue
            is_asked = (place_ := self._near(place, 4 * WORD, "upload")) is not None
            if is_asked and self.tokens[max(place_ - 1, 0)].text not in WE:
                return True
            if self._near(place, 4 * WORD, "need") is not None and not self._is(place, "this"):
                return True
            if self._is(place, "your") and self.before(place, 4 * WORD, "use", "put") is not None:
                return True
        return False

    def _is(self, place: int, *groups: str, width: int = CLOSE) -> bool:
        """Whether a noun is said to be something: by itself, or by what stands before it."""
        own = self.tokens[place].groups
        return not own.isdisjoint(groups) or self.before(place, width, *groups) is not None

    def _text(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def _near(self, place: int, width: int, *groups: str) -> int | None:
        before = self.before(place, width, *groups)
        return self.after(place, width, *groups) if before is None else before

    def _is_sent(self, place: int) -> bool:
        """The attached photo; a photo that I uploaded, where it is said what to do with it."""
        is_image = "image" in self.tokens[place].groups
        marked = (
            place if self._is(place, "sent", width=-1) else self.before(place, 2 * WORD, "sent")
        )
        if marked is not None:
            is_one = self.before(marked, 0, "a") is not None
            if is_image and not is_one or self.is_definite(marked):
                return True
            return self.is_used(marked, *USED)
        if is_image and self.after(place, 0, "below") is not None:
            return self.is_used(place, "use", "edit")
        if (marked := self.after(place, 2 * WORD, "sent")) is None:
            return False
        is_title = place == 0 and self._text(marked + 1) in ("", ":")  # "Photo attached: ..."
        is_definite = self.is_definite(place) or is_title
        is_used = self.is_used(place, *USED)
        return is_definite or is_used if is_image else is_definite and is_used

    def _is_reference(self, place: int) -> bool:
        token = self.tokens[place]
        width = CLOSE if token.is_spaced else WORD // 2
        marked = self._marked(place, "reference", width)
        if marked is None:
            return False
        if self.is_definite(min(marked, place)) or self.before(min(marked, place), 0, "in"):
            return True
        used = ("use", "edit", "keep", "match", "put")
        return self.is_used(min(marked, place), *used)

    def _is_original(self, place: int) -> bool:
        width = CLOSE if self.tokens[place].is_spaced else WORD // 2
        marked = self._marked(place, "original", width)
        return marked is not None and self.is_used(min(marked, place), *USED)

    def _marked(self, place: int, group: str, width: int) -> int | None:
        """Where it stands that a noun is of a kind: in itself, before or after it."""
        return place if group in self.tokens[place].groups else self._near(place, width, group)

    def _is_owned(self, place: int) -> bool:
        """This photo, this person, my photo, my face."""
        is_image = "image" in self.tokens[place].groups
        if self._is(place, "mine", width=2 * WORD) and (
            is_image or self.is_used(place, "use", "edit", "keep", "put")
        ):
            return True
        if is_image and self._is(place, "here", width=4 * WORD):
            return True
        if not self._is(place, "this", width=2 * WORD if is_image else CLOSE):
            return False
        if is_image:
            return self.is_used(place, *USED, "make")
        return self.is_first and self.is_used(place, "use", "edit", "keep", "put")

    def _is_edited(self, place: int) -> bool:
        """The image that only one that is there can be: edited, or with a person in it."""
        token, tokens = self.tokens[place], self.tokens
        if not token.is_spaced:
            if self.before(place, 0, "object") is not None and self.after(place, FAR, "edit"):
                return True
            inside = self.after(place, 0, "in")
            shown = None if inside is None else self.after(inside, CLOSE, "who", "trait")
            return shown is not None and self.is_used(place, *USED, "make", "object")
        definite = place if "the" in token.groups else self.before(place, 0, "the", "this")
        if definite is None:
            return False
        if self._text(place + 1) in OF:  # "the photo of Einstein" is one that everybody knows
            return False
        if self.before(definite, 0, "edit") is not None:
            return True
        inside = definite if "in" in tokens[definite].groups else self.before(definite, 0, "in")
        if inside is None:
            return False
        if self.before(inside, 6 * WORD, "edit") is not None:
            return True
        shown = self.before(inside, CLOSE, "who", "trait")
        if shown is None or tokens[inside].text == "of":
            return False
        if "who" not in tokens[shown].groups:
            return self.is_used(shown, "use", "edit")
        of = self.before(shown, 2 * WORD, "in")  # a version of the person in the photo
        return (
            "from" in tokens[inside].groups or of is not None or self.is_used(shown, *USED, "make")
        )

    def _is_changed_first(self, place: int) -> bool:
        """A prompt that begins by changing the person has told of none."""
        if not self.is_first:
            return False
        if self.tokens[place].is_spaced:
            return self.is_definite(place) and self.before(place, 2 * WORD, "edit") == 0
        acted = self.before(place, FAR, "object") is not None
        return acted and self.after(place, FAR, "edit") is not None

    def _is_numbered(self, place: int) -> bool:
        """The second image; Image 2; not where a series is told: "Image 2: a tree"."""
        token, tokens = self.tokens[place], self.tokens
        first = self.before(place, CLOSE, "first")
        is_numbered = "image" in token.groups and self._text(place + 1) in NUMBERS
        if not (is_numbered or "numbered" in token.groups or first is not None):
            return False
        start = place if first is None else first
        if not token.is_spaced:
            return self.is_used(start, *USED, "object") or (
                self.after(place, CLOSE, "in") is not None and self.is_used(start, "make")
            )
        if self._text(place + 2) == ":" or "image" not in token.groups:
            return False
        before = self.before(start, CLOSE, "in", *USED)
        if before is None:
            return False
        return self.is_used(start, "use", "edit", "keep", "put", "match") or (
            self.before(before, 0, "who", "trait") is not None
        )

    def _is_matched(self, place: int) -> bool:
        """Identical to the reference, and nothing after it."""
        follows = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        if follows is not None and (follows.groups or follows.text[0].isalpha()):
            return False
        return self.before(place, CLOSE, "match", "from", "use") is not None

    def _changes_me(self, place: int) -> bool:
        is_edited = "edit" in self.tokens[place].groups
        return (
            is_edited
            or self._near(place, 0, "edit") is not None
            or (
                self.before(place, 0, "object") is not None
                and self.after(place, FAR, "edit") is not None
            )
        )


def needs_image(prompt: str) -> bool:
    """Whether a prompt speaks of an image that its writer gave with it.

    Silent where it may be the image that is asked for: "the image is dark", "in this photo"; and
    where it is quoted, as the words of a sign are.
    """
    is_quoted = NO_QUOTE.fullmatch(prompt) or QUOTED.fullmatch(prompt.strip())
    own = prompt if is_quoted or KEY.search(prompt) else QUOTED.sub(" ", prompt)
    return any(clause.needs_image() for clause in _clauses(own))


def asks_for_image(words: str) -> bool:
    """Whether words beside a prompt ask its reader to give an image."""
    return any(clause.asks_for_image() for clause in _clauses(words))


def mentions_image(prompt: str) -> bool:
    """Whether a prompt mentions an image at all, given or asked for."""
    return any(clause.has("image", "sent", "numbered") for clause in _clauses(prompt))


def _clauses(text: str) -> Iterator[Clause]:
    plain = JOINED.sub(" ", _plain(LETTERED.sub(r"\1 1", text)))
    pieces = (piece for piece in CLAUSE_END.split(plain) if piece.strip())
    for number, piece in enumerate(pieces):
        yield Clause(_tokens(piece), number == 0)
