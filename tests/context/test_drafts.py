"""What a model says about a thread is held to the rules."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.context.answers import ExtractAnswer
from echo_hf.context.drafts import Drafts
from echo_hf.reasons import Notice


def post(number: int, parent: int, text: str | None, *pictures: str) -> dict[str, Any]:
    """A post as `threads` holds it."""
    shown = [{"sha256": digest, "url": None, "alt_text": None} for digest in pictures]
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
    """A model's answer, with a quality where none is given."""
    return ExtractAnswer.model_validate(
        {"samples": [{"quality": "Benchmark", "feedback": [], **sample} for sample in samples]}
    )


def test_a_wordless_picture_goes_to_the_prompt_above_it() -> None:
    """A reply with a picture and no text joins the sample of its nearest ancestor that has one."""
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1, 2]}), EVERYTHING)

    assert [draft.posts for draft in drafts.finish()] == [[1, 2, 3]]


def test_a_post_belongs_to_the_first_sample_that_names_it() -> None:
    """The second sample of a post keeps it as its source, not its pictures, and this is noted."""
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
    """Feedback that the post does not contain is replaced by its own words."""
    drafts = Drafts(THREAD)
    said = [{"post": 2, "feedback": "amazing  result"}, {"post": 4, "feedback": "Bad anatomy."}]
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1], "feedback": said}), EVERYTHING)
    (draft,) = drafts.finish()

    assert draft.feedback == {2: "amazing  result", 4: "the hands are wrong"}
    assert drafts.findings == [(Notice.FEEDBACK_NOT_IN_POST, "https://example.org/4")]


def test_a_post_gives_feedback_once() -> None:
    """The words of a post are feedback of the first sample that claims them."""
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
    """A model cannot name a post outside the part it was shown."""
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1, 4, 99]}), [0, 1, 2])

    assert [draft.posts for draft in drafts.finish()] == [[1, 3]]  # 3 has no words: below 1
    assert drafts.findings == [(Notice.UNKNOWN_NUMBER, "4"), (Notice.UNKNOWN_NUMBER, "99")]


def test_a_sample_without_prompt_or_post_is_noted() -> None:
    """An empty sample makes no row, and is not forgotten."""
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": " ", "posts": [1]}, {"prompt": "x", "posts": []}), EVERYTHING)

    assert drafts.finish() == []
    assert [notice for notice, _ in drafts.findings] == [Notice.EMPTY_SAMPLE] * 2


def test_two_parts_that_show_one_prompt_make_one_sample() -> None:
    """Samples with the same primary post and place merge across the parts of a long thread."""
    drafts = Drafts(THREAD)
    drafts.add(answer({"prompt": "a fox in the snow", "posts": [1, 2]}), [0, 1, 2])
    drafts.add(
        answer(
            {
                "prompt": "Prompt: a fox in the snow",
                "posts": [1, 0],
                "feedback": [{"post": 4, "feedback": "the hands are wrong"}],
            }
        ),
        [0, 1, 4],
    )
    (draft,) = drafts.finish()

    assert draft.prompt == "a fox in the snow"
    assert draft.posts == [1, 2, 0, 3]
    assert draft.feedback == {4: "the hands are wrong"}


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
    """Whatever a model says, pictures and words belong to one sample at most, and names differ."""
    drafts = Drafts(THREAD)
    drafts.add(answer(*samples), EVERYTHING)
    made = drafts.finish()
    owned = [number for draft in made for number in draft.owned]
    said = [number for draft in made for number in draft.feedback]

    assert len(owned) == len(set(owned))
    assert len(said) == len(set(said))
    assert len({(draft.primary, draft.place, draft.nth) for draft in made}) == len(made)
    assert all(set(draft.owned) <= set(draft.posts) for draft in made)
    assert all(draft.posts[0] == draft.primary for draft in made)
