"""Reading one document: the posts that come of it, and what is said of the rest."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
# By the end of its address the columns of each post, and place and reason of every remark.
Case = tuple[Any, dict[str, Json], list[str]]
Reads = Callable[..., None]
Real = Callable[[str], Path]


def shown(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [(one["url"], one["alt_text"]) for one in value]
    return value


@pytest.fixture(scope="session")
def reads(collect_lines: Callable[..., list[Json]]) -> Reads:
    def check(
        source: str,
        document: Any,
        posts: Mapping[str, Json],
        said: Sequence[str] = (),
        keywords: Sequence[str] = ("fox",),
    ) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        rows = collect_lines(source, text.splitlines() or [text], keywords)
        kept = {row["url"].rpartition("/")[2]: row for row in rows if row["_status"] == "kept"}
        found = {
            name: {column: shown(row[column]) for column in posts.get(name, ())}
            for name, row in kept.items()
        }
        remarks = [
            f"{row['_parent'][0].removeprefix('f:1')} {row['_reason']}".strip()
            for row in rows
            if row["_status"] != "kept"
        ]
        assert (found, remarks) == (dict(posts), list(said))

    return check


@pytest.fixture
def real(test_data: Path) -> Real:
    def find(name: str) -> Path:
        file = test_data / "posts" / name
        if not file.exists():
            pytest.skip(f"no file {str(file)!r}")
        return file

    return find
