"""Formats of judgements, each as its own project writes it."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echo_hf._infra.registry import Needs
from echo_hf._infra.text import one_line
from echo_hf.errors import ImageError, RunError
from echo_hf.judging.imports import IMAGE_SUFFIXES, LONGEST, READERS, Found
from echo_hf.judging.rate import OVERALL
from echo_hf.judging.run_tables import records
from echo_hf.reasons import NotImported, Outcome
from echo_hf.systems.external_results import read_bytes
from echo_hf.tables import COMPARISONS, HUMAN, OUTPUTS, RATINGS

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

Rows = Iterator[Found | NotImported]


def _files(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern)) if place.is_dir() else [place]


def _chosen(one: Any, other: Any, winner: int | None) -> dict[str, Any]:
    """A comparison, with the one shown first; `winner` is 0 or 1, 2 for a tie, or null."""
    if not isinstance(one, str) or not isinstance(other, str):
        return {}
    is_ab = one <= other
    names = ("a", "b", "tie") if is_ab else ("b", "a", "tie")
    return {
        "system_a": min(one, other),
        "system_b": max(one, other),
        "order": "ab" if is_ab else "ba",
        "winner": None if winner is None else names[winner],
    }


@READERS.register("jsonl")
def jsonl(place: Path) -> Rows:
    """Rows of our own: `judge` and `rating`, or `rater` and `rank`, `score` or `scores`."""
    for record in records(place):
        if not isinstance(record, Mapping):
            yield NotImported.NOT_OF_FORMAT
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


@READERS.register("viescore")
def viescore(place: Path) -> Rows:
    """Answers of VIEScore: `results_JUDGE/TASK/SYSTEM/{SC,PQ}.json`.

    A rating is the square root of the lowest score of semantic consistency times the lowest of
    perceptual quality, from 0 to 10, as VIEScore has it; the first alone where there is one file.
    """
    for path in _files(place, "SC.json"):
        above = [one.name for one in path.resolve().parents]
        judge = next((found[1] for one in above if (found := SCORED_BY.fullmatch(one))), "viescore")
        both = [one for one in (path, path.with_name("PQ.json")) if one.is_file()]
        told: list[Any] = [next(records(one), None) for one in both]
        if not all(isinstance(one, Mapping) for one in told):
            yield NotImported.NOT_OF_FORMAT
            continue
        for sample in dict.fromkeys(chain.from_iterable(told)):
            entries = [one.get(sample) for one in told]
            lowest = [_lowest(entry) for entry in entries]
            known = [one for one in lowest if one is not None]
            said = (one.get("reasoning") for one in entries if isinstance(one, Mapping))
            row = {
                "sample_id": sample,
                "system": path.parent.name,
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


@READERS.register("imagenhub")
def imagenhub(place: Path) -> Rows:
    """Ratings by people of ImagenHub, a file a rater, and outputs: `SYSTEM/SAMPLE.jpg`.

    A score is the square root of semantic consistency times perceptual quality, 0 to 1.
    """
    for path in _files(place, "*"):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            drawn = {"sample_id": path.name, "system": path.parent.name}
            try:
                yield Found(OUTPUTS, drawn, image=read_bytes(path, place))
            except ImageError:
                yield NotImported.BAD_IMAGE
        if rater := RATER.fullmatch(path.name):
            for row in records(path):
                about = {"sample_id": row.pop("uid", None), "rater": rater[1]}
                for system, cell in row.items():
                    known = {**about, "system": system, "score": _both(cell)}
                    is_known = known["score"] is not None
                    yield Found(HUMAN, known) if is_known else NotImported.NOT_OF_FORMAT


def _both(cell: Any) -> float | None:
    with suppress(ValueError, TypeError, OverflowError, RecursionError):
        consistency, quality = json.loads(cell)
        if min(consistency, quality) >= 0 and max(consistency, quality) <= 1:
            return math.sqrt(consistency * quality)
    return None


VOTES = {"leftvote": 0, "rightvote": 1, "tievote": 2, "bothbad_vote": 2}
PEOPLE = "people"


@READERS.register("genai_bench")
def genai_bench(place: Path) -> Rows:
    """Votes of GenAI-Bench, and the images in them; people, who have no names, are one judge."""
    seen = Counter[tuple[Any, ...]]()
    for row in chain.from_iterable(map(records, _files(place, "*.parquet"))):
        vote = VOTES.get(str(row.get("vote_type"))) if isinstance(row, Mapping) else None
        if vote is None:
            yield NotImported.NOT_OF_FORMAT
            continue
        prompt = row.get("prompt") or row.get("instruct_prompt")
        sample, one, other = (row.get(name) for name in ("sample_id", "left_model", "right_model"))
        for side, system in (("left", one), ("right", other)):
            image = row.get(f"{side}_image") or row.get(f"{side}_output_image")
            if isinstance(image, Mapping) and isinstance(image.get("bytes"), bytes):
                drawn = {"sample_id": sample, "system": system}
                yield Found(OUTPUTS, drawn, prompt, image["bytes"])
        key = (one_line(sample or prompt), *sorted((str(one), str(other))))
        told = {"sample_id": sample, "repeat": seen[key], "judge": PEOPLE}
        seen[key] += 1
        yield Found(COMPARISONS, {**_chosen(one, other, vote), **told}, prompt)


@READERS.register("alpaca_eval")
def alpaca_eval(place: Path) -> Rows:
    """Preferences as alpaca_eval writes them: 1 for the first of two, 2 for the second.

    A number between is how likely the second is better; 0 and 1.5 are ties.
    """
    for record in records(place):
        said = record.get("preference") if isinstance(record, Mapping) else ""
        preference = None if isinstance(said, float) and math.isnan(said) else said
        winner = None
        if isinstance(preference, int | float) and (preference == 0 or 1 <= preference <= 2):
            winner = 2 if preference in (0, 1.5) else int(preference > 1.5)
        elif preference is not None:
            yield NotImported.NOT_OF_FORMAT
            continue
        told = record.get("raw_completion")
        about = {
            "sample_id": record.get("sample_id"),
            "judge": record.get("annotator") or "alpaca_eval",
            "explanation": told[:LONGEST] if isinstance(told, str) else None,
            "cost_usd": record.get("price_per_example"),
        }
        pair = _chosen(record.get("generator_1"), record.get("generator_2"), winner)
        yield Found(COMPARISONS, {**pair, **about}, record.get("instruction"))


DATA = re.compile(r"data:image/[\w.+-]+;base64,(.+)", re.DOTALL)


@READERS.register("inspect", Needs(extra="inspect", packages=("inspect_ai",)))
def inspect(place: Path) -> Rows:
    """Logs of inspect_ai: the image of each answer, and its scores that are numbers."""
    from inspect_ai.log import read_eval_log

    for path in _files(place, "*.eval"):
        try:
            log = read_eval_log(str(path), resolve_attachments=True)
            system = (log.eval.metadata or {}).get("system") or log.eval.model
            for sample in log.samples or ():
                yield from _logged(sample, system)
        except Exception as error:  # a reader of archives raises whatever it trips over
            said = one_line(error)[:200]
            raise RunError(f"{str(path)!r} is no log of inspect_ai ({said})") from None


def _logged(sample: EvalSample, system: str) -> Rows:
    known, asked = sample.metadata or {}, sample.input
    about = {"sample_id": str(sample.id), "system": system}
    prompt = asked if isinstance(asked, str) else "\n".join(one.text for one in asked)
    answers = [one.content for one in sample.messages if one.role == "assistant"]
    parts = [part for some in answers if not isinstance(some, str) for part in some]
    images = [DATA.fullmatch(part.image) for part in parts if part.type == "image"]
    if images and images[-1]:
        yield Found(OUTPUTS, about, prompt, b64decode(images[-1][1]))
    else:
        outcome = Outcome.FAILED if sample.error else known.get("outcome") or Outcome.NO_IMAGE
        yield Found(OUTPUTS, {**about, "outcome": outcome}, prompt)
    for name, score in (sample.scores or {}).items():
        said = score.metadata or {}
        rating = score.value if isinstance(score.value, int | float) else None
        row = {
            "judge": said.get("judge", name),
            "rubric": said.get("rubric", OVERALL),
            "repeat": said.get("repeat", sample.epoch - 1),
            "rating": rating,
            "explanation": score.explanation and score.explanation[:LONGEST],
        }
        yield Found(RATINGS, {**about, **row}, prompt)
