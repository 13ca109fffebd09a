"""The decisions of reviewers: their file, and for which samples they hold."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.decisions import (
    Decision,
    ReviewDecisions,
    append_decisions,
    drop_decisions,
    read_decisions,
)
from echo_hf.errors import ReviewError

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
MINOR = "may_show_minor"
EDIT = {"prompt": {"text": "a fox", "modified": True}, "sample_digest": "f" * 64}


def decision(decided: str = "keep", **values: Any) -> Decision:
    plain = {"id": "one", "sample_digest": "digest", "decision": decided, "reasons": [MINOR]}
    return Decision.model_validate({**plain, "pictures": [A, B, C], **values})


def test_who_decides_again_has_the_last_word(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    append_decisions(file, [decision("remove"), decision(id="two")])
    append_decisions(file, [decision("keep", note="looks 30")])
    found = read_decisions(file)

    said = [(name, one.decision, one.note) for name, one in found.by_id.items()]
    assert sorted(said) == [("one", "keep", "looks 30"), ("two", "keep", None)]
    assert len(file.read_text("utf-8").splitlines()) == 3


@given(st.data())
def test_a_line_that_was_cut_short_is_reported(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "review.jsonl"
        append_decisions(file, [decision("remove"), decision(id="two", note="é 猫")])
        whole = file.read_bytes()
        end = data.draw(st.integers(whole.index(b"\n") + 1, len(whole)))
        file.write_bytes(whole[:end])
        before = read_decisions(file)
        append_decisions(file, [decision(id="three")])
        found = read_decisions(file)

    is_cut = whole.index(b"\n") + 1 < end < len(whole) - 1
    assert before.cut == ((2,) if is_cut else ())
    assert found.cut == ()
    two = {"two"} if end >= len(whole) - 1 else set()
    assert set(found.by_id) == {"one", "three"} | two


def _line(**values: Any) -> str:
    return json.dumps({**json.loads(decision().model_dump_json()), **values})


EMPTY_CROP = {"role": "input", "box": [5, 0, 5, 9], "sha256": A}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('["one", "keep"]', "expected a mapping"),
        ('{"id": "one",, "decision": "remove"}', "invalid JSON: "),
        ('{"id": "one"}', "are missing"),
        (_line(decision="drop"), "decision is 'drop'"),
        (_line(notes="x"), "unknown key 'notes'"),
        (_line(note="x\x00"), "control character"),
        (_line(changes={"prompt": {"text": "\u200b \u200d", "modified": True}}), "it has no word"),
        (_line(changes={"prompt": {"text": "a\x00fox", "modified": True}}), "character '\\x00'"),
        (_line(changes={"crops": {"screenshot": C, "crops": [EMPTY_CROP]}}), "box"),
        (_line(changes={"promt": None}), "unknown key"),
    ],
)
def test_a_whole_line_that_is_no_decision_is_refused(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "review.jsonl"
    file.write_text(decision().model_dump_json() + "\n" + line + "\n", "utf-8")

    with pytest.raises(ReviewError) as caught:
        read_decisions(file)
    assert str(caught.value).startswith(f"{file}:2: ")
    assert said in str(caught.value)


def _append(file: Path, name: str) -> None:
    for _ in range(5):
        append_decisions(file, [decision(id=name)])


def test_reviewers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append, args=(file, name)) for name in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    lines = [json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()]
    assert sorted(lines) == ["one"] * 5 + ["two"] * 5


def test_lines_of_earlier_versions_are_read_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    line = {"id": "one", "sample_digest": "digest", "decision": "keep", "reasons": [MINOR]}
    line |= {"pictures": [A, B, C], "note": None, "at": "2026-03-09T10:12:00+00:00"}
    file.write_text(json.dumps(line) + "\n", "utf-8")
    found = read_decisions(file).by_id["one"]

    assert (found.reviewer, found.changes, found.event) == (None, None, None)
    text = json.dumps(["digest", [MINOR], [A, B, C]])
    assert found.describe() == f"keep {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def test_a_change_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    crops = {"screenshot": C, "inset": 2, "crops": [{**EMPTY_CROP, "box": [1, 2, 9, 8]}]}
    roles = [{"sha256": B, "role": "neither"}, {"sha256": A, "role": "output", "post_url": "u"}]
    made = decision(
        "flag", changes={**EDIT, "roles": roles, "crops": crops, "quality": "Trash"},
        reviewer="ann", event=7,
    )  # fmt: skip
    append_decisions(file, [made])
    assert read_decisions(file).by_id["one"] == made
    assert made.edits is not None
    assert made.edits.changed_parts == ("prompt", "quality", "roles", "crops")
    assert made.edits.images == {A}


def test_what_is_forgotten_leaves_no_words_of_a_change(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    said = {"changes": EDIT, "reviewer": "ann"}
    append_decisions(file, [decision("edit", **said), decision("remove", **said, note="hers")])
    append_decisions(file, [decision("edit", id=name, **said) for name in ("two", "three")])
    drop_decisions(file, {"one", "two"})
    found = read_decisions(file).by_id

    assert set(found) == {"one", "three"}
    one = found["one"]
    assert (one.decision, one.changes, one.reviewer, one.note) == ("remove", None, None, None)
    assert found["three"].changes is not None


DATA = "personal_data"


def row(**values: Any) -> dict[str, Any]:
    plain = {"id": "one", "sample_digest": "digest", "review": [MINOR], "safety": None}
    shown = {"input_images": [A], "output_images": [B], "screenshot": C}
    return {**plain, **shown, **values}


def after(*made: Decision) -> ReviewDecisions:
    return ReviewDecisions({one.id: one for one in made})


def test_what_is_kept_is_no_longer_open() -> None:
    """By hand, for the sample as it was, and for one of which less is to be looked at."""
    decided = after(decision())
    for sample in (row(), row(review=[]), row(output_images=[]), row(screenshot=None)):
        assert (decided.removes(sample), decided.open_reasons(sample)) == (False, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"sample_digest": "other"},
        {"review": [MINOR, DATA]},
        {"output_images": [B, "d" * 64]},
        {"screenshot": "d" * 64},
        {"id": "two"},
    ],
)
def test_a_sample_that_has_changed_is_open_again(changed: dict[str, Any]) -> None:
    sample = row(**changed)
    assert after(decision()).open_reasons(sample) == sample["review"]


CROP = {**EMPTY_CROP, "box": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    "changes",
    [{"roles": [{"sha256": B, "role": "neither"}]}, {"crops": {"screenshot": C, "crops": [CROP]}}],
)
def test_a_change_of_an_image_that_lost_its_metadata_since_is_open_again(changes: Any) -> None:
    decided = after(decision("edit", changes=changes))
    assert decided.find_edit(row()) is not None
    cleaned = [{"posted_sha256": one, "sha256": "d" * 64} for one in (B, C)]
    sample = row(output_images=["d" * 64], cleaned_images=cleaned)
    assert decided.find_edit(sample) is None
    assert decided.open_reasons(sample) == [MINOR, "edited_earlier"]


def test_what_is_removed_stays_removed_while_it_is_the_same_task() -> None:
    decided = after(decision("remove"))

    assert decided.removes(row(review=[MINOR, DATA], output_images=["d" * 64]))
    changed = row(sample_digest="other", review=[])
    assert not decided.removes(changed)
    assert decided.open_reasons(changed) == ["removed_earlier"]
    assert decided.open_reasons({**changed, "review": [DATA]}) == [DATA, "removed_earlier"]


def test_what_decides_a_build_is_described() -> None:
    told = after(decision()).describe()

    assert told["one"].startswith("keep ")
    assert told == after(decision(note="looks 30", at="2026-03-09")).describe()
    others = ({"sample_digest": "x"}, {"reasons": []}, {"pictures": []}, {"doubts": ["no"]})
    for other in (*others, {"changes": EDIT}):
        assert after(decision(**other)).describe() != told
    assert after(decision("remove")).describe()["one"].startswith("remove ")


def test_a_change_holds_for_the_version_that_was_seen() -> None:
    for decided in ("keep", "remove", "flag", "edit"):
        found = after(decision(decided, changes=EDIT)).find_edit(row())
        assert found is not None
        assert found.decision == decided
    assert after(decision("withdraw", changes=EDIT)).find_edit(row()) is None
    assert after(decision(changes={})).find_edit(row()) is None
    assert after(decision(changes=EDIT)).find_edit(row(sample_digest="other")) is None
