"""A build whose model is asked in batches give the tables that single requests give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from echo_hf.builder.build import build
from echo_hf.cli import app
from echo_hf.engines.openai import OpenAIEngine
from tests.engines.openai.batch_server import BatchServer, chat, running_batches
from tests.recorded_as_model import RecordedAsModel, bundled_posts, config_over, tables

ENGINE: dict[str, Any] = {"kind": "openai", "model": "tiny", "api_key_env": None}
PRICES = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 8.0}
BATCH = {"poll_s": 0.02, "max_rows": 40, "price_share": 0.5}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The recorded answers of the bundled posts, by the messages that a server would get."""
    recorder = RecordedAsModel().use()
    folder = tmp_path_factory.mktemp("recorded")
    build(config_over(folder, bundled_posts()), runs=folder / "runs")
    engine = OpenAIEngine(model="tiny", base_url="http://127.0.0.1:1/v1")
    texts = dict[str, str]()
    for asked in recorder.asked:
        ((_, completion),) = recorder.recorded.stream([asked])
        if completion.text is not None:
            texts[json.dumps(engine.prepare(asked))] = completion.text
    return texts


@pytest.fixture
def server(answers: dict[str, str]) -> Iterator[BatchServer]:
    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        text = answers.get(json.dumps(body["messages"]))
        return (200, chat(text)) if text else (400, {"error": {"message": "not recorded"}})

    with running_batches(answer=answer) as loopback:
        yield loopback


def build_over(folder: Path, url: str, **options: Any) -> dict[str, str]:
    engine = {**ENGINE, "base_url": url, "coordinates": "rel_1000", **options}
    config = config_over(folder, bundled_posts(), engines={"text": engine})
    build(config, runs=folder / "runs")
    return tables(folder / "runs" / "quickstart")


def test_a_build_gives_equal_tables_with_and_without_batches(
    server: BatchServer, tmp_path: Path
) -> None:
    single = build_over(tmp_path / "single", server.url)
    assert server.batches == {}
    batched = build_over(tmp_path / "batched", server.url, batch=BATCH)
    differing = {name for name in single | batched if single.get(name) != batched.get(name)}
    assert differing == set()
    assert len(server.batches) > 5
    assert server.files == {}
    assert ("POST", "/v1/chat/completions") in server.asked


def test_turning_batches_on_asks_nothing_again(server: BatchServer, tmp_path: Path) -> None:
    """But for requests that the server has no answer to, which every run asks again."""
    build_over(tmp_path, server.url)
    build_over(tmp_path, server.url, batch=BATCH)
    asked = [row for rows in server.rows.values() for row in rows]
    assert {server.answer(row["body"])[0] for row in asked} == {400}


def test_a_dry_run_shows_both_prices_and_the_wait(server: BatchServer, tmp_path: Path) -> None:
    prices = {name: 1e6 * usd for name, usd in PRICES.items()}
    shown = {}
    for batch in (False, BATCH):
        engine = {**ENGINE, "base_url": server.url, **prices, "batch": batch}
        engine |= {"coordinates": "rel_1000"}
        config = config_over(tmp_path, bundled_posts(), engines={"text": engine})
        command = ["build", str(config), "--runs", str(tmp_path / "runs"), "--dry-run"]
        done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        shown[bool(batch)] = done.output
    assert "one by one" in shown[True]
    assert "in batches" in shown[True]
    assert server.asked == []
