"""What a model is shown of a sample, and what an answer about it may be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.prompts import load_prompt
from echo_hf.samples.shown_images import (
    LONGEST_TEXT,
    MOST_IMAGES,
    MOST_POSTS,
    RolesAnswer,
    images_of,
    parts_of,
)
from tests.samples_for_tests import TARGET, digest, image, post, sample, samples


def many(count: int, *, of_post: int = 1, primary: int = 0) -> dict[str, Any]:
    context = [post(0, -1, "prompt"), *(post(n, 0, "mine") for n in range(1, count + 1))]
    context[0]["pictures"] = [image(f"p{n}") for n in range(primary)]
    for number, one in enumerate(context[1:], 1):
        one["pictures"] = [image(f"{number}.{n}") for n in range(of_post)]
    return sample(context, range(count + 1))


def names(part: Any) -> list[str]:
    return [one.sha256 for one in part.images]


def test_own_images_are_shown_once_in_the_order_of_the_posts() -> None:
    """Not those of posts above, of other samples, or never fetched; equal bytes at their first."""
    context = [
        post(0, -1, "look", "a"),
        post(1, 0, "prompt", "bc"),
        {**post(2, 1, "mine"), "pictures": [image(None), image("c", "a cat"), image("d")]},
    ]
    row = sample(context, [2, 1])
    row["output_images"].remove(digest("d"))

    assert [(one.sha256, one.post, one.alt_text) for one in images_of(row)] == [
        (digest("b"), 1, None),
        (digest("c"), 1, None),
    ]


def test_a_part_by_hand() -> None:
    context = [
        post(0, -1, "hello", author="bo"),
        post(1, 0, "prompt", "ab"),
        post(2, 1, "hm", author="cy"),
        post(3, 2, "mine", "c", author="bo"),
    ]
    context[3]["pictures"][0]["alt_text"] = "a cat"
    (part,) = parts_of(sample(context, [1, 3], [2]), 16)
    names = ("number", "parent", "author", "text", "pictures", "own")
    posts = (
        (0, -1, "author 1", "hello", [], False),
        (1, 0, "author 2", "prompt", [1, 2], True),
        (2, 1, "author 3", "hm", [], False),
        (3, 2, "author 1", "mine", [3], True),
    )
    images = ((1, 1, None), (2, 1, None), (3, 3, "a cat"))

    assert (part.posts, part.own) == ((0, 1, 2, 3), {1, 3})
    assert part.as_data(sample(context, [1, 3]), ["[PET]"]) == {
        "prompt": "a fox in the snow",
        "placeholders": ["[PET]"],
        "posts": [dict(zip(names, one, strict=True)) for one in posts],
        "pictures": [dict(zip(("number", "post", "alt_text"), one, strict=True)) for one in images],
    }


@pytest.mark.parametrize(
    ("row", "most", "expected"),
    [
        # Every part shows what the task may start from.
        (many(5, primary=3), 4, [{0: 3, 1: 1}, {0: 2, 2: 1, 3: 1}, {0: 2, 4: 1, 5: 1}]),
        (many(4, of_post=2), 5, [{1: 2, 2: 2}, {3: 2, 4: 2}]),
        (many(1, of_post=7), 3, [{1: 3}, {1: 3}, {1: 1}]),
    ],
)
def test_the_images_of_a_post_are_judged_together(
    row: dict[str, Any], most: int, expected: list[dict[int, int]]
) -> None:
    found = [Counter(one.post for one in part.images) for part in parts_of(row, most)]
    assert found == expected


def test_the_largest_part_shows_every_post_of_its_images() -> None:
    """32 images of 32 replies: each reply is there, and so is the post with the task."""
    (part,) = parts_of(many(MOST_IMAGES), MOST_IMAGES)

    assert part.posts == tuple(range(MOST_IMAGES + 1))
    assert len(part.as_data(many(MOST_IMAGES), [])["pictures"]) == MOST_IMAGES


def test_a_part_shows_no_more_posts_than_an_answer_can_name() -> None:
    """A deep thread with very many posts is cut, but never the posts with the images."""
    context = [post(n, n - 1, "deeper") for n in range(200)]
    context[199]["pictures"] = [image("a")]
    (part,) = parts_of(sample(context, [0, 199, *range(1, 199)]), 16)

    assert len(part.posts) == MOST_POSTS
    assert {0, 199} <= set(part.posts)


def test_what_is_too_long_says_how_much_is_left_out() -> None:
    context = [post(0, -1, "prompt", "a"), post(1, 0, "y" * (LONGEST_TEXT + 7), "b")]
    context[1]["pictures"][0]["alt_text"] = context[1]["text"]
    row = sample(context, [0, 1])
    shown = parts_of(row, 16)[0].as_data(row, [])
    cut = "y" * LONGEST_TEXT + "\n[... 7 characters left out]"

    assert [one["text"] for one in shown["posts"]] == ["prompt", cut]
    assert [one["alt_text"] for one in shown["pictures"]] == [None, cut]


@given(samples(), st.integers(2, 6))
def test_whatever_the_sample_its_parts_are_right(row: dict[str, Any], most: int) -> None:
    parts = parts_of(row, most)
    every = [one.sha256 for one in images_of(row)]
    lead = set.intersection(*(set(names(part)) for part in parts)) if len(parts) > 1 else set()
    place = {one["url"]: n for n, one in enumerate(row["context"])}

    times = Counter(one for part in parts for one in names(part))
    assert set(times) == set(every) == set(row["output_images"])
    assert all(times[one] == 1 or one in lead for one in every)
    assert len(lead) <= most // 2 or len(parts) <= 1
    for part in parts:
        assert 1 <= len(part.images) <= most
        rest = [one for one in names(part) if one not in lead]
        assert rest == sorted(rest, key=every.index)
        assert part.own <= {place[one] for one in row["post_urls"]}
        _numbers_fit(part.as_data(row, []))


def _numbers_fit(shown: dict[str, Any]) -> None:
    posts, images = shown["posts"], shown["pictures"]
    assert [one["number"] for one in posts] == list(range(len(posts)))
    assert [one["number"] for one in images] == list(range(1, len(images) + 1))
    assert all(-1 <= one["parent"] < one["number"] for one in posts)
    for one in images:
        assert one["number"] in posts[one["post"]]["pictures"]
    assert sum(len(one["pictures"]) for one in posts) == len(images)
    answer = {"inputs": [one["number"] for one in images], "outputs": [], "posts": []}
    answer["posts"] = [one["number"] for one in posts]
    RolesAnswer.model_validate({"samples": [answer]})


def test_a_copy_is_pointed_out() -> None:
    context = [post(0, -1, "here", "a"), post(1, 0, "and", "bc")]
    context[1]["pictures"][0]["same_picture_of"] = digest("a")
    context[1]["pictures"][1]["same_picture_of"] = digest("z")
    row = sample(context, [0, 1])
    (part,) = parts_of(row, 16)

    assert [one.get("same_as") for one in part.as_data(row, [])["pictures"]] == [None, 1, None]


def test_the_prompt_asks_for_the_keys_of_the_answer() -> None:
    last = load_prompt("roles", TARGET).text.splitlines()[-1]
    schema = RolesAnswer.model_json_schema()
    keys = {name for part in [schema, *schema["$defs"].values()] for name in part["properties"]}

    assert {key for key in keys if f'"{key}"' not in last} == set()
