"""Read a platform's answer with the source of its name."""

from __future__ import annotations

import json
from collections.abc import Iterable

from echo_hf.collect.sources.base import Post, make_source
from echo_hf.reasons import Missing

WHY = {one.value: one for one in Missing}


def read_posts(platform: str, body: str) -> list[Post]:
    """The posts of an answer, those included that are missing.

    Args:
        platform: Name of the platform, and of its source.
        body: The answer.

    Returns:
        Its posts; what was wrong with them is left for the stage that collects to say.
    """
    source = make_source(platform)
    records = (record for _, record in source.split([body]))
    parsed = (one for record in records for one in source.posts(_decoded(record), ()))
    return [one for one in parsed if isinstance(one, Post)]


def missing_among(posts: Iterable[Post], urls: Iterable[str]) -> dict[str, Missing]:
    """Which of some posts are missing, and why.

    Args:
        posts: Posts as a source read them.
        urls: Addresses of those that matter.

    Returns:
        Why, for each of those that are missing.

    Example:
        >>> missing_among([Post(url="https://a.example/", missing="deleted")],
        ...               ["https://a.example/", "https://b.example/"])["https://a.example/"].value
        'deleted'
    """
    wanted = set(urls)
    return {post.url: WHY[post.missing] for post in posts if post.missing and post.url in wanted}


def _decoded(record: str) -> object:
    try:
        return json.loads(record)
    except (ValueError, RecursionError):
        return None
