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
LONGEST = 1000  # characters say enough
Languages = Part[tuple[SetLanguages, ...]]


def languages(sets: Sequence[PromptSet]) -> Languages:
    """Tells the languages of prompts by lingua, a statistical model of short texts.

    Args:
        sets: The prompt sets.

    Returns:
        Counts by ISO 639-1 code of the likeliest language, `unknown` where there is none. Of
        prompts of a few words about every tenth is mistaken.
    """
    if not find_spec("lingua"):
        detail = str(MissingExtraError("the languages of prompts", EXTRA))
        return Languages(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    detect = _detector()
    found = (Counter(detect([prompt[:LONGEST] for prompt in one.prompts])) for one in sets)
    figures = tuple(
        SetLanguages(name=one.name, prompts=dict(sorted(counts.items(), key=_order)))
        for one, counts in zip(sets, found, strict=True)
    )
    definition = {
        "by": f"lingua {version('lingua-language-detector')}, all its languages",
        "longest": LONGEST,
    }
    return Languages(found=figures, definition=definition)


def _detector() -> Callable[[list[str]], list[str]]:
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().build()

    def detect(prompts: list[str]) -> list[str]:
        found = detector.detect_languages_in_parallel_of(prompts)
        return [UNKNOWN if one is None else one.iso_code_639_1.name.lower() for one in found]

    return detect


def _order(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
