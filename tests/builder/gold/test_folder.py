"""Gold folders: their format, the posts they are about, and gold that does not fit."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import GoldPosts, check_agreement, read_posts
from echo_hf.config.sections import Posts
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
    assert [one.root_url for one in gold.of("tune")["extract"]] == [KITE]
    assert [one.root_url for one in gold.of("held_out")["extract"]] == [OTTER]
    assert gold.of("all") == gold
    assert "screenshots" not in gold


def test_addresses_are_canonical_and_named_once(tmp_path: Path) -> None:
    rows = ["\ufeff", {"url": URL, "score": 3}, "  "]
    gold = read_gold(one_file(tmp_path, "relevance", *rows))
    assert [one.url for one in gold["relevance"]] == ["https://x.com/i/status/99"]
    other = {"url": "https://x.com/ana_ink/status/99", "score": 4}
    with pytest.raises(GoldError, match=r"relevance\.jsonl:4: .* stands in .*relevance\.jsonl:2"):
        read_gold(one_file(tmp_path, "relevance", *rows, other))


SHOT: dict[str, Any] = {
    "post_url": OTTER, "index": 0, "layout": "collage", "prompt": "", "inputs": [], "outputs": [],
}  # fmt: skip
HARMLESS = {"root_url": OTTER, "prompt": "x", "flagged": False}
SAMPLE = {"prompt": "a fox", "quality": "Benchmark", "post_urls": [OTTER]}
FAILURE = {"post_url": OTTER, "verdict": "failure", "keyword": "tint"}
BAD: list[tuple[str, Any, str]] = [
    ("relevance", {"url": OTTER, "scroe": 5}, "unknown key 'scroe'; did you mean 'score'?"),
    ("relevance", {"url": OTTER, "score": "5"}, "score is '5': input should be a valid integer"),
    ("relevance", {"url": "otter", "score": 5}, "url is 'otter': expected the address of a post"),
    ("relevance", {"url": OTTER, "score": 5, "acceptable": [3]}, "expected score 5 among them"),
    ("relevance", f'{{"url": "{OTTER}", "url": "{KITE}"}}', "key 'url' is given twice: keep one"),
    ("relevance", [1], "expected a mapping"),
    ("relevance", "{'url': 1}", "is not JSON"),
    ("relevance", "[" * 100_000, "is not JSON"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "qualty": 1}]}, "samples.0 'qualty'; d"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "prompt": " "}]}, "some words"),
    ("extract", {"root_url": OTTER, "samples": [{**SAMPLE, "post_urls": []}]}, "at least 1 item"),
    ("extract", {"root_url": OTTER, "samples": [SAMPLE, SAMPLE]}, "with different prompts"),
    (
        "roles",
        {"root_url": OTTER, "prompt": "x", "pictures": [{"post_url": OTTER, "index": -1}]},
        "pictures.0.index is -1",
    ),
    ("safety", {**HARMLESS, "categories": ["S1"]}, "expected none, as flagged is False"),
    ("safety", {**HARMLESS, "flagged": True}, "expected codes of its hazards, as"),
    ("screenshots", {**SHOT, "outputs": [[0, 0, 5.5, 9]]}, "outputs.0.2 is 5.5"),
    ("screenshots", {**SHOT, "outputs": [[9, 0, 9, 9]]}, "expected left, top, right, bottom"),
    ("feedback", {"post_url": OTTER, "verdict": "none"}, "verdict is 'none': input should be 'suc"),
    ("feedback", {**FAILURE, "acceptable": ["mixed"]}, "expected verdict 'failure' among them"),
    ("feedback", {**FAILURE, "keyword": None}, "keyword is None: expected what failed"),
    ("feedback", {**FAILURE, "verdict": "success"}, "expected none where nothing failed"),
    ("feedback", {**FAILURE, "acceptable_keywords": ["hue"]}, "expected keyword 'tint' among them"),
]


@pytest.mark.parametrize(("name", "row", "said"), BAD, ids=[said for *_, said in BAD])
def test_a_bad_line_is_one_line(tmp_path: Path, name: str, row: Any, said: str) -> None:
    good = {"relevance": GOLD["relevance"][1]}.get(name)
    rows = [good, row] if good else [row]
    with pytest.raises(GoldError) as caught:
        read_gold(one_file(tmp_path, name, *rows))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / name}.jsonl:{len(rows)}: ")
    assert said in told
    assert "\n" not in told
    assert len(told) < 700


def test_folders_and_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(GoldError, match="no folder"):
        read_gold(tmp_path / "none")
    with pytest.raises(GoldError, match=r"holds no gold: expected at least one of relevance\.j"):
        read_gold(tmp_path)
    os.mkfifo(tmp_path / "tasks.jsonl")
    with pytest.raises(GoldError, match="not a regular file"):
        read_gold(tmp_path)
    (tmp_path / "tasks.jsonl").unlink()
    (tmp_path / "tasks.jsonl").write_bytes(b"ab\xff")
    with pytest.raises(GoldError, match=r"tasks\.jsonl: byte 2 is not UTF-8"):
        read_gold(tmp_path)
    one_file(tmp_path, "relevence", {})
    with pytest.raises(GoldError, match=r"did you mean 'relevance\.jsonl'"):
        read_gold(tmp_path)


SCREENSHOTS = Path(__file__).resolve().parents[2] / "data" / "screenshots"
NONE = "https://example.org/none"
SHOT_AGREEMENT: Row = {
    "post_url": KITE, "index": 1, "layout": "collage", "prompt": "",
    "inputs": [], "outputs": [[0, 0, 4, 4]], "half": "tune",
}  # fmt: skip


def check(folder: Path, posts: Path | None = None) -> GoldPosts:
    gold = read_gold(folder)
    entry = Posts(source="jsonl", path=posts or folder / "posts.jsonl")
    named = {url for line in gold.every() for url in line.addresses}
    read = read_posts([entry], named, ImageStore(folder.parent / "store"))
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
    marked["screenshots"] = [SHOT_AGREEMENT]
    posts = check(write_gold(tmp_path / "marked", marked))
    assert dict(posts.root_of) == {OTTER: OTTER, REPLY: OTTER, KITE: KITE, LUNCH: LUNCH}
    assert [len(posts.images[url]) for url in (OTTER, REPLY, KITE)] == [1, 0, 2]
    check(write_gold(tmp_path / "alone", {"screenshots": [SHOT_AGREEMENT]}))


# File, number of the line, where in it, what is written there, and how the message goes on.
SPOILT: list[tuple[str, int, str, Row, str]] = [
    ("relevance", 1, "", {"url": NONE}, f"{NONE!r} is not in the posts"),
    ("extract", 1, "", {"root_url": REPLY}, f"root_url {REPLY!r} answers another post"),
    ("extract", 1, "samples", {"post_urls": [OTTER, KITE]}, f"{KITE!r} belongs to the thread of"),
    ("extract", 1, "samples", {"feedback_optional": [REPLY]}, f"{REPLY!r} is given as feedback tw"),
    ("roles", 2, "pictures", {"index": 2}, f"image 2 of {KITE!r}, which has 2"),
    ("roles", 1, "pictures", {"post_url": KITE}, f"{KITE!r} belongs to the thread of"),
    ("roles", 2, "pictures", {"index": 1}, f"image 1 of {KITE!r} is 'output', and image 1"),
    ("roles", 1, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("tasks", 2, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("safety", 1, "", {"prompt": "another"}, "prompt 'another' is of no sample of that thread"),
    ("extract", 2, "", {"half": "held_out"}, "half is 'held_out', but 'tune' in"),
    ("screenshots", 1, "", {"index": 2}, f"image 2 of {KITE!r}, which has 2"),
    ("screenshots", 1, "", {}, f"image 1 of {KITE!r} is not a conversation"),
    ("screenshots", 1, "", {"post_url": NONE}, f"{NONE!r} is not in the posts"),
    ("feedback", 1, "", {"post_url": OTTER}, f"{OTTER!r} is feedback of no sample"),
]


@pytest.mark.parametrize(("name", "number", "part", "change", "said"), SPOILT)
def test_gold_that_does_not_fit(
    tmp_path: Path, name: str, number: int, part: str, change: Row, said: str
) -> None:
    gold = copy.deepcopy(
        {**GOLD, **({"screenshots": [SHOT_AGREEMENT]} if name == "screenshots" else {})}
    )
    line = gold[name][number - 1]
    (line[part][0] if part else line).update(change)
    with pytest.raises(GoldError) as caught:
        check(write_gold(tmp_path, gold))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'gold' / name}.jsonl:{number}: {said}")
    assert "expected" in told


def test_an_image_stands_in_one_line_with_one_role(tmp_path: Path) -> None:
    gold = copy.deepcopy(GOLD)
    prompt = "Before and after"
    gold["extract"][1]["samples"].append(
        {"prompt": prompt, "quality": "Benchmark", "post_urls": [KITE]}
    )
    images = [gold["roles"][1]["pictures"].pop()]
    gold["roles"].append({"root_url": KITE, "prompt": prompt, "half": "tune", "pictures": images})
    folder = write_gold(tmp_path / "one", gold)
    check(folder)
    (folder / "pictures" / "after.png").write_bytes((folder / "pictures/before.png").read_bytes())
    with pytest.raises(GoldError, match=r"jsonl:3: image 1 .* 'output', and image 0 .* 'input' in"):
        check(folder)
    images.append({"post_url": KITE, "index": 0, "role": "neither"})
    with pytest.raises(GoldError) as caught:
        check(write_gold(tmp_path / "two", gold))
    roles = tmp_path / "two" / "gold" / "roles.jsonl"
    assert str(caught.value) == (
        f"{roles}:3: image 0 of {KITE!r} is 'neither', and image 0 of it is 'input' in {roles}:2: "
        "expected each image in one line, with one role"
    )


def test_missing_posts_are_counted(tmp_path: Path) -> None:
    lines = [{"url": f"{NONE}{number}", "score": 1} for number in range(3)]
    with pytest.raises(GoldError, match=r"none0' is not in the posts .*, nor are 2 others"):
        check(write_gold(tmp_path, {"relevance": lines}))


def test_a_missing_root_is_a_root_but_has_no_score(tmp_path: Path) -> None:
    folder = write_gold(tmp_path, {"relevance": [{"url": REPLY, "score": 5}]})
    posts = (folder / "posts.jsonl").read_text("utf-8").splitlines()
    (folder / "posts.jsonl").write_text("\n".join(posts[1:]), "utf-8")
    assert check(folder).root_of[REPLY] == OTTER
    write_lines(
        folder / "relevance.jsonl", [{"url": REPLY, "score": 5}, {"url": OTTER, "score": 5}]
    )
    with pytest.raises(GoldError, match=f"'{OTTER}' is not in the posts"):
        check(folder)


TEMPLATE = "A [PET] on a kite, watercolour"
DESCRIBED = "An otter that rows a boat"
LONG = f"{TEMPLATE} at the end of a long day"
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


def one_sample(folder: Path, prompt: str, posts: list[Row] = POSTS, **values: Any) -> None:
    sample = {"prompt": prompt, "quality": "Benchmark", "post_urls": [OTTER]}
    gold: dict[str, list[Row]] = {"extract": [{"root_url": OTTER, "samples": [sample]}]}
    if values:
        gold["roles"] = [{"root_url": OTTER, "prompt": prompt, "pictures": ROLES, **values}]
    write_lines(write_gold(folder, gold) / "posts.jsonl", posts)
    check(folder / "gold")


def refused(folder: Path, file: str, *given: Any, **values: Any) -> str:
    with pytest.raises(GoldError) as caught:
        one_sample(folder, *given, **values)
    place, _, told = str(caught.value).partition(f"{folder / 'gold' / file}.jsonl:1: ")
    assert place == ""
    assert "expected" in told
    assert "\n" not in told
    return told


@pytest.mark.parametrize("prompt", ["A [PET] on a bike", "a kite made of paper", "otters"])
def test_prompts_are_copied_from_their_thread(tmp_path: Path, prompt: str) -> None:
    for number, copied in enumerate((TEMPLATE, "prompt: A [PET]", DESCRIBED, LONG)):
        one_sample(tmp_path / str(number), copied)
    assert refused(tmp_path, "extract", prompt).startswith(f"prompt {prompt!r} stands in")


def test_a_template_that_is_filled(tmp_path: Path) -> None:
    one_sample(tmp_path / "named", TEMPLATE, filled=[FILLED])
    one_sample(tmp_path / "bare", TEMPLATE, filled=[{**FILLED, "blanks": {}}])
    twice = [{**POSTS[0], "pictures": [POSTS[0]["pictures"][0]] * 2}]
    other = [{**FILLED, "output": INPUT}]
    one_sample(tmp_path / "twice", TEMPLATE, twice, pictures=ROLES[:1], filled=other)


@pytest.mark.parametrize(
    ("prompt", "change", "images", "said"),
    [
        (DESCRIBED, {}, ROLES, f"{DESCRIBED!r} has no blank 'PET': expected a tem"),
        (DESCRIBED, {"blanks": {}}, ROLES, "has no blank: expected a template and"),
        (TEMPLATE, {"output": INPUT}, ROLES, f"1 of {OTTER!r}, which is 'input'"),
        (TEMPLATE, {}, ROLES[1:], "which is without a role: expected one that pictures has"),
    ],
)
def test_completions_that_cannot_be(
    tmp_path: Path, prompt: str, change: Row, images: list[Row], said: str
) -> None:
    told = refused(tmp_path, "roles", prompt, filled=[{**FILLED, **change}], pictures=images)
    assert told.startswith("filled has ")
    assert said in told


@pytest.mark.parametrize(
    ("prompt", "names", "strange"),
    [
        ("a [PET] in {city name}", ["pet", "City Name"], None),
        ("a [PET] in {city name}", ["[PET]", "city"], "city"),
        ("a stamp of YOUR CITY", ["YOUR CITY"], None),
        ("a stamp of YOUR CITY", ["YOUR CITY", "CITY"], "CITY"),
        ("a ____ and a ____", ["first", "second"], None),
        ("a ____ and a ____", ["first", "second", "third"], "third"),
        ("a red fox", ["fox"], "fox"),
    ],
)
def test_blanks_are_named_as_the_template_names_them(
    tmp_path: Path, prompt: str, names: list[str], strange: str | None
) -> None:
    posts = [{**POSTS[0], "text": prompt}]
    filled = [{**FILLED, "blanks": dict.fromkeys(names, "x")}]
    refused = pytest.raises(GoldError, match=f"has no blank {strange!r}: expected")
    with refused if strange else nullcontext():
        one_sample(tmp_path, prompt, posts, filled=filled)


def url(name: str) -> str:
    return f"https://example.org/{name}"


def read(folder: Path, *rows: dict[str, Any], named: str = "a") -> GoldPosts:
    if rows:
        write_lines(folder / "posts.jsonl", rows)
    entry = Posts(source="jsonl", path=folder / "posts.jsonl")
    return read_posts([entry], [url(named)], ImageStore(folder / "store"))


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
    lines = [{"url": url(a), "parent_url": url(b)} for a, b in (("a", "b"), ("b", "a"))]
    text = "\n".join(['{"url": ', *map(json.dumps, lines)])
    (tmp_path / "posts.jsonl").write_text(text, "utf-8")
    found = read(tmp_path)
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
    digests = [
        hashlib.sha256((tmp_path / one["path"]).read_bytes()).hexdigest() for one in (green, red)
    ]
    for both in ([[red], [green, red]], [[green, red], [red]]):
        found = read(tmp_path, *({"url": url("a"), "pictures": one} for one in both))
        assert found.images[url("a")] == tuple(digests)
