"""Questions of checks: plain ones, that anybody could answer by looking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain

from echo_hf.curate.personal_data import find_personal_data
from echo_hf.reasons import Reason

# In capitals, and no name.
PLAIN_CAPITALS = frozenset(
    {
        *("AI", "CGI", "CMYK", "DPI", "GIF", "HDR", "JPEG", "PNG", "RGB", "UI"),
        *("ALL", "AND", "ANY", "BUT", "NO", "NOT", "ONLY", "OR", "YES"),
    }
)
MIN_NAME = 4  # letters of a word that posts only write with a capital
SHARED_WORDS = 6  # in a row, of a question and a post


class NoCheck(Reason):
    """Why a question is not asked of judges."""

    NO_QUESTION = "no_question", "it is no single question in English, such as Is ...? or Does ...?"
    NAMES = "names", "it names a person, an account, a product or a work"
    NOT_LOOKING = "not_looking", "it asks for more than looking at pictures and their task"
    ADDRESSES_JUDGE = "addresses_judge", "it speaks to the one who answers"
    REPEATS_POST = "repeats_post", "it repeats six words of a post"
    MARKUP = "markup", "it holds markup, an address or an account"
    NOT_WRITTEN = "not_written", "the model that writes gave no answer that can be used"


MARKUP = re.compile(r"[<>\[\]{}|`\\#@$*_~^]|://|www\.|&\w+;|[\x00-\x1f]")
ADDRESSED = re.compile(
    r"\b(you|yours?|please|disregard|ignore (?:all|any|every|previous|the above|this|these)"
    r"|system prompt|(?:these|your|my|previous) instructions?|assistant|judges?|raters?"
    r"|evaluators?|annotators?|ratings?|scores?|(?:always|say) (?:yes|no)"
    r"|(?:rate|answer|reply|respond) (?:it|with|yes|no|that|this)|in (?:all|any) cases?|regardless"
    r"|whatever (?:is|it|the)|no matter)\b",
    re.IGNORECASE,
)
NOT_SEEN = re.compile(
    r"\b(comments?|commenters?|(?:under|in|of|from) (?:the|a|this|its) posts?|tweets?|users?"
    r"|authors?|community|complain\w*|viral"
    r"|people (?:say|think|write|mean|like|call)|search\w*|google\w*|click\w*|visit\w*|download\w*"
    r"|websites?|file ?names?|metadata|remember|know (?:who|whose)|made by"
    r"|which (?:system|model))\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W_]+")
OPENING = re.compile(
    r"(?:is|are|was|were|does|do|did|has|have|had|can|could|would|should)\b", re.IGNORECASE
)


def find_fault(
    texts: Sequence[str | None], posts: Iterable[str] = (), names: Set[str] = frozenset()
) -> tuple[NoCheck, str] | None:
    """Return why the texts of a check, its question first, cannot be used; null where they can.

    Args:
        texts: The question, what counts as yes, and what it fits; null for one that is missing.
        posts: What people wrote, none of which may be repeated.
        names: Names of accounts and of the target in small letters, none of which may be in them.
    """
    question, *others = texts
    is_single = question is not None and question.endswith("?") and question.count("?") == 1
    if question is None or not is_single or not OPENING.match(question):
        return NoCheck.NO_QUESTION, (question or "")[-40:]
    posts = list(posts)
    for text in filter(None, (question, *others)):
        if fault := find_name(text, names):
            return fault
        for reason, pattern in (
            (NoCheck.ADDRESSES_JUDGE, ADDRESSED),
            (NoCheck.NOT_LOOKING, NOT_SEEN),
        ):
            if match := pattern.search(text):
                return reason, match[0]
    own = set(chain.from_iterable(_list_runs(text) for text in texts if text))
    words = set(chain.from_iterable(WORD.findall(text.casefold()) for text in texts if text))
    if proper := words & find_proper_words(posts):
        return NoCheck.NAMES, min(proper)
    for post in posts:
        if shared := own.intersection(_list_runs(post)):
            return NoCheck.REPEATS_POST, " ".join(min(shared))
    return None


def find_name(text: str, names: Set[str] = frozenset()) -> tuple[NoCheck, str] | None:
    """Return markup or a name in a text: a capital within a sentence, an account, an address."""
    if match := MARKUP.search(text):
        return NoCheck.MARKUP, match[0]
    if not text.isprintable():  # a sign that moves a cursor, or turns a line around
        return NoCheck.MARKUP, next(sign for sign in text if not sign.isprintable())
    for word in WORD.finditer(text):
        if _is_capitalized(text, word) and word[0] not in PLAIN_CAPITALS and len(word[0]) > 1:
            return NoCheck.NAMES, word[0]
    if personal := find_personal_data(text):
        return NoCheck.NAMES, text[slice(*personal[0][:2])]
    named = names & set(WORD.findall(text.casefold()))
    return (NoCheck.NAMES, min(named)) if named else None


def _is_capitalized(text: str, word: re.Match[str]) -> bool:
    """Return whether a word within a sentence has a capital."""
    before = text[: word.start()].rstrip()
    return word[0][0].isupper() and bool(before) and before[-1] not in ".?!:"


def find_proper_words(posts: Iterable[str]) -> set[str]:
    """Find the words that posts only write with a capital, also within a sentence, as names are."""
    capitalized, plain = set[str](), set[str]()
    for post in posts:
        for word in WORD.finditer(post):
            if word[0][0].islower():
                plain.add(word[0].casefold())
            elif len(word[0]) >= MIN_NAME and not word[0].isupper() and _is_capitalized(post, word):
                capitalized.add(word[0].casefold())
    return capitalized - plain


def _list_runs(text: str) -> Iterator[tuple[str, ...]]:
    words = WORD.findall(text.casefold())
    return zip(*(words[start:] for start in range(SHARED_WORDS)), strict=False)
