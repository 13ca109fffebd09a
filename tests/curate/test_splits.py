"""Drawing the benchmark from the samples."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.decisions import Decision, ReviewDecisions, append_decisions
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import SAMPLES


def sample(name: str, **values: Any) -> dict[str, Any]:
    plain = {"id": name, "quality": "Benchmark", "sample_digest": f"digest of {name}"}
    return {**dict.fromkeys(SAMPLES.columns), "input_images": [], **plain, **values}


def split(samples: list[dict[str, Any]], **options: Any) -> dict[str, list[str]]:
    rows = Splits(**options)(pa.Table.from_pylist(samples, schema=SAMPLES.schema)).to_pylist()
    found: dict[str, list[str]] = {}
    for row in rows:
        for name in row["splits"] or []:
            found.setdefault(name, []).append(row["id"])
        if row["_status"] == "rejected":
            why = f"{row['_reason']} {row['_detail'] or ''}".strip()
            found.setdefault(why, []).extend(row["_parent"])
    return found


def guarded(*codes: str) -> dict[str, Any]:
    return {"flagged": True, "categories": list(codes), "model": "guard"}


SAME, WHOLE = {"sample_digest": "same"}, ["screenshot_whole"]
SHOT = {"screenshot": "a" * 64, "doubts": WHOLE}
WORSE = {**SAME, "quality": "Analysis"}
PLACES: dict[str, tuple[list[dict[str, Any]], dict[str, list[str]]]] = {
    "inputs decide between the benchmarks": (
        [sample("edit", input_images=["a" * 64]), sample("text")],
        {"image_to_image": ["edit"], "text_to_image": ["text"], "analysis": ["edit", "text"]},
    ),
    "what is flagged says why": (
        [
            sample("unsafe", has_nsfw=True, safety=guarded("S1", "S8")),
            sample("style", has_nsfw=False, safety=guarded("S8")),
        ],
        {"flagged S1, S8": ["unsafe"], "text_to_image": ["style"], "analysis": ["style"]},
    ),
    "of equal tasks the best stays": (
        [sample("a", **WORSE), sample("b", **SAME), sample("c", **{**SAME, "quality": "Trash"})],
        {"text_to_image": ["b"], "analysis": ["b"], "duplicate_of b": ["a"], "trash": ["c"]},
    ),
    "but a copied prompt does not displace its source": (
        [sample("a", **WORSE, prompt_modified=False), sample("b", **SAME, prompt_modified=True)],
        {"analysis": ["a"], "duplicate_of a": ["b"]},
    ),
    "whatever its name": (
        [sample("b", **WORSE, prompt_modified=False), sample("a", **SAME, prompt_modified=True)],
        {"analysis": ["b"], "duplicate_of b": ["a"]},
    ),
    "one that may be left out takes no other with it": (
        [sample("a", **SAME, review=["image_metadata"]), sample("b", **SAME, prompt_modified=True)],
        {"text_to_image": ["b"], "analysis": ["b"], "duplicate_of b": ["a"]},
    ),
    "nothing doubtful takes the place of its equal": (
        [sample("a", **SAME, doubts=["roles_contradict"]), sample("b", **SAME)],
        {"text_to_image": ["b"], "analysis": ["b"], "duplicate_of b": ["a"]},
    ),
    "whatever their order": (
        [sample("b", **SAME, doubts=["roles_contradict"]), sample("a", **SAME)],
        {"text_to_image": ["a"], "analysis": ["a"], "duplicate_of a": ["b"]},
    ),
    "images in a screenshot are not drawn": (
        [sample("raw", **SHOT), sample("parsed", screenshot="a" * 64, is_screenshot=True)],
        {"text_to_image": ["parsed"], "analysis": ["raw", "parsed"]},
    ),
    "and equal nothing": (
        [
            sample("a", **SHOT, **SAME),
            sample("b", **SHOT, **SAME),
            sample("c", **SHOT, **WORSE),
            sample("told", **WORSE),
        ],
        {"analysis": ["a", "b", "c", "told"]},
    ),
}


@pytest.mark.parametrize(("samples", "expected"), PLACES.values(), ids=PLACES)
def test_each_sample_has_its_place(
    samples: list[dict[str, Any]], expected: dict[str, list[str]]
) -> None:
    assert split(samples) == expected


def decision(name: str, what: str, **values: Any) -> Decision:
    plain = {"id": name, "sample_digest": f"digest of {name}", "decision": what, "reasons": []}
    return Decision.model_validate({**plain, **values})


def decided(**by_name: str) -> ReviewDecisions:
    return ReviewDecisions({name: decision(name, what) for name, what in by_name.items()})


def kept_with(name: str, *doubts: str) -> ReviewDecisions:
    return ReviewDecisions({name: decision(name, "keep", doubts=doubts)})


def by_hash(count: int) -> list[str]:
    names = [f"s{number}" for number in range(count)]
    return sorted(names, key=lambda name: hashlib.sha256(f"0:{name}".encode()).hexdigest())


def test_what_a_reviewer_removed_is_left_out_with_its_equals_and_trash_stays_trash() -> None:
    equals = [sample("a"), sample("b", sample_digest="digest of a", quality="Analysis")]
    removed = decided(a="remove")
    assert split(equals, decisions=removed) == {"removed_in_review": ["a"], "duplicate_of a": ["b"]}
    assert split([sample("a", quality="Trash")], decisions=removed) == {"trash": ["a"]}


def test_what_a_reviewer_removed_is_not_refilled() -> None:
    names = by_hash(10)
    gone = [names[1], names[7]]
    removed = decided(**dict.fromkeys(gone, "remove"))
    found = split([sample(name) for name in sorted(names)], cap=3, decisions=removed)

    assert set(found["text_to_image"]) == {names[0], names[2]}
    assert found["analysis"] == [name for name in sorted(names) if name not in gone]
    assert sorted(found["removed_in_review"]) == sorted(gone)


def test_what_a_reviewer_kept_has_nothing_open() -> None:
    review = ["may_show_minor"]
    samples = [sample(name, review=review) for name in ("kept", "open", "plain")]
    samples[2]["review"] = []
    stage = Splits(decisions=ReviewDecisions({"kept": decision("kept", "keep", reasons=review)}))
    rows = stage(pa.Table.from_pylist(samples, schema=SAMPLES.schema)).to_pylist()

    assert {row["id"]: row["review"] for row in rows} == {"kept": [], "open": review, "plain": []}
    for row, given_ in zip(rows, samples, strict=True):
        others = set(SAMPLES.columns) - {"review", "doubts"}
        assert {name: row[name] for name in others} == {name: given_[name] for name in others}


LACKS_INPUT, CONTRADICT = ["lacks_input"], ["roles_contradict"]


@pytest.mark.parametrize(
    ("values", "options", "drawn", "doubts"),
    [
        ({"doubts": LACKS_INPUT}, {}, False, LACKS_INPUT),
        ({"doubts": LACKS_INPUT}, {"doubts": "keep"}, True, LACKS_INPUT),
        (SHOT, {"doubts": "keep"}, False, WHOLE),
        ({"doubts": LACKS_INPUT}, {"decisions": kept_with("one", "lacks_input")}, True, []),
        # It was kept before there was this doubt.
        ({"doubts": LACKS_INPUT}, {"decisions": kept_with("one")}, False, LACKS_INPUT),
        (
            {"doubts": [*LACKS_INPUT, *CONTRADICT]},
            {"decisions": kept_with("one", "lacks_input")},
            False,
            CONTRADICT,
        ),
        (
            {"doubts": LACKS_INPUT, "sample_digest": "another"},
            {"decisions": kept_with("one", "lacks_input")},
            False,
            LACKS_INPUT,
        ),
        (SHOT, {"decisions": kept_with("one", *WHOLE)}, True, []),
        ({"doubts": None}, {}, True, []),
    ],
)
def test_what_is_doubtful_is_for_analysis_until_a_person_has_kept_it(
    values: dict[str, Any], options: dict[str, Any], drawn: bool, doubts: list[str]
) -> None:
    table = pa.Table.from_pylist([sample("one", **values)], schema=SAMPLES.schema)
    first, *said = Splits(**options)(table).to_pylist()
    assert first["splits"] == [*["text_to_image"] * drawn, "analysis"]
    assert first["doubts"] == doubts
    assert [one["_reason"] for one in said] == ([] if drawn else doubts)
    assert {one["_status"] for one in said} <= {"noted"}


def test_the_headline_says_how_many_doubts_are_open() -> None:
    names = {f"s{number}": LACKS_INPUT if number < 2 else [] for number in range(3)}
    rows = [sample(name, doubts=doubts) for name, doubts in names.items()]
    for decisions, said in (
        ({}, "; doubts to review: 2"),
        ({"decisions": kept_with("s0", "lacks_input")}, "; doubts to review: 1"),
        ({"doubts": "keep"}, ""),
    ):
        table = pa.Table.from_pylist(rows, schema=SAMPLES.schema)
        stats = run_stage(Splits(**decisions), Dataset(table)).stats
        line = Splits.headline({"splits": stats})
        assert str(line).endswith(f"3 analysis samples released{said}")


def test_the_place_of_what_is_doubtful_is_taken_by_another() -> None:
    names = by_hash(6)
    samples = [sample(names[0], doubts=LACKS_INPUT), *map(sample, names[1:])]
    assert set(split(samples, cap=2)["text_to_image"]) == set(names[1:3])
    kept = split(samples, cap=2, decisions=kept_with(names[0], "lacks_input"))
    assert set(kept["text_to_image"]) == set(names[:2])


def test_the_decisions_are_those_of_the_run(tmp_path: Path) -> None:
    append_decisions(tmp_path / "review.jsonl", decided(one="remove").by_id.values())
    assert Splits(cap=3).in_run(tmp_path) == Splits(cap=3, decisions=decided(one="remove"))


SAMPLE = st.tuples(
    st.sampled_from(["Benchmark", "Analysis", "Trash"]),
    st.sampled_from(["one", "two", "three", "four"]),
    st.sampled_from([None, False, True]),
    st.sampled_from([None, None, "a" * 64]),
    st.booleans(),
)
Drawn = list[tuple[str, str, bool | None, str | None, bool]]


def _samples(drawn: Drawn) -> list[dict[str, Any]]:
    return [
        sample(
            f"s{number}",
            quality=quality,
            sample_digest=digest,
            has_nsfw=flagged,
            screenshot=shot,
            is_screenshot=parsed,
            doubts=WHOLE if shot and not parsed else [],
        )
        for number, (quality, digest, flagged, shot, parsed) in enumerate(drawn)
    ]


@given(st.lists(SAMPLE, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(drawn: Drawn, random: Any) -> None:
    samples = _samples(drawn)
    shuffled = random.sample(samples, len(samples))
    first, second = split(samples, cap=2), split(shuffled, cap=2)
    placed = [name for where, names in first.items() if where != "text_to_image" for name in names]

    assert {where: sorted(names) for where, names in first.items()} == {
        where: sorted(names) for where, names in second.items()
    }
    assert sorted(placed) == sorted(row["id"] for row in samples)


@given(st.lists(SAMPLE, max_size=12), st.integers(1, 4))
def test_splits_are_those_of_the_definition(drawn: Drawn, cap: int) -> None:
    """By brute force: of each set of equal samples the best, then the first `cap` by hash."""
    samples = _samples(drawn)
    turn = {one["id"]: hashlib.sha256(f"3:{one['id']}".encode()).hexdigest() for one in samples}
    usable = [one for one in samples if one["quality"] != "Trash" and not one["has_nsfw"]]
    raw = [one for one in usable if one["screenshot"] and not one["is_screenshot"]]
    rest = [one for one in usable if one not in raw]
    best = [
        min(
            (one for one in rest if one["sample_digest"] == digest),
            key=lambda one: (one["quality"] != "Benchmark", turn[one["id"]]),
        )
        for digest in {one["sample_digest"] for one in rest}
    ]
    candidates = sorted(
        (one["id"] for one in best if one["quality"] == "Benchmark"), key=turn.__getitem__
    )
    found = split(samples, seed=3, cap=cap)

    assert set(found.get("text_to_image", [])) == set(candidates[:cap])
    assert set(found.get("analysis", [])) == {one["id"] for one in [*raw, *best]}


def test_a_decision_that_was_cut_short_stops_a_build(tmp_path: Path) -> None:
    (tmp_path / "review.jsonl").write_text('{"id": "one", "decision": "rem', "utf-8")
    with pytest.raises(ReviewError, match=r"review\.jsonl:1 was cut short"):
        Splits().in_run(tmp_path)
