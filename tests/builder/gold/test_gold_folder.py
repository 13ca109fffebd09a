"""Reading a gold folder: what is right is read, what is wrong is one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.gold.folder import read_gold
from echo_hf.errors import GoldError
from tests.builder.gold.gold_for_tests import BUNDLED, GOLD, KITE, OTTER, write_lines

URL = "https://twitter.com/ana_ink/status/99?s=20"


def one_file(folder: Path, name: str, *rows: Any) -> Path:
    """A folder with one file of these lines; a text is a line as it is."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


def test_the_bundled_gold_is_of_the_format() -> None:
    """Every line is read, and keeps what it says."""
    gold = read_gold(BUNDLED / "gold")
    raw = json.loads((BUNDLED / "gold" / "feedback.jsonl").read_text("utf-8").splitlines()[2])

    assert {name: len(lines) for name, lines in gold.items()} == {
        name: len((BUNDLED / "gold" / f"{name}.jsonl").read_text("utf-8").splitlines())
        for name in (*GOLD, "screenshots")
    }
    assert gold["feedback"][2].verdict == raw["verdict"]
    assert gold["feedback"][2].keywords == set(raw["acceptable_keywords"])


def test_what_may_be_left_out(tmp_path: Path) -> None:
    """Without a half a line is held out, without `acceptable` only the best answer is right."""
    for name, rows in GOLD.items():
        write_lines(tmp_path / f"{name}.jsonl", rows)
    gold = read_gold(tmp_path)

    assert [(one.half, one.score, one.acceptable) for one in gold["relevance"]] == [
        ("held_out", 5, ()), ("tune", 5, (4, 5)), ("held_out", 1, ()),
    ]  # fmt: skip
    assert gold["relevance"][0].place == f"{tmp_path / 'relevance.jsonl'}:1"
    assert [one.root_url for one in gold.of("tune")["extract"]] == [KITE]
    assert [one.root_url for one in gold.of("held_out")["extract"]] == [OTTER]
    assert gold.of("all") == gold


def test_addresses_are_made_canonical(tmp_path: Path) -> None:
    """An address may be spelled as in a browser; blank lines and a byte order mark are nothing."""
    one_file(tmp_path, "relevance", "\ufeff", {"url": URL, "score": 3}, "  ")
    gold = read_gold(tmp_path)

    assert [one.url for one in gold["relevance"]] == ["https://x.com/i/status/99"]
    assert "extract" not in gold


SHOT: dict[str, Any] = {
    "post_url": OTTER, "index": 0, "layout": "collage", "prompt": "", "inputs": [], "outputs": [],
}  # fmt: skip
HARMLESS = {"root_url": OTTER, "prompt": "x", "flagged": False}
SAMPLE = {"prompt": "a fox", "quality": "Benchmark", "post_urls": [OTTER]}
FAILURE = {"post_url": OTTER, "verdict": "failure", "keyword": "tint"}
BAD: list[tuple[str, Any, str]] = [
    ("relevance", {"url": OTTER, "scroe": 5}, "unknown key 'scroe'; did you mean 'score'?"),
    ("relevance", {"url": OTTER}, "score is missing"),
    ("relevance", {"url": OTTER, "score": 6}, "score is 6: input should be less than"),
    ("relevance", {"url": OTTER, "score": "5"}, "score is '5': input should be a valid integer"),
    ("relevance", {"url": "otter", "score": 5}, "url is 'otter': expected the address of a post"),
    ("relevance", {"url": OTTER, "score": 5, "acceptable": [3]}, "expected score 5 among them"),
    ("relevance", {"url": OTTER, "score": 5, "half": "test"}, "half is 'test': input should be"),
    ("relevance", {"url": OTTER, "score": 5, "acceptable": []}, "acceptable is []: expected score"),
    (
        "relevance",
        f'{{"url": "{OTTER}", "score": 5, "url": "{KITE}"}}',
        "key 'url' is given twice: keep one",
    ),
    ("relevance", [1], '[1] is not an object: expected {"half": ..., "url": ...'),
    ("relevance", "{'url': 1}", "is not JSON"),
    ("relevance", "[" * 100_000, "is not JSON"),
    (
        "extract",
        {"root_url": OTTER, "samples": [{**SAMPLE, "qualty": 1}]},
        "samples.0 'qualty'; did you",
    ),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "quality": "x"}]}, "quality is 'x'"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "prompt": " "}]}, "some words"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "post_urls": []}]}, "at least 1 item"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "optional": "no"}]}, "optional is"),
    ("extract", {"root_url": OTTER, "samples": [SAMPLE, SAMPLE]}, "with different prompts"),
    (
        "roles",
        {"root_url": OTTER, "prompt": "x", "pictures": [{"post_url": OTTER, "index": -1}]},
        "pictures.0.index is -1",
    ),
    ("safety", {"root_url": OTTER, "prompt": "x"}, "flagged is missing"),
    ("safety", {**HARMLESS, "flagged": "no"}, "flagged is 'no'"),
    ("safety", {**HARMLESS, "categories": ["S1"]}, "expected none, as flagged is False"),
    ("safety", {**HARMLESS, "flagged": True}, "categories is (): expected codes of its hazards"),
    (
        "safety",
        {**HARMLESS, "flagged": True, "categories": ["violence"]},
        "categories.0 is 'violence': input should be 'S1', 'S2'",
    ),
    ("screenshots", {**SHOT, "layout": "window"}, "layout is 'window'"),
    ("screenshots", {**SHOT, "inputs": [[0, 0, 5]]}, "inputs.0.3 is missing"),
    ("screenshots", {**SHOT, "outputs": [[0, 0, 5.5, 9]]}, "outputs.0.2 is 5.5"),
    ("screenshots", {**SHOT, "outputs": [[9, 0, 9, 9]]}, "expected left, top, right, bottom"),
    ("screenshots", {**SHOT, "outputs": [[-1, 0, 9, 9]]}, "outputs.0.0 is -1"),
    (
        "roles",
        f'{{"root_url": "{OTTER}", "pictures": [{{"index": 0, "index": 1}}]}}',
        "key 'index' is given twice",
    ),
    ("feedback", {"post_url": OTTER, "verdict": "bad"}, "verdict is 'bad'"),
    ("feedback", {"post_url": OTTER, "verdict": "none"}, "verdict is 'none': input should be 'suc"),
    ("feedback", {**FAILURE, "acceptable": ["failure", "none"]}, "acceptable.1 is 'none'"),
    ("feedback", {**FAILURE, "acceptable": ["mixed"]}, "expected verdict 'failure' among them"),
    ("feedback", {**FAILURE, "acceptable": []}, "acceptable is []: expected verdict 'failure'"),
    ("feedback", {**FAILURE, "keyword": None}, "keyword is None: expected what failed"),
    ("feedback", {**FAILURE, "keyword": " "}, "keyword is ' ': expected what failed"),
    ("feedback", {"post_url": OTTER, "verdict": "mixed"}, "keyword is None: expected what failed"),
    ("feedback", {**FAILURE, "verdict": "success"}, "keyword is 'tint': expected null where"),
    (
        "feedback",
        {"post_url": OTTER, "verdict": "success", "acceptable_keywords": ["tint"]},
        "acceptable_keywords is ['tint']: expected none where",
    ),
    ("feedback", {**FAILURE, "acceptable_keywords": ["hue"]}, "expected keyword 'tint' among them"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "acceptable": []}]}, "is []: expected"),
    (
        "tasks",
        {"root_url": OTTER, "prompt": "x", "kind": "task", "task": "edit", "acceptable": []},
        "acceptable is []: expected task 'edit'",
    ),
    ("tasks", {"root_url": OTTER, "prompt": "x", "kind": "task", "task": "draw"}, "'draw'"),
]


@pytest.mark.parametrize(("name", "row", "said"), BAD, ids=[said for *_, said in BAD])
def test_a_bad_line_is_one_line(tmp_path: Path, name: str, row: Any, said: str) -> None:
    """File, number, value and what was expected, on one line that is not too long."""
    good = {"relevance": GOLD["relevance"][1]}.get(name)
    rows = [good, row] if good else [row]
    with pytest.raises(GoldError) as caught:
        read_gold(one_file(tmp_path, name, *rows))
    told = str(caught.value)

    assert told.startswith(f"{tmp_path / name}.jsonl:{len(rows)}: ")
    assert said in told
    assert "\n" not in told
    assert len(told) < 700


def test_a_line_that_is_there_twice(tmp_path: Path) -> None:
    """Two lines about one post, however it is spelled, are named both."""
    other = {"url": "https://x.com/ana_ink/status/99", "score": 4}
    with pytest.raises(GoldError, match=r"relevance\.jsonl:2: .* stands in .*relevance\.jsonl:1"):
        read_gold(one_file(tmp_path, "relevance", {"url": URL, "score": 5}, other))


def test_folders_that_are_none(tmp_path: Path) -> None:
    """No folder, none of the files, and a name that is nearly one of them."""
    with pytest.raises(GoldError, match="no folder"):
        read_gold(tmp_path / "none")
    with pytest.raises(GoldError, match=r"holds no gold: expected at least one of relevance\.j"):
        read_gold(tmp_path)
    one_file(tmp_path, "relevence", {})
    with pytest.raises(GoldError, match=r"did you mean 'relevance\.jsonl'"):
        read_gold(tmp_path)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe is not waited for, and bytes that are no text are named."""
    os.mkfifo(tmp_path / "tasks.jsonl")
    with pytest.raises(GoldError, match="not a regular file"):
        read_gold(tmp_path)
    (tmp_path / "tasks.jsonl").unlink()
    (tmp_path / "tasks.jsonl").write_bytes(b"ab\xff")
    with pytest.raises(GoldError, match=r"tasks\.jsonl: byte 2 is not UTF-8"):
        read_gold(tmp_path)
