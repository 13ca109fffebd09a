"""Read lists of prompts from files or the Hub, and describe their words, lengths and languages."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from huggingface_hub import HfApi

from echo_hf._infra.atomic import write_json
from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.evaluation import Format, Reference
from echo_hf.errors import HubError, MissingExtraError, SourceError, unknown
from echo_hf.hub.remote import KIND, Remote, hub_errors
from echo_hf.metrics.result import describe_error
from echo_hf.report.analysis.result import (
    AnalysisPart,
    NotAnalyzed,
    Quartiles,
    SetLanguages,
    SetLengths,
)
from echo_hf.samples.languages import MAX_TEXT, name_languages


@dataclass(frozen=True)
class PromptSet:
    name: str
    prompts: tuple[str, ...]
    ids: tuple[str, ...]
    left_out: Mapping[NotAnalyzed, int] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)


def prompt_set(
    name: str,
    texts: Iterable[object],
    *,
    ids: Iterable[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> PromptSet:
    rows = list(texts)
    row_ids = map(str, range(len(rows))) if ids is None else ids
    left_out: Counter[NotAnalyzed] = Counter()
    kept: list[tuple[str, str]] = []
    for id_, text in zip(row_ids, rows, strict=True):
        if not isinstance(text, str) or not text.strip():
            left_out[NotAnalyzed.NO_TEXT] += 1
            continue
        try:
            text.encode()
            kept.append((id_, text.strip()))
        except UnicodeEncodeError:
            left_out[NotAnalyzed.BROKEN_TEXT] += 1
    texts, ids = (tuple(pair[index] for pair in kept) for index in (1, 0))
    return PromptSet(name, texts, ids, dict(left_out), source or {})


MAX_ROW_CHARACTERS = 80
DELIMITERS: Mapping[Format, str] = {"csv": ",", "tsv": "\t"}


def shorten_prompt(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def read_reference(reference: Reference) -> PromptSet:
    """Read reference prompts from files: plain text, JSON Lines, or a table."""
    rows, digests = list[object](), {}
    for file in reference.path:
        place = f"reference {str(file)!r}"
        try:
            content = read_regular(file, max_bytes=MAX_FILE_BYTES)
        except OSError as error:
            raise SourceError(
                f"cannot read {place} ({error.strerror}): expected a file, relative to the config"
            ) from None
        digests[file.name] = hashlib.sha256(content).hexdigest()
        form, column = reference.guess_format(file), str(reference.column)
        rows += read_prompt_file(content, form, column, place)
    return prompt_set(reference.name, rows, source={"files": digests, "column": reference.column})


MAX_FILE_BYTES = 1 << 30


def read_prompt_file(content: bytes, form: Format, column: str, place: str) -> list[object]:
    """Read the prompts of a file; messages call it `place`."""
    try:
        if form == "parquet":
            return list(read_parquet(io.BytesIO(content), columns=[column])[column].to_pylist())
        text = content.decode("utf-8-sig")
        if form == "text":
            lines = io.StringIO(text, newline=None).read().split("\n")
            return [line for line in lines if line.strip()]
        rows = _parse_rows(text, form)
    except KeyError:
        raise SourceError(
            f"{place} has no column {column!r}: expected that of its prompts"
        ) from None
    except (OSError, ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise SourceError(
            f"{place} is no {form} ({describe_error(error)}): expected UTF-8, and a header and as "
            "many cells in each row, or one JSON object a line"
        ) from None
    if rows and not any(column in row for row in rows):
        raise SourceError(unknown("column", column, rows[0], place))
    return [row.get(column) for row in rows]


def _parse_rows(text: str, form: Format) -> list[dict[str, Any]]:
    if form == "jsonl":
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        lines = io.StringIO(text, newline="")
        try:
            rows = list(csv.DictReader(lines, delimiter=DELIMITERS[form], strict=True))
        except csv.Error:
            if form == "csv":
                raise
            # Most tables with tabs do not quote: quotation marks are ordinary characters.
            lines.seek(0)
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or None in row:
            raise ValueError(f"row {number} is {shorten_prompt(str(row), MAX_ROW_CHARACTERS)}")
    return rows


ICU_PACKAGE = "icu4py"
# Han, kana, bopomofo, Thai, Lao, Burmese, Khmer: written without spaces between words.
WITHOUT_SPACES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    r"\u3031-\u3035\u3038-\u303c\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff]+"
)
JOINERS = "\u200c\u200d"  # they shape letters within a word of Persian or Hindi


class UnsegmentedError(Exception):
    """A text in a script without spaces, whose words cannot be split since ICU is not installed."""


def split_words(text: str) -> Iterator[str]:
    """Yield the words of a text, case-folded; ICU splits scripts without spaces."""
    for is_word, letters in groupby(unicodedata.normalize("NFC", text), _is_word_letter):
        run = "".join(letters)
        if not is_word or not any(letter.isalnum() or letter == "_" for letter in run):
            continue
        start = 0
        for match in WITHOUT_SPACES.finditer(run):
            yield from filter(None, [run[start : match.start()].casefold()])
            for piece in _segment(match.group()):
                if any(map(str.isalnum, piece)):
                    yield piece.casefold()
            start = match.end()
        yield from filter(None, [run[start:].casefold()])


def first_two_words(text: str) -> tuple[str, str] | None:
    first = tuple(islice(split_words(text), 2))
    return (first[0], first[1]) if len(first) == 2 else None


def define_words() -> dict[str, str | None]:
    """Describe what counts as a word, and the version of ICU that splits scripts without spaces."""
    rule = r"runs of \w and marks, NFC, case folded; ICU's dictionaries where no spaces are written"
    icu = None
    if find_spec(ICU_PACKAGE):
        import icu4py

        icu = str(icu4py.icu_version)
    return {"words": rule, "icu": icu}


@cache
def _is_word_letter(letter: str) -> bool:
    is_mark = unicodedata.category(letter).startswith("M")
    return letter.isalnum() or letter == "_" or letter in JOINERS or is_mark


def _segment(run: str) -> Iterable[str]:
    if not find_spec(ICU_PACKAGE):
        raise UnsegmentedError
    from icu4py.breakers import WordBreaker

    # One dictionary serves Chinese and Japanese: no language has to be guessed.
    return WordBreaker(run, "root")  # type: ignore[no-any-return]


def compute_quartiles(values: Sequence[float]) -> Quartiles | None:
    """Compute the quartiles, with linear interpolation."""
    if not len(values):
        return None
    low, median, high = (float(quantile) for quantile in np.quantile(values, [0.25, 0.5, 0.75]))
    return Quartiles(low=low, median=median, high=high)


def measure_lengths(sets: Sequence[PromptSet]) -> AnalysisPart[tuple[SetLengths, ...]]:
    figures = []
    for prompt_set in sets:
        word_counts = []
        for prompt in prompt_set.prompts:
            with suppress(UnsegmentedError):
                word_counts.append(sum(1 for _ in split_words(prompt)))
        characters = compute_quartiles([len(prompt) for prompt in prompt_set.prompts])
        words = {"words": compute_quartiles(word_counts), "words_of": len(word_counts)}
        figures.append(SetLengths(name=prompt_set.name, characters=characters, **words))
    return AnalysisPart(found=tuple(figures), definition=define_words())


EXTRA = "analysis"
UNKNOWN = "unknown"


def detect_languages(sets: Sequence[PromptSet]) -> AnalysisPart[tuple[SetLanguages, ...]]:
    """Detect the languages of prompts by lingua, a statistical model of short texts."""
    figures = []
    for set_ in sets:
        try:
            codes = Counter(code or UNKNOWN for code in name_languages(set_.prompts))
        except MissingExtraError as error:
            return AnalysisPart.omit(NotAnalyzed.MISSING_EXTRA, str(error))
        counts = sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))
        figures.append(SetLanguages(name=set_.name, prompts=dict(counts)))
    definition = {
        "by": f"lingua {version('lingua-language-detector')}, all its languages",
        "longest": MAX_TEXT,
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


FOLDER = "references"
# The settings that decide which prompts a reference from the Hub holds.
HUB_SETTINGS = ("dataset", "config", "split", "revision", "file", "format", "column", "draw")


def read_references(
    references: Sequence[Reference], root: Path, api: HfApi | None = None
) -> tuple[list[PromptSet], dict[str, str]]:
    """Read the reference sets of a config, and return why others could not be fetched, by name.

    A set that is fetched and does not fit its entry stops the analysis, as a file's does.
    """
    sets, missing = list[PromptSet](), dict[str, str]()
    for reference in references:
        if reference.dataset is None:
            sets.append(read_reference(reference))
            continue
        try:
            sets.append(_read_hub(reference, root / FOLDER / f"{reference.name}.json", api))
        except HubError as error:
            missing[reference.name] = str(error)
    return sets, missing


def _read_hub(reference: Reference, path: Path, api: HfApi | None) -> PromptSet:
    """Read a set that this run fetched before with the same settings, or fetch it."""
    query, saved = reference.model_dump(mode="json", include=set(HUB_SETTINGS)), dict[str, Any]()
    with suppress(FileNotFoundError, ValueError):
        saved = json.loads(path.read_bytes())
    is_saved = saved.get("asked") == query
    commit, rows = (saved["commit"], saved["rows"]) if is_saved else _fetch(reference, api)
    # Of the prompts as JSON strings, one a line.
    sha256 = hashlib.sha256("\n".join(map(json.dumps, rows)).encode()).hexdigest()
    if reference.sha256 not in (None, sha256):
        raise HubError(
            f"reference {reference.name!r}: its prompts have the sha256 {sha256}, expected that of "
            "the config: name another revision, or take sha256 away"
        )
    source = {"asked": query, "commit": commit, "sha256": sha256}
    if not is_saved:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**source, "rows": rows})
    source = {**query, "commit": commit, "sha256": sha256}
    return prompt_set(reference.name, rows, source=source)


def _fetch(reference: Reference, api: HfApi | None) -> tuple[str | None, list[object]]:
    """Fetch the prompts, or a draw of them, and the commit where it is known."""
    commit, rows, column = None, list[object](), str(reference.column)
    if not reference.file:
        rows = _load_dataset(reference)
    else:
        remote = Remote(api or HfApi(), str(reference.dataset))
        commit = remote.find_commit(str(reference.revision))
        for file in reference.file:
            place, form = f"reference {file!r}", reference.guess_format(Path(file))
            if form == "parquet":  # reads one column, without its images
                table = remote.read_columns(commit, file, [column])
                if not table.column_names:
                    raise SourceError(f"{place} has no column {column!r}")
                rows += table[column].to_pylist()
                continue
            with hub_errors(f"fetch {file!r} of {remote.repo_id!r}"):
                path = remote.api.hf_hub_download(
                    remote.repo_id, file, repo_type=KIND, revision=commit
                )
            rows += read_prompt_file(Path(path).read_bytes(), form, column, place)
    rows = [row if isinstance(row, str) else None for row in rows]  # others are counted as no text
    if reference.draw is not None and reference.draw < len(rows):
        chosen = np.random.default_rng(0).choice(len(rows), reference.draw, replace=False)
        rows = [rows[index] for index in sorted(chosen)]
    return commit, rows


def _load_dataset(reference: Reference) -> list[object]:
    from datasets import load_dataset

    place = f"reference {reference.name!r}"
    options = {name: getattr(reference, name) for name in ("split", "revision")}
    try:
        rows = load_dataset(reference.dataset, reference.config, **options)
    except Exception as error:  # the network, the repository and its files may raise anything
        raise HubError(f"cannot load {place} ({describe_error(error)})") from error
    if reference.column not in rows.column_names:
        raise SourceError(unknown("column", str(reference.column), rows.column_names, place))
    # As Arrow data, images in this column are not decoded.
    table = rows.select_columns([reference.column]).with_format("arrow")[:]
    return list(table[reference.column].to_pylist())
