"""What each search term brought in, and for how long."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echo_hf.builder.build import run_until
from echo_hf.builder.search_yield import (
    SavedYields,
    SearchYields,
    compute_yields,
    count_days,
    make_windows,
    plan_edges,
    write_yields,
)
from echo_hf.cli.build_view import show_yields
from echo_hf.config.collection import Search
from echo_hf.config.loading import load_config
from echo_hf.config.systems import shipped_config
from echo_hf.errors import RunError
from echo_hf.tables import POSTS
from tests.recorded_as_model import rows

RELEASED = datetime.date(2026, 3, 2)
Row = dict[str, Any]


def post(
    day: float | None, *keywords: str, score: int | None = 5, asked: bool = True, **more: Any
) -> Row:
    start = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
    when = None if day is None else start + datetime.timedelta(days=day)
    said = {"score": score, "note": None} if asked else None
    row = {"url": f"https://a.example/{day}{keywords}{more}", "keywords": [*keywords]}
    return {**row, "timestamp": when, "relevance": said, **more}


def yields(posts: list[Row], edges: list[int] | None = None) -> SearchYields:
    table = pa.Table.from_pylist(posts, schema=POSTS.schema)
    return compute_yields(table, RELEASED, edges or plan_edges((), RELEASED, 60), (4, 5))


POST = st.builds(
    lambda day, words, score, asked: {**post(day, score=score, asked=asked), "keywords": words},
    st.none() | st.floats(-40, 60).map(lambda day: round(day, 3)),
    st.none() | st.lists(st.sampled_from(["a", "b", "c"]), max_size=4),
    st.none() | st.integers(1, 5),
    st.booleans(),
)


@given(st.lists(POST, max_size=30))
def test_every_count_is_that_of_a_plain_loop(posts: list[Row]) -> None:
    found = yields(posts)
    expected: dict[str, Counter[Any]] = {
        name: Counter() for name in ("found", "scored", "passed", "alone", "alone_passed")
    }
    for one in posts:
        words = set(one["keywords"] or ())
        score = (one["relevance"] or {}).get("score")
        for word in words:
            place = word, named(one["timestamp"])
            expected["found"][place] += 1
            expected["scored"][place] += score is not None
            expected["passed"][place] += score in (4, 5)
            expected["alone"][place] += len(words) == 1
            expected["alone_passed"][place] += len(words) == 1 and score in (4, 5)
    for term in found.keywords:
        for window, counted in zip(found.windows, term.windows, strict=True):
            for name, counts in expected.items():
                assert getattr(counted, name) == counts[term.keyword, window.name]
            assert (counted.share is None) is (counted.scored == 0)
    assert {one.keyword for one in found.keywords} == set(expected_words(posts))
    assert found.came_along == sum(one["keywords"] == [] for one in posts)
    assert found.unknown == sum(one["keywords"] is None for one in posts)
    assert found.together.total.found == sum(bool(one["keywords"]) for one in posts)


def expected_words(posts: list[Row]) -> Iterator[str]:
    for one in posts:
        yield from one["keywords"] or ()


def named(moment: datetime.datetime | None) -> str:
    if moment is None:
        return "undated"
    day = (moment.date() - RELEASED).days
    if day < 0:
        return "before"
    first = day if day < 14 else day - day % 7
    return str(day) if day < 14 else f"{first}-{first + 6}"


@pytest.mark.parametrize(
    ("passed", "half"), [([0], 0), ([0, 4], 0), ([0, 3, 9], 3), ([1, 2, 3, 4], 2), ([5, 5, 6], 5)]
)
def test_half_of_the_posts_are_there_by_a_day(passed: list[int], half: int) -> None:
    posts = [post(day + 0.5, "a", n=n) for n, day in enumerate(passed)]
    assert yields(posts).keywords[0].half_by_day == half
    assert yields([post(3, "a", score=1)]).keywords[0].half_by_day is None


def test_a_day_begins_at_midnight_in_greenwich() -> None:
    days = {"2026-03-02T23:59:59": 0, "2026-03-03T00:00:00": 1, "2026-03-01T23:59:59": -1}
    days["1969-12-31T23:59:59"] = (datetime.date(1969, 12, 31) - RELEASED).days
    given = [datetime.datetime.fromisoformat(f"{one}+00:00") for one in days]
    found = count_days(pa.array([*given, None], POSTS.schema.field("timestamp").type), RELEASED)
    assert found.to_pylist() == [*days.values(), None]


def test_windows_are_those_of_the_plan() -> None:
    phases = [
        {"terms": ["a"], "window": "2d", "days": 4},
        {"terms": ["b"], "window": "7d", "until": "2026-03-21"},
    ]
    search = Search.model_validate({"phases": phases})
    assert plan_edges([search], RELEASED, 10) == [0, 2, 4, 11, 18, 19]
    assert plan_edges([search], RELEASED, 30) == [0, 2, 4, 11, 18, 19, 26, 33]
    assert plan_edges([], RELEASED, 3) == plan_edges((), RELEASED, 3) == list(range(15))


ENDLESS = Search.model_validate(
    {"phases": [{"terms": ["a"], "window": "2d", "days": 4}, {"terms": ["b"], "window": "1d"}]}
)


@given(st.integers(-10, 4_000_000), st.sampled_from([[], [ENDLESS]]))
def test_every_day_until_the_last_is_in_a_window(last: int, searches: list[Search]) -> None:
    edges = plan_edges(searches, RELEASED, last)
    assert edges == sorted(set(edges))
    assert edges[0] == 0
    assert edges[-1] > last
    assert len(make_windows(edges)) < 6_000


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&amp;\x00"


def yields_of(folder: Path, keywords: list[list[str]]) -> SavedYields:
    rows = [post(day + 0.5, *terms) for day, terms in enumerate(keywords)]
    config = load_config(shipped_config())
    assert config.target.released == RELEASED
    stage = folder / config.name / "stages" / "relevance"
    stage.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=POSTS.schema), stage / "kept.parquet")
    return write_yields(config, runs=folder)


def test_a_run_that_scored_nothing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no scored posts in .*: run `echo-hf build CONFIG --until"):
        write_yields(shipped_config(), runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_bundled_posts_have_a_yield(tmp_path: Path) -> None:
    run_until(shipped_config(), "relevance", runs=tmp_path)
    written = write_yields(shipped_config(), runs=tmp_path)
    scored = rows(tmp_path / "quickstart", "relevance")
    found = [row for row in scored if row["keywords"]]
    passed = [row for row in found if (row["relevance"] or {}).get("score") in (4, 5)]
    figures = json.loads(written.figures.read_text("utf-8"))
    total = figures["all_keywords"]
    assert (total["found"], total["passed"]) == (len(found), len(passed))
    assert len(passed) > 0
    assert sum(one["found"] for one in total["windows"]) == len(found)
    assert figures["came_along"] == sum(row["keywords"] == [] for row in scored)


def test_an_image_is_well_formed_and_asks_nobody(tmp_path: Path) -> None:
    written = yields_of(tmp_path, [["fox"], [HOSTILE], ["fox", HOSTILE]])
    text = written.plot.read_text("utf-8")
    drawing = ElementTree.fromstring(text)  # noqa: S314 - we wrote it
    name = "{http://www.w3.org/2000/svg}"
    circles = drawing.findall(f"{name}circle")
    bars = [one for one in drawing.findall(f"{name}rect") if one.get("class") == "found"]
    assert len(bars) == 3 * 3  # three days of: all terms, fox, the hostile one
    assert len(circles) == 3 + 2 + 2
    assert not re.findall(r"<script|href|url\(|src=|\x1b|\u202e", text)
    assert text.count("http") == 1  # the name of the format
    for bar in bars:
        assert 0 <= float(bar.get("height", "nan")) <= 52


def test_no_post_makes_an_empty_image(tmp_path: Path) -> None:
    written = yields_of(tmp_path, [])
    assert (written.yields.keywords, written.yields.together.total.found) == ((), 0)
    drawing = ElementTree.parse(written.plot)  # noqa: S314 - we wrote it
    assert drawing.getroot().tag.endswith("svg")
    console = Console(file=StringIO(), width=100)
    show_yields(console, written)
    assert "all terms" in console.file.getvalue()  # type: ignore[attr-defined]
