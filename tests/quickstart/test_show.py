"""What the quickstart prints beside the run itself."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.quickstart.show import rating_note, show, why_command
from echo_hf.tables import RATINGS


def ratings(*outcomes: str) -> pa.Table:
    """Ratings with these outcomes; only `ok` has a rating."""
    rows = [{"outcome": one, "rating": 5.0 if one == "ok" else None} for one in outcomes]
    return pa.Table.from_pylist(rows, RATINGS.schema)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("ok",), ""),
        ((), ""),
        (
            ("unsupported", "ok", "unsupported"),
            "not rated: unsupported (no picture was drawn for the task); ",
        ),
        (
            ("unsupported", "no_image"),
            "not rated: no_image, unsupported (no picture was drawn for the task); ",
        ),
    ],
)
def test_the_table_says_what_it_lacks(outcomes: tuple[str, ...], expected: str) -> None:
    """Each reason once, in order, and that the judge knows nothing of other posts."""
    note = rating_note(ratings(*outcomes))
    assert note == f"{expected}drawn_truth only knows these posts"


def test_the_default_folder_needs_no_option() -> None:
    """Whoever gave no option needs none."""
    assert "--runs" not in why_command(Path("runs"))


def test_the_printed_command_finds_the_run(tmp_path: Path) -> None:
    """Whatever folder the runs are in, `why` as it is printed says that nothing would run."""
    out = io.StringIO()
    runs = tmp_path / "my runs"
    show(Console(file=out, width=110), runs)
    lines = out.getvalue().splitlines()
    (printed,) = (line.strip() for line in lines if line.startswith("  echo-hf why "))
    table = next(at for at, line in enumerate(lines) if line.startswith(" moved_layout"))
    told = CliRunner().invoke(app, shlex.split(printed)[1:])

    assert told.exit_code == 0
    assert "every result is up to date" in told.stdout
    assert lines[table + 1].endswith("drawn_truth only knows these posts")
