"""What is about removed samples leaves the files that no stage makes again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.apps.events import EVENTS_FILE, EventLog
from echo_hf.builder.takedown import images_named, remove_rows
from echo_hf.cli.posts_view import EVENTS, JOURNALS
from echo_hf.curate.decisions import Changes, Decision, append_decisions, read_decisions
from echo_hf.tables import HUMAN, OUTPUTS, RATINGS

FILES = (JOURNALS, EVENTS)


def write(root: Path, name: str, *rows: dict[str, object]) -> None:
    """A table of a run."""
    schema = {"outputs": OUTPUTS, "ratings": RATINGS, "human": HUMAN}[name].schema
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), root / f"{name}.parquet")


def test_rows_and_decisions_about_a_sample_go(tmp_path: Path) -> None:
    """By hand: two samples, one of them removed, one image that both outputs show."""
    output = {"system": "a", "outcome": "ok"}
    write(
        tmp_path,
        "outputs",
        {**output, "sample_id": "gone", "image": "1"},
        {**output, "sample_id": "gone", "image": "2", "system": "b"},
        {**output, "sample_id": "stays", "image": "2"},
    )
    write(tmp_path, "ratings", {"sample_id": "gone", "explanation": "the lake is dark"})
    write(tmp_path, "human", {"sample_id": "gone", "rater": "r"}, {"sample_id": "stays"})
    append_decisions(
        tmp_path / "review.jsonl",
        [
            Decision(id=name, sample_digest="d", decision="keep", reasons=(), note=f"about {name}")
            for name in ("gone", "stays", "gone")
        ],
    )
    with (tmp_path / "review.jsonl").open("a") as file:
        file.write('{"id": "gone", "note": "cut sho')

    assert images_named(tmp_path, FILES) == {"1", "2"}
    remove_rows(tmp_path, {"gone"}, FILES)
    assert images_named(tmp_path, FILES) == {"2"}
    for name, left in {"outputs": ["stays"], "ratings": [], "human": ["stays"]}.items():
        assert pq.read_table(tmp_path / f"{name}.parquet")["sample_id"].to_pylist() == left
    assert set(read_decisions(tmp_path / "review.jsonl").by_id) == {"stays"}
    held = [path for path in tmp_path.iterdir() if b"gone" in path.read_bytes()]
    assert [path.name for path in held] == []


def test_nothing_is_rewritten_for_nobody(tmp_path: Path) -> None:
    """Without samples, or without rows about them, the files stay as they are."""
    write(tmp_path, "ratings", {"sample_id": "stays"})
    (tmp_path / "review.jsonl").write_text(json.dumps({"not": "a decision"}))
    before = (tmp_path / "ratings.parquet").stat().st_mtime_ns

    remove_rows(tmp_path, set(), FILES)
    (tmp_path / "review.jsonl").unlink()
    remove_rows(tmp_path, {"gone"}, FILES)
    assert (tmp_path / "ratings.parquet").stat().st_mtime_ns == before


def test_what_was_removed_stays_removed_without_a_word(tmp_path: Path) -> None:
    """A sample that loses a post may come back: the bare fact of its removal is kept."""
    said = {"sample_digest": "d", "reasons": ("may_show_minor",), "pictures": ("1",)}
    file = tmp_path / "review.jsonl"
    append_decisions(
        file,
        [
            Decision(id="a", decision="remove", note="a child", **said),
            Decision(id="b", decision="remove", note="a child", **said),
            Decision(id="b", decision="keep", note="looks 30", **said),
        ],
    )
    remove_rows(tmp_path, {"a", "b"}, FILES)

    assert read_decisions(file).every == (
        Decision(id="a", decision="remove", sample_digest="d", reasons=("may_show_minor",)),
    )


def test_what_was_done_in_apps_and_cut_out_goes_with_a_sample(tmp_path: Path) -> None:
    """Words that a reviewer typed go from the log's bytes; a crop is named while it is needed."""
    log = EventLog(tmp_path / EVENTS_FILE)
    made = []
    for name, digest in (("gone", "a" * 64), ("stays", "b" * 64)):
        log.append("review", name, "ann", "edit", {"text": f"teal words of {name}"})
        crop = {"role": "input", "box": (0, 0, 9, 9), "sha256": digest}
        changes = Changes.model_validate({"crops": {"screenshot": "c" * 64, "crops": [crop]}})
        made.append(
            Decision(id=name, sample_digest="d", decision="edit", reasons=(), changes=changes)
        )
    append_decisions(tmp_path / "review.jsonl", made)
    assert images_named(tmp_path, FILES) == {"a" * 64, "b" * 64}
    remove_rows(tmp_path, {"gone"}, FILES)

    assert images_named(tmp_path, FILES) == {"b" * 64}
    assert [event.subject for event in log.events("review")] == ["stays"]
    held = [path for path in tmp_path.iterdir() if b"words of gone" in path.read_bytes()]
    assert held == []
