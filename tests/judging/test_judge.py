"""Judges rate the outputs of a run: what is asked, kept, paid and refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.evaluation import read_judge, shipped_judges
from echo_hf.curate.provenance import remove_quotes
from echo_hf.engines.base import Completion, Failed, Request, Text, Usage, make_engine, register
from echo_hf.errors import ConfigError, EngineError, JudgeError, MissingExtraError, RunError
from echo_hf.judging.gate import JUDGE_DIGEST_PATTERN
from echo_hf.judging.judge import judge
from echo_hf.judging.rate import resize_as_published
from echo_hf.judging.session import JudgingResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.scores.rating_table import Unrated
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS, Outcome
from tests.judging.judges_for_tests import (
    EDITS,
    GIVEN,
    SAMPLES,
    SYSTEMS,
    WORDS,
    ScriptedJudge,
    config_of,
    images_of,
    judge_of,
    prompt_of,
    rated,
    rows_of,
)
from tests.judging.run_for_tests import (
    called,
    digest_of,
    fits,
    output,
    put,
    rating,
    root,
    stripes,
    write,
)
from tests.markdown_for_tests import cells
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

OTHER = "scripted_judge_two"


def judged(folder: Path, **options: Any) -> JudgingResult:
    return judge(folder / "evaluation.yaml", runs=folder / "runs", **options)


def by_key(folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    names = ("judge", "rubric", "sample_id", "system")
    return {tuple(row[name] for name in names): row for row in rows_of(folder)}


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("text", "I see {}. [[{}]]"),
        ("structured", '{{"explanation": "I see {}.", "answer": "{}"}}'),
    ],
)
def test_yes_and_no_are_kept_as_1_and_0(folder: Path, mode: str, said: str) -> None:
    """A rubric of the config is asked as any other, about the samples that it fits."""
    rubric = {"name": "boats", "answer": "yes_no", "splits": ["text_to_image"]}
    rubric |= {"instructions": "Is a boat to be seen?", "sees_inputs": False}
    config_of(folder, [judge_of(rubrics=["boats"], mode=mode)], rubrics=[rubric])
    engine = ScriptedJudge(
        lambda asked: said.format("it", "yes" if "boat" in prompt_of(asked) else "no")
    ).use()
    judged(folder)
    rows = rows_of(folder)
    assert {(row["sample_id"], row["system"]): row["rating"] for row in rows} == {
        (name, system): float(name == "boat") for name in WORDS for system in SYSTEMS
    }
    assert {row["outcome"] for row in rows} == {"ok"}
    assert {row["rubric"] for row in rows} == {"boats"}
    kept = json.loads(rows[0]["provenance"])["judge"]
    assert kept["scale"] == [0.0, 1.0]
    told = engine.asked[0].messages[0].parts[0]
    assert isinstance(told, Text)
    assert told.text.startswith("Is a boat to be seen?\n\n")
    assert ("[[yes]]" in told.text) == (mode == "text")


def test_an_answer_without_yes_or_no_is_none(folder: Path) -> None:
    rubric = {"name": "boats", "answer": "yes_no", "instructions": "Is a boat to be seen?"}
    config_of(folder, [judge_of(rubrics=["boats"])], rubrics=[rubric])
    ScriptedJudge(lambda asked: "[[yes]] [[no]]" if "fox" in prompt_of(asked) else "[[no]]").use()
    judged(folder)
    outcomes = {row["sample_id"]: (row["outcome"], row["rating"]) for row in rows_of(folder)}
    assert outcomes["fox"] == (Unrated.AMBIGUOUS, None)
    assert outcomes["boat"] == (Outcome.OK, 0.0)


def test_every_output_is_rated_once_and_told_how(folder: Path) -> None:
    """One row an output, with what the judge saw, said, took and was told; it is not asked twice.

    What the outputs of a sample share is a common beginning, and they follow each other.
    """
    engine = ScriptedJudge(lambda asked: rated(len(prompt_of(asked)))).use()
    done, rows = judged(folder), by_key(folder)
    assert set(rows) == {("mira", "overall", name, one) for name in SAMPLES for one in SYSTEMS}
    told = engine.asked[0].messages[0].parts[0].text
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 60}
    for (_, _, name, _), row in rows.items():
        assert row["rating"] == len(f"draw {name}")
        assert row["explanation"] == rated(len(f"draw {name}"))
        assert (row["outcome"], row["repeat"], row["cost_usd"]) == ("ok", 0, 0.25)
        assert row["usage"] == usage
        assert row["sample_digest"] == digest_of(name, EDITS.get(name, ()))
        assert row["prompt_digest"] == hashlib.sha256(told.encode()).hexdigest()
        # Where no posted words may be passed on, a row still says how it came about.
        kept = json.loads(remove_quotes(row["provenance"]) or "")["judge"]
        assert kept["engine"] == {"kind": "scripted_judge", "model": "one"}
        said = tuple(kept[name] for name in ("protocol", "mode", "scale"))
        assert said == ("corrected", "text", [1.0, 10.0])
        known = {"model": None, "stands_for": None, "status": "current"}
        assert kept["answered_by"] == {**known, "developer": "Northlight"}
        assert re.search(JUDGE_DIGEST_PATTERN, row["provenance"])["digest"] == kept["digest"]
    assert done.cost_usd == pytest.approx(0.25 * len(rows))
    assert engine.entered == 0

    in_order = [f"draw {name}" for name in (*sorted(EDITS), *sorted(WORDS)) for _ in SYSTEMS]
    assert [prompt_of(one) for one in engine.asked] == in_order
    (lamp, same), given = engine.asked[:2], hashlib.sha256(GIVEN).hexdigest()
    for asked, system in ((lamp, "amber"), (same, "birch")):
        shown = rows["mira", "overall", "lamp", system]["output_sha256"]
        assert images_of(asked) == [given, shown]
    assert lamp.messages[0] == same.messages[0]
    assert lamp.messages[1].parts[:3] == same.messages[1].parts[:3]
    # Answers about a sample are found by the posts that it was made from.
    assert {one.sources for one in engine.asked[:2]} == {("https://example.org/lamp",)}

    first = (root(folder) / "ratings.parquet").read_bytes()
    assert judged(folder).cost_usd is None
    assert len(engine.asked) == len(SAMPLES) * len(SYSTEMS)
    assert (root(folder) / "ratings.parquet").read_bytes() == first
    store = RunFolder(root(folder)).open_store()
    assert store.forget(["https://example.org/lamp"]) == len(SYSTEMS)
    store.close()


def test_images_are_sent_as_published_and_each_repeat_is_another_question(folder: Path) -> None:
    """Small JPEG files; the provenance of a rating names those that were looked at."""
    config_of(folder, [judge_of(repeats=2)], protocol="published")
    engine = ScriptedJudge().use()
    judged(folder)
    assert Counter(one.repeat for one in engine.asked) == {0: 10, 1: 10}
    row = next(one for one in rows_of(folder) if one["sample_id"] == "lamp")
    store = RunFolder(root(folder)).images
    small = [resize_as_published(one) for one in (GIVEN, store.open(row["output_sha256"]))]
    digests = [hashlib.sha256(one).hexdigest() for one in small]
    assert images_of(engine.asked[0]) == digests
    seen = json.loads(row["provenance"])["judge"]["shown"]
    assert [*seen["inputs"], seen["output"]] == digests


def test_another_way_of_reading_asks_nobody(folder: Path) -> None:
    """The first rating as published, the last as corrected, from the same stored answers."""
    engine = ScriptedJudge(lambda _: "[[2]] at first; in the end [[9]]").use()
    for protocol, expected in (("corrected", 9), ("published", 2)):
        config_of(folder, [judge_of(pictures="model_budget")], protocol=protocol)
        judged(folder)
        assert {row["rating"] for row in rows_of(folder)} == {expected}
    assert len(engine.asked) == len(SAMPLES) * len(SYSTEMS)


FAILURES: dict[str, tuple[Completion | str, float | None, int]] = {
    "ok": (rated(4), 4.0, 1),
    "no_rating": ("A fine picture.", None, 1),
    "beyond_scale": (rated(12), None, 1),
    "refused": (Completion(None, "I will not.", "refusal", Usage(5, 1)), None, 1),
    "cut": (Completion("Let me", None, "length", Usage(5, 9)), None, 2),
    "engine_error": (Completion(None, "no power", "error"), None, 2),
    "unreadable": (Completion("  "), None, 2),
}


@pytest.mark.parametrize("outcome", FAILURES)
def test_what_is_no_rating_has_a_reason_and_no_number(folder: Path, outcome: str) -> None:
    """Null and why, never 0.

    A call that failed is made again by the next run, an answer that cannot be used is asked for
    anew where that is wanted.
    """
    said, expected, calls = FAILURES[outcome]
    engine = ScriptedJudge(lambda _: said).use()
    done = judged(folder, limit=1, keep_going=True)

    rows = rows_of(folder)
    assert {(row["outcome"], row["rating"]) for row in rows} == {(outcome, expected)}
    assert done.answered[0].outcomes == {outcome: 2 * len(SYSTEMS)}
    assert len(engine.asked) == calls * len(rows)
    asked, engine.says = len(engine.asked), lambda _: rated(8)
    judged(folder, limit=1, keep_going=True)
    assert len(engine.asked) - asked == (len(rows) if outcome == "engine_error" else 0)
    judged(folder, limit=1, again=True)
    assert len(engine.asked) - asked == (0 if outcome == "ok" else len(rows))
    ratings = {row["rating"] for row in rows_of(folder)}
    assert ratings == ({4} if outcome == "ok" else {8})


def test_structured_judges_explain_first(folder: Path) -> None:
    config_of(folder, [judge_of(mode="structured", scale=[0, 5])])
    engine = ScriptedJudge(lambda _: '{"explanation": "It is a boat.", "rating": 5}').use()
    judged(folder)
    assert engine.asked[0].answer is not None
    properties = engine.asked[0].answer.model_json_schema()["properties"]
    assert list(properties) == ["explanation", "rating"]
    bounds = properties["rating"]
    assert (bounds["minimum"], bounds["maximum"], bounds["type"]) == (0, 5, "integer")
    said = {(row["rating"], row["explanation"]) for row in rows_of(folder)}
    assert said == {(5, "It is a boat.")}


@pytest.mark.parametrize(("decimals", "said"), [(False, 11), (True, 4.5), (True, 10.5)])
def test_a_structured_rating_stays_on_the_scale(folder: Path, decimals: bool, said: float) -> None:
    config_of(folder, [judge_of(mode="structured", decimals=decimals)])
    engine = ScriptedJudge(lambda _: f'{{"explanation": "So.", "rating": {said}}}').use()
    judged(folder, limit=1, keep_going=True)
    expected = (None, "off_schema") if said > 10 else (said, "ok")
    assert {(row["rating"], row["outcome"]) for row in rows_of(folder)} == {expected}
    assert len(engine.asked) == (2 if said > 10 else 1) * len(rows_of(folder))


def test_only_outputs_that_are_there_and_current_are_rated(folder: Path) -> None:
    """No image, another sample by now, an unknown one: left out, and counted by reason.

    An output whose file is gone has a row without a rating, and is not sent.
    """
    engine = ScriptedJudge().use()
    image = put(folder, stripes((1, 2, 3)))
    rows = [
        output("boat", "amber", image=image),
        output("boat", "birch", outcome="refused"),
        output("boat", "cedar", outcome="failed", image=image),
        output("fox", "amber", image=image, sample_digest="0" * 64),
        output("gone", "amber", image=image),
        output("tree", "amber", image="ab" * 32),
    ]
    write(folder, OUTPUTS, rows)
    done = judged(folder)
    expected = {"without_picture": 2, "other_sample": 1, "not_released": 1}
    assert {str(reason): count for reason, count in done.left_out.items()} == expected
    found = by_key(folder)
    assert {key[2:] for key in found} == {("boat", "amber"), ("tree", "amber")}
    lost = found["mira", "overall", "tree", "amber"]
    assert (lost["outcome"], lost["rating"], lost["usage"]) == ("unshowable", None, None)
    assert [prompt_of(one) for one in engine.asked] == ["draw boat"]


def test_ratings_of_others_stay(folder: Path) -> None:
    imported = [
        rating("boat", "amber", 3, judge="visitor", provenance="made elsewhere"),
        rating("boat", "amber", 2, rubric="text_rendering"),
        rating("boat", "amber", 1, provenance=None),
    ]
    write(folder, RATINGS, imported)
    ScriptedJudge().use()
    judged(folder)
    rows = by_key(folder)
    assert rows["visitor", "overall", "boat", "amber"]["rating"] == 3
    assert rows["mira", "text_rendering", "boat", "amber"]["rating"] == 2
    assert rows["mira", "overall", "boat", "amber"]["rating"] == 7
    assert len(rows) == 12


def test_a_limit_keeps_what_was_rated_in_the_same_way(folder: Path) -> None:
    engine = ScriptedJudge().use()
    judged(folder)
    judged(folder, limit=1)
    assert len(rows_of(folder)) == 10

    (folder / "own.md").write_text("A $5 picture is $fine.\n\n$form\n", "utf-8")
    config_of(folder, [judge_of(prompt_file="own.md")])
    engine.says = lambda _: rated(2)
    judged(folder, limit=1)
    said = {(row["sample_id"], row["rating"]) for row in rows_of(folder)}
    assert said == {("lamp", 2.0), ("boat", 2.0)}
    told = engine.asked[-1].messages[0].parts[0].text
    assert told.startswith("A $5 picture is $fine.\n\nWrite your assessment first.")


def test_judges_work_one_after_the_other_within_one_budget(folder: Path) -> None:
    first, second = ScriptedJudge(model="one"), ScriptedJudge(model="two")
    first.use()
    second.use(OTHER)

    def says(asked: Request) -> str:
        assert (first.entered, second.entered) == (0, 1)
        return rated(3)

    second.says = says
    config_of(folder, [judge_of("ann"), judge_of("ben", OTHER)])
    judged(folder, budget_usd=3.0)
    assert (len(first.asked), len(second.asked)) == (10, 2)
    judged(folder, judges=["ben"])
    assert (len(first.asked), len(second.asked)) == (10, 10)
    found = Counter((row["judge"], row["rating"]) for row in rows_of(folder))
    assert found == {("ann", 7.0): 10, ("ben", 3.0): 10}


def test_a_judge_that_breaks_down_stops_nobody_else(folder: Path) -> None:

    class Breaking(ScriptedJudge):
        def stream(self, requests: Any) -> Any:
            for number, given in super().stream(requests):
                if number == 3:
                    raise EngineError("the machine is gone")
                yield number, given

    Breaking().use()
    ScriptedJudge(model="two").use(OTHER)
    config_of(folder, [judge_of("ann"), judge_of("ben", OTHER)])
    with pytest.raises(JudgeError, match="ann overall: the machine is gone"):
        judged(folder)
    assert Counter(row["judge"] for row in rows_of(folder)) == {"ann": 3, "ben": 10}


TEXT = ["overall", "text_rendering"]


@pytest.mark.parametrize(
    ("flags", "text_samples", "expected"),
    [
        ({}, "applicable", set(WORDS)),
        ({"boat": True, "fox": False, "lamp": True}, "applicable", {"boat", "lamp"}),
        ({"boat": None, "fox": None}, "applicable", set(WORDS)),
        ({"boat": True}, "text_to_image", set(WORDS)),
        ({"boat": True}, "all", set(SAMPLES)),
    ],
)
def test_text_is_rated_where_there_is_some(
    folder: Path, flags: dict[str, bool | None], text_samples: str, expected: set[str]
) -> None:
    if flags:
        rows = [row for name, flag in flags.items() for row in fits(name, text_rendering=flag)]
        write(folder, APPLICABILITY, rows)
    engine = ScriptedJudge().use()
    config_of(folder, [judge_of(rubrics=TEXT, text_samples=text_samples)])
    judged(folder, rubrics=["text_rendering"])
    assert {row["sample_id"] for row in rows_of(folder)} == expected
    assert {row["rubric"] for row in rows_of(folder)} == {"text_rendering"}
    # Its inputs are not shown, as in the paper.
    assert {len(images_of(one)) for one in engine.asked} == {1}


def test_a_plan_asks_nobody_and_a_budget_ends_a_run_which_the_next_goes_on_with(
    folder: Path,
) -> None:
    engine = ScriptedJudge().use()
    done = judged(folder, dry_run=True)
    (planned,) = done.plans
    assert (planned.plan.calls, planned.plan.images) == (10, 14)
    # 10 answers of 400 tokens at 8 dollars a million come on top of the prompts at 2.
    prompts = planned.plan.prompt_tokens * 2 / 1e6
    assert planned.expected.cost_usd == pytest.approx(prompts + 10 * 400 * 8 / 1e6)
    assert (done.path, engine.asked) == (None, [])
    assert not (root(folder) / "ratings.parquet").exists()

    done = judged(folder, budget_usd=1.0)
    assert (len(engine.asked), done.cost_usd, done.spent) == (4, 1.0, True)
    assert done.answered[0].outcomes == {"ok": 4, "not_answered": 6}
    assert len(rows_of(folder)) == 4
    (rest,) = judged(folder, dry_run=True).plans
    assert (rest.plan.calls, rest.plan.stored) == (6, 4)

    done = judged(folder, budget_usd=100.0)
    assert (len(engine.asked), done.spent, len(rows_of(folder))) == (10, False, 10)


def test_what_no_answer_has_a_price_for_is_counted_all_the_same(folder: Path) -> None:
    """At the list's price of 2 and 8 dollars a million: here half a dollar a call."""
    unpriced = Completion(rated(7), usage=Usage(50_000, 50_000))
    engine = ScriptedJudge(lambda _: unpriced).use()
    done = judged(folder, budget_usd=1.5)
    assert (len(engine.asked), done.cost_usd, done.spent) == (3, None, True)


@pytest.mark.parametrize(
    ("judges", "more", "asked", "said"),
    [
        ([judge_of()], {}, {"judges": ["mria"]}, "unknown judge 'mria'; did you mean 'mira'"),
        ([judge_of()], {}, {"rubrics": ["overal"]}, "'overal'; did you mean 'overall'"),
        ([judge_of()], {}, {"rubrics": ["text_rendering"]}, "none of the judges rates by 'text_re"),
        ([judge_of()], {}, {"budget_usd": 1.0}, "'mira' has no known price"),
        ([judge_of(engine={"kind": "rules"})], {}, {}, "engine 'rules' is not a model"),
        ([], {}, {}, r"names no judges.*judges/\w+\.yaml"),
        ([judge_of(scale=[0, 10])], {"protocol": "published"}, {}, "reads whole numbers from 1 to"),
        ([judge_of(decimals=True)], {"protocol": "published"}, {}, "reads whole numbers from 1 to"),
    ],
)
def test_what_cannot_judge_is_said_before_anybody_is_asked(
    folder: Path, judges: list[Any], more: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    engine = ScriptedJudge(usd_per_million_prompt_tokens=None).use()
    config_of(folder, judges, **more)
    with pytest.raises((ConfigError, JudgeError), match=said):
        judged(folder, **asked)
    assert engine.asked == []


def test_a_judge_that_reads_text_alone_is_refused_before_it_is_asked(folder: Path) -> None:
    engine = ScriptedJudge(sees_images=False).use()
    config_of(folder, [judge_of()])
    with pytest.raises(EngineError, match="judge 'mira' sends images, and 'one' reads text alone"):
        judged(folder)
    assert engine.asked == []


def test_a_run_to_be_judged_has_outputs_and_answers_that_are_kept(folder: Path) -> None:
    ScriptedJudge(stored=False).use()
    with pytest.raises(JudgeError, match="is not a model, or keeps no answers"):
        judged(folder)
    (root(folder) / "outputs.parquet").unlink()
    with pytest.raises(RunError, match="run `echo-hf generate` first"):
        judged(folder)


def test_packages_are_wanted_before_anybody_is_asked(folder: Path) -> None:
    first, second = ScriptedJudge().use(), ScriptedJudge(model="two")
    register(OTHER, extra="vllm", packages=("no_such_package",))(lambda **_: second)
    config_of(folder, [judge_of("ann"), judge_of("ben", OTHER)])
    assert len(judged(folder, dry_run=True).plans) == 2
    with pytest.raises(MissingExtraError, match=r"judge 'ben' needs .*echo-hf\[vllm\]"):
        judged(folder)
    assert first.asked == []


def test_two_processes_do_not_judge_at_once(folder: Path) -> None:

    def says(asked: Request) -> str:
        with pytest.raises(RunError, match="another process is judging"):
            judged(folder)
        return rated(7)

    ScriptedJudge(says).use()
    judged(folder, limit=1)
    assert len(rows_of(folder)) == 4


def test_the_command_rates_and_says_so(folder: Path) -> None:
    ScriptedJudge(lambda asked: "Hm." if "fox" in prompt_of(asked) else rated(6)).use()
    dry = called(folder, "judge", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "nothing was asked" in dry.output
    done = called(folder, "judge", "--judges", "mira", "--rubric", "overall")
    assert done.exit_code == 0, done.output
    for words in ("60 %", "2 no_rating: the answer holds no rating", "$2.50", "ratings.parquet"):
        assert words in done.output


GUIDE = (ROOT / "docs" / "how-to" / "judges.md").read_text("utf-8")
ROWS = {row[0]: row[1:] for row in reversed(cells(GUIDE))}  # the first of a name counts


def test_the_config_is_one(tmp_path: Path) -> None:
    example, scalars, shared_out, words = blocks(GUIDE, "yaml")
    (tmp_path / "my_config.yaml").write_text(example.text, "utf-8")
    config = load_evaluation(tmp_path / "my_config.yaml")
    assert [one.name for one in config.judges] == ["qwen2_5_vl_32b", "gpt_4o_2024_11_20", "strict"]
    assert config.applicability is not None
    (tmp_path / "part.yaml").write_text(f"name: x\nbenchmark: lab/echo@v1\n{shared_out.text}")
    shares = {one.name: one.share for one in load_evaluation(tmp_path / "part.yaml").judges}
    assert shares == {"gpt_6_luna": 1.0, "gpt_4o": 0.2}
    (tmp_path / "reward.md").write_text("---\nform: scalar\n---\n{prompt}{inputs}{output}\n")
    (tmp_path / "reward.yaml").write_text(f"name: x\nbenchmark: lab/echo@v1\n{scalars.text}")
    (reward,) = load_evaluation(tmp_path / "reward.yaml").judges
    assert make_engine(reward.engine.kind, **reward.engine.options).signature()["route"]
    (tmp_path / "words.yaml").write_text(f"name: x\nbenchmark: lab/echo@v1\n{words.text}")
    (reader,) = load_evaluation(tmp_path / "words.yaml").judges
    assert "speaks_to_judge" in reader.rubrics


def test_every_judge_that_comes_along_is_there() -> None:
    for file in shipped_judges():
        model, status = ROWS[f"judges/{file.name}"]
        judge = read_judge(file)
        assert str(judge.engine.options["model"]) in model
        words = {"substitute": "stands in for", "as_published": "as published"}
        assert status.startswith(words.get(judge.status, judge.status))


def test_every_outcome_is_there() -> None:
    never = {Failed.NEEDS_MODEL, Failed.NOT_ANSWERED}
    every = {str(one) for one in (Outcome.OK, *Unrated, *Failed) if one not in never}
    assert every <= {name for first in ROWS for name in first.split(", ")}


def test_the_published_protocol_takes_any_scale_of_a_structured_answer(folder: Path) -> None:
    ScriptedJudge().use()
    judges = [judge_of(mode="structured", scale=[0, 10], decimals=True)]
    config_of(folder, judges, protocol="published")
    assert len(judged(folder, dry_run=True).plans) == 1


def test_all_draws_are_rated_and_those_of_the_first_are_asked_as_before(folder: Path) -> None:
    config_of(folder)
    engine = ScriptedJudge().use()
    judged(folder)
    asked, outputs = len(engine.asked), rows_of(folder, "outputs")
    first = [*engine.asked]
    more = []
    for number, row in enumerate(outputs):
        image = put(folder, stripes((3 * number, 7, 250)))
        more.append({**row, "draw": 1, "image": image})
    write(folder, OUTPUTS, [{**row, "draw": None} for row in outputs] + more)
    judged(folder)
    assert len(engine.asked) == asked + len(more)
    assert not {images_of(one)[-1] for one in first} & {
        images_of(one)[-1] for one in engine.asked[asked:]
    }
    keys = {(row["sample_id"], row["system"], row["draw"]) for row in rows_of(folder)}
    assert keys == {(row["sample_id"], row["system"], draw) for row in outputs for draw in (0, 1)}
    assert len(rows_of(folder)) == len(keys)
