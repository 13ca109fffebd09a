"""The module for `evaluate`: where it lies, what is in its folder, and that it loads anywhere."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Image, List, Value
from packaging.requirements import Requirement

import echo_hf
from echo_hf.errors import EchoError
from echo_hf.hub.evaluate_metric import list_configs
from echo_hf.metrics import registered

ROOT = Path(__file__).resolve().parents[2]
SPACE = Path(echo_hf.evaluate_module()).parent
OF_RATINGS = {"win_rate", "human_corrected", "reliability", "ruler", "text_rendering"}
RATING = {
    **{name: Value("string") for name in ("sample_id", "system", "judge")},
    "rating": Value("float64"),
    "rubric": Value("string"),
    "repeat": Value("int64"),
    "draw": Value("int64"),
    "sample_digest": Value("string"),
    "outcome": Value("string"),
    "split": Value("string"),
    "provenance": Value("string"),  # which alone tells that a judge's numbers have no scale
}
PAIR = {"predictions": Image(decode=False), "references": List(Image(decode=False))}
PROMISED = """
import evaluate, huggingface_hub, json, echo_hf
row = {"sample_id": "s", "judge": "j"}
rows = [{**row, "system": name, "rating": n} for n, name in enumerate("ab")]
for place in ("my-lab/echo", echo_hf.evaluate_module()):
    found = evaluate.load(place, "win_rate").compute(predictions=rows)
    print(json.dumps(found["win_rate"]))
    huggingface_hub.constants.HF_HUB_OFFLINE = evaluate.config.HF_EVALUATE_OFFLINE = True
"""


class _Space(SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        prefix, _, name = path.rpartition("/")
        hub = "/spaces/my-lab/echo/resolve/main"
        return str(SPACE / name) if prefix == hub else str(SPACE / "nothing")

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.mark.slow
def test_it_loads_from_the_hub_and_offline_and_writes_to_the_cache_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ThreadingHTTPServer(("127.0.0.1", 0), _Space) as server:
        threading.Thread(target=server.serve_forever).start()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROMISED],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HOME": str(home),
                "HF_HOME": str(home / "hf"),
                "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
                "HF_HUB_OFFLINE": "0",
                "HF_HUB_DISABLE_TELEMETRY": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert list(map(json.loads, done.stdout.splitlines())) == [{"b": 1.0, "a": 0.0}] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert [path.name for path in home.iterdir()] == ["hf"]
    assert not list(home.rglob("*.arrow"))


@pytest.mark.parametrize("name", list_configs())
def test_every_config_loads(load_measure: Callable[..., Any], name: str) -> None:
    metric = load_measure(name)
    assert (metric.name, metric.module_type) == (name, "metric")
    needs = registered()[name].needs if name in registered() else ("ratings",)
    of_words = {**PAIR, "references": Value("string")} if "prompts" in needs else PAIR
    of_images = of_words if len(needs) > 1 else {"predictions": PAIR["predictions"]}
    releases = dict.fromkeys(("release", "carried_from"), Value("string"))
    rating = {**RATING, **(releases if name == "ruler" else {})}
    assert metric.features == ({"predictions": rating} if name in OF_RATINGS else of_images)
    for said in (metric.inputs_description, metric.compute.__doc__, metric.add_batch.__doc__):
        part = "scores" if name in echo_hf.scores.__all__ else "metrics"
        assert f"echo_hf.{part}.{name}" in said
    assert metric.description.startswith(f"ECHO's {name}: ")


def test_an_unknown_config_is_one_line(load_measure: Callable[..., Any]) -> None:
    with pytest.raises(EchoError, match=r"^unknown config 'win_rat'; did you mean 'win_rate'\?"):
        load_measure("win_rat")
    with pytest.raises(EchoError, match=r"^unknown config None; known: color_shift, "):
        load_measure()


def test_the_folder_is_a_metric_space_of_this_package() -> None:
    front = yaml.safe_load((SPACE / "README.md").read_text("utf-8").split("---\n", 2)[1])
    assert (front["sdk"], front["tags"]) == ("gradio", ["evaluate", "metric"])
    assert (SPACE / front["app_file"]).is_file()
    assert len(front["short_description"]) <= 60
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'requires-python = ">={front["python_version"]}"' in project
    assert f'license = "{front["license"]}"' in project.lower()
    *told, line = (SPACE / "requirements.txt").read_text("utf-8").splitlines()
    assert Requirement(line).name == "echo-hf"
    assert Requirement(line).specifier.contains(version("echo-hf"))
    others = [Requirement(one[1:]) for one in told if "@" in one]
    assert [(one.name, one.url is None) for one in others] == [("echo-hf", False)] * 2
    # `evaluate` reads the script's imports as text: one name a line.
    _, *imports, _ = ast.parse((SPACE / "echo.py").read_text("utf-8")).body
    for found in imports:
        assert isinstance(found, ast.Import)
        (one,) = found.names
        assert importlib.import_module(one.name).__name__.startswith("echo_hf.")


def test_the_documented_numbers_are_true(load_measure: Callable[..., Any]) -> None:
    text = (SPACE / "README.md").read_text("utf-8")
    shown = re.search(r'^metric\.compute\(predictions=ratings\)\["win_rate"\]  # (.*)$', text, re.M)
    rows = re.search(r"^ratings = (\[.*?^\])", text, re.M | re.S)
    assert shown
    assert rows
    given = [
        ast.literal_eval(line.strip().rstrip(","))
        for line in rows[1].splitlines()
        if line.strip().startswith("{")
    ]
    found = load_measure("win_rate").compute(predictions=given)
    assert found["win_rate"] == ast.literal_eval(shown[1])


def test_numbers_without_a_scale_are_ranked(load_measure: Callable[..., Any]) -> None:
    """Closer than two ratings may be without a tie, they still decide."""
    row = {"sample_id": "s", "judge": "j"}
    rows = [{**row, "system": name, "rating": n * 1e-12} for n, name in enumerate("ab")]
    made = json.dumps({"judge": {"form": "scalar"}})
    win_rate = load_measure("win_rate")
    assert win_rate.compute(predictions=rows)["win_rate"] == {"a": 0.5, "b": 0.5}
    of_scalars = [{**rating, "provenance": made} for rating in rows]
    assert win_rate.compute(predictions=of_scalars)["win_rate"] == {"a": 0.0, "b": 1.0}
