"""The notebook runs, and shows what it says; `--refreeze` writes its outputs anew."""

from __future__ import annotations

import base64
import io
import os
import re
import sysconfig
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

import echo_hf
from tests.frozen.conftest import HOW

pytestmark = pytest.mark.extras
TREE = Path(echo_hf.__file__).parents[1]
TOUR = TREE / "docs/tour.ipynb"
MOST_BYTES = 200_000
REASON = "needs nbclient, ipykernel and matplotlib: see `make test-extras`"
PNG = "image/png"
FRAME = "print(result.to_pandas().to_json())"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(name, reason=REASON)
    monkeypatch.setenv("PYTHONPATH", str(TREE))
    monkeypatch.setenv("PATH", os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]))
    return tmp_path


def run(notebook: Any, folder: Path) -> Any:
    from nbclient import NotebookClient

    resources = {"metadata": {"path": str(folder)}}
    options = {"timeout": 300, "kernel_name": "python3", "record_timing": False}
    return NotebookClient(notebook, resources=resources, **options).execute()


def outputs(notebook: Any, kind: str) -> list[tuple[str, str]]:
    return [
        (cell.source, one.get("data", {}).get(kind) or one.get("text", ""))
        for cell in notebook.cells
        for one in cell.get("outputs", ())
        if (kind in one.get("data", {}) and (kind == PNG or PNG not in one.data))
        or (kind == "text/plain" and one.get("name") == "stdout")
    ]


def test_the_notebook_runs_and_shows_what_it_stores(place: Path, request: Any) -> None:
    import nbformat

    stored = nbformat.read(TOUR, as_version=4)
    found = nbformat.read(TOUR, as_version=4)
    found.cells.append(nbformat.v4.new_code_cell(FRAME))
    shown = pd.read_json(io.StringIO(run(found, place).cells.pop().outputs[0].text))
    if request.config.getoption("--refreeze"):
        for cell, ran in zip(stored.cells, found.cells, strict=True):
            if cell.cell_type == "code":
                cell.execution_count = ran.execution_count
                cell.outputs = [one for one in ran.outputs if one.get("name") != "stderr"]
        nbformat.write(stored, TOUR)
    assert outputs(found, "text/plain") == outputs(stored, "text/plain"), HOW

    (plot,) = (data for source, data in outputs(found, PNG) if source == "result.plot();")
    assert Image.open(io.BytesIO(base64.b64decode(plot))).width > 300
    systems = ["exact_copy", "misspelt_text", "yellow_tint", "moved_layout"]
    assert list(shown["system"]) == systems
    assert shown["win_rate"].between(shown["low"], shown["high"]).all()
    with_plot = [source for source, _ in outputs(stored, PNG)]
    assert with_plot == [source for source, _ in outputs(found, PNG)]


def test_the_notebook_is_small_and_knows_no_machine(place: Path) -> None:
    import nbformat

    notebook = nbformat.read(TOUR, as_version=4)
    texts = [text for kind in ("text/plain", "text/html") for _, text in outputs(notebook, kind)]
    assert texts
    assert "stderr" not in [
        one.get("name") for cell in notebook.cells for one in cell.get("outputs", ())
    ]
    assert not [text for text in texts if re.search(r"(^|[\s'\"(])(/|~/|[A-Z]:\\)\w", text)]
    assert TOUR.stat().st_size <= MOST_BYTES
