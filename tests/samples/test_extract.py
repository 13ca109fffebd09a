"""From threads to samples, with whatever a model says."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from echo_hf.pipeline.answers import Failure
from echo_hf.reasons import Notice
from echo_hf.samples.extract import Drafts, Extract
from echo_hf.samples.thread_parts import ExtractAnswer
from echo_hf.tables import THREADS
from tests.samples_for_tests import TARGET, Row, digest, post, said, url

THREAD = [
    post(0, -1, "New trick, prompt below", "r"),
    post(1, 0, "Prompt: a fox in the snow\n\nand also: a bear in the sand", "o"),
    post(2, 1, "amazing result", "m"),
    post(3, 2, None, "w"),
    post(4, 0, "the hands are wrong"),
]
EVERYTHING = list(range(len(THREAD)))
FOX, BEAR = "a fox in the snow", "a bear in the sand"


def task(prompt: str, *posts: int, quality: str = "Benchmark", **feedback: str) -> Row:
    """A sample as a model tells it; `p4="words"` is what it heard in post 4."""
    heard = [{"post": int(name[1:]), "feedback": words} for name, words in feedback.items()]
    return {"prompt": prompt, "quality": quality, "posts": list(posts), "feedback": heard}


def answer(*samples: Row) -> ExtractAnswer:
    return ExtractAnswer.model_validate({"samples": samples})


def drafted(*parts: tuple[list[int], list[Row]], thread: list[Row] = THREAD) -> Drafts:
    drafts = Drafts(thread)
    for shown, samples in parts:
        drafts.add(answer(*samples), shown)
    return drafts


HEARD = "the hands are wrong"
NOT_IN_POST, TWICE = Notice.FEEDBACK_NOT_IN_POST, Notice.POST_USED_TWICE
Told = tuple[str, str, list[int], dict[int, str]]
# Parts of an answer; prompt, quality, posts and feedback of each sample; what is noted.
CASES: dict[str, tuple[list[list[Row]], list[Told], list[Any]]] = {
    "a wordless image goes to the prompt above it": (
        [[task(FOX, 1, 2)]],
        [(FOX, "Benchmark", [1, 2, 3], {})],
        [],
    ),
    "a post belongs to the first sample that names it": (
        [[task(FOX, 1, 0), task(BEAR, 1, 0, 2)]],
        [(FOX, "Benchmark", [1, 0], {}), (BEAR, "Benchmark", [1, 2, 3], {})],
        [(TWICE, url(1)), (TWICE, url(0))],
    ),
    "feedback is what the post says": (
        [[task(FOX, 1, 2, p2="amazing  result", p4="Bad anatomy.")]],
        [(FOX, "Benchmark", [1, 2, 3], {2: "amazing  result", 4: HEARD})],
        [(NOT_IN_POST, url(4))],
    ),
    "a post gives feedback once": (
        [[task(FOX, 1, p4=HEARD), task(BEAR, 2, p4=HEARD)]],
        [(FOX, "Benchmark", [1], {4: HEARD}), (BEAR, "Benchmark", [2, 3], {})],
        [(TWICE, url(4))],
    ),
    "there is no sample without prompt or post": (
        [[task(" ", 1), task("x")]],
        [],
        [(Notice.EMPTY_SAMPLE, " "), (Notice.EMPTY_SAMPLE, "x")],
    ),
    "the best quality of several parts counts": (
        [[task("a fox", 0, quality="Analysis")], [task("a fox", 0, quality="Trash")]],
        [("a fox", "Analysis", [0, 3], {})],
        [],
    ),
    "two parts that show one prompt make one sample": (
        [[task(FOX, 1, 2, quality="Analysis")], [task("a fox  in the snow", 1, 0, p4=HEARD)]],
        [(FOX, "Benchmark", [1, 2, 0, 3], {4: HEARD})],
        [],
    ),
    "and so do two that show more and less of it": (
        [[task(FOX, 1)], [task(f"{FOX}, and more", 1)]],
        [(FOX, "Benchmark", [1, 3], {})],
        [],
    ),
    "other prompts of the same post stay apart": (
        [[task("a green owl", 0)], [task("a blue whale", 0)], [task("a green owl", 0)]],
        [("a green owl", "Benchmark", [0, 3], {}), ("a blue whale", "Benchmark", [0], {})],
        [(TWICE, url(0))],
    ),
    "the equal prompt is the one to merge with": (
        [[task(FOX, 1)], [task(f"{FOX}, and more", 1), task(FOX, 1)]],
        [(FOX, "Benchmark", [1, 3], {}), (f"{FOX}, and more", "Benchmark", [1], {})],
        [(TWICE, url(1))],
    ),
    **{
        f"our mark of what was left out is no part of a task: {quality}": (
            [[task("a fox in [... 900 characters left out]", 1, quality=said)]],
            [("a fox in [... 900 characters left out]", quality, [1, 3], {})],
            [(Notice.SHORTENED_PROMPT, url(1))],
        )
        for said, quality in (("Benchmark", "Analysis"), ("Trash", "Trash"))
    },
}


@pytest.mark.parametrize(("parts", "told", "findings"), CASES.values(), ids=CASES)
def test_samples_by_hand(parts: list[list[Row]], told: list[Told], findings: list[Any]) -> None:
    drafts = drafted(*((EVERYTHING, samples) for samples in parts))
    made = [(one.prompt, one.quality, one.posts, one.feedback) for one in drafts.finish()]
    assert made == told
    assert drafts.findings == findings


def test_numbers_that_were_not_shown_are_noted_and_left_out() -> None:
    drafts = drafted(([0, 1, 2], [task(FOX, 1, 4, 99)]))
    assert [draft.posts for draft in drafts.finish()] == [[1, 3]]  # 3 has no words: below 1
    assert drafts.findings == [(Notice.UNKNOWN_NUMBER, "4"), (Notice.UNKNOWN_NUMBER, "99")]


def test_an_image_belongs_to_the_first_sample_that_has_it() -> None:
    thread = [post(0, -1, "a", "xy"), post(1, 0, "b", "yz"), post(2, 0, "c", "x")]
    drafts = drafted(([0, 1, 2], [task("one", 0, 2), task("two", 1)]), thread=thread)
    x, y, z = map(digest, "xyz")
    assert [draft.images for draft in drafts.finish()] == [[x, y], [z]]
    assert drafts.findings == [(Notice.IMAGE_USED_TWICE, y)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, False),
        ("@mira_draws @ovi.art@example.org https://example.org/a?b=c", False),
        ("\U0001f525\u2764\ufe0f 1\ufe0f\u20e3 \u2139\ufe0f !! \U0001f1eb\U0001f1f7", False),
        ("_ ... \u2014", False),
        *((text, True) for text in ("@mira_draws wow", "9/10", "\u753b", "#fox")),
    ],
)
def test_addressees_and_signs_are_no_words(text: str | None, words: bool) -> None:
    thread = [post(0, -1, "a fox", "x"), post(1, 0, text, "y")]
    (draft,) = drafted(([0, 1], [task("a fox", 0)]), thread=thread).finish()
    assert draft.posts == ([0] if words else [0, 1])


def test_a_long_chain_of_wordless_images_is_cheap() -> None:
    chain = [post(0, -1, "a fox"), *(post(n, n - 1, None, "p") for n in range(1, 8001))]
    drafts = drafted(([0], [task("a fox", 0)]), thread=chain)
    started = time.process_time()
    (draft,) = drafts.finish()
    assert time.process_time() - started < 0.5
    assert draft.posts == list(range(8001))


NUMBERS = st.integers(-2, 7)
HEARD_BY = st.fixed_dictionaries({"post": NUMBERS, "feedback": st.sampled_from(["a", ""])})
SAMPLE = st.builds(
    lambda prompt, posts, heard: {**task(prompt, *posts), "feedback": heard},
    st.sampled_from([FOX, BEAR, "other words", ""]),
    st.lists(NUMBERS, max_size=5),
    st.lists(HEARD_BY, max_size=4),
)


@given(st.lists(SAMPLE, max_size=6))
def test_no_answer_breaks_the_accounting(samples: list[Row]) -> None:
    made = drafted((EVERYTHING, samples)).finish()
    owned = [number for draft in made for number in draft.owned]
    heard = [number for draft in made for number in draft.feedback]
    assert len(owned) == len(set(owned))
    assert len(heard) == len(set(heard))
    assert all(set(draft.owned) <= set(draft.posts) for draft in made)
    assert all(draft.posts[0] == draft.primary for draft in made)


def threads(*rows: list[Row]) -> pa.Table:
    table = [{"root_url": posts[0]["url"], "posts": posts} for posts in rows]
    return pa.Table.from_pylist(table, schema=THREADS.schema)


STUNNING = post(2, 0, "stunning", author="bo")
TABLE = threads([post(0, -1, "prompt below", "a"), post(1, 0, f"Prompt: {FOX}"), STUNNING])
TOLD = task(FOX, 1, 0, p2="stunning")


def made(table: pa.Table, *answers: list[BaseModel | Failure]) -> list[Row]:
    return list(Extract(TARGET).finish(table, list(answers)).to_pylist())


def test_a_sample_says_where_it_comes_from() -> None:
    (row,) = made(TABLE, [answer(TOLD)])
    assert (row["post_id"], row["post_urls"]) == ("1001", [url(1), url(0)])
    assert (row["input_images"], row["output_images"]) == ([], [digest("a")])
    assert row["target"] == "Lumen Image"
    assert row["community_feedback"] == [said(STUNNING)]
    assert (row["prompt_modified"], row["_parent"]) == (False, [url(0)])
    assert set(json.loads(row["provenance"])) == {"extract"}


def test_a_better_prompt_is_the_same_sample() -> None:
    (first,) = made(TABLE, [answer(TOLD)])
    (second,) = made(TABLE, [answer(task("Draw a fox in the snow", 1))])
    assert first["id"] == second["id"]
    assert first["sample_digest"] != second["sample_digest"]
    assert second["prompt_modified"]


def test_prompts_of_one_paragraph_are_told_apart_whatever_their_order() -> None:
    table = threads([post(0, -1, "try a red fox at noon, or a blue owl at dawn")])
    both = [task(words, 0) for words in ("a red fox at", "a blue owl at")]
    ids = [
        {row["prompt"]: row["id"] for row in made(table, [answer(*order)]) if row["prompt"]}
        for order in (both, both[::-1])
    ]
    assert ids[0] == ids[1]
    assert len(set(ids[0].values())) == 2


def test_a_thread_without_a_sample_is_rejected() -> None:
    (row,) = made(TABLE, [answer()])
    assert (row["_status"], row["_reason"], row["_parent"]) == ("rejected", "no_sample", [url(0)])
