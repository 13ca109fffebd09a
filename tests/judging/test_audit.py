"""Audits of judges: what each is shown, who passes, and what scores say of it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.engines.base import Request
from echo_hf.errors import ConfigError, RunError
from echo_hf.judging.audit import RULES, AuditResult, Honeypot, audit, build_audit
from echo_hf.judging.board import FAILED_AUDIT
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.judging.session import JudgeRows
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging.judges_for_tests import (
    SYSTEMS,
    ScriptedJudge,
    config_of,
    drawn,
    images_of,
    judge_of,
    prompt_of,
    rated,
    rows_of,
)
from tests.judging.run_for_tests import called, output, page_of, root, stripes, write
from tests.markdown_for_tests import cells
from tests.stages_for_tests import ROOT

EDITS = {f"edit{at}": [stripes((at, 60, 60), (9, 180, at))] for at in range(6)}
WORDS = tuple(f"word{at}" for at in range(6))
NAMES = (*EDITS, *WORDS)
SINK = io.BytesIO()
Image.new("RGB", (1024, 1024), (128, 128, 128)).save(SINK, "PNG")
BLANK = hashlib.sha256(SINK.getvalue()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    drawn(tmp_path, EDITS, WORDS)
    config_of(tmp_path)
    return tmp_path


def audited(folder: Path, **options: Any) -> AuditResult:
    """An audit by honeypots alone, unless it names hostile pictures as well."""
    options = {"pictures": "none", **options}
    return audit(folder / "evaluation.yaml", runs=folder / "runs", **options)


def made(folder: Path) -> dict[str, str]:
    return {row["image"]: f"draw {row['sample_id']}" for row in rows_of(folder, "outputs")}


def judge_who(folder: Path, blank: int = 1, unchanged: int = 2, shuffled: int = 2) -> ScriptedJudge:
    """A judge who gives 8 to an output for the task, 7 when asked again, and these to the rest."""
    theirs = made(folder)

    def says(asked: Request) -> str:
        *_, shown = images_of(asked)
        if shown == BLANK:
            return rated(blank)
        if shown not in theirs:
            return rated(unchanged)
        return rated(8 - asked.repeat if theirs[shown] == prompt_of(asked) else shuffled)

    return ScriptedJudge(says)


def test_a_judge_who_sees_passes(folder: Path) -> None:
    """By hand: a mean of 8, nothing of the rest above 8 less a fifth of nine, and one point off."""
    judge_who(folder).use()
    done = audited(folder)
    found = json.loads((root(folder) / "audit.json").read_text())["judges"]["mira"]

    assert done.judges == {"mira": {**found, "drift": None}}
    assert (found["failed"], found["mean_of_real_outputs"], found["rubric"]) == ([], 8, "overall")
    counts = {name: (one["shown"], one["rated"]) for name, one in found["checks"].items()}
    everything = {"blank": 12, "unchanged": 6, "shuffled": 12, "renamed": 12}
    assert counts == {name: (count, count) for name, count in everything.items()}
    assert all(one["passed"] and one["share"] == 1 for one in found["checks"].values())
    assert [found["checks"][name]["mean"] for name in ("blank", "shuffled", "renamed")] == [1, 2, 7]
    expected = {"samples": 12, "equal": 0, "deviation": 0.5**0.5, "largest": 1}
    assert found["noise"] == pytest.approx(expected)
    assert found["scale_use"] is None
    assert not (root(folder) / "ratings.parquet").exists()


def test_each_honeypot_is_what_it_says(folder: Path) -> None:
    engine = judge_who(folder).use()
    audited(folder)
    theirs = made(folder)
    for name in NAMES:
        asked = [one for one in engine.asked if prompt_of(one) == f"draw {name}"]
        shown = [(images_of(one)[-1], one.repeat) for one in asked]
        (real,) = {digest for digest, _ in shown if theirs.get(digest) == f"draw {name}"}
        others = {digest for digest, _ in shown} - {real, BLANK}
        inputs = {hashlib.sha256(one).hexdigest() for one in EDITS.get(name, ())}
        (swapped,) = others - inputs
        assert others - {swapped} == inputs
        assert theirs[swapped].startswith(f"draw {name[:4]}")
        assert sorted(shown) == sorted(
            [(real, 0), (real, 1), (BLANK, 0), (swapped, 0), *((one, 0) for one in inputs)]
        )
        assert len({one.messages[0] for one in asked}) == 1


def test_real_outputs_that_were_rated_before_cost_nothing(folder: Path) -> None:
    engine = judge_who(folder).use()
    judge(folder / "evaluation.yaml", runs=folder / "runs")
    before = len(engine.asked)
    planned = audited(folder, dry_run=True)
    assert planned.judges == {}
    assert [one.plan.calls for one in planned.judging.plans] == [12 + 12 + 12 + 6]
    assert len(engine.asked) == before
    audited(folder)
    assert len(engine.asked) == before + 42
    audited(folder)
    assert len(engine.asked) == before + 42


def test_few_samples_are_shown_from_each_split_in_turn(folder: Path) -> None:
    judge_who(folder).use()
    found = audited(folder, samples=10).judges["mira"]["checks"]
    shown = {name: one["shown"] for name, one in found.items()}
    assert shown == {"blank": 10, "shuffled": 10, "renamed": 10, "unchanged": 5}


def test_a_budget_ends_it_and_audits_of_others_stay(folder: Path) -> None:
    """A judge that was never reached keeps no audit, and the first one's is not lost."""
    config_of(folder, [judge_of("mira"), judge_of("otto")])
    engine = judge_who(folder).use()
    audited(folder, judges=["mira"])
    calls = len(engine.asked)
    engine.model = "two"  # so that nothing is stored
    done = audited(folder, judges=["otto"], budget_usd=0)
    assert done.judging.spent
    assert len(engine.asked) == calls
    written = json.loads((root(folder) / "audit.json").read_text())["judges"]
    assert list(written) == ["mira"]


def test_scores_flag_a_judge_that_failed(folder: Path) -> None:
    config_of(folder, [judge_of("mira"), judge_of("otto")])
    judge_who(folder, blank=8).use()
    judge(folder / "evaluation.yaml", runs=folder / "runs")
    for audits, flags in (({}, None), ({"mira"}, {"mira": ["blank"]})):
        for name in audits:
            audited(folder, judges=[name])
        scores = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
        rows = [row for row in scores.results if row.metric == "win_rate"]
        assert [row.definition.get(FAILED_AUDIT) for row in rows] == [flags] * 2 * 2 * len(SYSTEMS)
    assert "judged by mira (failed its audit: blank), otto" in page_of(folder)


def test_scale_use_is_that_of_the_run_s_ratings(folder: Path) -> None:
    """By hand: 24 ratings, one system's at the top, the other's below: one bit, and no tie."""
    amber = {row["image"] for row in rows_of(folder, "outputs") if row["system"] == "amber"}
    ScriptedJudge(lambda asked: rated(10 if images_of(asked)[-1] in amber else 4)).use()
    judge(folder / "evaluation.yaml", runs=folder / "runs")
    found = audited(folder).judges["mira"]["scale_use"]
    assert (found.pop("ratings"), found.pop("levels"), found.pop("pairs")) == (24, 2, 12)
    assert found == {"at_ceiling": 0.5, "entropy": 1.0, "ties": 0.0}


def test_the_verb_shows_what_was_found(folder: Path) -> None:
    judge_who(folder, blank=8).use()
    planned = called(folder, "audit", "--pictures", "none", "--dry-run")
    assert planned.exit_code == 0
    assert "nothing was asked" in planned.output
    done = called(folder, "audit", "--pictures", "none")
    assert done.exit_code == 0
    for words in ("mira, by overall", "blank", "failed", "asked twice", "audit.json"):
        assert words in done.output.replace("\n", "")


def test_what_cannot_be_audited_is_said_in_a_line(folder: Path) -> None:
    engine = judge_who(folder).use()
    with pytest.raises(ConfigError, match="otto"):
        audited(folder, judges=["otto"])
    with pytest.raises(ConfigError, match="samples is 0"):
        audited(folder, samples=0)
    (root(folder) / "audit.json").write_text("[]")
    with pytest.raises(RunError, match="is not an audit of judges"):
        audited(folder)
    (root(folder) / "audit.json").unlink()
    write(folder, OUTPUTS, [output("word1", "amber", outcome="refused")])
    with pytest.raises(RunError, match="no outputs to be audited on"):
        audited(folder)
    assert engine.asked == []


SCALES = st.sampled_from(
    [{"scale": (1, 10)}, {"scale": (0, 5), "decimals": True}, {"scale": (-2, 2)}]
)


def found_of(scale: Mapping[str, Any], **ratings: Sequence[float | None]) -> dict[str, Any]:
    rows = [
        {"sample_id": f"s{at}", "system": name, "rating": rating}
        for name, every in ratings.items()
        for at, rating in enumerate(every)
    ]
    table = pa.Table.from_pylist(rows, RATINGS.schema)
    answered = JudgeRows("mira", "overall", table, "", {}, FillStats(), None)
    return build_audit(
        JudgeConfig(**judge_of(**scale)), scale.get("scale", (1, 10)), answered, None
    )


@given(SCALES, st.data())
def test_a_share_is_counted_against_the_mean_of_real_outputs(
    scale: dict[str, Any], data: st.DataObject
) -> None:
    lowest, highest = scale["scale"]
    number = st.none() | st.integers(lowest, highest).map(float)
    every = st.lists(number, min_size=8, max_size=8)
    shown = {name: data.draw(every) for name in ("real", "blank", "unchanged", "shuffled")}
    checks = found_of(scale, **shown)["checks"]
    real = [one for one in shown["real"] if one is not None]
    for name in ("blank", "unchanged", "shuffled"):
        check, rule = checks[name], RULES[Honeypot(name)]
        rated = [one for one in shown[name] if one is not None]
        assert (check["shown"], check["rated"]) == (8, len(rated))
        if min(len(real), len(rated)) < 5:
            assert (check["passed"], check["reason"]) == (None, "few_ratings")
            continue
        limit = statistics.mean(real) - rule["margin"] * (highest - lowest)
        below = sum(one <= limit + 1e-6 for one in rated) / len(rated)
        assert (check["mean"], check["share"]) == pytest.approx((statistics.mean(rated), below))
        if limit < lowest - 1e-6:
            assert (check["passed"], check["reason"]) == (None, "no_room")
        else:
            assert (check["passed"], check["reason"]) == (below >= rule["share"], None)


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=12))
def test_noise_is_the_pooled_deviation_within_images(pairs: list[tuple[int, int]]) -> None:
    first, again = zip(*pairs, strict=True)
    noise = found_of({}, real=first, renamed=again)["noise"]
    pooled = statistics.mean(statistics.variance(one) for one in pairs) ** 0.5
    equal = sum(one == other for one, other in pairs) / len(pairs)
    largest = max(abs(one - other) for one, other in pairs)
    assert noise == pytest.approx(
        {"samples": len(pairs), "equal": equal, "deviation": pooled, "largest": largest}
    )


@pytest.mark.parametrize("honeypot", RULES)
def test_the_guide_states_the_rules(honeypot: Honeypot) -> None:
    guide = (ROOT / "docs" / "how-to" / "judges.md").read_text("utf-8")
    rows = {row[0]: row for row in cells(guide)}
    stated = [int(one) for one in re.findall(r"(\d+) %", rows[honeypot.value][2])]
    rule = RULES[honeypot]
    assert stated == [round(100 * rule["share"]), round(100 * rule["margin"])]


def judge_now(folder: Path, real: int = 8, blank: int = 1, model: str = "one") -> ScriptedJudge:
    """One who gives these to outputs of whatever task and to a blank, whenever it is asked."""
    return ScriptedJudge(
        lambda asked: rated(blank if images_of(asked)[-1] == BLANK else real), model=model
    )


def drift_in(folder: Path) -> Any:
    score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    return json.loads((root(folder) / "results.json").read_text("utf-8"))


def test_the_same_images_again_tell_how_a_judge_drifts(folder: Path) -> None:
    """By hand: 2 points less but for blanks, one image of 5 with an input and of 4 without."""
    judge_now(folder).use()
    audited(folder)
    judge(folder / "evaluation.yaml", runs=folder / "runs")
    assert drift_in(folder)["judge_drift"] == {}
    engine = judge_now(folder, real=6).use()
    assert audited(folder).judges["mira"]["drift"] is None  # read from the store
    assert engine.asked == []
    done = audited(folder, again=True)
    drift = done.judges["mira"]["drift"]
    assert len(engine.asked) == 12 * 4 + 6
    assert drift["difference"] == pytest.approx((6 * -2 * 4 / 5 + 6 * -2 * 3 / 4) / 12)
    assert drift["interval"][0] < drift["difference"] < drift["interval"][1] < 0
    assert (drift["images"], drift["changed"]) == (54, 42)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", drift["newest"])

    audited(folder)  # goes on with what was shown last
    assert len(engine.asked) == 54
    found = drift_in(folder)
    assert found["judge_drift"]["mira"] == {**drift, "interval": [*drift["interval"]]}
    (line,) = (one for one in found["trust"] if one["measure"] == "judge_drift")
    assert line["said"].startswith("mira -1.550 points (")
    assert "another rating for 42 of 54 images" in line["said"]


def test_another_model_of_the_name_is_no_drift(folder: Path) -> None:
    """It is compared with itself alone, whatever was asked before."""
    judge_now(folder).use()
    audited(folder)
    judge_now(folder, real=3, model="two").use()
    assert audited(folder, again=True).judges["mira"]["drift"] is None
    judge_now(folder, real=4, model="two").use()
    drift = audited(folder, again=True).judges["mira"]["drift"]
    assert (drift["changed"], drift["images"]) == (42, 54)
    assert drift["difference"] > 0


def test_an_audit_without_ratings_of_its_own_counts_as_the_first(folder: Path) -> None:
    """As earlier versions wrote them: what is shown again is asked anew, and compared from then."""
    (root(folder) / "audit.json").write_text('{"judges": {"mira": {"failed": []}}}')
    judge_now(folder).use()
    assert audited(folder, again=True).judges["mira"]["drift"] is None
    assert audited(folder, again=True).judges["mira"]["drift"]["changed"] == 0


def test_a_second_rating_without_a_first_is_no_pair() -> None:
    check = found_of({}, real=[None] * 6, renamed=[5.0] * 6)["checks"]["renamed"]
    assert (check["shown"], check["rated"], check["mean"], check["share"]) == (6, 0, None, None)
    assert check["reason"] == "few_ratings"


RUBRIC_WORDS = "---\nname: {name}\n{fields}---\nLook at the picture, and answer.\n"


def test_a_judge_is_audited_by_a_rating_that_is_better_higher(folder: Path) -> None:
    """One whose only rubrics are yes or no, or better lower, is named, and so is one of choices."""
    for name, fields in {"flaws": "better: lower\n", "beauty": ""}.items():
        text = RUBRIC_WORDS.format(name=name, fields=fields)
        (folder / f"{name}.md").write_text(text, "utf-8")
    judges = [
        judge_of(rubrics=["speaks_to_judge", "flaws", "beauty"]),
        judge_of("otto", rubrics=["speaks_to_judge", "flaws"]),
        judge_of("pia", form="choice"),
    ]
    config_of(folder, judges, rubrics=["flaws.md", "beauty.md"])
    kept = {"failed": ["raised_by_pictures"], "rounds": []}
    earlier = {"judges": {"otto": kept, "zoe": kept}}  # as one flagged otto by its yes or no
    (root(folder) / "audit.json").write_text(json.dumps(earlier))
    ScriptedJudge(lambda _: rated(8)).use()
    done = audited(folder)
    expected = {"otto": "no_rubric", "pia": "choices_alone"}
    assert done.not_audited == expected
    assert {name: judged["rubric"] for name, judged in done.judges.items()} == {"mira": "beauty"}
    written = json.loads((root(folder) / "audit.json").read_text())
    assert written["not_audited"] == expected
    assert {*written["judges"]} == {"mira", "zoe"}
    screen = called(folder, "audit", "--pictures", "none").output
    assert "otto is not audited: none of the judge's rubrics" in screen
    assert "pia is not audited: the judge compares two outputs" in screen
    with pytest.raises(ConfigError, match="'otto' rates by speaks_to_judge, flaws: expected"):
        audited(folder, judges=["otto"])
