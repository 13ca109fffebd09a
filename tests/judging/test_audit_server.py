"""Pairs and honeypots against a real server on loopback: what is sent, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from echo_hf.judging.audit import audit
from echo_hf.judging.judge import pairwise
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion, running
from tests.judging.judges_for_tests import SAMPLES, config_of, drawn, judge_of, rated, rows_of

PRICES = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 10.0}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A server that rates 7, and prefers the first of two; no proxy stands before it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with running() as loopback:
        loopback.behave = answer
        yield loopback


def answer(asked: Asked) -> Answer:
    """What the server says: by the instructions that it gets."""
    told = asked.body["messages"][0]["content"]
    compares = told.startswith("You compare two pictures")
    return completion("Well. [[first]]" if compares else rated(7), usage=USAGE)


def test_pairs_and_honeypots_go_out_and_come_back(tmp_path: Path, server: LoopbackServer) -> None:
    """Two images in a pair, ten questions; then five samples' honeypots, by the other words."""
    drawn(tmp_path)
    engine = {"kind": "openai", "model": "tiny", "base_url": server.url, "backoff_s": 0.001}
    one = {**judge_of(pairwise={"share": 1}), "engine": {**engine, **PRICES}}
    config = config_of(tmp_path, [one])
    compared = pairwise(config, runs=tmp_path / "runs")

    parts = server.asked[0].body["messages"][1]["content"]
    sent = [part.get("text", part["type"]) for part in parts]
    # After the task and, of an edit, its input.
    assert sent[1:] == [
        *("image_url", "<first>", "image_url", "</first>"),
        *("<second>", "image_url", "</second>"),
    ]
    rows = rows_of(tmp_path, "comparisons")
    winners = Counter((row["order"], row["winner"]) for row in rows)
    assert winners == {("ab", "a"): len(SAMPLES), ("ba", "b"): len(SAMPLES)}
    assert compared.cost_usd == pytest.approx(10 * (1000 * 2 + 50 * 10) / 1e6)

    before = len(server.asked)
    found = audit(config, runs=tmp_path / "runs").judges["mira"]
    shown = {name: check["shown"] for name, check in found["checks"].items()}
    assert shown == {"blank": 5, "unchanged": 2, "shuffled": 5, "renamed": 5}
    assert len(server.asked) - before == 5 + sum(shown.values())
    assert sorted(found["failed"]) == ["blank", "shuffled"]
    assert found["noise"]["equal"] == 1
