"""Verdicts on invented comments by plain rules, decided by hand, as careful readers would."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echo_hf.config.sections import Target
from echo_hf.curate.feedback import Feedback, FeedbackAnswer, JudgedComment
from echo_hf.engines.rules.verdicts import feedback
from tests.samples_for_tests import UNHURRIED, post, sample, table, url

TARGET = {
    "name": "Lumen Image",
    "developer": "Northlight",
    "aliases": ["lumen-img"],
    "others": ["Paintbox", "Dream-Mill"],
    "chat_window": "Lumen Chat",
}
PROMPT = "a stall at a night market, gouache"


def inputs(*comments: str, prompt: str = PROMPT, quality: str = "Benchmark") -> dict[str, Any]:
    """A request about comments on a prompt."""
    said = [{"comment": at, "text": text, "by_author": False} for at, text in enumerate(comments)]
    return {
        "prompt": prompt,
        "quality": quality,
        "inputs": 0,
        "outputs": 1,
        "comments": said,
        "target": TARGET,
    }


def judged(text: str, prompt: str = PROMPT) -> JudgedComment:
    """The verdict on one comment."""
    answer = feedback(inputs(text, prompt=prompt))
    assert answer is not None
    return FeedbackAnswer.model_validate_json(answer).feedback[0]


@pytest.mark.parametrize(
    "text",
    [
        "Stunning work",
        "how is this so good??",
        "I can't believe this is AI",
        "no weird hands for once",
        "zero typos, I checked twice",
        "it kept every crack in the paint",
        "thought that was a photograph",
        "even the moss is in the right place",
        "better than anything I've seen from Paintbox",
        "as it should",
        "9/10",
        "😍😍",
        "quedó perfecto a la primera",
        "on dirait une vraie gravure",
        "gefällt mir sehr",
        "ficou lindo demais",
        "che meraviglia",
        "还原度好高",
        "没有错字，太强了",
        "違和感ない",
        "写真かと思った",
    ],
)
def test_success(text: str) -> None:
    """Praise, in words, ratings and emoji, and failures that did not happen."""
    assert judged(text) == JudgedComment(comment=0, verdict="success")


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("this could be anyone, certainly not my brother", "identity shift"),
        ("doesn't look like me at all", "identity shift"),
        ("why is everything so orange", "colour cast"),
        ("My blue car is now purple", "colour"),
        ("it can't spell to save its life, typos everywhere", "misspelt text"),
        ("the bottom half of the text is gibberish", "text rendering"),
        ("fingers like spaghetti", "hands"),
        ("the horse has five legs", "anatomy"),
        ("it moved the sofa to the opposite wall", "layout"),
        ("her hat got chopped off", "cropping"),
        ("still can't do 16:9", "aspect ratio"),
        ("the transparent png has a checkerboard in it", "transparency"),
        ("won't generate it for me, says it violates guidelines", "refusal"),
        ("It completely ignored the second half", "ignored instruction"),
        ("doesn't look like gouache at all", "style mismatch"),
        ("skin looks like plastic", "ai look"),
        ("super blurry", "blur"),
        ("asked for seven candles, got nine", "counting"),
        ("left and right are swapped", "left and right"),
        ("the maze has no exit", "spatial reasoning"),
        ("the total doesn't add up", "arithmetic"),
        ("the cat is missing", "missing object"),
        ("hit my limit after two pictures", "usage limit"),
        ("Paintbox does this better", None),
        ("meh", None),
        ("3/10", None),
        ("🙄", None),
        ("no se parece en nada a mi hija", "identity shift"),
        ("le texte est illisible", "text rendering"),
        ("alles hat einen Gelbstich", "colour cast"),
        ("a mão tem seis dedos", "hands"),
        ("si rifiuta di farlo", "refusal"),
        ("整体偏黄", "colour cast"),
        ("文字全是乱码", "text rendering"),
        ("顔が全然違う", "identity shift"),
        ("背景が透過されない", "transparency"),
    ],
)
def test_failure(text: str, keyword: str | None) -> None:
    """Complaints, with the failure they name; without one there is no keyword."""
    assert judged(text) == JudgedComment(comment=0, verdict="failure", keyword=keyword)


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("love the mood, but the face isn't hers", "identity shift"),
        ("gorgeous until you get to the fingers", "hands"),
        ("very pretty, a touch too yellow though", "colour cast"),
        ("Everything is perfect except the fingers", "hands"),
        ("looks perfect, took me about ten rerolls", "several tries"),
        ("great suit. the door opens into a wall tho", None),
        ("muy bonito, pero las letras están mal escritas", "misspelt text"),
        ("très réussi, sauf les doigts", "hands"),
        ("toll, aber die Hände sind komisch", "hands"),
        ("lindo, só que o rosto mudou", "identity shift"),
        ("bellissimo, però le mani sono strane", "hands"),
        ("很好看，但是手指有六根", "hands"),
        ("かわいい！でも指がおかしい", "hands"),
    ],
)
def test_mixed(text: str, keyword: str | None) -> None:
    """Praise and a complaint, or praise and a "but"."""
    assert judged(text) == JudgedComment(comment=0, verdict="mixed", keyword=keyword)


@pytest.mark.parametrize(
    "text",
    [
        "what prompt did you use?",
        "does it still struggle with hands?",
        "can it do this yet?",
        "posted mine yesterday",
        "great prompt",
        "Paintbox made a terrible version of this",
        "try adding a better light",
        "用的什么提示词？",
        "プロンプト教えてください",
        "",
    ],
)
def test_none(text: str) -> None:
    """Questions, advice, praise of the prompt, and words about another model."""
    assert judged(text) == JudgedComment(comment=0, verdict="none")


def test_words_of_the_picture_are_no_complaint() -> None:
    """What the prompt describes is not held against the result, unless nothing else is said."""
    prompt = "an ugly, broken robot on a scrap heap"
    assert judged("the ugly broken robot is lovely", prompt).verdict == "success"
    assert judged("it is lovely, and so broken", "a robot").verdict == "mixed"
    assert judged("broken", prompt).verdict == "failure"


def test_what_the_prompt_forbids_is_a_complaint() -> None:
    """A failure that the prompt asks to avoid may still happen."""
    said = judged("lovely and blurry", "a fox in the snow, no blurry background")
    assert (said.verdict, said.keyword) == ("mixed", "blur")


def test_the_prompt_quoted_is_not_praise() -> None:
    """Who repeats the prompt does not judge with its words."""
    prompt = "Keep the cabin exactly where it stands"
    said = judged("“exactly where it stands”... the cabin moved to the other side", prompt)
    assert (said.verdict, said.keyword) == ("failure", "layout")


def test_removal_is_what_was_asked_for() -> None:
    """Something gone is a success where it was to be removed."""
    assert judged("the tourists are gone", "Remove the tourists").verdict == "success"
    assert judged("the tourists are gone", "A square full of tourists").verdict == "failure"


def test_answers_every_comment_by_its_number() -> None:
    """Numbers are those of the request, whatever their order; unclear comments are none."""
    request = inputs("lovely", "awful", "hm, who knows")
    for comment, number in zip(request["comments"], (7, 3, 5), strict=True):
        comment["comment"] = number
    answer = FeedbackAnswer.model_validate_json(feedback(request) or "")
    assert [one.comment for one in answer.feedback] == [7, 3, 5]
    assert [one.verdict for one in answer.feedback][:2] == ["success", "failure"]


def test_gives_kind_and_task() -> None:
    """The sample is named beside the comments; a comment has neither kind nor task."""
    assert json.loads(feedback(inputs()) or "") == {
        "kind": "task",
        "task": "text_to_image",
        "feedback": [],
    }
    talk = json.loads(feedback(inputs(prompt="is it any good?", quality="Analysis")) or "")
    assert (talk["kind"], talk["task"]) == (None, None)


POLISH = "to jest naprawdę bardzo ładne, ale nie wiem czy już tak dobrze widać twarz"
RUSSIAN = "очень красиво, но лицо совсем другое"


def test_abstains_where_no_comment_is_covered() -> None:
    """A request is left to a model where the word lists know the language of no comment."""
    assert feedback(inputs(POLISH, RUSSIAN)) is None
    assert feedback(inputs(prompt=RUSSIAN)) is None


def test_answers_where_one_comment_is_covered() -> None:
    """A comment that cannot be read is left out beside one that can, and is not called none."""
    talk = "what prompt did you use?"
    answer = FeedbackAnswer.model_validate_json(feedback(inputs(RUSSIAN, "lovely", talk)) or "")
    assert [(one.comment, one.verdict) for one in answer.feedback] == [(1, "success"), (2, "none")]


def test_a_comment_that_rules_cannot_read_is_noted() -> None:
    """The stage keeps it without a verdict, as when it stands alone, and counts it."""
    context = [post(0, -1, PROMPT), post(1, 0, "looks amazing"), post(2, 0, RUSSIAN)]
    asked = table(sample(context, [0], [1, 2], prompt=PROMPT))
    stage = Feedback(Target.model_validate({**TARGET, "released": "2026-03-02"}))
    ((request,),) = stage.requests(asked)
    answer = FeedbackAnswer.model_validate_json(feedback(request.inputs) or "")
    kept, noted = stage.finish(asked, [[answer]]).to_pylist()

    assert [one["verdict"] for one in kept["community_feedback"]] == ["success", None]
    assert (noted["_reason"], noted["_detail"]) == ("unjudged_comment", url(2))


def test_short_words_of_a_known_language_are_enough() -> None:
    """A comment with too few common words is read when it says something known."""
    assert judged("same prompt, completely different result each time").verdict == "failure"


ALPHABET = st.sampled_from(
    ["not ", "but ", "face ", "“A”", "1:1", "AB ", "不", "透明", "?", "n't", "\n"]
)


@given(st.lists(ALPHABET, max_size=40).map("".join), st.lists(ALPHABET, max_size=20).map("".join))
@settings(UNHURRIED)
def test_any_text_gives_a_valid_answer_twice_the_same(text: str, prompt: str) -> None:
    """Whatever is said, the answer has its declared shape, and asking again changes nothing."""
    answer = feedback(inputs(text, prompt=prompt))
    assert answer == feedback(inputs(text, prompt=prompt))
    if answer is not None:
        said = FeedbackAnswer.model_validate_json(answer).feedback[0]
        assert said.keyword is None or said.verdict in ("failure", "mixed")


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "not ",
        "not a",
        "、",
        "!a",
        "“A",
        "“",
        "AAAA ",
        "where ",
        "这张",
        "1:1 ",
        "(",
        "can't",
        "，但",
        "the first image ",
        "9/10 ",
        "kept ",
        "[",
        "face ",
    ],
)
def test_hostile_text_takes_no_time(piece: str) -> None:
    """The time for a text grows with its length, as comment and as prompt."""
    text = piece * (40_000 // len(piece))
    start = time.perf_counter()
    feedback(inputs(text, prompt=text))
    assert time.perf_counter() - start < 4
