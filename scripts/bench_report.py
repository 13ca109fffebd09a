"""Measure how fast a report is built against decoding alone, and how fast its page opens.

    python scripts/bench_report.py [--samples 1000] [--systems 8] [--side 768] [--keep FOLDER]
    python scripts/bench_report.py --chromium [PATH]

Samples, images, ratings and explanations are invented; half of the samples have an input. All
images are decoded alone, in as many threads as the report uses, then the report is written; both
in one run, so that what counts is the ratio. What is measured is work, the time of all processors
together, so that a busy machine does not count. With --chromium, Playwright opens the page from
the disk, in the Chromium of that path or in its own.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.config.sections import Target
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import score_win_rates
from echo_hf.metrics.image_features import map_in_order
from echo_hf.report.report import Report, write_report
from echo_hf.report.run_data import ReportSample, RunData, SavedOutput, SavedRating
from echo_hf.scores.rating_table import read_ratings


@dataclass(frozen=True)
class Measure:
    images: int
    decoding: float
    building: float
    megabytes: float
    page: float
    opened: float | None


def measured(data: RunData, folder: Path, chromium: str | None) -> Measure:
    """Decodes everything, writes the report, and opens it."""
    begun = time.process_time()
    for _ in map_in_order(lambda one: load_rgb(data.images.open(one)).size, data.digests):
        pass
    decoding = time.process_time() - begun
    before, begun = _peak(), time.process_time()
    written = write_report(data, folder)
    building = time.process_time() - begun
    size = written.path.stat().st_size / 1e6
    opened = None if chromium is None else _opened(written, chromium)
    return Measure(len(data.digests), decoding, building, _peak() - before, size, opened)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _opened(written: Report, chromium: str) -> float:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium or None, args=["--no-sandbox"]
        )
        page = browser.new_page()
        begun = time.perf_counter()
        page.goto(f"{written.path.resolve().as_uri()}#gallery", wait_until="load")
        page.wait_for_selector("#samples article")
        taken = time.perf_counter() - begun
        browser.close()
    return taken


def shown(found: Measure) -> Shown:
    table = Shown("", "figure", box=None)
    table.add_row("pictures", f"{found.images:,}")
    table.add_row("decoding alone", f"{1000 * found.decoding / found.images:.1f} ms an image")
    table.add_row("report", f"{1000 * found.building / found.images:.1f} ms an image")
    table.add_row("share of the rate of decoding", f"{found.decoding / found.building:.2f}")
    table.add_row("more memory than decoding", f"{found.megabytes:,.0f} MB")
    table.add_row("page", f"{found.page:.1f} MB")
    if found.opened is not None:
        table.add_row("opens in", f"{found.opened:.2f} s")
    return table


JUDGES = ("mira", "orin", "tess")
TASKS = ("edit", "style_transfer", "composition", "restoration", "text_rendering")
WORDS = [
    "clay",
    "cat",
    "rides",
    "over",
    "the",
    "quiet",
    "lake",
    "with",
    "paper",
    "boats",
    "at",
    "dawn",
]
FAILS = 0.04
TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")


def drawn(number: int, side: int) -> bytes:
    """An image with soft shapes and the noise of a camera, as a JPEG."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(0, 255, (6, 6, 3), np.uint8))
    soft = np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), np.int16)
    noise = rng.integers(-6, 7, (side, side, 1), np.int16)
    sink = io.BytesIO()
    pixels = np.clip(soft + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(sink, "JPEG", quality=88)
    return sink.getvalue()


def invented(samples: int, systems: int, side: int, images: ImageStore) -> RunData:
    rng = random.Random(0)  # noqa: S311
    names = [f"system_{chr(ord('a') + at)}" for at in range(systems)]
    count = samples * (systems + 1)
    digests = iter(list(map_in_order(lambda at: images.put(drawn(at, side)), range(count))))
    made = [_sample(at, rng, digests) for at in range(samples)]
    outputs = {(one.id, name): _output(rng, digests) for one in made for name in names}
    ratings = {one.id: tuple(_ratings(one.id, names, outputs, rng)) for one in made}
    return RunData(
        name="invented",
        title=TARGET.name,
        target=TARGET,
        results=_results(made, names, outputs, ratings),
        stale=False,
        agreement=None,
        failures={"tess": ("noise", "blank")},
        analysis=None,
        samples=tuple(made),
        outputs=outputs,
        ratings=ratings,
        systems=tuple(names),
        images=images,
        settings={},
    )


def _sample(at: int, rng: random.Random, digests: Iterator[str]) -> ReportSample:
    is_edit = at % 2 == 0
    text = "too yellow again " * rng.randint(1, 8)
    feedback = {"text": text, "verdict": "failure", "keyword": "yellow tint"}
    return ReportSample(
        id=f"sample{at:04}",
        split="image_to_image" if is_edit else "text_to_image",
        prompt=" ".join(rng.choices(WORDS, k=rng.randint(8, 120))),
        task=rng.choice(TASKS),
        inputs=(next(digests),) if is_edit else (),
        urls=(f"https://example.org/{at}",),
        feedback=(feedback,) if at % 3 == 0 else (),
        flags=("personal_data",) if at % 97 == 0 else (),
    )


def _output(rng: random.Random, digests: Iterator[str]) -> SavedOutput:
    if rng.random() < FAILS:
        return SavedOutput(None, "refused", "output, moderation_blocked", "I cannot draw this.")
    return SavedOutput(next(digests), "ok")


def _ratings(
    sample: str, names: list[str], outputs: dict[tuple[str, str], SavedOutput], rng: random.Random
) -> Iterator[SavedRating]:
    hard = rng.random() * 3
    for judge in JUDGES:
        for at, name in enumerate(names):
            if outputs[sample, name].image:
                value = min(10, max(1, round(9 - hard - at * 0.6 + rng.gauss(0, 1.6))))
                words = " ".join(rng.choices(WORDS, k=rng.randint(15, 60)))
                yield SavedRating(name, judge, "overall", 0, value, words, "ok")


def _results(
    samples: list[ReportSample],
    names: list[str],
    outputs: dict[tuple[str, str], SavedOutput],
    ratings: dict[str, tuple[SavedRating, ...]],
) -> SavedResults:
    """Win rates as they are computed, and metrics out of thin air."""
    details, rng = {}, np.random.default_rng(0)
    for split in ("image_to_image", "text_to_image"):
        ids = [one.id for one in samples if one.split == split]
        rows = [
            {"sample_id": name, "system": one.system, "judge": one.judge, "rating": one.value}
            for name in ids
            for one in ratings[name]
        ]
        listed = [
            {"sample_id": name, "system": system, "outcome": outputs[name, system].outcome}
            for name in ids
            for system in names
        ]
        rated = read_ratings(pa.Table.from_pylist(rows), pa.Table.from_pylist(listed))
        found = score_win_rates(split, rated, "corrected", 200, {})
        metrics = ("color_shift", "face_identity", "structure_distance")
        if split == "text_to_image":
            metrics = ("text_rendering",)
        details[split] = {
            "samples": len(ids),
            "win_rate": found.details,
            "metrics": [
                _metric(metric, system, ids, rng) for metric in metrics for system in names
            ],
        }
    benchmark = {"name": "invented", "digests": dict.fromkeys(details, "0" * 64)}
    return SavedResults.model_validate(
        {"benchmark": benchmark, "protocol": "corrected", "details": details}
    )


def _metric(
    metric: str, system: str, ids: list[str], rng: np.random.Generator
) -> dict[str, object]:
    values = rng.beta(2 + ord(system[-1]) % 5, 4, len(ids)).tolist()
    mean = float(np.mean(values))
    result = {
        "value": mean,
        "interval": (mean - 0.02, mean + 0.02),
        "per_sample": values,
        "n": len(ids),
        "coverage": 1.0,
        "reasons": [None] * len(ids),
        "definition": {"metric": metric},
    }
    return {"metric": metric, "system": system, "samples": ids, "result": result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--side", type=int, default=768)
    parser.add_argument("--keep", type=Path, help="Keep the run here.")
    parser.add_argument("--chromium", nargs="?", const="", help="Open the page, in this Chromium.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        images = ImageStore(root / "pictures")
        data = invented(given.samples, given.systems, given.side, images)
        found = measured(data, root / "report", given.chromium)
    Console().print(shown(found))


if __name__ == "__main__":
    main()
