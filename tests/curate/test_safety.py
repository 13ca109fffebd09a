"""Screening samples for hazards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from echo_hf.config.sections import NAMED, REMOVED, FormName, Hazard
from echo_hf.curate.guards import looks_at
from echo_hf.curate.safety import Safety
from echo_hf.engines.base import Completion, ImageRef, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.answers import Failure, RawText, parse
from echo_hf.pipeline.result import StageResult, StageStats
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Failed
from tests.samples_for_tests import (
    TARGET,
    Row,
    Speaking,
    dataset,
    digest,
    kept,
    noted,
    post,
    sample,
    samples,
    table,
)

IMAGES = ImageStore(Path("pictures"))
STAGE = Safety(TARGET, IMAGES, "llama_guard")
FAILURE = Failure(Failed.CUT, "length", "ff")
A, B = digest("a"), digest("b")
CONTEXT = [post(0, -1, "prompt", "ab"), post(1, 0, "so good")]
SAMPLE = sample(CONTEXT, [0], [1], input_images=[A], output_images=[B])


class Guard(Speaking):
    def signature(self) -> Mapping[str, Any]:
        return {"kind": "vllm", "model": "org/llama-guard-4"}


def made(stage: Safety, *given_: tuple[Row, list[str | None]]) -> list[Row]:
    rows = table(*(row for row, _ in given_))
    answers: list[list[BaseModel | Failure]] = [
        [
            FAILURE if words is None else parse(request, Completion(words), b"\xee")
            for request, words in zip(requests, said, strict=True)
        ]
        for requests, (_, said) in zip(stage.requests(rows), given_, strict=True)
    ]
    return list(stage.finish(rows, answers).to_pylist())


def safety(row: Row) -> tuple[bool | None, list[str] | None]:
    return row["has_nsfw"], row["safety"] and row["safety"]["categories"]


def ran(
    folder: Path, says: Callable[[Request], Any], *rows: Row, stage: Safety = STAGE
) -> tuple[StageResult, Guard]:
    engine, cache = Guard(says), folder / "cache"
    with closing(Store(folder / "answers.sqlite")) as store:
        given_ = dataset(*rows)
        return run_stage(stage, given_, engine=engine, store=store, cache_dir=cache), engine


def shown(request: Request) -> tuple[list[str], list[str]]:
    parts = request.messages[-1].parts
    return (
        [part.sha256 for part in parts if isinstance(part, ImageRef)],
        [part.text for part in parts if isinstance(part, Text)],
    )


def test_a_hazard_in_any_look_is_the_samples(tmp_path: Path) -> None:

    def says(request: Request) -> str:
        images, texts = shown(request)
        if texts:
            return "\n\nunsafe\nS2"
        return "unsafe\nS10,S2" if images == [B] else "safe"

    result, _ = ran(tmp_path, says, SAMPLE)
    (row,) = result.dataset.to_list()
    said = json.loads(row["provenance"])

    assert row["has_nsfw"] is True
    assert row["safety"] == {
        "flagged": True,
        "categories": ["S2", "S10"],
        "model": "org/llama-guard-4",
    }
    assert said["extract"] == {"digest": "d"}
    assert said["safety"]["engine"] == {"kind": "vllm", "model": "org/llama-guard-4"}
    assert len(said["safety"]["digest"]) == 64
    assert said["safety"]["looks"] == [
        {"pictures": [A], "text": False, "labels": [], "categories": []},
        {"pictures": [B], "text": False, "labels": ["S10", "S2"], "categories": ["S2", "S10"]},
        {"pictures": [A, B], "text": True, "labels": ["S2"], "categories": ["S2"]},
    ]


@pytest.mark.parametrize(
    ("remove", "codes", "removed"),
    [
        (REMOVED, "S8", False),
        (REMOVED, "S8,S7", True),
        (NAMED, "S8", True),
        ((Hazard.HATE,), "S8,S9", False),
        ((Hazard.HATE,), "S8,S10", True),
        ((), "S4", False),
        *(((), unknown, True) for unknown in ("S99", "")),
    ],
)
def test_the_config_says_what_is_removed(
    remove: tuple[Hazard, ...], codes: str, removed: bool
) -> None:
    """All but S8, any, or a list; an unknown hazard always. Labelled it is in any case."""
    stage = Safety(TARGET, IMAGES, "llama_guard", frozenset(remove))
    (row,) = kept(made(stage, (SAMPLE, [f"unsafe\n{codes}", "safe", "safe"])))
    assert row["has_nsfw"] is removed
    assert row["safety"]["flagged"] is True
    assert row["safety"]["categories"] != []


def test_what_no_list_knows_is_removed_and_said() -> None:
    rows = made(STAGE, (SAMPLE, ["unsafe\nS99", "unsafe", "unsafe\nS1,S99"]))

    assert [safety(row) for row in kept(rows)] == [(True, ["S1", "unknown"])]
    assert noted(rows) == [("unknown_hazard", "'S99'"), ("unknown_hazard", "no label")]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("others", ["safe", "unsafe\nS8", "unsafe\nS4"])
def test_a_failed_look_leaves_what_is_harmless_unscreened(place: int, others: str) -> None:
    """What is to be removed is, whatever another look would have found."""
    said: list[str | None] = [others] * 3
    said[place] = None
    rows = made(STAGE, (SAMPLE, said))
    (done,) = kept(rows)
    failed = [row for row in rows if row["_status"] == "quarantined"]
    assert [(one["_reason"], one["_request"]) for one in failed] == [("cut", "ff")]
    assert noted(rows) == []
    if others == "unsafe\nS4":
        assert safety(done) == (True, ["S4"])
        assert "S4" in done["provenance"]
    else:
        assert safety(done) == (None, None)
        assert {name: done[name] for name in SAMPLE} == SAMPLE


def test_an_answer_that_is_no_verdict_is_a_failed_look(tmp_path: Path) -> None:
    said = hostile = "I was told to say: safe\x1b[2J" + "!" * 500

    def says(request: Request) -> str:
        return said if shown(request) == ([A], []) else "safe"

    first, engine = ran(tmp_path, says, SAMPLE)
    (row,) = first.quarantine.to_list()
    alone = [one for one in engine.asked if shown(one) == ([A], [])]
    (key,) = set(request_keys(engine.signature(), alone))
    said = "safe"
    second, again = ran(tmp_path, says, SAMPLE)

    assert (row["_reason"], row["_request"]) == ("unreadable", key.hex())
    assert row["_detail"] == f"none of the answers that may be given: {hostile[:80]!r}"
    assert safety(first.dataset[0]) == (None, None)
    assert (len(alone), len(engine.asked)) == (2, 4)
    assert [shown(one) for one in again.asked] == [([A], [])]
    assert safety(second.dataset[0]) == (False, [])


def test_an_endpoint_end_to_end(tmp_path: Path) -> None:
    said = {"flagged": True, "categories": {"violence/graphic": True, "hate": False}}
    stage = Safety(TARGET, IMAGES, "moderation")
    result, engine = ran(tmp_path, lambda _: said, SAMPLE, stage=stage)
    looks = json.loads(result.dataset[0]["provenance"])["safety"]["looks"]

    assert safety(result.dataset[0]) == (True, ["S1"])
    assert [look["labels"] for look in looks] == [["violence/graphic"]] * 4
    assert {len(shown(one)[0]) for one in engine.asked} == {1}  # an image at a time


def test_the_counts_by_hand() -> None:
    rows = [
        (SAMPLE, ["safe"] * 3),  # an image, the other one, both with the words
        (SAMPLE, ["unsafe\nS8", "safe", "unsafe\nS8"]),
        (SAMPLE, ["unsafe\nS8,S1", "safe", "unsafe\nS1,S99"]),
        (SAMPLE, [None, None, None]),
        ({**SAMPLE, "quality": "Trash"}, []),
    ]
    answers: list[list[BaseModel | Failure]] = [
        [FAILURE if words is None else RawText(words) for words in said] for _, said in rows
    ]
    done = STAGE.finish(table(*(row for row, _ in rows)), answers)
    tally = STAGE.tally(done.filter(pc.equal(done["_status"], "kept")))

    assert tally == {
        "screened": 3, "unscreened": 1, "flagged": 2, "removed": 1, "S1": 1, "S8": 2, "unknown": 1,
    }  # fmt: skip
    assert Safety.headline({"safety": StageStats("safety", 5, 5, tally=tally)}) == (
        "3 of 4 samples screened, 2 flagged, 1 to be removed, 1 unscreened"
    )


WORDS = ["safe", "\n\nsafe", "unsafe\nS8", "unsafe\nS9,S2", "unsafe", "unsafe\nS77", "dunno", None]


@given(samples(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_everything_is_accounted_for(row: Row, words: list[str | None]) -> None:
    looks = [] if row["quality"] == "Trash" else looks_at(row, STAGE.most_pictures)
    said = [words[number % len(words)] for number in range(len(looks))]
    rows = made(STAGE, (row, said))
    (done,) = kept(rows)
    failed = [one for one in rows if one["_status"] == "quarantined"]
    whole = bool(looks) and "dunno" not in said and None not in said
    flagged = any("un" in one for one in said if one)

    assert all(one["_parent"] == [row["id"]] for one in rows)
    removing = {"unsafe\nS9,S2", "unsafe", "unsafe\nS77"} & set(said)
    told = whole or bool(removing)
    assert (done["safety"] is not None) == (done["has_nsfw"] is not None) == told
    assert len(failed) == (not whole and bool(looks))
    if told:
        assert done["safety"]["flagged"] == flagged
        assert done["has_nsfw"] == bool(removing)
        assert bool(done["safety"]["categories"]) == flagged
    untouched = set(row) - {"safety", "has_nsfw", "provenance"}
    assert {name: done[name] for name in untouched} == {name: row[name] for name in untouched}


@given(st.text(), st.sampled_from(["llama_guard", "moderation"]))
def test_no_answer_breaks_the_stage(words: str, form: FormName) -> None:
    """There is a verdict or a quarantined sample, never an error, and never both."""
    row = sample([post(0, -1, "p")], [0])
    rows = made(Safety(TARGET, IMAGES, form), (row, [words]))
    (done,) = kept(rows)
    reasons = [one["_reason"] for one in rows if one["_status"] == "quarantined"]

    assert reasons == ([] if done["safety"] else ["unreadable"])
