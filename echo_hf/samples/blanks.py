"""Find the blanks of a template in every notation, and fill them, by rules on the text alone."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from echo_hf._infra.text import MARK


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What a template leaves open. Words about images themselves, such as "background" or "photo",
# are left out: in parentheses they are explanations.
SLOT_WORDS = word_set(
    """object subject word words name names city country place location animal character person
    color colour colors colours style theme text title slogan brand product food dish fruit flower
    item thing noun verb adjective adverb number year date age profession job occupation emoji
    quote phrase sentence letter landmark sport season weather month team movie song celebrity
    breed pet vehicle material emotion mood topic hobby activity
    objeto sujeto palabra nombre ciudad país lugar personaje persona estilo tema texto
    título marca producto comida fruta flor cosa
    objet sujet mot nom ville pays lieu personnage personne couleur thème texte titre marque
    produit plat fleur chose
    objekt gegenstand motiv wort stadt land ort tier figur farbe stil thema titel marke produkt
    essen obst blume ding beruf
    sujeito palavra nome cidade personagem pessoa cor estilo
    oggetto soggetto parola città paese luogo animale personaggio persona colore stile testo titolo
    marchio prodotto cibo frutta fiore"""
)
# Followed by a digit these are values, not blanks: "age 7", "year 2".
MEASURE_WORDS = word_set("age number year date letter season team month")
FILLER_WORDS = word_set(
    """a an the of or and your any some insert enter choose pick type here this
    tu su inserta aquí el la de del o y votre ton ta insérez ici le une un ou et
    dein deine ihr hier der die das oder und seu sua insira aqui tua qui il lo"""
)
INVITATION_WORDS = word_set("insert enter choose pick type your")
MAX_PLACEHOLDER_CHARACTERS = 1000  # with a default value
MAX_SLOT_WORDS, MAX_INVITED_WORDS = 4, 6
WORD = re.compile(r"[^\W\d_]+")
ONE_DIGIT = re.compile(r"\d")
NOT_A_SLOT = re.compile(r"[^\w\s/'’-]|\d\d|_")
HAN_SLOT = re.compile(
    "(?:你的|您的|任意|任何|某个|某種|某种|请填写?|填写?|好きな|お好きな|任意の|あなたの)?"
    "(?:物体|物品|主体|主题|主題|对象|對象|词语?|文字|名字|姓名|名称|城市|国家|國家|地点|地點|动物|動物|角色|人物"
    "|颜色|顏色|风格|風格|标题|標題|品牌|产品|產品|食物|水果|花|职业|職業|年份|季节|天气"
    "|もの|物|被写体|言葉|単語|名前|都市|国|場所|キャラクター|キャラ|色|スタイル|テキスト|タイトル|ブランド|商品|食べ物"
    "|果物|職業)(?:名称?|名)?[0-9一二三１２３A-DＡ-Ｄ]?"
)
IMAGE_WORD = r"(?:images?|photos?|pictures?|pics?|img|photographs?|selfies?|screenshots?|file)"
SUPPLIED = (
    r"(?:attach(?:ed|ment)?|upload(?:ed)?|reference|ref|input|original|source|provided|your|my)"
)
SUPPLIED_IMAGE = re.compile(
    rf"{SUPPLIED}\s(?:\w{{1,12}}\s)?{IMAGE_WORD}\b|^(?:the\s|this\s)?{IMAGE_WORD}(?:\s?[1-9])?$"
    rf"|{IMAGE_WORD}\s(?:attached|uploaded|provided|here)\b|^{SUPPLIED}$"
    r"|(?:参考|參考|上传|上傳|附件|原始|输入|提供)的?(?:图|圖|照|相片)|^(?:图片|圖片|照片|附图|附圖|原图|画像|写真)[1-9]?$"
    r"|(?:添付|参考|元|入力)の?(?:画像|写真)"
)
ALTERNATIVE = re.compile(r"/|\bor\b|或|または|、|\|")
INNER_LENGTH = "{1,196}"
MAX_DEFAULT_CHARACTERS = 900
VALUE_LENGTH = f"{{0,{MAX_DEFAULT_CHARACTERS}}}"
QUOTED_VALUE = rf"(?:\\?\"[^\"\n]{VALUE_LENGTH}\"|'[^'\n]{VALUE_LENGTH}'|“[^”\n]{VALUE_LENGTH}”)"
ARGUMENT_ATTRIBUTE = rf"\s{{1,4}}\w{{1,20}}\s{{0,4}}=\s{{0,4}}{QUOTED_VALUE}"
# Its values may hold braces, and be longer than a name.
DECLARED_ARGUMENT = rf"\{{\s{{0,4}}(?i:argument)(?:{ARGUMENT_ATTRIBUTE}){{1,4}}\s{{0,4}}\}}"
EMPTY_INNER = r"(?:[ \t\u3000]{0,60}|[ \t]?(?:\.{3,6}|…{1,2})[ \t]?)"
EMPTY_BLANK = re.compile(
    rf"\[{EMPTY_INNER}\]|［{EMPTY_INNER}］|【{EMPTY_INNER}】|〔{EMPTY_INNER}〕|〖{EMPTY_INNER}〗"
    r"|\{[ \t]{0,60}\}"
    r"|\([ \t\u3000]{2,60}\)|（[ \t\u3000]{0,60}）"
)
# All alternatives are bounded, and none matches across lines.
CANDIDATE = re.compile(
    rf"(?P<empty>{EMPTY_BLANK.pattern})|(?P<declared>{DECLARED_ARGUMENT})"
    rf"|(?P<square>\[\[[^\[\]\n]{INNER_LENGTH}\]\]|\[[^\[\]\n]{INNER_LENGTH}\]|［[^［］\n]{INNER_LENGTH}］)"
    rf"|(?P<lens>【[^【】\n]{INNER_LENGTH}】|〔[^〔〕\n]{INNER_LENGTH}〕|〖[^〖〗\n]{INNER_LENGTH}〗)"
    rf"|(?P<curly>\$?\{{\{{[^{{}}\n]{INNER_LENGTH}\}}\}}|\$?\{{[^{{}}\n]{INNER_LENGTH}\}}|｛[^｛｝\n]{INNER_LENGTH}｝)"
    r"|(?P<angle>(?<![A-Za-z0-9<])<<?[^<>\n]{1,60}>>?|＜[^＜＞\n]{1,60}＞)"
    r"|(?P<round>\([^()\n]{1,60}\)|（[^（）\n]{1,60}）)"
    r"|(?P<line>(?<!_)_{2,60}(?!_)|(?<!＿)＿{2,60}(?!＿))"
    r"|(?P<circles>(?<![〇○◯●])[〇○◯●]{2,8}(?![〇○◯●]))"
)
NESTING_NOTATIONS = frozenset({"empty", "declared", "square", "lens", "curly", "line", "circles"})
MARK_CHARACTERS = "[]［］【】〔〕〖〗{}｛｝<>＜＞()（）_＿〇○◯● \t"
MAX_INNER_WORDS = 24
ARGUMENT = re.compile(r"\{\s{0,4}argument\b", re.IGNORECASE)
TAG_NAME = re.compile(r"[\w-]+")
# HTML elements whose names are not words of prompts.
HTML_ELEMENTS = word_set(
    """a b br body button code div dl dt dd em form h1 h2 h3 h4 h5 h6 head hr html i iframe
    img input li link lora meta ol option p pre s script select span strong sub sup svg table tbody
    td tfoot th thead tr u ul"""
)
BARE_WORDS = re.compile(r"[^\W\d_][^=@|&\"\\]*")
ADDRESS = re.compile(r"\w:\S")
LIST_OF_QUOTED = re.compile(r"\s*(?:'[^']*'|“[^“”]*”)(?:\s*,\s*(?:'[^']*'|“[^“”]*”))+\s*,?\s*")
QUOTED_KEY = re.compile(r"[\"'“”][^\"'“”:]{0,80}[\"'“”]\s{0,5}:")
BARE_KEY = re.compile(r"(?:^|,)\s{0,5}[\w$-]{1,40}\s{0,5}:(?P<data>\s{0,5}[\"'“\d])?")
# The target of a Markdown link; "[PET](s)" has none.
LINK_TARGET = re.compile(r"\((?:https?:|mailto:|www\.|[/#.]|[\w-]{1,60}\.\w)")
PROMPT_WEIGHT = re.compile(r":\d{0,3}\.?\d{1,3}\s{0,3}$")
BULLETS = " \t#>*-–•·\"'“`"
# Signs of a line of code; some of them also occur in sentences.
CODE_SIGN = re.compile(
    r"[;=]|->|::|[\"']\s?:|\b(?:class|struct|impl|interface|enum|fn|def|func|function|return|const"
    r"|let|var|void|catch|import|export)\b"
)
BEFORE_A_WORD = re.compile(r"(?:[^\W\d_],? |[^\W\d_\x00-\x7f])$")
AFTER_A_WORD = re.compile(r"\s|[.,!?](?!\w)|[。，！？、]|[^\W\d_\x00-\x7f]|$")
DATA_BEFORE = re.compile(r"(?:[\"']\s?:|[=\[])\s?$")
EMOTICONS = frozenset("^<>=;@~*/\\|-")
CONTEXT_CHARACTERS = 60
CLOSING_TAG = re.compile(r"(?:</|\[/)\s{0,4}([\w-]{1,40})")
COLON = re.compile(r"[*_`]{0,3}\s?[:：]")
BRACKETED = {"[": re.compile(r"\[[^\[\]\n]{1,60}\]"), "【": re.compile(r"【[^【】\n]{1,60}】")}
LAZY_VALUE_LENGTH = f"{{1,{MAX_DEFAULT_CHARACTERS}}}?"
ATTRIBUTE = (
    rf"\s{{0,4}}=\s{{0,4}}\\?(?:\"([^\"\n]{LAZY_VALUE_LENGTH})\\?\""
    rf"|'([^'\n]{LAZY_VALUE_LENGTH})'|“([^”\n]{LAZY_VALUE_LENGTH})”)"
)
NAME_ATTRIBUTE = re.compile("name" + ATTRIBUTE)
HINT = re.compile(r"\s?[:：,，;；(（].*", re.DOTALL)
# A part of a run of one of these is not a placeholder.
RUN_SIGNS = frozenset("_＿〇○◯●")
LETTER = r"[A-Za-z0-9\u00c0-\u024f]"
# YOUR CITY as a whole run of capitals; CITY_NAME.
CAPITALS = re.compile(r"[A-Z]{2,20}(?: [A-Z]{1,20}){0,5}")
VARIABLE = re.compile(r"[A-Z]{2,20}(?:_[A-Z0-9]{1,20}){1,5}")
UNDERSCORES = re.compile(r"_{2,60}|＿{2,60}")


@dataclass(frozen=True, slots=True)
class BlankCandidate:
    """A part of a prompt that has the form of a blank."""

    prompt: str
    start: int
    end: int
    notation: str
    closed: frozenset[str]

    @property
    def text(self) -> str:
        return self.prompt[self.start : self.end]

    @property
    def inner(self) -> str:
        return strip_marks(self.text)

    @property
    def body(self) -> str:
        """The text without its outermost marks."""
        return self.text.removeprefix("$")[1:-1]

    @property
    def earlier(self) -> str:
        """The prompt just before it, up to a few words."""
        return self.prompt[max(0, self.start - CONTEXT_CHARACTERS) : self.start]

    @property
    def later(self) -> str:
        """The rest of its line just behind it."""
        return self.prompt[self.end : self.end + CONTEXT_CHARACTERS].partition("\n")[0]

    @property
    def begins_line(self) -> bool:
        return begins_line(self.prompt, self.start)

    @property
    def is_link(self) -> bool:
        return self.earlier.endswith("!") or LINK_TARGET.match(self.prompt, self.end) is not None

    @property
    def is_box(self) -> bool:
        return self.inner in {"", "x", "X"} and self.begins_line


def begins_line(prompt: str, at: int) -> bool:
    """Return whether only bullets stand before a position on its line."""
    start = max(0, at - CONTEXT_CHARACTERS)
    line = prompt.rfind("\n", start, at) + 1
    return (line > 0 or start == 0) and not prompt[line:at].strip(BULLETS)


def strip_marks(placeholder: str) -> str:
    return placeholder.removeprefix("$").strip(MARK_CHARACTERS)


def _is_empty_blank(piece: BlankCandidate) -> bool:
    sign = piece.text[0]
    if piece.body.strip():  # dots
        head = piece.earlier
        is_text = piece.is_link or head[-1:].isalnum() or DATA_BEFORE.search(head)
        return sign != "[" or not is_text
    if sign in "[［" and piece.begins_line:
        return False  # a box to tick
    if sign not in "{(" and piece.text != "[]":
        return True
    head, tail = piece.earlier.rpartition("\n")[2], piece.later
    is_between = BEFORE_A_WORD.search(head) and AFTER_A_WORD.match(tail)
    return bool(is_between) and not (CODE_SIGN.search(head) or CODE_SIGN.search(tail))


def _is_square_blank(piece: BlankCandidate) -> bool:
    if piece.is_box or not piece.inner:
        return not (piece.is_box or piece.text.strip("[]［］ \t"))
    if piece.is_link or PROMPT_WEIGHT.search(piece.body) or _is_list(piece):
        return False
    return _is_enclosed_blank(piece)


def _is_list(piece: BlankCandidate) -> bool:
    if LIST_OF_QUOTED.fullmatch(piece.body):
        return True
    try:
        items = json.loads(piece.text)
    except (ValueError, RecursionError):
        return False
    head = piece.earlier.rstrip()[-1:]
    return len(items) != 1 or not isinstance(items[0], str) or head in {"", ":", "=", ",", "["}


def _is_curly_blank(piece: BlankCandidate) -> bool:
    if ARGUMENT.match(piece.text):
        return True
    keys = list(BARE_KEY.finditer(piece.body))
    data = len(keys) > 1 or any(key["data"] for key in keys) or QUOTED_KEY.search(piece.body)
    return not data and ";" not in piece.body and _is_enclosed_blank(piece)


def _is_angle_blank(piece: BlankCandidate) -> bool:
    inner = piece.inner
    name = TAG_NAME.match(inner)
    tag = name is not None and name.group().lower() in HTML_ELEMENTS
    bare = BARE_WORDS.fullmatch(inner) and len(inner.split()) <= 6 and not ADDRESS.search(inner)
    spaced = piece.text[1].isspace() or piece.text[-2].isspace()
    return bool(bare) and not spaced and not tag and _is_enclosed_blank(piece)


def _is_round_blank(piece: BlankCandidate) -> bool:
    """Return whether it is the place of a word; 颜色（Colors） only repeats a word."""
    head, letter = piece.earlier[-1:], piece.text[1]
    repeats = head.isalpha() and letter.isalpha() and head.isascii() != letter.isascii()
    return not repeats and is_slot(piece.inner)


def is_slot(inner: str) -> bool:
    """Return whether a name without marks is one that a template leaves open."""
    inner = inner.strip().lower()
    if HAN_SLOT.fullmatch(inner):
        return True
    if NOT_A_SLOT.search(inner):
        return False
    words = WORD.findall(inner)
    slot_words = [word for word in words if word in SLOT_WORDS]
    if not slot_words or (ONE_DIGIT.search(inner) and not MEASURE_WORDS.isdisjoint(slot_words)):
        return False
    if words[0] in INVITATION_WORDS:
        return len(words) <= MAX_INVITED_WORDS
    return len(words) <= MAX_SLOT_WORDS and all(word in SLOT_WORDS | FILLER_WORDS for word in words)


def _is_line_blank(piece: BlankCandidate) -> bool:
    prompt = piece.prompt
    head, tail = piece.earlier[-1:], prompt[piece.end : piece.end + 1]
    if head and tail and ((head == tail and _is_latin(head)) or {head, tail} <= EMOTICONS):
        return False
    if len(piece.text) == 2:
        return not (_is_latin(head) or _is_latin(tail))
    # One end of emphasis, as in ___very bold___.
    opens = _is_latin(tail) and prompt.find(piece.text, piece.end) >= 0
    closes = _is_latin(head) and prompt.rfind(piece.text, 0, piece.start) >= 0
    is_rule = piece.begins_line and not piece.later.strip(" \t")
    return not (opens or closes or is_rule)


def _is_latin(letter: str) -> bool:
    return letter.isalnum() and letter < "\u0250"


def _is_enclosed_blank(piece: BlankCandidate) -> bool:
    inner = piece.inner
    # A pictograph counts as content: many templates have one as an example.
    has_content = any(unicodedata.category(sign) == "So" or sign.isalpha() for sign in inner)
    if not has_content or len(inner.split()) > MAX_INNER_WORDS:
        return False
    inner_text = inner.strip().lower()
    if SUPPLIED_IMAGE.search(inner_text) and not ALTERNATIVE.search(inner_text):
        return False  # it is the place of an image that comes with the prompt
    name = TAG_NAME.match(inner)
    is_tag = name is not None and name.group().lower() in piece.closed
    if is_tag or piece.text[1] in "/!?|^" or piece.earlier[-1:] in {"\x1b", "\\"}:
        return False
    body = piece.body.strip()
    nested = all(match.lastgroup not in NESTING_NOTATIONS for match in CANDIDATE.finditer(body))
    return nested or CANDIDATE.fullmatch(body) is not None


BLANK_TESTS: Mapping[str, Callable[[BlankCandidate], bool]] = {
    "empty": _is_empty_blank,
    "declared": lambda piece: len(piece.text) <= MAX_PLACEHOLDER_CHARACTERS,
    "square": _is_square_blank,
    "lens": _is_enclosed_blank,
    "curly": _is_curly_blank,
    "angle": _is_angle_blank,
    "round": _is_round_blank,
    "line": _is_line_blank,
    "circles": lambda _: True,
}


def find_placeholders(prompt: str) -> list[str]:
    return [prompt[start:end] for start, end in _find_blanks(prompt)]


OPENING_MARK = re.compile(r"[\[［【〔〖{｛<＜(（_＿〇○◯●]")


@lru_cache(maxsize=4096)  # needed when a model is asked, and when it has answered
def _find_blanks(prompt: str) -> tuple[tuple[int, int], ...]:
    if not OPENING_MARK.search(prompt):  # a fast path for most prompts
        return ()
    closed = frozenset(name.lower() for name in CLOSING_TAG.findall(prompt))
    headings = frozenset(mark for mark in BRACKETED if _is_only_heading(prompt, mark))
    places, at = [], 0
    while match := CANDIDATE.search(prompt, at):
        piece = BlankCandidate(prompt, *match.span(), str(match.lastgroup), closed)
        at = match.end()
        if MARK.fullmatch(piece.text):  # our own mark for shortened text
            continue
        is_heading = piece.begins_line and COLON.match(prompt, piece.end) is not None
        if BLANK_TESTS[piece.notation](piece) and piece.text[0] not in headings and not is_heading:
            places.append(match.span())
        else:
            at = match.start() + 1
    return tuple(places)


def _is_only_heading(prompt: str, mark: str) -> bool:
    """Return whether brackets are used as headings only: several, each above or before its text."""
    matches = list(BRACKETED[mark].finditer(prompt))
    if len({match.group() for match in matches}) < 2:
        return False
    return all(begins_line(prompt, match.start()) and _has_text(match, mark) for match in matches)


def _has_text(heading: re.Match[str], mark: str) -> bool:
    line, _, next_lines = heading.string[heading.end() : heading.end() + 200].partition("\n")
    if line.strip(" \t*_"):
        # "[ANIMAL] on a bicycle" is no heading.
        return mark == "【" or COLON.match(line) is not None
    return bool(next_lines.strip()) and not next_lines.lstrip().startswith(mark)


def blank_name(placeholder: str) -> str:
    """Return what a blank asks for, in small letters."""
    if EMPTY_BLANK.fullmatch(placeholder):
        return ""
    match = NAME_ATTRIBUTE.search(placeholder) if placeholder.startswith("{") else None
    name = next(filter(None, match.groups())) if match else HINT.sub("", strip_marks(placeholder))
    return " ".join(name.lower().split())


@dataclass(frozen=True, slots=True)
class CompletedPrompt:
    """A prompt with its blanks filled, and the fillings that are not in it or surplus."""

    prompt: str
    unknown: tuple[str, ...]
    surplus: tuple[str, ...] = ()
    filled: tuple[tuple[str, str], ...] = ()


def complete_template(prompt: str, fillings: Sequence[tuple[str, str]]) -> CompletedPrompt:
    """Fill the blanks: one that is listed once everywhere, one listed several times in order."""
    values: dict[str, list[str]] = {}
    for placeholder, value in fillings:
        values.setdefault(placeholder, []).append(value)
    blanks = _find_blanks(prompt)
    places = [place for place in blanks if prompt[slice(*place)] in values]
    positions = {at for place in blanks for at in range(*place)}
    bare_blanks = sorted(filter(_is_bare_blank, values), key=len, reverse=True)
    matches = re.finditer("|".join(map(_make_pattern, bare_blanks)), prompt) if bare_blanks else ()
    places += [match.span() for match in matches if positions.isdisjoint(range(*match.span()))]
    counts = Counter(prompt[slice(*place)] for place in places)
    pieces, at, seen_counts = list[str](), 0, Counter[str]()
    for start, end in sorted(places):
        blank = prompt[start:end]
        nth = seen_counts[blank] if len(values[blank]) > 1 else 0
        seen_counts[blank] += 1
        if nth < len(values[blank]):
            pieces += [prompt[at:start], values[blank][nth]]
            at = end
    used_counts, filled = Counter[str](), []
    for placeholder, value in fillings:
        if used_counts[placeholder] < counts[placeholder]:
            filled.append((placeholder, value))
        used_counts[placeholder] += 1
    return CompletedPrompt(
        "".join([*pieces, prompt[at:]]),
        tuple(name for name in values if not counts[name]),
        tuple(name for name, listed in values.items() if 0 < counts[name] < len(listed)),
        tuple(filled),
    )


def _is_bare_blank(piece: str) -> bool:
    """Return whether a text without marks may be a blank."""
    if CAPITALS.fullmatch(piece):
        return is_slot(piece)
    return (VARIABLE.fullmatch(piece) or UNDERSCORES.fullmatch(piece)) is not None


def _make_pattern(piece: str) -> str:
    if piece[0] in RUN_SIGNS:
        return f"(?<!{piece[0]}){piece}(?!{piece[0]})"
    return rf"(?<![A-Z][ _-])(?<!{LETTER})(?<!_){piece}(?![ _-][A-Z]{{2}})(?!{LETTER})(?!_)"
