"""Find and mask personal data in a text: e-mail addresses, phone numbers, names of accounts."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from phonenumbers import Leniency, PhoneNumberMatcher
from stdnum import iban, luhn

from echo_hf._infra.atomic import complete
from echo_hf.config.checks import KEY_FORM
from echo_hf.samples.extract import LONGEST_PROMPT

Found = tuple[int, int, str]

# Letters, digits and marks around an "@". Alone between spaces, since the library that tells an
# address by them would overlook one in quotes, in brackets, or after a letter of another script.
RUN = re.compile(r"(?<![\w.+-])[\w.+-]*+(?:[.+-]*@\w(?:[\w.-]*\w)?)+", re.ASCII)
# X, Instagram (dots), Bluesky (a host name), Mastodon (a host name after a second "@").
NAME = re.compile(r"(?:\w[\w-]*(?:\.\w[\w-]*)+|\w+)(?:@\w[\w-]*(?:\.\w[\w-]*)*)*", re.ASCII)
# Hosts whose addresses hold an account, what may stand between the two, and names of their pages.
HOSTS = (
    r"(?:x|twitter|fxtwitter|vxtwitter|fixupx|xcancel|instagram|facebook|fb|github|linkedin"
    r"|deviantart|threads|tiktok|artstation|patreon|flickr|youtube|snapchat|vk|weibo"
    r"|soundcloud|ko-fi|civitai|reddit|onlyfans|gitlab)\.com"
    r"|(?:threads|behance|pixiv)\.net|nitter(?:\.[\w-]+)+|(?:t|telegram|ig)\.me|instagr\.am"
    r"|pinterest(?:\.[a-z]{2,3}){1,2}|linktr\.ee|twitch\.tv|huggingface\.co|bsky\.app"
)
BETWEEN = r"(?:(?:in|user|users|profile|people|photos|add|stories|en|s|c|u|n)/|profile\.php\?id=)"
PAGES = (
    r"(?:about|blog|c|channel|collections|company|datasets|docs|embed|events|explore"
    r"|features|feed|gallery|groups|hashtag|home|i|images|intent|jobs|joinchat|learning|live|login"
    r"|marketplace|models|orgs|p|pages|papers|photo|pin|playlist|popular|posts?|pulse|r|reels?"
    r"|results|s|school|search|settings|share|shorts|spaces|status|stories|tags?|topics|trending|tv"
    r"|videos?|watch|users?|people|profile|profile\.php|photos|add|in|en|u|n)"
)
ELSEWHERE = re.compile(
    r"(?<!\w)u/(?P<reddit>[\w-]{3,20})(?![\w-])"
    rf"|\b(?:{HOSTS})/{BETWEEN}{{0,2}}(?!{PAGES}(?![\w.-]))(?P<profile>\w(?:[\w.:%-]*\w)?)"
    r"|(?<![\w.@-])(?!(?:www|m)\.)"
    r"(?P<host>[\w-]+\.(?:bsky\.social|(?:deviantart|tumblr|artstation|substack)\.com))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
HOSTED = re.compile(r"\.(?:bsky\.|deviantart\.|tumblr\.|artstation\.|substack\.)", re.IGNORECASE)
# Discord, before it gave up numbers; words before a number of something else are no names.
NUMBERED = re.compile(r"(?<![\w.#/&-])(?P<name>\w[\w.]{1,31})#\d{4}(?![\w#])")
NOT_NUMBERED = re.compile(
    r"\d+|pr|issue|no|nr|number|seed|step|page|item|part|room|take|day|card|ticket|bug|id|version"
    r"|photo|image|img|picture|pic|figure|fig|model|prompt|colou?r|hex|pantone|ral",
    re.IGNORECASE,
)
# "noor (at) example.org", "noor at example dot org"; without brackets only where both are spelled.
DOT = r"\s*[(\[{<]\s*dot\s*[)\]}>]\s*|\s+dot\s+"
SPELLED = re.compile(
    r"(?<![\w.+-])\w[\w.+-]*+(?:"
    rf"\s*[(\[{{<]\s*at\s*[)\]}}>]\s*[\w-]++(?:(?:\.|{DOT})[\w-]++)+"
    rf"|\s+at\s+(?:[\w-]++(?:{DOT}))+(?:com|org|net|edu|gov|io|info)\b)",
    re.ASCII | re.IGNORECASE,
)
AT = re.compile(r"[\s(\[{<]at[\s)\]}>]", re.IGNORECASE)  # in all that is spelled
# "@2x", "@1024x1536", "@f2.8": no account; "@image1": how some models call the images they get.
NO_NAME = re.compile(
    r"\d{1,5}(?:[.,:x]\d{1,5})*[a-z]{0,3}|f\d[\d.]*"
    r"|(?:image|img|picture|pic|photo|input|reference|ref|figure|fig)_?\d*"
    r"|all|channel|everyone|here",
    re.ASCII | re.IGNORECASE,
)
AUTHOR = "author"
SHORTEST_NAME = 6
SHORTEST_WORD = 10
WORD = re.compile(r"\w+", re.ASCII)
# A name has up to four words: "mira.bsky.social", "noor-k", "Noor K" of posts of one's own.
MOST_WORDS = 4
NOT_IN_WORDS = dict.fromkeys(ord(one) for one in map(chr, range(128)) if not one.isalnum())


IsAuthor = Callable[[str], bool]  # whether a run knows an author of that name
# Of the words of a text, in small letters, those with which such a name may begin.
Beginnings = Callable[[str, Collection[str]], Collection[str]]
# A number without a country code is looked for only where a zero or marks say that it is dialled;
# of the countries that write it so, these were tried on seeds, sizes, dates, prices and codes.
DIALLED = {
    "US": re.compile(r"(?=(?:\D*\d){10})\D*\d+\D*[().-]"),
    **dict.fromkeys(("GB", "DE", "FR", "JP"), re.compile(r"\(?0\d+\D")),
}
SHORTEST = 7
CHAT = re.compile(r"\bwa\.me/(\+?\d{7,15})(?!\d)", re.ASCII | re.IGNORECASE)
# Web addresses and dates.
NO_PHONE = re.compile(
    r"\b(?:https?://|www\.)\S+"
    r"|\b(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})\b",
    re.IGNORECASE,
)
SIGNED = re.compile(r"\s[-+]\d")  # "+20 -16 -53": numbers of their own
GOES_BEFORE = re.compile(r"(?:\d[.,:]|\w-)")
GOES_ON = re.compile(r"[.,:-]\d|-\w")
ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")
INVISIBLE = frozenset({"Cf", "Mn", "Me"})
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
DIGITS = re.compile(r"\d[ ._/\n\u2010-]?\d")  # in all numbers but some addresses in IPv6
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
IN_SECRETS = ("PRIVATE KEY-", "hooks.slack.com", "Bearer ")
SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----END))*(?:-----END [A-Z ]*-----)?"
    r"|(?<![\w.])hooks\.slack\.com/services/[\w/]+"
    r"|(?<=\bBearer )(?=\S*\d)[\w.~+/-]{20,}=*",
    re.ASCII,
)
BLANK = re.compile(r"\s")


def accounts(
    text: str,
    products: Collection[str] = (),
    is_author: IsAuthor = lambda _: False,
    beginnings: Beginnings = lambda _, words: words,
) -> Iterator[Found]:
    """E-mail addresses, and the names of accounts as platforms write them."""
    pieces, done = list[str](), 0
    for run in RUN.finditer(text) if "@" in text else ():
        shown = run[0].lstrip(".+-")
        pieces += [" " * (run.end() - len(shown) - done), shown]
        done = run.end()
    for match in (_finder().match("".join(pieces)) if pieces else None) or ():
        is_address = match.schema == "mailto:"
        if is_address or _is_person(match.raw[1:], products):
            yield match.index, match.last_index, "e-mail" if is_address else "handle"
    if AT.search(text):
        yield from ((*found.span(), "e-mail") for found in SPELLED.finditer(text))
    first = beginnings(text, set(map(str.lower, WORD.findall(text))))
    words = [word.span() for word in WORD.finditer(text)] if first else []  # as in few texts
    for nth, (start, end) in enumerate(words):
        if text[start:end].lower() not in first:
            continue
        ends = [end]
        for next_start, next_end in words[nth + 1 : nth + MOST_WORDS]:
            if text[ends[-1] : next_start] not in (" ", ".", "-"):
                break
            ends.append(next_end)
        for end in reversed(ends):
            if is_author(text[start:end].lower()) and _is_person(text[start:end], products):
                yield start, end, "handle"
    for found in NUMBERED.finditer(text) if "#" in text else ():
        if not NOT_NUMBERED.fullmatch(found["name"]) and _is_person(found["name"], products):
            yield *found.span(), "handle"
    for found in ELSEWHERE.finditer(text) if "/" in text or HOSTED.search(text) else ():
        shape = str(found.lastgroup)
        if _is_person(found[shape], products):
            yield found.start(0 if shape == "reddit" else shape), found.end(shape), "handle"


def names_of(authors: Iterable[str | None], shortest_word: int = SHORTEST_WORD) -> frozenset[str]:
    """What people call the authors of posts without an `@`, as far as it cannot be another word."""
    names = (name.strip().removeprefix("@").partition("@")[0].lower() for name in authors if name)
    return frozenset(
        one
        for one in (name.removesuffix(".bsky.social") for name in names)
        if one.isascii()  # letters of other alphabets look alike to `readable`
        and len(one) >= (shortest_word if one.isalpha() else SHORTEST_NAME)
        and any(map(str.isalpha, one))
    )


class NamesWithin:
    """Tells whether any of many names is a part of a text, in one pass over the text.

    Args:
        names: Names as `joined` gives them.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(filter(None, names))
        self._first = min(map(len, self.names), default=1)
        lengths: dict[str, set[int]] = {}
        for name in self.names:
            lengths.setdefault(name[: self._first], set()).add(len(name))
        self._lengths = {first: sorted(some) for first, some in lengths.items()}

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def is_part_of(self, text: str) -> bool:
        """Whether a text holds one of the names."""
        if not self.names:
            return False
        firsts = (text[at : at + self._first] for at in range(len(text) - self._first + 1))
        return any(
            text[at : at + length] in self.names
            for at, first in enumerate(firsts)
            for length in self._lengths.get(first, ())
        )


def joined(name: str) -> str:
    """The letters and digits of a name in ASCII, without what stands between its parts."""
    return name.translate(NOT_IN_WORDS)


def names_in_run(root: Path, shortest_word: int = SHORTEST_WORD) -> frozenset[str]:
    try:
        posts = pq.read_table(
            complete(root / "stages" / "collect") / "kept.parquet", columns=[AUTHOR]
        )
    except (OSError, pa.ArrowInvalid):
        return frozenset()  # not there, or damaged: `collect` writes it before anything is masked
    return names_of(posts[AUTHOR].unique().to_pylist(), shortest_word)


def bare(name: str) -> str:
    """A name without capitals, spaces and marks: what the account of a product is called."""
    return "".join(one for one in name.casefold() if one.isalnum())


def _is_person(name: str, products: Collection[str]) -> bool:
    # An account of that name on a server of somebody's own is anybody's.
    known = {bare(name), bare(name.removesuffix(".bsky.social"))}
    return not NO_NAME.fullmatch(name) and known.isdisjoint(products)


@lru_cache(maxsize=1)
def _finder() -> Any:
    from linkify_it import LinkifyIt
    from linkify_it.tlds import TLDS

    finder = LinkifyIt(options={"fuzzy_link": False})
    for scheme in ("http:", "https:", "ftp:", "//"):
        finder.add(scheme, None)

    def length(_: Any, text: str, position: int) -> int:
        name = NAME.match(text, position)
        return len(name[0]) if name else 0

    return finder.tlds(TLDS).add("@", {"validate": length})


def phones(text: str) -> Iterator[tuple[int, int]]:
    """Phone numbers: with a country code of any country, else as some countries dial them."""
    yield from (found.span(1) for found in CHAT.finditer(text))
    if sum(map(str.isdigit, text)) < SHORTEST:
        return
    text = NO_PHONE.sub(lambda found: " " * len(found[0]), text)
    for region, form in [(None, None), *DIALLED.items()]:
        done, leniency = 0, Leniency.STRICT_GROUPING if form else Leniency.VALID
        # Most numbers in a text are too short to be looked at.
        for found in PhoneNumberMatcher(text, region, leniency, min_candidate_length=SHORTEST):
            before = text[max(found.start - 2, done) : found.start]
            cut = GOES_BEFORE.fullmatch(before) or GOES_ON.match(text, found.end)
            is_dialled = form is None or (form.match(found.raw_string) and not cut)
            if is_dialled and not SIGNED.search(found.raw_string):
                yield found.start, (done := found.end)


def readable(text: str) -> list[str]:
    """What each character of a text looks like, in ASCII where there is something alike."""
    if text.isascii():
        return list(text)
    return [
        one if one.isascii() else "".join(map(_letter, unicodedata.normalize("NFKD", one)))
        for one in text
    ]


def _letter(character: str) -> str:
    if unicodedata.category(character) in INVISIBLE:
        return ""
    foreign = not character.isascii() and character.isalpha()
    return "x" if foreign and unicodedata.name(character, "").startswith(ALPHABETS) else character


class MaskedPiece(NamedTuple):
    """A character of a text, or a part of it that is masked."""

    shown: str
    start: int
    end: int
    kind: str | None = None


def personal_data(
    text: str,
    products: Collection[str] = (),
    is_author: IsAuthor = lambda _: False,
    beginnings: Beginnings = lambda _, words: words,
) -> list[Found]:
    """Finds personal data, also in full-width letters or with invisible characters in between."""
    searched, pieces = text[:MOST_SEARCHED], list[MaskedPiece]()
    shown = searched if searched.isascii() else "".join(readable(searched))
    for nth in count():
        found = _found(shown, products, is_author, beginnings)
        if not found:  # as of most texts
            break
        pieces = pieces or [
            MaskedPiece(one, at, at + 1) for at, one in enumerate(readable(searched))
        ]
        pieces = list(_with_masks(pieces, found if nth < FINE_SEARCHES else _words(found, shown)))
        shown = "".join(piece.shown for piece in pieces)
    places = [(piece.start, piece.end, piece.kind) for piece in pieces if piece.kind]
    if len(text) <= MOST_SEARCHED:
        return places
    places = [place for place in places if place[0] < EDGE]
    return [*places, (max([EDGE, *(end for _, end, _ in places)]), len(text), UNSEARCHED)]


def masked(text: str, places: Iterable[Found]) -> str:
    return _replaced(text, [(start, end, f"[{kind}]") for start, end, kind in places])


def _replaced(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    pieces, done = [], 0
    for start, end, new in parts:
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])


def _found(
    text: str, products: Collection[str], is_author: IsAuthor, beginnings: Beginnings
) -> list[Found]:
    people = accounts(text, products, is_author, beginnings)
    named = _apart([*people, *_numbers(text), *_keys(text)])
    # Blanks of the same length: what is found in the rest keeps its place.
    rest = _replaced(text, [(start, end, " " * (end - start)) for start, end, _ in named])
    return _apart([*named, *((start, end, "phone") for start, end in phones(rest))])


def _numbers(text: str) -> Iterator[Found]:
    if ":" not in text and not DIGITS.search(text):
        return
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
    for found in IP.finditer(text) if ":" in text or "." in text else ():
        with suppress(ValueError):
            address = ipaddress.ip_address(found[0])
            is_ours = address.is_loopback or address.is_unspecified
            if not is_ours and not _is_named(text, found):
                yield *found.span(), "ip"


def _is_named(text: str, found: re.Match[str]) -> bool:
    """Whether the word before a number says that it is another one."""
    return NO_DATA.search(text, max(found.start() - 11, 0), found.start()) is not None


def _keys(text: str) -> Iterator[Found]:
    for found in KEY_FORM.finditer(text):
        # "sk-ii-facial-essence" and "hf_hub_download" are none.
        if re.search(r"\d", found[0]) or LETTERS.fullmatch(found[0]):
            yield *found.span(), "key"
    if any(map(text.__contains__, IN_SECRETS)):
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


def _with_masks(pieces: Sequence[MaskedPiece], found: Iterable[Found]) -> Iterator[MaskedPiece]:
    owner = [number for number, piece in enumerate(pieces) for _ in piece.shown]
    done = 0
    for start, end, kind in found:
        first, last = owner[start], owner[end - 1]
        if first >= done:  # else they share a character that looks like several
            yield from pieces[done:first]
            yield MaskedPiece(f"[{kind}]", pieces[first].start, pieces[last].end, kind)
            done = last + 1
    yield from pieces[done:]
