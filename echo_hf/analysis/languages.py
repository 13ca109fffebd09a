"""In which languages prompts are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from echo_hf.analysis.figures import Part
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.result import SetLanguages
from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed

EXTRA = "analysis"
UNKNOWN = "unknown"
LEAST = 0.1  # by how much a language has to be likelier than the next one
LONGEST = 1000  # characters say enough
Languages = Part[tuple[SetLanguages, ...]]


def languages(sets: Sequence[PromptSet]) -> Languages:
    """Tells the languages of prompts by lingua, a statistical model of short texts.

    Args:
        sets: The prompt sets.

    Returns:
        Counts by ISO 639-1 code, `unknown` where no language is clearly the likeliest.
    """
    if not find_spec("lingua"):
        detail = str(MissingExtraError("the languages of prompts", EXTRA))
        return Languages(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    detect = _detector()
    found = (Counter(detect(prompt[:LONGEST]) or UNKNOWN for prompt in one.prompts) for one in sets)
    figures = tuple(
        SetLanguages(name=one.name, prompts=dict(sorted(counts.items(), key=_order)))
        for one, counts in zip(sets, found, strict=True)
    )
    definition = {
        "by": f"lingua {version('lingua-language-detector')}, all its languages",
        "least_distance": LEAST,
        "longest": LONGEST,
    }
    return Languages(found=figures, definition=definition)


def _detector() -> Callable[[str], str | None]:
    from lingua import LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_all_languages()
    detector = builder.with_minimum_relative_distance(LEAST).build()

    def detect(prompt: str) -> str | None:
        language = detector.detect_language_of(prompt)
        return None if language is None else str(language.iso_code_639_1.name).lower()

    return detect


def _order(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
