"""What is written down of a task is sound, whatever an adapter gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.engines.base import Usage
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.journal import Journal, JournalEntry
from echo_hf.systems.runner import AttemptedTask, entry_of
from tests.systems.runs_for_tests import png, sha, task


def kept(root: Path, drawn: GenerationResult) -> JournalEntry:
    """What is made of it, and is the same when it is read back."""
    entry = entry_of(task(0), AttemptedTask(drawn, 2, 1.23456), "s", ImageStore(root / "pictures"))
    Journal(root, "mine").add(entry)
    assert Journal(root, "mine").entries == {"s0": entry}
    return entry


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (GenerationResult(Outcome.OK, b"no picture"), "not a readable image"),
        (GenerationResult(Outcome.OK), "no image with the outcome ok"),
        (GenerationResult(Outcome.REFUSED, png("fox")), "an image with the outcome refused"),
        (GenerationResult(Outcome.OK, "text"), "encoded"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_image_is_a_failure_of_the_answer(
    tmp_path: Path, drawn: GenerationResult, words: str
) -> None:
    """`ok` has an image that can be decoded, and nothing else has one."""
    one = kept(tmp_path, drawn)
    assert (one.outcome, one.stage, one.image) == ("failed", OutcomeStage.ANSWER, None)
    assert words in (one.text or "")


@pytest.mark.parametrize("outcome", [one for one in Outcome if one != Outcome.OK])
def test_an_outcome_without_an_image_stays(tmp_path: Path, outcome: Outcome) -> None:
    """With where it ended and what was said."""
    one = kept(
        tmp_path, GenerationResult(outcome, stage=OutcomeStage.OUTPUT, code="moderated", text="No.")
    )
    assert (one.outcome, one.stage, one.code, one.text) == (outcome, "output", "moderated", "No.")
    assert (one.attempts, one.latency_s) == (2, 1.235)


class Count(int):
    """A number of some library's own."""


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    ("details", "plain"),
    [
        ({"size": (8, 8), "share": float("nan")}, {"size": [8, 8], "share": "NaN"}),
        ({"at": Path("/data")}, {"at": "/data"}),
        ({("a", 1): 2}, {"not_json": "{('a', 1): 2}"}),
        (LOOP, {"not_json": "{'self': {...}}"}),
    ],
    ids=["numbers", "path", "key", "loop"],
)
def test_a_remark_that_json_cannot_hold_costs_no_image(
    tmp_path: Path, details: dict[Any, Any], plain: dict[str, Any]
) -> None:
    """Half a character, foreign numbers and objects: what is paid for is kept."""
    said = GenerationResult(
        Outcome.OK, png("x"), text="half \ud83d", seed=Count(4), details=details
    )
    one = kept(tmp_path, said)
    assert (one.outcome, one.image, one.text, one.seed) == ("ok", sha(png("x")), "half ?", 4)
    assert one.details == plain


def test_a_build_that_begins_costs_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sweeps away what looks half-written, between the writing and the renaming of this one."""
    rename, swept = Path.replace, list[Path]()

    def sweeping(partial: Path, target: Path) -> Path:
        if not swept:
            swept.append(partial)
            partial.unlink()
        return rename(partial, target)

    monkeypatch.setattr(Path, "replace", sweeping)
    one = kept(tmp_path, GenerationResult(Outcome.OK, png("x")))
    assert len(swept) == 1
    assert ImageStore(tmp_path / "pictures").open(one.image or "") == png("x")


def test_a_number_of_a_library_is_the_plain_one(tmp_path: Path) -> None:
    """As numpy and torch have them."""
    said = GenerationResult(Outcome.OK, png("fox"), seed=np.int64(7), cost_usd=np.float32(0.5))  # type: ignore[arg-type]
    one = kept(tmp_path, said)
    assert (one.seed, one.cost_usd, dict(one.details)) == (7, 0.5, {})
    assert one.image_bytes == len(png("fox"))


class Tensor:
    """A number that does not say which."""

    def __repr__(self) -> str:
        return "tensor(7)"


@pytest.mark.parametrize("name", ["seed", "cost_usd", "usage"])
def test_what_is_no_number_is_told_beside_the_image(tmp_path: Path, name: str) -> None:
    """The image stays, and the journal can be read by every later command."""
    wrong = Usage(1, Tensor()) if name == "usage" else Tensor()  # type: ignore[arg-type]
    one = kept(tmp_path, GenerationResult(Outcome.OK, png("fox"), **{name: wrong}))
    assert (one.outcome, getattr(one, name)) == ("ok", None)
    assert "tensor(7)" in one.details["unfit"][name]
