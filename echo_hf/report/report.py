"""Write the report of a run into its folder (`echo-hf report`)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from echo_hf._infra.atomic import held, replaced_whole
from echo_hf._infra.text import escaped, in_place, table_row
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import RunError
from echo_hf.judging.board import judge_names
from echo_hf.metrics import BETTER, HIGHER
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.markup import (
    NOTHING,
    count,
    interval,
    is_web,
    number,
    printable,
    printed_bars,
    printed_boxes,
    rendered,
    share,
    titled,
)
from echo_hf.report.run_data import FOLDER as THUMBNAILS
from echo_hf.report.run_data import (
    MeanColors,
    Output,
    RunData,
    Thumbnails,
    judges_of,
    looked_at,
    read_run_data,
)
from echo_hf.report.sections import INPUTS, sections

FOLDER, PAGE, BOARD, FIGURES = "report", "index.html", "board.md", "figures"
HUB = "eval.yaml"
# Who opens the folder in a window may leave a note there without knowing.
WINDOWS = (".DS_Store", "Thumbs.db", "desktop.ini")
NAMES = (PAGE, BOARD, FIGURES, HUB, THUMBNAILS, *WINDOWS)
LOCK = ".report.lock"
MOST_IN_ONE_FILE = 200
ASSETS = Path(__file__).parent / "assets"
# Images lie beside the page, which a browser may read from a disk or a server.
POLICY = (
    "default-src 'none'; img-src 'self' file: data:; style-src 'sha256-{style}'; "
    "script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# What would end the script element that holds the data, or a line of a script.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Report:
    path: Path
    samples: int
    images: int
    problems: Mapping[str, str]


def report(
    config: Evaluated | Path | str, *, runs: Path | str | None = None, single_file: bool = False
) -> Report:
    """Writes the report of a run: `report/` in its folder, in place of the one before."""
    data = read_run_data(config, runs)
    root = data.images.root.parent
    busy = RunError(
        f"another process writes the report of {str(root)!r}: wait for it, and run `echo-hf "
        "report` again"
    )
    with held(root / LOCK, busy):
        RunFolder(root).enter()
        return write_report(data, root / FOLDER, single_file=single_file)


def write_report(data: RunData, folder: Path, *, single_file: bool = False) -> Report:
    if single_file and len(data.samples) > MOST_IN_ONE_FILE:
        raise RunError(
            f"{count(len(data.samples))} samples in a single file: expected at most "
            f"{MOST_IN_ONE_FILE}; leave out --single-file, and pass on the folder"
        )
    with replaced_whole(folder, NAMES) as partial:
        wanted, colors = _colored(data), defaultdict[tuple[str, str], MeanColors](MeanColors)
        thumbnails, problems = {}, {}
        images = None if single_file else partial
        for digest, found in looked_at(data.digests, data.images, images, wanted):
            if isinstance(found, str):
                problems[digest] = found
                continue
            thumbnails[digest], counts = found
            if counts is not None:
                for key in wanted[digest]:
                    colors[key].add(counts)
        # A single file is passed on alone: nothing lies beside it.
        originals = None if single_file else relpath(data.images.root, folder)
        text = page(data, thumbnails, problems, colors, originals)
        (partial / PAGE).write_text(text, "utf-8")
        (partial / BOARD).write_text(board_markdown(data), "utf-8")
        if told := eval_entries(data):
            text = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=10_000)
            (partial / HUB).write_text(text, "utf-8")
        (partial / FIGURES).mkdir()
        for name, drawing in figures(data).items():
            (partial / FIGURES / f"{name}.svg").write_text(drawing, "utf-8")
    return Report(folder / PAGE, len(data.samples), len(thumbnails), problems)


def _colored(data: RunData) -> dict[str, list[tuple[str, str]]]:
    """Which mean colors an image counts in: those of samples with inputs."""
    wanted: dict[str, list[tuple[str, str]]] = {}
    for sample in data.samples:
        if sample.inputs:
            outputs = ((name, data.outputs.get((sample.id, name))) for name in data.systems)
            shown = [(digest, INPUTS) for digest in sample.inputs]
            shown += [(one.image, name) for name, one in outputs if one and one.image]
            for digest, who in shown:
                wanted.setdefault(digest, []).append((sample.split, who))
    return wanted


def page(
    data: RunData,
    thumbnails: Thumbnails,
    problems: Mapping[str, str],
    colors: Mapping[tuple[str, str], MeanColors],
    originals: str | None = None,
) -> str:
    """The page as a whole: a strict policy, its sections, its data and its script."""
    # They are our own, and the data cannot end its element.
    own = {
        "style": (ASSETS / "report.css").read_text("utf-8"),
        "script": (ASSETS / "report.js").read_text("utf-8"),
    }
    digests = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in own.items()
    }
    own["gallery"] = gallery_data(data, thumbnails, problems, originals)
    return rendered(
        "page.html.jinja",
        data=data,
        sections=sections(data, thumbnails, colors),
        policy=POLICY.format(**digests),
        **{name: Markup(text) for name, text in own.items()},  # noqa: S704
    )


def gallery_data(
    data: RunData, thumbnails: Thumbnails, problems: Mapping[str, str], originals: str | None = None
) -> str:
    """Every sample as JSON that a script element can hold; images stand once.

    `originals` is where the page finds the run's images: they are larger than its copies.
    """
    images = dict[str, int]()
    systems = {system: at for at, system in enumerate(data.systems)}

    def numbered(digests: Iterable[str]) -> list[int]:
        return [images.setdefault(digest, len(images)) for digest in digests]

    def shown(output: Output | None) -> dict[str, Any] | None:
        if output is None:
            return None
        (image,) = numbered([output.image]) if output.image else [None]
        known = {"outcome": output.outcome, "reason": output.reason, "text": output.text}
        if output.image and output.image in problems:
            known |= {"outcome": "cannot be shown", "reason": problems[output.image]}
        return {"image": image, **known}

    def pictured(digest: str) -> dict[str, Any] | None:
        if (thumbnail := thumbnails.get(digest)) is None:
            return None
        original = {"original": f"{digest[:2]}/{digest}"} if originals else {}
        return vars(thumbnail) | original

    samples = [
        {
            "id": sample.id,
            "split": sample.split,
            "prompt": sample.prompt,
            "task": sample.task,
            "inputs": numbered(sample.inputs),
            "posted": numbered(sample.posted),
            "urls": [url for url in sample.urls if is_web(url)],
            "feedback": sample.feedback,
            "flags": sample.flags,
            "outputs": [shown(data.outputs.get((sample.id, system))) for system in data.systems],
            "ratings": [
                {**vars(one), "system": systems.get(one.system)}
                for one in data.ratings.get(sample.id, ())
            ],
        }
        for sample in data.samples
    ]
    names = {name for one in data.samples for name in (one.split, one.task) if name}
    found = {
        "systems": data.systems,
        "failed": data.failures,
        "names": {name: titled(name) for name in sorted(names)},
        "samples": samples,
        "originals": originals,
        "pictures": [pictured(digest) for digest in images],
    }
    text = json.dumps(_shown(found), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(UNSAFE)


def _shown(value: Any) -> Any:
    """The same data with every text as a page can show it."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(name): _shown(one) for name, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def figures(data: RunData) -> dict[str, str]:
    found: dict[str, str] = {}
    for split in data.splits:
        rates = data.results.rates(split)
        if rates is not None:
            board = data.results.board(split)
            bars = [(row.system, row.value, row.interval) for row in board if row.value is not None]
            title = f"{titled(split)}: win rate"
            found[f"win_rate_{split}"] = printed_bars(title, bars, _judged(data, rates.per_judge))
        for metric, some in groupby(data.results.details[split].metrics, attrgetter("metric")):
            rows = list(some)
            values = {one.system: one.values for one in rows if one.values}
            if boxes := [(name, values[name]) for name in data.systems if name in values]:
                better = "higher" if BETTER.get(metric, HIGHER) == HIGHER else "lower"
                title = f"{titled(split)}: {titled(metric).lower()}, {better} is better"
                warned = _judged(data, judges_of(rows))
                found[f"{metric}_{split}"] = printed_boxes(title, boxes, warned)
    return found


def _judged(data: RunData, judges: Iterable[str]) -> str:
    named = ", ".join(judge_names(filter(data.failures.get, judges), data.failures))
    return f"judged by {named}" if named else ""


def eval_entries(data: RunData) -> dict[str, list[dict[str, Any]]]:
    """The win rates of each system, for whoever publishes it; none of a benchmark elsewhere."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset, at, revision = (data.results.benchmark.on_hub or "").rpartition("@")
    found: dict[str, list[dict[str, Any]]] = {}
    for system in data.systems if at else ():
        entries = []
        for split in data.splits:
            rows = data.results.board(split)
            row = next((one for one in rows if one.system == system), None)
            if row is None or row.value is None:
                continue
            rates = data.results.rates(split)
            models = data.results.judge_models
            judges = judge_names(rates.per_judge if rates else (), data.failures, models)
            place = [f"in place of {row.in_place_of}"] if row.in_place_of else []
            ends = " to ".join(number(end) for end in row.interval or ())
            others = ", ".join(one.system for one in rows if one != row)
            notes = (
                f"win rate from 0 to 1 against {others}",
                f"judged by {', '.join(judges)}",
                f"protocol {data.results.protocol}",
                f"95 % interval {ends}" if ends else "no interval",
                f"revision {revision}",
                *place,
            )
            entry = EvalResultEntry(
                dataset_id=dataset,
                task_id=split,
                value=round(row.value, 4),
                dataset_revision=revision if COMMIT.fullmatch(revision) else None,
                notes=printable("; ".join(notes)),
            )
            entries.append(entry)
        if entries:
            found[printable(system)] = eval_result_entries_to_yaml(entries)
    return found


def board_markdown(data: RunData) -> str:
    lines = []
    for split in data.splits:
        rates = data.results.rates(split)
        lines.append(f"### {titled(split)}\n")
        if rates is None:
            lines.append("No judge has rated an output of this split.\n")
            continue
        lines.append("| system | win rate | 95 % | tier | coverage |\n|---|---:|---:|---:|---:|")
        for row in data.results.board(split):
            tier = NOTHING if row.tier is None else str(row.tier)
            cells = (number(row.value), interval(row.interval), tier, share(row.coverage))
            lines.append(table_row(_cell(in_place(row.system, row.in_place_of)), *cells))
        named = judge_names(rates.per_judge, data.failures, data.results.judge_models)
        judges = ", ".join(map(_cell, named))
        lines.append(f"\nProtocol {data.results.protocol}, judged by {judges}.\n")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return escaped(printable(text))
