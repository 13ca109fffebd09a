"""The whole verb against a real server on loopback, with every fault that a judge may have."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from echo_hf.images.store import ImageStore
from echo_hf.judging.judge import judge
from echo_hf.judging.rate import as_published
from echo_hf.judging.session import JudgingResult
from tests.engines.openai.loopback_server import Asked, LoopbackServer, completion, running
from tests.judging.judges_for_tests import GIVEN, config_of, judge_of, rated, rows_of
from tests.judging.run_for_tests import root

USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 600},
}
PRICES = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 10.0}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """A server that gives every output a 7; no proxy stands before it, no key is used."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with running() as loopback:
        loopback.behave = lambda _: completion(rated(7), usage=USAGE)
        yield loopback


def engine(server: LoopbackServer, **more: Any) -> dict[str, Any]:
    usual = {"kind": "openai", "model": "tiny", "base_url": server.url, "backoff_s": 0.001}
    return {**usual, **PRICES, **more}


def judged(folder: Path, server: LoopbackServer, **options: Any) -> JudgingResult:
    more = options.pop("engine", {})
    of_judge = options.pop("judge", {})
    judges = [{**judge_of(**of_judge), "engine": engine(server, **more)}]
    config = config_of(folder, judges, protocol=options.pop("protocol", "corrected"))
    return judge(config, runs=folder / "runs", **options)


def task_of(asked: Asked) -> str:
    content = asked.body["messages"][1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return str(json.loads(text.splitlines()[1])["prompt"])


def test_what_is_sent_is_what_was_looked_at(folder: Path, server: LoopbackServer) -> None:
    """Instructions, task, input, output, in this order; small JPEG files as published."""
    judged(folder, server, protocol="published", engine={"temperature": None, "concurrency": 1})
    body = server.asked[0].body
    assert "temperature" not in body
    assert "response_format" not in body
    system, user = body["messages"]
    assert system["content"].startswith("You assess one picture")
    kinds = [part["type"] for part in user["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]
    assert task_of(server.asked[0]) == "draw lamp"

    store = ImageStore(root(folder) / "pictures")
    row = next(one for one in rows_of(folder) if one["sample_id"] == "lamp")
    urls = [part["image_url"]["url"] for part in user["content"] if part["type"] == "image_url"]
    files = [base64.b64decode(url.removeprefix("data:image/jpeg;base64,")) for url in urls]
    assert files == [as_published(one) for one in (GIVEN, store.open(row["output_sha256"]))]
    seen = json.loads(row["provenance"])["judge"]["shown"]
    assert [*seen["inputs"], seen["output"]] == [hashlib.sha256(one).hexdigest() for one in files]


def test_repeats_have_seeds_of_their_own(folder: Path, server: LoopbackServer) -> None:
    judged(folder, server, judge={"repeats": 3}, engine={"seed": 40, "temperature": 1.0})
    assert Counter(one.body["seed"] for one in server.asked) == {40: 10, 41: 10, 42: 10}
    assert Counter(row["repeat"] for row in rows_of(folder)) == {0: 10, 1: 10, 2: 10}


def test_a_budget_ends_with_what_is_under_way(folder: Path, server: LoopbackServer) -> None:
    """A call costs a quarter of a cent: one cent is four calls, and those under way with them."""
    done = judged(folder, server, budget_usd=0.01, engine={"concurrency": 2})
    assert 4 <= len(server.asked) <= 5
    assert done.spent
    assert len(rows_of(folder)) == len(server.asked)
