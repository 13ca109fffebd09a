"""A board on a Hub in memory: a release with outputs, ratings and results of three systems."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from PIL import Image

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import write_release
from echo_hf.hub.run_tables import select_released_tables
from echo_hf.images.store import ImageStore
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.tables import OUTPUTS, SAMPLES
from tests.hub.conftest import _own_cache as _own_cache
from tests.hub.conftest import command as command
from tests.hub.conftest import hub as hub
from tests.judging.judges_for_tests import ScriptedJudge, config_of, images_of, judge_of, rated
from tests.judging.run_for_tests import TARGET, output, put, root, run, sample, write
from tests.local_hub import LocalHub

REPO, TAG = "pixel-lab/echo", "v1"
WORDS = tuple(f"word{at:02}" for at in range(20))
EDITS = ("edit0", "edit1", "edit2", "edit3")
NAMES = (*EDITS, *WORDS)
SYSTEMS = ("ash", "birch", "cedar")
Draw = Callable[[str, str], bytes]


def noise(system: str, word: str, side: int = 24) -> bytes:
    """An image that nobody else has drawn."""
    rng = np.random.default_rng([*system.encode(), 0, *word.encode()])
    sink = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (side, side, 3), np.uint8)).save(sink, "PNG")
    return sink.getvalue()


INPUTS = {edit: [noise("given", edit)] for edit in EDITS}


def folder_of(
    place: Path, system: str = "fern", draw: Draw = noise, samples: Iterable[str] = NAMES
) -> Path:
    """A folder with an output of each sample, named by its id."""
    place.mkdir(parents=True)
    for name in samples:
        (place / f"{name}.png").write_bytes(draw(system, name))
    return place


@pytest.fixture
def eyes() -> ScriptedJudge:
    """A judge whose rating depends on the image alone, at a quarter of a dollar."""
    return ScriptedJudge(
        says=lambda request: rated(1 + int(images_of(request)[-1][:8], 16) % 10)
    ).use()


@pytest.fixture
def release(tmp_path: Path, eyes: ScriptedJudge) -> Path:
    """A board as a folder."""
    folder = tmp_path / "board"
    folder.mkdir()
    run(folder, INPUTS, WORDS)
    drawn = [
        output(name, system, INPUTS.get(name, ()), image=put(folder, noise(system, name)))
        for name in NAMES
        for system in SYSTEMS
    ]
    write(folder, OUTPUTS, drawn)
    config = config_of(folder, [judge_of()])
    judge(config, runs=folder / "runs")
    score(config, runs=folder / "runs", n_boot=50)
    eyes.asked.clear()
    return write_board(folder, tmp_path / "release")


def write_board(folder: Path, target: Path) -> Path:
    store, schema = ImageStore(root(folder) / "pictures"), SAMPLES.features.arrow_schema
    edits = [sample(name, [*map(store.put, images)]) for name, images in INPUTS.items()]
    rows = {"image_to_image": edits, "text_to_image": [sample(word, []) for word in WORDS]}
    samples = {one: Dataset(pa.Table.from_pylist(some, schema)) for one, some in rows.items()}
    tables = select_released_tables(root(folder), samples).configs
    return write_release(target, {**samples, **tables}, store, ReleaseFacts("lumen", TARGET)).path


@pytest.fixture
def board(release: Path, hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """The same on the Hub, as `v1`."""
    resolve = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", resolve)
    publish(release, REPO, TAG, api=hub.api(), allow_unscreened=True)
    return hub
