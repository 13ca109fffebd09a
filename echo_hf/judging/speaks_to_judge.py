"""Outputs whose words speak to the judge: read by OCR, or by judges with a rubric of its own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from pydantic import ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf._infra.text import one_line
from echo_hf.config.rubrics import SPEAKS_TO_JUDGE
from echo_hf.errors import ImageError, MissingExtraError, RunError, ScoreError
from echo_hf.hub.run_tables import ResultRow
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.judging.figures import FigureModel
from echo_hf.judging.rate import OutputsToRate
from echo_hf.judging.results import SavedSpeech
from echo_hf.metrics.base import LOWER_IS_BETTER
from echo_hf.metrics.ocr_accuracy import TextReader, normalize_text, order_blue_first
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.scores.votes import ProtocolName
from echo_hf.tables import Outcome

SPEECH_FILE = "speaks_to_judge.json"
MARKS = re.compile(r"\W")
# Letters of scripts that put no spaces between words, or join endings to them.
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
WORD_LETTER = re.compile(rf"(?!{UNSPACED.pattern})[^\W_]")
# No number goes on, and it counts no percent, minutes or years.
NO_QUANTITY = r"(?!\d|[.,]\d|[\s-]?(?:%|percent|min|sec|hour|day|week|month|year))"
NO_MINUTES = r"(?!\s?[钟鐘])"
NEAR_LETTERS = 50  # between what is asked for and the rating, with spaces
SAVED_EVERY = 25  # outputs, so that a stopped run goes on
PROGRESS_LABEL = "words in outputs"
PhrasesByKind = Mapping[str, Sequence[str]]


@cache
def load_phrases() -> dict[str, dict[str, tuple[str, ...]]]:
    """Load the phrases by language and kind, as they are looked for."""
    text = files(__package__).joinpath("speaks_to_judge.yaml").read_text("utf-8")
    return {
        language: {
            kind: tuple(normalize_line(str(phrase)) for phrase in phrases)
            for kind, phrases in by_kind.items()
        }
        for language, by_kind in yaml.safe_load(text).items()
    }


def normalize_line(line: str) -> str:
    """Fold what does not tell words apart, and keep the spaces between them."""
    return " ".join(filter(None, map(normalize_text, line.split())))


@cache
def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Compile a phrase, in which lines may break anywhere and spaces may be lost."""
    letters = [char for char in phrase if char != " "]
    starts = {len(phrase[:place].replace(" ", "")) for place, c in enumerate(phrase) if c == " "}
    pattern = ""
    for place, char in enumerate(letters):
        is_spaced = place in starts or UNSPACED.match(char)
        pattern += (("[ \n]?" if is_spaced else "\n?") if place else "") + re.escape(char)
    first, last = phrase[0], phrase[-1]
    before = r"(?<!\d)(?<!\d[.,])" if first.isdigit() else ""
    after = NO_QUANTITY if last.isdigit() else NO_MINUTES if last == "分" else ""
    return re.compile(before + pattern + after)


def find_phrase(phrase: str, text: str, *, starts_word: bool = True) -> Iterator[re.Match[str]]:
    """Yield where a phrase stands as words of its own.

    Where a reader lost the spaces, it may end inside a word, and begin there as well if it need
    not start one.
    """
    for match in compile_phrase(phrase).finditer(text):
        start, end = match.span()
        line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        spaces = len(re.findall(r"\s", match[0]))
        is_unspaced = " " not in line or spaces < phrase.count(" ")
        may_join = phrase[0].isdigit() or (is_unspaced and not starts_word)
        if (may_join or _is_edge(text, start)) and (is_unspaced or _is_edge(text, end)):
            yield match


def _is_edge(text: str, place: int) -> bool:
    """Return whether no word goes on from one side of a place to the other."""
    return not all(
        WORD_LETTER.match(char) for char in (text[place - 1 : place], text[place : place + 1])
    )


def find_speech(lines: Sequence[str], prompt: str = "") -> str | None:
    """Return the phrase by which words speak to a judge, with its language; null without one.

    What the prompt has as well was asked for, and does not count.
    """
    text = "\n".join(map(normalize_line, lines))
    asked = MARKS.sub("", normalize_text(prompt))
    for language, kinds in load_phrases().items():
        for phrase in _list_speech(text, kinds):
            if MARKS.sub("", phrase) not in asked:
                return f"{language}: {phrase}"
    return None


def _list_speech(text: str, kinds: PhrasesByKind) -> Iterator[str]:
    yield from (phrase for phrase in kinds["orders"] if any(find_phrase(phrase, text)))
    tops = [
        match.span() for top in kinds["tops"] for match in find_phrase(top, text, starts_word=False)
    ]
    for phrase in kinds["asks"] if tops else ():
        for match in find_phrase(phrase, text):
            start, end = match.span()
            if any(
                top - end <= NEAR_LETTERS and start - top_end <= NEAR_LETTERS
                for top, top_end in tops
            ):
                yield phrase


class ReadOutputs(FigureModel):
    """The phrases that a reader read in outputs, by sample and digest; "" without one.

    Null stands for an output that cannot be read.
    """

    reader: str = ""
    samples: Mapping[str, Mapping[str, str | None]] = {}


@dataclass(frozen=True)
class SpeechReading:
    """How many outputs there are, how many were read, and why not where none could be."""

    outputs: int
    read: int
    missing: str | None = None


def read_speech(root: Path) -> ReadOutputs:
    """Read what was read in the outputs of a run; empty where nothing was."""
    path = root / SPEECH_FILE
    try:
        return ReadOutputs.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return ReadOutputs()
    except (OSError, ValidationError) as error:
        raise RunError(
            f"{str(path)!r} does not say what was read in outputs ({one_line(error)[:200]}): move "
            "it away, and run `echo-hf audit` again"
        ) from None


def drop_speech(root: Path, samples: Collection[str]) -> None:
    """Remove what was read in the outputs of samples."""
    speech = read_speech(root)
    kept = {name: read for name, read in speech.samples.items() if name not in samples}
    if len(kept) < len(speech.samples):
        _write_speech(root, speech.reader, kept)


def _write_speech(root: Path, reader: str, samples: Mapping[str, Any]) -> None:
    write_json(root / SPEECH_FILE, {"reader": reader, "samples": samples})


def read_outputs(
    root: Path, images: ImageStore, outputs: OutputsToRate, watch: ProgressListener | None = None
) -> SpeechReading:
    """Read the words of all outputs that the same reader has not read before."""
    prompts = {task.sample_id: task.prompt for task in outputs.tasks}
    wanted = [
        (name, str(row["image"])) for name in prompts for row in outputs.outputs.get(name, ())
    ]
    try:
        reader = TextReader()
    except MissingExtraError:
        return SpeechReading(len(wanted), 0, "the extra `ocr` is not here")
    except ScoreError as error:
        return SpeechReading(len(wanted), 0, str(error))
    rules = [reader.definition["networks"], load_phrases()]
    version = hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()
    speech = read_speech(root)
    known = speech.samples if speech.reader == version else {}
    samples = {name: dict(by_digest) for name, by_digest in known.items()}
    unread = [pair for pair in dict.fromkeys(wanted) if pair[1] not in samples.get(pair[0], {})]
    watch = watch or NullProgress()
    if unread:
        watch.report_start(PROGRESS_LABEL, len(unread), "")
    for number, (name, digest) in enumerate(unread, 1):
        phrase = _read_output(reader, images, digest, prompts[name])
        samples.setdefault(name, {})[digest] = phrase
        if number % SAVED_EVERY == 0 or number == len(unread):
            _write_speech(root, version, samples)
            watch.report_progress(PROGRESS_LABEL, number, "")
    phrases = (samples[name][digest] for name, digest in wanted)
    return SpeechReading(len(wanted), sum(phrase is not None for phrase in phrases))


def _read_output(reader: TextReader, images: ImageStore, digest: str, prompt: str) -> str | None:
    """Return the phrase that speaks to a judge, "" where none does, null where nothing is read."""
    try:
        image = load_rgb(images.open(digest))
    except ImageError:
        return None
    read = reader.read(order_blue_first(image))
    return None if read.failed else find_speech([line.text for line in read.lines], prompt) or ""


def count_speech(
    speech: ReadOutputs, outputs: pa.Table | None, ratings: pa.Table | None
) -> tuple[SavedSpeech, ...]:
    """Count by system the outputs whose words speak to the judge, and name their samples.

    An output counts where the reader found a phrase, or at least half of the judges said yes.
    """
    if outputs is None:
        return ()
    answers: dict[tuple[str, str], list[float]] = {}
    if ratings is not None:
        own = ratings.filter(pc.equal(ratings["rubric"], SPEAKS_TO_JUDGE))
        for row in own.to_pylist():
            if row["rating"] is not None:
                answers.setdefault((row["sample_id"], row["system"]), []).append(row["rating"])
    by_system: dict[str, list[tuple[str, str | None, list[float]]]] = {}
    for row in outputs.to_pylist():
        if row["outcome"] == Outcome.OK and row["image"] is not None:
            phrase = speech.samples.get(row["sample_id"], {}).get(row["image"])
            own_answers = answers.get((row["sample_id"], row["system"]), [])
            columns = row["sample_id"], phrase, own_answers
            by_system.setdefault(row["system"], []).append(columns)
    counts = []
    for system, rows in sorted(by_system.items()):
        samples = [
            name
            for name, phrase, votes in rows
            if phrase or (votes and sum(votes) / len(votes) >= 0.5)
        ]
        read = sum(phrase is not None for _, phrase, _ in rows)
        asked = sum(bool(votes) for *_, votes in rows)
        either = sum(phrase is not None or bool(votes) for _, phrase, votes in rows)
        fields = {"outputs": len(rows), "read": read, "asked": asked, "checked": either}
        counts.append(SavedSpeech(system=system, samples=tuple(sorted(samples)), **fields))
    return tuple(counts) if any(count.checked for count in counts) else ()


def make_speech_rows(
    counts: Iterable[SavedSpeech], split: str, protocol: ProtocolName
) -> Iterator[ResultRow]:
    """Make a figure of each system: the share of its outputs that speak to the judge."""
    for count in counts:
        definition = {
            "value": "share of outputs whose words speak to the judge; they stay on the board",
            "direction": LOWER_IS_BETTER,
            "speaks_to_judge": len(count.samples),
            "read_by_ocr": count.read,
            "asked_of_judges": count.asked,
        }
        yield ResultRow(
            metric=SPEAKS_TO_JUDGE,
            protocol=protocol,
            split=split,
            system=count.system,
            value=len(count.samples) / count.checked if count.checked else None,
            n=count.checked,
            coverage=count.checked / count.outputs,
            definition=definition,
        )


def describe_speech(counts: Iterable[SavedSpeech]) -> str | None:
    """Say in a line whose outputs speak to the judge; null where none does."""
    words = [
        f"{count.system} {len(count.samples)} of {count.checked:,}"
        for count in counts
        if count.samples
    ]
    if not words:
        return None
    return f"words that speak to the judge: {', '.join(words)} outputs, which stay on the board"
