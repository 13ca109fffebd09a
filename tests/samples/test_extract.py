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

from echo_hf.config.sections import Target
from echo_hf.pipeline.answers import Failure
from echo_hf.reasons import Notice
from echo_hf.samples.extract import Drafts, Extract
from echo_hf.samples.thread_parts import ExtractAnswer
from echo_hf.tables import THREADS


def post(number: int, parent: int, text: str | None, *images: str) -> dict[str, Any]:
    shown = [{"sha256": digest, "url": None, "alt_text": None} for digest in images]
    return {
        "url": f"https://example.org/{number}",
        "parent": parent,
        "text": text,
        "pictures": shown,
    }


THREAD = [
    post(0, -1, "New trick, prompt below", "root-picture"),
    post(1, 0, "Prompt: a fox in the snow\n\nand also: a bear in the sand", "own-picture"),
    post(2, 1, "amazing result", "mine"),
    post(3, 2, None, "wordless"),
    post(4, 0, "the hands are wrong"),
]
EVERYTHING = list(range(len(THREAD)))


def answer(*samples: dict[str, Any]) -> ExtractAnswer:
    return ExtractAnswer.model_validate(
        {"samples": [{"quality": "Benchmark", "feedback": [], **sample} for sample in samples]}
    )


def test_a_wordless_image_goes_to_the_prompt_above_it() -> None:
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1, 2]}), EVERYTHING)

    assert [draft.posts for draft in drafts.finish()] == [[1, 2, 3]]


@pytest.mark.parametrize(("given", "quality"), [("Benchmark", "Analysis"), ("Trash", "Trash")])
def test_our_mark_of_what_was_left_out_is_no_part_of_a_task(given: str, quality: str) -> None:
    drafts = Drafts(THREAD)
    prompt = "a fox in [... 900 characters left out]"
    drafts.add(answer({"prompt": prompt, "posts": [1], "quality": given}), EVERYTHING)

    assert [draft.quality for draft in drafts.finish()] == [quality]
    assert drafts.findings == [(Notice.SHORTENED_PROMPT, "https://example.org/1")]


def test_a_post_belongs_to_the_first_sample_that_names_it() -> None:
    drafts = Drafts(THREAD)
    drafts.add(
        answer(
            {"prompt": "a fox in the snow", "posts": [1, 0]},
            {"prompt": "a bear in the sand", "posts": [1, 0, 2]},
        ),
        EVERYTHING,
    )
    fox, bear = drafts.finish()

    assert (fox.posts, fox.owned) == ([1, 0], [1, 0])
    assert (bear.posts, bear.owned) == ([1, 2, 3], [2, 3])
    assert drafts.findings == [
        (Notice.POST_USED_TWICE, "https://example.org/1"),
        (Notice.POST_USED_TWICE, "https://example.org/0"),
    ]


def test_feedback_is_what_the_post_says() -> None:
    drafts = Drafts(THREAD)
    said = [{"post": 2, "feedback": "amazing  result"}, {"post": 4, "feedback": "Bad anatomy."}]
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1], "feedback": said}), EVERYTHING)
    (draft,) = drafts.finish()

    assert draft.feedback == {2: "amazing  result", 4: "the hands are wrong"}
    assert drafts.findings == [(Notice.FEEDBACK_NOT_IN_POST, "https://example.org/4")]


def test_a_post_gives_feedback_once() -> None:
    drafts = Drafts(THREAD)
    said = [{"post": 4, "feedback": "the hands are wrong"}]
    drafts.add(
        answer(
            {"prompt": "a fox in the snow", "posts": [1], "feedback": said},
            {"prompt": "a bear in the sand", "posts": [2], "feedback": said},
        ),
        EVERYTHING,
    )

    assert [draft.feedback for draft in drafts.finish()] == [{4: "the hands are wrong"}, {}]


def test_numbers_that_were_not_shown_are_noted_and_left_out() -> None:
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1, 4, 99]}), [0, 1, 2])

    assert [draft.posts for draft in drafts.finish()] == [[1, 3]]  # 3 has no words: below 1
    assert drafts.findings == [(Notice.UNKNOWN_NUMBER, "4"), (Notice.UNKNOWN_NUMBER, "99")]


def test_a_sample_without_prompt_or_post_is_noted() -> None:
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": " ", "posts": [1]}, {"prompt": "x", "posts": []}), EVERYTHING)

    assert drafts.finish() == []
    assert [notice for notice, _ in drafts.findings] == [Notice.EMPTY_SAMPLE] * 2


@pytest.mark.parametrize("again", ["a fox  in the snow", "a fox in the snow, and more"])
def test_two_parts_that_show_one_prompt_make_one_sample(again: str) -> None:
    drafts = Drafts(THREAD)
    fox = {"prompt": "a fox in the snow", "posts": [1, 2], "quality": "Analysis"}
    drafts.add(answer(fox), [0, 1, 2])
    said = [{"post": 4, "feedback": "the hands are wrong"}]
    drafts.add(answer({"prompt": again, "posts": [1, 0], "feedback": said}), [0, 1, 4])
    (draft,) = drafts.finish()

    assert (draft.prompt, draft.quality) == ("a fox in the snow", "Benchmark")
    assert draft.posts == [1, 2, 0, 3]
    assert draft.feedback == {4: "the hands are wrong"}


def test_a_worse_quality_in_a_later_part_does_not_count() -> None:
    drafts = Drafts(THREAD)
    for quality in ("Analysis", "Trash"):
        drafts.add(answer({"prompt": "a fox", "posts": [0], "quality": quality}), EVERYTHING)

    assert [draft.quality for draft in drafts.finish()] == ["Analysis"]


def test_other_prompts_with_the_same_primary_post_stay_apart() -> None:
    drafts = Drafts(THREAD)
    for prompt in ("a green owl", "a blue whale", "a green owl"):
        drafts.add(answer({"prompt": prompt, "posts": [0]}), EVERYTHING)

    assert [draft.prompt for draft in drafts.finish()] == ["a green owl", "a blue whale"]


def test_the_equal_prompt_is_the_one_to_merge_with() -> None:
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1]}), EVERYTHING)
    longer = {"prompt": "a fox in the snow, and more", "posts": [1]}
    drafts.add(answer(longer, {"prompt": "a fox in the snow", "posts": [1]}), EVERYTHING)

    assert [draft.prompt for draft in drafts.finish()] == [
        "a fox in the snow",
        "a fox in the snow, and more",
    ]


def test_an_image_belongs_to_the_first_sample_that_has_it() -> None:
    drafts = Drafts([post(0, -1, "a", "x", "y"), post(1, 0, "b", "y", "z"), post(2, 0, "c", "x")])
    drafts.add(
        answer({"prompt": "one", "posts": [0, 2]}, {"prompt": "two", "posts": [1]}), [0, 1, 2]
    )

    assert [draft.images for draft in drafts.finish()] == [["x", "y"], ["z"]]
    assert drafts.findings == [(Notice.IMAGE_USED_TWICE, "y")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, False),
        ("@mira_draws @ovi.art@example.org https://example.org/a?b=c", False),
        ("\U0001f525\u2764\ufe0f 1\ufe0f\u20e3 \u2139\ufe0f !! \U0001f1eb\U0001f1f7", False),
        ("_ ... \u2014", False),
        ("@mira_draws wow", True),
        ("9/10", True),
        ("\u753b", True),
        ("#fox", True),
    ],
)
def test_addressees_and_signs_are_no_words(text: str | None, words: bool) -> None:
    drafts = Drafts([post(0, -1, "a fox", "x"), post(1, 0, text, "y")])
    drafts.add(answer({"prompt": "a fox", "posts": [0]}), [0, 1])

    assert [draft.posts for draft in drafts.finish()] == [[0] if words else [0, 1]]


def test_a_long_chain_of_wordless_images_is_cheap() -> None:
    chain = [post(0, -1, "a fox"), *(post(n, n - 1, None, f"p{n}") for n in range(1, 8001))]
    drafts = Drafts(chain)
    drafts.add(answer({"prompt": "a fox", "posts": [0]}), [0])
    started = time.process_time()
    (draft,) = drafts.finish()

    assert time.process_time() - started < 0.5
    assert draft.posts == list(range(8001))


def test_a_post_without_text_gives_no_feedback() -> None:
    drafts = Drafts(THREAD)
    said = [{"post": 3, "feedback": "lovely"}]
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1], "feedback": said}), EVERYTHING)

    assert [draft.feedback for draft in drafts.finish()] == [{}]
    assert drafts.findings == [(Notice.FEEDBACK_NOT_IN_POST, "https://example.org/3")]


NUMBERS = st.lists(st.integers(-2, 7), max_size=5)
SAMPLE = st.fixed_dictionaries(
    {
        "prompt": st.sampled_from(["a fox in the snow", "a bear in the sand", "other words", ""]),
        "posts": NUMBERS,
        "feedback": st.lists(
            st.fixed_dictionaries(
                {"post": st.integers(-2, 7), "feedback": st.sampled_from(["a", ""])}
            ),
            max_size=4,
        ),
    }
)


@given(st.lists(SAMPLE, max_size=6))
def test_no_answer_breaks_the_accounting(samples: list[dict[str, Any]]) -> None:
    drafts = Drafts(THREAD)
    drafts.add(answer(*samples), EVERYTHING)
    made = drafts.finish()
    owned = [number for draft in made for number in draft.owned]
    said = [number for draft in made for number in draft.feedback]

    assert len(owned) == len(set(owned))
    assert len(said) == len(set(said))
    assert all(set(draft.owned) <= set(draft.posts) for draft in made)
    assert all(draft.posts[0] == draft.primary for draft in made)


TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
ROOT = "https://x.com/i/status/100"
REPLY = "https://x.com/i/status/101"
DIGEST = "ab" * 32


def collected(
    url: str, parent: int, text: str | None, *images: str, author: str = "ana"
) -> dict[str, Any]:
    return {
        "url": url,
        "parent": parent,
        "depth": 0 if parent < 0 else 1,
        "author": author,
        "text": text,
        "timestamp": None,
        "missing": None,
        "pictures": [{"sha256": one, "url": None, "alt_text": None} for one in images],
    }


def threads(*rows: list[dict[str, Any]]) -> pa.Table:
    table = [{"root_url": posts[0]["url"], "posts": posts} for posts in rows]
    return pa.Table.from_pylist(table, schema=THREADS.schema)


TABLE = threads(
    [
        collected(ROOT, -1, "prompt below", DIGEST),
        collected(REPLY, 0, "Prompt: a fox in the snow"),
        collected("https://x.com/i/status/102", 0, "stunning", author="bo"),
    ]
)


def answered(*samples: dict[str, Any]) -> BaseModel:
    return ExtractAnswer.model_validate({"samples": list(samples)})


FOX = {
    "prompt": "a fox in the snow",
    "quality": "Benchmark",
    "posts": [1, 0],
    "feedback": [{"post": 2, "feedback": "stunning"}],
}


def made(
    table: pa.Table, *answers: list[BaseModel | Failure], **options: Any
) -> list[dict[str, Any]]:
    return list(Extract(TARGET, **options).finish(table, list(answers)).to_pylist())


def test_a_sample_says_where_it_comes_from() -> None:
    (row,) = made(TABLE, [answered(FOX)])

    assert row["post_id"] == "101"
    assert row["post_urls"] == [REPLY, ROOT]
    assert row["output_images"] == [DIGEST]
    assert (row["input_images"], row["target"]) == ([], "Lumen Image")
    assert row["community_feedback"] == [
        {
            "post_id": "102",
            "post_url": "https://x.com/i/status/102",
            "author": None,
            "feedback": "stunning",
            "sha256": None,
            "spans": None,
            "verdict": None,
            "keyword": None,
        }
    ]
    assert (row["prompt_modified"], row["_parent"]) == (False, [ROOT])
    assert set(json.loads(row["provenance"])) == {"extract"}


def test_a_better_prompt_is_the_same_sample() -> None:
    (first,) = made(TABLE, [answered(FOX)])
    (second,) = made(TABLE, [answered({**FOX, "prompt": "Draw a fox in the snow", "posts": [1]})])

    assert first["id"] == second["id"]
    assert first["sample_digest"] != second["sample_digest"]
    assert second["prompt_modified"]


def test_the_order_of_an_answer_does_not_change_ids() -> None:
    table = threads([collected(ROOT, -1, "try a red fox at noon, or a blue owl at dawn")])
    both = [{**FOX, "prompt": words, "posts": [0]} for words in ("a red fox at", "a blue owl at")]
    ids = [
        {row["prompt"]: row["id"] for row in made(table, [answered(*order)]) if row["prompt"]}
        for order in (both, both[::-1])
    ]

    assert ids[0] == ids[1]
    assert len(set(ids[0].values())) == 2


def test_two_prompts_of_one_paragraph_are_two_samples() -> None:
    rows = made(TABLE, [answered(FOX, {**FOX, "prompt": "a fox in the snow at night"})])
    samples = [row for row in rows if row["_status"] == "kept"]

    assert len({row["id"] for row in samples}) == 2
    assert [row["output_images"] for row in samples] == [[DIGEST], []]


def test_a_thread_without_a_sample_is_rejected() -> None:
    (row,) = made(TABLE, [answered()])

    assert (row["_status"], row["_reason"], row["_parent"]) == ("rejected", "no_sample", [ROOT])
