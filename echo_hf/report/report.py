"""Write the report of a run into its folder (`echo-hf report`)."""

from __future__ import annotations

import base64
import hashlib
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

from echo_hf._infra.atomic import lock_file, replace_folder
from echo_hf._infra.text import escape_markdown, format_table_row, name_stand_in
from echo_hf.errors import RunError
from echo_hf.judging.board import judge_names
from echo_hf.judging.results import collect_judges
from echo_hf.metrics.base import get_better
from echo_hf.report.markup import (
    NO_VALUE,
    count,
    draw_bars,
    draw_boxes,
    interval,
    is_web,
    make_printable,
    number,
    read_asset,
    render,
    share,
    titled,
    write_data,
)
from echo_hf.report.opening import build_opening, write_sentences
from echo_hf.report.run_data import THUMBNAIL_FOLDER as THUMBNAILS
from echo_hf.report.run_data import (
    MeanColors,
    RunData,
    SavedOutput,
    Thumbnails,
    make_thumbnails,
    read_run_data,
)
from echo_hf.report.sections import INPUTS_KEY, build_sections
from echo_hf.report.verdicts import PAGE as VERDICTS_PAGE
from echo_hf.report.verdicts import SCRIPT, render_verdicts
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig

FOLDER, PAGE, BOARD, FIGURES = "report", "index.html", "board.md", "figures"
EVAL_FILE = "eval.yaml"
# File managers leave these in a folder that they show.
STRAY_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
OWN_FILES = (PAGE, VERDICTS_PAGE, BOARD, FIGURES, EVAL_FILE, THUMBNAILS, *STRAY_FILES)
LOCK_FILE = ".report.lock"
MAX_IN_ONE_FILE = 200
# Images lie beside the page, which may be opened from a disk or a server.
POLICY = (
    "default-src 'none'; img-src 'self' file: data:; style-src 'sha256-{style}'; "
    "script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Report:
    path: Path
    samples: int
    images: int
    problems: Mapping[str, str]
    sentences: tuple[str, ...]  # that it opens with


def report(
    config: RunOrConfig, *, runs: Path | str | None = None, single_file: bool = False
) -> Report:
    """Write the report of a run: `report/` in its folder, in place of an earlier one."""
    run = EvaluationRun.from_config(config, runs)
    data, root = read_run_data(run), run.folder.root
    busy = RunError(
        f"another process writes the report of {str(root)!r}: wait for it, and run `echo-hf "
        "report` again"
    )
    with lock_file(root / LOCK_FILE, busy):
        run.folder.log_entry()
        return write_report(data, root / FOLDER, single_file=single_file)


def write_report(data: RunData, folder: Path, *, single_file: bool = False) -> Report:
    if single_file and len(data.samples) > MAX_IN_ONE_FILE:
        raise RunError(
            f"{count(len(data.samples))} samples in a single file: expected at most "
            f"{MAX_IN_ONE_FILE}; leave out --single-file, and pass on the folder"
        )
    with replace_folder(folder, OWN_FILES) as partial:
        color_keys, colors = _color_keys(data), defaultdict[tuple[str, str], MeanColors](MeanColors)
        thumbnails, problems = {}, {}
        images = None if single_file else partial
        for digest, thumb in make_thumbnails(data.digests, data.images, images, color_keys):
            if isinstance(thumb, str):
                problems[digest] = thumb
                continue
            thumbnails[digest], counts = thumb
            if counts is not None:
                for key in color_keys[digest]:
                    colors[key].add(counts)
        # A single file is passed on alone, without the images beside it.
        originals = None if single_file else relpath(data.images.root, folder)
        gallery = describe_gallery(data, thumbnails, problems, originals)
        text = render_page(data, thumbnails, gallery, colors)
        (partial / PAGE).write_text(text, "utf-8")
        if not single_file:
            (partial / VERDICTS_PAGE).write_text(_render_verdicts(data, gallery), "utf-8")
        (partial / BOARD).write_text(format_board(data), "utf-8")
        if entries := build_eval_entries(data):
            text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)
            (partial / EVAL_FILE).write_text(text, "utf-8")
        (partial / FIGURES).mkdir()
        for name, drawing in draw_figures(data).items():
            (partial / FIGURES / f"{name}.svg").write_text(drawing, "utf-8")
    sentences = tuple(sentence.text for sentence in write_sentences(data))
    return Report(folder / PAGE, len(data.samples), len(thumbnails), problems, sentences)


def _color_keys(data: RunData) -> dict[str, list[tuple[str, str]]]:
    """Map image digests to the mean colors that they count in: those of samples with inputs."""
    color_keys: dict[str, list[tuple[str, str]]] = {}
    for sample in data.samples:
        if sample.inputs:
            outputs = ((name, data.outputs.get((sample.id, name))) for name in data.systems)
            images = [(digest, INPUTS_KEY) for digest in sample.inputs]
            images += [(output.image, name) for name, output in outputs if output and output.image]
            for digest, name in images:
                color_keys.setdefault(digest, []).append((sample.split, name))
    return color_keys


def render_page(
    data: RunData,
    thumbnails: Thumbnails,
    gallery: Mapping[str, Any],
    colors: Mapping[tuple[str, str], MeanColors],
) -> str:
    """Render the whole page: its content policy, sections, data and script."""
    return render(
        "page.html.jinja",
        data=data,
        opening=build_opening(data),
        sections=build_sections(data, thumbnails, colors),
        gallery=write_data(gallery),
        verdicts=VERDICTS_PAGE if gallery["originals"] else None,
        **_load_assets("report.js"),
    )


def _render_verdicts(data: RunData, gallery: Mapping[str, Any]) -> str:
    details = data.results.details.values()
    prefers_choices = any(split.choices.is_board for split in details if split.choices)
    ratings = (rating for rows in data.ratings.values() for rating in rows)
    return render_verdicts(
        gallery,
        data.verdicts,
        data.checks,
        data.title,
        _load_assets(SCRIPT),
        scalar_judges={rating.judge for rating in ratings if rating.is_scalar},
        prefers_choices=prefers_choices,
    )


def _load_assets(script: str) -> dict[str, Markup | str]:
    """Load the style and a script, with the policy that allows these alone."""
    assets = {"style": read_asset("report.css"), "script": read_asset(script)}
    digests = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in assets.items()
    }
    return {"policy": POLICY.format(**digests), **assets}


def describe_gallery(
    data: RunData, thumbnails: Thumbnails, problems: Mapping[str, str], originals: str | None = None
) -> dict[str, Any]:
    """Describe all samples for the data of a page; each image stands in it once.

    `originals` is where the page finds the run's images: they are larger than its copies.
    """
    images = dict[str, int]()
    systems = {system: index for index, system in enumerate(data.systems)}

    def number_images(digests: Iterable[str]) -> list[int]:
        return [images.setdefault(digest, len(images)) for digest in digests]

    def describe(output: SavedOutput | None) -> dict[str, Any] | None:
        if output is None:
            return None
        (image,) = number_images([output.image]) if output.image else [None]
        fields = {"outcome": output.outcome, "reason": output.reason, "text": output.text}
        if output.image and output.image in problems:
            fields |= {"outcome": "cannot be shown", "reason": problems[output.image]}
        return {"image": image, **fields}

    def describe_image(digest: str) -> dict[str, Any] | None:
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
            "inputs": number_images(sample.inputs),
            "posted": number_images(sample.posted),
            "urls": [url for url in sample.urls if is_web(url)],
            "feedback": sample.feedback,
            "flags": sample.flags,
            "outputs": [describe(data.outputs.get((sample.id, system))) for system in data.systems],
            "ratings": [
                {name: value for name, value in vars(rating).items() if name != "is_scalar"}
                | {"system": systems.get(rating.system)}
                for rating in data.ratings.get(sample.id, ())
            ],
        }
        for sample in data.samples
    ]
    names = {name for sample in data.samples for name in (sample.split, sample.task) if name}
    return {
        "systems": data.systems,
        "failed": data.failures,
        "names": {name: titled(name) for name in sorted(names)},
        "samples": samples,
        "originals": originals,
        "pictures": [describe_image(digest) for digest in images],
    }


def draw_figures(data: RunData) -> dict[str, str]:
    drawings: dict[str, str] = {}
    for split in data.splits:
        rates = data.results.rates(split)
        if rates is not None:
            board = data.results.board(split)
            bars = [(row.system, row.value, row.interval) for row in board if row.value is not None]
            title = f"{titled(split)}: win rate"
            warning = _list_failed(data, rates.per_judge)
            drawings[f"win_rate_{split}"] = draw_bars(title, bars, warning)
        for metric, group in groupby(data.results.details[split].metrics, attrgetter("metric")):
            rows = list(group)
            values = {row.system: row.values for row in rows if row.values}
            if boxes := [(name, values[name]) for name in data.systems if name in values]:
                definitions = (row.result.definition for row in rows if row.result)
                better = get_better(metric, definitions)
                title = f"{titled(split)}: {titled(metric).lower()}, {better} is better"
                warning = _list_failed(data, collect_judges(rows))
                drawings[f"{metric}_{split}"] = draw_boxes(title, boxes, warning)
    return drawings


def _list_failed(data: RunData, judges: Iterable[str]) -> str:
    names = ", ".join(judge_names(filter(data.failures.get, judges), data.failures))
    return f"judged by {names}" if names else ""


def build_eval_entries(data: RunData) -> dict[str, list[dict[str, Any]]]:
    """Return each system's win rates as Hub entries; empty where the benchmark is elsewhere."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset, at, revision = (data.results.benchmark.on_hub or "").rpartition("@")
    by_system: dict[str, list[dict[str, Any]]] = {}
    for system in data.systems if at else ():
        entries = []
        for split in data.splits:
            rows = data.results.board(split)
            row = next((candidate for candidate in rows if candidate.system == system), None)
            if row is None or row.value is None:
                continue
            rates = data.results.rates(split)
            models = data.results.judge_models
            judges = judge_names(rates.per_judge if rates else (), data.failures, models)
            stand_in = [f"in place of {row.in_place_of}"] if row.in_place_of else []
            ends = " to ".join(number(end) for end in row.interval or ())
            others = ", ".join(other.system for other in rows if other != row)
            notes = (
                f"win rate from 0 to 1 against {others}",
                f"judged by {', '.join(judges)}",
                f"protocol {data.results.protocol}",
                f"95 % interval {ends}" if ends else "no interval",
                f"revision {revision}",
                *stand_in,
            )
            entry = EvalResultEntry(
                dataset_id=dataset,
                task_id=split,
                value=round(row.value, 4),
                dataset_revision=revision if COMMIT.fullmatch(revision) else None,
                source_url=make_printable(f"{HUB}/datasets/{dataset}/tree/{revision}"),
                source_name="Release",
                notes=make_printable("; ".join(notes)),
            )
            entries.append(entry)
        if entries:
            by_system[make_printable(system)] = eval_result_entries_to_yaml(entries)
    return by_system


def format_board(data: RunData) -> str:
    lines = []
    for split in data.splits:
        rates = data.results.rates(split)
        lines.append(f"### {titled(split)}\n")
        if rates is None:
            lines.append("No judge has rated an output of this split.\n")
            continue
        lines.append("| system | win rate | 95 % | tier | coverage |\n|---|---:|---:|---:|---:|")
        for row in data.results.board(split):
            tier = NO_VALUE if row.tier is None else str(row.tier)
            cells = (number(row.value), interval(row.interval), tier, share(row.coverage))
            system = _escape_cell(name_stand_in(row.system, row.in_place_of))
            lines.append(format_table_row(system, *cells))
        names = judge_names(rates.per_judge, data.failures, data.results.judge_models)
        judges = ", ".join(map(_escape_cell, names))
        lines.append(f"\nProtocol {data.results.protocol}, judged by {judges}.\n")
    return "\n".join(lines) + "\n"


def _escape_cell(text: str) -> str:
    return escape_markdown(make_printable(text))
