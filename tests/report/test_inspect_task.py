"""`inspect eval echo_hf/echo` by inspect_ai itself, with a model on loopback that draws."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from PIL import Image

from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.hub.publish import publish
from echo_hf.hub.release import iterate_rows, read_release
from echo_hf.judging.imports import import_judgements
from echo_hf.metrics import color_shift
from tests.engines.openai.loopback_server import Answer, Asked, running
from tests.hub.conftest import REPO
from tests.local_hub import LocalHub
from tests.stages_for_tests import ROOT

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore:::inspect_ai")]
REFUSED = 5  # a prompt of each so many, by its sha256
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def digest_of(prompt: str) -> int:
    return int(hashlib.sha256(prompt.encode()).hexdigest(), 16)


def drawn(prompt: str) -> bytes:
    """An image of its own for each prompt."""
    sink, color = BytesIO(), tuple(hashlib.sha256(prompt.encode()).digest()[:3])
    image = Image.linear_gradient("L").convert("RGB")
    image.paste(color, (64, 64, 192, 192))
    image.save(sink, "PNG")
    return sink.getvalue()


def draw(asked: Asked) -> Answer:
    """Answer as OpenAI's Responses API does where the tool `image_generation` was used."""
    turns = asked.body["input"]
    prompt = turns if isinstance(turns, str) else turns[-1]["content"][0]["text"]
    item = {"type": "image_generation_call", "status": "completed", "id": "ig_1"}
    item["result"] = base64.b64encode(drawn(prompt)).decode()
    if digest_of(prompt) % REFUSED == 0:
        text = {"type": "output_text", "text": "I would rather not.", "annotations": []}
        item = {"type": "message", "role": "assistant", "status": "completed", "id": "m_1"}
        item["content"] = [text]  # type: ignore[assignment]
    counts = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": {"cached_tokens": 0}}
    details |= {"output_tokens_details": {"reasoning_tokens": 0}}
    body = {"id": "r_1", "object": "response", "created_at": 1, "model": "lumen-1", "tools": []}
    body |= {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto"}
    return Answer({**body, "output": [item], "usage": {**counts, **details}})


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs the command, in an environment where the package of this checkout is installed."""
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    folder = tmp_path_factory.mktemp("inspect")
    # An installation in place keeps the entry points of the day when it was made.
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    (facts := folder / "site" / "of_this_checkout-1.0.dist-info").mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: of-this-checkout\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in groups["inspect_ai"].items()]
    (facts / "entry_points.txt").write_text("[inspect_ai]\n" + "".join(lines))
    own = {"PYTHONPATH": f"{facts.parent}{os.pathsep}{ROOT}", "OPENAI_API_KEY": "none"}
    own |= {"COLUMNS": "500"}
    offline = {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "inspect_ai", "eval", "echo_hf/echo", "--display", "plain"]
    with running() as server:
        server.behave = draw
        model = ["--model", "openai/lumen-1", "--model-base-url", server.url]

        def run(
            release: Path | str,
            logs: Path,
            *options: str,
            environment: Mapping[str, str] | None = None,
        ) -> subprocess.CompletedProcess[str]:
            given = ["-T", f"release={release}", *options, *model, "--log-dir", str(logs)]
            variables = {**os.environ, **offline, **(environment or {}), **own}
            return subprocess.run(
                [*command, *given], env=variables, cwd=folder, capture_output=True, text=True
            )

        yield run


def read(logs: Path) -> Any:
    from inspect_ai.log import read_eval_log

    (path,) = logs.glob("*.eval")
    return read_eval_log(str(path), resolve_attachments=True)


def rows_of(release: Path) -> dict[str, dict[str, Any]]:
    datasets = read_release(release).datasets
    return {row["id"]: row for name in BENCHMARKS for row in iterate_rows(datasets[name], 1)}


def test_a_release_is_drawn_and_scored(inspect: Run, quickstart_run: Path, tmp_path: Path) -> None:
    done = inspect(quickstart_run, tmp_path / "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    log, rows = read(tmp_path / "logs"), rows_of(quickstart_run / "release")
    assert (log.status, log.eval.task) == ("success", "echo_hf/echo")
    assert {sample.id for sample in log.samples} == rows.keys()
    for sample in log.samples:
        words, *images = sample.input[0].content
        assert words.text == rows[sample.id]["prompt"]
        given = [image["bytes"] for image in rows[sample.id]["input_images"]]
        assert [base64.b64decode(each.image.partition(",")[2]) for each in images] == given
    outputs = {
        name: None if digest_of(row["prompt"]) % REFUSED == 0 else drawn(row["prompt"])
        for name, row in rows.items()
    }
    scores = {score.name: score for score in log.results.scores}
    share = sum(image is not None for image in outputs.values()) / len(outputs)
    assert 0 < share < 1
    assert scores["drawn"].metrics["mean"].value == pytest.approx(share)
    # A metric of all samples together, which is no mean over samples.
    edits = [name for name, row in rows.items() if row["input_images"]]
    inputs = [[image["bytes"] for image in rows[name]["input_images"]] for name in edits]
    expected = color_shift(inputs, [outputs[name] for name in edits], n_boot=0)
    shift = scores["color_shift"]
    assert shift.metrics["value"].value == pytest.approx(expected.value)
    assert shift.scored_samples == expected.n
    by_name = {sample.id: sample.scores for sample in log.samples}
    for name, image in outputs.items():
        outcome = by_name[name]["drawn"]
        assert (outcome.value, outcome.answer) == ((1, "ok") if image else (0, "no_image"))
        assert outcome.explanation == (None if image else "I would rather not.")
    # Its outputs come back, to be judged.
    config = shutil.copy(shipped_config(), tmp_path / "config.yaml")
    shutil.copytree(quickstart_run, tmp_path / "runs" / "quickstart")
    back = import_judgements(config, tmp_path / "logs", runs=tmp_path / "runs", format="inspect")
    assert back.rows["outputs"] == len(outputs)


def test_a_tag_of_the_hub_is_drawn_without_what_may_not_be_shown(
    inspect: Run, quickstart_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts that it may not pass on were left out when it was published, and are counted."""
    for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET"):
        monkeypatch.setattr(huggingface_hub.constants, name, name != "HF_HUB_OFFLINE")
    allowed = {"allow_rules": True, "allow_unscreened": True}
    with LocalHub() as hub:
        publish(quickstart_run / "release", REPO, "v1", api=hub.api(), **allowed)
        home = hub.environment(tmp_path / "home", HF_HUB_OFFLINE="0")
        split = ("-T", f"split={BENCHMARKS[1]}")
        done = inspect(f"{REPO}@v1", tmp_path / "logs", *split, environment=home)
    assert done.returncode == 0, done.stdout + done.stderr
    log, datasets = read(tmp_path / "logs"), read_release(quickstart_run / "release").datasets
    of_x = {
        row["id"]
        for name in BENCHMARKS
        for row in datasets[name]
        if any("//x.com/" in url for url in row["post_urls"])
    }
    assert log.eval.metadata["left_out"] == {"dehydrated": len(of_x)}
    assert f"{len(of_x)} samples of the release left out, dehydrated: " in done.stdout + done.stderr
    free = {row["id"] for row in datasets[BENCHMARKS[1]]} - of_x
    assert len(free) > 1
    assert {sample.id for sample in log.samples} == free
    assert log.eval.dataset.name == f"{REPO}@v1"


def test_what_cannot_be_drawn_is_said_in_a_line(inspect: Run, tmp_path: Path) -> None:
    for options, line in {
        ("-T", "split=images"): "unknown split 'images'",
        ("--limit", "1"): "[red]nowhere",
    }.items():
        done = inspect(tmp_path / "[red]nowhere", tmp_path / "logs", *options)
        told = done.stdout + done.stderr
        assert done.returncode != 0
        assert "echo-hf: " in told
        assert line in told
        assert "Traceback" not in told


def test_further_epochs_change_no_figure_of_a_model_that_repeats_itself(
    inspect: Run, quickstart_run: Path, tmp_path: Path
) -> None:
    figures = []
    for epochs in ("1", "2"):
        options = ("-T", "split=image_to_image", "--epochs", epochs)
        done = inspect(quickstart_run, tmp_path / epochs, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        log = read(tmp_path / epochs)
        scores = {score.name: score.metrics for score in log.results.scores}
        figures.append((scores["drawn"]["mean"].value, scores["color_shift"]["value"].value))
    assert figures[0] == pytest.approx(figures[1])


def test_without_a_release_a_line_says_what_to_give(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    from inspect_ai._util.error import PrerequisiteError

    from echo_hf.report import inspect_task

    with pytest.raises(PrerequisiteError, match="no release: name one, as -T release="):
        inspect_task.echo()
