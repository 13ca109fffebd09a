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

from echo_hf._infra.atomic import find_complete
from echo_hf.collect.urls import SiteIndex, index_sites
from echo_hf.config.checks import KEY_FORM
from echo_hf.samples.extract import MAX_PROMPT

PersonalDataSpan = tuple[int, int, str]

# Letters, digits and marks around an "@". They are searched with spaces around them: the library
# overlooks an address in quotes, in brackets, or after a letter of another script.
ADDRESS_RUN = re.compile(r"(?<![\w.+-])[\w.+-]*+(?:[.+-]*@\w(?:[\w.-]*\w)?)+", re.ASCII)
# X, Instagram (dots), Bluesky (a host name), Mastodon (a host name after a second "@").
ACCOUNT_NAME = re.compile(r"(?:\w[\w-]*(?:\.\w[\w-]*)+|\w+)(?:@\w[\w-]*(?:\.\w[\w-]*)*)*", re.ASCII)
# Hosts beside those of platforms whose addresses hold an account, what may stand between the two,
# and names of their pages.
ACCOUNT_HOSTS = (
    r"(?:instagram|facebook|fb|github|linkedin|deviantart|threads|tiktok|artstation|patreon"
    r"|flickr|youtube|snapchat|vk|weibo|soundcloud|ko-fi|civitai|onlyfans|gitlab)\.com"
    r"|(?:threads|behance|pixiv)\.net|(?:t|telegram|ig)\.me|instagr\.am"
    r"|pinterest(?:\.[a-z]{2,3}){1,2}|linktr\.ee|twitch\.tv|huggingface\.co"
)
BETWEEN = r"(?:(?:in|user|users|profile|people|photos|add|stories|en|s|c|u|n)/|profile\.php\?id=)"
SITE_PAGES = (
    r"(?:about|blog|c|channel|collections|company|datasets|docs|embed|events|explore"
    r"|features|feed|gallery|groups|hashtag|home|i|images|intent|jobs|joinchat|learning|live|login"
    r"|marketplace|models|orgs|p|pages|papers|photo|pin|playlist|popular|posts?|pulse|r|reels?"
    r"|results|s|school|search|settings|share|shorts|spaces|status|stories|tags?|topics|trending|tv"
    r"|videos?|watch|users?|people|profile|profile\.php|photos|add|in|en|u|n)"
)
ACCOUNT_DOMAINS = r"(?:deviantart|tumblr|artstation|substack)\.com"
# Old names of Discord; words such as "issue" before a number are no names.
NUMBERED_ACCOUNT = re.compile(r"(?<![\w.#/&-])(?P<name>\w[\w.]{1,31})#\d{4}(?![\w#])")
NO_ACCOUNT = re.compile(
    r"\d+|pr|issue|no|nr|number|seed|step|page|item|part|room|take|day|card|ticket|bug|id|version"
    r"|photo|image|img|picture|pic|figure|fig|model|prompt|colou?r|hex|pantone|ral",
    re.IGNORECASE,
)
# "noor (at) example.org", "noor at example dot org"; without brackets both have to be spelled.
SPELLED_DOT = r"\s*[(\[{<]\s*dot\s*[)\]}>]\s*|\s+dot\s+"
SPELLED_EMAIL = re.compile(
    r"(?<![\w.+-])\w[\w.+-]*+(?:"
    rf"\s*[(\[{{<]\s*at\s*[)\]}}>]\s*[\w-]++(?:(?:\.|{SPELLED_DOT})[\w-]++)+"
    rf"|\s+at\s+(?:[\w-]++(?:{SPELLED_DOT}))+(?:com|org|net|edu|gov|io|info)\b)",
    re.ASCII | re.IGNORECASE,
)
SPELLED_AT = re.compile(r"[\s(\[{<]at[\s)\]}>]", re.IGNORECASE)  # in every spelled address
# "@2x", "@1024x1536", "@f2.8": no account; "@image1": how some models call the images they get.
NOT_A_NAME = re.compile(
    r"\d{1,5}(?:[.,:x]\d{1,5})*[a-z]{0,3}|f\d[\d.]*"
    r"|(?:image|img|picture|pic|photo|input|reference|ref|figure|fig)_?\d*"
    r"|all|channel|everyone|here",
    re.ASCII | re.IGNORECASE,
)
AUTHOR = "author"
MIN_NAME = 6
MIN_WORD = 10
WORD = re.compile(r"\w+", re.ASCII)
# A name has up to four words: "mira.bsky.social", "noor-k", "Noor K" of posts of one's own.
MOST_WORDS = 4
NOT_IN_WORDS = dict.fromkeys(ord(char) for char in map(chr, range(128)) if not char.isalnum())
AuthorTest = Callable[[str], bool]  # whether a run knows an author of that name
# Selects from the words of a text, in small letters, those that may begin an author's name.
NameStarts = Callable[[str, Collection[str]], Collection[str]]
# A number without a country code counts only with a leading zero or marks. These patterns of
# countries were tried on seeds, sizes, dates, prices and codes, which they do not match.
DIALED_BY_REGION = {
    "US": re.compile(r"(?=(?:\D*\d){10})\D*\d+\D*[().-]"),
    **dict.fromkeys(("GB", "DE", "FR", "JP"), re.compile(r"\(?0\d+\D")),
}
MIN_DIGITS = 7
CHAT_LINK = re.compile(r"\bwa\.me/(\+?\d{7,15})(?!\d)", re.ASCII | re.IGNORECASE)
# Web addresses and dates.
NOT_A_PHONE = re.compile(
    r"\b(?:https?://|www\.)\S+"
    r"|\b(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})\b",
    re.IGNORECASE,
)
SIGNED_NUMBER = re.compile(r"\s[-+]\d")  # "+20 -16 -53": several numbers
NUMBER_BEFORE = re.compile(r"(?:\d[.,:]|\w-)")
NUMBER_AFTER = re.compile(r"[.,:-]\d|-\w")
ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")
INVISIBLE = frozenset({"Cf", "Mn", "Me"})
UNSEARCHED = "unsearched"
KINDS = ("e-mail", "phone", "handle", "card", "iban", "ip", "key", UNSEARCHED)
# The rest of a longer text is not searched, and counts as personal data itself. Spans are only
# accepted if they begin before the edge, since later ones may be cut off.
MAX_SEARCHED_CHARACTERS = MAX_PROMPT
SEARCH_EDGE = MAX_SEARCHED_CHARACTERS - 400
FINE_SEARCHES = 4
# Numbers of card issuers: a seed rarely matches and also has a valid check digit.
CARD = re.compile(r"(?<![\w.,=-])\d(?:[ ._/\n\u2010-]?\d){12,18}(?![\w-]|[.,]\d)", re.ASCII)
ISSUED_CARD = re.compile(
    r"4\d{15}(?:\d{3})?|(?:5[1-5]|2[2-7]|35)\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}|62\d{14,17}"
)
HARMLESS_NUMBER = re.compile(r"(?:seed|version|\bv\.?)\W{0,3}$", re.IGNORECASE)
TWO_DIGITS = re.compile(r"\d[ ._/\n\u2010-]?\d")  # in every number but some IPv6 addresses
IBAN = re.compile(
    r"(?<![^\W_])[a-z]{2}\d\d(?:[ .\u2010-]?[a-z0-9]){11,30}", re.ASCII | re.IGNORECASE
)
WORD_END = re.compile(r"(?<=[^\W_])(?![^\W_])", re.ASCII)
IP = re.compile(
    r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)"
    # Assigned IPv6 ranges only; "cat::2 dog::1" are weights in a prompt.
    r"|(?<![\w:.])(?:[23][0-9a-f]{3}|fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}):[0-9a-f:]{2,}(?![\w:])",
    re.ASCII | re.IGNORECASE,
)
# Secrets without the form of a key: a PEM block, a web hook, a header.
LETTER_KEY = re.compile(r"(?:hf_|gh[oprsu]_|glpat-|npm_|[rs]k_(?:live|test)_)[A-Za-z]{20,}")
SECRET_MARKS = ("PRIVATE KEY-", "hooks.slack.com", "Bearer ")
SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----END))*(?:-----END [A-Z ]*-----)?"
    r"|(?<![\w.])hooks\.slack\.com/services/[\w/]+"
    r"|(?<=\bBearer )(?=\S*\d)[\w.~+/-]{20,}=*",
    re.ASCII,
)
BLANK = re.compile(r"\s")


def find_accounts(
    text: str,
    products: Collection[str] = (),
    is_author: AuthorTest = lambda _: False,
    beginnings: NameStarts = lambda _, words: words,
) -> Iterator[PersonalDataSpan]:
    """Yield e-mail addresses, and the names of accounts as platforms write them."""
    pieces, copied_until = list[str](), 0
    for run in ADDRESS_RUN.finditer(text) if "@" in text else ():
        run_text = run[0].lstrip(".+-")
        pieces += [" " * (run.end() - len(run_text) - copied_until), run_text]
        copied_until = run.end()
    addresses = "".join(pieces)
    for match in (_make_finder().match(addresses) or ()) if addresses else ():
        is_address = match.schema == "mailto:"
        if is_address or _is_person(match.raw[1:], products):
            yield match.index, match.last_index, "e-mail" if is_address else "handle"
    if SPELLED_AT.search(text):
        yield from ((*spelled.span(), "e-mail") for spelled in SPELLED_EMAIL.finditer(text))
    first_words = beginnings(text, set(map(str.lower, WORD.findall(text))))
    words = [word.span() for word in WORD.finditer(text)] if first_words else []
    for index, (start, end) in enumerate(words):
        if text[start:end].lower() not in first_words:
            continue
        ends = [end]
        for next_start, next_end in words[index + 1 : index + MOST_WORDS]:
            if text[ends[-1] : next_start] not in (" ", ".", "-"):
                break
            ends.append(next_end)
        for end in reversed(ends):
            if is_author(text[start:end].lower()) and _is_person(text[start:end], products):
                yield start, end, "handle"
    for numbered in NUMBERED_ACCOUNT.finditer(text) if "#" in text else ():
        if not NO_ACCOUNT.fullmatch(numbered["name"]) and _is_person(numbered["name"], products):
            yield *numbered.span(), "handle"
    may_name_account = "/" in text or has_account_domain(text)
    for url in _compile_addresses(index_sites()).finditer(text) if may_name_account else ():
        group = str(url.lastgroup)
        if _is_person(url[group], products):
            yield url.start(0 if group == "reddit" else group), url.end(group), "handle"


def has_account_domain(text: str) -> bool:
    """Return whether a text may name an account by a domain of its own."""
    return _compile_domains(index_sites()).search(text) is not None


@lru_cache(maxsize=1)
def _compile_domains(index: SiteIndex) -> re.Pattern[str]:
    return re.compile(rf"\.(?:{_join_domains(index)})", re.IGNORECASE)


@lru_cache(maxsize=1)
def _compile_addresses(index: SiteIndex) -> re.Pattern[str]:
    """Return the pattern of addresses that hold an account, on all sites."""
    hosts = "|".join([ACCOUNT_HOSTS, *filter(None, (site.account_hosts for site in index.sites))])
    return re.compile(
        r"(?<!\w)u/(?P<reddit>[\w-]{3,20})(?![\w-])"
        rf"|\b(?:{hosts})/{BETWEEN}{{0,2}}(?!{SITE_PAGES}(?![\w.-]))(?P<profile>\w(?:[\w.:%-]*\w)?)"
        rf"|(?<![\w.@-])(?!(?:www|m)\.)(?P<host>[\w-]+\.(?:{_join_domains(index)}))(?![\w-])",
        re.ASCII | re.IGNORECASE,
    )


def _join_domains(index: SiteIndex) -> str:
    return "|".join([ACCOUNT_DOMAINS, *map(re.escape, index.account_domains)])


def collect_names(authors: Iterable[str | None], shortest_word: int = MIN_WORD) -> frozenset[str]:
    """Return the names of authors as people write them without `@`, if they are no common words."""
    domains = index_sites().account_domains
    names = (name.strip().removeprefix("@").partition("@")[0].lower() for name in authors if name)

    def remove_domain(name: str) -> str:
        ending = next((f".{domain}" for domain in domains if name.endswith(f".{domain}")), "")
        return name.removesuffix(ending)

    return frozenset(
        name
        for name in map(remove_domain, names)
        if name.isascii()  # `to_ascii` cannot tell letters of other alphabets apart
        and len(name) >= (shortest_word if name.isalpha() else MIN_NAME)
        and any(map(str.isalpha, name))
    )


class NameFinder:
    """Finds any of many names in a text, in one pass over the text.

    Args:
        names: Names as `join_name` gives them.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(filter(None, names))
        self._first = min(map(len, self.names), default=1)
        lengths: dict[str, set[int]] = {}
        for name in self.names:
            lengths.setdefault(name[: self._first], set()).add(len(name))
        self._lengths = {first: sorted(name_lengths) for first, name_lengths in lengths.items()}

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def has_match(self, text: str) -> bool:
        """Return whether a text holds one of the names."""
        if not self.names:
            return False
        firsts = (text[start : start + self._first] for start in range(len(text) - self._first + 1))
        return any(
            text[start : start + length] in self.names
            for start, first in enumerate(firsts)
            for length in self._lengths.get(first, ())
        )


def join_name(name: str) -> str:
    """Return the ASCII letters and digits of a name, without what stands between its parts."""
    return name.translate(NOT_IN_WORDS)


def read_run_names(root: Path, shortest_word: int = MIN_WORD) -> frozenset[str]:
    try:
        folder = find_complete(root / "stages" / "collect")
        posts = pq.read_table(folder / "kept.parquet", columns=[AUTHOR])
    except (OSError, pa.ArrowInvalid):
        return frozenset()  # `collect` has not run yet, or will write it anew
    return collect_names(posts[AUTHOR].unique().to_pylist(), shortest_word)


def strip_name(name: str) -> str:
    """Return a name without capitals, spaces and marks, as the account of a product is called."""
    return "".join(char for char in name.casefold() if char.isalnum())


def _is_person(name: str, products: Collection[str]) -> bool:
    # On a server of its own the same name may be anybody's account.
    variants = {strip_name(name), strip_name(name.removesuffix(".bsky.social"))}
    return not NOT_A_NAME.fullmatch(name) and variants.isdisjoint(products)


@lru_cache(maxsize=1)
def _make_finder() -> Any:
    from linkify_it import LinkifyIt
    from linkify_it.tlds import TLDS

    finder = LinkifyIt(options={"fuzzy_link": False})
    for scheme in ("http:", "https:", "ftp:", "//"):
        finder.add(scheme, None)

    def measure_name(_: Any, text: str, position: int) -> int:
        name = ACCOUNT_NAME.match(text, position)
        return len(name[0]) if name else 0

    return finder.tlds(TLDS).add("@", {"validate": measure_name})


def find_phones(text: str) -> Iterator[tuple[int, int]]:
    """Yield phone numbers: with any country code, else as some countries dial them."""
    yield from (chat_link.span(1) for chat_link in CHAT_LINK.finditer(text))
    if sum(map(str.isdigit, text)) < MIN_DIGITS:
        return
    text = NOT_A_PHONE.sub(lambda other_number: " " * len(other_number[0]), text)
    for region, pattern in [(None, None), *DIALED_BY_REGION.items()]:
        searched_until, leniency = 0, Leniency.STRICT_GROUPING if pattern else Leniency.VALID
        # The minimal length skips most numbers in a text.
        for candidate in PhoneNumberMatcher(
            text, region, leniency, min_candidate_length=MIN_DIGITS
        ):
            preceding = text[max(candidate.start - 2, searched_until) : candidate.start]
            is_part = NUMBER_BEFORE.fullmatch(preceding) or NUMBER_AFTER.match(text, candidate.end)
            is_dialled = pattern is None or (pattern.match(candidate.raw_string) and not is_part)
            if is_dialled and not SIGNED_NUMBER.search(candidate.raw_string):
                yield candidate.start, (searched_until := candidate.end)


def to_ascii(text: str) -> list[str]:
    """Return what each character of a text looks like in ASCII, where something looks alike."""
    if text.isascii():
        return list(text)
    return [
        char if char.isascii() else "".join(map(_letter, unicodedata.normalize("NFKD", char)))
        for char in text
    ]


def _letter(character: str) -> str:
    if unicodedata.category(character) in INVISIBLE:
        return ""
    foreign = not character.isascii() and character.isalpha()
    return "x" if foreign and unicodedata.name(character, "").startswith(ALPHABETS) else character


class MaskedPiece(NamedTuple):
    """A character of a text, or a part of it that is masked."""

    visible: str
    start: int
    end: int
    kind: str | None = None


def find_personal_data(
    text: str,
    products: Collection[str] = (),
    is_author: AuthorTest = lambda _: False,
    beginnings: NameStarts = lambda _, words: words,
) -> list[PersonalDataSpan]:
    """Find personal data, also in full-width letters or with invisible characters in between."""
    searched, pieces = text[:MAX_SEARCHED_CHARACTERS], list[MaskedPiece]()
    visible = searched if searched.isascii() else "".join(to_ascii(searched))
    for nth in count():
        spans = _find(visible, products, is_author, beginnings)
        if not spans:  # as in most texts
            break
        if not pieces:
            pieces = [MaskedPiece(char, n, n + 1) for n, char in enumerate(to_ascii(searched))]
        if nth >= FINE_SEARCHES:
            spans = list(_widen(spans, visible))
        # What is masked can leave something new beside it, so the text is searched again.
        pieces = list(_mask_pieces(pieces, spans))
        visible = "".join(piece.visible for piece in pieces)
    places = [(piece.start, piece.end, piece.kind) for piece in pieces if piece.kind]
    if len(text) <= MAX_SEARCHED_CHARACTERS:
        return places
    places = [place for place in places if place[0] < SEARCH_EDGE]
    return [*places, (max([SEARCH_EDGE, *(end for _, end, _ in places)]), len(text), UNSEARCHED)]


def mask_text(text: str, places: Iterable[PersonalDataSpan]) -> str:
    return _replace_parts(text, [(start, end, f"[{kind}]") for start, end, kind in places])


def _replace_parts(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    pieces, copied_until = [], 0
    for start, end, replacement in parts:
        pieces += [text[copied_until:start], replacement]
        copied_until = end
    return "".join([*pieces, text[copied_until:]])


def _find(
    text: str, products: Collection[str], is_author: AuthorTest, beginnings: NameStarts
) -> list[PersonalDataSpan]:
    people = find_accounts(text, products, is_author, beginnings)
    spans = _drop_overlaps([*people, *_find_numbers(text), *_find_keys(text)])
    # Replace found spans by as many blanks, so that positions in the rest stay.
    unnamed = _replace_parts(text, [(start, end, " " * (end - start)) for start, end, _ in spans])
    return _drop_overlaps([*spans, *((start, end, "phone") for start, end in find_phones(unnamed))])


def _find_numbers(text: str) -> Iterator[PersonalDataSpan]:
    if ":" not in text and not TWO_DIGITS.search(text):
        return
    for card in CARD.finditer(text):
        digits = re.sub(r"\D", "", card[0])
        if ISSUED_CARD.fullmatch(digits) and luhn.is_valid(digits) and not _is_other(text, card):
            yield *card.span(), "card"
    for account in IBAN.finditer(text):
        ends = [end.start() for end in WORD_END.finditer(text, account.start(), account.end() + 1)]
        for end in reversed(ends):  # the match may include words behind it
            candidate = text[account.start() : end].replace("\u2010", "-")
            if end <= account.end() and iban.is_valid(candidate):
                yield account.start(), end, "iban"
    for ip_match in IP.finditer(text) if ":" in text or "." in text else ():
        with suppress(ValueError):
            address = ipaddress.ip_address(ip_match[0])
            is_local = address.is_loopback or address.is_unspecified
            if not is_local and not _is_other(text, ip_match):
                yield *ip_match.span(), "ip"


def _is_other(text: str, number: re.Match[str]) -> bool:
    """Return whether the word before a number says that it is another kind of number."""
    return HARMLESS_NUMBER.search(text, max(number.start() - 11, 0), number.start()) is not None


def _find_keys(text: str) -> Iterator[PersonalDataSpan]:
    for key in KEY_FORM.finditer(text):
        # A key has a digit or is random: "sk-ii-facial-essence" and "hf_hub_download" are not keys.
        if re.search(r"\d", key[0]) or LETTER_KEY.fullmatch(key[0]):
            yield *key.span(), "key"
    if any(map(text.__contains__, SECRET_MARKS)):
        yield from ((*secret.span(), "key") for secret in SECRET.finditer(text))


def _drop_overlaps(spans: Iterable[PersonalDataSpan]) -> list[PersonalDataSpan]:
    separate: list[PersonalDataSpan] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not separate or span[0] >= separate[-1][1]:
            separate.append(span)
    return separate


def _widen(spans: Iterable[PersonalDataSpan], text: str) -> Iterator[PersonalDataSpan]:
    """Extend spans to whole words, so that each search takes one link off a long chain."""
    done = 0
    for start, end, kind in spans:
        if start >= done:
            while start > done and not text[start - 1].isspace():
                start -= 1
            blank = BLANK.search(text, end)
            done = blank.start() if blank else len(text)
            yield start, done, kind


def _mask_pieces(
    pieces: Sequence[MaskedPiece], spans: Iterable[PersonalDataSpan]
) -> Iterator[MaskedPiece]:
    piece_of_character = [number for number, piece in enumerate(pieces) for _ in piece.visible]
    done = 0
    for start, end, kind in spans:
        first, last = piece_of_character[start], piece_of_character[end - 1]
        if first >= done:  # spans can overlap in a character that looks like several
            yield from pieces[done:first]
            yield MaskedPiece(f"[{kind}]", pieces[first].start, pieces[last].end, kind)
            done = last + 1
    yield from pieces[done:]
