"""Gold folders: their format, the posts they are about, and gold that does not fit."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import GoldPosts, check_agreement, read_gold_posts
from echo_hf.config.sections import PostsSource
from echo_hf.errors import GoldError
from echo_hf.images.store import ImageStore
from tests.builder.gold.gold_for_tests import (
    BUNDLED,
    GOLD,
    KITE,
    LUNCH,
    OTTER,
    REPLY,
    Row,
    write_gold,
    write_lines,
)
from tests.errors_for_tests import said_by

URL = "https://twitter.com/ana_ink/status/99?s=20"


def one_file(folder: Path, name: str, *rows: Any) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


def test_what_may_be_left_out(tmp_path: Path) -> None:
    for name, rows in GOLD.items():
        write_lines(tmp_path / f"{name}.jsonl", rows)
    gold = read_gold(tmp_path)
    assert [(one.half, one.score, one.acceptable) for one in gold["relevance"]] == [
        ("held_out", 5, ()), ("tune", 5, (4, 5)), ("held_out", 1, ()),
    ]  # fmt: skip
    assert gold["relevance"][0].place == f"{tmp_path / 'relevance.jsonl'}:1"
    assert [one.root_url for one in gold.select_half("tune")["extract"]] == [KITE]
    assert [one.root_url for one in gold.select_half("held_out")["extract"]] == [OTTER]
    assert gold.select_half("all") == gold
    assert "screenshots" not in gold


def test_addresses_are_canonical_and_named_once(tmp_path: Path) -> None:
    rows = ["\ufeff", {"url": URL, "score": 3}, "  "]
    gold = read_gold(one_file(tmp_path, "relevance", *rows))
    assert [one.url for one in gold["relevance"]] == ["https://x.com/i/status/99"]
    other = {"url": "https://x.com/ana_ink/status/99", "score": 4}
    with pytest.raises(GoldError, match=r"relevance\.jsonl:4: .* stands in .*relevance\.jsonl:2"):
        read_gold(one_file(tmp_path, "relevance", *rows, other))


SHOT = {"post_url": OTTER, "index": 0, "layout": "collage", "prompt": "", "inputs": []}
HARMLESS = {"root_url": OTTER, "prompt": "x", "flagged": False}
SAMPLE = {"prompt": "a fox", "quality": "Benchmark", "post_urls": [OTTER]}
FAILURE = {"post_url": OTTER, "verdict": "failure", "keyword": "tint"}


def samples(*rows: Row) -> Row:
    return {"root_url": OTTER, "samples": list(rows)}


BAD: list[tuple[str, Any, str]] = [
    ("relevance", {"url": OTTER, "scroe": 5}, "unknown key 'scroe'; did you mean 'score'?"),
    ("relevance", {"url": OTTER, "score": "5"}, "score is '5': input should be a valid integer"),
    ("relevance", {"url": "otter", "score": 5}, "url is 'otter': expected the address of a post"),
    ("relevance", "{'url': 1}", "is not JSON"),
    ("relevance", "[" * 100_000, "is not JSON"),
    ("extract", samples({**SAMPLE, "prompt": " "}), "samples.0.prompt is ' '"),
    ("extract", samples({**SAMPLE, "post_urls": []}), "at least 1 item"),
    ("extract", samples(SAMPLE, SAMPLE), "with different prompts"),
    ("safety", {**HARMLESS, "categories": ["S1"]}, "expected none, as flagged is False"),
    ("safety", {**HARMLESS, "flagged": True}, "expected codes of its hazards, as"),
    ("screenshots", {**SHOT, "outputs": [[9, 0, 9, 9]]}, "expected left, top, right, bottom"),
    ("feedback", {**FAILURE, "keyword": None}, "keyword: expected what failed"),
    ("feedback", {**FAILURE, "verdict": "success"}, "keyword: expected none, as verdict is"),
]


@pytest.mark.parametrize(("name", "row", "said"), BAD, ids=[said for *_, said in BAD])
def test_a_bad_line_is_one_line(tmp_path: Path, name: str, row: Any, said: str) -> None:
    told = said_by(GoldError, read_gold, one_file(tmp_path, name, "", row))
    assert told.startswith(f"{tmp_path / name}.jsonl:2: ")
    assert said in told
    assert len(told) < 700


def test_folders_and_files_that_are_none(tmp_path: Path) -> None:
    assert "no folder" in said_by(GoldError, read_gold, tmp_path / "none")
    assert "holds no gold: expected at least one of rel" in said_by(GoldError, read_gold, tmp_path)
    os.mkfifo(tmp_path / "tasks.jsonl")
    assert "not a regular file" in said_by(GoldError, read_gold, tmp_path)
    (tmp_path / "tasks.jsonl").unlink()
    (tmp_path / "tasks.jsonl").write_bytes(b"ab\xff")
    assert "tasks.jsonl: byte 2 is not UTF-8" in said_by(GoldError, read_gold, tmp_path)
    one_file(tmp_path, "relevence", {})
    assert "did you mean 'relevance'" in said_by(GoldError, read_gold, tmp_path)


SCREENSHOTS = Path(__file__).resolve().parents[2] / "data" / "screenshots"
NONE = "https://example.org/none"
COLLAGE: Row = {
    "post_url": KITE, "index": 1, "layout": "collage", "prompt": "",
    "inputs": [], "outputs": [[0, 0, 4, 4]], "half": "tune",
}  # fmt: skip


def check(folder: Path, posts: Path | None = None) -> GoldPosts:
    gold = read_gold(folder)
    entry = PostsSource(source="jsonl", path=posts or folder / "posts.jsonl")
    named = {url for line in gold.iterate_lines() for url in line.addresses}
    read = read_gold_posts([entry], named, ImageStore(folder.parent / "store"))
    check_agreement(gold, read, "posts.jsonl")
    return read


@pytest.mark.parametrize("folder", [SCREENSHOTS / "tune", SCREENSHOTS / "unseen", BUNDLED])
def test_the_projects_own_gold_fits(tmp_path: Path, folder: Path) -> None:
    lines = folder / "gold" if folder == BUNDLED else folder
    (tmp_path / "gold").symlink_to(lines)
    check(tmp_path / "gold", folder / "posts.jsonl")


def test_screenshots_are_those_that_roles_mark(tmp_path: Path) -> None:
    marked = copy.deepcopy(GOLD)
    marked["roles"][1]["collage"] = {"post_url": KITE, "index": 1}
    marked["screenshots"] = [COLLAGE]
    posts = check(write_gold(tmp_path / "marked", marked))
    assert dict(posts.root_of) == {OTTER: OTTER, REPLY: OTTER, KITE: KITE, LUNCH: LUNCH}
    assert [len(posts.images[url]) for url in (OTTER, REPLY, KITE)] == [1, 0, 2]
    check(write_gold(tmp_path / "alone", {"screenshots": [COLLAGE]}))


# File, number of the line, where in it, what is written there, and how the message goes on.
SPOILT: list[tuple[str, int, str, Row, str]] = [
    ("relevance", 1, "", {"url": NONE}, f"{NONE!r} is not in the posts"),
    ("extract", 1, "", {"root_url": REPLY}, f"root_url {REPLY!r} answers another post"),
    ("extract", 1, "samples", {"post_urls": [OTTER, KITE]}, f"{KITE!r} belongs to the thread of"),
    ("extract", 1, "samples", {"feedback_optional": [REPLY]}, f"{REPLY!r} is given as feedback tw"),
    ("extract", 1, "samples", {"prompt": "an owl on the moon"}, "prompt 'an owl on the moon' stan"),
    ("roles", 2, "pictures", {"index": 2}, f"image 2 of {KITE!r}, which has 2"),
    ("roles", 2, "pictures", {"index": 1}, f"image 1 of {KITE!r} is 'output', and image 1"),
    ("roles", 1, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("tasks", 2, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("safety", 1, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("extract", 2, "", {"half": "held_out"}, "half is 'held_out', but 'tune' in"),
    ("screenshots", 1, "", {"index": 2}, f"image 2 of {KITE!r}, which has 2"),
    ("screenshots", 1, "", {}, f"image 1 of {KITE!r} is not a conversation"),
    ("feedback", 1, "", {"post_url": OTTER}, f"{OTTER!r} is feedback of no sample"),
]


@pytest.mark.parametrize(("name", "number", "part", "change", "said"), SPOILT)
def test_gold_that_does_not_fit(
    tmp_path: Path, name: str, number: int, part: str, change: Row, said: str
) -> None:
    gold = copy.deepcopy(GOLD | ({"screenshots": [COLLAGE]} if name == "screenshots" else {}))
    line = gold[name][number - 1]
    (line[part][0] if part else line).update(change)
    told = said_by(GoldError, check, write_gold(tmp_path, gold))
    assert told.startswith(f"{tmp_path / 'gold' / name}.jsonl:{number}: {said}")
    assert "expected" in told


def test_an_image_stands_in_one_line_with_one_role(tmp_path: Path) -> None:
    """Of one file that a post shows twice one line is enough, but not with two roles."""
    gold = copy.deepcopy(GOLD)
    sample = {"prompt": "Before and after", "quality": "Benchmark", "post_urls": [KITE]}
    gold["extract"][1]["samples"].append(sample)
    images = [gold["roles"][1]["pictures"].pop()]
    line = {"root_url": KITE, "prompt": sample["prompt"], "half": "tune", "pictures": images}
    gold["roles"].append(line)
    folder = write_gold(tmp_path / "one", gold)
    check(folder)
    (folder / "pictures" / "after.png").write_bytes((folder / "pictures/before.png").read_bytes())
    with pytest.raises(GoldError, match=r"jsonl:3: image 1 .* 'output', and image 0 .* 'input' in"):
        check(folder)


def test_missing_posts_are_counted(tmp_path: Path) -> None:
    lines = [{"url": f"{NONE}{number}", "score": 1} for number in range(3)]
    with pytest.raises(GoldError, match=r"none0' is not in the posts .*, nor are 2 others"):
        check(write_gold(tmp_path, {"relevance": lines}))


def test_a_missing_root_is_a_root_but_has_no_score(tmp_path: Path) -> None:
    folder = write_gold(tmp_path, {"relevance": [{"url": REPLY, "score": 5}]})
    posts = (folder / "posts.jsonl").read_text("utf-8").splitlines()
    (folder / "posts.jsonl").write_text("\n".join(posts[1:]), "utf-8")
    assert check(folder).root_of[REPLY] == OTTER
    write_lines(folder / "relevance.jsonl", [{"url": one, "score": 5} for one in (REPLY, OTTER)])
    with pytest.raises(GoldError, match=f"'{OTTER}' is not in the posts"):
        check(folder)


TEMPLATE, DESCRIBED = "A [PET] on a kite, watercolour", "An otter that rows a boat"
POSTS: list[Row] = [
    {
        "url": OTTER,
        "text": f"My  prompt:\n{TEMPLATE}",
        "pictures": [
            {"path": "pictures/otter.png", "alt_text": DESCRIBED},
            {"path": "pictures/before.png"},
        ],
    },
    {"url": f"{OTTER}2", "text": "(2/2) at the end of a long day", "parent_url": OTTER},
    {"url": KITE, "text": "a kite made of paper", "pictures": []},
]
OUTPUT, INPUT = ({"post_url": OTTER, "index": index} for index in (0, 1))
FILLED: Row = {"prompt": "A dog on a kite, watercolour", "blanks": {"PET": "dog"}, "output": OUTPUT}
ROLES = [{**OUTPUT, "role": "output"}, {**INPUT, "role": "input"}]


def one_sample(folder: Path, prompt: str, **values: Any) -> Callable[[], GoldPosts]:
    """A check of gold that says one prompt of a thread, and the roles of its images."""
    gold: dict[str, list[Row]] = {"extract": [samples({**SAMPLE, "prompt": prompt})]}
    if values:
        gold["roles"] = [{"root_url": OTTER, "prompt": prompt, "pictures": ROLES, **values}]
    write_lines(write_gold(folder, gold) / "posts.jsonl", POSTS)
    return lambda: check(folder / "gold")


@pytest.mark.parametrize(
    "prompt", [TEMPLATE, "prompt: A [PET]", DESCRIBED, f"{TEMPLATE} at the end of a long day"]
)
def test_prompts_are_copied_from_their_thread(tmp_path: Path, prompt: str) -> None:
    one_sample(tmp_path, prompt)()


@pytest.mark.parametrize("prompt", ["A [PET] on a bike", "a kite made of paper", "otters"])
def test_other_prompts_are_refused(tmp_path: Path, prompt: str) -> None:
    told = said_by(GoldError, one_sample(tmp_path, prompt))
    assert f"extract.jsonl:1: prompt {prompt!r} stands in" in told


@pytest.mark.parametrize(
    ("output", "images", "said"),
    [
        (OUTPUT, ROLES, None),
        (INPUT, ROLES, f"1 of {OTTER!r}, which is 'input'"),
        (OUTPUT, ROLES[1:], "which is without a role: expected one that pictures has"),
    ],
)
def test_what_is_filled_has_an_output(
    tmp_path: Path, output: Row, images: list[Row], said: str | None
) -> None:
    checked = one_sample(tmp_path, TEMPLATE, filled=[{**FILLED, "output": output}], pictures=images)
    if said is None:
        checked()
    else:
        assert said in said_by(GoldError, checked)


def url(name: str) -> str:
    return f"https://example.org/{name}"


def read(folder: Path, *rows: Row | str, named: str = "a") -> GoldPosts:
    one_file(folder, "posts", *rows)
    entry = PostsSource(source="jsonl", path=folder / "posts.jsonl")
    return read_gold_posts([entry], [url(named)], ImageStore(folder / "store"))


def test_whole_threads_and_no_others_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"url": url("b"), "parent_url": url("a")},
        {"url": url("c"), "parent_url": url("b")},
        {"url": url("d"), "parent_url": url("gone"), "quoted_url": url("b")},
        {"url": url("e"), "parent_url": url("a")},
        {"url": url("f")},
        named="b",
    )
    assert {row["url"] for row in found.posts} == {url("b"), url("c"), url("e")}
    # The root was never collected, and is known all the same.
    assert set(found.root_of.items()) == {(url(name), url("a")) for name in "abce"}
    assert url("a") not in found.images


def test_lines_that_cannot_be_read_are_told_and_a_circle_ends(tmp_path: Path) -> None:
    circle = [{"url": url(a), "parent_url": url(b)} for a, b in (("a", "b"), ("b", "a"))]
    found = read(tmp_path, '{"url": ', *circle)
    assert found.read.rejects["place"] == ["posts.jsonl:1"]
    assert found.read.stats.rejected == {"not_json": 1}
    assert len(set(found.root_of.values())) == 1
    assert set(found.root_of) == {url("a"), url("b")}


def test_what_is_not_there_keeps_its_position(tmp_path: Path) -> None:
    folder = tmp_path / "posts"
    folder.mkdir()
    Image.new("RGB", (4, 4), "red").save(folder / "red.png")
    Image.new("RGB", (4, 4), "blue").save(tmp_path / "blue.png")
    os.mkfifo(folder / "pipe.png")
    (folder / "broken.png").write_bytes(b"no picture")
    paths = ("none.png", "red.png", "broken.png", "../blue.png", "pipe.png", "red.png")
    images = [{"path": path} for path in paths]
    web = {"url": "https://example.org/web.png"}
    found = read(folder, {"url": url("a"), "pictures": [*images[:4], web, *images[4:]]})
    red = hashlib.sha256((folder / "red.png").read_bytes()).hexdigest()
    assert found.images[url("a")] == (None, red, None, None, None, None, red)


def test_of_two_records_the_fuller_one_counts(tmp_path: Path) -> None:
    for name in ("green", "red"):
        Image.new("RGB", (4, 4), name).save(tmp_path / f"{name}.png")
    green, red = ({"path": f"{name}.png"} for name in ("green", "red"))
    files = [(tmp_path / one["path"]).read_bytes() for one in (green, red)]
    for both in ([[red], [green, red]], [[green, red], [red]]):
        found = read(tmp_path, *({"url": url("a"), "pictures": one} for one in both))
        digests = tuple(hashlib.sha256(data).hexdigest() for data in files)
        assert found.images[url("a")] == digests
