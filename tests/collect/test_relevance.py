"""Scoring posts: who is asked, what becomes of the answers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.collect.relevance import Relevance, RelevanceAnswer
from echo_hf.config.sections import Target
from echo_hf.engines.base import Failed, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.tables import POSTS

TARGET = Target(
    name="Lumen Image", developer="Northlight", released="2026-03-02", aliases=("lumen",)
)


def posts(*rows: dict[str, Any]) -> pa.Table:
    plain = {**dict.fromkeys(POSTS.columns), "keywords": [], "pictures": []}
    full = [{**plain, "url": f"u{number}", **row} for number, row in enumerate(rows)]
    return pa.Table.from_pylist(full, schema=POSTS.schema)


FOUND = {"keywords": ["lumen"]}
IMAGE = {"sha256": None, "url": "https://example.org/a.png", "alt_text": "a paper fox"}


def asked(stage: Relevance, table: pa.Table) -> list[str]:
    return [url for row in stage.requests(table) for request in row for url in request.sources]


def test_posts_that_a_keyword_found_or_of_unknown_origin_are_scored() -> None:
    unknown = {"keywords": None}
    table = posts(
        *({"text": "a", **FOUND}, {"text": "came along"}, {"text": "", **FOUND}, FOUND),
        {"text": "a", **unknown},
        {"text": None, "pictures": [IMAGE], **unknown},
        {"text": None, **unknown},
    )

    assert asked(Relevance(TARGET), table) == ["u0", "u4", "u5"]


def test_a_request_names_the_target_once_and_shows_text_and_descriptions() -> None:
    table = posts({"text": "look", "pictures": [IMAGE], **FOUND}, {"text": "x2", **FOUND})
    (first,), (second,) = Relevance(TARGET).requests(table)
    system, user = (message.parts[0] for message in first.messages)
    assert isinstance(system, Text)
    assert isinstance(user, Text)
    block = user.text.splitlines()

    assert (block[0], block[2]) == ("<post>", "</post>")
    assert json.loads(block[1]) == {"text": "look", "pictures": 1, "alt_texts": ["a paper fox"]}
    assert first.messages[0] is second.messages[0]
    assert all(word in system.text for word in ("Lumen Image", "Northlight"))
    assert not any(word in system.text for word in ("look", "$"))


def test_all_posts_go_on_scored_or_not() -> None:
    table = posts({"text": "a", **FOUND}, {"text": "b"}, {"text": "c", **FOUND})
    failure = Failure(Failed.CUT, "length", "abcd")
    made = Relevance(TARGET).finish(table, [[RelevanceAnswer(score=3, note="n")], [], [failure]])
    rows = made.select(
        ["url", "relevance", "_status", "_parent", "_reason", "_request"]
    ).to_pylist()

    assert [tuple(row.values()) for row in rows] == [
        ("u0", {"score": 3, "note": "n"}, "kept", ["u0"], None, None),
        ("u1", None, "kept", ["u1"], None, None),
        ("u2", {"score": None, "note": None}, "kept", ["u2"], None, None),
        (None, None, "quarantined", ["u2"], "cut", "abcd"),
    ]


@pytest.mark.parametrize("score", [0, 6, 2.5, "five"])
def test_a_score_off_the_scale_is_no_answer(score: object) -> None:
    with pytest.raises(ValueError, match="score"):
        RelevanceAnswer.model_validate({"score": score})


def test_a_long_note_is_cut_and_the_score_stays() -> None:
    table = posts(*({"text": text, **FOUND} for text in "abc"))
    cut = RelevanceAnswer(score=2)
    cut._note_is_cut = True
    answers = [
        [RelevanceAnswer(score=3, note="x" * 120)],
        [RelevanceAnswer(score=3, note="y" * 121)],
    ]
    made = Relevance(TARGET).finish(table, [*answers, [cut]])

    kept = [row["relevance"] for row in made.to_pylist() if row["_status"] == "kept"]
    assert kept == [
        {"score": 3, "note": "x" * 120},
        {"score": 3, "note": "y" * 120},
        {"score": 2, "note": None},
    ]
    noted = [(row["_parent"], row["_reason"]) for row in made.to_pylist() if row["_reason"]]
    assert noted == [(["u1"], "cut_note"), (["u2"], "cut_note")]
