"""Lists of prompts: read from files or once from the Hub, their words, lengths and languages."""

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
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.result import AnalysisPart, Quartiles, SetLanguages, SetLengths


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
    named = map(str, range(len(rows))) if ids is None else ids
    out: Counter[NotAnalyzed] = Counter()
    kept: list[tuple[str, str]] = []
    for id_, text in zip(named, rows, strict=True):
        if not isinstance(text, str) or not text.strip():
            out[NotAnalyzed.NO_TEXT] += 1
            continue
        try:
            text.encode()
            kept.append((id_, text.strip()))
        except UnicodeEncodeError:
            out[NotAnalyzed.BROKEN_TEXT] += 1
    texts, ids = (tuple(one[at] for one in kept) for at in (1, 0))
    return PromptSet(name, texts, ids, dict(out), source or {})


LONGEST_ROW = 80
DELIMITERS: Mapping[Format, str] = {"csv": ",", "tsv": "\t"}


def shortened(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def read_reference(reference: Reference) -> PromptSet:
    """Reads prompts to compare with from files: plain text, JSON Lines, or a table."""
    rows, sums = list[object](), {}
    for file in reference.path:
        place = f"reference {str(file)!r}"
        try:
            content = read_regular(file, most_bytes=MOST_FILE_BYTES)
        except OSError as error:
            raise SourceError(
                f"cannot read {place} ({error.strerror}): expected a file, relative to the config"
            ) from None
        sums[file.name] = hashlib.sha256(content).hexdigest()
        rows += texts_of(content, reference.format_of(file), str(reference.column), place)
    return prompt_set(reference.name, rows, source={"files": sums, "column": reference.column})


MOST_FILE_BYTES = 1 << 30


def texts_of(content: bytes, form: Format, column: str, place: str) -> list[object]:
    """The prompts of a file; the place is what messages call it."""
    try:
        if form == "parquet":
            return list(read_parquet(io.BytesIO(content), columns=[column])[column].to_pylist())
        text = content.decode("utf-8-sig")
        if form == "text":
            lines = io.StringIO(text, newline=None).read().split("\n")
            return [line for line in lines if line.strip()]
        rows = _rows(text, form)
    except KeyError:
        raise SourceError(
            f"{place} has no column {column!r}: expected that of its prompts"
        ) from None
    except (OSError, ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise SourceError(
            f"{place} is no {form} ({describe_error(error)}): expected UTF-8, and a header and as many "
            "cells in each row, or one JSON object a line"
        ) from None
    if rows and not any(column in row for row in rows):
        raise SourceError(unknown("column", column, rows[0], place))
    return [row.get(column) for row in rows]


def _rows(text: str, form: Format) -> list[dict[str, Any]]:
    if form == "jsonl":
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        lines = io.StringIO(text, newline="")
        try:
            rows = list(csv.DictReader(lines, delimiter=DELIMITERS[form], strict=True))
        except csv.Error:
            if form == "csv":
                raise
            lines.seek(0)  # in most tables with tabs, quotation marks are like other letters
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or None in row:
            raise ValueError(f"row {number} is {shortened(str(row), LONGEST_ROW)}")
    return rows


PACKAGE = "icu4py"
# Han, kana, bopomofo, Thai, Lao, Burmese, Khmer: written without spaces between words.
WITHOUT_SPACES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    r"\u3031-\u3035\u3038-\u303c\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff]+"
)
JOINERS = "\u200c\u200d"  # shape letters within a word of Persian or Hindi


class UnsegmentedError(Exception):
    """A text's words cannot be told: its script writes no spaces, and ICU is not installed."""


def words(text: str) -> Iterator[str]:
    """The words of a text in small letters; ICU cuts scripts that write no spaces."""
    for is_word, letters in groupby(unicodedata.normalize("NFC", text), _in_word):
        run = "".join(letters)
        if not is_word or not any(letter.isalnum() or letter == "_" for letter in run):
            continue
        at = 0
        for found in WITHOUT_SPACES.finditer(run):
            yield from filter(None, [run[at : found.start()].casefold()])
            for piece in _pieces(found.group()):
                if any(map(str.isalnum, piece)):
                    yield piece.casefold()
            at = found.end()
        yield from filter(None, [run[at:].casefold()])


def first_bigram(text: str) -> tuple[str, str] | None:
    first = tuple(islice(words(text), 2))
    return (first[0], first[1]) if len(first) == 2 else None


def word_definition() -> dict[str, str | None]:
    """What a word is, and by which version of ICU scripts without spaces are cut."""
    rule = r"runs of \w and marks, NFC, case folded; ICU's dictionaries where no spaces are written"
    icu = None
    if find_spec(PACKAGE):
        import icu4py

        icu = str(icu4py.icu_version)
    return {"words": rule, "icu": icu}


@cache
def _in_word(letter: str) -> bool:
    is_mark = unicodedata.category(letter).startswith("M")
    return letter.isalnum() or letter == "_" or letter in JOINERS or is_mark


def _pieces(run: str) -> Iterable[str]:
    if not find_spec(PACKAGE):
        raise UnsegmentedError
    from icu4py.breakers import WordBreaker

    # One dictionary serves Chinese and Japanese: no language has to be guessed.
    return WordBreaker(run, "root")  # type: ignore[no-any-return]


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """The middle of a distribution, between two values by linear interpolation."""
    if not len(values):
        return None
    low, median, high = (float(one) for one in np.quantile(values, [0.25, 0.5, 0.75]))
    return Quartiles(low=low, median=median, high=high)


def lengths(sets: Sequence[PromptSet]) -> AnalysisPart[tuple[SetLengths, ...]]:
    found = []
    for one in sets:
        counted = []
        for prompt in one.prompts:
            with suppress(UnsegmentedError):
                counted.append(sum(1 for _ in words(prompt)))
        characters = quartiles([len(prompt) for prompt in one.prompts])
        known = {"words": quartiles(counted), "words_of": len(counted)}
        found.append(SetLengths(name=one.name, characters=characters, **known))
    return AnalysisPart(found=tuple(found), definition=word_definition())


EXTRA = "analysis"
UNKNOWN = "unknown"
LONGEST = 1000  # characters say enough


def languages(sets: Sequence[PromptSet]) -> AnalysisPart[tuple[SetLanguages, ...]]:
    """Tells the languages of prompts by lingua, a statistical model of short texts."""
    if not find_spec("lingua"):
        detail = str(MissingExtraError("the languages of prompts", EXTRA))
        return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, detail)
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().build()
    figures = []
    for one in sets:
        told = detector.detect_languages_in_parallel_of([text[:LONGEST] for text in one.prompts])
        names = (UNKNOWN if found is None else found.iso_code_639_1.name.lower() for found in told)
        counts = sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))
        figures.append(SetLanguages(name=one.name, prompts=dict(counts)))
    definition = {
        "by": f"lingua {version('lingua-language-detector')}, all its languages",
        "longest": LONGEST,
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


FOLDER = "references"
# What decides which prompts a reference from the Hub holds.
FROM_HUB = ("dataset", "config", "split", "revision", "file", "format", "column", "draw")


def read_references(
    references: Sequence[Reference], root: Path, api: HfApi | None = None
) -> tuple[list[PromptSet], dict[str, str]]:
    """The sets of a config, and by name why one could not be fetched from the Hub.

    A set that is fetched and does not fit its entry stops the analysis, as a file's does.
    """
    sets, missing = list[PromptSet](), dict[str, str]()
    for one in references:
        if one.dataset is None:
            sets.append(read_reference(one))
            continue
        try:
            sets.append(_from_hub(one, root / FOLDER / f"{one.name}.json", api))
        except HubError as error:
            missing[one.name] = str(error)
    return sets, missing


def _from_hub(reference: Reference, kept: Path, api: HfApi | None) -> PromptSet:
    """A set as it was fetched first, by this run and with the same settings."""
    asked, held = reference.model_dump(mode="json", include=set(FROM_HUB)), dict[str, Any]()
    with suppress(FileNotFoundError, ValueError):
        held = json.loads(kept.read_bytes())
    is_kept = held.get("asked") == asked
    commit, rows = (held["commit"], held["rows"]) if is_kept else _fetched(reference, api)
    # Of the prompts as JSON, a line each.
    sha256 = hashlib.sha256("\n".join(map(json.dumps, rows)).encode()).hexdigest()
    if reference.sha256 not in (None, sha256):
        raise HubError(
            f"reference {reference.name!r}: its prompts have the sha256 {sha256}, expected that of "
            "the config: name another revision, or take sha256 away"
        )
    source = {"asked": asked, "commit": commit, "sha256": sha256}
    if not is_kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_json(kept, {**source, "rows": rows})
    source = {**asked, "commit": commit, "sha256": sha256}
    return prompt_set(reference.name, rows, source=source)


def _fetched(reference: Reference, api: HfApi | None) -> tuple[str | None, list[object]]:
    """The commit, where it is known, and the column of its prompts, or a draw of it."""
    commit, rows, column = None, list[object](), str(reference.column)
    if not reference.file:
        rows = _loaded(reference)
    else:
        remote = Remote(api or HfApi(), str(reference.dataset))
        commit = remote.commit_of(str(reference.revision))
        for file in reference.file:
            place, form = f"reference {file!r}", reference.format_of(Path(file))
            if form == "parquet":  # this column of it, and not its images
                table = remote.columns(commit, file, [column])
                if not table.column_names:
                    raise SourceError(f"{place} has no column {column!r}")
                rows += table[column].to_pylist()
                continue
            with hub_errors(f"fetch {file!r} of {remote.repo_id!r}"):
                at = remote.api.hf_hub_download(
                    remote.repo_id, file, repo_type=KIND, revision=commit
                )
            rows += texts_of(Path(at).read_bytes(), form, column, place)
    rows = [row if isinstance(row, str) else None for row in rows]  # counted as no text
    if reference.draw is not None and reference.draw < len(rows):
        drawn = np.random.default_rng(0).choice(len(rows), reference.draw, replace=False)
        rows = [rows[at] for at in sorted(drawn)]
    return commit, rows


def _loaded(reference: Reference) -> list[object]:
    from datasets import load_dataset

    place = f"reference {reference.name!r}"
    named = {name: getattr(reference, name) for name in ("split", "revision")}
    try:
        rows = load_dataset(reference.dataset, reference.config, **named)
    except Exception as error:  # whatever the network, the repository or its files are short of
        raise HubError(f"cannot load {place} ({describe_error(error)})") from error
    if reference.column not in rows.column_names:
        raise SourceError(unknown("column", str(reference.column), rows.column_names, place))
    # As Arrow has it: an image that this column may hold is not decoded, nor looked for.
    found = rows.select_columns([reference.column]).with_format("arrow")[:]
    return list(found[reference.column].to_pylist())
