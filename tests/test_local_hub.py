"""The Hub of the tests answers the real clients as they expect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

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


def test_tags_and_branches_come_and_go(hub: LocalHub) -> None:
    api, head = hub.api(), hub.repositories[REPO].head
    api.create_branch(REPO, branch="draft", repo_type="dataset")
    for _ in range(2):
        api.create_tag(REPO, tag="v1", repo_type="dataset")
        with pytest.raises(HfHubHTTPError, match="409"):
            api.create_tag(REPO, tag="v1", repo_type="dataset")
        refs = api.list_repo_refs(REPO, repo_type="dataset")
        assert [(tag.name, tag.target_commit) for tag in refs.tags] == [("v1", head)]
        assert {branch.name for branch in refs.branches} == {"main", "draft"}
        api.delete_tag(REPO, tag="v1", repo_type="dataset")
    with pytest.raises(RevisionNotFoundError):
        api.delete_tag(REPO, tag="v1", repo_type="dataset")


def test_files_come_back_whole_and_in_parts(hub: LocalHub, tmp_path: Path) -> None:
    api, data, heads = hub.api(), bytes(range(256)) * 40, []
    for path, content in (("d/x.parquet", data), ("x.txt", b"hi")):
        api.upload_file(
            path_or_fileobj=content, path_in_repo=path, repo_id=REPO, repo_type="dataset"
        )
        heads.append(hub.repositories[REPO].head)

    copy = api.hf_hub_download(REPO, "d/x.parquet", repo_type="dataset", cache_dir=tmp_path)
    assert Path(copy).read_bytes() == data
    assert api.list_repo_files(REPO, repo_type="dataset", revision=heads[0]) == [
        ".gitattributes",
        "d/x.parquet",
    ]
    (info,) = api.get_paths_info(REPO, ["d/x.parquet"], repo_type="dataset")
    assert info.size == len(data)
    assert len(list(api.list_repo_commits(REPO, repo_type="dataset"))) == 3
    url = f"{hub.url}/datasets/{REPO}/resolve/main/d/x.parquet"
    session = huggingface_hub.get_session()
    for asked, part in (("10-19", data[10:20]), ("10230-", data[10230:]), ("-7", data[-7:])):
        got = session.get(url, headers={"Range": f"bytes={asked}"})
        assert (got.status_code, got.content) == (206, part)


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
