"""What a model is shown of a sample, posts and images by number, and the shape of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

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


@dataclass(frozen=True)
class SampleImage:
    sha256: str
    post: int
    alt_text: str | None
    copy_of: str | None = None


@dataclass(frozen=True)
class RequestPart:
    """What one request shows; numbers are those that the model is given.

    Attributes:
        posts: Places in the sample's context, by number from 0.
        own: Those of them that are the sample's posts.
        images: Images by number less one, in the order of their posts.
    """

    posts: tuple[int, ...]
    own: frozenset[int]
    images: tuple[SampleImage, ...]

    def as_data(self, sample: Sample, placeholders: Sequence[str]) -> dict[str, Any]:
        posts = [sample["context"][place] for place in self.posts]
        written = [*(post["text"] for post in posts), *(one.alt_text for one in self.images)]
        texts = shortened(written, LONGEST_TEXT, LONGEST_TEXTS)
        authors: dict[str, str] = {}
        places = {place: number for number, place in enumerate(self.posts)}
        numbers = {one.sha256: number for number, one in enumerate(self.images, 1)}
        said = [
            {
                "number": places[place],
                "parent": places.get(post["parent"], -1),
                "author": post["author"]
                and authors.setdefault(post["author"], f"author {len(authors) + 1}"),
                "text": text,
                "pictures": [n for n, one in enumerate(self.images, 1) if one.post == place],
                "own": place in self.own,
            }
            for place, post, text in zip(self.posts, posts, texts, strict=False)
        ]
        shown = []
        for one, text in zip(self.images, texts[len(posts) :], strict=True):
            image = {"number": numbers[one.sha256], "post": places[one.post], "alt_text": text}
            same = numbers.get(one.copy_of or "")
            shown.append({**image, "same_as": same} if same else image)
        return {
            "prompt": sample["prompt"],
            "placeholders": list(placeholders),
            "posts": said,
            "pictures": shown,
        }


def images_of(sample: Sample) -> list[SampleImage]:
    """The images that are the sample's own, each once, in the order of its posts."""
    own, candidates = set(sample["post_urls"]), set(sample["output_images"])
    found: dict[str, SampleImage] = {}
    for place, post in enumerate(sample["context"]):
        for one in post["pictures"] if post["url"] in own else ():
            if one["sha256"] in candidates:
                copied = one["same_picture_of"]
                image = SampleImage(one["sha256"], place, one["alt_text"], copied)
                found.setdefault(one["sha256"], image)
    return list(found.values())


def lost_images(sample: Sample) -> Iterator[str]:
    """The images of a sample's own posts that could not be had: whether one is an input?"""
    own = set(sample["post_urls"])
    for post in sample["context"]:
        for one in post["pictures"] if post["url"] in own else ():
            if one["sha256"] is None:
                yield one["url"] or one["alt_text"] or post["url"]


def parts_of(sample: Sample, most_pictures: int) -> list[RequestPart]:
    images = images_of(sample)
    if not images:
        return []
    if len(images) <= most_pictures:
        return [_part(sample, images)]
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
