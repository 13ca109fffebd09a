"""Write the report of a run into its folder (`echo-hf report`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from echo_hf.errors import RunError
from echo_hf.evaluated import Evaluated
from echo_hf.file_lock import held
from echo_hf.report.board_markdown import board_markdown
from echo_hf.report.colours import ColourSum, MeanColours
from echo_hf.report.eval_results import eval_results
from echo_hf.report.figures import figures
from echo_hf.report.gallery_data import gallery_data
from echo_hf.report.markup import Markup
from echo_hf.report.numbers import count
from echo_hf.report.page import page
from echo_hf.report.run_data import RunData, read_run_data
from echo_hf.report.sections.agreement import agreement
from echo_hf.report.sections.analysis import analysis
from echo_hf.report.sections.board import board
from echo_hf.report.sections.colours import INPUTS, colours
from echo_hf.report.sections.gallery import gallery
from echo_hf.report.sections.header import header
from echo_hf.report.sections.highlights import highlights
from echo_hf.report.sections.metrics import metrics
from echo_hf.report.sections.provenance import provenance
from echo_hf.report.sections.tasks import tasks
from echo_hf.report.thumbnails import FOLDER as THUMBNAILS
from echo_hf.report.thumbnails import Looked, Thumbnails, looked_at
from echo_hf.run import RUNS
from echo_hf.swap import replaced_whole

FOLDER, PAGE, BOARD, FIGURES = "report", "index.html", "board.md", "figures"
HUB = "eval.yaml"
# Who opens the folder in a window may leave a note there without knowing.
WINDOWS = (".DS_Store", "Thumbs.db", "desktop.ini")
NAMES = (PAGE, BOARD, FIGURES, HUB, THUMBNAILS, *WINDOWS)
LOCK = ".report.lock"
MOST_IN_ONE_FILE = 200


@dataclass(frozen=True)
class Report:
    """A written report.

    Attributes:
        path: Its page.
        samples: How many samples it shows.
        pictures: How many pictures.
        problems: Why pictures cannot be shown, by digest.
    """

    path: Path
    samples: int
    pictures: int
    problems: Mapping[str, str]


@dataclass(frozen=True)
class Pictures:
    """What a report shows of pictures.

    Attributes:
        thumbnails: Small copies by digest.
        problems: Why others cannot be shown.
        colours: Mean colours by split and system, and of the inputs.
    """

    thumbnails: Thumbnails
    problems: Mapping[str, str]
    colours: Mapping[tuple[str, str], MeanColours]


def report(
    config: Evaluated | Path | str, *, runs: Path | str = RUNS, single_file: bool = False
) -> Report:
    """Writes the report of a run: `report/` in its folder, in place of the one before.

    No model is asked. The same figures, tables and pictures give the same bytes.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        single_file: Whether the page holds its pictures itself.

    Returns:
        What was written.

    Raises:
        RunError: There are no figures yet, a file cannot be read, another process writes the
            same report, or there are too many samples for a single file.
        ReleaseError: The folder is a file, or holds what is no part of a report.
        EchoError: The config or the benchmark cannot be read.
    """
    data = read_run_data(config, runs)
    root = data.pictures.root.parent
    busy = RunError(
        f"another process writes the report of {str(root)!r}: wait for it, and run `echo-hf "
        "report` again"
    )
    with held(root / LOCK, busy):
        return write_report(data, root / FOLDER, single_file=single_file)


def write_report(data: RunData, folder: Path, *, single_file: bool = False) -> Report:
    """Writes a report of what was read.

    Args:
        data: The run.
        folder: The report's folder; a report that is there is replaced as a whole.
        single_file: As for `report`.

    Returns:
        What was written.

    Raises:
        RunError: There are too many samples for a single file.
        ReleaseError: The folder is a file, or holds what is no part of a report.
    """
    if single_file and len(data.samples) > MOST_IN_ONE_FILE:
        raise RunError(
            f"{count(len(data.samples))} samples in a single file: expected at most "
            f"{MOST_IN_ONE_FILE}; leave out --single-file, and pass on the folder"
        )
    with replaced_whole(folder, NAMES) as partial:
        seen = _seen(data, None if single_file else partial)
        (partial / PAGE).write_text(_page(data, seen), "utf-8")
        (partial / BOARD).write_text(board_markdown(data), "utf-8")
        if (told := eval_results(data)) is not None:
            (partial / HUB).write_text(told, "utf-8")
        (partial / FIGURES).mkdir()
        for name, drawing in figures(data).items():
            (partial / FIGURES / f"{name}.svg").write_text(drawing, "utf-8")
    return Report(folder / PAGE, len(data.samples), len(seen.thumbnails), seen.problems)


def _page(data: RunData, seen: Pictures) -> str:
    sections = [
        board(data),
        metrics(data),
        colours(data, seen.colours, seen.thumbnails),
        highlights(data, seen.thumbnails),
        agreement(data),
        tasks(data),
        analysis(data),
        gallery(data),
        provenance(data),
    ]
    there: list[Markup] = [one for one in sections if one]
    samples = gallery_data(data, seen.thumbnails, seen.problems)
    return page(f"{data.name}: ECHO report", header(data), there, samples)


def _seen(data: RunData, folder: Path | None) -> Pictures:
    """Decodes every picture once."""
    wanted = _wanted(data)
    sums: dict[tuple[str, str], ColourSum] = {}
    thumbnails, problems = {}, {}
    for one in looked_at(data.digests, data.pictures, folder, wanted):
        if one.thumbnail is None:
            problems[one.digest] = one.problem or "unknown"
        else:
            thumbnails[one.digest] = one.thumbnail
        _count(one, wanted.get(one.digest, ()), sums)
    return Pictures(thumbnails, problems, {key: one.mean() for key, one in sums.items()})


def _wanted(data: RunData) -> dict[str, list[tuple[str, str]]]:
    """Which mean colours a picture counts in: those of splits with inputs."""
    wanted: dict[str, list[tuple[str, str]]] = {}
    for sample in data.samples:
        if not sample.inputs:
            continue
        for digest in sample.inputs:
            wanted.setdefault(digest, []).append((sample.split, INPUTS))
        for system in data.systems:
            output = data.outputs.get((sample.id, system))
            if output is not None and output.picture:
                wanted.setdefault(output.picture, []).append((sample.split, system))
    return wanted


def _count(
    one: Looked, keys: list[tuple[str, str]] | tuple[()], sums: dict[tuple[str, str], ColourSum]
) -> None:
    for key in keys:
        if one.counts is not None:
            sums.setdefault(key, ColourSum()).add(one.counts)
