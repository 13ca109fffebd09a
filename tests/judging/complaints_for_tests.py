"""A release of drawn edits: outputs that people called yellow, misspelled or moved, and praised."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from PIL import Image, ImageDraw, ImageFont

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import SAMPLES
from tests.systems.runs_for_tests import TARGET, Row, sample

TINT, SPELLING, LAYOUT = "yellow tint", "misspelled words", "moved layout"
PRAISED = ""
WIDTH, HEIGHT, CELL, BAND = 288, 176, 48, 48
WORDS = (
    *("MORNING FERRY", "HARBOUR LIGHTS", "WINTER GARDEN", "SILVER BRIDGE", "COPPER KETTLE"),
    *("GOLDEN ORCHARD", "MIDNIGHT TRAIN", "SUMMER PARADE"),
)


def misspell(text: str, rng: np.random.Generator) -> str:
    """The same letters, so that as much is inked, with those within each word in another order."""
    words = []
    for word in text.split():
        inner = list(word[1:-1])
        while "".join(inner) == word[1:-1]:
            rng.shuffle(inner)
        words.append(f"{word[0]}{''.join(inner)}{word[-1]}")
    return " ".join(words)


def draw(seed: int, text: str, fault: str = PRAISED, attempt: int = 0) -> bytes:
    """A board of colored squares below a line of text: the scene of a seed, with its own noise."""
    scene, rng = np.random.default_rng(seed), np.random.default_rng([seed, attempt, 1])
    cells = np.array([*np.ndindex(WIDTH // CELL, (HEIGHT - BAND) // CELL)])
    places = scene.permutation(cells)[:6]
    colors = scene.integers(30, 220, (6, 3))
    if fault == LAYOUT:
        places = rng.permutation(cells)[:6]
    image = Image.new("RGB", (WIDTH, HEIGHT), (205, 205, 205))
    pen = ImageDraw.Draw(image)
    for (column, row), color in zip(places.tolist(), colors.tolist(), strict=True):
        left, top = column * CELL, BAND + row * CELL
        pen.rectangle((left, top, left + CELL - 1, top + CELL - 1), fill=tuple(color))
    shown = misspell(text, rng) if fault == SPELLING else text
    pen.text((10, 8), shown, fill=(20, 20, 20), font=ImageFont.load_default(28))
    pixels = np.asarray(image, np.float64)
    if attempt:
        pixels = pixels * rng.uniform(0.94, 1.06, 3)  # no system gives the very same colors back
        pixels = pixels + rng.normal(0, rng.uniform(5, 60), pixels.shape)
    if fault == TINT:
        pixels = pixels * np.array([1.0, 0.97, 0.7])
    sink = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(sink, "PNG")
    return sink.getvalue()


def comment(fault: str) -> Row:
    fields = dict.fromkeys(SAMPLES.features["community_feedback"].feature)
    if fault == PRAISED:
        return {**fields, "feedback": "just as I asked", "verdict": "success"}
    return {**fields, "feedback": f"look: {fault}", "verdict": "failure", "keyword": fault}


def write_benchmark(folder: Path, threads: Mapping[str, int], **values: Any) -> Path:
    """A sample a thread, by fault; every third one shows two outputs."""
    images, rows, seed = ImageStore(folder / "pictures"), list[Row](), 100
    for fault, count in threads.items():
        for number in range(count):
            seed += 1
            text = WORDS[seed % len(WORDS)]
            attempts = range(1, 3 if number % 3 == 0 else 2)
            outputs = [images.put(draw(seed, text, fault, attempt)) for attempt in attempts]
            fields = {
                "prompt": f'Repaint board {seed} and keep the sign "{text}"',
                "post_urls": [f"https://posts.example/{seed}"],
                "community_feedback": [comment(fault)],
                "input_images": [images.put(draw(seed, text))],
                "output_images": outputs,
            }
            rows.append(sample(f"s{seed}", **fields, **values))
    columns = {name: [row[name] for row in rows] for name in SAMPLES.columns}
    dataset = Dataset.from_dict(columns, features=SAMPLES.features)
    configs = {"image_to_image": dataset, "analysis": dataset}
    facts = ReleaseFacts(name="boards", target=TARGET)
    return write_release(folder / "release", configs, images, facts).path
