"""Kinds and tasks by plain rules, on invented prompts and on published sets of prompts."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from echo_hf.engines.rules.verdicts import kind_and_task
from echo_hf.engines.rules.words import Reading, names_of

NAMES = names_of(
    {
        "name": "Lumen Image",
        "developer": "Northlight",
        "aliases": [],
        "others": ["Paintbox"],
        "chat_window": None,
    }
)


def answer(
    prompt: str, given: int = 0, quality: str = "Benchmark", outputs: int = 1
) -> tuple[str | None, str | None]:
    """The kind and the task of a prompt with so many input pictures."""
    inputs = {"quality": quality, "inputs": given, "outputs": outputs}
    return kind_and_task(Reading(prompt, NAMES), inputs)


@pytest.mark.parametrize(
    "prompt",
    [
        "A heron on a jetty at dawn, loose watercolour",
        "A flat poster style picture of balloons, no text",
        '{"subject": "a snail", "style": "felt", "text": null}',
        "Un zorro dormido en la nieve, luz suave",
        "Ein Leuchtturm im Sturm, Ölgemälde",
        "一只在窗台上睡觉的猫，水彩",
        "夜の水族館、静かな光",
    ],
)
def test_text_to_image(prompt: str) -> None:
    """A picture from words alone."""
    assert answer(prompt) == ("task", "text_to_image")


@pytest.mark.parametrize(
    "prompt",
    [
        "A bakery sign that says “GOOD CRUST”, brass letters",
        "A receipt from a shop that sells weather",
        "Menu of a café on the moon, five dishes with prices",
        "A mug with the word MONDAY in small capitals",
        '{"subject": "a tin of tea", "label": {"text": "Dusk No. 4"}}',
        'A shelf with three jars labelled "salt", "sand" and "stars"',
        "Cartel de una verbena con el texto “HASTA LAS TRES”",
        "Une affiche de cinéma, le titre « LA MARÉE » en haut",
        "Ein Plakat für ein Straßenfest mit der Aufschrift „Alle Mann“",
        "Um cartaz de feira com o texto “FRUTA BOA”",
        "Una locandina con la scritta “PANE E SALE”",
        "一张咖啡店菜单，手写字体",
        "「本日休業」と書かれた木の看板",
    ],
)
def test_text_rendering(prompt: str) -> None:
    """Words that must be readable are a main part of the picture."""
    assert answer(prompt) == ("task", "text_rendering")


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        ("Put a paper crown on this dog", 1),
        ("remove the bin on the left", 1),
        ("Same person, now in a rowing boat", 1),
        ("Replace the sky in this photo with a starry one, keep the rest the same", 0),
        ("Quita a la gente del fondo de esta foto", 1),
        ("Entferne das Auto auf diesem Foto", 0),
        ("把这张照片的背景换成海边", 1),
        ("この写真の背景を森に変えてください", 1),
    ],
)
def test_edit(prompt: str, given: int) -> None:
    """A given picture changed; one that is only spoken of is given too."""
    assert answer(prompt, given) == ("task", "edit")


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        ("Turn this photo into a linocut", 1),
        ("my cat as a stained glass window", 1),
        ("Redraw the picture in the style of an old railway poster", 0),
        ("Convierte esta foto en una acuarela", 1),
        ("Transforme cette photo en aquarelle", 1),
        ("Verwandle dieses Foto in ein Ölgemälde", 1),
        ("Transforme esta foto em aquarela", 1),
        ("Trasforma questa foto in un acquerello", 1),
        ("把这张照片变成像素风格", 1),
        ("この写真を水彩イラストにして", 1),
    ],
)
def test_style_transfer(prompt: str, given: int) -> None:
    """A given picture in another style or medium."""
    assert answer(prompt, given) == ("task", "style_transfer")


@pytest.mark.parametrize(
    "prompt",
    [
        "Turn my napkin sketch into a finished painting",
        "Render this floor plan as a bright flat",
        "my daughter's drawing, but as a real animal",
        "Convierte este boceto en una ilustración acabada",
        "Mach aus dieser Skizze ein fertiges Bild",
        "把这张草图画成完整的插画",
        "この線画に色を塗ってください",
    ],
)
def test_sketch_to_image(prompt: str) -> None:
    """A finished picture of a given drawing."""
    assert answer(prompt, 1) == ("task", "sketch_to_image")


@pytest.mark.parametrize(
    "prompt",
    [
        "Combine these two photos into one picture",
        "Put the chair from the first image into the room of the second image",
        "a group portrait",
        "Combina estas dos fotos",
        "把两张照片合成一张",
        "1枚目の猫と2枚目の部屋を合成して",
    ],
)
def test_composition(prompt: str) -> None:
    """One picture made of two given ones."""
    assert answer(prompt, 2) == ("task", "composition")


def test_composition_of_pictures_only_spoken_of() -> None:
    """Two pictures that are spoken of are given, though none is shown."""
    assert answer("merge these two photos into one")[1] == "composition"


def test_one_picture_each_is_no_composition() -> None:
    """A prompt about one picture that two people tried with their own stays what it is."""
    assert answer("Turn this photo into a linocut", 2) == ("task", "style_transfer")


@pytest.mark.parametrize(
    "prompt",
    [
        "Restore this old photo and remove the scratches",
        "unblur this picture please",
        "Restaura esta foto antigua",
        "Restaure cette vieille photo",
        "Restauriere dieses alte Foto",
        "修复这张老照片",
        "この古い写真を復元してください",
    ],
)
def test_restoration(prompt: str) -> None:
    """A damaged or poor picture repaired."""
    assert answer(prompt, 1) == ("task", "restoration")


@pytest.mark.parametrize(
    "prompt",
    [
        "Draw yourself",
        "Paint me a picture of what you think you look like",
        "What is your favourite colour? Answer with a picture.",
        "Draw something you cannot draw",
        "Make whatever you want",
        "A wine glass filled to the very brim",
        "An image that no one has ever imagined",
        "Dibújate a ti mismo",
        "Dessine-toi",
        "Zeichne dich selbst",
        "Desenhe você mesmo",
        "Disegna te stesso",
        "画你自己",
        "あなた自身を描いて",
    ],
)
def test_probes(prompt: str) -> None:
    """What asks a model about itself, or for its limits, explores the model."""
    assert answer(prompt)[0] == "probe"


def test_a_long_prompt_is_no_probe() -> None:
    """Somebody who describes a picture at length wants it, whatever is said on the way."""
    described = "a lighthouse keeper in oilskins on a wet rock, seen from a boat, " * 6
    assert answer(f"Draw yourself as {described}")[0] == "task"


@pytest.mark.parametrize(
    "prompt",
    [
        "does the order of the words matter?",
        "two weeks in: text is solved, faces are not",
        "why is it always a lamp",
        "how do you feel about all this?",
        "still the best share of the month",
    ],
)
def test_no_picture_is_asked_for(prompt: str) -> None:
    """Comments and questions have neither kind nor task."""
    assert answer(prompt, quality="Analysis", outputs=0) == (None, None)


def test_partial_prompts_ask_for_pictures() -> None:
    """An order for a picture is a task also where it was not good enough for the benchmark."""
    assert answer("Draw a fox, cartoon style", quality="Analysis") == ("task", "text_to_image")


def test_published_instructions_are_edits(test_data: Path) -> None:
    """Every instruction of MagicBrush changes one given picture."""
    lines = (test_data / "prompts/magicbrush_imagenhub/instructions.tsv").read_text("utf-8")
    rows = list(csv.DictReader(lines.splitlines(), delimiter="\t"))
    tasks = Counter(answer(row["text"], 1)[1] for row in rows)
    assert tasks == {"edit": 179}


def test_published_captions_need_no_picture(test_data: Path) -> None:
    """Every prompt of GenEval describes a picture without words in it."""
    text = (test_data / "prompts/geneval/generation_prompts.txt").read_text("utf-8")
    assert {answer(line) for line in text.splitlines()} == {("task", "text_to_image")}
