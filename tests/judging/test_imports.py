"""Outputs and judgements of others as rows of a run: each format as its project writes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from echo_hf.errors import ConfigError, RunError
from echo_hf.judging.imports import ImportResult, NotImported, import_judgements
from echo_hf.judging.score import measure_agreement, score
from echo_hf.metrics.text_rendering import RUBRIC as TEXT_RENDERING
from echo_hf.reasons import Reason
from echo_hf.scores import human_corrected
from echo_hf.scores.rating_table import IgnoredRating
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import called, output, put, rating, root, stripes, write
from tests.scores.ratings_for_tests import counted_rates, real_people, real_rows

WORDS = ("boat", "fox", "tree")
PAINTED = stripes((10, 20, 30), (40, 50, 60))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small.run(tmp_path, {}, WORDS)
    return tmp_path


def written(place: Path, *records: Any) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".parquet":
        import pyarrow as pa

        pq.write_table(pa.Table.from_pylist(list(records)), place)
    elif place.suffix == ".jsonl":
        place.write_text("".join(f"{json.dumps(one)}\n" for one in records), "utf-8")
    else:
        place.write_text(json.dumps(records[0] if len(records) == 1 else list(records)), "utf-8")
    return place


def taken(folder: Path, place: Path, **options: Any) -> ImportResult:
    return import_judgements(folder / "evaluation.yaml", place, runs=folder / "runs", **options)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(root(folder) / f"{name}.parquet").to_pylist()
    return found


def viescore(folder: Path) -> Path:
    """A score that could not be read was drawn by chance, and is none."""
    place = folder / "results_gpt4o_0shot" / "ImagenHub_Text-Guided_IG"
    for system, consistency, quality in (("ash", [9, 4], [9, 9]), ("birch", [1], [4])):
        for name, scores in (("SC", consistency), ("PQ", quality)):
            told = {"score": scores, "reasoning": f"{name} of {system}", "prompt_input": "..."}
            guess = {"score": [8], "reasoning": "guess_if_cannot_parse | no idea"}
            written(
                place / system / f"{name}.json",
                {"boat.jpg": told, "fox.jpg": guess if name == "PQ" else told, "gone.jpg": told},
            )
    return folder / "results_gpt4o_0shot"


def imagenhub(folder: Path) -> Path:
    place = folder / "Text-Guided_IG"
    (place / "ash").mkdir(parents=True)
    (place / "ash" / "boat.png").write_bytes(PAINTED)
    (place / "ash" / "fox.png").write_bytes(b"<html>")
    (place / "birch").mkdir()
    (place / "birch" / "boat.png").write_bytes(stripes((90, 9, 9), (9, 90, 9)))
    lines = "uid\tash\tbirch\nboat.png\t[1, 0.25]\t[0,1]\nfox.png\t[1, 1]\t\ngone\t[1, 1]\t[1,1]\n"
    lines += "tree\t[1, 2]\t[-1, -1]\n"
    (place / "Text-Guided_IG_rater1.tsv").write_text(lines, "utf-8")
    return place


def vote(prompt: str, left: str, right: str, said: str, **more: Any) -> dict[str, Any]:
    sides = {"left_model": left, "right_model": right}
    return {"prompt": prompt, **sides, "vote_type": said, **more}


def genai_bench(folder: Path) -> Path:
    place = folder / "GenAI-Bench"
    image = {"bytes": PAINTED, "path": None}
    written(
        place / "train-00000.parquet",
        vote("draw  boat", "birch", "ash", "leftvote", left_image=image, right_image=image),
        vote("draw boat", "birch", "ash", "bothbad_vote", left_image=image, right_image=image),
        vote("draw fox", "ash", "ash", "tievote", left_image=image, right_image=None),
        vote("draw fox", "ash", "birch", "rightvote", left_image=None, right_image=image),
        vote("a prompt of nobody", "ash", "birch", "rightvote", left_image=None, right_image=None),
        vote("draw tree", "ash", "birch", "skipped", left_image=None, right_image=None),
    )
    return place


def alpaca_eval(folder: Path) -> Path:
    def told(instruction: str, one: str, other: str, preference: Any) -> dict[str, Any]:
        names = {"generator_1": one, "generator_2": other}
        more = {"preference": preference, "annotator": "wren", "price_per_example": 0.25}
        return {"instruction": instruction, "output_1": "...", **names, **more}

    return written(
        folder / "annotations.json",
        told("draw boat", "birch", "ash", 1.9),
        told("draw boat", "birch", "ash", 1.0),
        told("draw fox", "ash", "birch", 1.5),
        told("draw tree", "ash", "birch", None),
        told("draw tree", "birch", "ash", 7),
        told("draw an owl", "birch", "ash", 1),
    )


def own(folder: Path) -> Path:
    return written(
        folder / "rows.jsonl",
        {"sample_id": "boat", "system": "ash", "judge": "wren", "rating": 4},
        {"sample_id": "boat", "system": "birch", "judge": "wren", "rating": None},
        {"sample_id": "boat", "system": "ash", "judge": "wren", "rating": 5},
        {"sample_id": "boat", "system": "ash", "judge": "", "rating": 5},
        {"sample_id": "fox", "rater": "ada", "scores": {"ash": 0.5, "birch": "best"}},
        {"sample_id": "fox", "rater": "ben", "system": "ash", "rank": 2},
        [],
    )


Case = tuple[Any, dict[str, int], dict[Reason, int], dict[str, Any]]
N = NotImported
CASES: Mapping[str, Case] = {
    "viescore": (
        viescore,
        {"ratings": 4},
        {N.UNKNOWN_SAMPLE: 2},
        {
            ("boat", "ash", "gpt4o_0shot"): 6.0,
            ("boat", "birch", "gpt4o_0shot"): 2.0,
            ("fox", "ash", "gpt4o_0shot"): None,
            ("fox", "birch", "gpt4o_0shot"): None,
        },
    ),
    "imagenhub": (
        imagenhub,
        {"outputs": 2, "human": 2},
        {N.UNKNOWN_SAMPLE: 2, N.NOT_OF_FORMAT: 3, N.BAD_IMAGE: 1, IgnoredRating.NO_OUTPUT: 1},
        {("boat", "rater1", "ash"): 0.5, ("boat", "rater1", "birch"): 0.0},
    ),
    "genai_bench": (
        genai_bench,
        {"outputs": 4, "comparisons": 3},
        {N.AGAIN: 2, N.UNKNOWN_SAMPLE: 1, N.NOT_OF_FORMAT: 2},
        {
            ("boat", "ash", "birch", "people", "ba", 0): "b",
            ("boat", "ash", "birch", "people", "ba", 1): "tie",
            ("fox", "ash", "birch", "people", "ab", 0): "b",
        },
    ),
    "alpaca_eval": (
        alpaca_eval,
        {"comparisons": 3},
        {N.AGAIN: 1, N.NOT_OF_FORMAT: 1, N.UNKNOWN_SAMPLE: 1},
        {
            ("boat", "ash", "birch", "wren", "ba", 0): "a",
            ("fox", "ash", "birch", "wren", "ab", 0): "tie",
            ("tree", "ash", "birch", "wren", "ab", 0): None,
        },
    ),
    "jsonl": (
        own,
        {"ratings": 2, "human": 2},
        {N.AGAIN: 1, N.NOT_OF_FORMAT: 3},
        {("fox", "ada", "ash"): 0.5, ("fox", "ben", "ash"): None},
    ),
}
LAST = {
    "ratings": (("sample_id", "system", "judge"), "rating"),
    "human": (("sample_id", "rater", "system"), "score"),
    "comparisons": (("sample_id", "system_a", "system_b", "judge", "order", "repeat"), "winner"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_format_becomes_rows_and_the_rest_is_counted(folder: Path, name: str) -> None:
    make, counts, left_out, expected = CASES[name]
    place = make(folder)
    done = taken(folder, place, format=name)
    assert (done.format, done.rows, Counter(done.left_out)) == (name, counts, Counter(left_out))
    table = [*counts][-1]
    key, value = LAST[table]
    found = rows(folder, table)
    assert {tuple(row[one] for one in key): row[value] for row in found} == expected
    for row in (row for one in counts if one != "human" for row in rows(folder, one)):
        made = json.loads(row["provenance"])["judge"]
        assert (made["engine"]["format"], made["answered_by"]["status"]) == (name, "imported")
        assert row["sample_digest"] == small.digest_of(row["sample_id"])
    before = {one: rows(folder, one) for one in counts}
    assert taken(folder, place, format=name).rows == counts
    assert {one: rows(folder, one) for one in counts} == before


def assignments(folder: Path) -> Path:
    """As ECHO's authors publish them, a file for each split, with samples of other benchmarks."""
    place = folder / "community_driven_metrics"
    names = ("Face Identity Preservation", "No Color Shift", "Spatial Position Preservation")
    edits = {"boat": dict(zip(names, (1, 0, 1), strict=True)), "gone": {"No Color Shift": 1}}
    words = {"fox": {"Text Rendering Accuracy": 1, "Another Metric": 1}, "tree": {names[0]: 2}}
    written(place / "image_to_image_assignment.json", edits)
    written(place / "text_to_image_assignment.json", words)
    written(place / "classify.json", {"fox": {"Text Rendering Accuracy": 0}})
    return place


def test_which_metrics_fit_is_taken_from_the_authors_assignments(folder: Path) -> None:
    """What a sample was not asked about has no row; a name or a value that is none is counted."""
    place = assignments(folder)
    done = taken(folder, place, format="echo_assignment")
    assert done.rows == {"applicability": 4}
    assert Counter(done.left_out) == Counter({N.UNKNOWN_SAMPLE: 1, N.NOT_OF_FORMAT: 2})
    expected = {
        ("boat", "color_shift"): False,
        ("boat", "face_identity"): True,
        ("boat", "structure_distance"): True,
        ("fox", "text_rendering"): True,
    }
    found = rows(folder, "applicability")
    assert {(row["sample_id"], row["metric"]): row["applies"] for row in found} == expected
    assert [(row["outcome"], row["rationale"]) for row in found] == [("ok", None)] * 4
    assert taken(folder, place, format="echo_assignment").rows == done.rows
    assert rows(folder, "applicability") == found
    one = place / "text_to_image_assignment.json"
    assert taken(folder, one, format="echo_assignment").rows == {"applicability": 1}


def test_what_a_model_of_the_run_said_of_a_sample_stays(folder: Path) -> None:
    own = {"sample_id": "boat", "metric": "face_identity", "applies": False, "outcome": "ok"}
    write(folder, APPLICABILITY, [{**own, "rationale": "no face"}])
    done = taken(folder, assignments(folder), format="echo_assignment")
    assert done.left_out[N.TAKEN] == 1
    found = [row for row in rows(folder, "applicability") if row["metric"] == "face_identity"]
    assert [(row["applies"], row["rationale"]) for row in found] == [(False, "no face")]


def test_an_assignment_decides_on_which_samples_a_metric_is_measured(folder: Path) -> None:
    words = {name: {"Text Rendering Accuracy": int(name != "fox")} for name in WORDS}
    place = written(folder / "text_to_image_assignment.json", words)
    taken(folder, place, format="echo_assignment")
    write(folder, OUTPUTS, [output(name, "ash", image=put(folder, PAINTED)) for name in WORDS])
    rated = [rating(name, "ash", at, rubric=TEXT_RENDERING) for at, name in enumerate(WORDS, 3)]
    write(folder, RATINGS, rated)
    scored = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    (row,) = (one for one in scored.results if one.metric == TEXT_RENDERING)
    assert (row.n, row.value) == (2, pytest.approx((3 + 5) / 2 / 10))


def test_images_of_others_are_stored_as_they_are(folder: Path) -> None:
    taken(folder, imagenhub(folder), format="imagenhub")
    (one, _) = rows(folder, "outputs")
    assert (one["system"], one["outcome"], one["image"]) == ("ash", "ok", put(folder, PAINTED))


def test_rows_of_the_run_stay(folder: Path) -> None:
    """Its rows stay in their place, and others are of its outputs."""
    mine = rating("boat", "ash", 9, judge="wren", provenance=None)
    write(folder, RATINGS, [mine, rating("boat", "ash", 3, judge="owl")])
    drawn = [output(name, "ash", image=put(folder, PAINTED)) for name in WORDS]
    write(folder, OUTPUTS, drawn)
    done = taken(folder, own(folder), format="jsonl")
    assert done.rows == {"human": 2}
    left_out = {N.AGAIN: 1, N.NOT_OF_FORMAT: 3, N.TAKEN: 1, IgnoredRating.NO_OUTPUT: 1}
    assert Counter(done.left_out) == left_out
    assert {row["judge"]: row["rating"] for row in rows(folder, "ratings")} == {"wren": 9, "owl": 3}
    assert not (root(folder) / "comparisons.parquet").exists()


def test_what_cannot_be_imported_is_said_in_a_line(folder: Path) -> None:
    with pytest.raises(RunError, match=r"gone' does not exist: expected a file or folder"):
        taken(folder, folder / "gone", format="jsonl")
    (folder / "x").mkdir()
    with pytest.raises(RunError, match=r"x' holds nothing of format 'viescore': name another one"):
        taken(folder, folder / "x", format="viescore")
    with pytest.raises(RunError, match="--format: unknown format 'vieskore'; did you mean 'vies"):
        taken(folder, viescore(folder), format="vieskore")
    for text in ("{", "[" * 100_000, "\xff"):
        place = folder / "x.json"
        place.write_bytes(text.encode("latin-1"))
        with pytest.raises(RunError, match=r"x\.json' cannot be read"):
            taken(folder, place, format="alpaca_eval")
    engine = "{kind: openai, model: m, base_url: 'http://127.0.0.1:1/v1'}"
    judge = f"{{name: wren, developer: d, status: current, engine: {engine}}}"
    with (folder / "evaluation.yaml").open("a", encoding="utf-8") as file:
        file.write(
            f"judges: [{judge}]\nsystems: [{{name: ash, adapter: files, "
            "developer: d, status: current, parameters: {folder: .}}]\n"
        )
    with pytest.raises(ConfigError, match="has a judge 'wren', which is one of the config's"):
        taken(folder, own(folder), format="jsonl")
    assert taken(folder, imagenhub(folder), format="imagenhub").left_out[N.TAKEN] == 2


HOSTILE: Any = (None, [], {}, "", -1, 10**400, True, "\x00\x1b[2J", "x" * 10**6, [[]] * 3)


@pytest.mark.parametrize(
    "name", ["alpaca_eval", "echo_assignment", "genai_bench", "jsonl", "viescore"]
)
def test_values_of_any_kind_are_counted_and_stop_nothing(folder: Path, name: str) -> None:
    keys = {
        "echo_assignment": ("fox", "boat"),
        "alpaca_eval": ("generator_1", "generator_2", "preference", "instruction", "annotator"),
        "genai_bench": ("vote_type", "left_model", "right_model", "prompt"),
        "jsonl": ("rating", "judge", "system", "sample_id", "rater", "scores", "repeat"),
        "viescore": ("score", "reasoning"),
    }[name]
    good = {"generator_1": "a", "generator_2": "b", "left_model": "a", "right_model": "b"}
    good |= {"preference": 1, "vote_type": "leftvote"}
    good |= dict.fromkeys(("instruction", "prompt"), "draw boat")
    good = {key: value for key, value in good.items() if key in keys}
    records = [{**good, key: value} for key in keys for value in HOSTILE]
    place = folder / "x"
    if name == "viescore":
        written(place / "ash" / "SC.json", {f"{at}.jpg": one for at, one in enumerate(records)})
        written(place / "ash" / "PQ.json", {f"{at}.jpg": one for at, one in enumerate(HOSTILE)})
    else:
        place = written(place / "rows.jsonl", *records, *HOSTILE)
    done = taken(folder, place, format=name)
    assert sum(done.rows.values()) < 4
    assert sum(done.left_out.values()) >= len(records) - 4


def test_the_verb_tells_what_was_taken(folder: Path) -> None:
    given = ("judge", "--import", viescore(folder), "--format", "viescore")
    done = called(folder, *given, "--dry-run")
    assert done.exit_code == 0
    assert "nothing was written: leave out --dry-run" in " ".join(done.output.split())
    assert not (root(folder) / "ratings.parquet").exists()
    done = called(folder, *given)
    assert "2 left out, unknown_sample: no sample of the benchmark has its name" in done.output
    assert "judges: gpt4o_0shot" in done.output
    assert "4 rows of ratings (viescore)" in done.output
    told = json.loads(called(folder, *given, "--json").stdout)
    assert told["rows"] == {"ratings": 4}
    refused = called(folder, *given, "--pairwise")
    assert "--import goes with" in str(refused.exception)


def test_real_ratings_and_people_are_scored(tmp_path: Path, test_data: Path) -> None:
    """Win rates, agreement and corrected win rates on them are those of the rows themselves."""
    people, rated = real_people(test_data), real_rows(test_data)
    small.run(tmp_path, {}, sorted({row["sample_id"] for row in rated}))
    for name in ("judge_ratings", "human_scores"):
        done = taken(tmp_path, test_data / "ratings" / f"{name}.jsonl", format="jsonl")
        assert done.left_out == {}
    assert done.rows == {"human": len(people)}
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    scored = score(config, runs=runs, n_boot=0)
    by = ("win_rate", "corrected")
    of_file = {row.system: row.value for row in scored.results if (row.metric, row.protocol) == by}
    cube: dict[str, dict[str, list[float | None]]] = {}
    for row in sorted(rated, key=lambda one: one["sample_id"]):
        cube.setdefault(row["judge"], {}).setdefault(row["system"], []).append(row["rating"])
    assert of_file == pytest.approx(counted_rates(cube, "corrected"))
    assert measure_agreement(config, runs=runs).merged.counts.rankings == 3 * 179
    found = human_corrected(rows(tmp_path, "ratings"), rows(tmp_path, "human"))
    assert found.win_rate == human_corrected(rated, people).win_rate


@pytest.mark.parametrize(
    "row",
    [
        {"judge": "wren", "rating": 1e308},
        {"judge": "wren", "rating": -1e308},
        {"judge": "wren", "rating": 10**30},
        {"judge": "wren", "rating": 5, "repeat": 10**30},
        {"judge": "wren", "rating": 5, "cost_usd": 1e300},
        {"rater": "ada", "rank": 10**30},
        {"rater": "ada", "score": 10**400},
        {"judge": "wren", "rating": "9" * 5000},
    ],
)
def test_a_number_beyond_any_scale_is_counted_and_the_others_stay(folder: Path, row: Any) -> None:
    good = {"sample_id": "boat", "system": "ash", "judge": "wren", "rating": 4}
    bad = {"sample_id": "fox", "system": "ash", **row}
    done = taken(folder, written(folder / "rows.jsonl", good, bad), format="jsonl")
    assert done.rows == {"ratings": 1}
    assert done.left_out == {NotImported.NOT_OF_FORMAT: 1}


def test_a_time_of_no_calendar_in_a_table_is_one_line(folder: Path) -> None:
    import pyarrow as pa

    vote = {"prompt": "draw boat", "left_model": "a", "right_model": "b", "vote_type": "tievote"}
    table = pa.table({name: [value] for name, value in vote.items()})
    times = pa.array([2**62]).cast(pa.timestamp("us"))
    pq.write_table(table.append_column("when", times), folder / "votes.parquet")
    with pytest.raises(RunError, match="a time that no calendar has"):
        taken(folder, folder / "votes.parquet", format="genai_bench")
