"""Which prompts need an image that was given with them, told from their words alone."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from echo_hf.engines.reference_images import WORDS, asks_for_image, mentions_image, needs_image

FOUND, SUSPECTED = 0.9, 0.03  # of those that need one at least, and of the others at most
PHRASES = Path(__file__).parents[1] / "data" / "reference_images.tsv"
LANGUAGES = {"en", "zh", "ja", "ko", "es", "pt", "fr", "de"}


class Phrase(NamedTuple):
    """A line of the file: words of a prompt or beside one, and what a person says of them."""

    kind: str
    part: str  # what the words were chosen with, or nobody looked at before
    language: str
    needs: bool
    text: str


def phrases(kind: str, part: str) -> list[Phrase]:
    lines = (line.split("\t") for line in PHRASES.read_text("utf-8").splitlines())
    found = [Phrase(*names, needs == "1", text) for *names, needs, text in lines]
    return [one for one in found if (one.kind, one.part) == (kind, part)]


@pytest.mark.parametrize("part", ["train", "held_out"])
@pytest.mark.parametrize("kind", ["prompt", "words"])
def test_most_that_need_an_image_are_found_and_few_others_are_suspected(
    kind: str, part: str
) -> None:
    """Recall and precision on invented phrases, in each language and over all."""
    some, tells = phrases(kind, part), needs_image if kind == "prompt" else asks_for_image
    told = Counter((one.language, one.needs, tells(one.text)) for one in some)
    languages = {language for language, *_ in told}
    assert languages == (LANGUAGES if kind == "prompt" else {""})
    for language in languages:
        found, missed = told[language, True, True], told[language, True, False]
        assert found >= FOUND * (found + missed), language
    suspected, others = (sum(told[one, False, says] for one in languages) for says in (True, False))
    assert suspected <= SUSPECTED * (suspected + others)
    assert len(some) == len({one.text for one in some}) >= 14


def test_no_phrase_was_both_chosen_with_and_held_out() -> None:
    for kind in ("prompt", "words"):
        parts = [{one.text for one in phrases(kind, part)} for part in ("train", "held_out")]
        assert parts[0].isdisjoint(parts[1])


def test_what_an_earlier_version_released_is_found() -> None:
    prompts = [
        "Apply the design from Image 1 to the can in Image 2",
        "(use uploaded face)",
        "identical to reference image",
        "the character from the photo",
        "参考这张图",
    ]
    assert [one for one in prompts if not needs_image(one)] == []
    assert asks_for_image("Need to upload a reference image")


GIVEN = """Turn this photo into a stamp
A snow globe of the [attached image], warm light
Transform the two people in the photo into clay figures
Edit the image: remove the cars
based on my selfie, a chibi sticker
I've uploaded a map, draw it as an old one
use the reference image for the colors
convierte la foto adjunta en acuarela
Mach aus dem hochgeladenen Bild ein Poster und aus mein Foto einen Rahmen
"Turn this photo into a stamp"
“Paint” the uploaded photo as a “fresco”
把这张照片变成贴纸
この写真を水彩画にして"""
NOT_GIVEN = """A photo of a red fox in the snow
Make the image look like a disposable camera shot
In this image a dog runs along a beach
a photo of a woman holding a framed picture of her mother
selfie uploaded to a social network in 2012, flash
Recreate the painting American Gothic with two cats
Redraw the picture of Dorian Gray as a comic
A character reference image of an elf, front and back
A polaroid on a table; in the photo, two friends laugh
A street artist with a sign that reads "my photo, your price"
a poster with the words 'turn this photo into gold'
一张自拍照，照片中清晰可见背景中的粉笔板
写真のようにリアルな猫
una foto de un gato en la nieve"""


@pytest.mark.parametrize(
    ("prompts", "expected"), [(GIVEN, True), (NOT_GIVEN, False)], ids=["given", "not given"]
)
def test_a_prompt_speaks_of_an_image_that_came_with_it(prompts: str, expected: bool) -> None:
    for prompt in prompts.split("\n"):
        assert needs_image(prompt) is expected, prompt


PLAIN = {
    "dpg_bench": ["prompts.tsv"],
    "dsg1k": ["prompts.tsv"],
    "geneval": ["generation_prompts.txt"],
    "partiprompts": ["PartiPrompts.tsv"],
}


def test_no_prompt_of_a_text_to_image_set_speaks_of_an_image(test_data: Path) -> None:
    """More than 4,000 prompts that were written for models without eyes."""
    for folder, names in PLAIN.items():
        for name in names:
            lines = (test_data / "prompts" / folder / name).read_text("utf-8").splitlines()
            assert [line for line in lines if needs_image(line)] == []


OPTIONAL = ("可选", "（可选")  # an image may be given, and need not


@pytest.mark.parametrize("column", ["prompt", "prompt_en"])
def test_prompts_that_were_posted_with_an_image_are_known(column: str, test_data: Path) -> None:
    """Who collected them says which of them need an image."""
    file = test_data / "posts" / "gpt4o_prompt_posts" / "cases.json"
    told = Counter[tuple[bool, bool]]()
    for case in json.loads(file.read_text("utf-8")):
        note = case["reference_note"].strip()
        told[bool(note) and not note.startswith(OPTIONAL), needs_image(case[column])] += 1
    assert told[True, True] >= FOUND * (told[True, True] + told[True, False])
    assert told[False, True] <= SUSPECTED * (told[False, True] + told[False, False])
    assert sum(told.values()) == 100


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a photo of a fox", True),
        ("一张狐狸的照片", True),
        ("a fox in the snow, watercolor", False),
        ("雪中的狐狸，水彩", False),
    ],
)
def test_whether_an_image_is_mentioned_at_all(prompt: str, expected: bool) -> None:
    assert mentions_image(prompt) is expected


def test_each_group_of_words_has_each_language_that_is_told_apart() -> None:
    """Italian is there besides; a group that one script alone needs is left out."""
    groups = yaml.safe_load(WORDS.read_text("utf-8"))
    for group in ("image", "who", "sent", "use", "edit", "keep", "match", "upload", "need"):
        assert set(groups[group]) >= LANGUAGES, group


@pytest.mark.parametrize("piece", ["image 1 ", "use image ", "\n", "参考这张图", '"', "a."])
def test_a_very_long_text_takes_no_longer_than_a_long_one(piece: str) -> None:
    started = time.thread_time()
    needs_image(piece * 200_000)
    asks_for_image(piece * 200_000)
    assert time.thread_time() - started < 3
