"""Take a page of the X API, version 2, apart into posts that stand alone.

Each post gets its author, its media, and the posts it refers to, as archiving tools write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from echo_hf.collect.fields import Fields

Json = Mapping[str, Any]

PARTS = frozenset({"data", "includes", "errors", "meta"})
REFERENCES = ("referenced_tweets", "referenced_posts")
INCLUDED = ("tweets", "posts")
KINDS = ("tweet", "post")


def is_page(document: Any) -> bool:
    """Whether a JSON document is a page, and not a post."""
    return isinstance(document, dict) and "id" not in document and not PARTS.isdisjoint(document)


def flattened(page: Json) -> Iterator[tuple[str, Any]]:
    """Takes a page apart.

    Args:
        page: The page.

    Yields:
        (place within the page, record). A record is a post; a post of `includes`, marked by
        `_included`; an error that names a post, under `_missing`; another error that concerns no
        user; what was wrong with the page, under `_findings`; or what stands in a post's place.
    """
    fields = Fields(page)
    inside = _Includes.of(fields)
    data = page.get("data")
    for number, post in enumerate(data if isinstance(data, list) else [data]):
        if isinstance(post, dict):
            yield f"#{number}", {**inside.complete(post), "__twarc": page.get("__twarc")}
        elif post is not None:
            yield f"#{number}", post
    for number, post in enumerate(inside.posts):
        if name_of(post.get("id")) not in inside.nested:
            yield f"#includes.{number}", {**inside.flat(post), "_included": True}
    for number, error in enumerate(fields.objects("errors")):
        if error.get("resource_type") in KINDS:
            yield f"#errors.{number}", {"_missing": error}
        elif error.get("resource_type") is None:
            yield f"#errors.{number}", error
    if fields.findings:
        yield "#page", {"_findings": [finding.detail for finding in fields.findings]}


@dataclass
class _Includes:
    """What a page says beside its posts: who wrote them, their media, posts they refer to."""

    users: Mapping[str, Json]
    media: Mapping[str, Json]
    posts: Sequence[Json]
    by_id: Mapping[str, Json]
    nested: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, page: Fields) -> _Includes:
        """Reads the `includes` of a page."""
        given = Fields(page.object("includes"), page.findings)
        posts = [one for name in INCLUDED for one in given.objects(name)]
        users, media = given.objects("users"), given.objects("media")
        return cls(_by(users, "id"), _by(media, "media_key"), posts, _by(posts, "id"))

    def flat(self, post: Json) -> dict[str, Any]:
        """A post with its author and its media."""
        attached = post.get("attachments")
        given = attached.get("media_keys") if isinstance(attached, dict) else None
        keys = given if isinstance(given, list) else []
        media = [one for key in keys if (one := self.media.get(name_of(key) or "")) is not None]
        author = self.users.get(name_of(post.get("author_id")) or "")
        return {**post, "author": author, "attachments": {"media_keys": keys, "media": media}}

    def complete(self, post: Json) -> dict[str, Any]:
        """A post with its author, its media, and the posts it refers to."""
        whole = self.flat(post)
        for name in REFERENCES:
            if isinstance(post.get(name), list):
                whole[name] = [self._reference(one) for one in post[name]]
        return whole

    def _reference(self, reference: Any) -> Any:
        name = name_of(reference.get("id")) if isinstance(reference, dict) else None
        if name is None or name not in self.by_id:
            return reference
        self.nested.add(name)
        return {**self.flat(self.by_id[name]), **reference}


def name_of(identifier: Any) -> str | None:
    """An identifier as a text, whether it came as a text or as a number; null when it is none."""
    usable = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    return str(identifier) if usable else None


def _by(objects: Sequence[Json], key: str) -> dict[str, Json]:
    named = ((name_of(one.get(key)), one) for one in objects)
    return {name: one for name, one in named if name is not None}
