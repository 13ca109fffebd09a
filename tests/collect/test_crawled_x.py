"""Posts of X that a crawl brought are published by identifier alone, as imported ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.builder.build import build
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import make_source, posts_in
from echo_hf.config.sections import Posts
from echo_hf.config.systems import shipped_config
from echo_hf.hub.dehydrate import dehydrate
from echo_hf.hub.redistribution import restricted_posts
from echo_hf.pipeline.stage_runner import run_stage
from tests.hub.quickstart_release import CORPUS, released

Row = dict[str, Any]
SEARCH = Question("search", ("obama",))
PHASES = {"phases": [{"terms": ["obama"], "window": "7d"}]}


def crawl_of(path: Path, body: str) -> None:
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        asked = ledger.next_question("x")
        assert asked is not None
        ledger.keep(asked, Answer(body), posts_in(body, make_source("x"), ("obama",)), 0.5)


def rows_of(collect: Collect, entry: Row, ledger: Path) -> list[Row]:
    records = read_records([Posts.model_validate({"source": "x", **entry})], ledger)
    rows: list[Row] = run_stage(collect, records).dataset.to_list()
    return rows


def test_a_crawled_page_gives_the_posts_of_the_imported_file(
    test_data: Path, tmp_path: Path, collect: Collect
) -> None:
    file = test_data / "posts" / "x_api_v2" / "noflat.jsonl"
    if not file.exists():
        pytest.skip(f"no file {str(file)!r}")
    body, path = file.read_text("utf-8"), tmp_path / "collected.sqlite"
    crawl_of(path, body)
    crawled = rows_of(collect, {"search": PHASES}, path)
    imported = rows_of(collect, {"path": file}, path)

    assert len(crawled) >= 117
    assert [{**row, "keywords": 0, "place": 0} for row in crawled] == [
        {**row, "keywords": 0, "place": 0} for row in imported
    ]
    assert all(restricted_posts([row["url"]]) == ["x"] for row in crawled)
    assert all(restricted_posts([row["url"]], {"x": "a contract"}) == [] for row in crawled)


def answer_of_x() -> tuple[str, list[str]]:
    lines = (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
    posts = [post for post in map(json.loads, lines) if post["url"].startswith("https://x.com/")]
    data = [
        {
            "id": number_of(post["url"]),
            "text": post["text"],
            "created_at": post["timestamp"],
            **(answering(post["parent_url"]) if post.get("parent_url") else {}),
        }
        for post in posts
        if post.get("text")
    ]
    said = [line for post in data for line in str(post["text"]).splitlines()]
    return json.dumps({"data": data}), [line for line in said if len(line.split()) > 4]


def number_of(url: str) -> str:
    return url.rpartition("/")[2]


def answering(url: str) -> Row:
    return {"referenced_tweets": [{"type": "replied_to", "id": number_of(url)}]}


def contents(folder: Path) -> bytes:
    tables = (pq.read_table(path).to_pylist() for path in sorted(folder.rglob("*.parquet")))
    texts = [path.read_text("utf-8") for path in folder.iterdir() if path.is_file()]
    whole = json.dumps([*tables, *texts], ensure_ascii=False, default=str)
    return whole.replace('\\\\"', '"').replace('\\"', '"').encode()


@pytest.mark.slow  # what is published of other posts of X is tested beside `dehydrate`
def test_a_release_of_crawled_posts_of_x_can_be_published_without_a_word_of_them(
    tmp_path: Path,
) -> None:
    body, said = answer_of_x()
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["posts"] = [{"source": "x", "search": PHASES}]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    crawl_of(tmp_path / "runs" / config["name"] / LEDGER, body)
    full = build(tmp_path / "c.yaml", runs=tmp_path / "runs", offline=True).path
    dehydrate(full, tmp_path / "dry")
    rows = [row for some in released(tmp_path / "dry").values() for row in some]
    known = {f"https://x.com/i/status/{post['id']}" for post in json.loads(body)["data"]}

    assert len(rows) > 40
    assert all(row["dehydrated"] for row in rows)
    assert all(row["post_urls"] and known.issuperset(row["post_urls"]) for row in rows)
    before, after = contents(full), contents(tmp_path / "dry")
    assert sum(line.encode() in before for line in said) > 15
    assert [line for line in said if line.encode() in after] == []
