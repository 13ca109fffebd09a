"""What a person has to look at before a benchmark is published, and what was decided about it.

Everything is read from the last build: no model is asked, and nothing is run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.config import Config
from echo_hf.curate.cases import Case, made_decision, read_cases, samples_of
from echo_hf.curate.changes import Changes
from echo_hf.curate.decision import Decision, pictures_of
from echo_hf.curate.decision_file import FILE, append_decisions, read_decisions
from echo_hf.curate.decisions import Decisions
from echo_hf.curate.edit import Edit, checked_changes
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.pipeline import Pipeline
from echo_hf.reasons import Reject, Status
from echo_hf.run import RUNS, opened


@dataclass(frozen=True)
class OpenReview:
    """A sample that would be published, but for what a person has to look at.

    Attributes:
        id: The sample.
        reasons: Why, from `echo_hf.reasons.Review`.
        prompt: Its prompt; strangers wrote it.
        pictures: The files of its pictures.
    """

    id: str
    reasons: tuple[str, ...]
    prompt: str
    pictures: tuple[Path, ...]


@dataclass(frozen=True)
class Reviews:
    """What is open in a run.

    Attributes:
        open: The samples to look at.
        file: Where decisions are written down.
        cut: Numbers of its lines that are cut short and do not count.
    """

    open: tuple[OpenReview, ...]
    file: Path
    cut: tuple[int, ...]


def open_reviews(config: Config | Path | str, *, runs: Path | str = RUNS) -> Reviews:
    """Lists what a person has to look at before the last build is published.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.

    Returns:
        The samples that would be released and have something open, after all decisions so far.

    Raises:
        RunError: Nothing was built yet.
        ReviewError: The file of decisions cannot be read.
    """
    with opened(config, runs, writes=False) as pipeline:
        root = pipeline.folder.root
        placed = Splits.from_config(pipeline.config, pipeline.folder.pictures).in_run(root)
        table = samples_of(pipeline)
        samples = placed(table).to_pylist()
        waiting = [one for one in samples if one["_status"] == Status.KEPT and one["review"]]
        unclean = {one["_parent"][0] for one in samples if one["_reason"] == Reject.NOT_CLEANED}
        rows = table.filter(pc.is_in(table["id"], pa.array(unclean, pa.string()))).to_pylist()
        waiting += [{**row, "review": placed.decisions.open_reasons(row)} for row in rows]
        found = tuple(_open(one, pipeline) for one in waiting)
        return Reviews(found, root / FILE, placed.decisions.cut)


def decide(
    config: Config | Path | str,
    *,
    keep: Iterable[str] = (),
    remove: Iterable[str] = (),
    flag: Iterable[str] = (),
    withdraw: Iterable[str] = (),
    edits: Mapping[str, Edit] | None = None,
    note: str | None = None,
    reviewer: str | None = None,
    runs: Path | str = RUNS,
) -> list[Decision]:
    """Writes a reviewer's decisions down; the next build follows them.

    A decision holds for a sample as it is: `keep` for its prompt, its pictures and the reasons of
    its review, `remove` for its prompt and inputs. A later decision takes the place of this one;
    what was changed of the sample before stays changed, unless it is withdrawn or changed anew.

    Args:
        config: The config, or the path of its file.
        keep: Samples that may be published.
        remove: Samples to leave out; they need not be open.
        flag: Samples to leave open, for somebody else.
        withdraw: Samples about which nothing is to be decided or changed any more.
        edits: What to change, by sample; without another decision it is only changed.
        note: Why, in the reviewer's words.
        reviewer: Who, by a pseudonym.
        runs: Folder of runs.

    Returns:
        The decisions, in the order given.

    Raises:
        RunError: Nothing was built yet.
        ReviewError: A sample is unknown, to be decided twice, or cannot be changed so; nothing is
            written then.
    """
    edits = dict(edits or {})
    given = _once({"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw})
    given = {**dict.fromkeys(edits, "edit"), **given}
    with opened(config, runs, writes=False) as pipeline:
        cases, file = read_cases(pipeline), pipeline.folder.root / FILE
        before = read_decisions(file)
        _check_known(given, cases)
        made = []
        for name, decided in given.items():
            changes = _changes(cases[name], decided, edits.get(name), before, pipeline)
            row = cases[name].row
            made.append(made_decision(row, decided, note=note, reviewer=reviewer, changes=changes))
        append_decisions(file, made)
    return made


def _once(given: Mapping[str, Iterable[str]]) -> dict[str, str]:
    decided: dict[str, str] = {}
    told = {"keep": "kept", "remove": "removed", "flag": "flagged", "withdraw": "withdrawn"}
    for what, names in given.items():
        for name in names:
            first = decided.setdefault(name, what)
            if first != what:
                raise ReviewError(
                    f"sample {name!r} is to be {told[first]} and {told[what]}: expected one of "
                    "the two"
                )
    return decided


def _changes(
    case: Case, decided: str, edit: Edit | None, before: Decisions, pipeline: Pipeline
) -> Changes | None:
    if decided == "withdraw":
        return None
    if edit is None:
        earlier = before.changes(case.row)
        return earlier.changed if earlier else None
    return checked_changes(case.row, case.context, edit, pipeline.folder.pictures, case.taken)


def _open(row: Mapping[str, Any], pipeline: Pipeline) -> OpenReview:
    files = tuple(pipeline.folder.pictures.path(one) for one in pictures_of(row))
    return OpenReview(row["id"], tuple(row["review"]), row["prompt"], files)


def _check_known(names: Iterable[str], cases: Mapping[str, Case]) -> None:
    for name in names:
        if name not in cases:
            near = difflib.get_close_matches(name, cases, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ReviewError(
                f"no sample {name!r} in the last build; {hint}`echo-hf review` lists what is open"
            )
