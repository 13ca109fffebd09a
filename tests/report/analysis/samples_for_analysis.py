"""Rows of samples as an analysis reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Said = tuple[str, str | None, str | None]


def sample(
    name: str,
    said: Sequence[Said] = (),
    *,
    prompt: str | None = "draw a cat",
    task: str | None = "edit",
    kind: str | None = "task",
) -> dict[str, Any]:
    """A sample with comments, each its address, verdict and keyword."""
    return {
        "id": name,
        "prompt": prompt,
        "task": task,
        "kind": kind,
        "post_urls": [f"https://example.org/{name}"],
        "community_feedback": [
            {"post_url": url, "feedback": f"about {url}", "verdict": verdict, "keyword": keyword}
            for url, verdict, keyword in said
        ],
    }
