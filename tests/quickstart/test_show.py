"""What the quickstart prints beside the run itself."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.cli.progress import Watch
from echo_hf.quickstart.run import rating_note, show, why_command
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
            "not rated: unsupported (no image was drawn for the task); ",
        ),
        (
            ("unsupported", "no_image"),
            "not rated: no_image, unsupported (no image was drawn for the task); ",
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


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Its folder of runs, and what it printed."""
    out, runs = io.StringIO(), tmp_path_factory.mktemp("quickstart") / "my runs"
    show(Watch(Console(file=out, width=160)), runs)
    return runs, out.getvalue()


def test_the_printed_command_finds_the_run(shown: tuple[Path, str]) -> None:
    """Whatever folder the runs are in, `why` as it is printed says that nothing would run."""
    lines = shown[1].splitlines()
    (printed,) = (line.strip() for line in lines if line.startswith("  echo-hf why "))
    told = CliRunner().invoke(app, shlex.split(printed)[1:])

    assert told.exit_code == 0
    assert "every result is up to date" in told.stdout
    assert any(line.endswith("drawn_truth only knows these posts") for line in lines)


SECOND = """
import io, sys
from pathlib import Path
from rich.console import Console
from echo_hf.cli.progress import Watch
from echo_hf.quickstart.run import show
show(Watch(Console(file=sys.stdout, width=160)), Path(sys.argv[1]))
print("datasets" in sys.modules)
"""


def test_an_unchanged_run_is_shown_from_its_files(shown: tuple[Path, str]) -> None:
    """The same text without datasets; where a file of the run is gone, it is made again."""
    runs, said = shown
    again = subprocess.run(
        [sys.executable, "-c", SECOND, str(runs)], capture_output=True, text=True, check=True
    )
    assert again.stdout == f"{said}False\n"

    (runs / "quickstart" / "report" / "index.html").unlink()
    show(Watch(Console(quiet=True)), runs)
    assert (runs / "quickstart" / "report" / "index.html").is_file()


def test_the_tint_is_singled_out(shown: tuple[Path, str]) -> None:
    """Of the four stand-ins, the one with a fifth of the blue gone has by far the largest shift."""
    (results,) = shown[0].glob("*/results.json")
    rows = json.loads(results.read_text("utf-8"))["results"]
    shift = {row["system"]: row["value"] for row in rows if row["metric"] == "color_shift"}
    tinted = shift.pop("yellow_tint")
    assert len(shift) == 3
    assert tinted > 10 * max(shift.values())
    assert "yellower" in shown[1]


def test_other_metrics_say_what_they_lack(shown: tuple[Path, str]) -> None:
    """Their coverage is 0; packages are named with the command that installs them."""
    (results,) = shown[0].glob("*/results.json")
    rows = json.loads(results.read_text("utf-8"))["results"]
    lacking = {row["metric"]: row["coverage"] for row in rows if row["value"] is None}
    assert lacking["text_rendering"] == 0
    assert "text_rendering ↑" in shown[1]
    for package, metric, extra in (
        ("torch", "structure_distance", "metrics"),
        ("insightface", "face_identity", "face"),
    ):
        if not find_spec(package):
            assert lacking[metric] == 0
            assert f'pip install "echo-hf[{extra}]"' in shown[1]
