"""Small releases of drawn images and invented posts."""

from __future__ import annotations

import datetime
import io
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import huggingface_hub
import huggingface_hub.constants
import pyarrow as pa
import pytest
from datasets import Dataset
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars
from PIL import Image, ImageDraw

from echo_hf.cli import main
from echo_hf.config.sections import Target
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.load import evaluate_module
from echo_hf.hub.publish import PublishResult, publish
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import SHARD_BYTES, Release, read_release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, SAMPLES
from tests.hub.quickstart_release import built
from tests.local_hub import WRITER, LocalHub

REPO = "pixel-lab/echo"
Samples = Callable[..., Dataset]
Configs = Mapping[str, Dataset]


def drawing(kind: str, **options: Any) -> bytes:
    image = Image.new("RGB", (48, 32), "navy")
    draw = ImageDraw.Draw(image)
    for x in range(0, 48, 3):
        draw.line((x, 0, 47 - x, 31), fill=(5 * x, 255 - 4 * x, 3 * x))
    sink = io.BytesIO()
    image.save(sink, kind, **options)
    return sink.getvalue()


DRAWN = {
    "png": drawing("PNG"),
    "jpg": drawing("JPEG", quality=85),
    "webp": drawing("WEBP", quality=70),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))


@pytest.fixture
def images(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "pictures")


@pytest.fixture
def drawings() -> dict[str, bytes]:
    return DRAWN


@pytest.fixture
def digests(images: ImageStore) -> dict[str, str]:
    """The sha256 of each drawing, which are in the store."""
    return {name: images.put(data) for name, data in DRAWN.items()}


def sample(number: int, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(SAMPLES.columns)
    lists = ("post_urls", "community_feedback", "input_images", "output_images")
    row.update({name: [] for name in lists}, id=f"sample{number}", target="Pixelbloom")
    row["safety"] = {"flagged": False, "categories": [], "model": "guard"}
    return {**row, **values}


@pytest.fixture
def samples() -> Samples:
    def build(*rows: Mapping[str, Any]) -> Dataset:
        full = [sample(number, **row) for number, row in enumerate(rows)]
        return Dataset(pa.Table.from_pylist(full, schema=SAMPLES.features.arrow_schema))

    return build


@pytest.fixture
def configs(samples: Samples, digests: Mapping[str, str]) -> Configs:
    png, jpg, webp = digests["png"], digests["jpg"], digests["webp"]
    edit = {
        "prompt": "Make it\n\"rain\" | 雨 \u2028 --- '$x'",
        "post_urls": ["https://example.org/@mira_draws/1"],
        "input_images": [jpg],
        "output_images": [png, webp],
        "screenshot": png,
        "is_screenshot": True,
        "input_bboxs": [[0.0, 1.5, 20.0, 30.0]],
        "community_feedback": [{"post_id": "2", "post_url": None, "feedback": "too blue"}],
        "safety": {"flagged": False, "categories": ["none"], "model": "guard"},
    }
    plain = {"prompt": "A fox", "output_images": [webp, jpg]}
    return {
        "image_to_image": samples(),
        "text_to_image": samples(plain, {"prompt": "A hat"}),
        "analysis": samples(edit, plain, {"output_images": [png]}),
    }


@pytest.fixture
def outputs(digests: Mapping[str, str]) -> Dataset:
    made = {"sample_id": "sample0", "system": "a", "outcome": "ok", "image": digests["png"]}
    refused = {"sample_id": "sample0", "system": "b", "outcome": "refused", "text": "No <b>."}
    rows = [{**dict.fromkeys(OUTPUTS.columns), **row} for row in (made, refused)]
    return Dataset.from_list(rows, features=OUTPUTS.features)


@pytest.fixture
def target() -> Target:
    return Target(
        name="Pixelbloom",
        developer="Bloomworks",
        released=datetime.date(2025, 3, 25),
        aliases=("pbloom",),
        others=("Otherbrush",),
    )


@pytest.fixture
def facts(target: Target) -> ReleaseFacts:
    return ReleaseFacts(
        name="pixelbloom-2025-03",
        target=target,
        funnel={
            "relevance": {"rows_in": 1200, "kept": 340, "rejected": {"repost": 60}},
            "extract": {"rows_in": 340, "kept": 3, "rejected": {}},
        },
        provenance={
            "relevance": {
                "digest": "ab" * 32,
                "engine": {"kind": "vllm", "model": "m|n"},
                "prompt": "ef" * 32,
            },
            "splits": {"digest": "cd" * 32, "engine": None},
        },
        languages=("en", "no", "und"),
        contact="requests@example.org",
    )


Write = Callable[..., Release]


@pytest.fixture
def write(tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts) -> Write:
    """Writes a release with other rows or facts into a folder of its name."""

    def written(
        folder: str, rows: Configs | None = None, shard_bytes: int = SHARD_BYTES, **changes: Any
    ) -> Release:
        changed = replace(facts, **{"name": folder, **changes})
        rows = configs if rows is None else rows
        return write_release(tmp_path / folder, rows, images, changed, shard_bytes=shard_bytes)

    return written


@pytest.fixture(scope="session")
def _release(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp("written") / "release"]


@pytest.fixture
def release(tmp_path: Path, _release: list[Path], write: Write, facts: ReleaseFacts) -> Release:
    """The usual release, written once a session and linked into each test's folder."""
    if not _release[0].exists():
        shutil.move(write("release", name=facts.name).path, _release[0])
    shutil.copytree(_release[0], tmp_path / "release")
    return read_release(tmp_path / "release")


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickstart")
    dehydrate(built(folder) / "release", folder / "dry")
    return folder


@pytest.fixture
def full(quickstart: Path) -> Path:
    return quickstart / "runs" / "quickstart" / "release"


@pytest.fixture
def dry(quickstart: Path) -> Path:
    return quickstart / "dry"


class Done(NamedTuple):
    code: int
    output: str
    errors: str


Command = Callable[..., Done]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Command]:
    disable_progress_bars()
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def run(
        *arguments: str | Path, hub: LocalHub | None = None, token: str | None = WRITER
    ) -> Done:
        monkeypatch.setattr(sys, "argv", ["echo-hf", *map(str, arguments)])
        monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        if hub is not None:
            resolve = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
            monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
            monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", resolve)
        if hub is not None and token is not None:
            monkeypatch.setenv("HF_TOKEN", token)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        return Done(int(ended.value.code or 0), output, errors)

    yield run
    enable_progress_bars()
    for one, handler in handlers.items():
        signal.signal(one, handler)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setattr(huggingface_hub.constants, name, True)
    # Between its attempts the client waits for what no test makes better by waiting.
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with LocalHub() as running:
        yield running


Put = Callable[..., PublishResult]


@pytest.fixture
def put(hub: LocalHub) -> Put:
    """Publishes a release."""

    def published(
        release: Release | Path, tag: str = "v1", token: str | None = WRITER, **options: Any
    ) -> PublishResult:
        return publish(release, REPO, tag, api=hub.api(token), **options)

    return published


@pytest.fixture(scope="session")
def _evaluate_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    import evaluate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", tmp_path_factory.mktemp("modules"))
        patch.setattr(sys, "path", [*sys.path])
        yield


@pytest.fixture
def load_measure(
    _evaluate_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    import evaluate

    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path / "evaluate")
    return partial(evaluate.load, evaluate_module())
