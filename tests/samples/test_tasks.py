"""Which answers speak of the same task, and the rows of samples that tasks become."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from echo_hf.samples.sample import sample_id
from echo_hf.samples.tasks import Task, doubts_of, rows_of, told_and_seen, tries, without_task
from tests.samples_for_tests import TEMPLATE, digest, post, sample, url

NAMES = st.text("abcdefgh", max_size=3).map(lambda names: "".join(dict.fromkeys(names)))


def task(inputs: str = "", outputs: str = "", posts: tuple[int, ...] = (), shot: str = "") -> Task:
    return Task("p", (), list(inputs), list(outputs), list(posts), shot or None)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=6))
def test_tries_are_what_hangs_together(drawn: list[tuple[str, str]]) -> None:
    sets = [set(inputs + outputs) for inputs, outputs in drawn]
    shared = np.array([[bool(one & other) for other in sets] for one in sets], dtype=bool)
    expected: dict[int, list[set[str]]] = {}
    for number in range(len(sets)):
        label = connected_components(shared)[1][number]
        given_ = expected.setdefault(label, [set(), set()])
        given_[0].update(drawn[number][0])
        given_[1].update(drawn[number][1])
    made = tries([task(*one) for one in drawn])

    apart = [one for one in expected.values() if one[0]]
    without = set().union(*(one[1] for one in expected.values() if not one[0]))
    if without or (drawn and not apart):
        apart.append([set(), without])
    found = [[set(one.inputs), set(one.outputs)] for one in made]
    assert sorted(found, key=repr_of) == sorted(apart, key=repr_of)


def repr_of(sets: list[set[str]]) -> list[list[str]]:
    return [sorted(one) for one in sets]


@given(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=3))
def test_no_image_is_lost_in_joining(told: list[str], seen: list[str]) -> None:
    shots = [f"s{number}" for number in range(len(seen))]
    before = tries([task("", one) for one in told])
    some = [task("", one, shot=shot) for one, shot in zip(seen, shots, strict=True)]
    made = told_and_seen(before, some)

    assert [one.screenshot for one in made if one.screenshot] == shots
    assert {name for one in made for name in one.outputs} == set("".join([*told, *seen]))


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


def completion(pet: str, *outputs: str, **values: Any) -> Task:
    fillings = (("[PET]", pet), ("[PLACE]", "sea"))
    return Task(f"a {pet} in the sea, oil paint", fillings, [], list(outputs), **values)


def rows(*tasks: Task, of: dict[str, Any] = SAMPLE) -> list[dict[str, Any]]:
    return list(rows_of(of, tasks, MADE_BY))


def feedback(row: dict[str, Any]) -> list[str]:
    return [one["feedback"] for one in row["community_feedback"]]


def test_the_only_task_is_the_sample_itself() -> None:
    (row,) = rows(Task(TEMPLATE, (), [A], [B, C], [3]))

    assert (row["id"], row["prompt"], row["prompt_fill_blank"]) == ("sample", TEMPLATE, False)
    assert (row["input_images"], row["output_images"]) == ([A], [B, C])
    assert row["post_urls"] == [url(0), url(3), url(1), url(4)]
    assert row["community_feedback"] == SAMPLE["community_feedback"]
    assert json.loads(row["provenance"]) == {"extract": {"digest": "d"}, "roles": MADE_BY}


def test_completions_and_further_tries_are_named_by_their_first_image() -> None:
    found = rows(Task("p", (), [A], [B]), Task("p", screenshot=C), completion("cat", B))
    assert [row["id"] for row in found] == [
        "sample",
        sample_id("sample", C),
        sample_id("sample", B),
    ]

    for inputs, outputs in (([A], [C]), ([C], [A])):
        found = rows(Task("p"), Task("p", (), inputs, outputs))
        assert [row["id"] for row in found] == ["sample", sample_id("sample", A)]

    found = rows(completion("kitten", B, A), completion("dog", C))
    assert [row["id"] for row in found] == [sample_id("sample", A), sample_id("sample", C)]


ASKED = "Turn this photo into a stamp"


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
        ({"doubts": None}, []),
    ],
)
def test_what_is_doubtful_of_a_sample_as_it_stands(
    values: dict[str, Any], doubts: list[str]
) -> None:
    row = {**SAMPLE, "prompt": "a fox", **values}
    assert doubts_of(row) == doubts
    assert doubts_of({**row, "doubts": doubts}) == doubts


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
    (row,) = rows(Task(prompt, fillings, [], [B]))
    (bad,) = rows(Task(prompt, fillings, [], [B]), of={**SAMPLE, "quality": "Trash"})

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
    made = rows_of(before, [completion("cat", B), completion("dog", C)], MADE_BY, {C})
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
    task = Task(prompt, (("[PET]", "cat"),), [], [B])
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
    tasks: list[Task], posts: list[list[int]], words: list[list[str]]
) -> None:
    found = rows(*tasks)
    assert [row["post_urls"] for row in found] == [[url(n) for n in some] for some in posts]
    assert list(map(feedback, found)) == words


def test_equal_bytes_in_two_posts_name_both() -> None:
    context = [post(0, -1, "p", "a"), post(1, 0, "again", "a"), post(2, 0, "other", "b")]
    found = rows(Task("p", (), [], [A]), Task("p", (), [B]), of=sample(context, [0, 1, 2]))
    assert [row["post_urls"] for row in found] == [[url(0), url(1)], [url(0), url(2)]]


@pytest.mark.parametrize(
    ("quality", "expected"),
    [("Benchmark", "Analysis"), ("Analysis", "Analysis"), ("Trash", "Trash")],
)
def test_words_without_a_task_are_for_analysis(quality: str, expected: str) -> None:
    row = without_task({**SAMPLE, "quality": quality}, MADE_BY)

    assert row["quality"] == expected
    assert (row["input_images"], row["output_images"]) == ([], [])
    assert json.loads(row["provenance"])["roles"] == MADE_BY
    for name in ("id", "post_urls", "community_feedback", "prompt", "context"):
        assert row[name] == SAMPLE[name]
