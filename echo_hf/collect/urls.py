"""Addresses of posts in one spelling, so that the same post is the same row.

Tracking is removed, and an author's name where the platform does not need it: a post outlives a
change of name.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

X_HOSTS = frozenset({"x.com", "twitter.com"})
TRACKING = re.compile(r"utm_\w+|fbclid|gclid|igshid|igsh|mc_cid|mc_eid|ref_src|ref_url|si|xmt")
X_STATUS = re.compile(r"/(?:i/web|i|@?\w{1,50})/status(?:es)?/(\d{1,25})(?:/.*)?", re.ASCII)
BLUESKY_POST = re.compile(r"/profile/([\w.:%-]+)/post/(\w+)/?", re.ASCII)
BLUESKY_URI = re.compile(r"at://([\w.:%-]+)/app\.bsky\.feed\.post/(\w+)", re.ASCII)
MASTODON_STATUS = re.compile(r"/(?:@[\w.@-]+|users/[\w.-]+/statuses)/(\d{5,25})/?", re.ASCII)
LONGEST = 2048


def canonical_url(text: str | None) -> str | None:
    """The one spelling of a post's address.

    Args:
        text: An address as somebody wrote it.

    Returns:
        Its canonical form; null when it is no usable web address.

    Example:
        >>> canonical_url("https://mobile.twitter.com/mira/status/99?s=20#reply")
        'https://x.com/i/status/99'
    """
    text = (text or "").strip()
    found = BLUESKY_URI.fullmatch(text)
    if found:
        return f"https://bsky.app/profile/{found[1]}/post/{found[2]}"
    parts = _split(text)
    if parts is None:
        return None
    host = _host(parts)
    status = X_STATUS.fullmatch(parts.path) if host in X_HOSTS else None
    if status:
        return f"https://x.com/i/status/{int(status[1])}"
    path = (parts.scheme.lower(), parts.netloc.lower(), parts.path)
    return urlunsplit((*path, _without_tracking(parts.query), ""))


def platform_of(url: str) -> str:
    """Name of the platform that an address belongs to.

    Args:
        url: A canonical address.

    Returns:
        x, bluesky, mastodon, reddit, hackernews, discord or web.

    Example:
        >>> platform_of("https://bsky.app/profile/did:plc:abc/post/3k")
        'bluesky'
    """
    parts = urlsplit(url)
    host = _host(parts)
    known = {
        "x.com": "x",
        "twitter.com": "x",
        "bsky.app": "bluesky",
        "reddit.com": "reddit",
        "old.reddit.com": "reddit",
        "redd.it": "reddit",
        "news.ycombinator.com": "hackernews",
        "discord.com": "discord",
    }
    if host in known:
        return known[host]
    return "mastodon" if MASTODON_STATUS.fullmatch(parts.path) else "web"


def post_id_of(url: str) -> str:
    """The platform's own name of a post, from its address.

    Args:
        url: A canonical address.

    Returns:
        The status number, record key or item; the whole address where it has none.

    Example:
        >>> post_id_of("https://x.com/i/status/99"), post_id_of("https://example.org/a")
        ('99', 'https://example.org/a')
    """
    path = urlsplit(url).path
    for pattern, group in ((X_STATUS, 1), (BLUESKY_POST, 2), (MASTODON_STATUS, 1)):
        found = pattern.fullmatch(path)
        if found and platform_of(url) in ("x", "bluesky", "mastodon"):
            return found[group]
    return url


def _without_tracking(query: str) -> str:
    every = parse_qsl(query, keep_blank_values=True)
    kept = [(name, value) for name, value in every if not TRACKING.fullmatch(name)]
    # Spelling a query anew could change it: only where something goes.
    return query if len(kept) == len(every) else urlencode(kept)


def _split(text: str) -> SplitResult | None:
    if not text or len(text) > LONGEST or any(c.isspace() or ord(c) < 32 for c in text):
        return None
    try:
        parts = urlsplit(text)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        return None
    return parts if usable else None


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return host.removeprefix("www.").removeprefix("mobile.").removeprefix("m.")
