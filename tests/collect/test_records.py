"""Taking files apart: each record once, with a place to find it by."""

from __future__ import annotations

import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.build import describe_files, run_until
from echo_hf.collect import records as records_module
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE, CrawlLedger, digest_pages
from echo_hf.collect.platforms.base import Page, Question, TimeWindow
from echo_hf.collect.records import RECORDS, read_records
from echo_hf.collect.sources.base import Post
from echo_hf.config.sections import PostsSource
from echo_hf.errors import ConfigError, SourceError
from echo_hf.hub.redistribution import find_restricted
from echo_hf.pipeline.stage_runner import run_stage
from tests.collect.platforms.crawling import Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import FIRST_DAY, HOST, NAME, World
from tests.progress_for_tests import Heard

GOOD = '{"url": "https://example.org/a"}'


def entry(path: Path, source: str = "jsonl", *keywords: str) -> PostsSource:
    return PostsSource(source=source, path=path, keywords=keywords)


def written(folder: Path, content: bytes | str, name: str = "posts.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(*posts: PostsSource) -> list[tuple[str, str]]:
    return [(row["place"], row["record"]) for row in read_records(posts).to_list()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\n \r\n\t\n", []),
        (b"\na\n\n\nb", [(2, "a"), (5, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (b"a\rb", [(1, "a\rb")]),
        ("a\u2028b\nc\x0bd\x85e".encode(), [(1, "a\u2028b"), (2, "c\x0bd\x85e")]),
        (b"\xef\xbb\xbfa\nb\n\xef\xbb\xbfc", [(1, "a"), (2, "b"), (3, "c")]),
        (b"a\nb\x00c\nd", [(1, "a"), (2, "b\x00c"), (3, "d")]),
        (b'a\n"\xf0\x9f\xa6\nd', [(1, "a"), (2, '"\\xf0\\x9f\\xa6'), (3, "d")]),
    ],
)
def test_a_line_is_a_record(
    tmp_path: Path, content: bytes, expected: list[tuple[int, str]]
) -> None:
    for name, data in (("posts.jsonl", content), ("posts.jsonl.gz", gzip.compress(content))):
        path = written(tmp_path, data, name)
        assert read(entry(path)) == [(f"{name}:{number}", text) for number, text in expected]


def test_records_have_the_declared_columns(tmp_path: Path) -> None:
    dataset = read_records([entry(written(tmp_path, GOOD), "jsonl", "lumen", "l-image")])
    row = {"place": "posts.jsonl:1", "source": "jsonl", "record": GOOD}

    assert dataset.features == RECORDS.features
    assert dataset.to_list() == [
        {**row, "folder": str(tmp_path.resolve()), "keywords": ["lumen", "l-image"]}
    ]


def test_files_of_one_name_are_told_apart_and_each_is_named_once(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "deep", "1\n2")
    second = written(tmp_path / "b" / "deep", "3")
    (tmp_path / "link.jsonl").symlink_to(first)

    assert read(entry(first), entry(second)) == [
        ("a/deep/posts.jsonl:1", "1"),
        ("a/deep/posts.jsonl:2", "2"),
        ("b/deep/posts.jsonl:1", "3"),
    ]
    for other in (first, tmp_path / "link.jsonl", tmp_path / "b" / ".." / "a/deep/posts.jsonl"):
        with pytest.raises(ConfigError, match=r"posts\.jsonl' is named twice: name each file once"):
            read_records([entry(first), entry(other)])
    with pytest.raises(ConfigError, match="unknown source 'jsnol'; did you mean 'jsonl'"):
        read_records([entry(first, "jsnol")])


def test_a_file_that_cannot_be_read_at_all_stops_with_one_line(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(range(256)) * 400)
    (tmp_path / "circle").symlink_to("circle")
    cases = {
        tmp_path / "none.jsonl": "no file .*none.jsonl': expected posts for source 'jsonl'",
        tmp_path / "circle": "cannot read",
        tmp_path: "is not a regular file: expected posts for source 'jsonl'",
        written(tmp_path, "no gzip", "a.gz"): "cannot read .*a.gz'",
        written(tmp_path, packed[:-20], "b.gz"): "cannot read .*b.gz'",
        written(tmp_path, packed[:20] + b"\xff" * 20 + packed[40:], "c.gz"): "cannot read .*c.gz'",
    }
    for path, message in cases.items():
        with pytest.raises(SourceError, match=message) as caught:
            read_records([entry(path)])
        assert "\n" not in str(caught.value)


def test_a_fingerprint_is_made_from_content(tmp_path: Path) -> None:
    here = written(tmp_path / "here", GOOD + "\n")
    there = written(tmp_path / "there", GOOD)
    other = written(tmp_path / "other", GOOD.replace("org/a", "org/b"))
    changed = [entry(other), entry(here, "jsonl", "lumen"), entry(here, "snscrape")]
    every = [entry(here), entry(there), *changed]
    known, same, *others = [read_records([one])._fingerprint for one in every]

    assert known == same
    assert len({known, *others}) == 4


def test_no_record_is_lost_between_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECORDS_PER_BATCH", "BATCH_CHARACTERS"):
        monkeypatch.setattr(records_module, name, 2)
        assert [text for _, text in read(entry(written(tmp_path, "a\nb\nc\nd\ne")))] == [*"abcde"]


DAY = TimeWindow(FIRST_DAY, FIRST_DAY + datetime.timedelta(days=1))
SEARCH = Question("search", ("4o",), DAY, "ja")
X = PostsSource.model_validate(
    {"source": "x", "search": {"phases": [{"window": "1d", "terms": ["a"]}]}}
)


def page(*numbers: int) -> str:
    return json.dumps({"data": [{"id": str(one), "text": f"t{one}"} for one in numbers]})


def kept(path: Path, platform: str, question: Question, *bodies: str) -> Path:
    with CrawlLedger(path) as ledger:
        ledger.add_searches(platform, [question])
        for number, body in enumerate(bodies, 1):
            asked = ledger.next_question(platform)
            assert asked is not None
            cursor = str(number) if number < len(bodies) else None
            ledger.store_page(asked, Page(body, cursor, 1), [Post(f"{HOST}/{number}")], None)
    return path


def test_a_record_says_which_query_and_page_it_is_from(tmp_path: Path) -> None:
    path = kept(tmp_path / CRAWL_LEDGER_FILE, "x", SEARCH, page(1, 2), page(3))
    kept(path, "x", Question("replies", ("1", "2")), page(4))
    rows = read_records([X], path).to_list()

    assert [(row["source"], row["place"], row["keywords"]) for row in rows] == [
        ("x", 'x/search "4o" in ja 2026-03-02 to 2026-03-03 page 1#0', ["4o"]),
        ("x", 'x/search "4o" in ja 2026-03-02 to 2026-03-03 page 1#1', ["4o"]),
        ("x", 'x/search "4o" in ja 2026-03-02 to 2026-03-03 page 2#0', ["4o"]),
        ("x", "x/replies 1 and 1 more page 1#0", []),
    ]


def test_no_file_of_this_machine_is_read_for_an_answer(tmp_path: Path, collect: Collect) -> None:
    written(tmp_path, b"not yours", "secret.png")
    post = {"url": "https://example.org/1", "pictures": [{"path": "secret.png"}]}
    path = kept(tmp_path / CRAWL_LEDGER_FILE, "jsonl", SEARCH, json.dumps(post))
    ours = X.model_copy(update={"source": "jsonl"})
    rows = collect(read_records([ours], path).with_format("arrow")[:]).to_pylist()

    assert [row["_reason"] for row in rows if row["_reason"]] == ["picture_not_found"]
    assert [one["sha256"] for row in rows for one in row["pictures"] or []] == [None]


def test_a_build_reads_files_and_what_was_crawled_and_says_what_is_open(
    serve: Serve, tmp_path: Path
) -> None:
    service, config = serve(World.of(200, seed=7)), config_of(budget={"posts": 100})
    with pytest.raises(SourceError, match=r"has to be asked for first, by `echo-hf collect`"):
        run_until(config, "collect", runs=tmp_path)
    root = tmp_path / config.name
    crawled(root, config)
    name = next(iter(collected(root)))
    file = written(tmp_path, json.dumps({"url": f"{HOST}/{name}", "text": "an older text"}))
    both = config.model_copy(update={"posts": (entry(file), *config.posts)})
    requests, watch = service.requests, Heard()
    (result,) = run_until(both, "collect", runs=tmp_path, watch=watch)
    posts = {row["url"]: row for row in result.dataset.to_list()}
    rejects = [(one["place"], one["_reason"]) for one in result.rejects.to_list()]

    assert len(read_records(config.posts, root / CRAWL_LEDGER_FILE)) + 1 == result.stats.rows_in
    assert posts[f"{HOST}/{name}"]["text"] == f"post {name}"
    assert rejects == [("posts.jsonl:1", "superseded")]
    assert {source["source"] for source in describe_files(both, root / CRAWL_LEDGER_FILE)} == {
        "jsonl",
        NAME,
    }
    assert (service.requests, len(watch.remarks)) == (requests, 1)
    assert "questions are open: `echo-hf collect` goes on" in watch.remarks[0]


def test_the_same_answers_are_the_same_result(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(200, seed=8))
    digests = []
    for name, stops in (("one", []), ("two", [30, 90])):
        for posts in stops:
            crawled(tmp_path / name, config_of(budget={"posts": posts}))
        crawled(tmp_path / name, config_of())
        path = tmp_path / name / CRAWL_LEDGER_FILE
        fingerprint = read_records(config_of().posts, path)._fingerprint
        digests.append((fingerprint, digest_pages(path, NAME)))

    assert digests[0] == digests[1]


def test_a_crawled_page_gives_the_posts_of_the_imported_file(
    test_data: Path, tmp_path: Path, collect: Collect
) -> None:
    file = test_data / "posts" / "x_api_v2" / "noflat.jsonl"
    path = kept(
        tmp_path / CRAWL_LEDGER_FILE, "x", Question("search", ("obama",)), file.read_text("utf-8")
    )

    def rows_of(posts: PostsSource) -> list[dict[str, Any]]:
        rows = run_stage(collect, read_records([posts], path)).dataset.to_list()
        return [{**row, "keywords": 0, "place": 0} for row in rows]

    crawled = rows_of(X)
    assert len(crawled) >= 117
    assert crawled == rows_of(entry(file, "x"))
    assert all(find_restricted([row["url"]]) == ["x"] for row in crawled)
