"""Tell from words whether a prompt needs an image that was given with it: a reference image.

No phrases are listed. A clause is read as a row of tokens, each with the groups of words that it
belongs to in any language (`reference_images.yaml`), and a rule says which groups must stand near
each other: what marks an image as given, and what is done with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
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
BRACKETS = {"[": "]", "【": "】", "<": ">", "{": "}", "(": ")"}  # a wide one is made narrow
NUMBERS = frozenset("123456789")
PARTICLES, TOPIC = frozenset("をにのとの의을를에"), "は"  # what something is done with
OF = frozenset({"of", "by"})
WE = frozenset({"i", "we", "ich", "yo", "eu"})
SHORTEST_STEM, LONGEST_STEM = 4, 20
MOST_WORDS = 4  # of a phrase
WORD = 2  # the width of a word; a character of a script without spaces is half of one
CLOSE, FAR = 1 * WORD, 12 * WORD
FEW = 6 * WORD  # which tell of nothing yet
MOST_TOKENS = 400  # of a clause: a longer one, without a stop, is cut
MOST_CHARACTERS = 20_000  # that are looked at: a prompt has at most 12,000


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

    @cached_property
    def longest(self) -> Mapping[str, int]:
        """The length of the longest word without spaces that begins with each letter."""
        found: dict[str, int] = {}
        for word in self.unspaced:
            found[word[0]] = max(len(word), found.get(word[0], 0))
        return found

    @cached_property
    def beginnings(self) -> Groups:
        """The first words of phrases of several."""
        return frozenset(phrase.partition(" ")[0] for phrase in self.spaced if " " in phrase)

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


@lru_cache(maxsize=10_000)
def _groups_of(word: str) -> Groups:
    return _vocabulary().groups_of(word)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", straight(text)).lower()


def _tokens(clause: str) -> list[Token]:
    known, tokens = _vocabulary(), list[Token]()
    words = list(LETTERS.finditer(clause))
    of_word = {word.start(): number for number, word in enumerate(words)}
    at = width = 0

    def add(text: str, groups: Groups, wide: int, is_spaced: bool = True) -> None:
        nonlocal at, width
        tokens.append(Token(text, groups, width, width + wide, is_spaced))
        at, width = at + len(text), width + wide

    while at < len(clause):
        tail = clause[at : at + known.longest.get(clause[at], 0)]
        inside = at > 0 and ord(clause[at - 1]) > 0x2E7F
        heads = (tail[:n] for n in range(len(tail), 0, -1))
        fits = (
            head for head in heads if head in known.unspaced and not (inside and head[-1] == " ")
        )
        if tail and (text := next(fits, None)):
            add(text, known.unspaced[text], len(text), is_spaced=False)
        elif at in of_word:
            first = of_word[at]
            begins = words[first].group() in known.beginnings
            phrase = words[first : first + (MOST_WORDS if begins else 1)]
            for count in range(len(phrase), 1, -1):
                text = clause[at : phrase[count - 1].end()]
                names = known.spaced.get(" ".join(word.group() for word in phrase[:count]), NONE)
                if names and not re.search(r"[^\w\s'-]", text):
                    add(text, names, WORD * count)
                    break
            else:
                text = phrase[0].group()
                add(text, _groups_of(text), WORD)
        elif clause[at].isspace():
            at += 1
        else:
            letter = clause[at]
            add(letter, NONE, int(letter.isalnum()), is_spaced=ord(letter) <= 0x2E7F)
    return tokens


CHANGED = ("edit", "keep", "match", "put")  # what is done with something that is there
USED = ("use", *CHANGED)
NOUNS = frozenset({"image", "who", "trait", "figure", "numbered"})
DEFINITE = ("the", "this", "mine")


@dataclass(frozen=True)
class Clause:
    """A clause of a prompt.

    Attributes:
        tokens: What it is made of.
        is_first: Whether too little stands before it for "this person" to point at.
    """

    tokens: Sequence[Token]
    is_first: bool

    def needs_image(self) -> bool:
        """Whether it speaks of an image that is given."""
        for place, token in enumerate(self.tokens):
            is_noun = not NOUNS.isdisjoint(token.groups)
            if is_noun and any(rule(self, place) for rule in RULES):
                return True
            if "reference" in token.groups and self._is_matched(place):
                return True
            if "me" in token.groups and self._changes_me(place):
                return True
            if "this" in token.groups and self._acts_on_this(place):
                return True
        is_kept = self.has("face") and self.has("keep") and self.has("unchanged")
        return is_kept or self.has("gave")

    def asks_for_image(self) -> bool:
        """Whether it asks its reader to give an image."""
        if self.has("without"):
            return False
        images = [place for place, token in enumerate(self.tokens) if "image" in token.groups]
        is_label = self._text(1) == ":" and "reference" in self.tokens[0].groups
        if images and is_label:  # "Input: a photo of a couple"
            return True
        for place in images:
            upload = self._near(place, 4 * WORD, "upload")
            if upload >= 0 and self._text(upload - 1) not in WE:
                return True
            is_needed = self._near(place, 4 * WORD, "need") >= 0
            if is_needed and not self._is(place, CLOSE, "this"):
                return True
            if self._is(place, CLOSE, "your") and self._before(place, 4 * WORD, "use", "put") >= 0:
                return True
        return False

    def has(self, *groups: str) -> bool:
        """Whether any token is of one of these groups."""
        return any(not token.groups.isdisjoint(groups) for token in self.tokens)

    def _before(self, place: int, width: int, *groups: str) -> int:
        """Where the nearest token of some groups stands within a width before another; else -1."""
        start = self.tokens[place].start
        for number in range(place - 1, -1, -1):
            if start - self.tokens[number].end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return -1

    def _after(self, place: int, width: int, *groups: str) -> int:
        end = self.tokens[place].end
        for number in range(place + 1, len(self.tokens)):
            if self.tokens[number].start - end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return -1

    def _near(self, place: int, width: int, *groups: str) -> int:
        before = self._before(place, width, *groups)
        return before if before >= 0 else self._after(place, width, *groups)

    def _is(self, place: int, width: int, *groups: str) -> bool:
        """Whether a token is of one of these groups, or a token shortly before it is."""
        own = self.tokens[place].groups
        return not own.isdisjoint(groups) or self._before(place, width, *groups) >= 0

    def _marked(self, place: int, group: str, behind: str) -> int:
        """Where a noun is said to be of a kind: in itself, or by the word before or after it."""
        width = CLOSE if self.tokens[place].is_spaced else CLOSE // 2
        is_marked = group in self.tokens[place].groups or self._after(place, width, behind) >= 0
        before = self._before(place, width, group)
        return before if before >= 0 else place if is_marked else -1

    def _is_used(self, place: int, *groups: str) -> bool:
        """Whether it is said what to do with a thing: before it; without spaces, after it too."""
        is_after = not self.tokens[place].is_spaced and self._after(place, FAR, *groups) >= 0
        return is_after or self._before(place, FAR, *groups) >= 0

    def _is_definite(self, place: int) -> bool:
        """Whether a thing is a certain one: the photo, [photo]."""
        return self._is(place, CLOSE, *DEFINITE) or self._is_bracketed(place)

    def _is_bracketed(self, place: int) -> bool:
        start, earlier = self.tokens[place].start, self.tokens[:place]
        return any(start - token.end <= CLOSE for token in earlier if token.text in BRACKETS)

    def _text(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def _is_sent(self, place: int) -> bool:
        """The attached photo; with a word on what to do with it, a photo that I uploaded."""
        groups = self.tokens[place].groups
        is_image = "image" in groups
        marked = place if "sent" in groups else self._before(place, 2 * WORD, "sent")
        if marked >= 0:
            is_any = self._before(marked, 0, "a") >= 0  # "a file with an attached photo"
            is_plain = is_image and not is_any
            return is_plain or self._is_definite(marked) or self._is_used(marked, *USED)
        if is_image and self._after(place, 0, "below") >= 0:
            return self._is_used(place, "use", "edit")
        if (marked := self._after(place, 2 * WORD, "sent")) < 0:
            return False
        # "Photo attached: ...", "Reference image attached"
        is_begun = place == 0 or self._marked(place, "reference", "referenced") == 0
        is_title = is_begun and self._text(marked + 1) in ("", ":")
        said = (self._is_definite(place) or is_title, self._is_used(place, *USED))
        return any(said) if is_image else all(said)

    def _is_to_upload(self, place: int) -> bool:
        """[upload image], [character image] or [image 1], as blanks are written."""
        if "image" not in self.tokens[place].groups or not self._is_bracketed(place):
            return False
        if self._text(place + 1) in NUMBERS:
            return self._text(place + 2) in BRACKETS.values()
        is_closed = self._text(place + 1) in BRACKETS.values()
        upload = self._before(place, CLOSE, "upload")
        return upload >= 0 or (is_closed and self._before(place, 0, "who") >= 0)

    def _is_reference(self, place: int) -> bool:
        """The reference image; with a word on what to do with it, reference image."""
        if (marked := self._marked(place, "reference", "referenced")) < 0:
            return False
        is_in = self._before(marked, 0, "in") >= 0
        is_taken = is_in or self._text(place + 1) in PARTICLES
        return is_taken or self._is_definite(marked) or self._is_used(marked, *USED)

    def _is_original(self, place: int) -> bool:
        """Use the original photo, keep the original face; not "follow the original design"."""
        used = USED if "image" in self.tokens[place].groups else CHANGED
        marked = self._marked(place, "original", "original")
        return marked >= 0 and self._is_used(marked, *used)

    def _is_owned(self, place: int) -> bool:
        """My photo, use my face, here is a photo."""
        if "image" in self.tokens[place].groups and self._is(place, 4 * WORD, "here"):
            return True
        is_mine = self._is(place, 2 * WORD, "mine")
        return is_mine and ("image" in self.tokens[place].groups or self._is_used(place, *USED))

    def _is_pointed_at(self, place: int) -> bool:
        """Use this photo; with nothing before it that was told of, turn this person."""
        groups, follows = self.tokens[place].groups, self._text(place + 1)
        if "image" in groups:
            is_object = follows in PARTICLES and self._text(place + 2) != TOPIC
            is_this = self._is(place, 2 * WORD, "this")
            return is_this and (is_object or self._is_used(place, *USED, "make"))
        # "Draw this character: a fox"
        if "who" not in groups or not self.is_first or follows == ":":
            return False
        this = self._before(place, CLOSE, "this")
        if this < 0:
            return False
        is_of = "in" in self.tokens[this].groups or self._before(this, 0, "in") >= 0
        return is_of or follows in PARTICLES or self._is_used(place, *USED, "make")

    def _acts_on_this(self, place: int) -> bool:
        """A prompt that begins with "Annotate this meal" can only mean one that is seen."""
        if not self.is_first or self._after(place, CLOSE, "told") >= 0:
            return False
        if self.tokens[place].is_spaced:
            is_told = ":" in (self._text(place + 1), self._text(place + 2))
            is_direct = 0 <= self._before(place, 0, "use", "edit", "keep", "put") <= 1
            inside = self._before(place, 0, "in")  # "Translate the text on this poster"
            is_changed = inside >= 0 and self._before(inside, 4 * WORD, "edit") == 0
            return not is_told and (is_direct or is_changed)
        return place == 0 and self._after(place, 3 * FAR, "edit", "put", "use") >= 0

    def _is_changed(self, place: int) -> bool:
        """Edit the image, remove the cars from the image."""
        if "image" not in self.tokens[place].groups:
            return False
        if not self.tokens[place].is_spaced:
            is_object = self._before(place, 0, "object") >= 0
            is_whole = place == 0 and self._after(place, 0, "in") >= 0
            return (is_object or is_whole) and self._after(place, FAR, "edit") >= 0
        if (article := self._article(place)) < 0 or self._text(place + 1) in OF:
            return False
        inside = self._inside(article)
        is_changed = self._before(article, 0, "edit") >= 0
        return is_changed or (inside >= 0 and self._before(inside, 6 * WORD, "edit") >= 0)

    def _shows(self, place: int) -> bool:
        """The person in the photo, where something is done with the person."""
        if "image" not in self.tokens[place].groups:
            return False
        if not self.tokens[place].is_spaced:
            inside = self._after(place, 0, "in")
            shown = self._after(place, 0, "who")
            shown = shown if inside < 0 else self._after(inside, CLOSE, "who", "trait")
            return shown >= 0 and self._is_used(place, *USED, "make", "object")
        inside = self._inside(self._article(place))
        if inside < 0 and self._text(place) in ("image", "photo", "picture"):
            inside = self._before(place, 0, "in")
        shown = self._before(inside, CLOSE, "who", "trait") if inside >= 0 else -1
        if shown < 0 or self._text(inside) in OF or self._text(place + 1) in OF:
            return False
        if "who" not in self.tokens[shown].groups:
            return self._is_used(shown, "use", "edit")
        of = self._before(shown, 2 * WORD, "in")  # a version of the person in the photo
        is_taken = "from" in self.tokens[inside].groups or of >= 0
        return is_taken or self._is_used(shown, *USED, "make")

    def _article(self, place: int) -> int:
        is_whole = "the" in self.tokens[place].groups
        return place if is_whole else self._before(place, 0, "the", "this")

    def _inside(self, article: int) -> int:
        """Where it is said that something is in the image; in some languages by the article."""
        if article < 0:
            return -1
        is_both = "in" in self.tokens[article].groups
        return article if is_both else self._before(article, 0, "in")

    def _is_changed_first(self, place: int) -> bool:
        """A prompt that begins by changing a person has told of none."""
        if not self.is_first or "who" not in self.tokens[place].groups:
            return False
        if self.tokens[place].is_spaced:
            is_certain = self._is(place, CLOSE, *DEFINITE)
            return is_certain and self._before(place, 2 * WORD, "edit") == 0
        is_object = self._before(place, FAR, "object") >= 0
        return is_object and self._after(place, FAR, "edit") >= 0

    def _is_numbered(self, place: int) -> bool:
        """The second image, Image 2; not where a series is told: "Image 2: a tree"."""
        groups = self.tokens[place].groups
        has_number = "numbered" in groups or self._text(place + 1) in NUMBERS
        first = self._before(place, CLOSE, "first") if "image" in groups else -1
        if not (first >= 0 or (has_number and groups & {"image", "figure", "numbered"})):
            return False
        start = first if first >= 0 else place
        if not self.tokens[place].is_spaced:
            noun = place if "numbered" in groups else place + 1
            is_object = self._text(noun + 1) in PARTICLES and self._text(noun + 2) != TOPIC
            is_inside = self._after(noun, 0, "in") >= 0 if noun < len(self.tokens) else False
            return is_object or is_inside or self._is_used(start, *USED, "object")
        if self._text(place + 2) == ":":
            return False
        before = self._before(start, CLOSE, "in", *USED)
        if before < 0:
            return self.has(*USED) and len(self._numbers()) > 1
        return self._is_used(start, *USED) or self._before(before, 0, *NOUNS) >= 0

    def _numbers(self) -> set[str]:
        """The numbers that images of the clause have."""
        names = {"image", "figure"}
        nouns = (place for place, token in enumerate(self.tokens) if token.groups & names)
        return {text for place in nouns if (text := self._text(place + 1)) in NUMBERS}

    def _is_matched(self, place: int) -> bool:
        """Identical to the reference, and no word after it that would say to what."""
        follows = self._text(place + 1)
        is_end = not follows[:1].isalpha()
        return is_end and self._before(place, CLOSE, "match", "from", "use") >= 0

    def _changes_me(self, place: int) -> bool:
        """Turn me into a baker."""
        is_object = self._before(place, 0, "object") >= 0
        is_changed = "edit" in self.tokens[place].groups or self._near(place, 0, "edit") >= 0
        return is_changed or (is_object and self._after(place, FAR, "edit") >= 0)


RULES: tuple[Callable[[Clause, int], bool], ...] = (
    Clause._is_sent,
    Clause._is_to_upload,
    Clause._is_reference,
    Clause._is_original,
    Clause._is_owned,
    Clause._is_pointed_at,
    Clause._is_changed,
    Clause._shows,
    Clause._is_changed_first,
    Clause._is_numbered,
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


@lru_cache(maxsize=2048)  # of a batch: what a stage asks about a row, its outcome asks again
def _clauses(text: str) -> tuple[Clause, ...]:
    clauses, words = list[Clause](), 0
    for piece in CLAUSE_END.split(LETTERED.sub(r"\1 1", text[:MOST_CHARACTERS])):
        if not (tokens := _tokens(JOINED.sub(" ", _plain(piece)))):
            continue
        for first in range(0, len(tokens), MOST_TOKENS):
            part = tokens[first : first + MOST_TOKENS]
            clauses.append(Clause(part, is_first=words + part[0].start <= FEW))
        words += tokens[-1].end
    return tuple(clauses)
