"""OCR accuracy: a check of text rendering that reads the text without a judge."""

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
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from echo_hf.config.checks import StrictInt, Words
from echo_hf.errors import ScoreError, describe_install
from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import (
    SampleFeatures,
    common_fields,
    extract,
    pair_prompts,
    reasons_of,
)
from echo_hf.metrics.result import (
    Estimate,
    MetricReason,
    MetricResult,
    Unmeasured,
    describe_error,
    estimate_mean,
    get_versions,
    make_mean_fields,
    module_versions,
)

# Named, so that rapidocr never looks for another at the address it knows.
NETWORKS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
# rapidocr enlarges the shorter side to 736 pixels and the longer one along with it: a strip of
# 2 x 2000 would take more memory than machines have.
MAX_ASPECT = 10
MIN_WORD_LETTERS = 3
MAX_NAMED = 10
# Runs of letters, and apostrophes between them.
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ′`", "'"))
VARIANTS = {"'": "‘’‚‛′‵`´ʼ‹›", '"': "“”„‟″‶«»〝〞〟", "-": "‐‒–—―−"}
FOLDING = str.maketrans({mark: plain for plain, marks in VARIANTS.items() for mark in marks})
# What opens is followed by what may close it. A mark inside others belongs to their text.
QUOTATION_MARKS = """“”“ „“” ”” "" ＂＂ ‘’ ‚‘’ '' «» »« ‹› ›‹ 「」 『』 《》 〝〞〟"""
CLOSERS = {marks[0]: marks[1:] for marks in QUOTATION_MARKS.split()}
SINGLE = "‘‚'"
# What closes only after that is no quotation.
MAX_QUOTE_LETTERS = 1000
# Words that begin with an apostrophe, and decades, open no quotation.
ELISIONS = r"(?:\d\ds?|n|em|til|tis|twas|cause|bout|round|cuz)\b"
# An apostrophe has letters on both sides; between digits and marks stand inches and seconds.
OTHERS = "".join(mark for mark in CLOSERS if mark not in SINGLE and mark != '"')
OPENING = re.compile(rf"(?<!\w)[{SINGLE}](?!\s|{ELISIONS})|(?<!\d)\"|[{OTHERS}]", re.IGNORECASE)
CLOSING = {
    opening: re.compile(rf"[{re.escape(closings)}]" + (r"(?!\w)" if opening in SINGLE else ""))
    for opening, closings in CLOSERS.items()
}
EMPTY_LINE = re.compile(r"\n(?=[ \t]*\n)")

OcrRule = Literal["quoted", "vocabulary"]


def normalize_text(text: str) -> str:
    """Fold case, width, spaces and kinds of marks, which do not tell whether a text is right."""
    folded = text.translate(FOLDING)
    # As Unicode defines caseless matching of compatible characters (3.13, D146).
    casefolded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", folded).casefold())
    plain = unicodedata.normalize("NFKC", casefolded.casefold()).translate(FOLDING)
    # Once more, for accents that stood on a space and now stand on a letter.
    return unicodedata.normalize("NFKC", _strip_spaces(plain))


def list_signs(text: str) -> frozenset[str]:
    """Return the letters and signs of a text, in the case in which they are written."""
    plain = unicodedata.normalize("NFKC", text.translate(FOLDING)).translate(FOLDING)
    return frozenset(_strip_spaces(plain))


def _strip_spaces(text: str) -> str:
    return "".join(
        char for char in text if not (char.isspace() or unicodedata.category(char) == "Cf")
    )


def list_words(text: str) -> list[str]:
    """Return the words of a text that have three letters or more, in lower case."""
    plain = unicodedata.normalize("NFKC", text).translate(APOSTROPHES).casefold()
    words = WORD.findall(plain)
    return [word for word in words if len(word) - word.count("'") >= MIN_WORD_LETTERS]


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of a text's letters are Latin."""
    names = [unicodedata.name(letter, "") for letter in text if letter.isalpha()]
    return 2 * sum(name.startswith(("LATIN", "FULLWIDTH LATIN")) for name in names) >= len(names)


def find_quoted_text(prompt: str) -> tuple[str, ...]:
    """Return the strings in quotation marks, each once."""
    quotes: dict[str, str] = {}
    for text in map(str.strip, _find_between_marks(prompt)):
        if any(letter.isalnum() for letter in text):
            quotes.setdefault(normalize_text(text), text)
    return tuple(quotes.values())


def _find_between_marks(prompt: str) -> Iterator[str]:
    """Yield texts between quotation marks of one kind, without an empty line."""

    @cache  # so that a prompt of nothing but marks is searched once for each kind
    def find_starts(pattern: re.Pattern[str]) -> list[int]:
        return [*(match.start() for match in pattern.finditer(prompt)), sys.maxsize]

    def find_next(pattern: re.Pattern[str]) -> int:
        return find_starts(pattern)[bisect_left(find_starts(pattern), start)]

    start = 0
    while opening := OPENING.search(prompt, start):
        start = opening.end()
        end = find_next(CLOSING[opening[0]])
        if 0 < end - start <= MAX_QUOTE_LETTERS and end < find_next(EMPTY_LINE):
            yield prompt[start:end]
            start = end + 1


class TextWindow(NamedTuple):
    """A part of a text, and its edit distance to a string."""

    distance: int
    start: int
    end: int


def find_best_window(target: str, text: str) -> TextWindow:
    """Return the window of a text with the smallest edit distance to a string."""
    string, letters = (
        np.frombuffer(characters.encode("utf-32-le", "surrogatepass"), np.uint32)
        for characters in (target, text)
    )
    ends = _compute_distances(string, letters, anywhere=True)
    end = int(ends.argmin())
    starts = _compute_distances(string[::-1], letters[:end][::-1], anywhere=False)
    longest = int(np.flatnonzero(starts == ends[end])[-1])
    return TextWindow(int(ends[end]), end - longest, end)


def _compute_distances(
    target: NDArray[np.uint32], text: NDArray[np.uint32], *, anywhere: bool
) -> NDArray[np.int64]:
    """Return the distance of a string to the windows that end at each position of a text."""
    positions = np.arange(len(text) + 1)
    row = np.zeros_like(positions) if anywhere else positions
    for count, letter in enumerate(target, 1):
        substituted = row[:-1] + (text != letter)
        without_insertions = np.concatenate([[count], np.minimum(substituted, row[1:] + 1)])
        # A letter too many costs one for each place: a running minimum along the slope.
        row = np.minimum.accumulate(without_insertions - positions) + positions
    return row


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """A quoted string, and the most similar part of the text that was read."""

    wanted: str
    found: str
    distance: int | None
    accuracy: float | None
    unknown: str = ""


def match_quotes(
    prompt: str, lines: Sequence[str], signs: AbstractSet[str] | None = None
) -> tuple[QuoteMatch, ...]:
    """Match the strings that a prompt quotes with the text that was read."""
    text, matches = "".join(map(normalize_text, lines)), []
    for quote in find_quoted_text(prompt):
        plain = normalize_text(quote)
        distance, start, end = find_best_window(plain, text)
        unknown = "".join(sorted(set() if signs is None else list_signs(quote) - signs))
        accuracy = None if unknown else 1 - distance / len(plain)
        distance_or_none = None if unknown else distance
        matches.append(QuoteMatch(quote, text[start:end], distance_or_none, accuracy, unknown))
    return tuple(matches)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """A set of known words."""

    words: frozenset[str]
    latin: bool
    definition: Mapping[str, Any]

    def knows(self, word: str) -> bool:
        """Return whether a word, or the noun of a genitive, is known."""
        return word in self.words or word.removesuffix("'s") in self.words


def load_english() -> Vocabulary:
    """Load the English words of pyspellchecker."""
    OcrAccuracyMetric.check_installed()
    from spellchecker import SpellChecker

    words = frozenset(SpellChecker(language="en").word_frequency.words())
    definition = {"language": "English", "words": len(words), **get_versions("pyspellchecker")}
    return Vocabulary(words, True, definition)


def make_vocabulary(words: Collection[str]) -> Vocabulary:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ScoreError("vocabulary holds something else than words: expected a list of strings")
    listed = frozenset(word.translate(APOSTROPHES).casefold() for word in words)
    if not listed:
        raise ScoreError("vocabulary is empty: expected words, or null for English")
    digest = hashlib.sha256("\n".join(sorted(listed)).encode(errors="surrogatepass")).hexdigest()
    return Vocabulary(listed, False, {"words": len(listed), "sha256": digest})


class TextLine(NamedTuple):
    """A line of text in an image."""

    text: str
    confidence: float


class TextLines(NamedTuple):
    """The lines of an image, or the reason why none could be read."""

    lines: tuple[TextLine, ...]
    failed: str = ""


class TextReader:
    """Three networks that find, turn and read lines of text; for one thread at a time."""

    def __init__(self) -> None:
        OcrAccuracyMetric.check_installed()
        try:
            import rapidocr

            folder = Path(rapidocr.__file__).parent / "models"
            paths = {f"{part}.model_path": str(folder / name) for part, name in NETWORKS.items()}
            # Every line is wanted, also an unsure one; and nothing is to be logged.
            settings = {"Global.text_score": 0.0, "Global.log_level": "critical"}
            self._engine: Any = rapidocr.RapidOCR(params={**settings, **paths})
            for use_detector in (False, True):  # each network is loaded at its first use
                self._engine(np.zeros((48, 48, 3), np.uint8), use_det=use_detector)
            # One by one: side by side, a letter and an accent would be another letter.
            characters = self._engine.text_rec.session.get_character_list()
            self.signs: frozenset[str] = frozenset().union(*map(list_signs, characters))
        except Exception as error:  # a missing file or libGL, onnxruntime's own errors
            raise ScoreError(
                f"the text reader cannot be used ({describe_error(error)}): expected rapidocr 3.10 "
                f"with its networks, as `{describe_install('ocr')}` installs it"
            ) from error
        files = {name: (folder / name).read_bytes() for name in NETWORKS.values()}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        # rapidocr does not say its own; several packages install the others.
        versions = {**get_versions("rapidocr"), **module_versions("onnxruntime", "cv2")}
        self.definition: Mapping[str, Any] = {"networks": digests, "versions": versions}

    def read(self, levels: NDArray[np.uint8]) -> TextLines:
        """Read the text of an image, blue first."""
        return self.locate(levels)[0]

    def locate(
        self, levels: NDArray[np.uint8]
    ) -> tuple[TextLines, Sequence[NDArray[np.floating[Any]]]]:
        """Read the text of an image, blue first, with the four corners of each line."""
        height, width = levels.shape[:2]
        if max(height, width) > MAX_ASPECT * min(height, width):
            why = f"{width} x {height} pixels, expected at most 1 to {MAX_ASPECT}"
            return TextLines((), why), ()
        try:
            output = self._engine(levels)
        except MemoryError:
            raise  # says nothing about the image
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return TextLines((), describe_error(error)), ()
        pairs = zip(getattr(output, "txts", None) or (), output.scores or (), strict=True)
        lines = tuple(TextLine(str(text), float(sure)) for text, sure in pairs)
        return TextLines(lines), output.boxes if lines else ()


def order_blue_first(image: Image.Image) -> NDArray[np.uint8]:
    """Return an image as an array with blue first, as the networks take it."""
    return np.ascontiguousarray(np.asarray(image)[..., ::-1])


@dataclass(frozen=True, slots=True)
class TextReading:
    """The text that was read in an output, and the parts that count."""

    lines: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    quotes: tuple[QuoteMatch, ...] = ()
    words: int = 0
    known: int | None = None


@dataclass(frozen=True, slots=True)
class OcrScore:
    """The score of one sample, or the reason why there is none."""

    reading: TextReading | None
    unmeasured: Unmeasured | None = None
    by: OcrRule | None = None
    value: float | None = None
    exact: float | None = None


class Thresholds(NamedTuple):
    """The fewest words that make a share, and the least confidence of a line."""

    words: int
    confidence: float


def score_text(
    prompt: str,
    read: TextLines,
    vocabulary: Vocabulary,
    thresholds: Thresholds,
    signs: AbstractSet[str] | None = None,
) -> OcrScore:
    """Score one output by the strings that its prompt quotes, else by its words."""

    def refuse(reason: MetricReason, detail: str) -> OcrScore:
        return OcrScore(reading, Unmeasured(reason, detail=detail))

    reading = TextReading()
    if read.failed:
        return refuse(MetricReason.MODEL_FAILED, f"output: {read.failed}")
    lines = tuple(line.text for line in read.lines if line.confidence >= thresholds.confidence)
    unsure = tuple(line.text for line in read.lines if line.confidence < thresholds.confidence)
    words = [word for line in lines for word in list_words(line)]
    if quotes := match_quotes(prompt, lines, signs):
        reading = TextReading(lines, unsure, quotes, len(words))
        accuracies = [quote.accuracy for quote in quotes if quote.accuracy is not None]
        if accuracies:
            exact = fmean(quote.distance == 0 for quote in quotes if quote.distance is not None)
            return OcrScore(reading, None, "quoted", fmean(accuracies), exact)
        unknown = sorted({sign for quote in quotes for sign in quote.unknown})
        return refuse(MetricReason.UNKNOWN_LETTERS, ", ".join(map(repr, unknown[:MAX_NAMED])))
    listed = sum(map(vocabulary.knows, words))
    reading = TextReading(lines, unsure, (), len(words), listed)
    if vocabulary.latin and not is_mostly_latin("".join(lines)):
        return refuse(MetricReason.OTHER_SCRIPT, "the vocabulary is English")
    if len(words) < thresholds.words:
        return refuse(MetricReason.TOO_FEW_WORDS, f"{len(words)}, expected {thresholds.words}")
    return OcrScore(reading, None, "vocabulary", listed / len(words))


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
    by: tuple[OcrRule | None, ...]
    readings: tuple[TextReading | None, ...]


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
    """Measure how much of the text in outputs is written right, with an OCR program.

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
    listed = load_english() if vocabulary is None else make_vocabulary(vocabulary)
    texts, pairs = pair_prompts(prompts, outputs)
    thresholds, reader = Thresholds(min_words, min_confidence), TextReader()
    features = extract(pairs, order_blue_first, threads=threads)
    samples = list[SampleFeatures[OcrScore]]()
    for prompt, sample in zip(texts, features, strict=True):
        read = None if sample.output is None else reader.read(sample.output)
        score = score_text(prompt, read, listed, thresholds, reader.signs) if read else None
        samples.append(sample.with_values(score))
    scores = [
        OcrScore(None, reason) if reason else sample.output or OcrScore(None)
        for sample, reason in zip(samples, reasons_of(samples), strict=True)
    ]
    nothing_quoted = Unmeasured(MetricReason.NOTHING_QUOTED)
    reasons = [nothing_quoted if score.by == "vocabulary" else score.unmeasured for score in scores]
    values, words = (
        [score.value if score.by == rule else None for score in scores]
        for rule in get_args(OcrRule)
    )
    readings = tuple(score.reading for score in scores)
    definition = {
        "metric": "ocr_accuracy",
        "role": "a check of text_rendering, not a measure in its place",
        "loader": "echo_hf.load_rgb",
        "value": "mean over samples of the mean over quoted strings of 1 - distance / letters",
        "exact": "mean over samples of the share of quoted strings with distance 0",
        "in_vocabulary": "mean over samples that quote nothing of the share of known words",
        "direction": "higher is better",
        "folding": "NFKC_Casefold, kinds of quotation marks and of dashes, no spaces",
        "fewest_letters": MIN_WORD_LETTERS,
        "min_words": min_words,
        "min_confidence": min_confidence,
        "vocabulary": dict(listed.definition),
        "networks": reader.definition["networks"],
    }
    unknown = (bool(quote.unknown) for read in readings if read for quote in read.quotes)
    return OcrAccuracyResult(
        **{
            **make_mean_fields(values, reasons, {}, n_boot=n_boot, seed=seed),
            **common_fields(samples, definition, reader.definition, n_boot, seed),
        },
        exact=estimate_mean([score.exact for score in scores], n_boot=n_boot, seed=seed),
        in_vocabulary=estimate_mean(words, n_boot=n_boot, seed=seed),
        unknown_letters=sum(unknown),
        by=tuple(score.by for score in scores),
        readings=readings,
    )


@register
class OcrAccuracyMetric(Metric):
    """The OCR accuracy of the outputs of a run, where its config asks for it."""

    name, title = "ocr_accuracy", "Text read back"
    about = "how much of the text that prompts quote is read in the outputs, from 0 to 1"
    needs, bounds = ("prompts", "outputs"), (0, 1)
    enabled = False  # a check of another metric, that takes an extra of its own
    extra, packages = "ocr", ("rapidocr", "onnxruntime", "spellchecker")
    card = read_card(name)
    function, result = staticmethod(ocr_accuracy), OcrAccuracyResult

    class Options(Metric.Options):
        """How OCR accuracy is measured.

        Attributes:
            vocabulary: The words that there are; null for English.
            min_words: Fewer words give no share of known words.
            min_confidence: Lines that the reader is less sure of do not count, from 0 to 1.
        """

        vocabulary: tuple[Words, ...] | None = None
        min_words: Annotated[StrictInt, Field(ge=1)] = 5
        min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.5
