"""Every task of the bundled posts has its meant image, found by post and prompt alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.collect.urls import canonical_url
from echo_hf.quickstart.truth import read_truths, without_spaces

Row = dict[str, Any]

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
TRUTHS = read_truths()


def lines(name: str) -> list[Row]:
    """The objects of a file of the corpus, one a line."""
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def key(row: Row) -> tuple[str, str]:
    """What names a sample in the gold: its thread and its prompt."""
    return row["root_url"], row["prompt"]


ROLES = {key(row): row for row in lines("gold/roles.jsonl")}
FLAGGED = {key(row) for row in lines("gold/safety.jsonl") if row["flagged"]}
FILES = {
    (post["url"], index): image["path"]
    for post in lines("posts.jsonl")
    for index, image in enumerate(post.get("pictures", []))
}


def tasks() -> Iterator[tuple[str, str, Row]]:
    """Primary post, prompt and roles of each Benchmark sample that the safety stage lets pass."""
    for thread in lines("gold/extract.jsonl"):
        for sample in thread["samples"]:
            name = (thread["root_url"], sample["prompt"])
            if sample["quality"] == "Benchmark" and name not in FLAGGED:
                filled = [one["prompt"] for one in ROLES[name]["filled"]]
                for prompt in filled or [sample["prompt"]]:
                    yield sample["post_urls"][0], prompt, ROLES[name]


TASKS = list(tasks())
SHOWN = [(row["post_url"], row["prompt"]) for row in lines("gold/screenshots.jsonl")]


@pytest.mark.parametrize(("url", "prompt"), [(url, prompt) for url, prompt, _ in TASKS])
def test_every_benchmark_sample_of_the_gold_has_an_image(url: str, prompt: str) -> None:
    """The post as people spell it, made canonical, and the prompt lead to an image."""
    path = TRUTHS.of({"post_urls": [canonical_url(url)], "prompt": prompt})
    assert path is not None
    assert (CORPUS / path).is_file()


def test_a_conversation_has_the_image_of_what_was_typed_in_it() -> None:
    """The prompts that stand in screenshots have their images as well."""
    typed = [(url, prompt) for url, prompt in SHOWN if prompt]
    assert len(typed) == 2
    for url, prompt in typed:
        assert TRUTHS.of({"post_urls": [canonical_url(url)], "prompt": prompt}) is not None


def test_there_is_no_image_for_anything_else() -> None:
    """The file has one line for each task and each typed prompt, and no line more."""
    asked = {(canonical_url(url), without_spaces(prompt)) for url, prompt, _ in TASKS}
    typed = {(canonical_url(url), without_spaces(prompt)) for url, prompt in SHOWN if prompt}
    assert set(TRUTHS.images) == asked | typed
    assert len(lines("truth.jsonl")) == len(TASKS) + len(typed)


def test_an_image_of_the_posts_is_an_output_of_its_thread() -> None:
    """What the posts show as the right image is an output there, by the gold's roles."""
    outputs: dict[str, set[str]] = {}
    for (root, _), row in ROLES.items():
        shown = [one for one in row["pictures"] if one["role"] == "output"]
        files = {FILES[one["post_url"], one["index"]] for one in shown}
        outputs.setdefault(root, set()).update(files)
    for url, prompt, row in TASKS:
        path = TRUTHS.images[str(canonical_url(url)), without_spaces(prompt)]
        assert path.startswith("truth/") or path in outputs[row["root_url"]], path


def test_a_completed_template_has_the_image_of_its_completion() -> None:
    """Each completion leads to the output that the gold gives for it."""
    for url, prompt, row in TASKS:
        for one in row["filled"]:
            if one["prompt"] == prompt:
                place = one["output"]["post_url"], one["output"]["index"]
                assert (
                    TRUTHS.images[str(canonical_url(url)), without_spaces(prompt)] == FILES[place]
                )


def test_a_template_with_empty_blanks_and_a_flagged_request_have_none() -> None:
    """Nobody can draw a `[ANIMAL]`, and nobody drew somebody being hurt."""
    template = "A tiny [ANIMAL] dressed as a [JOB], clay figure standing on a wooden desk"
    flagged = [prompt for _, prompt in FLAGGED]
    prompts = {prompt for _, prompt in TRUTHS.images}
    assert not any(prompt.startswith(without_spaces(template)) for prompt in prompts)
    assert len(flagged) == 1
    assert without_spaces(flagged[0]) not in prompts


def test_white_space_and_the_order_of_posts_do_not_matter() -> None:
    """A prompt is found with other line breaks, and at any of the sample's posts."""
    row = next(row for row in lines("truth.jsonl") if "paper boat" in row["prompt"])
    others = ["https://x.com/i/status/1", row["post_url"]]
    prompt = row["prompt"].replace("\n", " \r\n\t")
    assert TRUTHS.of({"post_urls": others, "prompt": prompt}) == "pictures/paper_boat.png"
    assert TRUTHS.of({"post_urls": others[:1], "prompt": prompt}) is None
    assert TRUTHS.of({"post_urls": others, "prompt": prompt + "!"}) is None


def test_images_drawn_for_the_truth_are_small_and_all_used() -> None:
    """Those in `truth/` can be decoded, have at most 20 kB, and are each meant by a task."""
    files = {f"truth/{path.name}" for path in (CORPUS / "truth").iterdir()}
    assert files == {path for path in TRUTHS.images.values() if path.startswith("truth/")}
    for name in files:
        with Image.open(CORPUS / name) as image:
            image.load()
            assert (image.format, image.mode) == ("PNG", "P")
        assert (CORPUS / name).stat().st_size <= 20_000
