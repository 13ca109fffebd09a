"""Errors that users can cause and fix; `EchoError` is the base class of all.

Each message is one line: what was wrong (the value), what was expected, what to do next. The
command line prints it and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable


class EchoError(Exception):
    """Something the user can fix; its message is shown without a traceback."""


class ConfigError(EchoError):
    """A config file, or one of its values, is not what the toolkit understands."""


class SourceError(EchoError):
    """A file of posts cannot be read at all."""


class PlatformError(EchoError):
    """A platform of posts wants a key, refuses the one it got, or refuses a request."""


class StageError(EchoError):
    """There is no stage of this name."""


class TableError(EchoError):
    """A table lacks the columns or types that a stage declares."""


class ImageError(EchoError):
    """Bytes are not an image that can be decoded safely."""


class SpanError(EchoError):
    """A span of a release points to no place in the text that it names."""


class EngineError(EchoError):
    """A model engine is unknown, unreachable, or cannot do what was asked."""


class UnusableAnswersError(EngineError):
    """A model answers, and none of its answers to a question can be used."""


class UnknownSizeError(EngineError):
    """The memory that an engine takes is unknown; the engine may work all the same."""


class GenerationError(EchoError):
    """A system under test is unknown, unreachable, or cannot do what was asked."""


class JudgeError(EchoError):
    """A judge cannot be asked, or had to be stopped."""


class StoreError(EchoError):
    """A SQLite file of a run is not readable, or was written by another version."""


class RunError(EchoError):
    """A run folder is used by another process, or is damaged."""


class ReviewError(EchoError):
    """A reviewer's decision names no sample of the run, or cannot be read."""


class GoldError(EchoError):
    """Annotated threads are missing, or do not fit the format or their posts."""


class ScoreError(EchoError):
    """Ratings contradict each other, or a measure cannot do what was asked."""


class WeightsError(ScoreError):
    """The weights of a measure's network are missing and cannot be fetched."""


class ReleaseError(EchoError):
    """A release folder is missing, or does not match its manifest."""


class HubError(EchoError):
    """The Hub is unreachable, knows no such thing, or refuses a request."""


class SubmissionError(EchoError):
    """A submission to a board cannot be taken; `reason` says why, in a word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class MissingExtraError(EchoError):
    """A part of the toolkit needs packages that are not installed."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(part, extra)  # and no sentence: so it travels between processes

    def __str__(self) -> str:
        part, extra = self.args
        return f"{part} needs packages that are not here: {describe_install(extra)}"


def describe_install(extra: str) -> str:
    """Return how to install an extra, or packages; the same everywhere, as results quote it."""
    from importlib.metadata import metadata

    if extra not in (metadata("echo-hf").get_all("Provides-Extra") or ()):
        return f'pip install "{extra}"'  # of another package
    # Until an index has the name, it is anybody's to take there.
    return f'pip install "echo-hf[{extra}]", or ".[{extra}]" in a checkout'


def unknown(kind: str, name: object, known: Iterable[str], place: str = "") -> str:
    """Describe an unknown name in one line, with the nearest known name.

    Args:
        kind: What the name names, in the singular.
        name: The value that was given.
        known: The names that would have been understood.
        place: Where it stands, such as a file and a key; put first.

    Returns:
        The message.

    Examples:
        >>> unknown("engine", "rulse", ["rules", "vllm"])
        "unknown engine 'rulse'; did you mean 'rules'? known: rules, vllm"
    """
    import difflib

    names = sorted(known)
    matches = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {matches[0]!r}? " if matches else ""
    prefix = f"{place}: " if place else ""
    return f"{prefix}unknown {kind} {name!r}; {hint}known: {', '.join(names) or 'none'}"
