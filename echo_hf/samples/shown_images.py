"""What a model is shown of a sample, posts and images by number, and the shape of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.text import shortened
from echo_hf.samples.sample import Sample, places_of

MOST_IMAGES = 32  # of one request: no request shows more
MOST_POSTS = 64  # likewise
MOST_BLANKS = 32
LONGEST_PLACEHOLDER = 1000  # with the value that it may propose
LONGEST_VALUE = 1000

Number = Annotated[int, Field(ge=0, le=999_999)]
ImageNumbers = Annotated[list[Number], Field(max_length=MOST_IMAGES)]


class FilledBlank(BaseModel):
    """A placeholder of a template, copied from it letter for letter, and what stands for it."""

    model_config = ConfigDict(extra="ignore")

    placeholder: Annotated[str, Field(min_length=1, max_length=LONGEST_PLACEHOLDER)]
    value: Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]


class RolesSample(BaseModel):
    """One task: its pictures and posts, what fills its blanks, the screenshot it is read from.

    `may_show_minor` is null where nothing was said of it.
    """

    model_config = ConfigDict(extra="ignore")

    inputs: ImageNumbers
    outputs: ImageNumbers
    posts: Annotated[list[Number], Field(max_length=MOST_POSTS)]
    prompt_fill_blank: Annotated[list[FilledBlank], Field(max_length=MOST_BLANKS)] = []
    conversation: Number | None = None
    collage: Number | None = None
    may_show_minor: bool | None = None


class RolesAnswer(BaseModel):
    """What the pictures of a sample are; no sample where no coherent task can be made out."""

    model_config = ConfigDict(extra="ignore")

    samples: Annotated[list[RolesSample], Field(max_length=MOST_IMAGES)]


LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of all posts and descriptions of a part together


class SampleImage(NamedTuple):
    sha256: str
    post: int
    alt_text: str | None
    copy_of: str | None = None


@dataclass(frozen=True)
class RequestPart:
    """What one request shows: places in the sample's context, by number from 0; own ones among
    them; images by number less one, in the order of their posts.
    """

    posts: tuple[int, ...]
    own: frozenset[int]
    images: tuple[SampleImage, ...]

    def as_data(self, sample: Sample, placeholders: Sequence[str]) -> dict[str, Any]:
        context = sample["context"]
        written = [context[place]["text"] for place in self.posts]
        written += [one.alt_text for one in self.images]
        texts = iter(shortened(written, LONGEST_TEXT, LONGEST_TEXTS))
        authors: dict[str, str] = {}
        places = {place: number for number, place in enumerate(self.posts)}
        numbers = {one.sha256: number for number, one in enumerate(self.images, 1)}
        posts: list[dict[str, Any]] = [
            {
                "number": places[place],
                "parent": places.get(context[place]["parent"], -1),
                "author": context[place]["author"]
                and authors.setdefault(context[place]["author"], f"author {len(authors) + 1}"),
                "text": next(texts),
                "pictures": [n for n, one in enumerate(self.images, 1) if one.post == place],
                "own": place in self.own,
            }
            for place in self.posts
        ]
        images = []
        for number, one in enumerate(self.images, 1):
            image = {"number": number, "post": places[one.post], "alt_text": next(texts)}
            same = numbers.get(one.copy_of or "")
            images.append({**image, "same_as": same} if same else image)
        return {
            "prompt": sample["prompt"],
            "placeholders": list(placeholders),
            "posts": posts,
            "pictures": images,
        }


def _own_images(sample: Sample) -> Iterator[tuple[int, Mapping[str, Any]]]:
    own = set(sample["post_urls"])
    for place, post in enumerate(sample["context"]):
        for one in post["pictures"] if post["url"] in own else ():
            yield place, one


def images_of(sample: Sample) -> list[SampleImage]:
    """The images that are the sample's own, each once, in the order of its posts."""
    candidates, found = set(sample["output_images"]), dict[str, SampleImage]()
    for place, one in _own_images(sample):
        if one["sha256"] in candidates:
            image = SampleImage(one["sha256"], place, one["alt_text"], one["same_picture_of"])
            found.setdefault(one["sha256"], image)
    return list(found.values())


def lost_images(sample: Sample) -> Iterator[str]:
    """The images of a sample's own posts that could not be had: whether one is an input?"""
    for place, one in _own_images(sample):
        if one["sha256"] is None:
            yield one["url"] or one["alt_text"] or sample["context"][place]["url"]


def parts_of(sample: Sample, most_pictures: int) -> list[RequestPart]:
    """All images at once; of very many, those of the first post in each part, others in slices."""
    images = images_of(sample)
    if len(images) <= most_pictures:
        return [_part(sample, images)] if images else []
    primary = places_of(sample)[0]
    anchors = [one for one in images if one.post == primary][: most_pictures // 2]
    rest = [one for one in images if one not in anchors]
    most = most_pictures - len(anchors)
    slices: list[list[SampleImage]] = [[]]
    for _, of_post in groupby(rest, attrgetter("post")):
        together = list(of_post)
        if slices[-1] and len(slices[-1]) + len(together) > most:
            slices.append([])
        slices[-1] += together
        while len(slices[-1]) > most:
            slices[-1:] = [slices[-1][:most], slices[-1][most:]]
    return [_part(sample, anchors + some) for some in slices]


def _part(sample: Sample, images: Sequence[SampleImage]) -> RequestPart:
    context, own = sample["context"], places_of(sample)
    # The post with the task and those with images always; others while there is room.
    wanted = dict.fromkeys([own[0], *(one.post for one in images), *own])
    some = list(wanted)[: MOST_IMAGES + 1]
    for place in tuple(some):
        while (place := context[place]["parent"]) >= 0 and len(some) < MOST_POSTS:
            if place not in some:
                some.append(place)
    return RequestPart(tuple(sorted(some)), frozenset(own) & set(some), tuple(images))
