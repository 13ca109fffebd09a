"""A board on a Hub in memory: a release with outputs, ratings and results of three systems."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from PIL import Image

from echo_hf.config.sections import SubmissionsOptions
from echo_hf.engines.base import Request
from echo_hf.errors import MissingExtraError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import write_release
from echo_hf.hub.remote import Remote
from echo_hf.hub.run_tables import select_released_tables
from echo_hf.images.store import ImageStore
from echo_hf.judging import speaks_to_judge
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.metrics.ocr_accuracy import TextLines
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.submissions.requests import SubmissionRequests
from echo_hf.submissions.submit import submit
from echo_hf.tables import OUTPUTS, SAMPLES
from tests.hub.conftest import _own_cache as _own_cache
from tests.hub.conftest import command as command
from tests.hub.conftest import hub as hub
from tests.judging.judges_for_tests import ScriptedJudge, config_of, images_of, judge_of, rated
from tests.judging.run_for_tests import TARGET, output, put, root, run, sample, write
from tests.local_hub import LocalHub
from tests.local_hub_repository import StoredFile

REPO, TAG = "pixel-lab/echo", "v1"
WORDS = tuple(f"word{at:02}" for at in range(20))
EDITS = ("edit0", "edit1", "edit2", "edit3")
NAMES = (*EDITS, *WORDS)
SYSTEMS = ("ash", "birch", "cedar")
Draw = Callable[[str, str], bytes]


def noise(system: str, word: str) -> bytes:
    """An image of soft spots that nobody else has drawn."""
    rng = np.random.default_rng([*system.encode(), 0, *word.encode()])
    spots, sink = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8)), io.BytesIO()
    spots.resize((48, 48), Image.Resampling.BICUBIC).save(sink, "PNG")
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


def says(request: Request) -> str:
    """A rating that depends on the image alone."""
    return rated(rating_of(images_of(request)[-1]))


def rating_of(digest: str) -> int:
    return 1 + int(digest[:8], 16) % 10


@pytest.fixture
def eyes() -> ScriptedJudge:
    """The board's judge, at a quarter of a dollar."""
    return ScriptedJudge(says=says).use()


@pytest.fixture(scope="session")
def _release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ScriptedJudge(says=says).use()
    return write_release_of(tmp_path_factory.mktemp("board"), SYSTEMS, "lumen")


def write_release_of(
    folder: Path, systems: Iterable[str], name: str, dehydrated: Collection[str] = ()
) -> Path:
    """A board as a folder: outputs of systems, rated and scored."""
    run(folder, INPUTS, WORDS)
    drawn = [
        output(sample, system, INPUTS.get(sample, ()), image=put(folder, noise(system, sample)))
        for sample in NAMES
        for system in systems
    ]
    write(folder, OUTPUTS, drawn)
    config = config_of(folder, [judge_of()])
    judge(config, runs=folder / "runs")
    score(config, runs=folder / "runs", n_boot=50)
    store, schema = ImageStore(root(folder) / "pictures"), SAMPLES.features.arrow_schema
    edits = [sample(name, [*map(store.put, images)]) for name, images in INPUTS.items()]
    rows = {"image_to_image": edits, "text_to_image": [sample(word, []) for word in WORDS]}
    for row in rows["text_to_image"]:
        row |= {"prompt": None, "dehydrated": True} if row["id"] in dehydrated else {}
    samples = {one: Dataset(pa.Table.from_pylist(some, schema)) for one, some in rows.items()}
    tables = select_released_tables(root(folder), samples).configs
    facts = ReleaseFacts(name, TARGET)
    return write_release(folder / "release", {**samples, **tables}, store, facts).path


@pytest.fixture
def release(_release: Path) -> Path:
    return _release


@contextmanager
def published(release: Path, hub: LocalHub) -> Iterator[LocalHub]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # it is on loopback
        publish(release, REPO, TAG, api=hub.api(), allow_unscreened=True)
        yield hub


@pytest.fixture
def board(_release: Path, eyes: ScriptedJudge, hub: LocalHub) -> Iterator[LocalHub]:
    """The board on the Hub, as `v1`."""
    with published(_release, hub) as running:
        yield running


@pytest.fixture(scope="session")
def _bundle(_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("submission")
    folder_of(place / "images")
    with LocalHub() as hub, published(_release, hub):
        submit(f"{REPO}@{TAG}", f"fern={place / 'images'}", to=place / "to", api=hub.api())
    return place / "to" / "fern"


@pytest.fixture
def bundle(_bundle: Path, tmp_path: Path) -> Path:
    """A submission as a folder: a commit of a Hub in memory has one name, whatever Hub it is."""
    shutil.copytree(_bundle, tmp_path / "bundle" / "fern")
    return tmp_path / "bundle" / "fern"


def sign(folder: Path, **changes: Any) -> None:
    """Writes a submission anew: what it says of itself is changed, files and digest fit."""
    path = folder / "submission.json"
    told = {**json.loads(path.read_bytes()), **changes}
    told.pop("digest")
    if "name" in changes:
        told["figures"] = [{**row, "system": changes["name"]} for row in told["figures"]]
    shards = sorted(folder.glob("*.parquet"))
    told["files"] = [
        {
            "path": shard.name,
            "bytes": shard.stat().st_size,
            "sha256": hashlib.sha256(shard.read_bytes()).hexdigest(),
        }
        for shard in shards
    ]
    canonical = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    told["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(told), "utf-8")


def files_in(folder: Path, name: str = "fern", tag: str = TAG) -> dict[str, bytes]:
    start = f"submissions/{tag}/{name}"
    return {f"{start}/{path.name}": path.read_bytes() for path in folder.iterdir()}


def propose(hub: LocalHub, files: Mapping[str, bytes], author: str = "tofu") -> int:
    """Opens a request that changes files, as anybody may on the Hub."""
    repository = hub.repositories[REPO]
    stored = {path: StoredFile(data, lfs=len(data) > 1000) for path, data in files.items()}
    tree = {**repository.commits[repository.head].files, **stored}
    oid = repository.add("Submit", repository.head, tree)
    return repository.propose(f"Submit fern to {TAG}", "by a stranger", oid, author)


class ScriptedReader:
    """In place of the three networks that read words: the reader of the extra `ocr`."""

    definition: Mapping[str, Any] = {"networks": {}}

    def read(self, _: object) -> TextLines:
        return TextLines(())


def lack_reader() -> None:
    """A machine without the extra `ocr`."""
    raise MissingExtraError("reading", "ocr")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has the extra `ocr`, and outputs without words."""
    monkeypatch.setattr(speaks_to_judge, "TextReader", ScriptedReader)


@pytest.fixture
def requests(board: LocalHub, tmp_path: Path) -> SubmissionRequests:
    """The maintainer's side."""
    remote = Remote(board.api(), REPO)
    folder = RunFolder(tmp_path / "runs" / "mine")
    return SubmissionRequests(SubmissionsOptions(), remote, folder)
