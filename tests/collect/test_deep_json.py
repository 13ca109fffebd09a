"""JSON that nests deeper than Python's own reader goes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect import nested_json
from echo_hf.collect.nested_json import deep_loads, shallow_dumps

DEEP = 20_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.sampled_from([None, 1]))
def test_it_reads_what_the_standard_library_reads(value: Any, indent: int | None) -> None:
    """Any value, however it is printed."""
    assert nested_json._decoded(json.dumps(value, indent=indent)) == value


@pytest.mark.parametrize(
    "text",
    ["", "[", "{", "]", "}", "[1,]", "[,1]", "[1 2]", "[1,,2]", "1 2", "1,", "[1}", "nul", '{"a"}',
     '{"a":}', '{"a":1,}', '{"a":1 "b":2}', '{1:2}', '["a":1]', '{"a":,}', '{"a":]', '"a', "[],[]",
     '{"a" 1}', "'a'"],
)  # fmt: skip
def test_what_is_no_json_is_refused_as_by_the_standard_library(text: str) -> None:
    """It reads deeper, not more."""
    with pytest.raises(ValueError, match=r"\w"):
        json.loads(text)
    with pytest.raises(ValueError, match=r"\w"):
        nested_json._decoded(text)


@pytest.mark.parametrize("text", ["[" * DEEP, "[" * DEEP + "}" * DEEP, '{"a":' * DEEP])
def test_what_is_deep_and_no_json_is_refused(text: str) -> None:
    """With the error of any other text that is none."""
    with pytest.raises(ValueError, match=r"\w"):
        deep_loads(text)


def test_a_deep_tree_is_read_to_its_bottom() -> None:
    """Each level is one step."""
    node = deep_loads('{"a":[' * DEEP + "7" + "]}" * DEEP)
    for _ in range(DEEP):
        (node,) = node["a"]

    assert node == 7


def test_what_is_too_deep_to_write_is_said_in_its_place() -> None:
    """The text is JSON, and says how it began."""
    deep = deep_loads("[" * DEEP + "]" * DEEP)

    assert json.loads(shallow_dumps(deep)).startswith("nested too deeply: [")
    assert shallow_dumps({"a": [1]}) == '{"a": [1]}'
