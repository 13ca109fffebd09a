"""A sample as plain rules see it: its prompt, the posts around it, its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from echo_hf.engines.rules.folding import fold, words_of
from echo_hf.engines.rules.names import Names, names_of
from echo_hf.engines.rules.reading import Reading

LONGEST_TEXT = 8000
MOST_POSTS, MOST_PICTURES = 256, 256
WORD = re.compile(r"\w+")
WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a sample.

    Attributes:
        number: Its number in the request, from 1.
        post: The number of its post.
        alt_text: Its description, empty when it has none.
        file: Its bytes, null where they are not at hand.
    """

    number: int
    post: int
    alt_text: str
    file: Path | None


@dataclass(frozen=True, slots=True)
class Post:
    """A post of a sample, or one that stands around it.

    Attributes:
        number: Its number in the request.
        parent: The number of the post that it answers, -1 for none.
        author: Who wrote it, null when unknown.
        text: What it says.
        beside: What it says beside the sample's prompt.
        holds_prompt: Whether it holds the prompt.
        own: Whether it belongs to the sample.
    """

    number: int
    parent: int
    author: str | None
    text: str
    beside: str
    holds_prompt: bool
    own: bool


@dataclass(frozen=True)
class Sample:
    """A sample with its pictures.

    Attributes:
        prompt: The prompt.
        placeholders: What looks like a blank in it.
        posts: The posts by number, depth first.
        pictures: The pictures by number.
        names: The names around the target.
        window: The names of the target's chat window, null when it has none.
    """

    prompt: str
    placeholders: Sequence[str]
    posts: Mapping[int, Post]
    pictures: Mapping[int, Picture]
    names: Names
    window: Names | None

    @cached_property
    def primary(self) -> Post | None:
        """The post that states the task: the first one that holds the prompt, or else comes first.

        Where the prompt is put together from several posts, it is the one with most of its words.
        """
        own = [post for post in self.posts.values() if post.own]
        if not own:
            return None
        whole = next((post for post in own if post.holds_prompt), None)
        wanted = set(WORD.findall(self.prompt.lower()))
        return whole or max(
            own, key=lambda post: len(wanted & set(WORD.findall(post.text.lower())))
        )

    def of_post(self, number: int) -> list[Picture]:
        """The pictures of a post, in order."""
        return [one for one in self.pictures.values() if one.post == number]

    def with_pictures(self) -> Iterator[tuple[Post, list[Picture]]]:
        """The posts that have pictures, and these."""
        for post in self.posts.values():
            if pictures := self.of_post(post.number):
                yield post, pictures

    def above(self, post: Post) -> Iterator[Post]:
        """The posts above one, the nearest first."""
        for _ in range(len(self.posts)):
            parent = self.posts.get(post.parent)
            if parent is None:
                return
            yield parent
            post = parent

    def by_task_author(self, post: Post) -> bool:
        """Whether a post is by the author of the task."""
        first = self.primary
        if first is None or post is first:
            return post is first
        return post.author is not None and post.author == first.author

    def names_a_model(self, text: str) -> bool:
        """Whether a text names the target, its maker, or another model."""
        folded = fold(text)
        words = frozenset(words_of(folded))
        names = self.names
        return names.names_target(folded, words) or any(
            any(listed.finditer(folded, words)) for listed in (names.developer, names.others)
        )

    def read(self, text: str) -> Reading:
        """The signs in a text."""
        return Reading(text, self.names)


def read_sample(inputs: Mapping[str, Any]) -> Sample:
    """Reads a request about the pictures of a sample.

    Args:
        inputs: prompt, placeholders, posts, pictures and target, as the stage gives them.

    Returns:
        The sample; a text beyond what rules look at is cut.
    """
    prompt, target = inputs["prompt"], inputs["target"]
    posts = [_post(post, prompt) for post in inputs["posts"][:MOST_POSTS]]
    pictures = [_picture(one) for one in inputs["pictures"][:MOST_PICTURES]]
    return Sample(
        prompt[:LONGEST_TEXT],
        list(inputs["placeholders"]),
        {post.number: post for post in posts},
        {one.number: one for one in pictures},
        names_of(target),
        _window(target["chat_window"]),
    )


def _post(post: Mapping[str, Any], prompt: str) -> Post:
    text = (post["text"] or "")[:LONGEST_TEXT]
    pieces = text.split(prompt, maxsplit=1) if prompt else [text]
    return Post(
        post["number"],
        post["parent"],
        post["author"],
        _spaced(text),
        _spaced("\n".join(pieces)),
        len(pieces) > 1,
        post["own"],
    )


def _picture(one: Mapping[str, Any]) -> Picture:
    alt = (one["alt_text"] or "")[:LONGEST_TEXT]
    return Picture(one["number"], one["post"], _spaced(alt), one["file"])


def _spaced(text: str) -> str:
    # Patterns that may begin with white space would try a long run of it from each of its places.
    return WHITE_SPACE.sub(lambda run: "\n" if "\n" in run.group() else " ", text).strip()


def _window(name: str | None) -> Names | None:
    if not name:
        return None
    bare = {"developer": "", "aliases": (), "others": (), "chat_window": None}
    return names_of({"name": name, **bare})
