"""From threads to samples, whole or in parts, with whatever a model says."""

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
from echo_hf.prompts import quote_as_data
from echo_hf.samples.extract import Extract, ExtractAnswer, ThreadDrafts, render_posts, split_thread
from echo_hf.samples.sample import SampleNotice
from echo_hf.tables import THREADS
from tests.samples_for_tests import TARGET, Row, digest, post, said, url


def reply(parent: int, author: str | None = "ana", text: str = "x" * 50) -> dict[str, Any]:
    return {
        "url": "u",
        "parent": parent,
        "author": author,
        "text": text,
        "pictures": [],
        "missing": None,
    }


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    posts = [reply(-1)]
    for _ in range(draw(st.integers(0, 25))):
        above = len(posts) - 1
        for _ in range(draw(st.integers(0, 3))):
            above = max(posts[above]["parent"], 0)
        author = draw(st.sampled_from(["ana", "bo", "cy"]))
        posts.append(reply(above, author, "y" * draw(st.integers(0, 400))))
    return posts


@given(trees(), st.integers(2000, 6000))
def test_every_post_is_shown_and_no_other_reply_twice(
    posts: list[dict[str, Any]], room: int
) -> None:
    cut = split_thread(render_posts(posts, room), room)
    shown = [number for part in cut for number in part]
    parents = {one["parent"] for one in posts}
    leaves = {n for n, one in enumerate(posts) if n not in parents and one["author"] != "ana"}

    assert set(shown) == set(range(len(posts)))
    assert all(shown.count(leaf) == 1 for leaf in leaves)
    assert all(0 in part for part in cut)


HUGE = st.builds(
    lambda piece, times: piece * times,
    st.sampled_from(["x", "<", "\x00", '"', "\u753b", "\\u003c ", "\U0001f525"]),
    st.sampled_from([0, 1, 40, 700, 3000, 60_000]),
)


@given(
    trees(),
    st.lists(st.tuples(HUGE, st.lists(HUGE, max_size=4)), max_size=6),
    st.integers(0, 400),
    st.sampled_from([2000, 2001, 3999, 24_000]),
)
def test_a_part_is_never_longer_than_allowed(
    posts: list[dict[str, Any]], huge: list[tuple[str, list[str]]], wordless: int, room: int
) -> None:
    for one, (text, alt_texts) in zip(posts, huge, strict=False):
        one["text"] = text
        one["pictures"] = [{"alt_text": alt_text} for alt_text in alt_texts]
    posts += [reply(0, None, "") for _ in range(wordless)]
    shown = render_posts(posts, room)
    cut = split_thread(shown, room)

    assert {number for part in cut for number in part} == set(range(len(posts)))
    for part in cut:
        _, block, _ = quote_as_data("thread", [shown[number] for number in part]).split("\n")
        assert len(block) <= room


def test_a_post_with_a_thousand_descriptions_fits() -> None:
    shown = render_posts([{**reply(-1), "pictures": [{"alt_text": "a"}] * 10_000}], 2000)
    alt_texts = shown[0]["alt_texts"]
    left_out = 10_000 - (len(alt_texts) - 1)

    assert len(json.dumps(shown)) <= 2000
    assert alt_texts[:-1] == ["a"] * (len(alt_texts) - 1)
    assert alt_texts[-1] == f"[... {left_out} descriptions left out]"
    assert shown[0]["text"] == "x" * 50


def test_a_cut_text_says_how_much_is_missing() -> None:
    (shown,) = render_posts([reply(-1, text="ab" * 150_000)], 4000)
    begin, mark = shown["text"].split(" [... ")

    assert 500 < len(begin) <= 1000
    assert begin == ("ab" * 500)[: len(begin)]
    assert mark == f"{300_000 - len(begin)} characters left out]"


def test_the_root_authors_replies_are_in_every_part_and_ancestors_come_with_a_reply() -> None:
    readers = [reply(0, f"reader{n}", "z" * 300) for n in range(20)]
    chain = [reply(0, "ana", "prompt"), reply(0, "bo", "hm"), reply(22, "cy", "q" * 900)]
    cut = split_thread(render_posts([reply(-1), *readers, *chain], 3000), 3000)

    assert len(cut) > 1
    assert all({0, 21} <= set(part) for part in cut)
    assert all(22 in part for part in cut if 23 in part)


def test_a_part_shows_no_more_posts_than_an_answer_can_name() -> None:
    """However roomy the context is, a part has at most 256 posts, and none is left out."""
    posts = [reply(-1), *(reply(0, "ana" if n % 3 else f"reader{n}", "x") for n in range(1500))]
    cut = split_thread(render_posts(posts, 1_000_000), 1_000_000)

    assert max(map(len, cut)) <= 256
    assert {number for part in cut for number in part} == set(range(len(posts)))


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


def drafted(*parts: tuple[list[int], list[Row]], thread: list[Row] = THREAD) -> ThreadDrafts:
    drafts = ThreadDrafts(thread)
    for shown, samples in parts:
        drafts.add(answer(*samples), shown)
    return drafts


HEARD = "the hands are wrong"
NOT_IN_POST, TWICE = SampleNotice.FEEDBACK_NOT_IN_POST, SampleNotice.POST_USED_TWICE
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
        [(SampleNotice.EMPTY_SAMPLE, " "), (SampleNotice.EMPTY_SAMPLE, "x")],
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
    "a note that follows a prompt is no part of it": (
        [[task(f"{FOX}\n\nNotes: works best at 16:9", 1)]],
        [(FOX, "Benchmark", [1, 3], {})],
        [(SampleNotice.NOTES_LEFT_OUT, "Notes: works best at 16:9")],
    ),
    **{
        f"our mark of what was left out is no part of a task: {quality}": (
            [[task("a fox in [... 900 characters left out]", 1, quality=said)]],
            [("a fox in [... 900 characters left out]", quality, [1, 3], {})],
            [(SampleNotice.SHORTENED_PROMPT, url(1))],
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
    assert drafts.findings == [
        (SampleNotice.UNKNOWN_NUMBER, "4"),
        (SampleNotice.UNKNOWN_NUMBER, "99"),
    ]


def test_an_image_belongs_to_the_first_sample_that_has_it() -> None:
    thread = [post(0, -1, "a", "xy"), post(1, 0, "b", "yz"), post(2, 0, "c", "x")]
    drafts = drafted(([0, 1, 2], [task("one", 0, 2), task("two", 1)]), thread=thread)
    x, y, z = map(digest, "xyz")
    assert [draft.images for draft in drafts.finish()] == [[x, y], [z]]
    assert drafts.findings == [(SampleNotice.IMAGE_USED_TWICE, y)]


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
    started = time.thread_time()
    (draft,) = drafts.finish()
    assert time.thread_time() - started < 0.5
    assert draft.posts == list(range(8001))


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
