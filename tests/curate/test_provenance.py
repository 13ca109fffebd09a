"""Where the words and images of a sample stand in the posts, and quotations in its provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.provenance import add_quotes, add_sources, add_texts, read_quotes, remove_quotes
from echo_hf.errors import SpanError
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.tables import SAMPLES
from tests.samples_for_tests import Row, digest, post, sample, samples, table, url

TEXT = "New trick!\nPrompt: a fox in the snow"


def noted(of: Row) -> Row:
    return add_sources(of, of["context"])


def read(spans: Sequence[Mapping[str, Any]], context: Sequence[Row]) -> str:
    """The text that spans give, cut out of the posts by hand."""
    posts = {one["url"]: one for one in context}
    return "".join(
        span["text"]
        if span["text"] is not None
        else posts[span["post_url"]]["text"][span["start"] : span["end"]]
        if span["field"] == "text"
        else posts[span["post_url"]]["pictures"][int(span["field"].split(".")[1])]["alt_text"][
            span["start"] : span["end"]
        ]
        for span in spans
    )


def test_the_samples_own_posts_come_first() -> None:
    context = [post(0, -1, "a fox in the snow"), post(1, 0, TEXT), post(2, 1, "at night")]
    near = noted(sample(context, own=[1, 2]))
    assert near["prompt_sha256"] == hashlib.sha256(b"a fox in the snow").hexdigest()
    assert noted(sample(context, prompt="an owl with glasses, knitted"))["prompt_spans"] == []
    far = noted(sample([post(0, -1, "a fox in the snow"), post(1, 0, "mine")], own=[1]))
    assert {span["post_url"] for span in near["prompt_spans"]} == {url(1)}
    assert {span["post_url"] for span in far["prompt_spans"]} == {url(0)}


def test_words_of_another_post_are_a_place_in_it() -> None:
    """Few enough to be put in between, but another post says them: they are not published."""
    mine = "Prompt: a fox in the snow at night with lights under a bright blue moon"
    theirs = "better: holding red balloons"
    prompt = "a fox in the snow holding red balloons at night with lights under a bright blue moon"
    context = [post(0, -1, mine), post(1, 0, theirs)]
    spans = noted(sample(context, own=[0], prompt=prompt))["prompt_spans"]
    assert read(spans, context) == prompt
    assert [span["text"].strip() for span in spans if span["text"] is not None] == [""] * 2
    assert {span["post_url"] for span in spans} == {url(0), url(1), None}


@pytest.mark.parametrize(
    ("inserted", "is_refused"),
    [("holding red balloons", True), ("Holding, RED balloons", True), ("holding red", False)],
)
def test_feedback_does_not_repeat_another_post_of_the_thread(
    inserted: str, is_refused: bool
) -> None:
    mine = "I like how the fox looks in the snow and at night"
    context = [post(0, -1, TEXT), post(1, 0, "try: holding red balloons"), post(2, 0, mine)]
    made = sample(context, feedback=[2])
    made["community_feedback"][0]["feedback"] = f"{mine} {inserted}"
    (said,) = noted(made)["community_feedback"]
    assert (said["spans"] == []) is is_refused
    assert is_refused or read(said["spans"], context) == f"{mine} {inserted}"


def test_feedback_is_a_place_in_the_post_that_said_it() -> None:
    """Never in another one, though that says the same; a mask is put in."""
    context = [post(0, -1, TEXT), post(1, 0, "wow so good"), post(2, 0, "@mira wow so good")]
    made = sample(context, feedback=[2])
    made["community_feedback"][0]["feedback"] = "[handle] wow so good"
    (said,) = noted(made)["community_feedback"]
    assert {span["post_url"] for span in said["spans"]} == {url(2), None}
    assert read(said["spans"], context) == "[handle] wow so good"
    assert said["sha256"] == hashlib.sha256(b"[handle] wow so good").hexdigest()


def test_each_image_has_its_post_and_address() -> None:
    context = [post(0, -1, TEXT, "ab"), post(1, 0, "mine", "cs")]
    context[1]["pictures"][0]["url"] = "https://pbs.example/c"
    names = {name: digest(name) for name in "abcs"}
    row = noted(
        sample(
            context,
            [0, 1],
            input_images=[names["b"]],
            output_images=[names["c"], names["a"], digest("z")],
            screenshot=names["s"],
        )
    )
    assert [(one["sha256"], one["role"], one["post_url"], one["url"], one["of"], one["box"])
            for one in row["picture_sources"]] == [
        (names["b"], "input", url(0), None, None, None),
        (names["c"], "output", url(1), "https://pbs.example/c", None, None),
        (names["a"], "output", url(0), None, None, None),
        (digest("z"), "output", None, None, None, None),
        (names["s"], "screenshot", url(1), None, None, None),
    ]  # fmt: skip


def test_what_was_cut_out_has_its_box() -> None:
    context = [post(0, -1, TEXT, "s"), post(1, 0, "and", "o")]
    row = noted(
        sample(
            context,
            [0, 1],
            input_images=[digest("crop")],
            output_images=[digest("other crop"), digest("o")],
            screenshot=digest("s"),
            is_screenshot=True,
            input_bboxs=[[10.0, 20.0, 110.0, 120.0]],
            output_bboxs=[[0.0, 200.0, 300.0, 400.0]],
            provenance=json.dumps({"screenshots": {"inset": 10, "prompt_read": "a fox"}}),
        )
    )
    assert [(one["role"], one["post_url"], one["of"], one["box"])
            for one in row["picture_sources"]] == [
        ("input", url(0), digest("s"), [20, 30, 100, 110]),
        ("output", url(0), digest("s"), [10, 210, 290, 390]),
        ("output", url(1), None, None),
        ("screenshot", url(0), None, None),
    ]  # fmt: skip


def test_the_provenance_says_what_it_quotes() -> None:
    context = [post(0, -1, "Prompt: a [PET] in the snow")]
    roles = {"template": "a [PET] in the snow", "blanks": [{"value": "fox"}], "digest": "d"}
    made = noted(sample(context, provenance=json.dumps({"roles": roles})))
    template, value = json.loads(made["provenance"])["quoted"]
    assert read(template["spans"], context) == "a [PET] in the snow"
    assert value["path"] == ["roles", "blanks", 0, "value"]
    assert value["spans"] == [
        {"post_url": None, "field": "prompt", "start": 2, "end": 5, "text": None}
    ]


@given(samples())
def test_all_that_is_noted_can_be_read_in_the_posts(made: Row) -> None:
    row = noted(made)
    context = made["context"]
    texts = [(row["prompt"], row["prompt_spans"])]
    texts += [(one["feedback"], one["spans"]) for one in row["community_feedback"]]
    assert [read(spans, context) for text, spans in texts if spans] == [
        text for text, spans in texts if spans
    ]
    images = [*row["input_images"], *row["output_images"]]
    assert [one["sha256"] for one in row["picture_sources"]] == images
    assert list(row) == list(SAMPLES_IN_CONTEXT.columns)
    assert table(row).select(list(SAMPLES.columns)).to_pylist() == [
        {name: row[name] for name in SAMPLES.columns}
    ]


ENGINE = {"kind": "vllm", "model": "m", "nested": {"sampling": "greedy"}}
STAGES = {
    "extract": {"digest": "d", "engine": ENGINE},
    "roles": {
        "digest": "e",
        "template": "a [PET] asleep",
        "blanks": [{"placeholder": "[PET]", "value": "fox"}],
    },
    "screenshots": {
        "prompt_read": None,
        "inset": 3,
        "convention": "rel_1",
        "replaced_inputs": ["ab" * 32],
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def span(text: str) -> list[dict[str, Any]]:
    return [{"text": text}]


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in strings(one)]


def test_a_provenance_without_quotations_stays_what_it_is() -> None:
    plain = '{"extract":   {"digest": "d"}}'
    assert add_quotes(plain, span) == remove_quotes(plain) == add_texts(plain, {}) == plain
    assert add_quotes(None, span) is remove_quotes(None) is add_texts(None, {}) is None
    assert read_quotes(None) == read_quotes(plain) == []


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_taking_out_and_putting_back_is_nothing(stages: dict[str, Any]) -> None:
    stages.pop("quoted", None)
    noted = add_quotes(json.dumps(stages, sort_keys=True), span)
    texts = {one.path: one.spans[0]["text"] for one in read_quotes(noted)}
    assert add_texts(remove_quotes(noted), texts) == noted


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_nothing_but_our_own_names_is_left(stages: dict[str, Any]) -> None:
    stages.pop("quoted", None)
    left = json.loads(remove_quotes(json.dumps(stages)) or "{}")
    ours = {"digest", "engine", "convention", "replaced_inputs"}
    for said in left.values():
        inner = said.items() if isinstance(said, dict) else [("", said)]
        assert [
            text for name, one in inner if name not in ours for text in strings(one) if text
        ] == []


QUOTE = {"path": ["a"], "sha256": "", "spans": []}


@pytest.mark.parametrize(
    "noted",
    [3, [3], [{"path": ["a"]}], *([{**QUOTE, **odd}] for odd in ({"path": 3}, {"spans": ["ab"]}))],
)
def test_notes_that_are_none_are_an_error(noted: Any) -> None:
    with pytest.raises(SpanError, match="not quotations"):
        read_quotes(json.dumps({"quoted": noted}))


@pytest.mark.parametrize("text", ["no json", "[]", '"a"', "[" * 100_000])
def test_what_is_no_object_is_an_error(text: str) -> None:
    assert remove_quotes("") == ""
    with pytest.raises(SpanError, match="not a JSON object"):
        remove_quotes(text)


@pytest.mark.parametrize(
    "path", [(), ("roles", "template"), ("roles", 3), ("extract", "digest", "x"), (0,)]
)
def test_a_text_goes_into_an_empty_place_alone(path: tuple[str | int, ...]) -> None:
    assert json.loads(add_texts('{"x": null}', {("x",): "t"}) or "") == {"x": "t"}
    with pytest.raises(SpanError, match="not an empty place"):
        add_texts(json.dumps(STAGES), {path: "t"})
