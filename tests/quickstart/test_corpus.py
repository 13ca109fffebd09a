"""The bundled posts: a clean corpus of invented people."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image

Post = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "echo_hf" / "quickstart"
POSTS: list[Post] = [
    json.loads(line) for line in (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
]
BY_URL = {post["url"]: post for post in POSTS}
RELEASED = datetime(2026, 3, 2, tzinfo=UTC)
NEVER_COLLECTED = {"https://bsky.app/profile/did:plc:g8thr0ws1lks9m3xq5vwk2nd/post/3l0nt6p9vxa1b"}
ADDRESSES = (
    r"https://x\.com/(?P<handle>\w+)/status/9900\d{15}",
    r"https://bsky\.app/profile/did:plc:[a-z0-9]{24}/post/[a-z0-9]{13}",
    r"https://social\.example/@\w+/1099\d{14}",
)


def images(post: Post) -> list[str]:
    return [image["path"] for image in post.get("pictures", [])]


def when(post: Post) -> datetime:
    return datetime.fromisoformat(post["timestamp"])


def test_addresses_cannot_be_real_and_name_their_author() -> None:
    for post in POSTS:
        [found] = [m for form in ADDRESSES if (m := re.fullmatch(form, post["url"]))]
        handle = found.groupdict().get("handle")
        assert handle is None or post.get("author", handle) == handle, post["url"]


def test_parents_and_quotes_are_known() -> None:
    links = {post[key] for post in POSTS for key in ("parent_url", "quoted_url") if key in post}
    assert links - set(BY_URL) == NEVER_COLLECTED


def test_content_is_there_unless_it_is_missing_and_replies_follow_their_parents() -> None:
    for post in POSTS:
        has = [key in post for key in ("author", "text", "timestamp")]
        assert has == [("missing" not in post)] * 3, post["url"]
        if "timestamp" in post:
            assert post["timestamp"].endswith("Z")
            assert RELEASED <= when(post) < RELEASED + timedelta(weeks=6)
            parent = BY_URL.get(post.get("parent_url", ""), {})
            assert "timestamp" not in parent or when(parent) < when(post), post["url"]


def test_every_image_is_small_and_belongs_to_exactly_one_post() -> None:
    named = Counter(path for post in POSTS for path in images(post))
    files = {f"pictures/{path.name}": path for path in (CORPUS / "pictures").iterdir()}
    assert named == dict.fromkeys(files, 1)
    for path in files.values():
        with Image.open(path) as image:
            image.load()
            assert image.format == {".png": "PNG", ".jpg": "JPEG", ".webp": "WEBP"}[path.suffix]
            assert all(200 <= side <= 384 for side in image.size)
        assert path.stat().st_size <= 20_000


def test_size_and_languages() -> None:
    assert len(POSTS) >= 80
    assert {post["lang"] for post in POSTS if "lang" in post} >= {"en", "zh", "ja", "es", "fr"}
    hosts = {post["url"].split("/")[2] for post in POSTS}
    assert hosts == {"x.com", "bsky.app", "social.example"}
