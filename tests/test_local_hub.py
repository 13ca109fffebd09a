"""The Hub of the tests answers the real clients as they expect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

from tests.local_hub import STRANGER, LocalHub

REPO = "mira/data"
PUSH = """
from datasets import Dataset, load_dataset

for config, rows in (("a", [1, 2, 3]), ("b", [4])):
    Dataset.from_dict({"x": rows}).push_to_hub("mira/pushed", config, split="test")
for config, streaming in (("a", False), ("a", True), ("b", True)):
    loaded = load_dataset("mira/pushed", config, split="test", streaming=streaming)
    print([row["x"] for row in loaded])
"""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setattr(huggingface_hub.constants, name, True)
    with LocalHub() as running:
        running.api().create_repo(REPO, repo_type="dataset")
        yield running


def test_datasets_pushes_and_loads(hub: LocalHub, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PUSH],
        env=hub.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1, 2, 3]", "[1, 2, 3]", "[4]"]


def test_a_stranger_sees_no_private_dataset(hub: LocalHub) -> None:
    hub.repositories[REPO].private = True
    for token in (STRANGER, None):
        with pytest.raises(RepositoryNotFoundError):
            hub.api(token).dataset_info(REPO)
    hub.repositories[REPO].private = False
    with pytest.raises(HfHubHTTPError, match="403"):
        hub.api(STRANGER).delete_repo(REPO, repo_type="dataset")
    hub.api().delete_repo(REPO, repo_type="dataset")
    assert hub.repositories == {}
