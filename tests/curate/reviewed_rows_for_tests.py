"""Invented rows of samples with images, and what a reviewer changes of them."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.curate.decisions import Decision, ReviewDecisions, sample_images
from echo_hf.images.store import ImageStore
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES

Row = dict[str, Any]
A, B, C, D = (letter * 64 for letter in "abcd")
SHOT = "e" * 64
PROMPT = "a fox in the snow, oil paint"


def entry(digest: str, role: str, **values: Any) -> Row:
    names = ("sha256", "role", "post_url", "url", "of", "box", "signature")
    return {**dict.fromkeys(names), "sha256": digest, "role": role, "post_url": "u", **values}


def row(name: str = "one", **values: Any) -> Row:
    plain = {
        "id": name,
        "post_urls": ["https://x.com/i/status/1"],
        "prompt": PROMPT,
        "prompt_modified": False,
        "prompt_fill_blank": False,
        "quality": "Benchmark",
        "community_feedback": [],
        "input_images": [A],
        "output_images": [B],
        "is_screenshot": False,
        "input_bboxs": [],
        "output_bboxs": [],
        "picture_sources": [entry(A, "input"), entry(B, "output")],
        "review": [],
        "doubts": [],
        "provenance": '{"roles": {"digest": "d"}}',
    }
    made = {**dict.fromkeys(SAMPLES.columns), **plain, **values}
    made["sample_digest"] = sample_digest(made["prompt"], made["input_images"])
    return made


def cut_row(**values: Any) -> Row:
    sources = [
        entry(A, "input", of=SHOT, box=[0, 0, 10, 10]),
        entry(B, "output", of=SHOT, box=[10, 0, 20, 10]),
        entry(C, "output"),
        entry(SHOT, "screenshot", url="https://pictures.example/shot.png"),
    ]
    plain = {
        "output_images": [B, C],
        "screenshot": SHOT,
        "is_screenshot": True,
        "input_bboxs": [[0.0, 0.0, 10.0, 10.0]],
        "output_bboxs": [[10.0, 0.0, 20.0, 10.0]],
        "picture_sources": sources,
    }
    return row(**{**plain, **values})


def decision(sample: Row, decided: str = "keep", **values: Any) -> Decision:
    seen = {"id": sample["id"], "sample_digest": sample["sample_digest"]}
    seen |= {"reasons": sample["review"], "pictures": sample_images(sample), "decision": decided}
    return Decision.model_validate({**seen, **values})


def after(*made: Decision) -> ReviewDecisions:
    return ReviewDecisions({one.id: one for one in made}, (), made)


def drawn(store: ImageStore, width: int = 40, height: int = 20) -> str:
    image = Image.new("RGB", (width, height))
    image.putdata([(x * 6, y * 12, x ^ y) for y in range(height) for x in range(width)])
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return store.put(buffer.getvalue())


def part(store: ImageStore, digest: str, box: tuple[int, int, int, int]) -> bytes:
    with Image.open(io.BytesIO(store.open(digest))) as image:
        return image.crop(box).tobytes()


def pixels(store: ImageStore, digest: str) -> bytes:
    with Image.open(io.BytesIO(store.open(digest))) as image:
        return image.tobytes()


def files(store: Path) -> set[str]:
    return {hashlib.sha256(one.read_bytes()).hexdigest() for one in store.glob("*/*")}
