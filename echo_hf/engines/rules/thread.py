"""A reply tree as plain rules see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from echo_hf.engines.rules.labelled import Found
from echo_hf.engines.rules.markers import points_elsewhere
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.prompts import find_prompt
from echo_hf.engines.rules.reading import Reading


@dataclass(frozen=True, slots=True)
class Post:
    """One post of a tree.

    Attributes:
        number: Its number; any increasing ones.
        parent: Its parent's number, which may not be among the posts shown.
        author: Who wrote it, null when unknown.
        text: What it says, empty when nothing is known.
        alt_texts: The descriptions of its pictures.
        pictures: How many pictures it has.
        said: The signs in its text.
        found: The prompt it holds.
        points: Whether it says that the prompt stands elsewhere.
    """

    number: int
    parent: int
    author: str | None
    text: str
    alt_texts: Sequence[str]
    pictures: int
    said: Reading
    found: Found | None
    points: bool


@dataclass(frozen=True)
class Thread:
    """The posts of a tree, depth first.

    Attributes:
        posts: The posts by number, parents before their children.
        names: The names around the target.
    """

    posts: Mapping[int, Post]
    names: Names = field(repr=False)

    def __iter__(self) -> Iterator[Post]:
        return iter(self.posts.values())

    def parent(self, post: Post) -> Post | None:
        """The post it replies to, null when that one is not shown."""
        above = self.posts.get(post.parent)
        return above if above and above.number < post.number else None

    def continues(self, post: Post) -> bool:
        """Whether it replies to a post of its own author."""
        above = self.parent(post)
        return above is not None and same_author(above, post)


def same_author(one: Post, other: Post) -> bool:
    """Whether two posts have the same author, and it is known."""
    return one.author is not None and one.author == other.author


def read_thread(posts: Sequence[Mapping[str, Any]], names: Names) -> Thread:
    """Reads the posts of an extraction request.

    Args:
        posts: number, parent, author, text, pictures, alt_texts of each, depth first.
        names: The names around the target.

    Returns:
        The thread, the prompt of each post found.
    """
    return Thread({post["number"]: _read(post, names) for post in posts}, names)


def _read(post: Mapping[str, Any], names: Names) -> Post:
    text, pictures = post["text"] or "", post["pictures"]
    said = Reading(text, names)
    return Post(
        post["number"],
        post["parent"],
        post["author"],
        text,
        post["alt_texts"],
        pictures,
        said,
        find_prompt(text, post["alt_texts"], names, pictures=pictures),
        points_elsewhere(said.folded),
    )
