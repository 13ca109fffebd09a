"""Words of posts in the provenance of a sample."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.provenance import Quote, quotes_in, with_quotes, with_texts, without_quotes
from echo_hf.errors import SpanError

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
QUOTES = {
    ("roles", "template"): "a [PET] asleep",
    ("roles", "blanks", 0, "placeholder"): "[PET]",
    ("roles", "blanks", 0, "value"): "fox",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def span(text: str) -> list[dict[str, Any]]:
    """A text as spans, for tests that look at the places alone."""
    return [{"text": text}]


def strings(value: Any) -> list[str]:
    """All strings in a JSON value but for its keys."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in strings(one)]


def test_what_people_wrote_is_noted_and_what_is_ours_is_not() -> None:
    """Templates, blanks and values are quotations; digests, engines and our own names are none."""
    text = with_quotes(json.dumps(STAGES), span)
    assert [(one.path, one.spans) for one in quotes_in(text)] == [
        (path, span(words)) for path, words in QUOTES.items()
    ]
    assert [one.sha256 for one in quotes_in(text)] == [
        hashlib.sha256(words.encode()).hexdigest() for words in QUOTES.values()
    ]


def test_a_provenance_without_quotations_stays_what_it_is() -> None:
    """To the character, so that nothing changes where nothing is quoted."""
    plain = '{"extract":   {"digest": "d"}}'
    assert with_quotes(plain, span) == without_quotes(plain) == with_texts(plain, {}) == plain
    assert with_quotes(None, span) is without_quotes(None) is with_texts(None, {}) is None
    assert quotes_in(None) == quotes_in(plain) == []


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_taking_out_and_putting_back_is_nothing(stages: dict[str, Any]) -> None:
    """Whatever a stage says, what was taken out can be put back in its place."""
    stages.pop("quoted", None)
    noted = with_quotes(json.dumps(stages, sort_keys=True), span)
    texts = {one.path: one.spans[0]["text"] for one in quotes_in(noted)}
    assert with_texts(without_quotes(noted), texts) == noted


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_nothing_but_our_own_names_is_left(stages: dict[str, Any]) -> None:
    """A key that nobody has thought of is taken for a quotation."""
    stages.pop("quoted", None)
    left = json.loads(without_quotes(json.dumps(stages)) or "{}")
    ours = {"digest", "engine", "convention", "replaced_inputs"}
    for said in left.values():
        inner = said.items() if isinstance(said, dict) else [("", said)]
        assert [
            text for name, one in inner if name not in ours for text in strings(one) if text
        ] == []


@pytest.mark.parametrize("text", ["", "no json", "[]", '"a"', "[" * 100_000])
def test_what_is_no_object_is_an_error(text: str) -> None:
    """Nobody would know what it quotes; nothing at all quotes nothing."""
    if text:
        with pytest.raises(SpanError, match="not a JSON object"):
            without_quotes(text)
    else:
        assert without_quotes(text) == text


@pytest.mark.parametrize(
    "noted",
    [
        3,
        "abc",
        [3],
        [{"path": ["a"]}],
        [{"path": 3, "sha256": "", "spans": []}],
        [{"path": [["a"]], "sha256": "", "spans": []}],
        [{"path": ["a"], "sha256": "", "spans": 3}],
        [{"path": ["a"], "sha256": "", "spans": ["ab"]}],
    ],
)
def test_notes_that_are_none_are_an_error(noted: Any) -> None:
    """A stranger's release may say anything."""
    with pytest.raises(SpanError, match="not quotations"):
        quotes_in(json.dumps({"quoted": noted}))


@pytest.mark.parametrize(
    "path", [(), ("x",), ("roles", "template"), ("roles", 3), ("extract", "digest", "x"), (0,)]
)
def test_a_text_goes_into_an_empty_place_alone(path: tuple[str | int, ...]) -> None:
    """Nothing that is there is overwritten, and nothing is added."""
    if path == ("x",):
        assert json.loads(with_texts('{"x": null}', {path: "t"}) or "") == {"x": "t"}
        return
    with pytest.raises(SpanError, match="not an empty place"):
        with_texts(json.dumps(STAGES), {path: "t"})


def test_a_quote_is_what_the_file_says() -> None:
    """The note is plain JSON, readable without this package."""
    text = with_quotes('{"roles": {"template": "a"}}', span)
    digest = hashlib.sha256(b"a").hexdigest()
    assert json.loads(text or "")["quoted"] == [
        {"path": ["roles", "template"], "sha256": digest, "spans": [{"text": "a"}]}
    ]
    assert quotes_in(text) == [Quote(("roles", "template"), digest, [{"text": "a"}])]
