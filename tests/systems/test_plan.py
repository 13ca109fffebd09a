"""What is left to draw, and what it may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome
from echo_hf.systems.journal import JournalEntry
from echo_hf.systems.plan import GenerationPlan, plan_of
from tests.systems.runs_for_tests import entry, png, sha, system, task

TASKS = [task(number) for number in range(4)]


def plan(
    root: Path, *entries: JournalEntry, tasks: Any = TASKS, concurrency: int = 2, **config: Any
) -> GenerationPlan:
    """The plan of a system after these outputs."""
    before = {one.sample_id: one for one in entries}
    return plan_of(system(**config), tasks, before, "s", concurrency, ImageStore(root))


def test_nothing_is_known_before_the_first_output(tmp_path: Path) -> None:
    """All is to be drawn, for nobody knows how much."""
    assert plan(tmp_path) == GenerationPlan("mine", tuple(TASKS), 0, 0, None, None)
    price = {"usd_per_image": 0.5, "as_of": "2026-01-01"}
    assert plan(tmp_path, price=price).cost_usd == 2.0


def test_what_was_made_before_costs_nothing(tmp_path: Path) -> None:
    """Whatever it cost when it was made."""
    before = entry(0, outcome=Outcome.OK, cost_usd=0.04)
    assert plan(tmp_path, before, adapter="files").cost_usd == 0.0


OUTCOMES = st.lists(
    st.tuples(
        st.sampled_from(Outcome),
        st.booleans(),  # the same prompt and inputs
        st.booleans(),  # the same settings
        st.booleans(),  # its image is there
    ),
    max_size=6,
)


@given(OUTCOMES)
def test_what_is_settled_as_it_would_be_now_is_kept(
    tmp_path_factory: pytest.TempPathFactory, given: list[tuple[Outcome, bool, bool, bool]]
) -> None:
    """Each rule by itself: the outcome, the digest, the signature, the image."""
    root = tmp_path_factory.mktemp("pictures")
    there = ImageStore(root).put(png("there"))
    entries = [
        entry(
            number,
            "fox" if same else "owl",
            outcome=outcome,
            signature="s" if signed else "t",
            image=(there if held else sha(b"gone")) if outcome == "ok" else None,
        )
        for number, (outcome, same, signed, held) in enumerate(given)
    ]
    tasks = [task(number) for number in range(6)]
    made = plan(root, *entries, tasks=tasks)
    final = ("ok", "refused", "no_image", "unsupported")
    kept = {
        f"s{number}"
        for number, (outcome, same, signed, held) in enumerate(given)
        if outcome in final and same and signed and (held or outcome != "ok")
    }
    failed = {
        f"s{number}"
        for number, (outcome, same, signed, _) in enumerate(given)
        if outcome == "failed" and same and signed
    }
    left = [one.sample_id for one in tasks if one.sample_id not in kept]
    first = [name for name in left if name not in failed]
    assert [one.sample_id for one in made.todo] == [*first, *(n for n in left if n in failed)]
    assert made.stored == len(kept)
    assert made.stale == sum(outcome in final for outcome, *_ in given) - len(kept)


def test_what_failed_before_comes_last(tmp_path: Path) -> None:
    """In its order; a failure of other words or settings says nothing of what is tried now."""
    failed = [
        entry(0, outcome=Outcome.FAILED, signature="s"),
        entry(1, "owl", outcome=Outcome.FAILED, signature="s"),
        entry(2, outcome=Outcome.FAILED, signature="t"),
    ]
    made = plan(tmp_path, *failed)
    assert [one.sample_id for one in made.todo] == ["s1", "s2", "s3", "s0"]


def test_an_image_of_no_bytes_is_gone(tmp_path: Path) -> None:
    """A machine that lost its power may leave one."""
    store = ImageStore(tmp_path)
    digest = store.put(png("fox"))
    drawn = entry(0, outcome=Outcome.OK, image=digest)
    assert plan(tmp_path, drawn).stored == 1
    store.path(digest).write_bytes(b"")
    assert plan(tmp_path, drawn).stored == 0


def test_an_image_of_too_few_bytes_is_gone(tmp_path: Path) -> None:
    """Where its size was noted, it has to have it."""
    store = ImageStore(tmp_path)
    data = png("fox")
    digest = store.put(data)
    drawn = entry(0, outcome=Outcome.OK, image=digest, image_bytes=len(data))
    assert plan(tmp_path, drawn).stored == 1
    store.path(digest).write_bytes(data[:-1])
    assert plan(tmp_path, drawn).stored == 0


def test_the_estimate_is_the_mean_of_what_was_drawn_so(tmp_path: Path) -> None:
    """By hand: images of 0.1 and 0.3 dollars; a refusal costs time, a retired model none."""
    store = ImageStore(tmp_path)
    ok = {"outcome": Outcome.OK, "image": store.put(png("fox"))}
    entries = [
        entry(0, **ok, cost_usd=0.1, latency_s=4.0),
        entry(1, **ok, cost_usd=0.3, latency_s=6.0),
        entry(2, cost_usd=0.0, latency_s=2.0),
        entry(8, outcome=Outcome.RETIRED, latency_s=0.0, attempts=0),
        entry(9, **ok, cost_usd=99, latency_s=99, signature="other settings"),
    ]
    tasks = [task(number) for number in range(13)]
    made = plan(tmp_path, *entries, tasks=tasks)
    assert len(made.todo) == 10
    assert made.cost_usd == pytest.approx(10 * 0.2)
    assert made.seconds == pytest.approx(10 * 4.0 / 2)


def test_a_rate_may_be_what_takes_the_time(tmp_path: Path) -> None:
    """Four tasks at two a minute take two minutes, however fast each is."""
    before = [entry(9, latency_s=1.0)]
    limited = plan(tmp_path, *before, limits={"per_minute": 2})
    assert limited.seconds == pytest.approx(120)
    assert plan(tmp_path, *before, limits={"per_minute": 1000}).seconds == pytest.approx(2.0)


def test_a_task_that_was_turned_away_for_other_limits_is_done_again(tmp_path: Path) -> None:
    """And only then: a limit is no part of the signature."""
    turned_away = entry(0, "fox", outcome="unsupported", details={"limits": {"most_inputs": 1}})
    tasks = [task(0, "fox")]
    same = plan(tmp_path, turned_away, tasks=tasks, parameters={"most_inputs": 1})
    assert (same.todo, same.stored) == ((), 1)
    raised = plan(tmp_path, turned_away, tasks=tasks, parameters={"most_inputs": 2})
    assert (raised.todo, raised.stored) == (tuple(tasks), 0)
