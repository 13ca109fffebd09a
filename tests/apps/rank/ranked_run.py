"""A run whose systems each draw in a color of their own, so that a browser can tell who is who."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from echo_hf.tables import OUTPUTS
from tests.judging.run_for_tests import output, put, run, stripes, write

COLORS: Mapping[str, tuple[int, int, int]] = {
    "zorblatt": (200, 0, 0),
    "quixel": (0, 200, 0),
    "mirrorfax": (0, 0, 200),
    "plumbago": (200, 200, 0),
    "tarnwick": (200, 0, 200),
    "oxlip": (0, 200, 200),
    "vesperine": (90, 90, 90),
    "drumlin": (240, 140, 40),
}
SYSTEMS = tuple(COLORS)
HOSTILE = "<script>window.pwned=1</script><img src=x onerror=alert(1)>${alert(2)}{{7*7}}\"'`"
EDITS = {"edit0": [stripes((1, 2, 3), (9, 9, 9))], "edit1": [stripes((7, 7, 7))]}
WORDS = ("word0", "word1", HOSTILE)


def drawing(system: str) -> bytes:
    told = PngInfo()
    told.add_text("Software", system)
    sink = io.BytesIO()
    Image.new("RGB", (60, 40), COLORS[system]).save(sink, "PNG", pnginfo=told)
    return sink.getvalue()


def ranked_run(
    folder: Path,
    *,
    edits: Mapping[str, list[bytes]] = EDITS,
    words: tuple[str, ...] = WORDS,
    systems: tuple[str, ...] = SYSTEMS,
) -> Path:
    config = run(folder, edits, words)
    rows = [
        output(name, system, inputs, image=put(folder, drawing(system)))
        for name, inputs in [*edits.items(), *((word, ()) for word in words)]
        for system in systems
    ]
    write(folder, OUTPUTS, rows)
    return config
