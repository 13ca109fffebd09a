"""Find the blanks of a template in every notation, and fill them. Pure text: nothing is guessed."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from echo_hf._infra.text import MARK
from echo_hf.samples.shown_images import LONGEST_PLACEHOLDER


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What a template leaves open. Words that describe images themselves, such as "background" or
# "photo", are left out: in parentheses they explain.
SLOTS = words(
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
# With a digit behind them these say something: "age 7", "year 2".
MEASURES = words("age number year date letter season team month")
FILLERS = words(
    """a an the of or and your any some insert enter choose pick type here this
    tu su inserta aquí el la de del o y votre ton ta insérez ici le une un ou et
    dein deine ihr hier der die das oder und seu sua insira aqui tua qui il lo"""
)
INVITATIONS = words("insert enter choose pick type your")
MOST_SLOT_WORDS, MOST_INVITED_WORDS = 4, 6
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
IMAGE = r"(?:images?|photos?|pictures?|pics?|img|photographs?|selfies?|screenshots?|file)"
GIVEN = r"(?:attach(?:ed|ment)?|upload(?:ed)?|reference|ref|input|original|source|provided|your|my)"
IMAGE_GIVEN = re.compile(
    rf"{GIVEN}\s(?:\w{{1,12}}\s)?{IMAGE}\b|^(?:the\s|this\s)?{IMAGE}(?:\s?[1-9])?$"
    rf"|{IMAGE}\s(?:attached|uploaded|provided|here)\b|^{GIVEN}$"
    r"|(?:参考|參考|上传|上傳|附件|原始|输入|提供)的?(?:图|圖|照|相片)|^(?:图片|圖片|照片|附图|附圖|原图|画像|写真)[1-9]?$"
    r"|(?:添付|参考|元|入力)の?(?:画像|写真)"
)
ALTERNATIVE = re.compile(r"/|\bor\b|或|または|、|\|")


def is_slot(inner: str) -> bool:
    """Whether what stands in parentheses is the place of a word, not a remark."""
    inner = inner.strip().lower()
    if HAN_SLOT.fullmatch(inner):
        return True
    if NOT_A_SLOT.search(inner):
        return False
    words = WORD.findall(inner)
    named = [word for word in words if word in SLOTS]
    if not named or (ONE_DIGIT.search(inner) and not MEASURES.isdisjoint(named)):
        return False
    if words[0] in INVITATIONS:
        return len(words) <= MOST_INVITED_WORDS
    return len(words) <= MOST_SLOT_WORDS and all(word in SLOTS | FILLERS for word in words)


def stands_for_an_image(inner: str) -> bool:
    """Whether what stands in brackets is an image that goes with the prompt, not words."""
    inner = inner.strip().lower()
    return ALTERNATIVE.search(inner) is None and IMAGE_GIVEN.search(inner) is not None


INSIDE = "{1,196}"
LONGEST_DEFAULT = 900
VALUE = f"{{0,{LONGEST_DEFAULT}}}"
QUOTED = rf"(?:\\?\"[^\"\n]{VALUE}\"|'[^'\n]{VALUE}'|“[^”\n]{VALUE}”)"
ARGUMENT_ATTRIBUTE = rf"\s{{1,4}}\w{{1,20}}\s{{0,4}}=\s{{0,4}}{QUOTED}"
# Its values may hold braces, and be longer than a name.
DECLARED = rf"\{{\s{{0,4}}(?i:argument)(?:{ARGUMENT_ATTRIBUTE}){{1,4}}\s{{0,4}}\}}"
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
    return placeholder.removeprefix("$").strip(MARKS)


def is_blank(piece: Candidate) -> bool:
    """Whether a piece of a prompt holds the place of something else."""
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


def _square(piece: Candidate) -> bool:
    if piece.inner in {"", "x", "X"} and piece.begins_line:
        return False  # a box to tick
    if not piece.inner:
        return not piece.text.strip("[]［］ \t")
    body = piece.body
    link = piece.before == "!" or TARGET.match(piece.prompt, piece.end)
    return not (link or WEIGHT.search(body) or _is_list(piece)) and _enclosed(piece)


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


def _enclosed(piece: Candidate) -> bool:
    inner = piece.inner
    return (
        _says_something(inner)
        and not stands_for_an_image(inner)
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
    "declared": lambda piece: len(piece.text) <= LONGEST_PLACEHOLDER,
    "square": _square,
    "lens": _enclosed,
    "curly": _curly,
    "angle": _angle,
    "round": _round,
    "line": _line,
    "circles": lambda _: True,
}


CLOSING_TAG = re.compile(r"(?:</|\[/)\s{0,4}([\w-]{1,40})")
COLON = re.compile(r"[*_`]{0,3}\s?[:：]")
ENCLOSED = {"[": re.compile(r"\[[^\[\]\n]{1,60}\]"), "【": re.compile(r"【[^【】\n]{1,60}】")}
WITHIN = f"{{1,{LONGEST_DEFAULT}}}?"
ATTRIBUTE = (
    rf"\s{{0,4}}=\s{{0,4}}\\?(?:\"([^\"\n]{WITHIN})\\?\"|'([^'\n]{WITHIN})'|“([^”\n]{WITHIN})”)"
)
NAME = re.compile("name" + ATTRIBUTE)
HINT = re.compile(r"\s?[:：,，;；(（].*", re.DOTALL)
# Of a run of one of these no part is a placeholder.
RUN_SIGNS = frozenset("_＿〇○◯●")
LETTER = r"[A-Za-z0-9\u00c0-\u024f]"
# YOUR CITY, but no part of a longer run of capitals; CITY_NAME.
CAPITALS = re.compile(r"[A-Z]{2,20}(?: [A-Z]{1,20}){0,5}")
VARIABLE = re.compile(r"[A-Z]{2,20}(?:_[A-Z0-9]{1,20}){1,5}")
UNDERSCORES = re.compile(r"_{2,60}|＿{2,60}")


class PromptPlace(NamedTuple):
    """Where a piece of a prompt stands, from its first character to the one after its last."""

    start: int
    end: int

    def of(self, prompt: str) -> str:
        return prompt[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Completed:
    prompt: str
    unknown: tuple[str, ...]
    left: tuple[str, ...]
    surplus: tuple[str, ...] = ()
    filled: tuple[tuple[str, str], ...] = ()


def placeholders(prompt: str) -> list[str]:
    return [place.of(prompt) for place in places(prompt)]


def places(prompt: str) -> list[PromptPlace]:
    return list(_places(prompt))


def name_of(placeholder: str) -> str:
    named = NAME.search(placeholder) if placeholder.startswith("{") else None
    if EMPTY.fullmatch(placeholder):
        return ""
    name = _value(named) if named else HINT.sub("", inside(placeholder))
    return " ".join(name.lower().split())


def completed(prompt: str, fillings: Sequence[tuple[str, str]]) -> Completed:
    values: dict[str, list[str]] = {}
    for placeholder, value in fillings:
        values.setdefault(placeholder, []).append(value)
    blanks = places(prompt)
    found = list(_found(prompt, values, blanks))
    placed = list(_placed(prompt, found, values))
    stand = Counter(place.of(prompt) for place in found)
    return Completed(
        _joined(prompt, placed),
        tuple(one for one in values if not stand[one]),
        tuple(_left(prompt, blanks, placed)),
        tuple(one for one, given in values.items() if 0 < stand[one] < len(given)),
        tuple(_filled(fillings, stand)),
    )


def _filled(
    fillings: Iterable[tuple[str, str]], stand: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    used = Counter[str]()
    for placeholder, value in fillings:
        if used[placeholder] < stand[placeholder]:
            yield placeholder, value
        used[placeholder] += 1


def _value(attribute: re.Match[str]) -> str:
    return str(next(filter(None, attribute.groups())))


def _places(prompt: str) -> Iterator[PromptPlace]:
    closed = frozenset(name.lower() for name in CLOSING_TAG.findall(prompt))
    headings = frozenset(mark for mark in ENCLOSED if _only_heads(prompt, mark))
    at = 0
    while match := CANDIDATE.search(prompt, at):
        piece = Candidate(prompt, *match.span(), str(match.lastgroup), closed)
        if MARK.fullmatch(piece.text):  # ours, and nobody's blank
            at = match.end()
        elif is_blank(piece) and piece.text[0] not in headings and not _has_colon(piece):
            yield PromptPlace(*match.span())
            at = match.end()
        else:
            at = match.start() + 1


def _has_colon(piece: Candidate) -> bool:
    return piece.begins_line and COLON.match(piece.prompt, piece.end) is not None


def _only_heads(prompt: str, mark: str) -> bool:
    """Whether brackets of a kind are used as headings: several, each above or before its text."""
    found = list(ENCLOSED[mark].finditer(prompt))
    if len({match.group() for match in found}) < 2:
        return False
    return all(begins_line(prompt, match.start()) and _has_text(match, mark) for match in found)


def _has_text(heading: re.Match[str], mark: str) -> bool:
    line, _, below = heading.string[heading.end() : heading.end() + 200].partition("\n")
    if line.strip(" \t*_"):
        # "[ANIMAL] on a bicycle" is no heading.
        return mark == "【" or COLON.match(line) is not None
    return bool(below.strip()) and not below.lstrip().startswith(mark)


def _found(
    prompt: str, values: Mapping[str, Sequence[str]], blanks: Sequence[PromptPlace]
) -> Iterator[PromptPlace]:
    found = [blank for blank in blanks if blank.of(prompt) in values]
    within = {at for blank in blanks for at in range(*blank)}
    named = sorted((one for one in values if _is_named_blank(one)), key=len, reverse=True)
    matches = re.finditer("|".join(map(_whole, named)), prompt) if named else ()
    found += [PromptPlace(*one.span()) for one in matches if within.isdisjoint(range(*one.span()))]
    yield from sorted(found)


def _is_named_blank(piece: str) -> bool:
    """Whether a piece that has no marks may be a blank."""
    if CAPITALS.fullmatch(piece):
        return is_slot(piece)
    return (VARIABLE.fullmatch(piece) or UNDERSCORES.fullmatch(piece)) is not None


def _whole(piece: str) -> str:
    if piece[0] in RUN_SIGNS:
        return f"(?<!{piece[0]}){piece}(?!{piece[0]})"
    return rf"(?<![A-Z][ _-])(?<!{LETTER})(?<!_){piece}(?![ _-][A-Z]{{2}})(?!{LETTER})(?!_)"


def _placed(
    prompt: str, found: Sequence[PromptPlace], values: Mapping[str, Sequence[str]]
) -> Iterator[tuple[PromptPlace, str]]:
    done = Counter[str]()
    for place in found:
        given = values[place.of(prompt)]
        if len(given) == 1:
            yield place, given[0]
        elif done[place.of(prompt)] < len(given):
            yield place, given[done[place.of(prompt)]]
        done[place.of(prompt)] += 1


def _joined(prompt: str, placed: Sequence[tuple[PromptPlace, str]]) -> str:
    pieces, at = [], 0
    for place, value in placed:
        pieces += [prompt[at : place.start], value]
        at = place.end
    return "".join([*pieces, prompt[at:]])


def _left(
    prompt: str, blanks: Sequence[PromptPlace], placed: Sequence[tuple[PromptPlace, str]]
) -> Iterator[str]:
    filled = {at for place, _ in placed for at in range(*place)}
    return (blank.of(prompt) for blank in blanks if filled.isdisjoint(range(*blank)))
