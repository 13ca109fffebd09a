"""Judges by name in a terminal, with what they failed on in their audits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from echo_hf.thread_view import plain

LONGEST = 40


def judge_names(judges: Iterable[str], failed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The names of judges, each with the honeypots that it failed on.

    Args:
        judges: The judges.
        failed: For each judge that failed its audit, the honeypots that it failed on.

    Yields:
        What to print, in the order of the judges.

    Example:
        >>> list(judge_names(["mira", "otto"], {"mira": ("blank", "shuffled")}))
        ['mira (failed its audit: blank, shuffled)', 'otto']
    """
    for judge in judges:
        flags, name = ", ".join(failed.get(judge, ())), plain(judge, LONGEST)
        yield f"{name} (failed its audit: {flags})" if flags else name
