"""Find e-mail addresses and the names of accounts in a text.

An account is found by how it is written (`@mira`, an address on a platform), or because the run
knows it: a name of 6 characters or more that is no word as it has a digit or a mark in it, or of 10
letters, wherever it stands as a word of its own; one of 6 letters beside its author's posts alone.
Shorter names, such as art or paint, may be words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.swap import complete

if TYPE_CHECKING:
    from linkify_it import LinkifyIt

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
# "noor (at) example.org", "noor at example dot org"; without brackets only where both are spelled.
DOT = r"\s*[(\[{<]\s*dot\s*[)\]}>]\s*|\s+dot\s+"
SPELLED = re.compile(
    r"(?<![\w.+-])\w[\w.+-]*+(?:"
    rf"\s*[(\[{{<]\s*at\s*[)\]}}>]\s*[\w-]++(?:(?:\.|{DOT})[\w-]++)+"
    rf"|\s+at\s+(?:[\w-]++(?:{DOT}))+(?:com|org|net|edu|gov|io|info)\b)",
    re.ASCII | re.IGNORECASE,
)
# "@2x", "@1024x1536", "@f2.8": no account; "@image1": how some models call the pictures they get.
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
NAMES = tuple(re.compile(rf"\w+(?:[ .-]\w+){{{more}}}(?!\w)", re.ASCII) for more in (3, 2, 1, 0))


def nobody(name: str) -> bool:
    """Whether a run knows an author of that name: where nothing is known of its authors."""
    del name
    return False


def accounts(
    text: str, products: Collection[str] = (), is_author: Callable[[str], bool] = nobody
) -> Iterator[Found]:
    """E-mail addresses, and the names of accounts as platforms write them.

    Args:
        text: A text as `readable` shows it.
        products: Names that are no person's, as `bare` gives them.
        is_author: Whether one of `names_of` the authors is this, in small letters.

    Yields:
        Start, end (exclusive), and `e-mail` or `handle`; in no order, and some may overlap.

    Example:
        >>> list(accounts("thanks @mira.bsky.social, write to <noor@example.org>"))
        [(7, 24, 'handle'), (36, 52, 'e-mail')]
        >>> list(accounts("@grok draw u/mira_draws @2x", products={"grok"}))
        [(11, 23, 'handle')]
    """
    for match in _finder().match(_runs(text)) or ():
        is_address = match.schema == "mailto:"
        if is_address or _is_person(match.raw[1:], products):
            yield match.index, match.last_index, "e-mail" if is_address else "handle"
    yield from ((*found.span(), "e-mail") for found in SPELLED.finditer(text))
    for word in WORD.finditer(text):
        called = (found for name in NAMES if (found := name.match(text, word.start())))
        for found in called:
            if is_author(found[0].lower()) and _is_person(found[0], products):
                yield *found.span(), "handle"
    for found in ELSEWHERE.finditer(text):
        shape = str(found.lastgroup)
        if _is_person(found[shape], products):
            yield found.start(0 if shape == "reddit" else shape), found.end(shape), "handle"


def names_of(authors: Iterable[str | None], shortest_word: int = SHORTEST_WORD) -> frozenset[str]:
    """What people call the authors of posts without an `@`, as far as it cannot be another word.

    Args:
        authors: Names of accounts; null for nobody.
        shortest_word: How many letters a name of letters alone has to have.

    Returns:
        The names in small letters, without the server.

    Example:
        >>> sorted(names_of(["Mira_Draws", "@noor99@art.example", "art", "paint", "hanahikes"]))
        ['mira_draws', 'noor99']
        >>> sorted(names_of(["paint", "hanahikes"], SHORTEST_NAME))
        ['hanahikes']
    """
    names = (name.strip().removeprefix("@").partition("@")[0].lower() for name in authors if name)
    return frozenset(
        one
        for one in (name.removesuffix(".bsky.social") for name in names)
        if one.isascii()  # letters of other alphabets look alike to `readable`
        and len(one) >= (shortest_word if one.isalpha() else SHORTEST_NAME)
        and any(map(str.isalpha, one))
    )


def joined(name: str) -> str:
    """The letters and digits of a name, without what stands between its parts."""
    return re.sub(r"[\W_]", "", name)


def names_in_run(root: Path, shortest_word: int = SHORTEST_WORD) -> frozenset[str]:
    """What the authors of all posts that a run has collected are called."""
    try:
        posts = pq.read_table(
            complete(root / "stages" / "collect") / "kept.parquet", columns=[AUTHOR]
        )
    except (OSError, pa.ArrowInvalid):
        return frozenset()  # not there, or damaged: `collect` writes it before anything is masked
    return names_of(posts[AUTHOR].unique().to_pylist(), shortest_word)


def bare(name: str) -> str:
    """A name without capitals, spaces and marks: what the account of a product is called.

    Example:
        >>> bare("Lumen Image"), bare("@lumen_image")
        ('lumenimage', 'lumenimage')
    """
    return "".join(one for one in name.casefold() if one.isalnum())


def _is_person(name: str, products: Collection[str]) -> bool:
    # An account of that name on a server of somebody's own is anybody's.
    known = {bare(name), bare(name.removesuffix(".bsky.social"))}
    return not NO_NAME.fullmatch(name) and known.isdisjoint(products)


def _runs(text: str) -> str:
    pieces, end = [], 0
    for run in RUN.finditer(text):
        shown = run[0].lstrip(".+-")
        pieces += [" " * (run.end() - len(shown) - end), shown]
        end = run.end()
    return "".join(pieces)


@lru_cache(maxsize=1)
def _finder() -> LinkifyIt:
    from linkify_it import LinkifyIt
    from linkify_it.tlds import TLDS

    finder = LinkifyIt(options={"fuzzy_link": False})
    for scheme in ("http:", "https:", "ftp:", "//"):
        finder.add(scheme, None)
    return finder.tlds(TLDS).add("@", {"validate": _length})


def _length(finder: Any, text: str, position: int) -> int:
    del finder
    name = NAME.match(text, position)
    return len(name[0]) if name else 0
