"""Ids and digests of samples, and the posts around them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import List, Value

from echo_hf.reasons import Fact, NoticeReason, Reason, RejectReason
from echo_hf.tables import LINKED_IMAGES, SAMPLES, Column, PostRow, Table


class SampleNotice(NoticeReason):
    """Notices about what was extracted, its images and its blanks."""

    UNKNOWN_NUMBER = "unknown_number", "the model named a post, image or comment it was not shown"
    NOT_ITS_POST = "not_its_post", "the model named a post that only stands above the sample's own"
    POST_USED_TWICE = "post_used_twice", "the model gave one post to two samples; the first has it"
    IMAGE_USED_TWICE = "picture_used_twice", "two samples or tasks show one image; the first has it"
    NOTES_LEFT_OUT = "notes_left_out", "a note that follows the prompt in its post is no part of it"
    TWO_ROLES = "two_roles", "the model called an image input and output; it counts as output"
    NEITHER = "neither", "the model calls the image neither input nor output"
    NO_TASK = "no_task", "the images show no coherent task; the sample is of quality Analysis"
    UNKNOWN_BLANK = "unknown_blank", "the model filled what is no blank, or a blank too often"
    BLANK_LEFT = "blank_left", "a completed template still holds this blank; only for analysis"
    TEMPLATE_LEFT = "template_left", "the prompt is a template without values; only for analysis"
    IMAGE_NOT_THERE = "picture_not_there", "a possible input was not fetched; only for analysis"
    NOT_COMPLETED = "not_completed", "other images show completions of its template, it does not"
    COMPLETION_WITHOUT_IMAGE = "completion_without_picture", "no image shows what was completed"
    SEVERAL_IMAGES = "several_images", "an output looks like a sheet of images, or like a window"
    NOT_PARSED = "not_parsed", "the images stand in a screenshot that is yet to be taken apart"
    SHORTENED_PROMPT = "shortened_prompt", "it holds our mark of text left out; only for analysis"
    EMPTY_SAMPLE = "empty_sample", "a sample of the answer had no prompt or no post"
    FEEDBACK_NOT_IN_POST = "feedback_not_in_post", "the feedback is not text of the post it names"


Fact.FOR_ANALYSIS.mark(SampleNotice.NO_TASK, SampleNotice.BLANK_LEFT, SampleNotice.TEMPLATE_LEFT)
Fact.FOR_ANALYSIS.mark(SampleNotice.IMAGE_NOT_THERE, SampleNotice.SHORTENED_PROMPT)
Fact.CHANGES_TASK.mark(SampleNotice.TWO_ROLES, SampleNotice.IMAGE_USED_TWICE)
Fact.CHANGES_TASK.mark(SampleNotice.IMAGE_NOT_THERE, SampleNotice.BLANK_LEFT)
Fact.CHANGES_TASK.mark(SampleNotice.TEMPLATE_LEFT, SampleNotice.NOT_COMPLETED)


class Review(Reason):
    """Why a person has to look at a sample before it is published: the values of `review`."""

    MAY_SHOW_MINOR = "may_show_minor", "a real person in one of its images may be under 18"
    PERSONAL_DATA = "personal_data", "its prompt holds personal data, or is too long to be searched"
    IMAGE_METADATA = "image_metadata", "metadata of an image cannot be removed: keeping releases it"
    REMOVED_EARLIER = "removed_earlier", "a reviewer removed it; its prompt or inputs changed since"
    EDITED_EARLIER = "edited_earlier", "it lacks a reviewer's edit: prompt or inputs changed since"
    EDITED_UNSCREENED = ("edited_unscreened", "a reviewer's words or images that no guard has seen")
    SECOND_LOOK = "second_look", "a reviewer left it to somebody else; the decision's note says why"


class Doubt(NoticeReason):
    """Why a sample may not be the task that it seems to be: the values of `doubts`."""

    LACKS_INPUT = "lacks_input", "it starts from an image that came with it; none is there"
    ROLES_CONTRADICT = "roles_contradict", "it lacks an image that the model gave it and elsewhere"
    ROLES_ASSUMED = "roles_assumed", "no model saw its image: beside a labelled prompt, an output"
    SCREENSHOT_WHOLE = "screenshot_whole", "its images stand in a screenshot nobody has taken apart"
    ASSUMED_BOXES = "assumed_boxes", "nobody has said how its model names places: nothing was cut"
    COLLAGE = "collage", "an output looks like a sheet of several images, or like a window"


Fact.FOR_ANALYSIS.mark(*Doubt)


ID_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ID_CHARACTERS = 22
Sample = Mapping[str, Any]
Finding = tuple[NoticeReason | RejectReason, str | None]
SAMPLES_IN_CONTEXT = Table(
    "samples",
    "one sample with the posts that show and judge it",
    ("id",),
    {
        **SAMPLES.columns,
        "context": Column(
            List(
                {
                    "url": Value("string"),
                    "parent": Value("int32"),
                    "author": Value("string"),
                    "text": Value("string"),
                    "missing": Value("string"),
                    "pictures": LINKED_IMAGES,
                }
            ),
            "the posts of the sample and of its feedback, and those above them, depth first; "
            "parent is an index, -1 at the root",
        ),
    },
)


def sample_id(*sources: str | int) -> str:
    text = json.dumps(sources, ensure_ascii=False)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    return "".join(ID_ALPHABET[number // 57**place % 57] for place in range(ID_CHARACTERS))


def sample_ids(primary: str, text: str, starts: Sequence[int]) -> list[str]:
    ids, counts = [""] * len(starts), Counter[int]()
    order = sorted(range(len(starts)), key=lambda number: (starts[number] < 0, starts[number]))
    for rank, number in enumerate(order):
        start = starts[number]
        place = start if start < 0 else text.rfind("\n", 0, start) + 1  # of its paragraph
        ids[number] = sample_id(primary, place, counts[place]) if rank else sample_id(primary)
        counts[place] += 1
    return ids


def sample_digest(prompt: str, input_images: Sequence[str]) -> str:
    """Return the sha256 of everything that a system under test gets."""
    text = json.dumps([prompt, list(input_images)], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def own_post_positions(sample: Sample) -> list[int]:
    """Return the positions of a sample's own posts in its context."""
    place_of_url = {post["url"]: number for number, post in enumerate(sample["context"])}
    return [place_of_url[url] for url in sample["post_urls"]]


def texts_of(posts: Sequence[PostRow]) -> list[str]:
    """Return the texts of posts, and the descriptions of their images."""
    texts = [post["text"] or "" for post in posts]
    for post in posts:
        texts += [image["alt_text"] or "" for image in post["pictures"] or []]
    return texts


def read_provenance(sample: Sample, stage: str) -> dict[str, Any]:
    """Return what a stage recorded about how it made a sample."""
    record: dict[str, Any] = json.loads(sample["provenance"] or "{}").get(stage, {})
    return record


def add_provenance(sample: Sample, stage: str, record: Mapping[str, Any]) -> str:
    stages = {**json.loads(sample["provenance"]), stage: record}
    return json.dumps(stages, sort_keys=True, default=str)


def context_of(
    posts: Sequence[PostRow], own: Iterable[int], feedback: Iterable[int]
) -> list[dict[str, Any]]:
    shown_numbers: set[int] = set()
    for number in (*own, *feedback):
        while number >= 0 and number not in shown_numbers:
            shown_numbers.add(number)
            number = posts[number]["parent"]
    places = {number: place for place, number in enumerate(sorted(shown_numbers))}
    return [
        {
            **{name: posts[number][name] for name in ("url", "author", "text", "missing")},
            "parent": places.get(posts[number]["parent"], -1),
            "pictures": posts[number]["pictures"] or [],
        }
        for number in places
    ]
