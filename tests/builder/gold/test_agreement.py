"""Gold that does not fit its posts or itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from echo_hf.builder.gold.consistency import addresses_of, check_agreement
from echo_hf.builder.gold.folder import Gold, GoldPosts, read_gold, read_posts
from echo_hf.config.sections import Posts
from echo_hf.errors import GoldError
from echo_hf.images.store import PictureStore
from tests.builder.gold.gold_for_tests import GOLD, KITE, LUNCH, OTTER, REPLY, Row, write_gold

Spoil = Callable[[dict[str, list[Row]]], object]
SHOT: Row = {
    "post_url": KITE, "index": 1, "layout": "collage", "prompt": "",
    "inputs": [], "outputs": [[0, 0, 4, 4]], "half": "tune",
}  # fmt: skip


def read(folder: Path, gold: dict[str, list[Row]]) -> tuple[Gold, GoldPosts]:
    """A gold folder and its posts."""
    lines = read_gold(write_gold(folder, gold))
    posts = Posts(source="jsonl", path=folder / "gold" / "posts.jsonl")
    return lines, read_posts([posts], addresses_of(lines), PictureStore(folder / "pictures"))


def test_gold_that_fits(tmp_path: Path) -> None:
    """What is right is let through, and all posts of its threads are read."""
    gold, posts = read(tmp_path, GOLD)
    check_agreement(gold, posts, "posts.jsonl")

    assert dict(posts.root_of) == {OTTER: OTTER, REPLY: OTTER, KITE: KITE, LUNCH: LUNCH}
    assert [len(posts.pictures[url]) for url in (OTTER, REPLY, KITE)] == [1, 0, 2]


def test_screenshots_are_those_that_roles_mark(tmp_path: Path) -> None:
    """A conversation or a collage; without roles any picture may be one."""
    marked = copy.deepcopy(GOLD)
    marked["roles"][1]["collage"] = {"post_url": KITE, "index": 1}
    marked["screenshots"] = [SHOT]
    check_agreement(*read(tmp_path / "marked", marked), "posts.jsonl")
    alone = {"screenshots": [SHOT]}
    check_agreement(*read(tmp_path / "alone", alone), "posts.jsonl")


SPOILT: dict[str, Spoil] = {
    "relevance.jsonl:1: 'https://example.org/none' is not in the posts": lambda gold: gold[
        "relevance"
    ][0].update(url="https://example.org/none"),
    "extract.jsonl:1: root_url 'https://example.org/o2' answers another post": lambda gold: gold[
        "extract"
    ][0].update(root_url=REPLY),
    "extract.jsonl:1: 'https://example.org/k' belongs to the thread of": lambda gold: gold[
        "extract"
    ][0]["samples"][0].update(post_urls=[OTTER, KITE]),
    "extract.jsonl:1: 'https://example.org/o2' is given as feedback twice": lambda gold: gold[
        "extract"
    ][0]["samples"][0].update(feedback_optional=[REPLY]),
    "roles.jsonl:2: picture 2 of 'https://example.org/k', which has 2": lambda gold: gold["roles"][
        1
    ]["pictures"][1].update(index=2),
    "roles.jsonl:1: a picture of 'https://example.org/k', which is not in": lambda gold: gold[
        "roles"
    ][0]["pictures"][0].update(post_url=KITE),
    "roles.jsonl:2: picture 0 of 'https://example.org/k' is 'output', but 'input'": lambda gold: (
        gold["roles"][1]["pictures"][1].update(index=0)
    ),
    "roles.jsonl:1: prompt 'another' is of no sample of that thread": lambda gold: gold["roles"][
        0
    ].update(prompt="another"),
    "tasks.jsonl:2: prompt 'another' is of no sample of that thread": lambda gold: gold["tasks"][
        1
    ].update(prompt="another"),
    "safety.jsonl:1: prompt 'another' is of no sample of that thread": lambda gold: gold["safety"][
        0
    ].update(prompt="another"),
    "extract.jsonl:2: half is 'held_out', but 'tune' in": lambda gold: gold["extract"][1].pop(
        "half"
    ),
    "screenshots.jsonl:1: picture 2 of 'https://example.org/k', which has 2": lambda gold: (
        gold.update(screenshots=[{**SHOT, "index": 2}])
    ),
    "screenshots.jsonl:1: picture 1 of 'https://example.org/k' is no conversation": lambda gold: (
        gold.update(screenshots=[SHOT])
    ),
    "screenshots.jsonl:1: 'https://example.org/none' is not in the posts": lambda gold: gold.update(
        screenshots=[{**SHOT, "post_url": "https://example.org/none"}]
    ),
    "feedback.jsonl:1: 'https://example.org/o' is feedback of no sample": lambda gold: gold[
        "feedback"
    ][0].update(post_url=OTTER),
}


@pytest.mark.parametrize(("said", "spoil"), SPOILT.items(), ids=SPOILT)
def test_gold_that_does_not_fit(tmp_path: Path, said: str, spoil: Spoil) -> None:
    """The line is named, with what it says and what was expected."""
    gold = copy.deepcopy(GOLD)
    spoil(gold)
    with pytest.raises(GoldError) as caught:
        check_agreement(*read(tmp_path, gold), "posts.jsonl")

    assert str(caught.value).startswith(f"{tmp_path / 'gold'}/{said}")
    assert "expected" in str(caught.value) or "extract.jsonl has" in str(caught.value)


def two_prompts_of_a_post() -> dict[str, list[Row]]:
    """Gold with a second sample in the post of the first, which has a line of its own."""
    gold = copy.deepcopy(GOLD)
    sample = {"prompt": "Before and after", "quality": "Benchmark", "post_urls": [KITE]}
    gold["extract"][1]["samples"].append(sample)
    pictures = [gold["roles"][1]["pictures"].pop()]
    gold["roles"].append(
        {"root_url": KITE, "prompt": "Before and after", "half": "tune", "pictures": pictures}
    )
    return gold


def test_a_picture_stands_in_one_line(tmp_path: Path) -> None:
    """Two samples of a post share its pictures out; what both name has no role of its own."""
    gold = two_prompts_of_a_post()
    check_agreement(*read(tmp_path / "one", gold), "posts.jsonl")
    gold["roles"][2]["pictures"].append({"post_url": KITE, "index": 0, "role": "neither"})
    with pytest.raises(GoldError) as caught:
        check_agreement(*read(tmp_path / "two", gold), "posts.jsonl")

    folder = tmp_path / "two" / "gold"
    assert str(caught.value) == (
        f"{folder}/roles.jsonl:3: picture 0 of {KITE!r} stands in {folder}/roles.jsonl:2 as well: "
        "expected each picture in one line"
    )


def test_a_file_that_a_post_shows_twice_has_one_role(tmp_path: Path) -> None:
    """It is looked at once, in whichever line it stands."""
    gold = two_prompts_of_a_post()
    folder = write_gold(tmp_path, gold)
    pictures = folder / "pictures"
    (pictures / "after.png").write_bytes((pictures / "before.png").read_bytes())
    lines = read_gold(folder)
    entry = [Posts(source="jsonl", path=folder / "posts.jsonl")]
    posts = read_posts(entry, addresses_of(lines), PictureStore(tmp_path / "store"))
    with pytest.raises(GoldError, match=r"jsonl:3: picture 1 .* is 'output', but 'input' in .*:2"):
        check_agreement(lines, posts, "posts.jsonl")


def test_missing_posts_are_counted(tmp_path: Path) -> None:
    """The first of them is named."""
    gold = copy.deepcopy(GOLD)
    for number, row in enumerate(gold["relevance"]):
        row["url"] = f"https://example.org/none{number}"
    with pytest.raises(GoldError, match=r"none0' is not in the posts .*, nor are 2 others"):
        check_agreement(*read(tmp_path, gold), "posts.jsonl")


def test_a_missing_root_is_a_root_but_has_no_score(tmp_path: Path) -> None:
    """A post that is only known by its address can head a thread; nobody can have scored it."""
    folder = write_gold(tmp_path, {"relevance": [{"url": REPLY, "score": 5}]})
    posts = (folder / "posts.jsonl").read_text("utf-8").splitlines()
    (folder / "posts.jsonl").write_text("\n".join(posts[1:]), "utf-8")
    entry = [Posts(source="jsonl", path=folder / "posts.jsonl")]
    gold = read_gold(folder)
    known = read_posts(entry, addresses_of(gold), PictureStore(tmp_path / "pictures"))
    check_agreement(gold, known, "posts.jsonl")
    assert known.root_of[REPLY] == OTTER

    (folder / "relevance.jsonl").write_text(f'{{"url": "{OTTER}", "score": 5}}', "utf-8")
    with pytest.raises(GoldError, match="is not in the posts"):
        check_agreement(read_gold(folder), known, "posts.jsonl")
