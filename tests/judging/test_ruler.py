"""All systems of a run and of the releases that it carries, on one scale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.errors import EchoError, RunError
from echo_hf.judging.judge import judge
from echo_hf.judging.ruler import measure_ruler, plan_carrying, read_ruler
from echo_hf.judging.score import score
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from tests.judging.judges_for_tests import ScriptedJudge, judge_of
from tests.systems.carried_for_tests import carrying, older_release
from tests.systems.runs_for_tests import Acting, known


@pytest.fixture
def run(tmp_path: Path) -> EvaluationRun:
    """A run of one system that carries two samples of each split of an older release."""
    opened = carrying(tmp_path)
    judges = (JudgeConfig.model_validate(judge_of()),)
    config = opened.config.model_copy(update={"judges": judges})
    rated = EvaluationRun(config, opened.folder)
    ScriptedJudge().use()
    with known(Acting()):
        generate(rated)
    judge(rated)
    return rated


def test_a_kept_system_is_compared_with_a_new_one_on_the_carried_samples(
    run: EvaluationRun,
) -> None:
    saved = measure_ruler([str(run.folder.root)])
    assert [release.name for release in saved.releases] == ["old", "measured"]
    for scale in saved.splits.values():
        assert scale.at == "measured"
        assert scale.first == {"mine": "measured", "past": "measured"}
        pair = scale.difference("mine", "past")
        assert (pair.estimate, pair.samples, pair.how) == (0.5, 2, "common")  # all are rated 7


def test_the_scale_is_written_into_the_run_and_reads_back(run: EvaluationRun) -> None:
    saved = measure_ruler([str(run.folder.root)])
    assert read_ruler(run.folder.root) == saved
    assert json.loads((run.folder.root / "ruler.json").read_text())["releases"][0]["name"] == "old"
    assert read_ruler(run.folder.root / "other") is None


def test_score_puts_a_run_that_carries_samples_on_the_scale(run: EvaluationRun) -> None:
    score(run, n_boot=0)
    assert read_ruler(run.folder.root) == measure_ruler([run])


def test_score_measures_named_places_again_and_goes_on_without_them(
    run: EvaluationRun, tmp_path: Path
) -> None:
    elder = older_release(tmp_path / "more", name="elder")
    saved = measure_ruler([run, str(elder)])
    assert {release.name for release in saved.releases} == {"elder", "old", "measured"}
    score(run, n_boot=0)
    assert read_ruler(run.folder.root) == saved
    elder.rename(tmp_path / "elsewhere")
    score(run, n_boot=0)
    alone = read_ruler(run.folder.root)
    assert alone is not None
    assert {release.name for release in alone.releases} == {"old", "measured"}


def test_a_carried_release_that_cannot_be_read_leaves_what_the_run_has_of_it(
    run: EvaluationRun,
) -> None:
    """The draw, the kept outputs and their ratings lie in the run."""
    (carried,) = run.config.carry
    (Path(carried.release) / "manifest.json").write_text("{}")
    saved = measure_ruler([str(run.folder.root)])
    assert len(saved.unread) == 1
    assert saved.splits["text_to_image"].difference("mine", "past").samples == 2


def test_a_place_that_is_named_twice_is_refused(run: EvaluationRun) -> None:
    place = str(run.folder.root)
    with pytest.raises(RunError, match="'measured', as another place that is named"):
        measure_ruler([place, place])


def test_nothing_rated_is_one_line(tmp_path: Path) -> None:
    bare = carrying(tmp_path)
    with known(Acting()):
        generate(bare)
    for measure in (
        lambda: measure_ruler([str(bare.folder.root)]),
        lambda: plan_carrying(str(bare.folder.root), 0.1),
    ):
        with pytest.raises(EchoError, match="judge"):
            measure()


@pytest.mark.parametrize("place", ["", "nowhere", "afile", ".", "/"])
def test_what_is_no_run_and_no_release_is_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").touch()
    with pytest.raises(RunError, match=f"{place!r} is no run and no release"):
        measure_ruler([place])


def test_a_damaged_scale_is_refused(run: EvaluationRun) -> None:
    measure_ruler([run])
    path = run.folder.root / "ruler.json"
    saved = json.loads(path.read_text())
    saved["splits"]["text_to_image"]["strength"]["stranger"] = 1.0
    path.write_text(json.dumps(saved))
    with pytest.raises(RunError, match="is damaged: run `echo-hf ruler` again"):
        read_ruler(run.folder.root)
