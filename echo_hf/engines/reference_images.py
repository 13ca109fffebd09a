"""Tell by rules whether a prompt refers to an image that was given with it.

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

from echo_hf.engines.phrases import LETTER, read_words, straighten

WORDS = Path(__file__).with_suffix(".yaml")
GroupNames = frozenset[str]
NO_GROUPS: GroupNames = frozenset()
LETTERS = re.compile(f"{LETTER}+")
CLAUSE_END = re.compile(r"[!?。！？;；\n，]|\.(?=\s|$)")
QUOTED = re.compile(r"[\"“„«「『‘][^\"”»」』’\n]{2,80}[\"”»」』’]|(?<!\w)'[^'\n]{2,80}'(?!\w)")
UNQUOTED = re.compile(r"[^\"“„«「『‘']*")
JSON_KEY = re.compile(r"\"\s{0,4}:")  # of JSON, whose strings are no words of a sign
# "image1", "reference_image", "Image A".
JOINED_NUMBER = re.compile(r"(?<=[^\W\d_])(?=[1-9](?!\w))|_")
LETTERED_IMAGE = re.compile(r"\b((?i:image|photo|picture|reference))\s[A-D]\b")
BRACKETS = {"[": "]", "【": "】", "<": ">", "{": "}", "(": ")"}  # a wide one is made narrow
NUMBERS = frozenset("123456789")
PARTICLES, TOPIC = frozenset("をにのとの의을를에"), "は"  # what something is done with
OF = frozenset({"of", "by"})
FIRST_PERSON = frozenset({"i", "we", "ich", "yo", "eu"})
MIN_STEM_CHARACTERS, MAX_STEM_CHARACTERS = 4, 20
MAX_PHRASE_WORDS = 4  # of a phrase
WORD = 2  # the width of a word; a character of a script without spaces is half of one
CLOSE, FAR = 1 * WORD, 12 * WORD
INTRODUCTION_WIDTH = 6 * WORD  # which tell of nothing yet
MAX_CLAUSE_TOKENS = 400  # of a clause: a longer one, without a stop, is cut
MAX_PROMPT_CHARACTERS = 20_000  # that are looked at: a prompt has at most 12,000


class Token(NamedTuple):
    """A word, phrase or sign, with its start and end in units of width."""

    text: str
    groups: GroupNames
    start: int
    end: int
    is_spaced: bool


@dataclass(frozen=True)
class WordGroups:
    """Groups of each word: of words with spaces, of word stems, and of words without spaces."""

    spaced: Mapping[str, GroupNames]
    stems: Mapping[str, GroupNames]
    unspaced: Mapping[str, GroupNames]

    @cached_property
    def longest_by_letter(self) -> Mapping[str, int]:
        """Length of the longest unspaced word that begins with each letter."""
        lengths: dict[str, int] = {}
        for word in self.unspaced:
            lengths[word[0]] = max(len(word), lengths.get(word[0], 0))
        return lengths

    @cached_property
    def phrase_starts(self) -> GroupNames:
        """First words of the phrases of several words."""
        return frozenset(phrase.partition(" ")[0] for phrase in self.spaced if " " in phrase)

    def find_groups(self, word: str) -> GroupNames:
        if word in self.spaced:
            return self.spaced[word]
        cuts = range(MIN_STEM_CHARACTERS, min(len(word), MAX_STEM_CHARACTERS) + 1)
        return NO_GROUPS.union(*(self.stems.get(word[:length], NO_GROUPS) for length in cuts))


@cache
def _read_word_groups() -> WordGroups:
    groups: dict[str, set[str]] = {}
    for group, languages in read_words(WORDS).items():
        for word in (word for words in languages.values() for word in words):
            groups.setdefault(_normalize(word), set()).add(group)
    lists = WordGroups({}, {}, {})
    for word, names in groups.items():
        is_spaced = not any(ord(letter) > 0x2E7F for letter in word)
        key = " ".join(LETTERS.findall(word)) if is_spaced else word
        section = (
            lists.unspaced if not is_spaced else lists.stems if word[-1] == "*" else lists.spaced
        )
        section[key] = frozenset(names)  # type: ignore[index]
    return lists


@lru_cache(maxsize=10_000)
def _find_groups(word: str) -> GroupNames:
    return _read_word_groups().find_groups(word)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", straighten(text)).lower()


def _tokenize(clause: str) -> list[Token]:
    lists, tokens = _read_word_groups(), list[Token]()
    words = list(LETTERS.finditer(clause))
    word_numbers = {word.start(): number for number, word in enumerate(words)}
    position = width = 0

    def add_token(text: str, groups: GroupNames, token_width: int, is_spaced: bool = True) -> None:
        nonlocal position, width
        tokens.append(Token(text, groups, width, width + token_width, is_spaced))
        position, width = position + len(text), width + token_width

    while position < len(clause):
        tail = clause[position : position + lists.longest_by_letter.get(clause[position], 0)]
        inside = position > 0 and ord(clause[position - 1]) > 0x2E7F
        heads = (tail[:length] for length in range(len(tail), 0, -1))
        matches = (
            head for head in heads if head in lists.unspaced and not (inside and head[-1] == " ")
        )
        if tail and (text := next(matches, None)):
            add_token(text, lists.unspaced[text], len(text), is_spaced=False)
        elif position in word_numbers:
            first = word_numbers[position]
            can_be_phrase = words[first].group() in lists.phrase_starts
            phrase = words[first : first + (MAX_PHRASE_WORDS if can_be_phrase else 1)]
            for count in range(len(phrase), 1, -1):
                text = clause[position : phrase[count - 1].end()]
                names = lists.spaced.get(
                    " ".join(word.group() for word in phrase[:count]), NO_GROUPS
                )
                if names and not re.search(r"[^\w\s'-]", text):
                    add_token(text, names, WORD * count)
                    break
            else:
                text = phrase[0].group()
                add_token(text, _find_groups(text), WORD)
        elif clause[position].isspace():
            position += 1
        else:
            letter = clause[position]
            add_token(letter, NO_GROUPS, int(letter.isalnum()), is_spaced=ord(letter) <= 0x2E7F)
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
        """Return whether a prompt speaks of an image that its writer gave with it."""
        for place, token in enumerate(self.tokens):
            is_noun = not NOUNS.isdisjoint(token.groups)
            if is_noun and any(rule(self, place) for rule in RULES):
                return True
            if "reference" in token.groups and self._is_matched(place):
                return True
            if "me" in token.groups and self._is_me_changed(place):
                return True
            if "this" in token.groups and self._is_this_used(place):
                return True
        is_kept = self.has("face") and self.has("keep") and self.has("unchanged")
        return is_kept or self.has("gave")

    def asks_for_image(self) -> bool:
        """Return whether the words beside a prompt ask the reader to supply an image."""
        if self.has("without"):
            return False
        images = [place for place, token in enumerate(self.tokens) if "image" in token.groups]
        is_label = self._get_text(1) == ":" and "reference" in self.tokens[0].groups
        if images and is_label:  # "Input: a photo of a couple"
            return True
        for place in images:
            upload = self._find_near(place, 4 * WORD, "upload")
            if upload >= 0 and self._get_text(upload - 1) not in FIRST_PERSON:
                return True
            is_needed = self._find_near(place, 4 * WORD, "need") >= 0
            if is_needed and not self._is(place, CLOSE, "this"):
                return True
            if (
                self._is(place, CLOSE, "your")
                and self._find_before(place, 4 * WORD, "use", "put") >= 0
            ):
                return True
        return False

    def has(self, *groups: str) -> bool:
        """Return whether any token is of one of these groups."""
        return any(not token.groups.isdisjoint(groups) for token in self.tokens)

    def _find_before(self, place: int, width: int, *groups: str) -> int:
        """Return the nearest preceding token of some groups within a width, else -1."""
        start = self.tokens[place].start
        for number in range(place - 1, -1, -1):
            if start - self.tokens[number].end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return -1

    def _find_after(self, place: int, width: int, *groups: str) -> int:
        end = self.tokens[place].end
        for number in range(place + 1, len(self.tokens)):
            if self.tokens[number].start - end > width:
                break
            if not self.tokens[number].groups.isdisjoint(groups):
                return number
        return -1

    def _find_near(self, place: int, width: int, *groups: str) -> int:
        preceding = self._find_before(place, width, *groups)
        return preceding if preceding >= 0 else self._find_after(place, width, *groups)

    def _is(self, place: int, width: int, *groups: str) -> bool:
        """Return whether a token, or one shortly before it, belongs to one of the groups."""
        own = self.tokens[place].groups
        return not own.isdisjoint(groups) or self._find_before(place, width, *groups) >= 0

    def _find_marked(self, place: int, group: str, follower: str) -> int:
        """Return where a noun is marked as of a group: itself, or a neighbouring token; else -1."""
        width = CLOSE if self.tokens[place].is_spaced else CLOSE // 2
        is_marked = (
            group in self.tokens[place].groups or self._find_after(place, width, follower) >= 0
        )
        preceding = self._find_before(place, width, group)
        return preceding if preceding >= 0 else place if is_marked else -1

    def _is_used(self, place: int, *groups: str) -> bool:
        """Return whether an action is named for a token: before it, or after it without spaces."""
        is_after = not self.tokens[place].is_spaced and self._find_after(place, FAR, *groups) >= 0
        return is_after or self._find_before(place, FAR, *groups) >= 0

    def _is_definite(self, place: int) -> bool:
        """Return whether a token is definite: "the photo", "[photo]"."""
        return self._is(place, CLOSE, *DEFINITE) or self._is_bracketed(place)

    def _is_bracketed(self, place: int) -> bool:
        start, earlier = self.tokens[place].start, self.tokens[:place]
        return any(start - token.end <= CLOSE for token in earlier if token.text in BRACKETS)

    def _get_text(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def _is_sent(self, place: int) -> bool:
        """Match "the attached photo", or with an action on it "a photo that I uploaded"."""
        groups = self.tokens[place].groups
        is_image = "image" in groups
        marked = place if "sent" in groups else self._find_before(place, 2 * WORD, "sent")
        if marked >= 0:
            is_any = self._find_before(marked, 0, "a") >= 0  # "a file with an attached photo"
            is_plain = is_image and not is_any
            return is_plain or self._is_definite(marked) or self._is_used(marked, *USED)
        if is_image and self._find_after(place, 0, "below") >= 0:
            return self._is_used(place, "use", "edit")
        if (marked := self._find_after(place, 2 * WORD, "sent")) < 0:
            return False
        # "Photo attached: ...", "Reference image attached"
        is_begun = place == 0 or self._find_marked(place, "reference", "referenced") == 0
        is_title = is_begun and self._get_text(marked + 1) in ("", ":")
        conditions = (self._is_definite(place) or is_title, self._is_used(place, *USED))
        return any(conditions) if is_image else all(conditions)

    def _is_to_upload(self, place: int) -> bool:
        """Match blanks such as "[upload image]", "[character image]" or "[image 1]"."""
        if "image" not in self.tokens[place].groups or not self._is_bracketed(place):
            return False
        if self._get_text(place + 1) in NUMBERS:
            return self._get_text(place + 2) in BRACKETS.values()
        is_closed = self._get_text(place + 1) in BRACKETS.values()
        upload = self._find_before(place, CLOSE, "upload")
        return upload >= 0 or (is_closed and self._find_before(place, 0, "who") >= 0)

    def _is_reference(self, place: int) -> bool:
        """Match "the reference image", or with an action on it "reference image"."""
        if (marked := self._find_marked(place, "reference", "referenced")) < 0:
            return False
        is_in = self._find_before(marked, 0, "in") >= 0
        is_taken = is_in or self._get_text(place + 1) in PARTICLES
        return is_taken or self._is_definite(marked) or self._is_used(marked, *USED)

    def _is_original(self, place: int) -> bool:
        """Match "use the original photo", but not "follow the original design"."""
        use_groups = USED if "image" in self.tokens[place].groups else CHANGED
        marked = self._find_marked(place, "original", "original")
        return marked >= 0 and self._is_used(marked, *use_groups)

    def _is_owned(self, place: int) -> bool:
        """Match "my photo", "use my face", "here is a photo"."""
        if "image" in self.tokens[place].groups and self._is(place, 4 * WORD, "here"):
            return True
        is_mine = self._is(place, 2 * WORD, "mine")
        return is_mine and ("image" in self.tokens[place].groups or self._is_used(place, *USED))

    def _is_pointed_at(self, place: int) -> bool:
        """Match "use this photo", or "turn this person" where no person was mentioned before."""
        groups, follows = self.tokens[place].groups, self._get_text(place + 1)
        if "image" in groups:
            is_object = follows in PARTICLES and self._get_text(place + 2) != TOPIC
            is_this = self._is(place, 2 * WORD, "this")
            return is_this and (is_object or self._is_used(place, *USED, "make"))
        # "Draw this character: a fox"
        if "who" not in groups or not self.is_first or follows == ":":
            return False
        pointer = self._find_before(place, CLOSE, "this")
        if pointer < 0:
            return False
        is_of = "in" in self.tokens[pointer].groups or self._find_before(pointer, 0, "in") >= 0
        return is_of or follows in PARTICLES or self._is_used(place, *USED, "make")

    def _is_this_used(self, place: int) -> bool:
        """Match a beginning such as "Annotate this meal", which needs an image of it."""
        if not self.is_first or self._find_after(place, CLOSE, "told") >= 0:
            return False
        if self.tokens[place].is_spaced:
            is_told = ":" in (self._get_text(place + 1), self._get_text(place + 2))
            is_direct = 0 <= self._find_before(place, 0, "use", "edit", "keep", "put") <= 1
            inside = self._find_before(place, 0, "in")  # "Translate the text on this poster"
            is_changed = inside >= 0 and self._find_before(inside, 4 * WORD, "edit") == 0
            return not is_told and (is_direct or is_changed)
        return place == 0 and self._find_after(place, 3 * FAR, "edit", "put", "use") >= 0

    def _is_changed(self, place: int) -> bool:
        """Match "edit the image", "remove the cars from the image"."""
        if "image" not in self.tokens[place].groups:
            return False
        if not self.tokens[place].is_spaced:
            is_object = self._find_before(place, 0, "object") >= 0
            is_whole = place == 0 and self._find_after(place, 0, "in") >= 0
            return (is_object or is_whole) and self._find_after(place, FAR, "edit") >= 0
        if (article := self._find_article(place)) < 0 or self._get_text(place + 1) in OF:
            return False
        inside = self._find_inside(article)
        is_changed = self._find_before(article, 0, "edit") >= 0
        return is_changed or (inside >= 0 and self._find_before(inside, 6 * WORD, "edit") >= 0)

    def _is_subject_used(self, place: int) -> bool:
        """Match "the person in the photo" where something is done with the person."""
        if "image" not in self.tokens[place].groups:
            return False
        if not self.tokens[place].is_spaced:
            inside = self._find_after(place, 0, "in")
            subject = self._find_after(place, 0, "who")
            subject = subject if inside < 0 else self._find_after(inside, CLOSE, "who", "trait")
            return subject >= 0 and self._is_used(place, *USED, "make", "object")
        inside = self._find_inside(self._find_article(place))
        if inside < 0 and self._get_text(place) in ("image", "photo", "picture"):
            inside = self._find_before(place, 0, "in")
        subject = self._find_before(inside, CLOSE, "who", "trait") if inside >= 0 else -1
        if subject < 0 or self._get_text(inside) in OF or self._get_text(place + 1) in OF:
            return False
        if "who" not in self.tokens[subject].groups:
            return self._is_used(subject, "use", "edit")
        scene = self._find_before(subject, 2 * WORD, "in")  # a version of the person in the photo
        is_taken = "from" in self.tokens[inside].groups or scene >= 0
        return is_taken or self._is_used(subject, *USED, "make")

    def _find_article(self, place: int) -> int:
        is_whole = "the" in self.tokens[place].groups
        return place if is_whole else self._find_before(place, 0, "the", "this")

    def _find_inside(self, article: int) -> int:
        """Return the token that says "in the image", which in some languages is the article."""
        if article < 0:
            return -1
        is_both = "in" in self.tokens[article].groups
        return article if is_both else self._find_before(article, 0, "in")

    def _is_changed_first(self, place: int) -> bool:
        """Match a prompt that begins by changing a person nobody has described."""
        if not self.is_first or "who" not in self.tokens[place].groups:
            return False
        if self.tokens[place].is_spaced:
            is_certain = self._is(place, CLOSE, *DEFINITE)
            return is_certain and self._find_before(place, 2 * WORD, "edit") == 0
        is_object = self._find_before(place, FAR, "object") >= 0
        return is_object and self._find_after(place, FAR, "edit") >= 0

    def _is_numbered(self, place: int) -> bool:
        """Match "the second image", "Image 2"; not a list such as "Image 2: a tree"."""
        groups = self.tokens[place].groups
        has_number = "numbered" in groups or self._get_text(place + 1) in NUMBERS
        first = self._find_before(place, CLOSE, "first") if "image" in groups else -1
        if not (first >= 0 or (has_number and groups & {"image", "figure", "numbered"})):
            return False
        start = first if first >= 0 else place
        if not self.tokens[place].is_spaced:
            noun = place if "numbered" in groups else place + 1
            is_object = self._get_text(noun + 1) in PARTICLES and self._get_text(noun + 2) != TOPIC
            is_inside = self._find_after(noun, 0, "in") >= 0 if noun < len(self.tokens) else False
            return is_object or is_inside or self._is_used(start, *USED, "object")
        if self._get_text(place + 2) == ":":
            return False
        preceding = self._find_before(start, CLOSE, "in", *USED)
        if preceding < 0:
            return self.has(*USED) and len(self._collect_numbers()) > 1
        return self._is_used(start, *USED) or self._find_before(preceding, 0, *NOUNS) >= 0

    def _collect_numbers(self) -> set[str]:
        """Collect the numbers given to images in the clause."""
        names = {"image", "figure"}
        nouns = (place for place, token in enumerate(self.tokens) if token.groups & names)
        return {text for place in nouns if (text := self._get_text(place + 1)) in NUMBERS}

    def _is_matched(self, place: int) -> bool:
        """Match "identical to the reference", unless a word says to what."""
        follows = self._get_text(place + 1)
        is_end = not follows[:1].isalpha()
        return is_end and self._find_before(place, CLOSE, "match", "from", "use") >= 0

    def _is_me_changed(self, place: int) -> bool:
        """Match "turn me into a baker"."""
        is_object = self._find_before(place, 0, "object") >= 0
        is_changed = "edit" in self.tokens[place].groups or self._find_near(place, 0, "edit") >= 0
        return is_changed or (is_object and self._find_after(place, FAR, "edit") >= 0)


RULES: tuple[Callable[[Clause, int], bool], ...] = (
    Clause._is_sent,
    Clause._is_to_upload,
    Clause._is_reference,
    Clause._is_original,
    Clause._is_owned,
    Clause._is_pointed_at,
    Clause._is_changed,
    Clause._is_subject_used,
    Clause._is_changed_first,
    Clause._is_numbered,
)


def needs_image(prompt: str) -> bool:
    """Return whether a prompt speaks of an image that its writer gave with it.

    Silent where it may be the image that is asked for: "the image is dark", "in this photo"; and
    where it is quoted, as the words of a sign are.
    """
    is_quoted = UNQUOTED.fullmatch(prompt) or QUOTED.fullmatch(prompt.strip())
    unquoted = prompt if is_quoted or JSON_KEY.search(prompt) else QUOTED.sub(" ", prompt)
    return any(clause.needs_image() for clause in _split_clauses(unquoted))


def asks_for_image(words: str) -> bool:
    """Return whether the words beside a prompt ask the reader to supply an image."""
    return any(clause.asks_for_image() for clause in _split_clauses(words))


def mentions_image(prompt: str) -> bool:
    """Return whether a prompt mentions any image, given or asked for."""
    return any(clause.has("image", "sent", "numbered") for clause in _split_clauses(prompt))


@lru_cache(maxsize=2048)  # of a batch: what a stage asks about a row, its outcome asks again
def _split_clauses(text: str) -> tuple[Clause, ...]:
    clauses, width = list[Clause](), 0
    for piece in CLAUSE_END.split(LETTERED_IMAGE.sub(r"\1 1", text[:MAX_PROMPT_CHARACTERS])):
        if not (tokens := _tokenize(JOINED_NUMBER.sub(" ", _normalize(piece)))):
            continue
        for first in range(0, len(tokens), MAX_CLAUSE_TOKENS):
            part = tokens[first : first + MAX_CLAUSE_TOKENS]
            clauses.append(Clause(part, is_first=width + part[0].start <= INTRODUCTION_WIDTH))
        width += tokens[-1].end
    return tuple(clauses)
