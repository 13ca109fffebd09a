"""The notations in which people leave a blank in a prompt, and what only looks like one."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from echo_hf.multimodal.answers import LONGEST_PLACEHOLDER
from echo_hf.multimodal.slot_words import is_slot, stands_for_a_picture, words

INSIDE = "{1,196}"
LONGEST_DEFAULT = 900
VALUE = f"{{0,{LONGEST_DEFAULT}}}"
QUOTED = rf"(?:\\?\"[^\"\n]{VALUE}\"|'[^'\n]{VALUE}'|“[^”\n]{VALUE}”)"
ATTRIBUTE = rf"\s{{1,4}}\w{{1,20}}\s{{0,4}}=\s{{0,4}}{QUOTED}"
# Its values may hold braces, and be longer than a name.
DECLARED = rf"\{{\s{{0,4}}(?i:argument)(?:{ATTRIBUTE}){{1,4}}\s{{0,4}}\}}"
NOTHING = r"(?:[ \t\u3000]{0,60}|[ \t]?(?:\.{3,6}|…{1,2})[ \t]?)"
EMPTY = re.compile(
    rf"\[{NOTHING}\]|［{NOTHING}］|【{NOTHING}】|〔{NOTHING}〕|〖{NOTHING}〗|\{{[ \t]{{0,60}}\}}"
    r"|\([ \t\u3000]{2,60}\)|（[ \t\u3000]{0,60}）"
)
# No alternative can match across a line, or more than a placeholder may have.
CANDIDATE = re.compile(
    rf"(?P<empty>{EMPTY.pattern})|(?P<declared>{DECLARED})"
    rf"|(?P<square>\[\[[^\[\]\n]{INSIDE}\]\]|\[[^\[\]\n]{INSIDE}\]|［[^［］\n]{INSIDE}］)"
    rf"|(?P<lens>【[^【】\n]{INSIDE}】|〔[^〔〕\n]{INSIDE}〕|〖[^〖〗\n]{INSIDE}〗)"
    rf"|(?P<curly>\$?\{{\{{[^{{}}\n]{INSIDE}\}}\}}|\$?\{{[^{{}}\n]{INSIDE}\}}|｛[^｛｝\n]{INSIDE}｝)"
    r"|(?P<angle>(?<![A-Za-z0-9<])<<?[^<>\n]{1,60}>>?|＜[^＜＞\n]{1,60}＞)"
    r"|(?P<round>\([^()\n]{1,60}\)|（[^（）\n]{1,60}）)"
    r"|(?P<line>(?<!_)_{2,60}(?!_)|(?<!＿)＿{2,60}(?!＿))"
    r"|(?P<circles>(?<![〇○◯●])[〇○◯●]{2,8}(?![〇○◯●]))"
)
NESTING = frozenset({"empty", "declared", "square", "lens", "curly", "line", "circles"})
MARKS = "[]［］【】〔〕〖〗{}｛｝<>＜＞()（）_＿〇○◯● \t"
MOST_WORDS = 24
ARGUMENT = re.compile(r"\{\s{0,4}argument\b", re.IGNORECASE)
TAG_NAME = re.compile(r"[\w-]+")
# Elements of HTML that nobody means as a word of a prompt.
MARKUP = words(
    """a b br body button code div dl dt dd em form h1 h2 h3 h4 h5 h6 head hr html i iframe
    img input li link lora meta ol option p pre s script select span strong sub sup svg table tbody
    td tfoot th thead tr u ul"""
)
BARE_WORDS = re.compile(r"[^\W\d_][^=@|&\"\\]*")
ADDRESS = re.compile(r"\w:\S")
LIST_OF_QUOTED = re.compile(r"\s*(?:'[^']*'|“[^“”]*”)(?:\s*,\s*(?:'[^']*'|“[^“”]*”))+\s*,?\s*")
QUOTED_KEY = re.compile(r"[\"'“”][^\"'“”:]{0,80}[\"'“”]\s{0,5}:")
BARE_KEY = re.compile(r"(?:^|,)\s{0,5}[\w$-]{1,40}\s{0,5}:(?P<data>\s{0,5}[\"'“\d])?")
# Of a link; "[PET](s)" is none.
TARGET = re.compile(r"\((?:https?:|mailto:|www\.|[/#.]|[\w-]{1,60}\.\w)")
WEIGHT = re.compile(r":\d{0,3}\.?\d{1,3}\s{0,3}$")
BULLETS = " \t#>*-–•·\"'“`"
# What stands on a line of code, though some of it may stand in a sentence.
CODE = re.compile(
    r"[;=]|->|::|[\"']\s?:|\b(?:class|struct|impl|interface|enum|fn|def|func|function|return|const"
    r"|let|var|void|catch|import|export)\b"
)
BEFORE_A_WORD = re.compile(r"(?:[^\W\d_],? |[^\W\d_\x00-\x7f])$")
AFTER_A_WORD = re.compile(r"\s|[.,!?](?!\w)|[。，！？、]|[^\W\d_\x00-\x7f]|$")
DATA_BEFORE = re.compile(r"(?:[\"']\s?:|[=\[])\s?$")
FACES = frozenset("^<>=;@~*/\\|-")
NEARBY = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a prompt that is written as a blank may be.

    Attributes:
        prompt: The whole prompt.
        start: Where the piece begins.
        end: Where what follows it begins.
        notation: Which notation it is in.
        closed: The names of all tags that are closed in the prompt.
    """

    prompt: str
    start: int
    end: int
    notation: str
    closed: frozenset[str]

    @property
    def text(self) -> str:
        """The piece with its marks."""
        return self.prompt[self.start : self.end]

    @property
    def inner(self) -> str:
        """The piece without its marks."""
        return inside(self.text)

    @property
    def body(self) -> str:
        """The piece without its outermost marks."""
        return self.text.removeprefix("$")[1:-1]

    @property
    def before(self) -> str:
        """The character before the piece, if any."""
        return self.prompt[max(0, self.start - 1) : self.start]

    @property
    def after(self) -> str:
        """The character after the piece, if any."""
        return self.prompt[self.end : self.end + 1]

    @property
    def begins_line(self) -> bool:
        """Whether nothing but bullets stands before it on its line."""
        return begins_line(self.prompt, self.start)


def begins_line(prompt: str, at: int) -> bool:
    """Whether nothing but bullets stands before a place on its line."""
    start = max(0, at - NEARBY)
    line = prompt.rfind("\n", start, at) + 1
    return (line > 0 or start == 0) and not prompt[line:at].strip(BULLETS)


def inside(placeholder: str) -> str:
    """What stands between the marks of a placeholder.

    Example:
        >>> inside("[[subject]]"), inside("${ city }"), inside("___")
        ('subject', 'city', '')
    """
    return placeholder.removeprefix("$").strip(MARKS)


def is_blank(piece: Candidate) -> bool:
    """Whether a piece of a prompt holds the place of something else.

    Args:
        piece: What is written as a blank may be.

    Returns:
        False for links, data, tags, emoticons, remarks and rules across the page.
    """
    return TESTS[piece.notation](piece)


def _empty(piece: Candidate) -> bool:
    sign, dots = piece.text[0], piece.body.strip()
    if dots:
        return sign != "[" or _leaves_out(piece)
    if sign in "[［" and piece.begins_line:
        return False  # a box to tick
    if sign in "{(" or piece.text == "[]":
        return _is_between_words(piece)
    return True


def _leaves_out(piece: Candidate) -> bool:
    before = piece.prompt[max(0, piece.start - NEARBY) : piece.start]
    link = piece.before == "!" or TARGET.match(piece.prompt, piece.end)
    return not (link or piece.before.isalnum() or DATA_BEFORE.search(before))


def _is_between_words(piece: Candidate) -> bool:
    before = piece.prompt[max(0, piece.start - NEARBY) : piece.start].rpartition("\n")[2]
    after = piece.prompt[piece.end : piece.end + NEARBY].partition("\n")[0]
    words = BEFORE_A_WORD.search(before) and AFTER_A_WORD.match(after)
    return bool(words) and not (CODE.search(before) or CODE.search(after))


def _declared(piece: Candidate) -> bool:
    return len(piece.text) <= LONGEST_PLACEHOLDER


def _square(piece: Candidate) -> bool:
    if piece.inner in {"", "x", "X"} and piece.begins_line:
        return False  # a box to tick
    if not piece.inner:
        return not piece.text.strip("[]［］ \t")
    body = piece.body
    link = piece.before == "!" or TARGET.match(piece.prompt, piece.end)
    return not (link or WEIGHT.search(body) or _is_list(piece)) and _enclosed(piece)


def _lens(piece: Candidate) -> bool:
    return _enclosed(piece)


def _curly(piece: Candidate) -> bool:
    body = piece.body
    if ARGUMENT.match(piece.text):
        return True
    keys = list(BARE_KEY.finditer(body))
    data = len(keys) > 1 or any(key["data"] for key in keys) or QUOTED_KEY.search(body)
    return not data and ";" not in body and _enclosed(piece)


def _angle(piece: Candidate) -> bool:
    inner = piece.inner
    name = TAG_NAME.match(inner)
    tag = name is not None and name.group().lower() in MARKUP
    bare = BARE_WORDS.fullmatch(inner) and len(inner.split()) <= 6 and not ADDRESS.search(inner)
    spaced = piece.text[1].isspace() or piece.text[-2].isspace()
    return bool(bare) and not spaced and not tag and _enclosed(piece)


def _round(piece: Candidate) -> bool:
    # 颜色（Colors） says the same again in another script.
    letter = piece.text[1]
    glosses = (
        piece.before.isalpha() and letter.isalpha() and piece.before.isascii() != letter.isascii()
    )
    return not glosses and is_slot(piece.inner)


def _line(piece: Candidate) -> bool:
    before, after = piece.before, piece.after
    if before and after and ((before == after and _is_latin(before)) or {before, after} <= FACES):
        return False
    if len(piece.text) == 2:
        return not (_is_latin(before) or _is_latin(after))
    return not (_is_emphasis(piece) or _is_rule(piece))


def _is_emphasis(piece: Candidate) -> bool:
    """Whether it is one end of ___very bold___."""
    opens = _is_latin(piece.after) and piece.prompt.find(piece.text, piece.end) >= 0
    return opens or (
        _is_latin(piece.before) and piece.prompt.rfind(piece.text, 0, piece.start) >= 0
    )


def _is_rule(piece: Candidate) -> bool:
    rest = piece.prompt[piece.end : piece.end + NEARBY].partition("\n")[0]
    return piece.begins_line and not rest.strip(" \t")


def _circles(_: Candidate) -> bool:
    return True


def _enclosed(piece: Candidate) -> bool:
    inner = piece.inner
    return (
        _says_something(inner)
        and not stands_for_a_picture(inner)
        and not _is_tag(piece)
        and not _holds_others(piece)
    )


def _says_something(inner: str) -> bool:
    # A pictograph counts: many templates show one as an example.
    signs = any(unicodedata.category(one) == "So" or one.isalpha() for one in inner)
    return signs and len(inner.split()) <= MOST_WORDS


def _is_tag(piece: Candidate) -> bool:
    if piece.text[1] in "/!?|^" or piece.before in {"\x1b", "\\"}:
        return True
    name = TAG_NAME.match(piece.inner)
    return name is not None and name.group().lower() in piece.closed


def _holds_others(piece: Candidate) -> bool:
    body = piece.body.strip()
    if CANDIDATE.fullmatch(body):
        return False
    return any(match.lastgroup in NESTING for match in CANDIDATE.finditer(body))


def _is_list(piece: Candidate) -> bool:
    if LIST_OF_QUOTED.fullmatch(piece.body):
        return True
    try:
        items = json.loads(piece.text)
    except (ValueError, RecursionError):
        return False
    before = piece.prompt[max(0, piece.start - NEARBY) : piece.start].rstrip()[-1:]
    return len(items) != 1 or not isinstance(items[0], str) or before in {"", ":", "=", ",", "["}


def _is_latin(letter: str) -> bool:
    return letter.isalnum() and letter < "\u0250"


TESTS: Mapping[str, Callable[[Candidate], bool]] = {
    "empty": _empty,
    "declared": _declared,
    "square": _square,
    "lens": _lens,
    "curly": _curly,
    "angle": _angle,
    "round": _round,
    "line": _line,
    "circles": _circles,
}
