"""Posts of X that a crawl brought are published by identifier alone, as imported ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.apply import run_stage
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_answers import posts_in
from echo_hf.collect.crawl_ledger import CrawlLedger
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import make_source
from echo_hf.config import Posts
from echo_hf.hub.rights import restricted_posts

Row = dict[str, Any]
SEARCH = Question("search", ("obama",))
PHASES = {"phases": [{"terms": ["obama"], "window": "7d"}]}


def rows_of(collect: Collect, entry: Row, ledger: Path) -> list[Row]:
    """The posts of an entry."""
    records = read_records([Posts.model_validate({"source": "x", **entry})], ledger)
    rows: list[Row] = run_stage(collect, records).dataset.to_list()
    return rows


def test_a_crawled_page_gives_the_posts_of_the_imported_file(
    test_data: Path, tmp_path: Path, collect: Collect
) -> None:
    """Every column but the term is equal, and each post is one whose content stays here."""
    file = test_data / "posts" / "x_api_v2" / "noflat.jsonl"
    if not file.exists():
        pytest.skip(f"no file {str(file)!r}")
    body, path = file.read_text("utf-8"), tmp_path / "collected.sqlite"
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        asked = ledger.next_question("x")
        assert asked is not None
        ledger.keep(asked, Answer(body), posts_in(body, SEARCH, make_source("x")), 0.5)
    crawled = rows_of(collect, {"search": PHASES}, path)
    imported = rows_of(collect, {"path": file}, path)

    assert len(crawled) >= 117
    assert [{**row, "keywords": 0} for row in crawled] == [
        {**row, "keywords": 0} for row in imported
    ]
    assert all(restricted_posts([row["url"]]) == ["x"] for row in crawled)
    assert all(restricted_posts([row["url"]], {"x": "a contract"}) == [] for row in crawled)
