"""When posts were posted."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from echo_hf.report.analysis.failures import post_times, time_in_address
from echo_hf.tables import POSTS


def test_the_time_in_an_identifier_is_what_x_itself_says(test_data: Path) -> None:
    """To the second, for each of a hundred real posts with `created_at`."""
    lines = (test_data / "posts/x_api_v2/flat.jsonl").read_text("utf-8").splitlines()
    posts = [json.loads(line) for line in lines]
    assert len(posts) == 100
    for post in posts:
        said = datetime.fromisoformat(post["created_at"])
        found = time_in_address(f"https://x.com/i/status/{post['id']}")
        assert found is not None
        assert abs((found - said).total_seconds()) < 1


@pytest.mark.parametrize(
    "url",
    [None, "", "https://x.com/i/status/20", "https://bsky.app/profile/did:plc:a/post/3k"],
)
def test_other_addresses_hold_no_time(url: str | None) -> None:
    """Those of other platforms, and identifiers from before X's clock."""
    assert time_in_address(url) is None


def test_a_table_is_asked_first() -> None:
    """A time in the table holds; one that is null there may stand in the address."""
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    url, other = "https://example.org/1", "https://x.com/i/status/1212092628029698048"
    rows = [{"url": url, "timestamp": moment}, {"url": other, "timestamp": None}]
    schema = pa.schema([POSTS.schema.field(name) for name in ("url", "timestamp")])
    times = post_times(pa.Table.from_pylist(rows, schema))
    assert times.text(url) == "2026-03-02T12:00:00+00:00"
    assert times.text(other) == "2019-12-31T19:26:16+00:00"
    assert times.text("https://example.org/2") is None
