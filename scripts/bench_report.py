"""Measure how fast a report is built against decoding alone, and how fast its page opens.

    python scripts/bench_report.py [--samples 1000] [--systems 8] [--side 768] [--keep FOLDER]

Samples, images, ratings and explanations are invented; half of the samples have an input. All
images are decoded alone, in as many threads as the report uses, then the report is written; both
in one run, so that what counts is the ratio. What is measured is work, the time of all processors
together, so that a busy machine does not count. Where Playwright is installed, its Chromium, or the
one that --chromium names, opens the page from the disk.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from report_parts.invented import invented
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.metrics.image_features import in_order
from echo_hf.report.report import Report, write_report
from echo_hf.report.run_data import RunData


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
    for _ in in_order(lambda one: load_rgb(data.images.open(one)).size, data.digests):
        pass
    decoding = time.process_time() - begun
    before, begun = _peak(), time.process_time()
    written = write_report(data, folder)
    building = time.process_time() - begun
    size = written.path.stat().st_size / 1e6
    opened = _opened(written, chromium) if find_spec("playwright") else None
    return Measure(len(data.digests), decoding, building, _peak() - before, size, opened)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _opened(written: Report, chromium: str | None) -> float:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        begun = time.perf_counter()
        page.goto(written.path.resolve().as_uri(), wait_until="load")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--side", type=int, default=768)
    parser.add_argument("--keep", type=Path, help="Keep the run here.")
    parser.add_argument("--chromium", help="Path of a Chromium, in place of Playwright's.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        images = ImageStore(root / "pictures")
        data = invented(given.samples, given.systems, given.side, images)
        found = measured(data, root / "report", given.chromium)
    Console().print(shown(found))


if __name__ == "__main__":
    main()
