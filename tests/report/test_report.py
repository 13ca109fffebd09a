"""The report of a run: its figures, rows and images, and the folder that they become."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from filelock import FileLock
from huggingface_hub import parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console

from echo_hf.cli.evaluation_view import show_report
from echo_hf.errors import EchoError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.judging.results import SavedIdentity, SavedResults
from echo_hf.judging.score import score
from echo_hf.report.analysis.result import read_figures
from echo_hf.report.markup import make_printable, write_data
from echo_hf.report.report import Report, build_eval_entries, describe_gallery, report, write_report
from echo_hf.report.run_data import (
    AgreementFile,
    MeanColors,
    ReportSample,
    RunData,
    SavedOutput,
    Thumbnail,
    list_systems,
    make_thumbnails,
    read_ratings,
    shrink_image,
)
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as run
from tests.report.run_data_for_tests import (
    SYSTEMS,
    WORDS,
    image,
    measured,
    results,
    run_data,
    words,
)
from tests.report.run_data_for_tests import ratings_of as rated_as

RED, BLUE = run.stripes((200, 0, 0), (90, 0, 0)), run.stripes((0, 0, 200), (0, 90, 90))
NAMES = [f"boat {at}" for at in range(12)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("scored")
    config = run.run(folder, {"logo": [RED]}, NAMES)
    made = run.put(folder, BLUE)
    rows = [run.output(name, one, image=made) for name in NAMES for one in ("anole", "bravo")]
    rows.append(run.output("logo", "anole", [RED], image=made))
    rows.append(run.output("logo", "bravo", [RED], outcome="refused", stage="output", code="nsfw"))
    run.write(folder, OUTPUTS, rows)
    said = [
        run.rating(name, system, value - (name == "boat 3") * 4, explanation=f"{name}: {system}")
        for name in NAMES
        for system, value in (("anole", 8.0), ("bravo", 5.0))
    ]
    run.write(folder, RATINGS, [*said, run.rating("boat 0", "anole", None, repeat=1)])
    score(config, runs=folder / "runs", n_boot=50)
    return config, report(config, runs=folder / "runs")


@pytest.fixture
def scored(template: tuple[Path, Report], tmp_path: Path) -> Path:
    config = template[0]
    return shutil.copytree(config.parent, tmp_path / "copy") / config.name


def _root(config: Path) -> Path:
    return config.parent / "runs" / "evaluation"


def _changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def _gallery(written: Report) -> dict[str, Any]:
    text = written.path.read_text("utf-8")
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


def test_a_folder_with_everything(template: tuple[Path, Report]) -> None:
    """Page, small copies, figures for print and the board in Markdown lie in one folder."""
    config, written = template
    folder = _root(config) / "report"
    assert written.path == folder / "index.html"
    assert (written.samples, written.images, dict(written.problems)) == (13, 2, {})
    names = ["board.md", "figures", "index.html", "thumbs", "verdicts.html"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert len(list((folder / "thumbs").iterdir())) == 2
    assert (folder / "figures" / "win_rate_text_to_image.svg").exists()


def test_the_figures_are_those_of_the_run(template: tuple[Path, Report]) -> None:
    config, written = template
    every = json.loads((_root(config) / "results.json").read_text("utf-8"))["results"]
    key = ("win_rate", "corrected", "text_to_image")
    rows = [row for row in every if (row["metric"], row["protocol"], row["split"]) == key]
    rates = {row["system"]: f"{row['value']:.3f}" for row in rows}
    board = (written.path.parent / "board.md").read_text("utf-8")
    assert re.findall(r"^\| (\w+) \| ([\d.]+) \|", board, re.MULTILINE) == [
        ("anole", rates["anole"]),
        ("bravo", rates["bravo"]),
    ]
    page = written.path.read_text("utf-8")
    assert all(rate in words(page) for rate in rates.values())
    # Other systems were run on it: the target is who people gave its tasks to, no more.
    assert "<h1><bdi>lumen</bdi></h1>" in page
    assert "that people gave to <bdi>Lumen Image</bdi> in public posts" in page


def test_the_gallery_has_every_sample(template: tuple[Path, Report]) -> None:
    data = _gallery(template[1])
    samples = {one["id"]: one for one in data["samples"]}
    assert sorted(samples) == sorted([*NAMES, "logo"])
    logo, boat = samples["logo"], samples["boat 0"]
    assert (logo["prompt"], len(logo["inputs"])) == ("draw logo", 1)
    drawn, refused = (logo["outputs"][data["systems"].index(name)] for name in ("anole", "bravo"))
    assert (refused["image"], refused["reason"]) == (None, "output, nsfw")
    assert data["pictures"][drawn["image"]]["source"].startswith("thumbs/")
    names = [(data["systems"][row["system"]], row["judge"]) for row in boat["ratings"]]
    assert names == [("anole", "mira"), ("anole", "mira"), ("bravo", "mira")]
    said = [(row["value"], row["explanation"]) for row in boat["ratings"]]
    assert said == [(8.0, "boat 0: anole"), (None, None), (5.0, "boat 0: bravo")]


def test_the_same_run_gives_the_same_bytes_in_place_of_what_was_there(
    template: tuple[Path, Report], scored: Path
) -> None:
    """What somebody else put there is not lost; one writer at a time."""
    root, runs = _root(scored), scored.parent / "runs"
    folder = root / "report"
    for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
        (folder / name).write_bytes(b"\0")
    first, second = (
        {path.relative_to(one.parent): path.read_bytes() for path in one.parent.rglob("*.*")}
        for one in (template[1].path, report(scored, runs=runs).path)
    )
    assert first == second
    with FileLock(root / ".report.lock"), pytest.raises(RunError, match="another"):
        report(scored, runs=runs)
    (folder / "notes.md").write_text("mine", "utf-8")
    with pytest.raises(EchoError, match=r"holds 'notes\.md', .* move it, or name another"):
        report(scored, runs=runs)
    assert (folder / "notes.md").read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("scored_as", "audited", "shown"),
    [
        ([], ["blank"], ["blank"]),
        (["blank"], None, ["blank"]),  # the audit was moved away
        (["blank"], ["noise"], ["noise"]),  # audited again since
        (["blank"], [], []),  # passed since
    ],
)
def test_the_last_word_on_a_judge_counts(
    scored: Path, scored_as: list[str], audited: list[str] | None, shown: list[str]
) -> None:
    """A flag of the figures stays until the judge is audited again; it stands wherever it does."""
    _changed(_root(scored) / "results.json", failed_audit={"mira": scored_as})
    if audited is not None:
        audit = {"judges": {"mira": {"failed": audited}}}
        (_root(scored) / "audit.json").write_text(json.dumps(audit), "utf-8")
    written = report(scored, runs=scored.parent / "runs")
    assert _gallery(written)["failed"] == ({"mira": shown} if shown else {})
    flag = f"failed its audit: {', '.join(shown)}"
    assert words(written.path.read_text("utf-8")).count(flag) == bool(shown)
    assert (flag in (written.path.parent / "board.md").read_text("utf-8")) == bool(shown)


@pytest.mark.parametrize("gone", ["digest", "split"])
def test_figures_of_another_benchmark_are_named(scored: Path, gone: str) -> None:
    """Where the benchmark has changed since it was scored, the page says so."""
    path = _root(scored) / "results.json"
    found = json.loads(path.read_text("utf-8"))
    if gone == "digest":
        found["benchmark"]["digests"]["text_to_image"] = "0" * 64
    else:
        del found["details"]["text_to_image"]
    _changed(path, **found)
    assert "another state" not in words((_root(scored) / "report/index.html").read_text("utf-8"))
    page = report(scored, runs=scored.parent / "runs").path
    assert "another state" in words(page.read_text("utf-8"))


def test_a_single_file_holds_its_images(scored: Path, tmp_path: Path) -> None:
    """Small copies stand in the page; more than 200 samples are refused before any is made."""
    written = report(scored, runs=scored.parent / "runs", single_file=True)
    assert not (written.path.parent / "thumbs").exists()
    sources = [one["source"] for one in _gallery(written)["pictures"]]
    assert all(source.startswith("data:image/jpeg;base64,") for source in sources)
    samples = [ReportSample(id=str(at), split="text_to_image", prompt="x") for at in range(201)]
    with pytest.raises(RunError, match="201 samples in a single file: expected at most 200"):
        write_report(run_data(tmp_path, samples), tmp_path / "report", single_file=True)
    assert not (tmp_path / "report").exists()


def test_images_that_cannot_be_shown_are_named(tmp_path: Path) -> None:
    shown = ImageStore(tmp_path / "pictures").put(image((1, 2, 3)))
    sample = ReportSample(id="s", split="text_to_image", prompt="x")
    outputs = {
        ("s", "anole_two"): SavedOutput(shown, "ok"),
        ("s", "bravo"): SavedOutput("0" * 64, "ok"),
    }
    ratings = {"s": rated_as({"anole_two": [7], "bravo": [3]})}
    written = write_report(run_data(tmp_path, [sample], outputs, ratings), tmp_path / "report")
    assert dict(written.problems) == {"0" * 64: "the run does not hold it"}
    gone = _gallery(written)["samples"][0]["outputs"][SYSTEMS.index("bravo")]
    assert (gone["outcome"], gone["reason"]) == ("cannot be shown", "the run does not hold it")


def test_the_page_asks_for_nothing(template: tuple[Path, Report]) -> None:
    text = template[1].path.read_text("utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    rules = {part.split()[0]: part.split()[1:] for part in unescape(policy).split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert "'unsafe-inline'" not in unescape(policy)
    assert not re.search(r"\son\w+=|\sstyle=|<base|<iframe|<object", text)
    fetched = re.findall(
        r'(?:src|href)="(?!#|thumbs/|data:|verdicts\.html)([^"]+)"', text.split("<script")[0]
    )
    assert [url for url in fetched if not url.startswith("https://example.org/")] == []


def test_nothing_ends_the_element(tmp_path: Path) -> None:
    for word in WORDS:
        sample = ReportSample(id="s", split="text_to_image", prompt=word, task=word, urls=(word,))
        text = str(write_data(describe_gallery(run_data(tmp_path, [sample]), {}, {})))
        text.encode("utf-8")
        assert not {"<", ">", "&", "\u2028", "\u2029"} & set(text)
        (found,) = json.loads(text)["samples"]
        assert (found["prompt"], found["urls"]) == (make_printable(word), [])


def test_images_stand_once(tmp_path: Path) -> None:
    digest = "a" * 64
    sample = ReportSample(id="s", split="text_to_image", prompt="x", inputs=(digest,))
    outputs = {("s", "anole_two"): SavedOutput(digest, "ok")}
    data = run_data(tmp_path, [sample], outputs)
    found = describe_gallery(data, {digest: Thumbnail("thumbs/a.jpg", 40, 20)}, {})
    assert found["pictures"] == [{"source": "thumbs/a.jpg", "width": 40, "height": 20}]
    (one,) = found["samples"]
    assert one["inputs"] == [0]
    assert [made and made["image"] for made in one["outputs"]] == [0, None]


SAMPLES = [ReportSample(id=f"s{at:02}", split="text_to_image", prompt="x") for at in range(12)]
COMMIT = "0123456789abcdef" * 2 + "01234567"


def _rated(folder: Path, on_hub: str | None, **values: object) -> RunData:
    ratings = {
        one.id: tuple(rated_as({"anole_two": [3 if at % 4 else 1], "bravo": [2]}))
        for at, one in enumerate(SAMPLES)
    }
    found = results(SAMPLES, ratings).model_copy(update={"benchmark": SavedIdentity(on_hub=on_hub)})
    return run_data(folder, SAMPLES, None, ratings, **{"results": found, **values})


@pytest.mark.parametrize(("revision", "kept"), [("v1", None), (COMMIT, COMMIT)])
def test_the_hub_reads_each_system(tmp_path: Path, revision: str, kept: str | None) -> None:
    data = _rated(tmp_path, f"my-lab/echo@{revision}", failures={"mira": ("blank",)})
    (one,) = parse_eval_result_entries(build_eval_entries(data)["anole_two"])
    assert (one.dataset_id, one.task_id, one.value) == ("my-lab/echo", "text_to_image", 0.75)
    assert one.dataset_revision == kept
    said = str(one.notes)
    assert said.startswith(
        "win rate from 0 to 1 against bravo; judged by mira (failed its audit: blank)"
    )
    assert said.endswith(f"; revision {revision}")
    # What cannot be referred to, or has no rate, has no entry.
    found = results(SAMPLES, {}).model_copy(update={"benchmark": SavedIdentity(on_hub="a/b@v1")})
    for other in (
        _rated(tmp_path, None),
        _rated(tmp_path, "my-lab/echo"),
        run_data(tmp_path, SAMPLES, results=found),
    ):
        assert build_eval_entries(other) == {}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    data = _rated(tmp_path, "a/b@c")
    for word in WORDS:
        benchmark = SavedIdentity(on_hub=f"my-lab/echo@{word}")
        found = data.results.model_copy(update={"benchmark": benchmark})
        run = run_data(tmp_path, SAMPLES, ratings=data.ratings, results=found)
        told = yaml.safe_dump(build_eval_entries(run), allow_unicode=True)
        told.encode()
        assert set(yaml.safe_load(told)) == {"anole_two", "bravo"}


def test_where_it_lies_and_what_it_lacks() -> None:
    sink = io.StringIO()
    problems = {"a" * 64: "truncated", "b" * 64: "truncated", "c" * 64: "html"}
    written = Report(
        Path("runs") / ("long" * 40) / "index.html", 1200, 1, problems, ("Ash leads.",)
    )
    show_report(Console(file=sink, width=60), written)
    assert sink.getvalue().splitlines() == [
        "Ash leads.",
        "1 image cannot be shown: html",
        "2 images cannot be shown: truncated",
        f"report: {written.path} (1,200 samples, 1 image)",
    ]


def _file(**values: object) -> bytes:
    metric = {"metric": "color_shift", "system": "anole", **values}
    details = {"a": {"samples": 1, "metrics": [metric]}}
    return json.dumps({"benchmark": {}, "protocol": "corrected", "details": details}).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff", "results.json"),
        (b'{"benchmark": {}, "protocol": "corrected", "details": {"a": {}}}', "details.a.samples"),
        (_file(metric="../../outside"), "details.a.metrics.0.metric is '../../outside'"),
        (_file(result=measured(value=math.inf)), "metrics.0.result.value is"),
        (_file(result=measured(per_sample=[math.nan])), "metrics.0.result.per_sample.0 is"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "results.json"
    assert read_figures(path, AgreementFile, "agree") is None  # there only where people were asked
    path.write_bytes(text)
    with pytest.raises(RunError, match="run `echo-hf score` again") as error:
        read_figures(path, SavedResults, "score")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_without_a_rate_are_not_lost() -> None:
    """A system that drew, but was never rated, comes after those that were."""
    rows = [
        {"metric": "m", "protocol": "corrected", "split": "s", "system": name}
        for name in ("zulu", "bravo")
    ]
    written = {"benchmark": {}, "protocol": "corrected", "details": {"s": {"samples": 0}}}
    assert list_systems(SavedResults.model_validate({**written, "results": rows}), {}) == (
        "bravo",
        "zulu",
    )


def _table(table: Any, *rows: dict[str, Any]) -> pa.Table:
    every = [{**dict.fromkeys(table.columns), "sample_id": "s", **row} for row in rows]
    return pa.Table.from_pylist(every, table.schema)


def test_ratings_come_in_one_order_and_only_numbers_count() -> None:
    keys = [("overall", "b", "j", 0), ("overall", "a", "k", 0), ("overall", "a", "j", 1)]
    names = ("rubric", "system", "judge", "repeat", "rating")
    values = zip(keys, (math.nan, math.inf, 3.0), strict=True)
    rows = [dict(zip(names, (*key, value), strict=True)) for key, value in values]
    found = read_ratings(_table(RATINGS, *rows))["s"]
    assert [(one.rubric, one.system, one.judge, one.repeat) for one in found] == sorted(keys)
    assert [one.value for one in found] == [3.0, None, None]


@given(st.integers(1, 900), st.integers(1, 900))
def test_a_copy_keeps_its_shape(width: int, height: int) -> None:
    small = shrink_image(Image.new("RGB", (width, height)), 100)
    (block,) = {n for n in range(1, 10) if max(width, height) in range(100 * n - 99, 100 * n + 1)}
    assert small.size == (-(-width // block), -(-height // block))


def test_copies_lie_beside_the_page_or_in_it(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "pictures")
    digest = images.put(image((10, 200, 30), (640, 320)))
    ((_, (found, counts)),) = make_thumbnails([digest], images, tmp_path, {digest})
    ((_, (held, none)),) = make_thumbnails([digest], images, None, ())
    assert found == Thumbnail(f"thumbs/{digest[:20]}.jpg", 320, 160)
    data = (tmp_path / found.source).read_bytes()
    with Image.open(io.BytesIO(data)) as small:
        assert small.format == "JPEG"
        middle = np.asarray(small.convert("RGB"))[80, 160]
    assert np.abs(middle - np.array([10, 200, 30])).max() <= 6
    kind, text = held.source.split(",")
    assert (kind, base64.b64decode(text)) == ("data:image/jpeg;base64", data)
    assert none is None
    assert [int(counts[channel].argmax()) for channel in range(3)] == [10, 200, 30]
    colors = MeanColors()
    colors.add(counts)
    colors.add(counts * 9)  # whatever its size, an image counts once
    assert (colors.images, colors.mean, colors.hexadecimal) == (2, (10, 200, 30), "#0ac81e")


def test_images_that_cannot_be_shown(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "pictures")
    thin = images.put(image((0, 0, 0), (1, 9)))
    gone = ["0" * 64, "../../etc/passwd", "<script>"]
    found = dict(make_thumbnails([*gone, thin], images, tmp_path, ()))
    assert found == {**dict.fromkeys(gone, "the run does not hold it"), thin: "too_small"}
    assert list((tmp_path / "thumbs").iterdir()) == []
