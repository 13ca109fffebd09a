"""A judge that is asked in batches gives the ratings that single requests give."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.engines.openai.batch_server import BatchServer, chat, running_batches
from tests.judging.judges_for_tests import config_of, judge_of, rows_of
from tests.judging.run_for_tests import root
from tests.judging.test_judge import judged

ENGINE: dict[str, Any] = {"kind": "openai", "model": "tiny", "api_key_env": None}
PRICES = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 8.0}
BATCH = {"poll_s": 0.02, "max_rows": 40, "price_share": 0.5}


def rate_all(folder: Path, server: BatchServer, **options: Any) -> None:
    engine = {**ENGINE, "base_url": server.url, **PRICES, **options}
    config_of(folder, [{**judge_of(), "engine": engine}])


def rate(body: dict[str, Any]) -> tuple[int, Any]:
    digit = int(sha256(json.dumps(body["messages"]).encode()).hexdigest(), 16) % 10
    return 200, chat(f"A boat, as I expected. Rating: [[{digit}]]")


def test_a_judge_gives_equal_ratings_at_half_the_price(folder: Path) -> None:
    with running_batches(answer=rate) as server:
        rate_all(folder, server)
        whole = judged(folder)
        single = rows_of(folder)
        for path in root(folder).glob("ratings*"):
            path.unlink()
        for path in root(folder).rglob("*.sqlite*"):
            path.unlink()
        rate_all(folder, server, batch=BATCH)
        half = judged(folder)
        assert single
        drop = {"cost_usd", "judged_at"}
        assert [strip(row, drop) for row in rows_of(folder)] == [strip(row, drop) for row in single]
    assert whole.cost_usd is not None
    assert half.cost_usd == pytest.approx(whole.cost_usd / 2)
    assert server.files == {}


def test_a_budget_lets_no_more_calls_into_a_batch_than_it_pays_for(folder: Path) -> None:
    """What the plan expects of a call is what the calls that have not come back may cost."""
    with running_batches(answer=rate) as server:
        rate_all(folder, server, batch=BATCH)
        (plan,) = judged(folder, dry_run=True).plans
        assert plan.expected.usd is not None
        call_usd = plan.expected.usd.likely / plan.plan.calls
        done = judged(folder, budget_usd=2.5 * call_usd)
    first, *others = server.rows.values()
    assert len(first) == 3
    assert others  # the calls were cheaper than expected, so that more went
    assert not done.spent
    assert plan.expected.plain_usd == pytest.approx([2 * usd for usd in plan.expected.usd])


def strip(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
