"""What a crawl has stored: read as records, changed for good, and bytes that are gone."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from echo_hf.builder.build import files_of, run_until
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, answers_digest
from echo_hf.collect.platforms.base import Answer, Question, TimeWindow
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import Post
from echo_hf.config.sections import Posts
from tests.collect.platforms.crawling import config_of, crawled, records
from tests.collect.platforms.serving import Serve
from tests.collect.platforms.simulated import FIRST_DAY, HOST, NAME, World

DAY = TimeWindow(FIRST_DAY, FIRST_DAY + datetime.timedelta(days=1))
SEARCH = Question("search", ("4o",), DAY, "ja")
X = Posts.model_validate({"source": "x", "search": {"phases": [{"window": "1d", "terms": ["a"]}]}})


def page(*numbers: int, **rest: Any) -> str:
    """A page of the X API with these posts."""
    return json.dumps({"data": [{"id": str(one), "text": f"t{one}"} for one in numbers], **rest})


def kept(path: Path, platform: str, question: Question, *bodies: str) -> None:
    """Writes a question with its pages down."""
    with CrawlLedger(path) as ledger:
        ledger.add_searches(platform, [question])
        for number, body in enumerate(bodies):
            asked = ledger.next_question(platform)
            assert asked is not None
            cursor = str(number) if number + 1 < len(bodies) else None
            ledger.keep(asked, Answer(body, cursor, 1), [Post(f"{HOST}/{number}")], None)


class TestReading:
    """Answers as records of the stage `collect`."""

    def test_a_record_says_which_query_and_page_it_is_from(self, tmp_path: Path) -> None:
        """Every place is another one; the term stands with what a search has found."""
        path = tmp_path / LEDGER
        kept(path, "x", SEARCH, page(1, 2), page(3))
        kept(path, "x", Question("replies", ("1", "2")), page(4))
        rows = read_records([X], path).to_list()

        assert [(row["place"], row["keywords"]) for row in rows] == [
            ('x/search "4o" in ja 2026-03-02 to 2026-03-03 page 1#0', ["4o"]),
            ('x/search "4o" in ja 2026-03-02 to 2026-03-03 page 1#1', ["4o"]),
            ('x/search "4o" in ja 2026-03-02 to 2026-03-03 page 2#0', ["4o"]),
            ("x/replies 1 and 1 more page 1#0", []),
        ]
        assert {row["source"] for row in rows} == {"x"}

    def test_what_comes_along_with_a_page_was_not_found_by_its_term(
        self, tmp_path: Path, collect: Collect
    ) -> None:
        """The source knows: a parent that the search did not find carries no keyword."""
        path = tmp_path / LEDGER
        included = {"tweets": [{"id": "9", "text": "parent"}]}
        kept(path, "x", SEARCH, page(1, includes=included))
        rows = collect(read_records([X], path).with_format("arrow")[:]).to_pylist()

        assert {row["post_id"]: row["keywords"] for row in rows} == {"1": ["4o"], "9": []}

    def test_no_file_of_this_machine_is_read_for_an_answer(
        self, tmp_path: Path, collect: Collect
    ) -> None:
        """A path in a stranger's post leads nowhere, not even beside the ledger."""
        secret = tmp_path / "secret.png"
        secret.write_bytes(b"not yours")
        path = tmp_path / LEDGER
        post = {"url": "https://example.org/1", "pictures": [{"path": "secret.png"}]}
        kept(path, "jsonl", SEARCH, json.dumps(post))
        entry = X.model_copy(update={"source": "jsonl"})
        rows = collect(read_records([entry], path).with_format("arrow")[:]).to_pylist()

        assert [row["_reason"] for row in rows if row["_reason"]] == ["picture_not_found"]
        assert [one["sha256"] for row in rows for one in row["pictures"] or []] == [None]

    def test_a_page_that_is_no_json_is_rejected_by_name(
        self, tmp_path: Path, collect: Collect
    ) -> None:
        """It costs no other page."""
        path = tmp_path / LEDGER
        kept(path, "x", SEARCH, "<html>", page(1))
        rows = collect(read_records([X], path).with_format("arrow")[:]).to_pylist()

        assert [row["_reason"] for row in rows] == ["not_json", None]

    def test_files_and_answers_stand_side_by_side(self, serve: Serve, tmp_path: Path) -> None:
        """A run reads both, merges what is there twice, and keeps who found what."""
        serve(World.of(200, seed=7))
        config = config_of()
        root = tmp_path / "runs" / config.name
        crawled(root, config)
        file = tmp_path / "posts.jsonl"
        file.write_text(json.dumps({"url": f"{HOST}/p0", "text": "an older text"}) + "\n")
        both = config.model_copy(
            update={"posts": (Posts(source="jsonl", path=file), *config.posts)}
        )
        (result,) = run_until(both, "collect", runs=tmp_path / "runs")
        posts = {row["url"]: row for row in result.dataset.to_list()}

        assert len(records(root, config)) + 1 == result.stats.rows_in
        assert posts[f"{HOST}/p0"]["text"] == "post p0"
        assert [(one["place"], one["_reason"]) for one in result.rejects.to_list()] == [
            ("posts.jsonl:1", "superseded")
        ]
        assert {source["source"] for source in files_of(both, root / LEDGER)} == {"jsonl", NAME}

    def test_the_same_answers_are_the_same_result(self, serve: Serve, tmp_path: Path) -> None:
        """In another folder, fetched at another time, in another number of runs."""
        serve(World.of(300, seed=8))
        digests = []
        for name, stops in (("one", []), ("two", [30, 90])):
            for posts in stops:
                crawled(tmp_path / name, config_of(budget={"posts": posts}))
            crawled(tmp_path / name, config_of())
            path = tmp_path / name / LEDGER
            fingerprint = read_records(config_of().posts, path)._fingerprint
            digests.append((fingerprint, answers_digest(path, NAME)))

        assert digests[0] == digests[1]
