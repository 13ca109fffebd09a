"""One image of a post among others: which one is it?"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from echo_hf.hub.archive import Archive, Rebuilt, rebuilt_images
from echo_hf.hub.dehydrate import image_signature
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Match
from echo_hf.tables import POSTS
from tests.collect.images_like_posts import photograph, with_words
from tests.images_for_tests import encoded

POST = "https://x.com/i/status/1"
# Twins: one word was changed, which no signature shows for sure.
ONE, TWIN = (with_words(photograph(5), word, (60, 200), 36) for word in ("blue hour", "blue huor"))
ENTRY = {"role": "output", "post_url": POST, "url": None, "of": None, "box": None}


def digest(data: bytes) -> str:
    """The name of an image."""
    return hashlib.sha256(data).hexdigest()


def archive(folder: Path, *images: tuple[bytes, str | None], **values: Any) -> Archive:
    """An archive with one post that shows these images, at these addresses."""
    store = ImageStore(folder / "pictures")
    shown = [{"sha256": store.put(data), "url": url} for data, url in images]
    table = pa.Table.from_pylist([{"url": POST, "pictures": shown}], schema=POSTS.schema)
    return Archive(table, store, **values)


def left_out(folder: Path, image: Image.Image, **values: Any) -> dict[str, Any]:
    """What a release tells of an image that nobody here has."""
    data = encoded(image, "PNG")
    (folder / "original").write_bytes(data)
    signature = image_signature(folder / "original")
    return {**ENTRY, "sha256": digest(data), "signature": signature, **values}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_copies_the_nearer_one_is_taken(tmp_path: Path, order: tuple[int, int]) -> None:
    """A post that shows an image and its edited twin, both packed anew."""
    copies = [encoded(one, "JPEG", quality=90) for one in (ONE, TWIN)]
    here = archive(tmp_path, *((copies[number], None) for number in order))
    for image, copy in zip((ONE, TWIN), copies, strict=True):
        (found,) = rebuilt_images([left_out(tmp_path, image)], here)
        assert found == Rebuilt(digest(copy), Match.SAME_IMAGE)


def test_the_address_says_which_image_is_meant(tmp_path: Path) -> None:
    """What stands at the address now is it, or another one; the rest of the post is not."""
    copy, other = encoded(ONE, "JPEG", quality=90), encoded(photograph(6), "PNG")
    here = archive(tmp_path, (copy, "https://p.example/1"), (other, "https://p.example/2"))
    entries = [left_out(tmp_path, ONE, url=f"https://p.example/{number}") for number in (1, 2)]
    assert [one.match for one in rebuilt_images(entries, here)] == [
        Match.SAME_IMAGE,
        Match.DIFFERENT,
    ]


def test_what_was_fetched_counts_before_what_lies_beside(tmp_path: Path) -> None:
    """It comes from the address that the release names."""
    copy, other = encoded(ONE, "JPEG", quality=90), encoded(photograph(6), "PNG")
    here = archive(tmp_path, (other, None))
    here.images.put(copy)
    fetched = Archive(here.table, here.images, {"https://p.example/1": digest(copy)})
    entry = left_out(tmp_path, ONE, url="https://p.example/1")
    assert rebuilt_images([entry], fetched) == [Rebuilt(digest(copy), Match.SAME_IMAGE)]


def test_an_image_of_another_entry_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    """The twin is there for itself: the image is missing, not different."""
    twin = encoded(TWIN, "PNG")
    here = archive(tmp_path, (twin, None))
    entries = [left_out(tmp_path, ONE), {**ENTRY, "sha256": digest(twin), "signature": None}]
    assert [(one.match, one.detail) for one in rebuilt_images(entries, here)] == [
        (Match.MISSING, f"no image of {POST} is available"),
        (Match.EXACT, ""),
    ]


def test_without_a_signature_only_the_very_bytes_will_do(tmp_path: Path) -> None:
    """A copy may be another image for all that is known."""
    here = archive(tmp_path, (encoded(ONE, "JPEG", quality=90), None))
    entry = {**left_out(tmp_path, ONE), "signature": None}
    (found,) = rebuilt_images([entry], here)
    assert (found.value, found.match) == (None, Match.DIFFERENT)


def test_a_crop_needs_its_screenshot(tmp_path: Path) -> None:
    """What stays left out with it is told; its own digest needs none."""
    shot, crop = encoded(ONE, "PNG"), encoded(ONE.crop((10, 10, 60, 60)), "BMP")
    here = archive(tmp_path)
    entry = {**ENTRY, "sha256": digest(crop), "of": digest(shot), "box": [10, 10, 60, 60]}
    entry["signature"] = None
    (found,) = rebuilt_images([entry], here)
    assert (found.match, found.detail) == (
        Match.MISSING,
        f"its screenshot {digest(shot)} stays left out",
    )
    here.images.put(crop)
    assert rebuilt_images([entry], here) == [Rebuilt(digest(crop), Match.EXACT)]
