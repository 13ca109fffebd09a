"""Ratings of several releases joined for the ruler."""

from __future__ import annotations

import datetime

import pyarrow as pa

from echo_hf.config.checks import ModelIdentity
from echo_hf.hub.ruler import (
    RatedRelease,
    describe_lead,
    describe_ruler,
    join_ratings,
    measure_splits,
    sort_by_age,
)
from echo_hf.tables import CARRIED_RATINGS, RATINGS

SPLIT = "text_to_image"


def rate(sample, system, rating, *, digest="d", judge="jay", prompt="p", **columns):
    return {
        "sample_id": sample,
        "sample_digest": digest,
        "system": system,
        "judge": judge,
        "rubric": "overall",
        "repeat": 0,
        "rating": rating,
        "prompt_digest": prompt,
        "split": SPLIT,
        **columns,
    }


def make_release(name, ratings, carried=(), models=None, released=None):
    return RatedRelease(
        name,
        released,
        pa.Table.from_pylist(list(ratings), RATINGS.schema),
        pa.Table.from_pylist(list(carried), CARRIED_RATINGS.schema) if carried else None,
        models or {},
    )


def test_a_carried_sample_names_its_release():
    old = make_release("old", [rate("s1", "ash", 5.0)])
    new = make_release(
        "new",
        [rate("s2", "birch", 7.0)],
        [rate("s1", "ash", 4.0, release="old"), rate("s1", "birch", 6.0, release="old")],
    )
    rows = join_ratings([old, new], SPLIT)
    keys = [(row["release"], row["carried_from"], row["system"], row["rating"]) for row in rows]
    assert keys == [
        ("old", None, "ash", 5.0),
        ("new", "old", "ash", 4.0),
        ("new", "old", "birch", 6.0),
        ("new", None, "birch", 7.0),
    ]


def test_a_sample_that_is_own_and_carried_is_own_and_counts_once():
    new = make_release(
        "new",
        [rate("s1", "birch", 6.0)],
        [rate("s1", "birch", 6.0, release="old"), rate("s1", "ash", 4.0, release="old")],
    )
    rows = join_ratings([new], SPLIT)
    assert [(row["system"], row["carried_from"]) for row in rows] == [
        ("birch", None),
        ("ash", None),
    ]


def test_other_splits_and_rubrics_are_left_out():
    rows = [rate("s1", "ash", 5.0), {**rate("s2", "ash", 5.0), "split": "image_to_image"}]
    rows.append({**rate("s3", "ash", 5.0), "rubric": "style"})
    assert [row["sample_id"] for row in join_ratings([make_release("old", rows)], SPLIT)] == ["s1"]


def test_a_judge_with_another_model_or_prompt_has_its_release_in_its_name():
    identities = [
        {"judges": {"jay": ModelIdentity(model=model), "kit": ModelIdentity(model="k")}}
        for model in ("first", "second", "second")
    ]
    releases = [
        make_release(
            name,
            [rate("s1", "ash", 5.0), rate("s1", "ash", 5.0, judge="kit", prompt=prompt)],
            models=models,
        )
        for name, prompt, models in zip(
            ("one", "two", "three"), ("p", "p", "other"), identities, strict=True
        )
    ]
    rows = join_ratings(releases, SPLIT)
    assert [(row["release"], row["judge"]) for row in rows] == [
        ("one", "jay (one)"),
        ("one", "kit (two)"),
        ("two", "jay"),
        ("two", "kit (two)"),
        ("three", "jay"),
        ("three", "kit"),
    ]


def test_a_system_with_another_model_is_another_system():
    releases = [
        make_release(
            name, [rate("s1", "ash", 5.0)], models={"systems": {"ash": ModelIdentity(model=name)}}
        )
        for name in ("one", "two")
    ]
    assert [row["system"] for row in join_ratings(releases, SPLIT)] == ["ash (one)", "ash"]


def test_what_is_kept_beside_another_model_of_its_name_is_the_system_of_its_release():
    """`ash` of both older releases is one model, which the newest carries from each."""
    names = ("ash", "ash (one)", "ash (two)")
    carried = [
        rate("s1", name, rating, release="one" if name == "ash (one)" else "two")
        for name, rating in zip(names, (7.0, 4.0, 5.0), strict=True)
    ]
    for old_model in ("a", None):
        models = {"systems": {"ash": ModelIdentity(model=old_model)}}
        releases = [
            make_release("one", [rate("s1", "ash", 5.0)], models=models),
            make_release("two", [rate("s2", "ash", 5.0)], models=models),
            make_release(
                "three",
                [rate("s3", "ash", 7.0)],
                carried,
                {"systems": {"ash": ModelIdentity(model="c")}},
            ),
        ]
        rows = join_ratings(releases, SPLIT)
        assert [(row["release"], row["sample_id"], row["system"]) for row in rows] == [
            ("one", "s1", "ash (two)"),
            ("two", "s2", "ash (two)"),
            ("three", "s1", "ash"),
            ("three", "s1", "ash (two)"),
            ("three", "s3", "ash"),
        ]
        alone = {row["system"] for row in join_ratings(releases[2:], SPLIT)}
        assert alone == {*names}


def test_a_sample_with_another_prompt_is_another_sample():
    old = make_release("old", [rate("s1", "ash", 5.0, digest="0123456789")])
    new = make_release("new", [rate("s1", "ash", 5.0, digest="abcdef")])
    assert [row["sample_id"] for row in join_ratings([old, new], SPLIT)] == ["s1 (01234567)", "s1"]


def test_releases_are_sorted_by_the_day_of_their_model_and_else_stay():
    days = [None, datetime.date(2026, 5, 1), datetime.date(2025, 3, 1)]
    releases = [make_release(f"{at}", [], released=day) for at, day in enumerate(days)]
    assert [release.name for release in sort_by_age(releases)] == ["2", "1", "0"]


def test_sentences_say_how_hard_a_release_is_and_what_its_judges_did():
    """Old samples are rated one point higher, and today's judge gives half a point less."""
    old = make_release(
        "old",
        [rate(f"o{n}", "ash", 6.0 + n % 2, judge="kit") for n in range(40)],
        released=datetime.date(2025, 3, 1),
    )
    carried = [
        rate(f"o{n}", system, 5.5 + n % 2 + gain, release="old")
        for n in range(40)
        for system, gain in (("ash", 0.0), ("birch", 1.0 if n % 4 else -1.0))
    ]
    own = [rate(f"n{n}", "birch", 4.5 + n % 2 + (1.0 if n % 4 else -1.0)) for n in range(40)]
    new = make_release("new", own, carried, released=datetime.date(2026, 3, 1))
    scale = measure_splits([old, new], [SPLIT, "image_to_image"])[SPLIT]
    sentences = describe_ruler(scale)
    assert sentences[0] == ("2 systems of 2 releases, as new judges them: 1 by common samples")
    assert sentences[1].startswith("new is harder than old by 1.00 rating points (")
    assert sentences[2].startswith(
        "today's judges rate the same outputs of old lower than its own did, by 0.50 rating points"
    )
    lead = describe_lead(scale)
    assert lead is not None
    assert lead.startswith("birch, of new, wins 75 % (")
    assert lead.endswith("of the points from ash, of old: common samples, 40 samples")
