"""What people wrote down about the bundled posts: complete, and consistent with the posts."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

Row = dict[str, Any]

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
GOLD = CORPUS / "gold"
FILES = ("relevance", "extract", "roles", "screenshots", "feedback", "tasks", "safety")
KEPT = (4, 5)
QUALITIES = ["Benchmark", "Analysis", "Trash"]
VERDICTS = ["success", "failure", "mixed"]
TASKS = {
    "text_to_image", "text_rendering", "edit", "style_transfer", "sketch_to_image",
    "composition", "restoration",
}  # fmt: skip
SLOT = re.compile(r'\[[A-Z]+\]|<\w+>|\{argument name="\w+" default="[^"]*"\}|\(\w+\)|【\w+】')


def lines(path: Path) -> list[Row]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


POSTS = {post["url"]: post for post in lines(CORPUS / "posts.jsonl")}
RELEVANCE, EXTRACT, ROLES, SCREENSHOTS, FEEDBACK, TASK_ROWS, SAFETY = (
    lines(GOLD / f"{name}.jsonl") for name in FILES
)
SAMPLES = [
    {**sample, "root_url": thread["root_url"]} for thread in EXTRACT for sample in thread["samples"]
]


def root_of(url: str) -> str:
    """The topmost address above a post."""
    while parent := POSTS.get(url, {}).get("parent_url"):
        url = parent
    return url


def posts_of(root: str) -> list[Row]:
    """The posts of a thread."""
    return [post for url, post in POSTS.items() if root_of(url) == root]


def squeezed(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def texts_of(root: str) -> list[str]:
    """Everything that was written in a thread, with the descriptions of images."""
    return [
        squeezed(text)
        for post in posts_of(root)
        for text in (
            post.get("text", ""),
            *(image.get("alt_text", "") for image in post.get("pictures", [])),
        )
    ]


def key(row: Row) -> tuple[str, str]:
    """What names a sample: its thread and its prompt."""
    return row["root_url"], row["prompt"]


def place(reference: Row) -> tuple[str, int]:
    """What names an image: its post, and where it stands there."""
    return reference["post_url"], reference["index"]


def file_of(reference: Row) -> Path:
    """The file of an image."""
    url, index = place(reference)
    path = str(POSTS[url]["pictures"][index]["path"])
    return CORPUS / path


@pytest.mark.parametrize("name", FILES)
def test_halves_follow_from_the_thread(name: str) -> None:
    """A line is in the half that the digest of its thread's root says."""
    for row in lines(GOLD / f"{name}.jsonl"):
        root = row.get("root_url") or root_of(row.get("url") or row["post_url"])
        first = hashlib.sha256(f"gold:{root}".encode()).digest()[0]
        assert row["half"] == ("tune" if first < 128 else "held_out"), root


def test_each_half_has_a_third_of_the_threads() -> None:
    """Neither half is trivial, of all threads and of those that are kept."""
    scored = {root_of(row["url"]): row["half"] for row in RELEVANCE}
    kept = {row["root_url"]: row["half"] for row in EXTRACT}
    for halves in (Counter(scored.values()), Counter(kept.values())):
        assert min(halves["tune"], halves["held_out"]) * 3 >= halves.total()


def test_every_found_post_has_one_score() -> None:
    """The posts with a keyword are scored, each once, from 1 to 5."""
    found = sorted(url for url, post in POSTS.items() if post.get("keywords"))
    assert sorted(row["url"] for row in RELEVANCE) == found
    for row in RELEVANCE:
        assert row["score"] in row["acceptable"], row["url"]
        assert set(row["acceptable"]) <= {1, 2, 3, 4, 5}, row["url"]


def test_every_kept_thread_has_samples_and_no_other() -> None:
    """A thread is extracted, once, exactly when one of its posts has 4 or 5."""
    kept = {root_of(row["url"]) for row in RELEVANCE if row["score"] in KEPT}
    assert Counter(row["root_url"] for row in EXTRACT) == dict.fromkeys(kept, 1)
    assert all(any(not one["optional"] for one in row["samples"]) for row in EXTRACT)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one["prompt"][:24])
def test_a_prompt_is_a_span_or_two(sample: Row) -> None:
    """A prompt stands in its thread as it is, or as two pieces with a space between them."""
    texts = texts_of(sample["root_url"])

    def stands(piece: str) -> bool:
        return any(squeezed(piece) in text for text in texts)

    words = sample["prompt"].split()
    assert stands(sample["prompt"]) or any(
        stands(" ".join(words[:cut])) and stands(" ".join(words[cut:]))
        for cut in range(1, len(words))
    )


def test_samples_name_posts_of_their_thread_once() -> None:
    """No post belongs to two samples, and no text is feedback of two."""
    for thread in EXTRACT:
        known = {post["url"] for post in posts_of(thread["root_url"])}
        for fields in (("post_urls",), ("feedback", "feedback_optional")):
            named = [url for one in thread["samples"] for field in fields for url in one[field]]
            assert set(named) <= known, thread["root_url"]
            assert len(named) == len(set(named)), thread["root_url"]


def test_qualities_are_of_the_scale() -> None:
    """A sample has a post, and its quality is one of those that are acceptable."""
    for sample in SAMPLES:
        assert sample["post_urls"]
        assert sample["quality"] in sample["acceptable"]
        assert set(sample["acceptable"]) <= set(QUALITIES)


@pytest.mark.parametrize("rows", [ROLES, SAFETY], ids=["roles", "safety"])
def test_every_sample_has_one_line(rows: list[Row]) -> None:
    """Roles and safety are written down for all samples, in their order."""
    assert [key(row) for row in rows] == [key(sample) for sample in SAMPLES]


def test_every_image_of_a_kept_thread_has_one_role() -> None:
    """Each image is listed once, and its role is input, output or neither."""
    listed = Counter(place(one) for row in ROLES for one in row["pictures"])
    roots = {row["root_url"] for row in EXTRACT}
    there = {
        (post["url"], index): 1
        for root in roots
        for post in posts_of(root)
        for index in range(len(post.get("pictures", [])))
    }
    assert listed == there
    assert {one["role"] for row in ROLES for one in row["pictures"]} == {
        "input", "output", "neither",
    }  # fmt: skip


def test_inputs_and_outputs_belong_to_the_posts_of_the_sample() -> None:
    """What is an input or output lies in a post of the sample, and so do all its screenshots."""
    for row, sample in zip(ROLES, SAMPLES, strict=True):
        used = [one for one in row["pictures"] if one["role"] != "neither"]
        used += [one for one in (row["conversation"], row["collage"]) if one]
        used += row["duplicates_of_conversation"]
        assert {one["post_url"] for one in used} <= set(sample["post_urls"]), key(row)


def test_screenshots_are_neither_input_nor_output() -> None:
    """A conversation, its duplicates and a collage are images of the sample with no role."""
    found = 0
    for row in ROLES:
        roles = {place(one): one["role"] for one in row["pictures"]}
        marked = [one for one in (row["conversation"], row["collage"]) if one]
        marked += row["duplicates_of_conversation"]
        assert [roles[place(one)] for one in marked] == ["neither"] * len(marked)
        assert bool(row["duplicates_of_conversation"]) <= bool(row["conversation"])
        found += len(marked)
    assert found == 4


def test_templates_are_filled_once_for_every_output() -> None:
    """A filled prompt is its template with a value in each slot; each output has one."""
    for row in ROLES:
        if not row["filled"]:
            continue
        outputs = [place(one) for one in row["pictures"] if one["role"] == "output"]
        assert [place(one["output"]) for one in row["filled"]] == outputs
        fixed = [re.escape(text) for text in SLOT.split(row["prompt"])]
        for one in row["filled"]:
            found = re.fullmatch("(.+)".join(fixed), one["prompt"])
            assert found, one["prompt"]
            assert list(found.groups()) == list(one["blanks"].values())
    assert sum(bool(row["filled"]) for row in ROLES) == 5


def test_prompts_with_slots_are_filled() -> None:
    """Exactly the prompts with a slot in one of the known notations are templates."""
    assert all(bool(SLOT.search(row["prompt"])) is bool(row["filled"]) for row in ROLES)


def test_screenshots_are_those_of_the_roles() -> None:
    """Each conversation and collage is taken apart once."""
    named = {
        place(row[layout]): layout
        for row in ROLES
        for layout in ("conversation", "collage")
        if row[layout]
    }
    assert {place(row): row["layout"] for row in SCREENSHOTS} == named
    assert len(SCREENSHOTS) == len(named)


@pytest.mark.parametrize("row", SCREENSHOTS, ids=lambda row: row["post_url"][-6:])
def test_boxes_hold_images(row: Row) -> None:
    """Boxes lie in the image, do not overlap, and show more colors than the window around."""
    with Image.open(file_of(row)) as file:
        image = file.convert("RGB")
    boxes = [*row["inputs"], *row["outputs"]]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= image.width
        assert 0 <= top < bottom <= image.height
        colors = image.crop((left, top, right, bottom)).quantize(16).getcolors()
        assert colors is not None
        assert max(count for count, _ in colors) < 0.7 * (right - left) * (bottom - top)
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (boxes[number], other)


def test_all_feedback_has_one_verdict() -> None:
    """Every text listed as feedback is judged once, and nothing else is."""
    listed = [url for one in SAMPLES for url in (*one["feedback"], *one["feedback_optional"])]
    assert Counter(row["post_url"] for row in FEEDBACK) == Counter(listed)
    assert max(Counter(listed).values()) == 1


def test_what_failed_has_a_keyword() -> None:
    """A failure and a mixed verdict name what failed in a few words, a success nothing."""
    for row in FEEDBACK:
        assert row["verdict"] in row["acceptable"]
        assert set(row["acceptable"]) <= set(VERDICTS)
        assert (row["keyword"] is None) is (row["verdict"] == "success")
        assert row["acceptable_keywords"][:1] == ([row["keyword"]] if row["keyword"] else [])
        assert all(len(word.split()) <= 4 for word in row["acceptable_keywords"])


def test_every_request_for_an_image_has_a_task() -> None:
    """Benchmark samples and conversations have a task of the closed list, comments none."""
    asked = [
        key(sample)
        for sample, row in zip(SAMPLES, ROLES, strict=True)
        if sample["quality"] == "Benchmark" or row["conversation"]
    ]
    assert [key(row) for row in TASK_ROWS] == asked
    for row in TASK_ROWS:
        assert row["kind"] in {"task", "probe"}
        assert row["task"] in row["acceptable"]
        assert set(row["acceptable"]) <= TASKS
    assert {row["task"] for row in TASK_ROWS} == TASKS
    assert sum(row["kind"] == "probe" for row in TASK_ROWS) == 2


def test_tasks_that_need_an_image_have_one() -> None:
    """What edits, restores or combines has as many inputs as it needs; what draws has none."""
    roles = {key(row): row for row in ROLES}
    for row in TASK_ROWS:
        mine = roles[key(row)]
        if mine["conversation"] or mine["collage"]:
            continue
        inputs = sum(one["role"] == "input" for one in mine["pictures"])
        needed = {"text_to_image": 0, "text_rendering": 0, "composition": 2}.get(row["task"], 1)
        assert inputs == needed, row["prompt"]


def test_one_request_is_flagged() -> None:
    """Only the refused request is unsafe, and it says why."""
    flagged = [row for row in SAFETY if row["flagged"]]
    assert [row["categories"] for row in flagged] == [["S1"]]
    assert all(not row["categories"] for row in SAFETY if not row["flagged"])


def test_hostile_posts_are_in_no_sample() -> None:
    """What was posted to command the reader is neither a sample nor feedback."""
    named = {url for one in SAMPLES for url in (*one["post_urls"], *one["feedback"])}
    for url, post in POSTS.items():
        words = json.dumps([post.get("text"), post.get("pictures")])
        if "</thread>" in words or "</post>" in words or "\\u001b" in words:
            assert url not in named
