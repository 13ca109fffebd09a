"""The yield of a run: from its scored posts to a table, a file and an image."""

from __future__ import annotations

import datetime
import json
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from echo_hf.builder.build import run_until
from echo_hf.builder.search_yield import WrittenYields, write_yields
from echo_hf.cli.posts_view import show_yields
from echo_hf.config.loading import load_config
from echo_hf.config.systems import shipped_config
from echo_hf.errors import RunError
from echo_hf.tables import POSTS

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&amp;\x00"


def yields_of(folder: Path, keywords: list[list[str]]) -> WrittenYields:
    """The yield of a run with one relevant post a list of terms, one each day."""
    config = load_config(shipped_config())
    released = config.target.released
    start = datetime.datetime.combine(released, datetime.time(12), datetime.UTC)
    rows = [
        {
            "url": f"https://a.example/{day}",
            "timestamp": start + datetime.timedelta(days=day),
            "keywords": terms,
            "relevance": {"score": 5, "note": None},
        }
        for day, terms in enumerate(keywords)
    ]
    stage = folder / config.name / "stages" / "relevance"
    stage.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=POSTS.schema), stage / "kept.parquet")
    return write_yields(config, runs=folder)


def shown(written: WrittenYields) -> str:
    """What a terminal of 100 columns shows."""
    console = Console(file=StringIO(), width=100)
    show_yields(console, written)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_run_that_scored_nothing_says_what_to_do(tmp_path: Path) -> None:
    """One line, and no empty file."""
    with pytest.raises(RunError, match=r"no scored posts in .*: run `echo-hf build CONFIG --until"):
        write_yields(shipped_config(), runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_bundled_posts_have_a_yield(tmp_path: Path) -> None:
    """Found posts are those with a term, passed ones those with 4 or 5, counted in the table."""
    run_until(shipped_config(), "relevance", runs=tmp_path)
    written = write_yields(shipped_config(), runs=tmp_path)
    rows = pq.read_table(
        tmp_path / "quickstart" / "stages" / "relevance" / "kept.parquet"
    ).to_pylist()
    found = [row for row in rows if row["keywords"]]
    passed = [row for row in found if (row["relevance"] or {}).get("score") in (4, 5)]
    figures = json.loads(written.figures.read_text("utf-8"))

    total = figures["all_keywords"]
    assert (total["found"], total["passed"]) == (len(found), len(passed))
    assert len(passed) > 0
    assert sum(one["found"] for one in total["windows"]) == len(found)
    assert figures["came_along"] == sum(row["keywords"] == [] for row in rows)


def test_an_image_is_well_formed_and_asks_nobody(tmp_path: Path) -> None:
    """A mark for each post a day, whatever a term holds; no script, no address."""
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


def test_a_terminal_shows_terms_as_they_are_and_runs_nothing(tmp_path: Path) -> None:
    """No escape sequence of a term reaches it, and none is markup."""
    text = shown(yields_of(tmp_path, [["[red]fox[/red]"], [HOSTILE]]))

    assert "[red]fox[/red]" in text
    assert "<script>" in text
    assert not set("\x1b\u202e\x00") & set(text)


def test_no_post_makes_an_empty_image(tmp_path: Path) -> None:
    """Nothing is divided by nothing."""
    written = yields_of(tmp_path, [])

    drawing = ElementTree.parse(written.plot)  # noqa: S314 - we wrote it
    assert drawing.getroot().tag.endswith("svg")
    assert "all terms" in shown(written)


def test_hundreds_of_terms_are_cut_and_that_is_said(tmp_path: Path) -> None:
    """The file has them all."""
    written = yields_of(tmp_path, [[f"term {number:03}"] for number in range(100)])
    figures = json.loads(written.figures.read_text("utf-8"))

    assert "60 more terms stand in the file" in shown(written)
    assert "12 of 100 terms" in written.plot.read_text("utf-8")
    assert len(figures["keywords"]) == 100
