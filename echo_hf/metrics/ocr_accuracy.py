"""OCR accuracy: a check of text rendering by reading the text, without a judge."""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.errors import ScoreError, install_command
from echo_hf.metrics.image_features import SampleFeatures, common_fields, prompted, reasons_of, seen
from echo_hf.metrics.result import (
    Estimate,
    MetricResult,
    Unmeasured,
    check_extra,
    error_line,
    mean_fields,
    mean_of,
    module_versions,
    versions_of,
)
from echo_hf.reasons import MetricReason

EXTRA = "ocr"
# Named, so that rapidocr never looks for another at the address it knows.
NETWORKS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
# rapidocr enlarges the shorter side to 736 pixels and the longer one along with it: a strip of
# 2 x 2000 would take more memory than machines have.
MOST_TIMES = 10
FEWEST_LETTERS = 3
MOST_NAMED = 10
# Runs of letters, and apostrophes between them.
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ′`", "'"))
FOLDED = {"'": "‘’‚‛′‵`´ʼ‹›", '"': "“”„‟″‶«»〝〞〟", "-": "‐‒–—―−"}
MARKS = str.maketrans({mark: plain for plain, marks in FOLDED.items() for mark in marks})
# What opens is followed by what may close it. A mark inside others belongs to their text.
MARKED = """“”“ „“” ”” "" ＂＂ ‘’ ‚‘’ '' «» »« ‹› ›‹ 「」 『』 《》 〝〞〟"""
PAIRS = {marks[0]: marks[1:] for marks in MARKED.split()}
SINGLE = "‘‚'"
# What closes only after that is no quotation.
MOST_LETTERS = 1000
# Words that begin with an apostrophe, and decades, open no quotation.
ELISIONS = r"(?:\d\ds?|n|em|til|tis|twas|cause|bout|round|cuz)\b"
# An apostrophe has letters on both sides; between digits and marks stand inches and seconds.
OTHERS = "".join(mark for mark in PAIRS if mark not in SINGLE and mark != '"')
OPENING = re.compile(rf"(?<!\w)[{SINGLE}](?!\s|{ELISIONS})|(?<!\d)\"|[{OTHERS}]", re.IGNORECASE)
CLOSING = {
    opening: re.compile(rf"[{re.escape(closings)}]" + (r"(?!\w)" if opening in SINGLE else ""))
    for opening, closings in PAIRS.items()
}
EMPTY_LINE = re.compile(r"\n(?=[ \t]*\n)")

Rule = Literal["quoted", "vocabulary"]


def normalized_text(text: str) -> str:
    """A text without what does not tell whether it is written right."""
    marked = text.translate(MARKS)
    # As Unicode defines caseless matching of compatible characters (3.13, D146).
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", marked).casefold())
    plain = unicodedata.normalize("NFKC", once.casefold()).translate(MARKS)
    # Once more, for accents that stood on a space and now stand on a letter.
    return unicodedata.normalize("NFKC", _without_spaces(plain))


def signs_of(text: str) -> frozenset[str]:
    """The letters and signs of a text, in the case in which they are written."""
    plain = unicodedata.normalize("NFKC", text.translate(MARKS)).translate(MARKS)
    return frozenset(_without_spaces(plain))


def _without_spaces(text: str) -> str:
    return "".join(one for one in text if not (one.isspace() or unicodedata.category(one) == "Cf"))


def words_of(text: str) -> list[str]:
    """The words of a text that have three letters or more, in small letters."""
    plain = unicodedata.normalize("NFKC", text).translate(APOSTROPHES).casefold()
    words = WORD.findall(plain)
    return [word for word in words if len(word) - word.count("'") >= FEWEST_LETTERS]


def mostly_latin(text: str) -> bool:
    """Whether at least half of a text's letters are Latin."""
    names = [unicodedata.name(one, "") for one in text if one.isalpha()]
    return 2 * sum(one.startswith(("LATIN", "FULLWIDTH LATIN")) for one in names) >= len(names)


def quoted(prompt: str) -> tuple[str, ...]:
    """The strings in quotation marks, each once."""
    found: dict[str, str] = {}
    for text in map(str.strip, _between_marks(prompt)):
        if any(letter.isalnum() for letter in text):
            found.setdefault(normalized_text(text), text)
    return tuple(found.values())


def _between_marks(prompt: str) -> Iterator[str]:
    """What stands between marks of one kind, without an empty line in it."""

    @cache  # so that a prompt of nothing but marks is searched once for each kind
    def places(pattern: re.Pattern[str]) -> list[int]:
        return [*(found.start() for found in pattern.finditer(prompt)), sys.maxsize]

    def next_place(pattern: re.Pattern[str]) -> int:
        return places(pattern)[bisect_left(places(pattern), start)]

    start = 0
    while opening := OPENING.search(prompt, start):
        start = opening.end()
        end = next_place(CLOSING[opening[0]])
        if 0 < end - start <= MOST_LETTERS and end < next_place(EMPTY_LINE):
            yield prompt[start:end]
            start = end + 1


class TextWindow(NamedTuple):
    """A part of a text, and its edit distance to a string."""

    distance: int
    start: int
    end: int


def best_window(wanted: str, text: str) -> TextWindow:
    """The window of a text with the smallest edit distance to a string."""
    string, letters = (
        np.frombuffer(one.encode("utf-32-le", "surrogatepass"), np.uint32) for one in (wanted, text)
    )
    ends = _distances(string, letters, anywhere=True)
    end = int(ends.argmin())
    starts = _distances(string[::-1], letters[:end][::-1], anywhere=False)
    longest = int(np.flatnonzero(starts == ends[end])[-1])
    return TextWindow(int(ends[end]), end - longest, end)


def _distances(
    wanted: NDArray[np.uint32], text: NDArray[np.uint32], *, anywhere: bool
) -> NDArray[np.int64]:
    """Distance of a string to the windows that end after each number of letters, 0 first."""
    places = np.arange(len(text) + 1)
    row = np.zeros_like(places) if anywhere else places
    for count, letter in enumerate(wanted, 1):
        changed = row[:-1] + (text != letter)
        without = np.concatenate([[count], np.minimum(changed, row[1:] + 1)])
        # A letter too many costs one for each place: a running minimum along the slope.
        row = np.minimum.accumulate(without - places) + places
    return row


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """A quoted string, and the part of what was read that is most similar."""

    wanted: str
    found: str
    distance: int | None
    accuracy: float | None
    unknown: str = ""


def match_quotes(
    prompt: str, lines: Sequence[str], signs: AbstractSet[str] | None = None
) -> tuple[QuoteMatch, ...]:
    """Looks for the strings that a prompt quotes in what was read."""
    text, matches = "".join(map(normalized_text, lines)), []
    for wanted in quoted(prompt):
        plain = normalized_text(wanted)
        distance, start, end = best_window(plain, text)
        unknown = "".join(sorted(set() if signs is None else signs_of(wanted) - signs))
        accuracy = None if unknown else 1 - distance / len(plain)
        off = None if unknown else distance
        matches.append(QuoteMatch(wanted, text[start:end], off, accuracy, unknown))
    return tuple(matches)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The words that there are."""

    words: frozenset[str]
    latin: bool
    definition: Mapping[str, Any]

    def knows(self, word: str) -> bool:
        """Whether it is one of them, or its genitive."""
        return word in self.words or word.removesuffix("'s") in self.words


def english() -> Vocabulary:
    """The English words that pyspellchecker lists."""
    check_extra("ocr_accuracy", EXTRA, ["spellchecker"])
    from spellchecker import SpellChecker

    words = frozenset(SpellChecker(language="en").word_frequency.words())
    definition = {"language": "English", "words": len(words), **versions_of("pyspellchecker")}
    return Vocabulary(words, True, definition)


def vocabulary_of(words: Collection[str]) -> Vocabulary:
    """The words that are given."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ScoreError("vocabulary holds something else than words: expected a list of strings")
    known = frozenset(word.translate(APOSTROPHES).casefold() for word in words)
    if not known:
        raise ScoreError("vocabulary is empty: expected words, or null for English")
    digest = hashlib.sha256("\n".join(sorted(known)).encode(errors="surrogatepass")).hexdigest()
    return Vocabulary(known, False, {"words": len(known), "sha256": digest})


class TextLine(NamedTuple):
    """A line of text in an image."""

    text: str
    confidence: float


class Lines(NamedTuple):
    """The lines of an image, or why none could be read."""

    lines: tuple[TextLine, ...]
    failed: str = ""


class TextReader:
    """Three networks that find, turn and read lines of text; for one thread at a time."""

    def __init__(self) -> None:
        check_extra("ocr_accuracy", EXTRA, ("rapidocr", "onnxruntime"))
        try:
            import rapidocr

            folder = Path(rapidocr.__file__).parent / "models"
            paths = {f"{part}.model_path": str(folder / name) for part, name in NETWORKS.items()}
            # Every line is wanted, also an unsure one; and nothing is to be logged.
            settings = {"Global.text_score": 0.0, "Global.log_level": "critical"}
            self._engine: Any = rapidocr.RapidOCR(params={**settings, **paths})
            for find in (False, True):  # each network is loaded at its first use
                self._engine(np.zeros((48, 48, 3), np.uint8), use_det=find)
            # One by one: side by side, a letter and an accent would be another letter.
            characters = self._engine.text_rec.session.get_character_list()
            self.signs: frozenset[str] = frozenset().union(*map(signs_of, characters))
        except Exception as error:  # a missing file or libGL, onnxruntime's own errors
            raise ScoreError(
                f"the text reader cannot be used ({error_line(error)}): expected rapidocr 3.10 "
                f"with its networks, as `{install_command('ocr')}` installs it"
            ) from error
        files = {name: (folder / name).read_bytes() for name in NETWORKS.values()}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        # rapidocr does not say its own; several packages install the others.
        versions = {**versions_of("rapidocr"), **module_versions("onnxruntime", "cv2")}
        self.definition: Mapping[str, Any] = {"networks": digests, "versions": versions}

    def read(self, levels: NDArray[np.uint8]) -> Lines:
        """Reads an image, blue first."""
        height, width = levels.shape[:2]
        if max(height, width) > MOST_TIMES * min(height, width):
            return Lines((), f"{width} x {height} pixels, expected at most 1 to {MOST_TIMES}")
        try:
            found = self._engine(levels)
        except MemoryError:
            raise  # says nothing about the image
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return Lines((), error_line(error))
        pairs = zip(getattr(found, "txts", None) or (), found.scores or (), strict=True)
        return Lines(tuple(TextLine(str(text), float(sure)) for text, sure in pairs))


def blue_first(image: Image.Image) -> NDArray[np.uint8]:
    """An image as the networks take it."""
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read in an output, and what of it counts."""

    lines: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    quotes: tuple[QuoteMatch, ...] = ()
    words: int = 0
    known: int | None = None


@dataclass(frozen=True, slots=True)
class OcrScore:
    """What a reading says of one sample, or why it says nothing."""

    reading: Reading | None
    unmeasured: Unmeasured | None = None
    by: Rule | None = None
    value: float | None = None
    exact: float | None = None


class Least(NamedTuple):
    """How many words make a share, and how sure the reader has to be of a line."""

    words: int
    confidence: float


def score(
    prompt: str,
    read: Lines,
    vocabulary: Vocabulary,
    least: Least,
    signs: AbstractSet[str] | None = None,
) -> OcrScore:
    """Scores one output by the strings that its prompt quotes, else by its words."""

    def without(reason: MetricReason, detail: str) -> OcrScore:
        return OcrScore(reading, Unmeasured(reason, detail=detail))

    reading = Reading()
    if read.failed:
        return without(MetricReason.MODEL_FAILED, f"output: {read.failed}")
    lines = tuple(line.text for line in read.lines if line.confidence >= least.confidence)
    unsure = tuple(line.text for line in read.lines if line.confidence < least.confidence)
    words = [word for line in lines for word in words_of(line)]
    if quotes := match_quotes(prompt, lines, signs):
        reading = Reading(lines, unsure, quotes, len(words))
        accuracies = [one.accuracy for one in quotes if one.accuracy is not None]
        if accuracies:
            exact = fmean(one.distance == 0 for one in quotes if one.distance is not None)
            return OcrScore(reading, None, "quoted", fmean(accuracies), exact)
        unknown = sorted({sign for one in quotes for sign in one.unknown})
        return without(MetricReason.UNKNOWN_LETTERS, ", ".join(map(repr, unknown[:MOST_NAMED])))
    known = sum(map(vocabulary.knows, words))
    reading = Reading(lines, unsure, (), len(words), known)
    if vocabulary.latin and not mostly_latin("".join(lines)):
        return without(MetricReason.OTHER_SCRIPT, "the vocabulary is English")
    if len(words) < least.words:
        return without(MetricReason.TOO_FEW_WORDS, f"{len(words)}, expected {least.words}")
    return OcrScore(reading, None, "vocabulary", known / len(words))


@dataclass(frozen=True, kw_only=True, repr=False)
class OcrAccuracyResult(MetricResult):
    """The OCR accuracy of one system: numbers that are never mixed.

    `value`, `per_sample`, `n` and `coverage` are of the samples whose prompt quotes text; the
    others have a reason there, `nothing_quoted` where the second rule measured them.

    Attributes:
        exact: Share of the quoted strings that were read without a fault, over the same samples.
        in_vocabulary: Share of the words in an output that there are, for samples whose prompt
            quotes nothing.
        unknown_letters: How many quoted strings have no number, since the reader cannot write one
            of their letters or signs.
        by: The rule that each sample was measured by: `quoted`, `vocabulary`, or null.
        readings: What was read in each output; null where none could be.
    """

    exact: Estimate
    in_vocabulary: Estimate
    unknown_letters: int
    by: tuple[Rule | None, ...]
    readings: tuple[Reading | None, ...]


def ocr_accuracy(
    prompts: Iterable[str],
    outputs: Iterable[Any],
    *,
    vocabulary: Collection[str] | None = None,
    min_words: int = 5,
    min_confidence: float = 0.5,
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> OcrAccuracyResult:
    """How much of the text in a system's outputs is written right, as a program reads it.

    A check of `text_rendering` that needs no judge, and no measure in its place. Where the prompt
    quotes strings, each is looked for in what was read: 1 minus the edit distance of the most
    similar part, divided by the string's letters; a string with letters that the reader cannot
    write is left out and counted. Where it quotes nothing, the share of words of three letters or
    more that are in a vocabulary is a number of its own, `in_vocabulary`. Higher is better. Case,
    spaces, line ends and kinds of quotation marks and dashes do not count.

    Args:
        prompts: For each sample the prompt.
        outputs: For each sample an image, as for `color_shift`, or null.
        vocabulary: The words that there are; null for English, by pyspellchecker's list.
        min_words: Fewer words give no share but a reason.
        min_confidence: Lines that the reader is less sure of do not count, from 0 to 1.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value`, `exact` and `in_vocabulary` from 0 to 1: where the prompt quotes text and none was
        read, 0. A sample without a number has a reason.

    Raises:
        MissingExtraError: rapidocr, onnxruntime or pyspellchecker is not installed.
        ScoreError: As for `color_shift`, or an entry is no prompt.

    Examples:
        What was read in an image, as the result's `readings` tell it, without reading one:

        >>> from echo_hf.metrics.ocr_accuracy import match_quotes
        >>> (match,) = match_quotes('a sign that says "Open late"', ["OPEN", "LAKE", "24 h"])
        >>> match.found, match.accuracy
        ('openlake', 0.875)
    """
    if not isinstance(min_words, int) or min_words < 1:
        raise ScoreError(f"min_words is {min_words!r}: expected a whole number from 1")
    if not isinstance(min_confidence, int | float) or not 0 <= min_confidence <= 1:
        raise ScoreError(f"min_confidence is {min_confidence!r}: expected a number from 0 to 1")
    known = english() if vocabulary is None else vocabulary_of(vocabulary)
    texts, given = prompted(prompts, outputs)
    least, reader = Least(min_words, min_confidence), TextReader()
    looked = seen(given, blue_first, threads=threads)
    samples = list[SampleFeatures[OcrScore]]()
    for prompt, one in zip(texts, looked, strict=True):
        read = None if one.output is None else reader.read(one.output)
        found = score(prompt, read, known, least, reader.signs) if read else None
        samples.append(one.measured(found))
    scores = [
        OcrScore(None, reason) if reason else sample.output or OcrScore(None)
        for sample, reason in zip(samples, reasons_of(samples), strict=True)
    ]
    nothing_quoted = Unmeasured(MetricReason.NOTHING_QUOTED)
    reasons = [nothing_quoted if one.by == "vocabulary" else one.unmeasured for one in scores]
    values, words = (
        [one.value if one.by == rule else None for one in scores] for rule in get_args(Rule)
    )
    readings = tuple(one.reading for one in scores)
    definition = {
        "metric": "ocr_accuracy",
        "role": "a check of text_rendering, not a measure in its place",
        "loader": "echo_hf.load_rgb",
        "value": "mean over samples of the mean over quoted strings of 1 - distance / letters",
        "exact": "mean over samples of the share of quoted strings with distance 0",
        "in_vocabulary": "mean over samples that quote nothing of the share of known words",
        "direction": "higher is better",
        "folding": "NFKC_Casefold, kinds of quotation marks and of dashes, no spaces",
        "fewest_letters": FEWEST_LETTERS,
        "min_words": min_words,
        "min_confidence": min_confidence,
        "vocabulary": dict(known.definition),
        "networks": reader.definition["networks"],
    }
    unknown = (bool(one.unknown) for read in readings if read for one in read.quotes)
    return OcrAccuracyResult(
        **{
            **mean_fields(values, reasons, {}, n_boot=n_boot, seed=seed),
            **common_fields(samples, definition, reader.definition, n_boot, seed),
        },
        exact=mean_of([one.exact for one in scores], n_boot=n_boot, seed=seed),
        in_vocabulary=mean_of(words, n_boot=n_boot, seed=seed),
        unknown_letters=sum(unknown),
        by=tuple(one.by for one in scores),
        readings=readings,
    )
