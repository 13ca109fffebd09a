"""What a model is shown of a sample, the tasks it tells apart, and the rows they become."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.prompts import load_prompt
from echo_hf.samples.sample import sample_id
from echo_hf.samples.tasks import (
    MAX_IMAGES,
    MAX_POSTS,
    MAX_TEXT,
    MAX_TEXTS,
    RolesAnswer,
    TaskDraft,
    build_analysis_row,
    build_rows,
    find_doubts,
    own_images,
    split_images,
)
from tests.samples_for_tests import TARGET, TEMPLATE, digest, image, post, sample, samples, url


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

    assert [(one.sha256, one.post, one.alt_text) for one in own_images(row)] == [
        (digest("b"), 1, None),
        (digest("c"), 1, None),
    ]


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
    found = [Counter(one.post for one in part.images) for part in split_images(row, most)]
    assert found == expected


def test_the_largest_part_shows_every_post_of_its_images() -> None:
    """32 images of 32 replies: each reply is there, and so is the post with the task."""
    (part,) = split_images(many(MAX_IMAGES), MAX_IMAGES)

    assert part.posts == tuple(range(MAX_IMAGES + 1))
    assert len(part.as_data(many(MAX_IMAGES), [])["pictures"]) == MAX_IMAGES


def test_a_part_shows_no_more_posts_than_an_answer_can_name() -> None:
    """A deep thread with very many posts is cut, but never the posts with the images."""
    context = [post(n, n - 1, "deeper") for n in range(200)]
    context[199]["pictures"] = [image("a")]
    (part,) = split_images(sample(context, [0, 199, *range(1, 199)]), 16)

    assert len(part.posts) == MAX_POSTS
    assert {0, 199} <= set(part.posts)


def test_what_is_too_long_says_how_much_is_left_out() -> None:
    context = [post(0, -1, "prompt", "a"), post(1, 0, "y" * (MAX_TEXT + 7), "b")]
    context[1]["pictures"][0]["alt_text"] = context[1]["text"]
    row = sample(context, [0, 1])
    shown = split_images(row, 16)[0].as_data(row, [])
    cut = "y" * MAX_TEXT + "\n[... 7 characters left out]"

    assert [one["text"] for one in shown["posts"]] == ["prompt", cut]
    assert [one["alt_text"] for one in shown["pictures"]] == [None, cut]


def test_many_long_posts_are_shortened_alike() -> None:
    context = [post(0, -1, "prompt", "a"), *(post(n, 0, "x" * 4000) for n in range(1, 40))]
    row = sample(context, range(40))
    first, *texts = (one["text"] for one in split_images(row, 16)[0].as_data(row, [])["posts"])

    assert (first, len(set(texts))) == ("prompt", 1)
    assert sum(text.count("x") for text in texts) <= MAX_TEXTS


@given(samples(), st.integers(2, 6))
def test_whatever_the_sample_its_parts_are_right(row: dict[str, Any], most: int) -> None:
    parts = split_images(row, most)
    every = [one.sha256 for one in own_images(row)]
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
    (part,) = split_images(row, 16)

    assert [one.get("same_as") for one in part.as_data(row, [])["pictures"]] == [None, 1, None]


def test_the_prompt_asks_for_the_keys_of_the_answer() -> None:
    last = load_prompt("roles", TARGET).text.splitlines()[-1]
    schema = RolesAnswer.model_json_schema()
    keys = {name for part in [schema, *schema["$defs"].values()] for name in part["properties"]}

    assert {key for key in keys if f'"{key}"' not in last} == set()


A, B, C = map(digest, "abc")
MADE_BY = {"digest": "0" * 64, "engine": {"kind": "speaking"}}
CONTEXT = [
    post(0, -1, "fill it: a [PET] in the [PLACE], oil paint", "a"),
    post(1, 0, "a cat in the sea", "b"),
    post(2, 1, "so good"),
    post(3, 0, "mine", "c"),
    post(4, 3, None),
    post(5, 4, "wrong paws"),
    post(6, 0, "lol"),
]
SAMPLE = sample(CONTEXT, [0, 1, 3, 4], [2, 5, 6, 0], prompt=TEMPLATE)


def completion(pet: str, *outputs: str, **values: Any) -> TaskDraft:
    fillings = (("[PET]", pet), ("[PLACE]", "sea"))
    return TaskDraft(f"a {pet} in the sea, oil paint", fillings, [], list(outputs), **values)


def rows(*tasks: TaskDraft, of: dict[str, Any] = SAMPLE) -> list[dict[str, Any]]:
    return list(build_rows(of, tasks, MADE_BY))


def feedback(row: dict[str, Any]) -> list[str]:
    return [one["feedback"] for one in row["community_feedback"]]


def test_the_only_task_is_the_sample_itself() -> None:
    (row,) = rows(TaskDraft(TEMPLATE, (), [A], [B, C], [3]))

    assert (row["id"], row["prompt"], row["prompt_fill_blank"]) == ("sample", TEMPLATE, False)
    assert (row["input_images"], row["output_images"]) == ([A], [B, C])
    assert row["post_urls"] == [url(0), url(3), url(1), url(4)]
    assert row["community_feedback"] == SAMPLE["community_feedback"]
    assert json.loads(row["provenance"]) == {"extract": {"digest": "d"}, "roles": MADE_BY}


def test_completions_and_further_tries_are_named_by_their_first_image() -> None:
    found = rows(TaskDraft("p", (), [A], [B]), TaskDraft("p", screenshot=C), completion("cat", B))
    assert [row["id"] for row in found] == [
        "sample",
        sample_id("sample", C),
        sample_id("sample", B),
    ]

    for inputs, outputs in (([A], [C]), ([C], [A])):
        found = rows(TaskDraft("p"), TaskDraft("p", (), inputs, outputs))
        assert [row["id"] for row in found] == ["sample", sample_id("sample", A)]

    found = rows(completion("kitten", B, A), completion("dog", C))
    assert [row["id"] for row in found] == [sample_id("sample", A), sample_id("sample", C)]


ASKED = "Turn this photo into a stamp"
FILL = "a stamp with a fox, engraved in blue"


def asking(place: int) -> list[dict[str, Any]]:
    """The context where one post says that its reader has to give an image."""
    text = f"You need to upload your own photo first.\n\n{FILL}\n\nThis picture took a minute"
    posts = [post(0, -1, FILL), post(6, 0, FILL)]
    posts[place]["text"] = text
    return posts


@pytest.mark.parametrize(
    ("values", "doubts"),
    [
        ({"prompt": ASKED}, ["lacks_input"]),
        ({"prompt": "a photo of a stamp"}, []),
        ({"prompt": ASKED, "input_images": [A]}, []),
        ({"prompt": ASKED, "quality": "Trash"}, []),
        ({"prompt": ASKED, "quality": "Analysis"}, ["lacks_input"]),
        # Its inputs stand there.
        ({"prompt": ASKED, "screenshot": C}, ["screenshot_whole"]),
        ({"prompt": ASKED, "screenshot": C, "is_screenshot": True}, ["lacks_input"]),
        ({"screenshot": C, "is_screenshot": True}, []),
        ({"prompt": ASKED, "doubts": ["roles_contradict"]}, ["lacks_input", "roles_contradict"]),
        ({"doubts": ["lacks_input", "screenshot_whole"]}, []),  # of what it was before
        # The first of its own posts asks for an image; the one after it is another's.
        ({"prompt": FILL, "context": asking(0)}, ["lacks_input"]),
        ({"prompt": FILL, "context": asking(1)}, []),
        ({"prompt": FILL, "context": asking(0), "input_images": [A]}, []),
        ({"prompt": f"{FILL}, by night", "context": asking(0)}, ["lacks_input"]),
        ({"doubts": None}, []),
    ],
)
def test_what_is_doubtful_of_a_sample_as_it_stands(
    values: dict[str, Any], doubts: list[str]
) -> None:
    row = {**SAMPLE, "prompt": "a fox", **values}
    assert find_doubts(row) == doubts
    assert find_doubts({**row, "doubts": doubts}) == doubts


@pytest.mark.parametrize(
    ("prompt", "said", "doubts"),
    [(ASKED, False, []), ("a fox", True, ["lacks_input"]), (ASKED, None, ["lacks_input"])],
)
def test_who_looked_knows_better_than_words(
    prompt: str, said: bool | None, doubts: list[str]
) -> None:
    assert find_doubts({**SAMPLE, "prompt": prompt}, said) == doubts
    assert find_doubts({**SAMPLE, "prompt": prompt, "input_images": [A]}, said) == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (TEMPLATE, "Analysis"),
        ("a cat in the [PLACE], oil paint", "Analysis"),
        ("a cat in the sea, oil paint", "Benchmark"),
        ('{"colours": ["red", "blue"], "size": [4, 5]}', "Benchmark"),
    ],
)
def test_a_prompt_with_blanks_is_for_analysis(prompt: str, expected: str) -> None:
    fillings = (("[PET]", "cat"),) if "cat" in prompt else ()
    (row,) = rows(TaskDraft(prompt, fillings, [], [B]))
    (bad,) = rows(TaskDraft(prompt, fillings, [], [B]), of={**SAMPLE, "quality": "Trash"})

    assert (row["quality"], bad["quality"]) == (expected, "Trash")


def test_a_completion_says_what_it_was_made_from() -> None:
    (row,) = rows(completion("cat", B))

    assert row["prompt_fill_blank"]
    assert json.loads(row["provenance"])["roles"] == {
        **MADE_BY,
        "template": TEMPLATE,
        "blanks": [
            {"placeholder": "[PET]", "value": "cat"},
            {"placeholder": "[PLACE]", "value": "sea"},
        ],
    }


def test_what_was_to_be_reviewed_still_is() -> None:
    before = {**SAMPLE, "review": ["personal_data"]}
    made = build_rows(before, [completion("cat", B), completion("dog", C)], MADE_BY, {C})
    assert [row["review"] for row in made] == [
        ["personal_data"],
        ["personal_data", "may_show_minor"],
    ]


@pytest.mark.parametrize(
    ("prompt", "modified", "expected"),
    [
        ("mine, so good", False, True),  # two spans, but none of three words
        ("a cat in the sea", False, False),  # a post's very words
        ("a cat in the sea", True, True),
    ],
)
def test_whether_a_completion_was_written_is_computed(
    prompt: str, modified: bool, expected: bool
) -> None:
    task = TaskDraft(prompt, (("[PET]", "cat"),), [], [B])
    (row,) = rows(task, of={**SAMPLE, "prompt_modified": modified})

    assert row["prompt_modified"] is expected


ROOT_SAID = CONTEXT[0]["text"]


@pytest.mark.parametrize(
    ("tasks", "posts", "words"),
    [
        # Posts and words go with the images.
        (
            [completion("cat", B), completion("dog", C)],
            [[0, 1, 4], [0, 3]],
            [["so good", "lol", ROOT_SAID], ["wrong paws"]],
        ),
        # What the model names comes before what shows images.
        (
            [completion("cat", B, C, posts=[4, 3, 0])],
            [[0, 4, 3, 1]],
            [["so good", "wrong paws", "lol", ROOT_SAID]],
        ),
        # Words of a post in two tasks go to the first.
        (
            [completion("cat", B, posts=[4]), completion("dog", C, posts=[4])],
            [[0, 4, 1], [0, 4, 3]],
            [["so good", "wrong paws", "lol", ROOT_SAID], []],
        ),
    ],
)
def test_posts_and_words_of_tasks(
    tasks: list[TaskDraft], posts: list[list[int]], words: list[list[str]]
) -> None:
    found = rows(*tasks)
    assert [row["post_urls"] for row in found] == [[url(n) for n in some] for some in posts]
    assert list(map(feedback, found)) == words


def test_equal_bytes_in_two_posts_name_both() -> None:
    context = [post(0, -1, "p", "a"), post(1, 0, "again", "a"), post(2, 0, "other", "b")]
    found = rows(
        TaskDraft("p", (), [], [A]), TaskDraft("p", (), [B]), of=sample(context, [0, 1, 2])
    )
    assert [row["post_urls"] for row in found] == [[url(0), url(1)], [url(0), url(2)]]


@pytest.mark.parametrize(
    ("quality", "expected"),
    [("Benchmark", "Analysis"), ("Analysis", "Analysis"), ("Trash", "Trash")],
)
def test_words_without_a_task_are_for_analysis(quality: str, expected: str) -> None:
    row = build_analysis_row({**SAMPLE, "quality": quality}, MADE_BY)

    assert row["quality"] == expected
    assert (row["input_images"], row["output_images"]) == ([], [])
    assert json.loads(row["provenance"])["roles"] == MADE_BY
    for name in ("id", "post_urls", "community_feedback", "prompt", "context"):
        assert row[name] == SAMPLE[name]
