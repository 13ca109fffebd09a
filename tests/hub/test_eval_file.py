"""`eval.yaml` has the shape that the Hub reads of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from echo_hf.config.sections import Target
from echo_hf.hub.card import eval_file
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.manifest import ConfigEntry, make_manifest
from echo_hf.hub.release import Release


class HubTask(BaseModel):
    """A task as the Hub documents it for frameworks other than inspect-ai."""

    model_config = ConfigDict(extra="forbid", strict=True)
    id: str
    config: str = "default"
    split: str = "test"


class HubBenchmark(BaseModel):
    """The file as the Hub documents it: four fields, all of them required."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    description: str
    evaluation_framework: str
    tasks: list[HubTask]


def made(facts: ReleaseFacts, rows: Mapping[str, int]) -> str | None:
    """The file of a release with so many rows."""
    entries = {
        name: ConfigEntry(rows=count, pictures=0, loaded_bytes=1, digest="1" * 64, files=())
        for name, count in rows.items()
    }
    return eval_file(facts, make_manifest(facts, entries))


def test_every_config_with_samples_is_a_task(facts: ReleaseFacts) -> None:
    """Each task names its own config; analysis and ratings are no tasks."""
    rows = {"analysis": 9, "image_to_image": 2, "text_to_image": 4, "ratings": 8}
    found = HubBenchmark.model_validate(yaml.safe_load(made(facts, rows) or ""))
    assert [(task.id, task.config, task.split) for task in found.tasks] == [
        ("image_to_image", "image_to_image", "test"),
        ("text_to_image", "text_to_image", "test"),
    ]
    assert found.name == "ECHO: Pixelbloom"


def test_the_file_of_a_release_lies_at_its_root(release: Release) -> None:
    """It is written beside the card and listed in the manifest; an empty config is no task."""
    assert release.manifest.benchmark is not None
    data = yaml.safe_load((release.path / "eval.yaml").read_text("utf-8"))
    assert [task["id"] for task in data["tasks"]] == ["text_to_image"]


def test_without_samples_there_is_no_benchmark(facts: ReleaseFacts) -> None:
    """A file without tasks would be none."""
    assert made(facts, {"analysis": 9, "image_to_image": 0}) is None


@pytest.mark.parametrize("name", ["no", "a: b # c", "x\ntasks: []", '"', "\u2028 é 雨", "{}", "1"])
def test_a_hostile_target_is_only_a_name(facts: ReleaseFacts, name: str) -> None:
    """Whatever the target is called, the file keeps its shape and its tasks."""
    target = Target.model_construct(name=name, developer="d")
    text = made(replace(facts, target=target), {"text_to_image": 4})
    found = HubBenchmark.model_validate(yaml.safe_load(text or ""))
    assert found.name == f"ECHO: {' '.join(name.split())}"
    assert len(found.tasks) == 1
