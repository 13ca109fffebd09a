"""Prompts that nobody wrote, and completions of what is no template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.gold.consistency import addresses_of, check_agreement, unknown_blanks
from echo_hf.builder.gold.folder import read_gold, read_posts
from echo_hf.config.sections import Posts
from echo_hf.errors import GoldError
from echo_hf.images.store import PictureStore
from tests.builder.gold.gold_for_tests import BUNDLED, KITE, OTTER, Row, write_gold, write_lines

SCREENSHOTS = Path(__file__).resolve().parents[2] / "data" / "screenshots"
TEMPLATE = "A [PET] on a kite, watercolour"
POSTS: list[Row] = [
    {
        "url": OTTER,
        "text": f"My  prompt:\n{TEMPLATE}",
        "pictures": [
            {"path": "pictures/otter.png", "alt_text": "An otter that rows a boat"},
            {"path": "pictures/before.png"},
        ],
    },
    {"url": f"{OTTER}2", "text": "(2/2) at the end of a long day", "parent_url": OTTER},
    {"url": KITE, "text": "a kite made of paper", "pictures": []},
]
FILLED: Row = {
    "prompt": "A dog on a kite, watercolour",
    "blanks": {"PET": "dog"},
    "output": {"post_url": OTTER, "index": 0},
}
ROLES = [
    {"post_url": OTTER, "index": 0, "role": "output"},
    {"post_url": OTTER, "index": 1, "role": "input"},
]


def check(folder: Path, posts: Path) -> None:
    """Checks a gold folder against a file of posts."""
    lines = read_gold(folder)
    entry = [Posts(source="jsonl", path=posts)]
    store = PictureStore(folder.parent / "store")
    check_agreement(lines, read_posts(entry, addresses_of(lines), store), "posts.jsonl")


def one_sample(folder: Path, prompt: str, **values: Any) -> None:
    """Checks a single sample of the first thread, and its pictures if they are given."""
    sample = {"prompt": prompt, "quality": "Benchmark", "post_urls": [OTTER]}
    gold: dict[str, list[Row]] = {"extract": [{"root_url": OTTER, "samples": [sample]}]}
    if values:
        gold["roles"] = [{"root_url": OTTER, "prompt": prompt, "pictures": ROLES, **values}]
    write_gold(folder, gold)
    write_lines(folder / "gold" / "posts.jsonl", POSTS)
    check(folder / "gold", folder / "gold" / "posts.jsonl")


@pytest.mark.parametrize(
    "prompt",
    [
        TEMPLATE,
        "prompt: A [PET]",
        "An otter that rows a boat",
        f"{TEMPLATE} at the end of a long day",
    ],
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
    """With the names of its blanks, or without any."""
    one_sample(tmp_path / "named", TEMPLATE, filled=[FILLED])
    one_sample(tmp_path / "bare", TEMPLATE, filled=[{**FILLED, "blanks": {}}])


@pytest.mark.parametrize(
    ("prompt", "change", "said"),
    [
        ("prompt: A [PET]", {"blanks": {"COLOUR": "red"}}, "blank 'COLOUR', which prompt 'prompt:"),
        ("An otter that rows a boat", {}, "'An otter that rows a boat' has no blank: expected a"),
        ("An otter that rows a boat", {"blanks": {}}, "has no blank: expected a template, or no"),
        (
            TEMPLATE,
            {"output": {"post_url": OTTER, "index": 1}},
            f"1 of {OTTER!r}, which is 'input'",
        ),
    ],
)
def test_completions_that_cannot_be(tmp_path: Path, prompt: str, change: Row, said: str) -> None:
    """Of a blank that is not there, of no template, or shown by no output."""
    with pytest.raises(GoldError) as caught:
        one_sample(tmp_path, prompt, filled=[{**FILLED, **change}])
    told = str(caught.value)

    assert told.startswith(f"{tmp_path / 'gold' / 'roles.jsonl'}:1: filled has ")
    assert said in told
    assert "expected" in told
    assert "\n" not in told


def test_an_output_without_a_role(tmp_path: Path) -> None:
    """A picture that no line gives a role is no output."""
    with pytest.raises(GoldError, match="which is without a role: expected one that pictures has"):
        one_sample(tmp_path, TEMPLATE, pictures=ROLES[1:], filled=[FILLED])


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


@pytest.mark.parametrize("folder", [SCREENSHOTS / "tune", SCREENSHOTS / "unseen", None])
def test_the_projects_own_gold_agrees(tmp_path: Path, folder: Path | None) -> None:
    """The bundled gold and that of the screenshots pass every test that a user's has to."""
    gold = folder or BUNDLED / "gold"
    posts = (folder or BUNDLED) / "posts.jsonl"
    lines = read_gold(gold)
    entry = [Posts(source="jsonl", path=posts)]
    read = read_posts(entry, addresses_of(lines), PictureStore(tmp_path))
    check_agreement(lines, read, "posts.jsonl")


def test_a_file_shown_twice_has_one_role_for_both(tmp_path: Path) -> None:
    """A completion may name the other place of a file that its post shows twice."""
    sample = {"prompt": TEMPLATE, "quality": "Benchmark", "post_urls": [OTTER]}
    other = {**FILLED, "output": {"post_url": OTTER, "index": 1}}
    roles = {"root_url": OTTER, "prompt": TEMPLATE, "pictures": ROLES[:1], "filled": [other]}
    extract = {"root_url": OTTER, "samples": [sample]}
    folder = write_gold(tmp_path, {"extract": [extract], "roles": [roles]})
    twice = [{**POSTS[0], "pictures": [POSTS[0]["pictures"][0]] * 2}]
    write_lines(folder / "posts.jsonl", twice)
    check(folder, folder / "posts.jsonl")
