"""Formats of judgements, each as its own project writes it."""

from __future__ import annotations

import csv
import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.text import one_line
from echo_hf.errors import MissingExtraError, RunError, TableError
from echo_hf.judging.imports import IMAGE_SUFFIXES, LONGEST, Found, Row, register
from echo_hf.judging.run_tables import json_lines
from echo_hf.reasons import NotImported
from echo_hf.tables import COMPARISONS, HUMAN, OUTPUTS, RATINGS

Rows = Iterator[Found | NotImported]
TIE = "tie"


def _records(path: Path) -> Iterator[Any]:
    """The records of a file: a JSON list, JSON lines, or Parquet."""
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(100):
                    yield from batch.to_pylist()
        elif path.suffix == ".jsonl":
            yield from (record for _, record in json_lines(path))
        else:
            found = json.loads(path.read_text("utf-8-sig"))
            yield from found if isinstance(found, list) else [found]
    except (OSError, ValueError, RecursionError, pa.ArrowException, TableError) as error:
        said = " ".join(str(error).split())[:200]
        raise RunError(f"{str(path)!r} cannot be read ({said}): fix it, or leave it out") from None


def _first(path: Path) -> Row:
    """The first record of a file, empty where it has none or is none of records."""
    if path.is_file() and path.suffix in (".json", ".jsonl", ".parquet"):
        with suppress(RunError):
            found = next(_records(path), None)
            return found if isinstance(found, Mapping) else {}
    return {}


def _below(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern)) if place.is_dir() else []


def _chosen(one: Any, other: Any, winner: str | None, **more: Any) -> dict[str, Any]:
    """A comparison; `winner` is first or second, as the file has them, a tie, or null."""
    if not isinstance(one, str) or not isinstance(other, str):
        return {}
    is_ab = one <= other
    places = {"first": "a" if is_ab else "b", "second": "b" if is_ab else "a"}
    return {
        "system_a": min(one, other),
        "system_b": max(one, other),
        "order": "ab" if is_ab else "ba",
        "winner": winner and places.get(winner, winner),
        **more,
    }


@register("jsonl", lambda place: "rating" in (one := _first(place)) or "rater" in one)
def jsonl(place: Path) -> Rows:
    """Rows of our own: `judge` and `rating`, or `rater` and `rank`, `score` or `scores`."""
    for record in _records(place):
        if not isinstance(record, Mapping):
            yield NotImported.UNREADABLE
        elif "winner" in record:
            yield Found(COMPARISONS, record)
        elif "rater" not in record:
            yield Found(RATINGS, record)
        elif isinstance(scores := record.get("scores"), Mapping):
            same = {name: record.get(name) for name in ("sample_id", "rater")}
            for system, score in scores.items():
                yield Found(HUMAN, {**same, "system": system, "score": score})
        else:
            yield Found(HUMAN, record)


SCORED_BY = re.compile(r"results_(.+)")
GUESSED = "guess_if_cannot_parse"  # such a score was drawn by chance


@register("viescore", lambda place: bool(_below(place, "SC.json")))
def viescore(place: Path) -> Rows:
    """Answers of VIEScore: `results_JUDGE/TASK/SYSTEM/{SC,PQ}.json`.

    A rating is the square root of the lowest score of semantic consistency times the lowest of
    perceptual quality, from 0 to 10, as VIEScore has it; the first alone where there is one file.
    """
    for folder in sorted({path.parent for path in _below(place, "SC.json")}):
        above = [one.name for one in folder.resolve().parents]
        judge = next((found[1] for one in above if (found := SCORED_BY.fullmatch(one))), "viescore")
        told = [
            next(_records(path), None)
            for path in (folder / "SC.json", folder / "PQ.json")
            if path.is_file()
        ]
        if not all(isinstance(one, Mapping) for one in told):
            yield NotImported.UNREADABLE
            continue
        for sample in dict.fromkeys(chain.from_iterable(told)):
            entries = [one.get(sample) for one in told]
            lowest = [_lowest(entry) for entry in entries]
            known = [one for one in lowest if one is not None]
            said = (one.get("reasoning") for one in entries if isinstance(one, Mapping))
            row = {
                "sample_id": sample,
                "system": folder.name,
                "judge": judge,
                "rating": math.prod(known) ** (1 / len(lowest)) if known == lowest else None,
                "explanation": "\n".join(map(str, filter(None, said)))[:LONGEST],
            }
            yield Found(RATINGS, row)


def _lowest(entry: Any) -> float | None:
    """The lowest score of an answer, null where it has none that the judge gave."""
    if not isinstance(entry, Mapping) or GUESSED in str(entry.get("reasoning", "")):
        return None
    scores = entry.get("score")
    every = scores if isinstance(scores, list) else [scores]
    are_numbers = all(isinstance(one, int | float) and 0 <= one <= 10 for one in every)
    return float(min(every)) if every and are_numbers else None


RATER = re.compile(r"(?:.*_)?(rater\w*)\.tsv")


def _raters(place: Path) -> list[Path]:
    return [one for one in [place, *_below(place, "*.tsv")] if RATER.fullmatch(one.name)]


@register("imagenhub", lambda place: bool(_raters(place)))
def imagenhub(place: Path) -> Rows:
    """Ratings by people of ImagenHub, a file a rater, and outputs: `SYSTEM/SAMPLE.jpg`.

    A score is the square root of semantic consistency times perceptual quality, 0 to 1.
    """
    for path in _raters(place):
        rater = RATER.sub(r"\1", path.name)
        try:
            text = path.read_text("utf-8-sig")
            rows = list(csv.DictReader(text.splitlines(), delimiter="\t", strict=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise RunError(f"{str(path)!r} cannot be read ({error}): expected a TSV") from None
        for row in rows:
            sample = row.pop("uid", None)
            for system, cell in row.items():
                score = _both(cell)
                known = {"sample_id": sample, "rater": rater, "system": system, "score": score}
                yield NotImported.UNREADABLE if score is None else Found(HUMAN, known)
    for path in _below(place, "*"):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            drawn = {"sample_id": path.name, "system": path.parent.name}
            yield Found(OUTPUTS, drawn, image=path.read_bytes())


def _both(cell: Any) -> float | None:
    with suppress(ValueError, TypeError, RecursionError):
        consistency, quality = json.loads(cell)
        return math.sqrt(consistency * quality)
    return None


VOTES = {"leftvote": "first", "rightvote": "second", "tievote": TIE, "bothbad_vote": TIE}
SAID = re.compile(r"\[\[(?:(A>>?B)|(B>>?A)|(A=B(?:=\w+)?))\]\]")
PEOPLE = "people"


@register("genai_bench", lambda place: any("vote_type" in _first(one) for one in _tables_in(place)))
def genai_bench(place: Path) -> Rows:
    """Votes of GenAI-Bench, with the images in them, and those of models beside: `MODEL/*.jsonl`.

    People who voted have no names: they are the judge `people`.
    """
    pairs = list[Row]()
    seen = Counter[tuple[Any, ...]]()
    for number, row in enumerate(chain.from_iterable(map(_records, _tables_in(place)))):
        if not isinstance(row, Mapping) or row.get("vote_type") not in VOTES:
            pairs.append({})
            yield NotImported.UNREADABLE
            continue
        prompt = row.get("prompt") or row.get("instruct_prompt")
        sample, one, other = (row.get(name) for name in ("sample_id", "left_model", "right_model"))
        for side, system in (("left", one), ("right", other)):
            image = row.get(f"{side}_image") or row.get(f"{side}_output_image")
            if isinstance(image, Mapping) and isinstance(image.get("bytes"), bytes):
                drawn = {"sample_id": sample, "system": system}
                yield Found(OUTPUTS, drawn, prompt, image["bytes"])
        about = (one_line(sample or prompt), *sorted((str(one), str(other))), one <= other)
        same = {"sample_id": sample, "repeat": seen[about]}
        seen[about] += 1
        pairs.append({"number": number, "prompt": prompt, "one": one, "other": other, **same})
        vote = _chosen(one, other, VOTES[row["vote_type"]], judge=PEOPLE)
        yield Found(COMPARISONS, {**vote, **same}, prompt)
    for path in _below(place, "*/*.jsonl"):
        for answer in _records(path):
            at = answer.get("idx") if isinstance(answer, Mapping) else None
            if not isinstance(at, int) or not 0 <= at < len(pairs) or not pairs[at]:
                yield NotImported.UNREADABLE
                continue
            pair, found = pairs[at], SAID.search(str(answer.get("model_vote")))
            winner = ("first", "second", TIE)[(found.lastindex or 0) - 1] if found else None
            said = str(answer.get("response") or "")[:LONGEST]
            vote = _chosen(pair["one"], pair["other"], winner, judge=path.parent.name)
            same = {name: pair[name] for name in ("sample_id", "repeat")}
            yield Found(COMPARISONS, {**vote, **same, "explanation": said}, pair["prompt"])


def _tables_in(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return [one for one in sorted(place.iterdir()) if one.suffix in (".jsonl", ".parquet")]


@register("alpaca_eval", lambda place: {"generator_1", "preference"} <= {*_first(place)})
def alpaca_eval(place: Path) -> Rows:
    """Preferences as alpaca_eval writes them: 1 for the first of two, 2 for the second."""
    for record in _records(place):
        if not isinstance(record, Mapping):
            yield NotImported.UNREADABLE
            continue
        preference = record.get("preference")
        is_known = isinstance(preference, int | float) and not math.isnan(preference)
        if is_known and not (preference == 0 or 1 <= preference <= 2):
            yield NotImported.UNREADABLE
            continue
        said = record.get("raw_completion")
        row = _chosen(
            *(record.get(f"generator_{at}") for at in (1, 2)),
            _preferred(preference) if is_known else None,
            sample_id=record.get("sample_id"),
            judge=record.get("annotator") or "alpaca_eval",
            explanation=said[:LONGEST] if isinstance(said, str) else None,
            cost_usd=record.get("price_per_example"),
        )
        yield Found(COMPARISONS, row, record.get("instruction"))


def _preferred(preference: float) -> str:
    """0 and 1.5 are ties; a number between 1 and 2 is how likely the second is better."""
    if preference in (0, 1.5):
        return TIE
    return "first" if preference < 1.5 else "second"


DATA = re.compile(r"data:image/[\w.+-]+;base64,(.+)", re.DOTALL)


@register("inspect", lambda place: place.suffix == ".eval" or bool(_below(place, "*.eval")))
def inspect(place: Path) -> Rows:
    """Logs of inspect_ai: the image of each answer, and its scores that are numbers."""
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    except ImportError:
        raise MissingExtraError("reading a log of inspect_ai", "inspect") from None

    for path in [place] if place.is_file() else _below(place, "*.eval"):
        try:
            log = read_eval_log(str(path), header_only=True)
            samples = list(read_eval_log_samples(str(path), all_samples_required=False))
        except Exception as error:  # a reader of archives raises whatever it trips over
            said = " ".join(str(error).split())[:200]
            raise RunError(f"{str(path)!r} is no log of inspect_ai ({said})") from None
        system = (log.eval.metadata or {}).get("system") or log.eval.model
        for sample in samples:
            known = {"sample_id": (sample.metadata or {}).get("sample_id") or str(sample.id)}
            about = {**known, "system": system}
            images = [
                part.image
                for message in sample.messages
                if message.role == "assistant" and not isinstance(message.content, str)
                for part in message.content
                if part.type == "image"
            ]
            if images and (found := DATA.fullmatch(images[-1])):
                with suppress(ValueError):
                    yield Found(OUTPUTS, about, sample.input_text, b64decode(found[1]))
            for name, score in (sample.scores or {}).items():
                value = score.value
                told = {"judge": name, "repeat": sample.epoch - 1, **(score.metadata or {})}
                row = {key: told[key] for key in ("judge", "rubric", "repeat") if key in told}
                row["rating"] = float(value) if isinstance(value, int | float) else None
                row["explanation"] = (score.explanation or "")[:LONGEST] or None
                yield Found(RATINGS, {**about, **row}, sample.input_text)
