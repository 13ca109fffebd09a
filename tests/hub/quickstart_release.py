"""The bundled benchmark as a release whose rows say where their words and images are from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from echo_hf.builder.build import build
from echo_hf.config.sections import PostsSource
from echo_hf.config.systems import shipped_config
from echo_hf.hub.release import read_release

CORPUS = Path(__file__).parent.parent.parent / "echo_hf" / "quickstart"
SHOT = "/9900316482577884719"  # its prompt stands in a screenshot alone: no post gives it back
Row = dict[str, Any]


def built(folder: Path, posts: Path | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    posts = posts or copied(folder / "posts")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["posts"] = [{"source": "jsonl", "path": str(posts)}]
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return build(folder / "config.yaml", runs=folder / "runs").path.parent


def copied(folder: Path, edit: Callable[[Row], Row | None] = lambda post: post) -> Path:
    """The corpus with each post edited, or left out where that gives none."""
    shutil.copytree(CORPUS / "pictures", folder / "pictures")
    lines = (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
    edited = [edit(json.loads(line)) for line in lines if SHOT not in line]
    texts = [json.dumps(post, ensure_ascii=False) for post in edited if post is not None]
    (folder / "posts.jsonl").write_text("\n".join(texts), "utf-8")
    return folder / "posts.jsonl"


def entry(path: Path) -> PostsSource:
    return PostsSource(source="jsonl", path=path)


def released(folder: Path) -> dict[str, list[Row]]:
    configs = read_release(folder).manifest.configs
    return {
        name: [row for file in each.files for row in pq.read_table(folder / file.path).to_pylist()]
        for name, each in configs.items()
    }


def by_id(folder: Path) -> Mapping[str, Row]:
    return {row["id"]: row for row in released(folder)["analysis"]}
