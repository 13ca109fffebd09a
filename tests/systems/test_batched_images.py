"""A hosted system that is asked in batches gives the outputs that single requests give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.server import OPENAI_URL
from echo_hf.errors import GenerationError
from echo_hf.systems.generate import GenerationSummary, generate_outputs
from echo_hf.systems.registry import make_system
from echo_hf.tables import Outcome
from tests.engines.openai.batch_server import BatchServer, answer_line, never_run, running_batches
from tests.systems.drawing_for_tests import PRICE, USAGE, base64_of
from tests.systems.runs_for_tests import benchmark, evaluation, png, system

# Tokens of `USAGE` at the prices of `PRICE`.
IMAGE_USD = (100 * 5 + 1000 * 8 + 4000 * 30) / 1e6


def draw(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"data": [{"b64_json": base64_of(png(body["prompt"]))}], "usage": USAGE}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with running_batches(answer=draw) as loopback:
        yield loopback


def run(folder: Path, server: BatchServer, *, batch: Any = None, **options: Any) -> Any:
    release = folder / "release"
    if not release.exists():
        benchmark(folder)
    parameters = {"base_url": server.url, "api_key_env": None}
    if batch is not None:
        parameters["batch"] = {"poll_s": 0.02, "price_share": 0.5, **batch}
    given = {"adapter": "openai_images", "model": "tiny-image", "price": PRICE}
    config = evaluation(release, system(parameters=parameters, **given))
    return generate_outputs(config, runs=folder / "runs", **options)


def outputs(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / "runs" / "measured" / "outputs.parquet")
    rows = table.to_pylist()
    for row in rows:
        row["provenance"] = {**json.loads(row["provenance"]), "at": None}
    return sorted(rows, key=lambda row: (row["sample_id"], row["draw"]))


def test_outputs_are_equal_but_for_time_and_half_the_price(
    server: BatchServer, tmp_path: Path
) -> None:
    """Two draws of three prompts and two edits; a batch has one endpoint."""
    run(tmp_path / "single", server, outputs=2)
    assert server.batches == {}
    done: GenerationSummary = run(tmp_path / "batched", server, batch={}, outputs=2)
    single, batched = outputs(tmp_path / "single"), outputs(tmp_path / "batched")
    differing = {
        name
        for one, two in zip(single, batched, strict=True)
        for name in one
        if one[name] != two[name]
    }
    assert differing <= {"cost_usd", "latency_s"}
    assert [row["cost_usd"] for row in single] == pytest.approx([IMAGE_USD] * 10)
    assert [row["cost_usd"] for row in batched] == pytest.approx([IMAGE_USD / 2] * 10)
    assert {row["latency_s"] for row in batched} == {None}
    assert done.cost_usd == pytest.approx(10 * IMAGE_USD / 2)
    rows = dict.fromkeys(("/v1/images/edits", "/v1/images/generations"), 0)
    for batch in server.rows.values():
        (url,) = {row["url"] for row in batch}
        rows[url] += len(batch)
    assert rows == {"/v1/images/edits": 4, "/v1/images/generations": 6}
    (edit, *_) = next(b for b in server.rows.values() if b[0]["url"] == "/v1/images/edits")
    (image,) = edit["body"]["images"]
    assert image["image_url"].startswith("data:image/png;base64,")
    assert server.files == {}


def test_turning_batches_on_draws_nothing_again(server: BatchServer, tmp_path: Path) -> None:
    run(tmp_path, server)
    run(tmp_path, server, batch={})
    assert server.batches == {}


def test_a_run_that_ended_early_takes_over_its_batch(server: BatchServer, tmp_path: Path) -> None:
    server.looks = 10**6
    stopped = run(tmp_path, server, batch={"max_wait_hours": 1e-9})
    assert "the same command waits on" in stopped.stopped[0]
    server.looks = 0
    run(tmp_path, server, batch={})
    assert set(server.sent().values()) == {1}
    assert [row["outcome"] for row in outputs(tmp_path)] == ["ok"] * 5
    assert server.files == {}


def test_tasks_that_did_not_run_go_once_more_and_errors_stay_of_one_task(
    server: BatchServer, tmp_path: Path
) -> None:
    refusal = {"error": {"message": "no", "code": "moderation_blocked"}}
    ends = iter([1, 2])  # of the first two batches

    def end(_: BatchServer, rows: list[dict[str, Any]]) -> Any:
        if next(ends, None):
            return (
                "expired",
                [answer_line(rows[0], *draw(rows[0]["body"]))],
                [never_run(row) for row in rows[1:]],
            )
        return "completed", [], [answer_line(row, 400, refusal) for row in rows]

    server.end = end
    run(tmp_path, server, batch={})
    found = [row["outcome"] for row in outputs(tmp_path)]
    assert sorted(found) == sorted([Outcome.OK] * 2 + [Outcome.REFUSED] * 3)
    assert sorted(len(rows) for rows in server.rows.values()) == [1, 2, 2, 3]


def test_a_budget_lets_no_more_tasks_into_a_batch_than_it_pays_for(
    server: BatchServer, tmp_path: Path
) -> None:
    """Where each image has one price: half of 20 cents, so that the third passes 25."""
    release = benchmark(tmp_path)
    parameters = {
        "base_url": server.url,
        "api_key_env": None,
        "batch": {"poll_s": 0.02, "price_share": 0.5},
    }
    price = {"usd_per_image": 0.2, "as_of": "2026-11-21"}
    given = {"adapter": "openai_images", "model": "tiny-image", "price": price}
    config = evaluation(release, system(parameters=parameters, **given))
    planned = generate_outputs(config, runs=tmp_path / "runs", dry_run=True)
    (plan,) = planned.plans
    assert plan.expected.usd == pytest.approx([0.5] * 3)
    assert plan.expected.plain_usd == pytest.approx([1.0] * 3)
    assert plan.expected.is_batched
    done = generate_outputs(config, runs=tmp_path / "runs", budget_usd=0.25)
    assert (done.spent, done.cost_usd) == (True, pytest.approx(0.3))
    assert sum(len(rows) for rows in server.rows.values()) == 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"adapter": "openai_images", "parameters": {"batch": {"folder": "files"}}},
            "`vllm run-batch` draws no images",
        ),
        (
            {
                "adapter": "rewrite",
                "parameters": {
                    "writer": {"kind": "openai", "model": "m", "batch": True},
                    "artist": {"adapter": "openai_images", "model": "m"},
                },
            },
            r"parameters.writer.batch is True: expected none",
        ),
        (
            {
                "adapter": "rewrite",
                "parameters": {
                    "writer": {"kind": "openai", "model": "m"},
                    "artist": {
                        "adapter": "openai_images",
                        "model": "m",
                        "parameters": {"batch": True},
                    },
                },
            },
            r"parameters.artist.parameters.batch is True: expected none",
        ),
    ],
)
def test_what_no_batch_can_do_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(GenerationError, match=words):
        make_system(system(model="m", **values))


def test_a_listed_server_shows_the_price_of_batches(tmp_path: Path) -> None:
    """Without asking for them, as long as nothing was drawn."""
    given = {"adapter": "openai_images", "model": "gpt-image-2.6-sunburst"}
    config = evaluation(benchmark(tmp_path), system(**given, parameters={"base_url": OPENAI_URL}))
    (plan,) = generate_outputs(config, runs=tmp_path / "runs", dry_run=True).plans
    expected = plan.expected
    assert expected.usd is not None
    assert expected.batch_usd == pytest.approx([usd / 2 for usd in expected.usd])
    assert (expected.batch_hours, expected.is_batched) == (24, False)
    assert json.dumps(expected.batch_usd)


@pytest.mark.parametrize(
    ("base_url", "share"), [("http://127.0.0.1:9/v1", 1.0), ("https://images.example.org/v1", None)]
)
def test_a_server_of_ones_own_has_one_price_and_that_of_others_is_unknown(
    base_url: str, share: float | None
) -> None:
    config = SystemConfig.model_validate(
        {
            "name": "lumen",
            "adapter": "openai_images",
            "model": "m",
            "parameters": {"base_url": base_url, "batch": True},
            "price": {"usd_per_image": 0.04, "as_of": "2026-03-02"},
        }
    )
    system: Any = make_system(config)
    assert system.batch_share == share
