"""A benchmark of one's own: its systems draw, the release holds it, and what is forgotten goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from echo_hf.builder.build import build
from echo_hf.cli.posts_view import forget
from echo_hf.errors import RunError
from echo_hf.hub.release import read_release
from echo_hf.systems.generate import generate
from echo_hf.systems.journal import Journal, locked
from tests.hub.quickstart_release import built
from tests.systems.runs_for_tests import Acting, known, sha, system

FORGOTTEN = "https://x.com/hana_hikes/status/9900316480787844284"  # a lake turned into night


@dataclass(frozen=True)
class Run:
    """A built benchmark with a system in its config.

    Attributes:
        config: The config.
        runs: Folder of runs.
        root: The run's folder.
    """

    config: Path
    runs: Path
    root: Path

    def holding(self, *words: bytes) -> set[str]:
        """Its files that hold one of these in their bytes."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {path.name for path in files if any(word in path.read_bytes() for word in words)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The bundled posts, built; made once for the tests below, which follow one another."""
    folder = tmp_path_factory.mktemp("built")
    root = built(folder / "work")
    path = folder / "work" / "config.yaml"
    config = yaml.safe_load(path.read_text("utf-8"))
    config["systems"] = [system().model_dump(mode="json")]
    path.write_text(yaml.safe_dump(config), "utf-8")
    return Run(path, root.parent, root)


@pytest.fixture
def acting() -> Iterator[Acting]:
    """A system that draws whatever it is given."""
    one = Acting()
    with known(one):
        yield one


def test_outputs_go_into_the_release_and_leave_it(run: Run, acting: Acting) -> None:
    """Drawn, released with their images, and gone with the post that the sample was made of."""
    made = generate(run.config, runs=run.runs)
    benchmarks = read_release(run.root / "release").datasets
    ids = {
        name for split in ("image_to_image", "text_to_image") for name in benchmarks[split]["id"]
    }
    assert sorted(acting.asked) == sorted(ids)
    assert made.outcomes == {"mine": {"ok": len(ids)}}

    release = build(run.config, runs=run.runs).path
    outputs = load_dataset(str(release), "outputs", split="test")
    assert set(outputs["sample_id"]) == ids
    assert all(image.size == (8, 8) for image in outputs["image"])
    entries = Journal(run.root, "mine").entries
    raw = read_release(release).datasets["outputs"].with_format("arrow")[:].to_pylist()
    assert {row["sample_id"]: sha(row["image"]["bytes"]) for row in raw} == {
        name: one.image for name, one in entries.items()
    }
    assert generate(run.config, runs=run.runs).plans[0].todo == ()

    with (
        locked(run.root, ["mine"]),
        pytest.raises(RunError, match="at work on the outputs of 'mine'"),
    ):
        forget([FORGOTTEN], run.config, runs=run.runs)
    assert Journal(run.root, "mine").entries == entries

    theirs = forget([FORGOTTEN], run.config, runs=run.runs).samples
    drawn = {entries[name].image for name in theirs if name in entries}
    assert drawn
    others = {one.image for name, one in entries.items() if name not in theirs}
    assert run.holding(*(name.encode() for name in theirs)) == set()
    rows = pq.read_table(run.root / "outputs.parquet")["sample_id"].to_pylist()
    assert sorted(rows) == sorted(ids - set(theirs))
    left = {path.name for path in (run.root / "pictures").glob("*/*")}
    assert left.isdisjoint(drawn - others)
    assert others - {None} <= left

    acting.asked.clear()
    release = build(run.config, runs=run.runs).path
    generate(run.config, runs=run.runs)
    assert set(theirs).isdisjoint(acting.asked)
    assert set(theirs).isdisjoint(read_release(release).datasets["outputs"]["sample_id"])


def test_before_it_is_built_there_is_nothing_to_draw(
    run: Run, acting: Acting, tmp_path: Path
) -> None:
    """One line that says how to build it; no folder is made."""
    with pytest.raises(RunError, match="run `echo-hf build` first"):
        generate(run.config, runs=tmp_path / "runs")
    assert acting.asked == []
    assert not (tmp_path / "runs").exists()
