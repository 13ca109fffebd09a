"""Detect the languages of prompts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

from echo_hf.errors import MissingExtraError

MAX_TEXT = 1000  # characters, enough to detect a language


def name_languages(prompts: Iterable[str]) -> list[str | None]:
    """Return the ISO 639-1 code of each prompt by lingua, a statistical model of short texts."""
    if not find_spec("lingua"):
        raise MissingExtraError("finding the language of prompts", "analysis")
    texts = [text[:MAX_TEXT] for text in prompts]
    languages = _load_detector().detect_languages_in_parallel_of(texts)
    return [language and language.iso_code_639_1.name.lower() for language in languages]


@cache
def _load_detector() -> Any:
    from lingua import LanguageDetectorBuilder

    return LanguageDetectorBuilder.from_all_languages().build()
