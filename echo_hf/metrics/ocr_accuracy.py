"""OCR accuracy: a check of text rendering by reading the text, without a judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from echo_hf.errors import ScoreError
from echo_hf.images.loader import load_image
from echo_hf.metrics.image_features import SampleFeatures, notices_of, reasons_of, seen_outputs
from echo_hf.metrics.ocr_scores import Least, OcrScore, Reading, Rule, score
from echo_hf.metrics.result import (
    Estimate,
    MetricResult,
    Unmeasured,
    coverage_of,
    definition_of,
    mean_of,
    versions_of,
)
from echo_hf.metrics.samples import FLAT_LEVELS, decoders, prompted
from echo_hf.metrics.text_reader import (
    FEWEST_LETTERS,
    Lines,
    TextReader,
    Vocabulary,
    blue_first,
    check_vocabulary,
    vocabulary_of,
)
from echo_hf.reasons import ImageNotice, MetricReason


@dataclass(frozen=True, kw_only=True)
class OcrAccuracyResult(MetricResult):
    """The OCR accuracy of one system: numbers that are never mixed.

    `value`, `per_sample`, `n` and `coverage` are of the samples whose prompt quotes text; the
    others have a reason there, `nothing_quoted` where the second rule measured them.

    Attributes:
        exact: Share of the quoted strings that were read without a fault, over the same samples:
            short strings have letters in common with any text, and a value that says little.
        in_vocabulary: Share of the words in an output that there are, for samples whose prompt
            quotes nothing.
        unknown_letters: How many quoted strings have no number, since the reader cannot write one
            of their letters or signs; `readings` says which.
        by: The rule that each sample was measured by: `quoted`, `vocabulary`, or null.
        readings: What was read in each output; null where none could be.
    """

    exact: Estimate
    in_vocabulary: Estimate
    unknown_letters: int
    by: tuple[Rule | None, ...]
    readings: tuple[Reading | None, ...]


def result_of(
    scores: Sequence[OcrScore | Unmeasured],
    notices: Mapping[ImageNotice, int],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> OcrAccuracyResult:
    """The OCR accuracy of samples that were read."""
    quoted, exact, known = (
        mean_of(values, n_boot=n_boot, seed=seed)
        for values in (
            [_value(one, "quoted") for one in scores],
            [one.exact if isinstance(one, OcrScore) else None for one in scores],
            [_value(one, "vocabulary") for one in scores],
        )
    )
    n = sum(value is not None for value in quoted.per_sample)
    readings = tuple(one.reading if isinstance(one, OcrScore) else None for one in scores)
    return OcrAccuracyResult(
        value=quoted.value,
        per_sample=quoted.per_sample,
        interval=quoted.interval,
        n=n,
        coverage=coverage_of(n, len(scores)),
        reasons=tuple(map(_reason, scores)),
        notices=notices,
        definition=definition,
        exact=exact,
        in_vocabulary=known,
        unknown_letters=sum(bool(quote.unknown) for one in readings if one for quote in one.quotes),
        by=tuple(one.by if isinstance(one, OcrScore) else None for one in scores),
        readings=readings,
    )


def _value(scored: OcrScore | Unmeasured, rule: Rule) -> float | None:
    return scored.value if isinstance(scored, OcrScore) and scored.by == rule else None


def _reason(scored: OcrScore | Unmeasured) -> Unmeasured | None:
    if isinstance(scored, Unmeasured):
        return scored
    nothing_quoted = Unmeasured(MetricReason.NOTHING_QUOTED)
    return nothing_quoted if scored.by == "vocabulary" else scored.unmeasured


class _Settings(NamedTuple):
    """What two accumulators must have in common."""

    vocabulary: frozenset[str] | None
    min_words: int
    min_confidence: float


class OcrAccuracy:
    """The OCR accuracy of images that come in batches, or are read in several processes.

    It keeps what was read, and no image. Images are decoded in several threads; the networks
    run in the thread that adds, since they keep state from one step to the next.

    Args:
        vocabulary: As for `ocr_accuracy`, and so are all that follow.
        min_words: As there.
        min_confidence: As there.
        threads: As there.

    Raises:
        ScoreError: A choice is none of those that are possible.
    """

    def __init__(
        self,
        *,
        vocabulary: Collection[str] | None = None,
        min_words: int = 5,
        min_confidence: float = 0.5,
        threads: int | None = None,
    ) -> None:
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        _check(min_words, min_confidence)
        words = None if vocabulary is None else frozenset(vocabulary)
        self._settings = _Settings(words, min_words, min_confidence)
        self._threads = threads
        self._reader: TextReader | None = None
        self._networks: Mapping[str, Any] | None = None
        self._signs: frozenset[str] | None = None
        self._samples: list[SampleFeatures[Lines]] = []
        self._prompts: list[str] = []

    def __len__(self) -> int:
        return len(self._samples)

    def __getstate__(self) -> dict[str, Any]:
        """Without the networks: a process that only merges needs none."""
        return {**vars(self), "_reader": None}

    def add(self, prompts: Iterable[str], outputs: Iterable[Any]) -> None:
        """Reads the outputs of some more samples.

        Args:
            prompts: For each sample the prompt.
            outputs: For each sample an image, as for `ocr_accuracy`, or null.

        Raises:
            MissingExtraError: rapidocr, onnxruntime or pyspellchecker is not installed.
            ScoreError: The two differ in length, an entry is no prompt or no image; none of the
                samples is added then.
        """
        texts, sources = prompted(prompts, outputs)
        check_vocabulary(self._settings.vocabulary)
        reader = self._loaded()
        looked = seen_outputs(sources, blue_first, load=load_image, threads=self._threads)
        self._samples += [
            one.measured(None if one.output is None else reader.read(one.output)) for one in looked
        ]
        self._prompts += texts

    def merge(self, other: OcrAccuracy) -> None:
        """Adds the samples of another accumulator after its own.

        Args:
            other: Stays as it is.

        Raises:
            ScoreError: It has another vocabulary or another least, or read with other networks.
        """
        differ = [
            name
            for name, ours, theirs in zip(
                _Settings._fields, self._settings, other._settings, strict=True
            )
            if ours != theirs
        ]
        if self._networks and other._networks and self._networks != other._networks:
            differ.append("networks")
        if differ:
            raise ScoreError(f"{', '.join(differ)} differ there and here: expected the same")
        self._networks = self._networks or other._networks
        self._signs = self._signs or other._signs
        self._samples += other._samples
        self._prompts += other._prompts

    def compute(self, *, n_boot: int = 1000, seed: int = 0) -> OcrAccuracyResult:
        """The OCR accuracy of all samples that were added.

        Args:
            n_boot: Draws of the bootstrap over samples; 0 for none.
            seed: Of the draws.

        Returns:
            The result, with the samples in the order in which they came.

        Raises:
            MissingExtraError: rapidocr, onnxruntime or pyspellchecker is not installed.
            ScoreError: `n_boot` is no number of draws.
        """
        vocabulary = vocabulary_of(self._settings.vocabulary)
        scores = self._scores(vocabulary)
        notices, definition = notices_of(self._samples), self._definition(vocabulary, n_boot, seed)
        return result_of(scores, notices, definition, n_boot=n_boot, seed=seed)

    def _loaded(self) -> TextReader:
        """The networks, at their first use."""
        if self._reader is None:
            self._reader = TextReader()
            self._networks = self._networks or self._reader.definition
            self._signs = self._signs or self._reader.signs
        return self._reader

    def _scores(self, vocabulary: Vocabulary) -> list[OcrScore | Unmeasured]:
        least = Least(self._settings.min_words, self._settings.min_confidence)
        return [
            reason or score(prompt, sample.output or Lines(()), vocabulary, least, self._signs)
            for prompt, sample, reason in zip(
                self._prompts, self._samples, reasons_of(self._samples), strict=True
            )
        ]

    def _definition(self, vocabulary: Vocabulary, n_boot: int, seed: int) -> dict[str, Any]:
        networks = self._networks or self._loaded().definition
        versions = {**versions_of("echo-hf", "numpy"), **networks["versions"], **decoders()}
        return {
            "metric": "ocr_accuracy",
            "role": "a check of text_rendering, not a measure in its place",
            "loader": "echo_hf.load_rgb",
            "value": "mean over samples of the mean over quoted strings of 1 - distance / letters",
            "exact": "mean over samples of the share of quoted strings with distance 0",
            "in_vocabulary": "mean over samples that quote nothing of the share of known words",
            "direction": "higher is better",
            "folding": "NFKC_Casefold, kinds of quotation marks and of dashes, no spaces",
            "fewest_letters": FEWEST_LETTERS,
            "min_words": self._settings.min_words,
            "min_confidence": self._settings.min_confidence,
            "vocabulary": dict(vocabulary.definition),
            "networks": dict(networks["networks"]),
            "blank_within": FLAT_LEVELS,
            "interval": definition_of(n_boot, seed),
            "versions": versions,
        }


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

    A check of `text_rendering` that needs no judge, and no measure in its place: whether text is
    well placed, cut off or pretty is not seen. Where the prompt quotes strings, each is looked for
    in what was read: 1 minus the edit distance of the most similar part, divided by the string's
    letters; a string with letters that the reader cannot write is left out and counted. Where it
    quotes nothing, the share of words of three letters or more that are in a vocabulary is a number
    of its own, `in_vocabulary`. Higher is better. Case, spaces, line ends and kinds of quotation
    marks and dashes do not count. The networks come with rapidocr; nothing is downloaded.

    Args:
        prompts: For each sample the prompt.
        outputs: For each sample an image of Pillow's, a path, bytes of a file, or a dict with
            `bytes` or `path`; null when there is none. A list, or a column of a Dataset.
        vocabulary: The words that there are; null for English, by pyspellchecker's list.
        min_words: Fewer words give no share but a reason: of two words, none says little.
        min_confidence: Lines that the reader is less sure of do not count, from 0 to 1; they are
            kept in `readings`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value`, `exact` and `in_vocabulary` from 0 to 1. Short strings have much in common with
        any text: `exact` says how many were read without a fault. Where the prompt quotes text
        and none was read, the accuracy is 0. A sample without an output, with one that cannot be
        decoded or is of one color, or that another prompt has, too, has no number but a reason.

    Raises:
        MissingExtraError: rapidocr, onnxruntime or pyspellchecker is not installed.
        ScoreError: The two differ in length, an entry is no prompt or no image, or a choice is
            none of those that are possible.

    Examples:
        What was read in an image, as the result's `readings` tell it, without reading one:

        >>> from echo_hf.metrics.ocr_scores import match_quotes
        >>> (match,) = match_quotes('a sign that says "Open late"', ["OPEN", "LAKE", "24 h"])
        >>> match.found, match.accuracy
        ('openlake', 0.875)
    """
    measured = OcrAccuracy(
        vocabulary=vocabulary, min_words=min_words, min_confidence=min_confidence, threads=threads
    )
    measured.add(prompts, outputs)
    return measured.compute(n_boot=n_boot, seed=seed)


def _check(min_words: int, min_confidence: float) -> None:
    if not isinstance(min_words, int) or min_words < 1:
        raise ScoreError(f"min_words is {min_words!r}: expected a whole number from 1")
    if not isinstance(min_confidence, int | float) or not 0 <= min_confidence <= 1:
        raise ScoreError(f"min_confidence is {min_confidence!r}: expected a number from 0 to 1")
