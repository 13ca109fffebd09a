"""The report of a run: from its tables to a folder."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from echo_hf.errors import EchoError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.judging.score import score
from echo_hf.report.report import Report, report, write_report
from echo_hf.report.run_data import Output, ReportSample
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as run
from tests.report.run_data_for_tests import SYSTEMS, image, ratings_of, run_data

RED, BLUE = run.stripes((200, 0, 0), (90, 0, 0)), run.stripes((0, 0, 200), (0, 90, 90))
NAMES = [f"boat {at}" for at in range(12)]


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """A run with an edit and twelve prompts, two systems, one judge, and figures."""
    config = run.run(tmp_path, {"logo": [RED]}, NAMES)
    made = run.put(tmp_path, BLUE)
    rows = [run.output(name, one, image=made) for name in NAMES for one in ("anole", "bravo")]
    rows.append(run.output("logo", "anole", [RED], image=made))
    rows.append(run.output("logo", "bravo", [RED], outcome="refused", stage="output", code="nsfw"))
    run.write(tmp_path, OUTPUTS, rows)
    said = [
        run.rating(name, system, value - (name == "boat 3") * 4, explanation=f"{name}: {system}")
        for name in NAMES
        for system, value in (("anole", 8.0), ("bravo", 5.0))
    ]
    run.write(tmp_path, RATINGS, [*said, run.rating("boat 0", "anole", None, repeat=1)])
    score(config, runs=tmp_path / "runs", n_boot=50)
    return config


def _gallery(written: Report) -> dict[str, Any]:
    text = written.path.read_text("utf-8")
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


def _words(written: Report) -> str:
    """What the page says, without its tags and scripts."""
    text = written.path.read_text("utf-8").split("<script", 1)[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_folder_with_everything(scored: Path) -> None:
    """Page, small copies, figures for print and the board in Markdown lie in one folder."""
    written = report(scored, runs=scored.parent / "runs")
    folder = scored.parent / "runs" / "evaluation" / "report"
    assert written.path == folder / "index.html"
    assert (written.samples, written.images, dict(written.problems)) == (13, 2, {})
    assert sorted(path.name for path in folder.iterdir()) == [
        "board.md",
        "figures",
        "index.html",
        "thumbs",
    ]
    assert len(list((folder / "thumbs").iterdir())) == 2
    names = {path.name for path in (folder / "figures").iterdir()}
    assert "win_rate_text_to_image.svg" in names


def test_the_figures_are_those_of_the_run(scored: Path) -> None:
    """Rates stand in the page and in Markdown as `results.json` has them, the best first."""
    written = report(scored, runs=scored.parent / "runs")
    results = json.loads((written.path.parents[1] / "results.json").read_text("utf-8"))
    rows = [
        row
        for row in results["results"]
        if (row["metric"], row["protocol"], row["split"])
        == ("win_rate", "corrected", "text_to_image")
    ]
    rates = {row["system"]: f"{row['value']:.3f}" for row in rows}
    board = (written.path.parent / "board.md").read_text("utf-8")
    assert re.findall(r"^\| (\w+) \| ([\d.]+) \|", board, re.MULTILINE) == [
        ("anole", rates["anole"]),
        ("bravo", rates["bravo"]),
    ]
    assert all(rate in _words(written) for rate in rates.values())


def test_the_gallery_has_every_sample(scored: Path) -> None:
    """Each sample has its prompt, inputs, outputs or why there is none, and all ratings."""
    data = _gallery(report(scored, runs=scored.parent / "runs"))
    samples = {one["id"]: one for one in data["samples"]}
    assert sorted(samples) == sorted([*NAMES, "logo"])
    logo, boat = samples["logo"], samples["boat 0"]
    assert logo["prompt"] == "draw logo"
    assert len(logo["inputs"]) == 1
    by_system = dict(zip(data["systems"], logo["outputs"], strict=True))
    assert by_system["bravo"] == [None, "refused", "output, nsfw"]
    assert data["pictures"][by_system["anole"][0]][0].startswith("thumbs/")
    found = [
        (data["systems"][row[0]], row[4], row[5] if row[5] is None else data["texts"][row[5]])
        for row in boat["ratings"]
    ]
    assert found == [
        ("anole", 8.0, "boat 0: anole"),
        ("anole", None, None),
        ("bravo", 5.0, "boat 0: bravo"),
    ]


def test_the_same_run_gives_the_same_bytes(scored: Path) -> None:
    """Nothing depends on the moment, nor on which image was decoded first."""
    runs = scored.parent / "runs"
    folder = report(scored, runs=runs).path.parent
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report(scored, runs=runs)
    second = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert first == second


def test_a_judge_that_failed_its_audit_is_flagged(scored: Path) -> None:
    """Wherever the judge's figures stand, so does what it failed on."""
    root = scored.parent / "runs" / "evaluation"
    audit = {"judges": {"mira": {"failed": ["blank"]}}}
    (root / "audit.json").write_text(json.dumps(audit), "utf-8")
    written = report(scored, runs=scored.parent / "runs")
    assert _words(written).count("failed its audit: blank") == 2
    assert "failed its audit: blank" in (written.path.parent / "board.md").read_text("utf-8")
    assert _gallery(written)["failed"] == {"mira": ["blank"]}


@pytest.mark.parametrize(
    ("scored_as", "audited", "shown"),
    [
        (["blank"], None, ["blank"]),  # the audit was moved away
        (["blank"], ["noise"], ["noise"]),  # audited again since
        (["blank"], [], []),  # passed since
    ],
)
def test_the_last_word_on_a_judge_counts(
    scored: Path, scored_as: list[str], audited: list[str] | None, shown: list[str]
) -> None:
    """A flag of the figures stays until the judge is audited again."""
    root = scored.parent / "runs" / "evaluation"
    results = json.loads((root / "results.json").read_text("utf-8"))
    results["failed_audit"] = {"mira": scored_as}
    (root / "results.json").write_text(json.dumps(results), "utf-8")
    if audited is not None:
        audit = {"judges": {"mira": {"failed": audited}}}
        (root / "audit.json").write_text(json.dumps(audit), "utf-8")
    written = report(scored, runs=scored.parent / "runs")
    assert _gallery(written)["failed"] == ({"mira": shown} if shown else {})


def test_a_comparison_is_titled_by_its_benchmark(scored: Path) -> None:
    """Other systems were run on it: the target is who people gave its tasks to, no more."""
    page = report(scored, runs=scored.parent / "runs").path.read_text("utf-8")
    assert "<h1><bdi>lumen</bdi></h1>" in page
    assert "that people gave to <bdi>Lumen Image</bdi> in public posts" in page


def test_what_else_lies_there_is_not_lost(scored: Path) -> None:
    """A folder that holds somebody's own file is left as it is."""
    folder = report(scored, runs=scored.parent / "runs").path.parent
    (folder / "notes.md").write_text("mine", "utf-8")
    with pytest.raises(EchoError, match=r"holds 'notes\.md', .* move it, or name another"):
        report(scored, runs=scored.parent / "runs")
    assert (folder / "notes.md").read_text("utf-8") == "mine"


@pytest.mark.parametrize("name", [".DS_Store", "Thumbs.db", "desktop.ini"])
def test_what_a_window_left_is_nobody_s(scored: Path, name: str) -> None:
    """Looking into the folder does not keep it from being replaced."""
    folder = report(scored, runs=scored.parent / "runs").path.parent
    (folder / name).write_bytes(b"\0")
    report(scored, runs=scored.parent / "runs")
    assert not (folder / name).exists()


def test_one_writer_at_a_time(scored: Path) -> None:
    """While another process writes the report, this one says so and writes nothing."""
    runs = scored.parent / "runs"
    before = report(scored, runs=runs).path.read_bytes()
    with FileLock(runs / "evaluation" / ".report.lock"), pytest.raises(RunError, match="another"):
        report(scored, runs=runs)
    assert (runs / "evaluation" / "report" / "index.html").read_bytes() == before


def test_figures_of_another_benchmark_are_named(scored: Path) -> None:
    """Where the benchmark has changed since it was scored, the page says so."""
    path = scored.parent / "runs" / "evaluation" / "results.json"
    results = json.loads(path.read_text("utf-8"))
    assert "another state" not in _words(report(scored, runs=scored.parent / "runs"))
    results["benchmark"]["digests"]["text_to_image"] = "0" * 64
    path.write_text(json.dumps(results), "utf-8")
    assert "another state" in _words(report(scored, runs=scored.parent / "runs"))


def test_a_split_without_figures_is_named(scored: Path) -> None:
    """Where figures of a split are gone, the page says that they are of another state."""
    path = scored.parent / "runs" / "evaluation" / "results.json"
    results = json.loads(path.read_text("utf-8"))
    del results["details"]["text_to_image"]
    path.write_text(json.dumps(results), "utf-8")
    assert "another state" in _words(report(scored, runs=scored.parent / "runs"))


def test_a_run_without_figures(tmp_path: Path) -> None:
    """There is nothing to report before anything was scored."""
    config = run.run(tmp_path, {}, NAMES)
    with pytest.raises(RunError, match=r"run `echo-hf score` with this config first"):
        report(config, runs=tmp_path / "runs")


@pytest.mark.parametrize("text", ["{", "[]", '{"results": []}', '{"benchmark": 3, "details": {}}'])
def test_damaged_figures_are_one_line(scored: Path, text: str) -> None:
    """A file of figures that is none is named, and the report before stays."""
    runs = scored.parent / "runs"
    before = report(scored, runs=runs).path.read_bytes()
    (runs / "evaluation" / "results.json").write_text(text, "utf-8")
    with pytest.raises(RunError, match="run `echo-hf score` again") as error:
        report(scored, runs=runs)
    assert "\n" not in str(error.value)
    assert (runs / "evaluation" / "report" / "index.html").read_bytes() == before


def test_a_single_file_holds_its_images(scored: Path) -> None:
    """Small copies stand in the page, and no folder beside it."""
    written = report(scored, runs=scored.parent / "runs", single_file=True)
    assert not (written.path.parent / "thumbs").exists()
    sources = [one[0] for one in _gallery(written)["pictures"]]
    assert all(source.startswith("data:image/jpeg;base64,") for source in sources)


def test_a_single_file_has_a_limit(tmp_path: Path) -> None:
    """More than 200 samples are refused before any image is looked at."""
    samples = [ReportSample(id=str(at), split="text_to_image", prompt="x") for at in range(201)]
    with pytest.raises(RunError, match="201 samples in a single file: expected at most 200"):
        write_report(run_data(tmp_path, samples), tmp_path / "report", single_file=True)
    assert not (tmp_path / "report").exists()


def test_images_that_cannot_be_shown_are_named(tmp_path: Path) -> None:
    """An image that is gone is a card with the reason, and counted in what was written."""
    shown = ImageStore(tmp_path / "pictures").put(image((1, 2, 3)))
    sample = ReportSample(id="s", split="text_to_image", prompt="x")
    outputs = {("s", "anole_two"): Output(shown, "ok"), ("s", "bravo"): Output("0" * 64, "ok")}
    ratings = {"s": ratings_of({"anole_two": [7], "bravo": [3]})}
    data = run_data(tmp_path, [sample], outputs, ratings)
    written = write_report(data, tmp_path / "report")
    assert dict(written.problems) == {"0" * 64: "the run does not hold it"}
    gone = _gallery(written)["samples"][0]["outputs"][SYSTEMS.index("bravo")]
    assert gone[1:] == ["cannot be shown", "the run does not hold it"]


def test_the_page_asks_for_nothing(scored: Path) -> None:
    """The policy forbids everything but the page's own script, style and images."""
    text = report(scored, runs=scored.parent / "runs").path.read_text("utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    rules = {part.split()[0]: part.split()[1:] for part in unescape(policy).split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert "'unsafe-inline'" not in unescape(policy)
    assert not re.search(r"\son\w+=|\sstyle=|<base|<iframe|<object", text)
    fetched = re.findall(r'(?:src|href)="(?!#|thumbs/|data:)([^"]+)"', text.split("<script")[0])
    assert [url for url in fetched if not url.startswith("https://example.org/")] == []
