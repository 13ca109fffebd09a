"""Addresses of posts in one spelling, so that the same post is the same row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from echo_hf.config.collection import SITES

# Only names that trackers alone use: parameters that tell posts apart must stay.
TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|igshid|igsh|mc_cid|mc_eid|ref_src|ref_url|xmt", re.ASCII | re.IGNORECASE
)
HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f.]*:[0-9a-f:.]*\]", re.ASCII)
DEFAULT_PORTS = {"http": 80, "https": 443}
PATH_CHARACTERS = "/%:@!$&'()*+,;=~-._"
QUERY_CHARACTERS = PATH_CHARACTERS + "?"
MAX_LENGTH = 2048
WEB = "web"  # the platform of an address that no site has


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the posts of a platform are, and how their addresses are written.

    Attributes:
        platform: Name of the platform.
        hosts: Its hosts without `www.`, `mobile.` and `m.`, the one of canonical addresses first;
            empty where any host may be one of its servers, which then the path tells.
        mirrors: Hosts that show its posts under other addresses.
        subdomains: Whether all hosts below these are the platform's, too.
        post: Path of a post's address; the last group that matches is the post's identifier.
        canonical: Makes the one spelling of an address from a match of `post`; null keeps it.
        plain: Whole addresses that most are like, with the groups of `post`: a fast path.
        uri: Other names of posts, with the groups of `post`, such as `at://...`.
        by_identifier: Makes an address from an identifier alone; null where that is not enough.
        names: What people call the platform.
        federated: Whether an account is one of its server, rather than of the platform.
        restricted: Whether its terms let others pass on the addresses of posts, but not the posts.
        account_hosts: Regular expression of the hosts whose paths begin with an account's name.
        account_domain: Domain whose subdomains are names of accounts.
    """

    platform: str
    hosts: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    subdomains: bool = False
    post: re.Pattern[str] | None = None
    canonical: Callable[[re.Match[str]], str] | None = None
    plain: re.Pattern[str] | None = None
    uri: re.Pattern[str] | None = None
    by_identifier: Callable[[Any], str | None] | None = None
    names: tuple[str, ...] = ()
    federated: bool = False
    restricted: bool = False
    account_hosts: str | None = None
    account_domain: str | None = None


class SiteIndex:
    """All sites, built in and of plug-ins, by what tells them."""

    def __init__(self) -> None:
        self.sites: list[Site] = [SITES.find(name) for name in SITES.list_names()]
        self.by_name = {name: site for site in self.sites for name in (site.platform, *site.names)}
        self.by_host = {host: site for site in self.sites for host in (*site.hosts, *site.mirrors)}
        self.domains = [f".{host}" for host, site in self.by_host.items() if site.subdomains]
        self.prefixes = {f"https://{site.hosts[0]}/": site for site in self.sites if site.hosts}
        self.plain = [(site.plain, site.canonical) for site in self.sites if site.plain]
        self.uris = [(site.uri, site.canonical) for site in self.sites if site.uri]
        self.account_domains = [site.account_domain for site in self.sites if site.account_domain]
        self.by_path = [(site.post, site) for site in self.sites if site.post and not site.hosts]

    def find(self, url: str) -> Site | None:
        """Find the site of an address; null for one of the web at large."""
        for prefix, site in self.prefixes.items():  # most addresses, which are canonical
            if url.startswith(prefix):
                return site
        parts = urlsplit(url)
        host = _read_host(parts)
        if site_of_host := self.by_host.get(host):
            return site_of_host
        ending = f".{host.rstrip('.')}"
        if domain := next((domain for domain in self.domains if ending.endswith(domain)), None):
            return self.by_host[domain[1:]]
        return next((site for post, site in self.by_path if post.fullmatch(parts.path)), None)


def index_sites() -> SiteIndex:
    return _index_sites(len(SITES.entries))


@lru_cache(maxsize=1)
def _index_sites(registered: int) -> SiteIndex:
    del registered  # of what a plug-in registers later, the index is made anew
    return SiteIndex()


def name_platform(name: str | None) -> str | None:
    """Return the platform that people call so; null for a name that no platform has."""
    site = index_sites().by_name.get((name or "").strip().casefold())
    return site.platform if site else None


def is_restricted(platform: str | None) -> bool:
    site = index_sites().by_name.get(platform or "")
    return site is not None and site.restricted


def restricted_platforms() -> frozenset[str]:
    """Return the platforms whose terms let others pass on addresses of posts, but not the posts."""
    return frozenset(site.platform for site in index_sites().sites if site.restricted)


def identified_urls(identifier: Any, platform: str | None = None) -> Iterator[str]:
    """Yield the addresses that an identifier alone may stand for, of one platform or of all."""
    for site in index_sites().sites:
        if site.by_identifier is None or platform not in (None, site.platform):
            continue
        if url := site.by_identifier(identifier):
            yield url


def canonical_url(candidate: object, *, fragment: bool = False) -> str | None:
    """Normalize a post's address; return null for what is not one."""
    text = candidate.strip() if isinstance(candidate, str) else ""
    if len(text) > MAX_LENGTH:
        return None
    index = index_sites()
    for pattern, write in index.plain:
        if (match := pattern.fullmatch(text)) and write:
            return write(match)
    address: str | None = None
    for pattern, write in index.uris:
        if (match := pattern.fullmatch(text)) and write:
            address = write(match)
    address = address or web_url(text)
    canonical = _normalize(address) if address else None
    if canonical is None or not fragment or "#" not in text or platform_of(canonical) != WEB:
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


@lru_cache(maxsize=64)  # called several times for one post
def platform_of(url: str) -> str:
    site = index_sites().find(url)
    return site.platform if site else WEB


def post_id_of(url: str) -> str:
    index = index_sites()
    for pattern, _ in index.plain:
        if plain := pattern.fullmatch(url):
            return plain[1]
    site = index.find(url)
    match = site.post.fullmatch(urlsplit(url).path) if site and site.post else None
    return next((group for group in reversed(match.groups()) if group), url) if match else url


def _normalize(address: str) -> str:
    parts = urlsplit(address)
    site = index_sites().by_host.get(_read_host(parts))
    if site and site.post and site.canonical and (match := site.post.fullmatch(parts.path)):
        return site.canonical(match)
    fields = parts.query.split("&")
    kept = [pair for pair in fields if not TRACKING.fullmatch(unquote(pair.split("=")[0]))]
    return urlunsplit((*parts[:3], "&".join(kept), ""))


def _read_host(parts: SplitResult) -> str:
    # A server on another port is another server.
    host = parts.netloc if ":" in parts.netloc else parts.hostname or ""
    return host.removeprefix("www.").removeprefix("mobile.").removeprefix("m.")
