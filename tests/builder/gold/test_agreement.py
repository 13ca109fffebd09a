"""Gold that does not fit its posts or itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import GoldPosts, check_agreement, read_posts, unknown_blanks
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

SCREENSHOTS = Path(__file__).resolve().parents[2] / "data" / "screenshots"
NONE = "https://example.org/none"
SHOT: Row = {
    "post_url": KITE, "index": 1, "layout": "collage", "prompt": "",
    "inputs": [], "outputs": [[0, 0, 4, 4]], "half": "tune",
}  # fmt: skip


def check(folder: Path, posts: Path | None = None) -> GoldPosts:
    """Checks a gold folder against a file of posts."""
    gold = read_gold(folder)
    entry = Posts(source="jsonl", path=posts or folder / "posts.jsonl")
    named = {url for line in gold.every() for url in line.addresses}
    read = read_posts([entry], named, ImageStore(folder.parent / "store"))
    check_agreement(gold, read, "posts.jsonl")
    return read


def test_gold_that_fits(tmp_path: Path) -> None:
    """What is right is let through, and all posts of its threads are read."""
    posts = check(write_gold(tmp_path, GOLD))

    assert dict(posts.root_of) == {OTTER: OTTER, REPLY: OTTER, KITE: KITE, LUNCH: LUNCH}
    assert [len(posts.images[url]) for url in (OTTER, REPLY, KITE)] == [1, 0, 2]


@pytest.mark.parametrize("folder", [SCREENSHOTS / "tune", SCREENSHOTS / "unseen", BUNDLED])
def test_the_projects_own_gold_agrees(tmp_path: Path, folder: Path) -> None:
    """The bundled gold and that of the screenshots pass every test that a user's has to."""
    lines = folder / "gold" if folder == BUNDLED else folder
    (tmp_path / "gold").symlink_to(lines)
    check(tmp_path / "gold", folder / "posts.jsonl")


def test_screenshots_are_those_that_roles_mark(tmp_path: Path) -> None:
    """A conversation or a collage; without roles any image may be one."""
    marked = copy.deepcopy(GOLD)
    marked["roles"][1]["collage"] = {"post_url": KITE, "index": 1}
    marked["screenshots"] = [SHOT]
    check(write_gold(tmp_path / "marked", marked))
    check(write_gold(tmp_path / "alone", {"screenshots": [SHOT]}))


# File, number of the line, where in it, what is written there, and how the message goes on.
SPOILT: list[tuple[str, int, str, Row, str]] = [
    ("relevance", 1, "", {"url": NONE}, f"{NONE!r} is not in the posts"),
    ("extract", 1, "", {"root_url": REPLY}, f"root_url {REPLY!r} answers another post"),
    ("extract", 1, "samples", {"post_urls": [OTTER, KITE]}, f"{KITE!r} belongs to the thread of"),
    ("extract", 1, "samples", {"feedback_optional": [REPLY]}, f"{REPLY!r} is given as feedback tw"),
    ("roles", 2, "pictures", {"index": 2}, f"image 2 of {KITE!r}, which has 2"),
    ("roles", 1, "pictures", {"post_url": KITE}, f"an image of {KITE!r}, which is not in"),
    ("roles", 2, "pictures", {"index": 1}, f"image 1 of {KITE!r} is 'output', but 'input'"),
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
    """The line is named, with what it says and what was expected."""
    gold = copy.deepcopy({**GOLD, **({"screenshots": [SHOT]} if name == "screenshots" else {})})
    line = gold[name][number - 1]
    (line[part][0] if part else line).update(change)
    with pytest.raises(GoldError) as caught:
        check(write_gold(tmp_path, gold))
    told = str(caught.value)

    assert told.startswith(f"{tmp_path / 'gold' / name}.jsonl:{number}: {said}")
    assert "expected" in told or "extract.jsonl has" in told


def two_prompts_of_a_post() -> dict[str, list[Row]]:
    """Gold with a second sample in the post of the first, which has a line of its own."""
    gold = copy.deepcopy(GOLD)
    sample = {"prompt": "Before and after", "quality": "Benchmark", "post_urls": [KITE]}
    gold["extract"][1]["samples"].append(sample)
    images = [gold["roles"][1]["pictures"].pop()]
    gold["roles"].append(
        {"root_url": KITE, "prompt": "Before and after", "half": "tune", "pictures": images}
    )
    return gold


def test_an_image_stands_in_one_line(tmp_path: Path) -> None:
    """Two samples of a post share its images out; what both name has no role of its own."""
    gold = two_prompts_of_a_post()
    check(write_gold(tmp_path / "one", gold))
    gold["roles"][2]["pictures"].append({"post_url": KITE, "index": 0, "role": "neither"})
    with pytest.raises(GoldError) as caught:
        check(write_gold(tmp_path / "two", gold))

    roles = tmp_path / "two" / "gold" / "roles.jsonl"
    assert str(caught.value) == (
        f"{roles}:3: image 0 of {KITE!r} stands in {roles}:2 as well: "
        "expected each image in one line"
    )


def test_a_file_that_a_post_shows_twice_has_one_role(tmp_path: Path) -> None:
    """It is looked at once, in whichever line it stands."""
    folder = write_gold(tmp_path, two_prompts_of_a_post())
    images = folder / "pictures"
    (images / "after.png").write_bytes((images / "before.png").read_bytes())
    with pytest.raises(GoldError, match=r"jsonl:3: image 1 .* is 'output', but 'input' in .*:2"):
        check(folder)


def test_missing_posts_are_counted(tmp_path: Path) -> None:
    """The first of them is named."""
    lines = [{"url": f"{NONE}{number}", "score": 1} for number in range(3)]
    with pytest.raises(GoldError, match=r"none0' is not in the posts .*, nor are 2 others"):
        check(write_gold(tmp_path, {"relevance": lines}))


def test_a_missing_root_is_a_root_but_has_no_score(tmp_path: Path) -> None:
    """A post that is only known by its address can head a thread; nobody can have scored it."""
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
FILLED: Row = {
    "prompt": "A dog on a kite, watercolour",
    "blanks": {"PET": "dog"},
    "output": OUTPUT,
}
ROLES = [{**OUTPUT, "role": "output"}, {**INPUT, "role": "input"}]


def one_sample(folder: Path, prompt: str, posts: list[Row] = POSTS, **values: Any) -> None:
    """Checks a single sample of the first thread, and its images if they are given."""
    sample = {"prompt": prompt, "quality": "Benchmark", "post_urls": [OTTER]}
    gold: dict[str, list[Row]] = {"extract": [{"root_url": OTTER, "samples": [sample]}]}
    if values:
        gold["roles"] = [{"root_url": OTTER, "prompt": prompt, "pictures": ROLES, **values}]
    write_lines(write_gold(folder, gold) / "posts.jsonl", posts)
    check(folder / "gold")


@pytest.mark.parametrize(
    "prompt",
    [TEMPLATE, "prompt: A [PET]", DESCRIBED, f"{TEMPLATE} at the end of a long day"],
)
def test_prompts_are_copied(tmp_path: Path, prompt: str) -> None:
    """From a post, across a line's end, from a description, or from pieces of several posts."""
    one_sample(tmp_path, prompt)


@pytest.mark.parametrize("prompt", ["A [PET] on a bike", "a kite made of paper", "otters"])
def test_prompts_that_nobody_wrote_there(tmp_path: Path, prompt: str) -> None:
    """One that was retyped, one of another thread: its line is named."""
    with pytest.raises(GoldError) as caught:
        one_sample(tmp_path, prompt)
    told = str(caught.value)

    assert told.startswith(f"{tmp_path / 'gold' / 'extract.jsonl'}:1: prompt {prompt!r} stands in")
    assert "expected words copied from there" in told
    assert "\n" not in told


def test_a_template_that_is_filled(tmp_path: Path) -> None:
    """With the names of its blanks or without any; one file shown twice has one role for both."""
    one_sample(tmp_path / "named", TEMPLATE, filled=[FILLED])
    one_sample(tmp_path / "bare", TEMPLATE, filled=[{**FILLED, "blanks": {}}])
    twice = [{**POSTS[0], "pictures": [POSTS[0]["pictures"][0]] * 2}]
    other = [{**FILLED, "output": INPUT}]
    one_sample(tmp_path / "twice", TEMPLATE, twice, pictures=ROLES[:1], filled=other)


@pytest.mark.parametrize(
    ("prompt", "change", "images", "said"),
    [
        ("prompt: A [PET]", {"blanks": {"COLOUR": "red"}}, ROLES, "blank 'COLOUR', which prompt"),
        (DESCRIBED, {}, ROLES, f"{DESCRIBED!r} has no blank: expected a"),
        (DESCRIBED, {"blanks": {}}, ROLES, "has no blank: expected a template, or no"),
        (TEMPLATE, {"output": INPUT}, ROLES, f"1 of {OTTER!r}, which is 'input'"),
        (TEMPLATE, {}, ROLES[1:], "which is without a role: expected one that pictures has"),
    ],
)
def test_completions_that_cannot_be(
    tmp_path: Path, prompt: str, change: Row, images: list[Row], said: str
) -> None:
    """Of a blank that is not there, of no template, or shown by no output."""
    with pytest.raises(GoldError) as caught:
        one_sample(tmp_path, prompt, filled=[{**FILLED, **change}], pictures=images)
    told = str(caught.value)

    assert told.startswith(f"{tmp_path / 'gold' / 'roles.jsonl'}:1: filled has ")
    assert said in told
    assert "expected" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("prompt", "names", "strange"),
    [
        ("a [PET] in {city name}", ["pet", "City Name"], []),
        ("a [PET] in {city name}", ["[PET]", "city"], ["city"]),
        ("a (favourite beast) asleep", ["favourite beast"], []),
        ('a {argument name="thing" default="an umbrella"}', ["thing"], []),
        ("a stamp of YOUR CITY", ["YOUR CITY", "CITY"], ["CITY"]),
        ("a ____ and a ____", ["first", "second"], []),
        ("a ____ and a ____", ["first", "second", "third"], ["third"]),
        ("一盏【水果】形状的台灯", ["水果", "颜色"], ["颜色"]),
        ("a red fox", ["fox"], ["fox"]),
    ],
)
def test_names_of_blanks(prompt: str, names: list[str], strange: list[str]) -> None:
    """Marks and case do not count; one without a name has any; a part of a name is none."""
    assert unknown_blanks(prompt, names) == strange
