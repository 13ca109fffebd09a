"""`compare`: who is held against whom, what must be the same, and how the verdict is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner, Result

from echo_hf.cli import app
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import Row, output, put, rating, root, stripes, write

WORDS = tuple(f"word{at:02}" for at in range(60))
GREY = (stripes((100, 100, 100), (140, 140, 140)), stripes((100, 100, 120), (140, 140, 160)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    edits = {f"edit{at:02}": [GREY[0]] for at in range(12)}
    small.run(tmp_path, edits, WORDS)
    return tmp_path


def rows(system: str, *counts: tuple[int, float | None], **values: Any) -> list[Row]:
    """Ratings of a system by mira: so many of each, sample by sample."""
    given = [value for count, value in counts for _ in range(count)]
    return [rating(name, system, value, **values) for name, value in zip(WORDS, given, strict=True)]


def drawn(system: str, **values: Any) -> list[Row]:
    return [output(name, system, **values) for name in WORDS]


def rate(folder: Path, *every: Iterable[Row]) -> None:
    write(folder, RATINGS, [row for one in every for row in one])


def compare(folder: Path, *arguments: str) -> Result:
    given = [*arguments, "--runs", str(folder / "runs")]
    return CliRunner().invoke(app, ["compare", *given])


def held(folder: Path, *arguments: str) -> Result:
    return compare(folder, str(folder / "evaluation.yaml"), "a", "b", *arguments)


def told(done: Result) -> dict[str, Any]:
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def second(folder: Path, name: str = "later") -> Path:
    """The same benchmark under another name of the run."""
    config = {"name": name, "benchmark": "benchmark"}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config), "utf-8")
    shutil.copytree(root(folder), folder / "runs" / name)
    return folder / f"{name}.yaml"


@pytest.mark.parametrize(
    ("counts", "code", "verdict", "sentence"),
    [
        (((60, 5.0),), 0, "non_inferior", "non-inferior: b is at most 0.05 worse than a (95 %)"),
        (((30, 5.0), (30, 4.0)), 1, "worse", "worse: b is more than 0.05 worse than a (95 %)"),
        (((20, 6.0), (20, 5.0), (20, 4.0)), 3, "undecided", "more prompts are needed"),
        (((51, 5.0), (9, 4.0)), 3, "undecided", "about "),
    ],
)
def test_the_exit_code_is_the_verdict(
    folder: Path, counts: tuple[Any, ...], code: int, verdict: str, sentence: str
) -> None:
    rate(folder, rows("a", (60, 5.0)), rows("b", *counts))
    shown, quiet = held(folder), held(folder, "--json", "--quiet")
    assert (shown.exit_code, quiet.exit_code) == (code, code), shown.output
    assert sentence in shown.stdout.splitlines()[-1]
    found = told(quiet)
    names = ("verb", "verdict", "prompts", "n", "judges")
    assert [found[name] for name in names] == ["compare", verdict, 72, 60, ["mira"]]


def test_an_output_that_is_missing_loses(folder: Path) -> None:
    """Or a system that draws only what is easy would pass."""
    rate(folder, rows("a", (60, 5.0)), rows("b", (60, 5.0))[:40])
    made = drawn("b")
    for row in made[40:50]:
        row["outcome"] = "refused"
    made[50:] = [{**row, "outcome": "failed"} for row in made[50:]]
    write(folder, OUTPUTS, [*drawn("a"), *made])
    found = told(held(folder, "--json", "-q"))
    assert (found["losses"], found["ties"], found["base_n"], found["new_n"]) == (20, 40, 60, 40)
    assert (found["verdict"], found["coverage"]) == ("worse", 40 / 60)


def test_without_a_rating_nothing_is_compared(folder: Path) -> None:
    """No number of prompts would do: the judge has to be mended; nor has the board a number."""
    rate(folder, *(rows(name, (60, None), outcome="no_rating") for name in ("a", "b")))
    done = held(folder)
    assert done.exit_code != 0
    assert "nothing was rated: of 120 outputs of a and b none has a rating by mira" in str(
        done.exception
    )
    shown = small.called(folder, "score")
    assert "text_to_image: nothing was rated" in shown.output
    assert "not_rated" not in shown.output


def test_half_of_the_ratings_is_too_few_for_a_pass(folder: Path) -> None:
    rate(folder, rows("a", (60, 5.0)), rows("b", (60, 6.0))[:30])
    write(folder, OUTPUTS, [*drawn("a"), *drawn("b")])
    done = held(folder)
    assert done.exit_code == 3
    last = " ".join(done.stdout.split())
    assert "undecided: 50 % of the prompts count for both, fewer than 95 %" in last
    assert "more prompts are needed" not in last


def test_a_system_is_compared_in_two_runs(folder: Path) -> None:
    """By configs or by folders; in one direction the one, in the other the other is the base."""
    rate(folder, rows("a", (60, 5.0)))
    later = second(folder)
    pq.write_table(
        RATINGS.make_empty().from_pylist(rows("a", (30, 5.0), (30, 4.0)), RATINGS.schema),
        folder / "runs" / "later" / "ratings.parquet",
    )
    worse = compare(folder, str(folder / "evaluation.yaml"), str(later))
    assert worse.exit_code == 1, worse.output
    assert f"a in {later}" in worse.stdout.replace("\n", "")
    config = {"name": "later", "benchmark": str(folder / "benchmark")}
    kept = folder / "runs" / "later"
    (kept / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    better = compare(folder, str(kept), str(folder / "evaluation.yaml"), "--json")
    assert (better.exit_code, told(better)["wins"]) == (0, 30)


def test_of_several_systems_in_two_runs_one_is_named(folder: Path) -> None:
    rate(folder, rows("a", (60, 5.0)), rows("c", (60, 5.0)))
    pair = (str(folder / "evaluation.yaml"), str(second(folder)))
    assert "the two runs share 2 systems" in str(compare(folder, *pair).exception)
    found = told(compare(folder, *pair, "--system", "c", "--json", "-q"))
    assert (found["base"], found["new"]) == (f"c in {pair[0]}", f"c in {pair[1]}")


MADE, ELSEWHERE = (
    json.dumps({"judge": {"answered_by": {}, "digest": letter * 64}}) for letter in "ab"
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judge": "noor"}, "rated by ['mira'], b by ['mira', 'noor']: expected the same judges"),
        ({"prompt_digest": "1" * 64}, "['mira'] rated a and b by other instructions, on 1 "),
        ({"provenance": ELSEWHERE}, "a and b by another model or other settings, on 1 prompts"),
    ],
)
def test_what_was_judged_otherwise_is_not_compared(folder: Path, change: Any, said: str) -> None:
    every = [rows(name, (60, 5.0), prompt_digest="0" * 64, provenance=MADE) for name in "ab"]
    rate(folder, *every)
    assert held(folder).exit_code == 0
    every[1][7] |= change
    rate(folder, *every)
    assert said in str(held(folder).exception)


def test_runs_of_two_releases_are_not_compared(folder: Path, tmp_path: Path) -> None:
    rate(folder, rows("a", (60, 5.0)))
    other = tmp_path / "other"
    small.run(other, {}, [*WORDS[:-1], "new"])
    write(other, RATINGS, rows("a", (60, 5.0))[:-1])
    done = compare(folder, str(folder / "evaluation.yaml"), str(other / "evaluation.yaml"))
    config = {"name": "evaluation", "benchmark": str(other / "benchmark")}
    (root(other) / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    assert "are one run" in str(done.exception)  # of one name, in one folder of runs
    done = compare(folder, str(folder / "evaluation.yaml"), str(root(other)))
    assert "13 are in the first run alone, 1 in the second, 0 have another" in str(done.exception)


def test_a_metric_is_compared_by_its_own_margin(folder: Path) -> None:
    """A system that adds 20 levels of blue is worse by 20; lower is better."""
    images = [put(folder, one) for one in GREY]
    edits = [f"edit{at:02}" for at in range(12)]
    made = [output(name, "a", [GREY[0]], image=images[0]) for name in edits]
    made += [output(name, "b", [GREY[0]], image=images[1]) for name in edits]
    made[-1] |= {"outcome": "refused", "image": None}
    write(folder, OUTPUTS, made)
    unsaid = held(folder, "--metric", "color_shift")
    assert "say how much worse NEW may be" in str(unsaid.exception)
    found = told(held(folder, "--metric", "color_shift", "--margin", "30", "--json", "-q"))
    assert (found["difference"], found["n"], found["base_n"], found["new_n"]) == (-20, 11, 12, 11)
    assert (found["verdict"], found["coverage"]) == ("undecided", 11 / 12)
    assert (found["reason"], found["needed"]) == ("low_coverage", None)
    assert found["prompts"] == 72
    nobody = held(folder, "--metric", "text_rendering", "--margin", "0.1")
    assert "by the rubric 'text_rendering' a was rated by []" in str(nobody.exception)


def test_the_table_is_markdown_that_shows_names_as_they_are(folder: Path) -> None:
    name = "b|<img src=x>`*"
    rate(folder, rows("a", (60, 5.0)), rows(name, (60, 5.0)))
    page = folder / "gate.md"
    done = compare(folder, str(folder / "evaluation.yaml"), "a", name, "--markdown", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert "\\|\\<img src=x\\>\\`\\*" in text
    head, line, row = [one for one in text.splitlines() if one.startswith("|")]
    assert head.count("|") == line.count("|") == row.count("|") == 8
    assert "non-inferior" in text


def test_rows_that_do_not_count_are_told(folder: Path) -> None:
    rate(folder, rows("a", (60, 5.0)), rows("b", (60, 5.0)), [rating("elsewhere", "b", 5.0)])
    done = held(folder, "--markdown", str(folder / "gate.md"))
    for text in (done.stdout, (folder / "gate.md").read_text("utf-8")):
        assert "1 rows of ratings in" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "bb"), "unknown system 'bb'"),
        (("nowhere.yaml",), "no config 'nowhere.yaml'"),
        (("a", "a"), "expected two"),
        (("a", "b", "--system", "a"), "expected two, without --system"),
        (("a", "b", "--metric", "colour_shift"), "did you mean 'color_shift'"),
        (("a", "b", "--split", "text_to_imag"), "did you mean 'text_to_image'"),
        (("a", "b", "--split", "image_to_image"), "by the rubric 'overall' a was rated by []"),
        (("a", "b", "--margin", "0"), "margin is 0.0"),
    ],
)
def test_a_mistake_is_said_in_one_line(folder: Path, arguments: Any, said: str) -> None:
    rate(folder, rows("a", (60, 5.0)), rows("b", (60, 5.0)))
    done = compare(folder, str(folder / "evaluation.yaml"), *arguments)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)
