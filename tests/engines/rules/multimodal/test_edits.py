"""Which prompts need a picture, and how its result differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.engines.rules.images import read_edit


@pytest.mark.parametrize(
    ("prompt", "inputs", "change"),
    [
        ("Turn this photo into a night scene with a full moon", 1, "darken"),
        ("Make this night photo a sunny day", 1, "brighten"),
        ("Make this sketch a finished watercolour painting", 1, "from_sketch"),
        ("Turn this photo into a pencil sketch", 1, "to_sketch"),
        ("Restore this damaged photo and add natural colours", 1, "add_colour"),
        ("Colorize this black and white photo", 1, "add_colour"),
        ("Make this photo black and white", 1, "take_colour"),
        ("Remove the fence", 1, None),
        ("Put the mug from the first picture on the desk in the second picture", 2, None),
        ("Combine these three photos into one poster", 3, None),
        ("この線画のロボットに色を塗ってください", 1, "from_sketch"),
        ("把这两张照片合成一张海报", 2, None),
        ("Quita el fondo de esta foto", 1, None),
        ("Fais de cette photo une affiche", 1, None),
        ("Verwandle dieses Foto in ein Ölgemälde", 1, None),
        ("A night scene with a photo on the wall", 0, None),
        ("In this image we can see a red fox", 0, None),
        ("Add-ons for a camera, flat vector icons", 1, None),
        ("一盏柠檬形状的台灯，放在木桌上", 0, None),
    ],
)
def test_a_prompt_tells_what_it_needs(prompt: str, inputs: int, change: str | None) -> None:
    """How many pictures go in, and what a look at them can tell."""
    edit = read_edit(prompt)

    assert (edit.inputs, edit.inputs and edit.change) == (inputs, edit.inputs and change)


def test_real_prompts(test_data: Path) -> None:
    """Shares of prompts that are told to need a picture, where it is known whether they do."""
    edits = _texts(test_data / "prompts/magicbrush_imagenhub/instructions.tsv")
    plain = [
        text
        for name in ("partiprompts/PartiPrompts.tsv", "dpg_bench/prompts.tsv", "dsg1k/prompts.tsv")
        for text in _texts(test_data / "prompts" / name)
    ]
    shared = json.loads((test_data / "posts/gpt4o_prompt_posts/cases.json").read_text())
    needing = [case for case in shared if case["reference_note_en"].strip()]

    assert _share(edits) > 0.84
    assert _share(plain) < 0.01
    for language in ("prompt", "prompt_en"):
        assert _share([case[language] for case in needing]) > 0.84
        assert _share([case[language] for case in shared if case not in needing]) < 0.04


def _texts(file: Path) -> list[str]:
    column = 0 if file.name.startswith("Parti") else 1
    return [line.split("\t")[column] for line in file.read_text().splitlines()[1:]]


def _share(prompts: list[str]) -> float:
    return sum(read_edit(one).inputs > 0 for one in prompts) / len(prompts)
