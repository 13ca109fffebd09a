"""Write the report of a run into its folder (`echo-hf report`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from echo_hf._infra.atomic import held, replaced_whole
from echo_hf._infra.text import BETTER, HIGHER, escaped, table_row
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import RunError
from echo_hf.judging.board import judge_names
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.agreement_section import agreement
from echo_hf.report.analysis_sections import analysis
from echo_hf.report.board_sections import board, highlights, tasks, tiers_of
from echo_hf.report.charts import printed_bars, printed_boxes
from echo_hf.report.markup import NOTHING, Markup, count, interval, is_web, number, printable, share
from echo_hf.report.metric_sections import INPUTS, colors, metrics, provenance
from echo_hf.report.page import gallery, header, page
from echo_hf.report.parts import titled
from echo_hf.report.results import Rates, judges_of
from echo_hf.report.run_data import Output, Rating, ReportSample, RunData, read_run_data
from echo_hf.report.thumbnails import FOLDER as THUMBNAILS
from echo_hf.report.thumbnails import ColorSum, Looked, MeanColors, Thumbnails, looked_at


def figures(data: RunData) -> dict[str, str]:
    found: dict[str, str] = {}
    for split in data.splits:
        rates = data.results.rates(split)
        if rates is not None:
            every = ((name, rates.win_rate[name], rates.interval.get(name)) for name in rates.order)
            bars = [(name, rate, ends) for name, rate, ends in every if rate is not None]
            failed = _failed(data, rates.per_judge)
            found[f"win_rate_{split}"] = printed_bars(f"{titled(split)}: win rate", bars, failed)
        found |= _metrics(data, split)
    return found


def _metrics(data: RunData, split: str) -> dict[str, str]:
    found: dict[str, str] = {}
    metrics = data.results.details[split].metrics
    for metric in dict.fromkeys(one.metric for one in metrics):
        rows = [one for one in metrics if one.metric == metric]
        values = {
            one.system: [value for value in one.result.per_sample if value is not None]
            for one in rows
            if one.result is not None
        }
        boxes = [(name, values[name]) for name in data.systems if values.get(name)]
        if boxes:
            better = "higher" if BETTER.get(metric, HIGHER) == HIGHER else "lower"
            title = f"{titled(split)}: {titled(metric).lower()}, {better} is better"
            found[f"{metric}_{split}"] = printed_boxes(title, boxes, _failed(data, judges_of(rows)))
    return found


def _failed(data: RunData, judges: Iterable[str]) -> str:
    named = ", ".join(judge_names(filter(data.failures.get, judges), data.failures))
    return f"judged by {named}" if named else ""


COMMIT = re.compile(r"[0-9a-f]{40}")


def eval_results(data: RunData) -> str | None:
    """The win rates of each system, for whoever publishes it."""
    dataset, at, revision = (data.results.benchmark.on_hub or "").rpartition("@")
    if not at:
        return None
    every = {
        printable(system): _entries(data, system, dataset, revision) for system in data.systems
    }
    found = {system: entries for system, entries in every.items() if entries}
    if not found:
        return None
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=10_000)


def _entries(data: RunData, system: str, dataset: str, revision: str) -> list[dict[str, Any]]:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    rated = ((split, data.results.rates(split)) for split in data.splits)
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=split,
            value=round(value, 4),
            dataset_revision=revision if COMMIT.fullmatch(revision) else None,
            notes=printable(_notes(data, rates, system, revision)),
        )
        for split, rates in rated
        if rates and (value := rates.win_rate.get(system)) is not None
    ]
    return eval_result_entries_to_yaml(entries)


def _notes(data: RunData, rates: Rates, system: str, revision: str) -> str:
    others = [name for name in rates.order if name != system]
    ends = rates.interval.get(system)
    judges = [
        f"{judge} (failed its audit)" if judge in data.failures else judge
        for judge in rates.per_judge
    ]
    return "; ".join(
        [
            f"win rate from 0 to 1 against {', '.join(others)}",
            f"judged by {', '.join(judges)}",
            f"protocol {data.results.protocol}",
            f"95 % interval {number(ends[0])} to {number(ends[1])}" if ends else "no interval",
            f"revision {revision}",
        ]
    )


HEAD = "| system | win rate | 95 % | tier | coverage |\n|---|---:|---:|---:|---:|"


def board_markdown(data: RunData) -> str:
    """The win rates of every split in Markdown."""
    return "\n".join(line for split in data.splits for line in _split(data, split)) + "\n"


def _split(data: RunData, split: str) -> Iterator[str]:
    found, rates = data.results.details[split].win_rate, data.results.rates(split)
    yield f"### {titled(split)}\n"
    if rates is None or found is None:
        yield "No judge has rated an output of this split.\n"
        return
    yield HEAD
    tiers, known = tiers_of(rates, found), any(rates.interval.values())
    for at, tier in enumerate(tiers, 1):
        for system in tier:
            cells = (
                _cell(system),
                number(rates.win_rate[system]),
                interval(rates.interval.get(system)),
                str(at) if known else NOTHING,
                share(rates.coverage.get(system)),
            )
            yield table_row(*cells)
    judges = ", ".join(_judge(data, judge) for judge in rates.per_judge)
    yield f"\nProtocol {data.results.protocol}, judged by {judges}.\n"


def _judge(data: RunData, judge: str) -> str:
    failed = data.failures.get(judge)
    said = f"{judge} (failed its audit: {', '.join(failed)})" if failed else judge
    return _cell(said)


def _cell(text: str) -> str:
    return escaped(printable(text))


# What would end the script element that holds the data, or a line of a script.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Numbered:
    """Texts by number, in the order in which they came.

    Examples:
        >>> texts = Numbered()
        >>> texts.number("b"), texts.number("a"), texts.number("b"), texts.number(None)
        (0, 1, 0, None)
        >>> texts.all
        ['b', 'a']
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int | None:
        if text is None:
            return None
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        return list(self._numbers)


def gallery_data(data: RunData, thumbnails: Thumbnails, problems: Mapping[str, str]) -> str:
    texts, images = Numbered(), Numbered()
    row = _Rows(data, texts, images, problems)
    samples = [row.sample(one) for one in data.samples]
    found = {
        "systems": data.systems,
        "failed": data.failures,
        "names": {
            name: titled(name)
            for one in data.samples
            for name in (one.split, one.task or "")
            if name
        },
        "samples": samples,
        "texts": texts.all,
        "pictures": [_image(digest, thumbnails) for digest in images.all],
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


def _image(digest: str, thumbnails: Thumbnails) -> list[str | int] | None:
    found = thumbnails.get(digest)
    return [found.source, found.width, found.height] if found else None


class _Rows:
    def __init__(
        self, data: RunData, texts: Numbered, images: Numbered, problems: Mapping[str, str]
    ) -> None:
        self._data, self._texts, self._images, self._problems = data, texts, images, problems
        self._systems = {system: at for at, system in enumerate(data.systems)}

    def sample(self, sample: ReportSample) -> dict[str, Any]:
        outputs = [self._output(sample, system) for system in self._data.systems]
        ratings = [self._rating(rating) for rating in self._data.ratings.get(sample.id, ())]
        filled: dict[str, Any] = {
            "task": sample.task,
            "inputs": [self._images.number(digest) for digest in sample.inputs],
            "posted": [self._images.number(digest) for digest in sample.posted],
            "urls": [url for url in sample.urls if is_web(url)],
            "feedback": [[said.text, said.verdict, said.keyword] for said in sample.feedback],
            "flags": sample.flags,
            "ratings": ratings,
        }
        known = {name: value for name, value in filled.items() if value}
        return {
            "id": sample.id,
            "split": sample.split,
            "prompt": sample.prompt,
            "outputs": outputs,
            **known,
        }

    def _output(self, sample: ReportSample, system: str) -> list[Any] | None:
        """Image, outcome, reason, text; null where it was not tried."""
        found = self._data.outputs.get((sample.id, system))
        if found is None:
            return None
        row = [self._images.number(found.image), *self._ended(found)]
        while row and row[-1] is None:
            row.pop()
        return row

    def _ended(self, found: Output) -> list[Any]:
        problem = self._problems.get(found.image or "")
        outcome = None if found.outcome == "ok" else found.outcome
        reason = problem or found.reason
        return [(problem and "cannot be shown") or outcome, reason, self._texts.number(found.text)]

    def _rating(self, one: Rating) -> list[Any]:
        """System, judge, rubric, repeat, value, explanation, outcome."""
        number = self._texts.number
        outcome = None if one.outcome == "ok" else one.outcome
        return [
            self._systems.get(one.system),
            number(one.judge),
            number(one.rubric),
            one.repeat,
            one.value,
            number(one.explanation or None),
            outcome,
        ]


FOLDER, PAGE, BOARD, FIGURES = "report", "index.html", "board.md", "figures"
HUB = "eval.yaml"
# Who opens the folder in a window may leave a note there without knowing.
WINDOWS = (".DS_Store", "Thumbs.db", "desktop.ini")
NAMES = (PAGE, BOARD, FIGURES, HUB, THUMBNAILS, *WINDOWS)
LOCK = ".report.lock"
MOST_IN_ONE_FILE = 200


@dataclass(frozen=True)
class Report:
    path: Path
    samples: int
    images: int
    problems: Mapping[str, str]


@dataclass(frozen=True)
class ReportImages:
    thumbnails: Thumbnails
    problems: Mapping[str, str]
    colors: Mapping[tuple[str, str], MeanColors]


def report(
    config: Evaluated | Path | str, *, runs: Path | str = RUNS, single_file: bool = False
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
        seen = _seen(data, None if single_file else partial)
        (partial / PAGE).write_text(_page(data, seen), "utf-8")
        (partial / BOARD).write_text(board_markdown(data), "utf-8")
        if (told := eval_results(data)) is not None:
            (partial / HUB).write_text(told, "utf-8")
        (partial / FIGURES).mkdir()
        for name, drawing in figures(data).items():
            (partial / FIGURES / f"{name}.svg").write_text(drawing, "utf-8")
    return Report(folder / PAGE, len(data.samples), len(seen.thumbnails), seen.problems)


def _page(data: RunData, seen: ReportImages) -> str:
    sections = [
        board(data),
        metrics(data),
        colors(data, seen.colors, seen.thumbnails),
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


def _seen(data: RunData, folder: Path | None) -> ReportImages:
    """Decodes every image once."""
    wanted = _wanted(data)
    sums: dict[tuple[str, str], ColorSum] = {}
    thumbnails, problems = {}, {}
    for one in looked_at(data.digests, data.images, folder, wanted):
        if one.thumbnail is None:
            problems[one.digest] = one.problem or "unknown"
        else:
            thumbnails[one.digest] = one.thumbnail
        _count(one, wanted.get(one.digest, ()), sums)
    return ReportImages(thumbnails, problems, {key: one.mean() for key, one in sums.items()})


def _wanted(data: RunData) -> dict[str, list[tuple[str, str]]]:
    """Which mean colors an image counts in: those of splits with inputs."""
    wanted: dict[str, list[tuple[str, str]]] = {}
    for sample in data.samples:
        if not sample.inputs:
            continue
        for digest in sample.inputs:
            wanted.setdefault(digest, []).append((sample.split, INPUTS))
        for system in data.systems:
            output = data.outputs.get((sample.id, system))
            if output is not None and output.image:
                wanted.setdefault(output.image, []).append((sample.split, system))
    return wanted


def _count(
    one: Looked, keys: list[tuple[str, str]] | tuple[()], sums: dict[tuple[str, str], ColorSum]
) -> None:
    for key in keys:
        if one.counts is not None:
            sums.setdefault(key, ColorSum()).add(one.counts)
