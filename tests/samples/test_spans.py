"""Finding a prompt in the text it came from, and texts as places in posts."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import SpanError
from echo_hf.samples.spans import (
    MAX_TEXT,
    SourceSpan,
    SpanIndex,
    SpanSource,
    find_span_start,
    find_spans,
    join_spans,
    parse_spans,
    span_sources,
)


@pytest.mark.parametrize(
    ("prompt", "texts", "expected"),
    [
        ("draw a red fox", ["Prompt: draw a red fox, please"], True),
        ("draw  a\nred fox", ["Prompt: draw a red fox"], True),
        ("draw a red fox in the snow at night", ["draw a red fox", "in the snow at night"], True),
        ("draw a blue fox", ["Prompt: draw a red fox"], False),
        ("a fox", ["Prompt: draw a red fox"], False),
        ("fox", ["a fox!"], True),
        ("draw a red fox with a hat", ["draw a red fox"], False),
        ("画一只狐狸在雪地里", ["提示词：画一只狐狸在雪地里"], True),
        ("画一只蓝狐狸", ["提示词：画一只狐狸在雪地里"], False),
        ("", ["anything"], False),
        ("  ", ["anything"], False),
        ("anything", [], False),
    ],
)
def test_a_prompt_is_unmodified_only_when_spans_of_the_text_make_it(
    prompt: str, texts: list[str], expected: bool
) -> None:
    assert SpanIndex(texts).contains(prompt) is expected


def test_a_hundred_snippets_are_a_modification() -> None:
    texts = [f"word{n} then{n} next{n}" for n in range(9)]

    assert SpanIndex(texts[:8]).contains(" ".join(texts[:8]))
    assert not SpanIndex(texts).contains(" ".join(texts))


CHEESE = "Look what I made\n\nPrompt: a castle made of cheese, morning light, 35mm\n\nEnjoy!"
LISTED = "1. a fox in the snow\n2. a fox in the sand"


@pytest.mark.parametrize(
    ("prompt", "text", "place"),
    [
        # The anchor survives a cleaner cut.
        ("a castle made of cheese, morning light, 35mm", CHEESE, CHEESE.index("Prompt")),
        ("Prompt: a castle made of cheese, morning light", CHEESE, CHEESE.index("Prompt")),
        ("Create a castle made of cheese in morning light", CHEESE, CHEESE.index("Prompt")),
        ("a fox in the snow", LISTED, 0),
        ("a fox in the sand", LISTED, LISTED.index("2.")),
        ("entirely different words here", "a fox in the snow", -1),
        ("x", "", -1),
    ],
)
def test_a_prompt_is_anchored_in_its_paragraph(prompt: str, text: str, place: int) -> None:
    start = find_span_start(prompt, text)
    assert (start if start < 0 else text.rfind("\n", 0, start) + 1) == place


@pytest.mark.parametrize("text", ["a " * 20_000, "画" * 20_000, "[" * 20_000])
def test_a_hostile_text_costs_no_more_than_a_long_one(text: str) -> None:
    started = time.thread_time()
    SpanIndex([text]).contains(text[: len(text) // 2] + "zebra")

    assert time.thread_time() - started < 8


PIECES = ["a", "red", "fox", "in", "the", "snow", "night", "draw", "画", "像", ",", "!", "🦊"]

SPACES = st.sampled_from([" ", "  ", "\n", "\n\n", "\t", ""])
LINE = st.lists(st.tuples(st.sampled_from([*PIECES, "[pet]"]), SPACES), max_size=40).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)
POST = SpanSource("u", "text", "New trick!\nPrompt: draw a [PET] in the  snow\nat night, oil paint")


def posts(*texts: str) -> list[SpanSource]:
    return [SpanSource(f"u{number}", "text", text) for number, text in enumerate(texts)]


def inserted(spans: tuple[SourceSpan, ...] | None) -> list[str]:
    assert spans is not None
    return [span.text for span in spans if span.text is not None]


@given(st.lists(LINE, max_size=4), LINE | st.text(max_size=60))
def test_a_text_comes_back_to_the_character(texts: list[str], text: str) -> None:
    sources = posts(*texts)
    spans = find_spans(text, sources)
    if spans is not None:
        assert join_spans(spans, sources) == text
        assert tuple(parse_spans([span._asdict() for span in spans])) == spans


@given(st.lists(LINE, max_size=4), LINE)
def test_what_is_put_in_between_is_little_and_new(texts: list[str], text: str) -> None:
    """At most 8 words each, together a third of all, and none that stands in a post."""
    spans = find_spans(text, posts(*texts))
    if spans is None:
        return
    words = re.compile(r"[画像]|[a-z]+")
    known = {word for one in texts for word in words.findall(one)}
    counted = [words.findall(one.replace("[pet]", "")) for one in inserted(spans)]
    assert all(len(one) <= 8 for one in counted)
    assert sum(map(len, counted)) * 3 <= len(words.findall(text.replace("[pet]", "")))
    assert not {word for one in counted for word in one} & known


@given(st.lists(st.sampled_from(["fox", "snow", "画", ","]), min_size=1, max_size=30), st.data())
def test_other_white_space_alone_is_put_in(words: list[str], data: st.DataObject) -> None:
    gaps = st.sampled_from([" ", "\n", " \n "])
    here, there = (
        "".join(word + data.draw(gaps) for word in words).strip() for _ in ("prompt", "post")
    )
    assert "".join(inserted(find_spans(here, posts(there)))).strip() == ""


def test_a_filled_template_is_given_with_its_fillings() -> None:
    spans = find_spans("draw a fox in the snow\nat night, oil paint", [POST])
    assert [span.text or POST.text[span.start : span.end] for span in spans or ()] == [
        "draw a",
        " fox ",
        "in the",
        " ",
        "snow\nat night, oil paint",
    ]


def test_a_masked_name_does_not_count() -> None:
    post = SpanSource("u", "text", "@mira @otto @kestrel_k wow")
    spans = find_spans("[handle] [handle] [handle] wow", [post])
    assert inserted(spans) == ["[handle] [handle] [handle] "]


@pytest.mark.parametrize(
    "text",
    [
        "a knitted owl with glasses",  # as read in a screenshot
        "draw a dog at sea, noon",  # three of six words are new
        f"draw a {'very ' * 9}red [PET] in the  snow\nat night, oil paint" + " night" * 20,
        "draw a [PET] " + "x" * 81 + " in the  snow\nat night, oil paint",
        "draw a [PET] in the snow at night" + "a" * MAX_TEXT,
    ],
)
def test_what_the_posts_do_not_hold_cannot_be_given(text: str) -> None:
    assert find_spans(text, [POST]) is None


def test_the_first_source_is_preferred_and_descriptions_of_images_are_some() -> None:
    spans = find_spans("a fox", posts("see a fox", "a fox"))
    assert spans == (SourceSpan("u0", "text", 4, 9),)
    described = [{"alt_text": None}, {"alt_text": "Prompt: an owl, asleep"}]
    sources = span_sources([{"url": "u", "text": None, "pictures": described}])
    spans = find_spans("an owl, asleep", sources)
    assert spans == (SourceSpan("u", "pictures.1.alt_text", 8, 22),)


@pytest.mark.parametrize(
    "span",
    [
        SourceSpan("u", "text", -1, 4),
        SourceSpan("u", "text", 5, 4),
        SourceSpan("u", "text", 0, 10**18),
        SourceSpan("u", "text", 0, None),
        SourceSpan("u", "text", 0, 4, "and words"),
        SourceSpan("v", "text", 0, 4),
        SourceSpan(),
    ],
)
def test_a_span_that_is_no_place_is_an_error(span: SourceSpan) -> None:
    with pytest.raises(SpanError, match=r"^[^\n]{20,400}$"):
        join_spans([span], [POST])


def test_spans_cannot_make_an_endless_text() -> None:
    long = SpanSource("u", "text", "x" * 1000)
    with pytest.raises(SpanError, match="1,000,000 characters"):
        join_spans([SourceSpan("u", "text", 0, 1000)] * 1001, [long])


@pytest.mark.parametrize(
    "row",
    [
        "text",
        {"post_url": "u"},
        *(
            {**SourceSpan("u", "text", 0, 4)._asdict(), **odd}
            for odd in ({"more": 1}, {"start": "0"}, {"start": True}, {"text": ["a"]})
        ),
    ],
)
def test_a_row_that_is_no_span_is_an_error(row: object) -> None:
    with pytest.raises(SpanError, match="span"):
        parse_spans([row])
