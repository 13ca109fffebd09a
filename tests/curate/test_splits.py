"""Drawing the benchmark from the samples."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.decisions import Decision, Decisions, append_decisions
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
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


def test_inputs_decide_between_the_benchmarks() -> None:
    found = split([sample("edit", input_images=["a" * 64]), sample("text")])

    assert found == {
        "image_to_image": ["edit"],
        "text_to_image": ["text"],
        "analysis": ["edit", "text"],
    }


def test_what_is_flagged_says_why() -> None:
    verdict = {"flagged": True, "categories": ["S1", "S8"], "model": "guard"}
    style = {"flagged": True, "categories": ["S8"], "model": "guard"}
    found = split(
        [
            sample("unsafe", has_nsfw=True, safety=verdict),
            sample("style", has_nsfw=False, safety=style),
        ]
    )

    assert found == {
        "flagged S1, S8": ["unsafe"],
        "text_to_image": ["style"],
        "analysis": ["style"],
    }


def test_candidates_are_taken_in_the_order_of_their_hash() -> None:
    """The first `cap` samples by sha256 of seed and id are drawn, the rest stay for analysis."""
    names = [f"s{number}" for number in range(40)]
    by_hash = sorted(names, key=lambda name: hashlib.sha256(f"7:{name}".encode()).hexdigest())
    found = split([sample(name) for name in names], seed=7, cap=5)

    assert set(found["text_to_image"]) == set(by_hash[:5])
    assert found["analysis"] == names


def test_equal_tasks_are_one_sample() -> None:
    found = split(
        [
            sample("a", sample_digest="same", quality="Analysis"),
            sample("b", sample_digest="same"),
            sample("c", sample_digest="same", quality="Trash"),
        ]
    )

    assert found == {
        "text_to_image": ["b"],
        "analysis": ["b"],
        "duplicate_of b": ["a"],
        "trash": ["c"],
    }


def test_a_copied_prompt_does_not_displace_its_source() -> None:
    for source, copy in (("a", "b"), ("b", "a")):
        found = split(
            [
                sample(source, sample_digest="same", quality="Analysis", prompt_modified=False),
                sample(copy, sample_digest="same", prompt_modified=True),
            ]
        )
        assert found == {"analysis": [source], f"duplicate_of {source}": [copy]}


def test_a_sample_that_is_left_out_takes_no_other_with_it() -> None:
    unclean = sample("a", sample_digest="same", review=["image_metadata"])
    found = split([unclean, sample("b", sample_digest="same", prompt_modified=True)])
    assert found == {"text_to_image": ["b"], "analysis": ["b"], "duplicate_of b": ["a"]}


def test_images_in_a_screenshot_are_not_drawn() -> None:
    shot = {"screenshot": "a" * 64}
    found = split([sample("raw", **shot), sample("parsed", **shot, is_screenshot=True)])

    assert found == {"text_to_image": ["parsed"], "analysis": ["raw", "parsed"]}


def test_what_is_not_parsed_equals_nothing() -> None:
    shots = [
        sample(name, screenshot=name * 64, sample_digest="same", quality=quality)
        for name, quality in (("a", "Benchmark"), ("b", "Benchmark"), ("c", "Analysis"))
    ]
    found = split([*shots, sample("told", sample_digest="same", quality="Analysis")])

    assert found == {"analysis": ["a", "b", "c", "told"]}


def decided(**by_name: str) -> Decisions:
    return Decisions(
        {
            name: Decision.model_validate(
                {"id": name, "sample_digest": f"digest of {name}", "decision": what, "reasons": []}
            )
            for name, what in by_name.items()
        }
    )


def test_what_a_reviewer_removed_is_not_refilled() -> None:
    names = [f"s{number}" for number in range(10)]
    by_hash = sorted(names, key=lambda name: hashlib.sha256(f"0:{name}".encode()).hexdigest())
    gone = [by_hash[1], by_hash[7]]
    found = split(
        [sample(name) for name in names], cap=3, decisions=decided(**dict.fromkeys(gone, "remove"))
    )

    assert set(found["text_to_image"]) == {by_hash[0], by_hash[2]}
    assert found["analysis"] == [name for name in names if name not in gone]
    assert sorted(found["removed_in_review"]) == sorted(gone)


def test_what_is_equal_to_a_removed_sample_does_not_take_its_place() -> None:
    same = {"sample_digest": "digest of a"}
    equals = [sample("a"), sample("b", **same, quality="Analysis")]
    found = split(equals, decisions=decided(a="remove"))

    assert found == {"removed_in_review": ["a"], "duplicate_of a": ["b"]}


def test_what_was_left_out_before_a_review_keeps_its_reason() -> None:
    trash = sample("a", quality="Trash")
    assert split([trash], decisions=decided(a="remove")) == {"trash": ["a"]}


def test_what_a_reviewer_kept_has_nothing_open() -> None:
    review = ["may_show_minor"]
    samples = [sample(name, review=review) for name in ("kept", "open", "plain")]
    samples[2]["review"] = []
    keep = Decision(
        id="kept", sample_digest="digest of kept", decision="keep", reasons=("may_show_minor",)
    )
    stage = Splits(decisions=Decisions({"kept": keep}))
    rows = stage(pa.Table.from_pylist(samples, schema=SAMPLES.schema)).to_pylist()

    assert {row["id"]: row["review"] for row in rows} == {"kept": [], "open": review, "plain": []}
    for row, given_ in zip(rows, samples, strict=True):
        others = set(SAMPLES.columns) - {"review"}
        assert {name: row[name] for name in others} == {name: given_[name] for name in others}


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
