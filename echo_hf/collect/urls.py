"""Addresses of posts in one spelling, so that the same post is the same row."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

X_HOSTS = frozenset({"x.com", "twitter.com"})
# Sites that show posts of X under other addresses: it is the same post.
X_MIRRORS = frozenset({"nitter.net", "fxtwitter.com", "vxtwitter.com", "fixupx.com", "xcancel.com"})
X_NAMES = frozenset({"x", "twitter", *X_HOSTS})  # as people call the platform
# Only names that trackers alone use: parameters that tell posts apart must stay.
TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|igshid|igsh|mc_cid|mc_eid|ref_src|ref_url|xmt", re.ASCII | re.IGNORECASE
)
X_STATUS = re.compile(r"/(?:i/web|i|@?\w{1,50})/status(?:es)?/0*(\d{1,25})(?:/.*)?", re.ASCII)
BLUESKY_POST = re.compile(r"/profile/([\w.:%-]+)/post/([\w.:~-]+)(?:/.*)?", re.ASCII)
BLUESKY_URI = re.compile(r"at://([\w.:%-]+)/app\.bsky\.feed\.post/([\w.:~-]+)", re.ASCII)
MASTODON_STATUS = re.compile(
    r"/(?:@[\w.@-]+|(?:ap/)?users/[\w.-]+/statuses)/(\d{5,25})/?", re.ASCII
)
REDDIT_POST = re.compile(
    r"(?:/(?:r|u|user)/[\w.-]+)?/comments/([a-z0-9]{1,13})(?:/[^/]*(?:/([a-z0-9]{1,13}))?)?/?",
    re.ASCII,
)
HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f.]*:[0-9a-f:.]*\]", re.ASCII)
REDDIT_HOSTS = frozenset({"reddit.com", "old.reddit.com", "new.reddit.com", "np.reddit.com"})
PLATFORM_BY_HOST = {
    "bsky.app": "bluesky",
    **dict.fromkeys(sorted(REDDIT_HOSTS), "reddit"),
    "redd.it": "reddit",
    "news.ycombinator.com": "hackernews",
    "discord.com": "discord",
}
POST_IDS = {
    "x": X_STATUS,
    "bluesky": BLUESKY_POST,
    "mastodon": MASTODON_STATUS,
    "reddit": REDDIT_POST,
}
# A fast path: nearly all addresses are plain, and `urlsplit` costs more than the rest of a post.
PLAIN_X = re.compile(
    r"https://(?:www\.|mobile\.|m\.)?(?:x|twitter)\.com"
    + X_STATUS.pattern.removesuffix("(?:/.*)?")
    # any visible character but a backslash
    + r"(?:[/?#][!-\[\]-~]*)?",
    re.ASCII,
)
DEFAULT_PORTS = {"http": 80, "https": 443}
PATH_CHARACTERS = "/%:@!$&'()*+,;=~-._"
QUERY_CHARACTERS = PATH_CHARACTERS + "?"
MAX_LENGTH = 2048


def canonical_url(candidate: object, *, fragment: bool = False) -> str | None:
    """Normalize a post's address; return null for what is not one."""
    text = candidate.strip() if isinstance(candidate, str) else ""
    if len(text) > MAX_LENGTH:
        return None
    status = PLAIN_X.fullmatch(text)
    if status:
        return f"https://x.com/i/status/{status[1]}"
    match = BLUESKY_URI.fullmatch(text)
    address = _format_bluesky_url(match) if match else web_url(text)
    canonical = _normalize(address) if address else None
    if canonical is None or not fragment or "#" not in text or platform_of(canonical) != "web":
        return canonical
    part = quote(text.partition("#")[2], safe=QUERY_CHARACTERS)
    return (
        canonical if not part or len(part) > MAX_LENGTH - len(canonical) else f"{canonical}#{part}"
    )


def web_url(text: str | None) -> str | None:
    """Normalize a web address that is safe to keep: http or https, ASCII, without credentials."""
    text = (text or "").strip()
    # urlsplit would remove tabs and line ends, and browsers read a backslash as a slash.
    if not text or len(text) > MAX_LENGTH or any(c.isspace() or c < "!" or c == "\\" for c in text):
        return None
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
        host = f"[{host}]" if "[" in parts.netloc else host
        scheme, port = parts.scheme.lower(), parts.port
        path = quote(parts.path, safe=PATH_CHARACTERS) or "/"
        query = quote(parts.query, safe=QUERY_CHARACTERS)
    except ValueError:
        return None
    if scheme not in DEFAULT_PORTS or not HOST.fullmatch(host):
        return None
    place = host if port in (None, DEFAULT_PORTS[scheme]) else f"{host}:{port}"
    address = urlunsplit((scheme, place, path, query, ""))
    return address if len(address) <= MAX_LENGTH else None


def x_status_url(number: Any) -> str | None:
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    is_endless = isinstance(number, int) and not 0 <= number < 10**25
    digits = "" if is_endless else str(number)
    if not re.fullmatch(r"\d{1,25}", digits, re.ASCII):
        return None
    return f"https://x.com/i/status/{digits.lstrip('0') or '0'}"


def reddit_url(submission: str, comment: str | None = None) -> str:
    comment_path = "" if comment is None else f"/_/{comment}"
    return f"https://www.reddit.com/comments/{submission}{comment_path}"


@lru_cache(maxsize=64)  # called several times for one post
def platform_of(url: str) -> str:
    if url.startswith("https://x.com/"):  # most addresses, which are canonical
        return "x"
    parts = urlsplit(url)
    host = _read_host(parts)
    # X, a mirror of it, or a subdomain of one.
    if any(f".{host.rstrip('.')}".endswith(f".{domain}") for domain in X_HOSTS | X_MIRRORS):
        return "x"
    other = "mastodon" if MASTODON_STATUS.fullmatch(parts.path) else "web"
    return PLATFORM_BY_HOST.get(host, other)


def is_x_name(platform: str | None) -> bool:
    return (platform or "").strip().casefold() in X_NAMES


def post_id_of(url: str) -> str:
    if status := PLAIN_X.fullmatch(url):
        return status[1]
    pattern = POST_IDS.get(platform_of(url))
    match = pattern.fullmatch(urlsplit(url).path) if pattern else None
    return next((group for group in reversed(match.groups()) if group), url) if match else url


def _normalize(address: str) -> str:
    parts = urlsplit(address)
    host = _read_host(parts)
    if host in X_HOSTS | X_MIRRORS and (path_match := X_STATUS.fullmatch(parts.path)):
        return f"https://x.com/i/status/{path_match[1]}"
    if host == "bsky.app" and (path_match := BLUESKY_POST.fullmatch(parts.path)):
        return _format_bluesky_url(path_match)
    if host in REDDIT_HOSTS and (path_match := REDDIT_POST.fullmatch(parts.path)):
        return reddit_url(path_match[1], path_match[2])
    fields = parts.query.split("&")
    kept = [pair for pair in fields if not TRACKING.fullmatch(unquote(pair.split("=")[0]))]
    return urlunsplit((*parts[:3], "&".join(kept), ""))


def _format_bluesky_url(post_match: re.Match[str]) -> str:
    return f"https://bsky.app/profile/{post_match[1]}/post/{post_match[2]}"


def _read_host(parts: SplitResult) -> str:
    # A server on another port is another server.
    host = parts.netloc if ":" in parts.netloc else parts.hostname or ""
    return host.removeprefix("www.").removeprefix("mobile.").removeprefix("m.")
