"""The quickstart: what it builds, what it prints, and what hostile posts cannot change."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from echo_hf.builder.build import build
from echo_hf.builder.gold.check import check_engine
from echo_hf.cli import app, progress
from echo_hf.cli.progress import TerminalProgress
from echo_hf.collect.urls import canonical_url
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.engines.base import register
from echo_hf.engines.recorded import RecordedEngine
from echo_hf.quickstart.run import describe_unrated, render_thread_and_samples, show_quickstart
from echo_hf.quickstart.systems import SYSTEMS
from echo_hf.samples.blanks import find_placeholders
from echo_hf.tables import RATINGS
from tests.recorded_as_model import X, bundled_posts, config_over, rows


def ratings(*outcomes: str) -> pa.Table:
    rows = [{"outcome": one, "rating": 5.0 if one == "ok" else None} for one in outcomes]
    return pa.Table.from_pylist(rows, RATINGS.schema)


def test_the_table_says_what_it_lacks() -> None:
    said = "drawn_truth only knows these posts"

    assert describe_unrated(ratings("ok")) == said
    assert describe_unrated(ratings("unsupported", "no_image")) == (
        f"not rated: no_image, unsupported (no image was drawn for the task); {said}"
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out, runs = io.StringIO(), tmp_path_factory.mktemp("quickstart") / "my runs"
    with pytest.MonkeyPatch.context() as patch:
        # A slow machine is told in between what a run shown from its files does not tell.
        patch.setattr(progress, "SECONDS_BETWEEN_LINES", inf)
        show_quickstart(TerminalProgress(Console(file=out, width=160)), runs)
    return runs, out.getvalue()


@pytest.fixture(scope="module")
def run(shown: tuple[Path, str]) -> Path:
    return shown[0] / "quickstart"


def test_the_printed_command_finds_the_run(shown: tuple[Path, str]) -> None:
    lines = shown[1].splitlines()
    (printed,) = (line.strip() for line in lines if line.startswith("  echo-hf why "))
    told = CliRunner().invoke(app, shlex.split(printed)[1:])
    assert told.exit_code == 0
    assert "every result is up to date" in told.stdout
    assert any(line.endswith("drawn_truth only knows these posts") for line in lines)
    for words in ("121 posts collected", "loaded back: ", "one thread", "became", "next"):
        assert words in shown[1]


SECOND = """
import io, sys
from pathlib import Path
from rich.console import Console
from echo_hf.cli.progress import TerminalProgress
from echo_hf.quickstart.run import show_quickstart
show_quickstart(TerminalProgress(Console(file=sys.stdout, width=160)), Path(sys.argv[1]))
print("echo_hf.builder.build" in sys.modules)
"""


def test_an_unchanged_run_is_shown_from_its_files(shown: tuple[Path, str]) -> None:
    runs, said = shown
    again = subprocess.run(
        [sys.executable, "-c", SECOND, str(runs)], capture_output=True, text=True, check=True
    )
    assert again.stdout == f"{said}False\n"
    (runs / "quickstart" / "report" / "index.html").unlink()
    show_quickstart(TerminalProgress(Console(quiet=True)), runs)
    assert (runs / "quickstart" / "report" / "index.html").is_file()


def test_the_tint_is_singled_out_and_other_metrics_say_what_they_lack(
    shown: tuple[Path, str],
) -> None:
    (results,) = shown[0].glob("*/results.json")
    rows = json.loads(results.read_text("utf-8"))["results"]
    shift = {row["system"]: row["value"] for row in rows if row["metric"] == "color_shift"}
    tinted = shift.pop("yellow_tint")
    lacking = {row["metric"]: row["coverage"] for row in rows if row["value"] is None}
    assert len(shift) == 3
    assert tinted > 10 * max(shift.values())
    assert lacking["text_rendering"] == 0
    assert all(words in shown[1] for words in ("yellower", "text_rendering ↑"))
    for package, metric, extra in (
        ("torch", "structure_distance", "metrics"),
        ("insightface", "face_identity", "face"),
    ):
        if not find_spec(package):
            assert lacking[metric] == 0
            assert f'pip install "echo-hf[{extra}]"' in shown[1]


CORPUS = Path(__file__).parent.parent.parent / "echo_hf" / "quickstart"
# What the posts were written to hold, in the order of the stages.
FUNNEL = {
    "collect": {"rows_in": 121, "kept": 121, "noted": {}},
    "relevance": {"kept": 121, "quarantined": {}},
    "threads": {"kept": 36, "rejected": {"not_relevant": 13}},
    "download": {"kept": 36, "noted": {}, "tally": {"copies": 0, "not_there": 0, "pictures": 61}},
    "extract": {"kept": 42, "quarantined": {}, "rejected": {}, "noted": {}},
    "roles": {
        "kept": 50,
        "quarantined": {},
        "noted": {"neither": 3, "no_task": 1, "not_parsed": 3},
        "tally": {"filled": 13, "screenshots": 3, "with_inputs": 8},
    },
    "screenshots": {
        "kept": 50,
        "quarantined": {},
        "noted": {},
        "tally": {"cut": 3, "pictures": 5, "screenshots": 3},
    },
    "feedback": {"kept": 50, "quarantined": {}, "noted": {}},
    "safety": {
        "kept": 50,
        "quarantined": {},
        "tally": {"screened": 50, "unscreened": 0, "flagged": 1, "removed": 1, "S1": 1},
    },
    "privacy": {
        "kept": 50,
        "noted": {"no_author_key": 50},
        "tally": {"authors": 0, "to_review": 0},
    },
    "splits": {
        "kept": 48,
        "rejected": {"duplicate_of": 1, "flagged": 1},
        "tally": {"analysis": 48, "image_to_image": 9, "text_to_image": 30},
    },
}
HOSTILE = ("</thread>", "</post>", "\x1b")


def test_the_funnel_is_as_the_corpus_was_written(run: Path) -> None:
    for stage, expected in FUNNEL.items():
        stats = json.loads((run / "stages" / stage / "stats.json").read_text("utf-8"))
        assert {name: stats[name] for name in expected} == expected, stage
    assert FUNNEL.keys() <= set(STAGES)


def test_every_sample_of_the_benchmark_was_drawn_and_none_is_a_template(run: Path) -> None:
    drawn = [row for row in rows(run, "splits") if row["splits"] != ["analysis"]]
    assert [row["prompt"] for row in drawn if find_placeholders(row["prompt"])] == []
    outputs = pq.read_table(run / "outputs.parquet").to_pylist()
    made = Counter(row["sample_id"] for row in outputs if row["outcome"] == "ok")
    assert made == {row["id"]: len(SYSTEMS) for row in drawn}
    truths = (CORPUS / "truth.jsonl").read_text("utf-8").splitlines()
    assert len(truths) == len(drawn) + 3  # what was typed in three screenshots has one, too


def test_hostile_posts_change_nothing_but_themselves(tmp_path: Path) -> None:
    hostile: set[str] = set()

    def disarmed(post: dict[str, Any]) -> dict[str, Any]:
        described = [one.get("alt_text") or "" for one in post.get("pictures") or []]
        words = "\n".join([post.get("text") or "", *described])
        if not any(mark in words for mark in HOSTILE):
            return post
        hostile.add(canonical_url(post["url"]))
        bare = [{**one, "alt_text": None} for one in post.get("pictures") or []]
        return {**post, "text": "ok", "pictures": bare}

    def others(name: str, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Any]:
        (tmp_path / name).mkdir()
        engines = {"reader": {"kind": "rules"}}
        config = config_over(tmp_path / name, map(edit, bundled_posts(X)), engines=engines)
        build(config, runs=tmp_path / name / "runs")
        samples = rows(tmp_path / name / "runs" / "quickstart", "splits")
        return [
            {column: value for column, value in row.items() if column != "provenance"}
            for row in samples
            if not hostile & set(row["post_urls"])
        ]

    calm = others("disarmed", disarmed)

    assert len(hostile) == 5
    assert calm == others("as they are", lambda post: post)


def post(parent: int, text: str, **values: Any) -> dict[str, Any]:
    plain = {"author": "ana", "missing": None, "pictures": []}
    return {**plain, "parent": parent, "text": text, **values}


def printed(thread: dict[str, Any], samples: list[dict[str, Any]], width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False)
    console.print(render_thread_and_samples(thread, samples, width))
    return out.getvalue()


def test_a_thread_is_drawn_as_a_tree_and_no_post_controls_the_terminal() -> None:
    posts = [
        post(-1, "root", missing="deleted"),
        post(0, "first reply", pictures=[{}]),
        post(1, "below it\x1b[2J\x07\u202e"),
        post(0, "second reply"),
    ]
    said = printed({"posts": posts}, [], 140)
    column = {
        word: line.index(word)
        for word in ("(deleted)", "first reply [1 image]", "below it", "second reply")
        for line in said.splitlines()
        if word in line
    }
    assert column["(deleted)"] < column["second reply"] == column["first reply [1 image]"]
    assert column["first reply [1 image]"] < column["below it"]
    assert not set(said) & {"\x1b", "\x07", "\u202e"}


def test_the_answers_agree_with_the_gold(tmp_path: Path) -> None:
    register("written_down")(RecordedEngine)
    written = EngineChoice(kind="written_down", source="quickstart")
    found = check_engine(engine=written, half="all", runs=tmp_path)
    assert not [one for stage in found.stages for one in stage.failed]
    wrong = [one for one in found.measures if one.value != 1 or one.answered < one.asked]
    assert wrong == []


LONGEST_REQUEST = 24_000


def test_the_long_thread_is_longer_than_one_request() -> None:
    """A model is also shown the images, their descriptions and why content is missing."""
    lines = (CORPUS / "long_thread.jsonl").read_text("utf-8").splitlines()
    posts = [json.loads(line) for line in lines]
    place = {one["url"]: number for number, one in enumerate(posts)}
    shown = [
        post(place.get(one.get("parent_url"), -1), one["text"], number=n, alt_texts=[])
        for n, one in enumerate(posts)
    ]
    assert len(posts) >= 90
    assert len(json.dumps(shown, ensure_ascii=False)) > LONGEST_REQUEST
