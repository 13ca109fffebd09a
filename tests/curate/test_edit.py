"""What a reviewer typed and clicked, checked before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.curate.decisions import Changes
from echo_hf.curate.edits import Edit, checked_changes
from echo_hf.errors import ReviewError
from echo_hf.images.store import ImageStore
from tests.curate.reviewed_rows_for_tests import PROMPT, A, B, C, D, drawn, files, part, pixels, row
from tests.samples_for_tests import post

TEXT = f"Look what I made! Prompt: {PROMPT} - it took a minute"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """An empty folder of images."""
    return ImageStore(tmp_path / "pictures")


def context(*images: str) -> list[dict[str, Any]]:
    """The post with the prompt, and a comment."""
    shown = [
        {"sha256": one, "url": f"https://p.example/{one[0]}", "alt_text": None} for one in images
    ]
    return [{**post(0, -1, TEXT), "pictures": shown}, post(1, 0, "so soft, so red")]


def checked(store: ImageStore, sample: dict[str, Any] | None = None, **wanted: Any) -> Changes:
    """The changes of an edit that changes something."""
    made = checked_changes(sample or row(), context(A, B, C, D), Edit(**wanted), store, {D})
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("prompt", "modified"),
    [
        ("a fox in the snow", False),
        ("a fox in the snow, so soft, so red", False),
        ("a wolf in the snow", True),
    ],
)
def test_whether_a_prompt_was_modified_is_computed(
    store: ImageStore, prompt: str, modified: bool
) -> None:
    """From what people wrote in the thread, and never from what the reviewer thinks."""
    made = checked(store, prompt=f"  {prompt}\n")
    assert made.prompt is not None
    assert (made.prompt.text, made.prompt.modified) == (prompt, modified)


def test_a_prompt_is_given_as_places_of_the_posts(store: ImageStore) -> None:
    """Who has the post gets the prompt back from the span."""
    made = checked(store, prompt="a fox in the snow")
    assert made.prompt is not None
    (span,) = made.prompt.spans
    assert (span.field, TEXT[span.start : span.end]) == ("text", "a fox in the snow")


def test_what_is_as_it_was_is_no_change(store: ImageStore) -> None:
    """Neither a prompt with more white space around it, nor a role that it has."""
    wanted = Edit(f"{PROMPT} ", "Benchmark", {A: "input", C: "neither"})
    assert checked_changes(row(), context(A, B, C), wanted, store) is None
    assert checked_changes(row(), context(), Edit(), store) is None


def test_the_digest_of_the_new_version_is_told(store: ImageStore) -> None:
    """That of the prompt and the inputs that a system will be given."""
    made = checked(store, prompt="a fox", roles={B: "input"})
    assert made.sample_digest == row(prompt="a fox", input_images=[A, B])["sample_digest"]


def test_an_image_of_the_thread_is_found_with_its_post(store: ImageStore) -> None:
    """Its post and its address are looked up, not asked for."""
    (role,) = checked(store, roles={C: "output", A: "input"}).roles
    where = (context()[0]["url"], "https://p.example/c")
    assert (role.sha256, role.role, role.post_url, role.url) == (C, "output", *where)


def test_a_crop_is_cut_from_the_screenshot(store: ImageStore) -> None:
    """Its pixels are those that Pillow alone cuts out; inputs stand before outputs."""
    shot = drawn(store)
    sample = row(screenshot=shot)
    boxes = [("output", (20, 5, 40, 20)), ("input", (0, 0, 15, 20))]
    change = checked(store, sample, crops=boxes).crops
    assert change is not None

    assert [(one.role, one.box) for one in change.crops] == [boxes[1], boxes[0]]
    for one in change.crops:
        assert pixels(store, one.sha256) == part(store, shot, one.box)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"prompt": " \n"}, "has no word: expected one, or remove the sample"),
        ({"prompt": "\u200b\u200d\ufe0f\u3164"}, "has no word: expected one, or remove the sample"),
        ({"prompt": "a fox\x00"}, "has the control character '\\x00': take it out"),
        ({"prompt": "a \x1b[31mfox"}, "has the control character '\\x1b': take it out"),
        ({"prompt": "x" * 12_001}, "12,001 characters: expected at most 12,000"),
        ({"prompt": "a fox \ud800"}, "has half characters"),
        ({"quality": "Good"}, "unknown quality 'Good'"),
        ({"prompt": "a [PET] asleep", "quality": "Benchmark"}, "is for analysis only"),
        ({"roles": {"f" * 64: "input"}}, "no image 'f"),
        ({"roles": {"../../etc": "input"}}, "no image '../../etc'"),
        ({"roles": {A: "inputs"}}, "unknown role 'inputs'; did you mean 'input'"),
        ({"roles": {D: "output"}}, "belongs to another sample"),
        ({"crops": [("input", (0, 0, 5, 5))]}, "has no screenshot"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    store: ImageStore, wanted: dict[str, Any], said: str
) -> None:
    """And nothing is written."""
    with pytest.raises(ReviewError) as caught:
        checked(store, **wanted)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not store.root.exists()


@pytest.mark.parametrize(
    ("boxes", "said"),
    [
        ([("input", (0, 0, 41, 20))], "expected a box inside it"),
        ([("input", (5, 5, 5, 9))], "expected a box inside it"),
        ([("input", (0, 0, 9, 9)), ("output", (0, 0, 9, 9))], "that another box or sample has"),
        ([("neither", (0, 0, 9, 9))], "unknown role 'neither'"),
    ],
)
def test_a_box_that_cannot_be_cut_is_refused(
    store: ImageStore, boxes: list[Any], said: str
) -> None:
    """No crop is kept of an edit of which one box is wrong."""
    shot = drawn(store)
    with pytest.raises(ReviewError, match=said):
        checked(store, row(screenshot=shot), crops=boxes)
    assert files(store.root) == {shot}


def test_all_boxes_gone_is_refused(store: ImageStore) -> None:
    """A screenshot that was cut has at least one image."""
    sample = row(screenshot=drawn(store), input_bboxs=[[0.0, 0.0, 9.0, 9.0]])
    with pytest.raises(ReviewError, match="no box: expected one at least"):
        checked(store, sample, crops=[])
