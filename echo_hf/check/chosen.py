"""Which stages are checked, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echo_hf.check.gold import Gold
from echo_hf.check.stages import CHECKS
from echo_hf.errors import GoldError, StageError, unknown
from echo_hf.steps import STAGES


def check_names(stages: Sequence[str] | None) -> None:
    """Refuses names of what cannot be checked, whatever gold there is.

    Args:
        stages: Names of stages; null for all.

    Raises:
        StageError: There is no such stage, it asks no model, or the list is empty.
    """
    every = ", ".join(CHECKS)
    if stages is not None and not stages:
        raise StageError(
            f"stages {stages!r} would check nothing: expected some of {every}, or "
            "None for all that there is gold for"
        )
    for name in stages or ():
        if name in STAGES and name not in CHECKS:
            raise StageError(f"stage {name!r} asks no model: expected one that does, {every}")
        if name not in CHECKS:
            raise StageError(unknown("stage to check", name, CHECKS))


def chosen_stages(gold: Gold, half: str, stages: Sequence[str] | None) -> list[str]:
    """The stages to check, in order.

    Args:
        gold: The lines of the chosen half.
        half: Which half that is.
        stages: Those that are wished for; null for all that there is gold for.

    Returns:
        Names of stages.

    Raises:
        GoldError: There is no gold for one that is wished for.
    """
    for name in stages or ():
        if why := _lack(name, gold, half):
            raise GoldError(f"stage {name!r} cannot be checked: {why}")
    wanted = CHECKS if stages is None else set(stages)
    return [name for name in CHECKS if name in wanted and not CHECKS[name].lacks(gold)]


def not_checked(gold: Gold, half: str, stages: Sequence[str] | None) -> Iterator[str]:
    """Says for what there is no gold.

    Args:
        gold: The lines of the chosen half.
        half: Which half that is.
        stages: Those that are wished for; null for all that there is gold for.

    Yields:
        A sentence for each stage, or each file of a stage that can do without it.
    """
    for name, check in CHECKS.items():
        if name not in (CHECKS if stages is None else stages):
            continue
        if why := _lack(name, gold, half):
            yield f"{name} is not checked: {why}"
            continue
        empty = [file for file in check.compares if gold.lines.get(file) == ()]
        if empty:
            yield f"{name} is not compared with {empty[0]}: {_no_line(empty, half)}"


def _lack(name: str, gold: Gold, half: str) -> str:
    lacking = CHECKS[name].lacks(gold)
    empty = [files for files in lacking if any(one in gold.lines for one in files.split(" or "))]
    absent = [files for files in lacking if files not in empty]
    said = [f"there is no {', '.join(absent)} (.jsonl)"] if absent else []
    return ", and ".join([*said, *([_no_line(empty, half)] if empty else [])])


def _no_line(files: Sequence[str], half: str) -> str:
    of = "" if half == "all" else f" of half {half!r}"
    return f"there is no line{of} in {', '.join(files)} (.jsonl)"
