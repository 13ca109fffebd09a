"""What a run looks like in a terminal."""

from __future__ import annotations

import io
from collections import Counter

import pyarrow as pa
import pytest
from datasets import Features
from rich.console import Console

from echo_hf.cli.progress import Watch, places
from echo_hf.collect.fetch import FetchStats
from echo_hf.engines.base import Usage
from echo_hf.engines.planner import RequestPlan
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.stage import CONTROL
from echo_hf.reasons import Unfetched
from echo_hf.tables import POSTS


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (FillStats(), "0 calls (0/s), 0 answered before, 0 tokens"),
        (
            FillStats(calls=2, seconds=4.0, usage=Usage(100, 20, 75), cost_usd=0.5),
            "2 calls (0/s), 0 answered before, 120 tokens, 75 % of prompts from cache, $0.50",
        ),
        (
            FillStats(calls=1, seconds=1.0, cost_usd=0.5, stage_cost_usd=2.0),
            "1 calls (1/s), 0 answered before, 0 tokens, $0.50, $2.00 with earlier runs",
        ),
    ],
)
def test_calls_are_told_whatever_is_known_of_them(stats: FillStats, expected: str) -> None:
    """No calls, no tokens and no price are no reason to fail."""
    assert str(stats) == expected


@pytest.mark.parametrize("terminal", [True, False])
def test_the_cursor_comes_back_after_a_mistake(terminal: bool) -> None:
    """A bar that is shown when an error ends the run is taken away."""
    out = io.StringIO()
    watch = Watch(Console(file=out, force_terminal=terminal, width=100))
    watch.started("relevance", 3, RequestPlan(requests=3))

    def run_into_a_mistake() -> None:
        with watch:
            watch.advanced("relevance", 1, FillStats(calls=1))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        run_into_a_mistake()

    assert out.getvalue().count("\x1b[?25l") == out.getvalue().count("\x1b[?25h") == int(terminal)


def test_fetches_are_told_with_what_was_lost() -> None:
    """Images, rate, what was known, and each loss by its reason."""
    lost = Counter({Unfetched.GONE: 2, Unfetched.TIMEOUT: 1})
    stats = FetchStats(1010, known=7, fetched=1000, reasons=lost, seconds=50.0)

    assert str(stats) == "1,000 images (20/s), 7 known before, 2 gone, 1 timeout"
    assert str(FetchStats(0)) == "0 images (0/s), 0 known before"


def test_each_kind_of_work_has_a_bar_of_its_own() -> None:
    """The bar of the images ends before that of the comparisons begins, and both are shown."""
    out = io.StringIO()
    with Watch(Console(file=out, force_terminal=True, width=100)) as watch:
        watch.advanced("pictures", 1, FetchStats(2, fetched=1), 2)
        watch.advanced("pictures", 2, FetchStats(2, fetched=2), 2)
        watch.advanced("compared", 1, "looked at", 9)

    assert out.getvalue().count("\x1b[?25l") == out.getvalue().count("\x1b[?25h") == 2
    assert "2/2" in out.getvalue()
    assert "1/9" in out.getvalue()


def test_a_plan_is_told_with_its_price() -> None:
    """Calls, tokens and, where the engine has a price, dollars are known before they are spent."""
    out = io.StringIO()
    plan = RequestPlan(
        requests=12, stored=2, prompt_tokens=3_000_000, usd_per_million_prompt_tokens=0.5
    )
    Watch(Console(file=out, width=200)).started("extract", plan.calls, plan)

    assert "10 calls to make, 2 answered before" in out.getvalue()
    assert "$1.50" in out.getvalue()


def aside(*said: tuple[str, str], key: str = "url") -> pa.Table:
    """Rows set aside, or remarks: the place of each and its reason."""
    features = {**POSTS.features, **CONTROL} if key == "url" else CONTROL
    schema = Features({name: features[name] for name in (key, "_reason")}).arrow_schema
    rows = [{key: [one] if key == "_parent" else one, "_reason": reason} for one, reason in said]
    return pa.Table.from_pylist(rows, schema)


@pytest.mark.parametrize(
    ("rejects", "notices", "expected"),
    [
        ("", "", ""),
        ("", "a", " (a)"),
        ("", "aaab", " (a, b)"),
        ("", "aaabc", " (a, b, ...)"),
        ("ab", "aaa", " (a, b)"),
        ("b", "aaac", " (b, a, ...)"),
        ("aaaabc", "", " (a, b, ...)"),
    ],
)
def test_places_are_two_and_the_rest_is_hinted_at(
    rejects: str, notices: str, expected: str
) -> None:
    """Several remarks about one place hide no other place; there are dots where more are."""
    tables = (
        aside(*((one, "spoilt") for one in rejects), ("z", "other")),
        aside(),
        aside(*((one, "spoilt") for one in notices), ("y", "other"), key="_parent"),
    )
    assert places(tables, "spoilt") == expected


def test_a_remark_is_one_line_without_control_characters() -> None:
    """What a release from somewhere calls its stages is shown, and does nothing else."""
    out = io.StringIO()
    with Watch(Console(file=out, width=60)) as watch:
        watch.noticed("the release has 'a\x1b[31m\nb' [bold]and[/bold] " + "more " * 200)
    (line,) = out.getvalue().splitlines()
    assert line.startswith("note: the release has 'a[31m b' [bold]and[/bold] more more")
    assert len(line) < 500
