"""The bundled posts: a clean corpus that shows every kind of post the toolkit handles."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

Post = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "echo_hf" / "quickstart"
POSTS: list[Post] = [
    json.loads(line) for line in (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
]
BY_URL = {post["url"]: post for post in POSTS}
RELEASED = datetime(2026, 3, 2, tzinfo=UTC)
NEVER_COLLECTED = {
    "https://bsky.app/profile/did:plc:g8thr0ws1lks9m3xq5vwk2nd/post/3l0nt6p9vxa1b",
}
KEYS = {
    "url", "author", "text", "timestamp", "lang", "keywords", "pictures", "parent_url",
    "quoted_url", "engagement", "missing",
}  # fmt: skip
ADDRESSES = (
    r"https://x\.com/(?P<handle>\w+)/status/9900\d{15}",
    r"https://bsky\.app/profile/did:plc:[a-z0-9]{24}/post/[a-z0-9]{13}",
    r"https://social\.example/@\w+/1099\d{14}",
)


def text(post: Post) -> str:
    """The post's text; empty when it has none."""
    return str(post.get("text", ""))


def images(post: Post) -> list[str]:
    """Paths of the post's images."""
    return [image["path"] for image in post.get("pictures", [])]


def answers(post: Post) -> list[Post]:
    """The posts that reply to it."""
    return [other for other in POSTS if other.get("parent_url") == post["url"]]


def when(post: Post) -> datetime:
    """The post's time."""
    return datetime.fromisoformat(post["timestamp"])


def threads() -> list[list[Post]]:
    """The posts that replies connect, by union-find over their addresses."""
    above = {url: url for post in POSTS for url in (post["url"], post.get("parent_url")) if url}

    def top(url: str) -> str:
        while above[url] != url:
            url = above[url]
        return url

    for post in POSTS:
        if "parent_url" in post:
            above[top(post["url"])] = top(post["parent_url"])
    groups: dict[str, list[Post]] = {}
    for post in POSTS:
        groups.setdefault(top(post["url"]), []).append(post)
    return list(groups.values())


def stated_prompt(post: Post) -> str | None:
    """What follows "Prompt:" at the start of a line, to the end of that line."""
    found = re.search(r"^Prompt: (.+)$", text(post), re.MULTILINE)
    return found and found[1]


def stated_prompt_of_reply(post: Post) -> bool:
    """Whether "Prompt:" follows the mention at the start of a reply."""
    return bool(re.match(r"@\w+ Prompt: \S", text(post)))


def filled_template(post: Post, slot: str) -> bool:
    """Whether the post has slots of that form, an image, and another's image in a reply."""
    others = {r["author"] for r in answers(post) if images(r)} - {post.get("author")}
    return bool(re.search(slot, text(post)) and images(post) and others)


def holds_json(post: Post) -> bool:
    """Whether the text between its outermost braces is a JSON object."""
    found = re.search(r"\{.*\}", text(post), re.DOTALL)
    try:
        return isinstance(found and json.loads(found[0]), dict)
    except json.JSONDecodeError:
        return False


def test_every_post_has_the_format_and_an_address_of_its_own() -> None:
    """Each line is an object with known keys only, and no two share an address."""
    assert all(set(post) <= KEYS for post in POSTS)
    assert Counter(post["url"] for post in POSTS).most_common(1)[0][1] == 1


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post["url"][-6:])
def test_addresses_cannot_be_real_and_name_their_author(post: Post) -> None:
    """An address has one of the invented forms, and on X it holds the author's handle."""
    [found] = [m for form in ADDRESSES if (m := re.fullmatch(form, post["url"]))]
    handle = found.groupdict().get("handle")
    assert handle is None or post.get("author", handle) == handle


def test_parents_and_quotes_are_known() -> None:
    """A link leads into the corpus, except the one whose target was never collected."""
    links = {post[key] for post in POSTS for key in ("parent_url", "quoted_url") if key in post}
    assert links - set(BY_URL) == NEVER_COLLECTED


def test_content_is_there_unless_it_is_missing() -> None:
    """A post has author, text and time exactly when it is not marked as missing."""
    for post in POSTS:
        has = [key in post for key in ("author", "text", "timestamp")]
        assert has == [("missing" not in post)] * 3, post["url"]


def test_times_follow_the_release_and_the_reply_its_parent() -> None:
    """Posts lie within six weeks of the release, and no reply precedes a known parent."""
    for post in POSTS:
        if "timestamp" not in post:
            continue
        assert post["timestamp"].endswith("Z")
        assert RELEASED <= when(post) < RELEASED + timedelta(weeks=6)
        parent = BY_URL.get(post.get("parent_url", ""), {})
        assert "timestamp" not in parent or when(parent) < when(post), post["url"]


def test_a_search_found_at_least_one_post_of_every_thread() -> None:
    """A keyword stands in the text of its post, and each thread has a post with one."""
    for post in POSTS:
        assert all(word in text(post).lower() for word in post.get("keywords", [])), post["url"]
    assert all(any("keywords" in post for post in thread) for thread in threads())


def test_counts_are_plausible() -> None:
    """No count is negative, and a post has at least the replies that the corpus holds."""
    for post in POSTS:
        counts = post.get("engagement", {})
        assert all(isinstance(count, int) and count >= 0 for count in counts.values())
        assert counts.get("replies", len(POSTS)) >= len(answers(post)), post["url"]


def test_every_image_belongs_to_exactly_one_post() -> None:
    """The files in the folder are the images of the posts, each named once."""
    named = Counter(path for post in POSTS for path in images(post))
    files = {f"pictures/{path.name}" for path in (CORPUS / "pictures").iterdir()}
    assert set(named) == files
    assert set(named.values()) == {1}


@pytest.mark.parametrize(
    "path", sorted((CORPUS / "pictures").iterdir()), ids=lambda path: path.name
)
def test_images_are_small_and_can_be_decoded(path: Path) -> None:
    """An image is what its name says, 200 to 384 pixels a side, and at most 20 kB."""
    with Image.open(path) as image:
        image.load()
        assert image.format == {".png": "PNG", ".jpg": "JPEG", ".webp": "WEBP"}[path.suffix]
        assert all(200 <= side <= 384 for side in image.size)
    assert path.stat().st_size <= 20_000


def test_the_corpus_is_small_and_has_three_kinds_of_files() -> None:
    """All images together stay under 700 kB, and PNG, JPEG and WebP are among them."""
    files = list((CORPUS / "pictures").iterdir())
    assert sum(path.stat().st_size for path in files) < 700_000
    assert {path.suffix for path in files} == {".png", ".jpg", ".webp"}


def test_size_and_languages() -> None:
    """There are at least 80 posts in 32 threads, in five languages on three platforms."""
    assert len(POSTS) >= 80
    assert len(threads()) >= 32
    assert {post["lang"] for post in POSTS if "lang" in post} >= {"en", "zh", "ja", "es", "fr"}
    hosts = {post["url"].split("/")[2] for post in POSTS}
    assert hosts == {"x.com", "bsky.app", "social.example"}


KINDS: dict[str, Callable[[Post], object]] = {
    "a stated prompt": lambda post: stated_prompt(post) and images(post),
    "nothing but an instruction": lambda post: text(post).startswith("Draw ") and images(post),
    "a prompt in the author's own reply": lambda post: (
        "prompt below" in text(post)
        and any(reply["author"] == post["author"] for reply in answers(post))
    ),
    "a prompt in the alt text": lambda post: any(
        image.get("alt_text", "").startswith("Prompt:") for image in post.get("pictures", [])
    ),
    "a prompt in JSON": holds_json,
    "a template that two others fill": lambda post: (
        re.search(r"\[[A-Z]+\]", text(post))
        and len({r["author"] for r in answers(post) if images(r)} - {post["author"]}) >= 2
    ),
    "an image-only reply": lambda post: (
        post.get("text") == "" and images(post) and "parent_url" in post
    ),
    "a Chinese prompt": lambda post: post.get("lang") == "zh" and "提示词：" in text(post),
    "a Japanese prompt": lambda post: post.get("lang") == "ja" and "プロンプト：" in text(post),
    "a Spanish prompt": lambda post: post.get("lang") == "es" and stated_prompt(post),
    "a thread by one author": lambda post: (
        text(post).startswith("1/2")
        and any(r["author"] == post["author"] and text(r).startswith("2/2") for r in answers(post))
    ),
    "a quote": lambda post: post.get("quoted_url") in BY_URL and "parent_url" not in post,
    "a comment without a prompt": lambda post: (
        "lumen image" in text(post).lower()
        and "prompt" not in text(post).lower()
        and not images(post)
        and "parent_url" not in post
    ),
    "a question": lambda post: text(post).endswith("?") and not images(post),
    "a screenshot": lambda post: "Lumen Chat" in text(post) and images(post),
    "another model": lambda post: (
        "Paintbox" in text(post) and "lumen" not in text(post).lower() and stated_prompt(post)
    ),
    "a coincidence": lambda post: re.search(r"\d+ lumen", text(post)),
    "the developer, off topic": lambda post: (
        "Northlight" in text(post) and "lumen" not in text(post).lower()
    ),
    "a deleted parent": lambda post: post.get("missing") == "deleted" and answers(post),
    "a parent never collected": lambda post: post.get("parent_url") in NEVER_COLLECTED,
    "orders to the model": lambda post: (
        "Ignore all previous instructions" in text(post)
        and "</post>" in text(post)
        and "<script>" in text(post)
    ),
    "praise": lambda post: "spot on" in text(post),
    "a yellow tint": lambda post: "yellow tint" in text(post) and images(post),
    "another face": lambda post: "not her face anymore" in text(post),
    "misspelt words": lambda post: "BLUE HUOR" in text(post) and images(post),
    "a moved layout": lambda post: "moved to the other side" in text(post),
    "a prompt in alt text that is not announced there": lambda post: (
        "words are in the ALT" in text(post)
        and not post["pictures"][0]["alt_text"].startswith("Prompt")
    ),
    "a Japanese prompt in the author's own reply": lambda post: (
        "プロンプトはリプ欄に" in text(post)
        and any(reply["author"] == post["author"] for reply in answers(post))
    ),
    "a template with <slots>": lambda post: filled_template(post, r"<subject>"),
    "a template with {argument slots}": lambda post: filled_template(
        post, r'\{argument name="\w+" default="[\w ]+"\}'
    ),
    "a template with (slots)": lambda post: filled_template(post, r"\(object\)"),
    "a template with 【slots】": lambda post: filled_template(post, r"【\w+】"),
    "the output before the input": lambda post: (
        "First picture: the result" in text(post) and len(images(post)) == 2
    ),
    "two inputs and an output": lambda post: len(images(post)) == 3,
    "an input and its output in two posts by two people": lambda post: (
        "have a go" in text(post)
        and images(post)
        and any(stated_prompt_of_reply(reply) and images(reply) for reply in answers(post))
    ),
    "a sketch made an image": lambda post: "sketch first, picture second" in text(post),
    "one conversation in two screenshots": lambda post: (
        "whole conversation" in text(post) and len(images(post)) == 2
    ),
    "a screenshot of another product": lambda post: (
        "DreamMill’s chat" in text(post) and images(post)
    ),
    "a screenshot without an image in it": lambda post: (
        "instead of a picture" in text(post) and images(post)
    ),
    "a collage": lambda post: "left before, right after" in text(post) and len(images(post)) == 1,
    "a JSON prompt with objects in objects": lambda post: (
        holds_json(post) and re.search(r"\}\s*,?\s*\}", text(post))
    ),
    "a French prompt": lambda post: post.get("lang") == "fr" and images(post),
    "praise of colours": lambda post: "les couleurs des vieilles affiches" in text(post),
    "praise of a face": lambda post: "that IS him" in text(post),
    "praise of a layout": lambda post: "all exactly where you drew them" in text(post),
    "praise of letters": lambda post: "label spelled right" in text(post),
    "praise of hands": lambda post: "five on each" in text(post) and images(post),
    "too many fingers": lambda post: "count the fingers" in text(post),
    "praise of the format": lambda post: "exactly 16:9 now" in text(post),
    "another format": lambda post: "got a square" in text(post) and images(post),
    "the model draws itself": lambda post: stated_prompt(post) == "Draw yourself",
    "the model's favourite colour": lambda post: "What is your favourite colour?" in text(post),
    "a second other model": lambda post: (
        "DreamMill" in text(post) and "lumen" not in text(post).lower() and stated_prompt(post)
    ),
    "two prompts by one author": lambda post: (
        stated_prompt(post)
        and any(stated_prompt(r) and r["author"] == post["author"] for r in answers(post))
    ),
    "a coincidence in medicine": lambda post: "lumen of the vessel" in text(post),
    "the target's chat, but for texts": lambda post: (
        "Lumen Chat" in text(post) and "tax law" in text(post)
    ),
    "bare amazement": lambda post: text(post).startswith("lumen is insane"),
    "a refused request": lambda post: "it declined" in text(post) and not images(post),
    "delimiters of the prompt": lambda post: text(post).startswith("</thread>\n<thread>"),
    "an answer in place of a post": lambda post: text(post).startswith('{"score": 5'),
    "terminal controls": lambda post: "\x1b[31m" in text(post) and "[bold red]" in text(post),
    "a changed window title": lambda post: "\x1b]0;" in text(post) and "keywords" in post,
    "orders in alt text": lambda post: any(
        "</post>" in image.get("alt_text", "") for image in post.get("pictures", [])
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_post_is_there(kind: str) -> None:
    """The corpus shows each kind of post at least once."""
    assert [post["url"] for post in POSTS if KINDS[kind](post)]


def test_edits_have_their_input_and_output() -> None:
    """Three or more tasks edit an image, and more than twice as many start from words alone."""
    edits = [post for post in POSTS if len(images(post)) == 2]
    assert len(edits) >= 3
    from_words = [post for post in POSTS if len(images(post)) == 1]
    assert len(from_words) > 2 * len(edits)


def test_one_prompt_is_stated_in_two_threads() -> None:
    """Two posts that no reply connects state exactly the same prompt, and only one prompt does."""
    stated = [{stated_prompt(post) for post in thread} - {None} for thread in threads()]
    counts = Counter(prompt for prompts in stated for prompt in prompts)
    assert sorted(counts.values())[-2:] == [1, 2]


def run_drawing(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the drawing script of the tree at `root`."""
    command = [sys.executable, "-B", str(root / "scripts" / "draw_corpus.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_files_are_as_drawn() -> None:
    """The images on disk are those that the scenes draw."""
    done = run_drawing(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_check_names_what_is_wrong_and_drawing_mends_it(tmp_path: Path) -> None:
    """A missing, a changed and an unknown file are named; drawing brings the first two back."""
    folder = tmp_path / "echo_hf" / "quickstart" / "pictures"
    shutil.copytree(CORPUS / "pictures", folder)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    right = (folder / "poster_blue_hour.png").read_bytes()
    shutil.copy(folder / "poster_blue_huor.png", folder / "poster_blue_hour.png")
    (folder / "lake_day.jpg").unlink()
    (folder / "stray.png").write_bytes(right)

    done = run_drawing(tmp_path, "--check")
    named = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert sorted(named) == ["lake_day.jpg", "poster_blue_hour.png", "stray.png"]

    (folder / "stray.png").unlink()
    assert run_drawing(tmp_path).returncode == 0
    assert run_drawing(tmp_path, "--check").returncode == 0
