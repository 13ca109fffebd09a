"""Logs of inspect_ai, read back by inspect_ai itself, shown by its viewer, and imported again."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from echo_hf.errors import RunError
from echo_hf.judging.imports import import_judgements
from echo_hf.reasons import NotImported
from echo_hf.report.export import export
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import root
from tests.report.export.runs_for_tests import DRAWN, EDITS, GIVEN, WORDS
from tests.report.run_data_for_tests import WORDS as HOSTILE

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore:::inspect_ai")]


@pytest.fixture(scope="module")
def folder(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    made = shutil.copytree(finished.parent, tmp_path_factory.mktemp("exported") / "copy")
    export(made / finished.name, made / "logs", to="inspect", runs=made / "runs")
    return made


def test_a_log_reads_back(folder: Path) -> None:
    from inspect_ai.log import read_eval_log

    names = sorted(one.name for one in (folder / "logs").iterdir())
    splits = ("image_to_image", "text_to_image")
    files = [f"{one}_{split}.eval" for one in ("ash", "birch-b") for split in splits]
    assert names == [*files, "cedar_text_to_image.eval"]
    log = read_eval_log(str(folder / "logs" / files[2]), resolve_attachments=True)
    (sample,) = log.samples
    asked, answer = sample.messages
    assert asked.content[0].text == "draw lamp"
    images = [
        base64.b64decode(one.image.partition(",")[2]) for one in (asked.content[1], *answer.content)
    ]
    assert images == [GIVEN, DRAWN["birch <b>"]]
    assert {name: one.value for name, one in sample.scores.items()} == {
        "mira overall 0": 8,
        "wren overall 1": 9,
    }
    assert sample.scores["mira overall 0"].explanation == HOSTILE[0]
    found = json.loads((root(folder) / "results.json").read_bytes())["results"]
    rows = [one for one in found if (one["system"], one["split"]) == ("birch <b>", splits[0])]
    rates = {
        f"{one['metric']} ({one['protocol']})": one["value"]
        for one in rows
        if one["value"] is not None
    }
    told = {one.name: next(iter(one.metrics.values())).value for one in log.results.scores}
    assert told == rates
    cedar = read_eval_log(str(folder / "logs" / "cedar_text_to_image.eval"))
    assert cedar.samples[0].messages[1].text == "refused"


def test_the_viewer_bundles_them(folder: Path) -> None:
    """Words of others stay data: the page that it writes has none of them."""
    from inspect_ai.log import bundle_log_dir

    bundle_log_dir(str(folder / "logs"), str(folder / "page"))
    assert len([*(folder / "page" / "logs").glob("*.eval")]) == 5
    assert HOSTILE[0] not in (folder / "page" / "index.html").read_text("utf-8")


def test_a_log_of_others_needs_no_names_of_ours(folder: Path, tmp_path: Path) -> None:
    """Samples by prompt, systems by model, scores by their own names; letters are no ratings."""
    from inspect_ai import log, model, scorer

    asked = "draw boat"
    answer = model.ChatMessageAssistant(content="I would rather not")
    scores = {"model_graded": scorer.Score(value="C"), "wren": scorer.Score(value=0.5)}
    sample = log.EvalSample(id=1, epoch=2, input=asked, target="", messages=[answer], scores=scores)
    spec = log.EvalSpec(
        created="2026-03-02T10:00:00+00:00",
        task="theirs",
        dataset=log.EvalDataset(),
        model="northlight/lumen",
        config=log.EvalConfig(),
    )
    log.write_eval_log(log.EvalLog(eval=spec, samples=[sample]), str(tmp_path / "one.eval"))
    small.run(tmp_path, EDITS, WORDS)
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    done = import_judgements(config, tmp_path / "one.eval", runs=runs, format="inspect")
    assert (done.rows, done.systems) == ({"outputs": 1, "ratings": 2}, ("northlight/lumen",))
    columns = ["sample_id", "judge", "repeat", "rating", "outcome"]
    found = pq.read_table(root(tmp_path) / "ratings.parquet").select(columns).to_pylist()
    assert [[*row.values()] for row in found] == [
        ["boat", "model_graded", 1, None, "no_rating"],
        ["boat", "wren", 1, 0.5, "ok"],
    ]
    (tmp_path / "two.eval").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(RunError, match=r"two\.eval' is no log of inspect_ai"):
        import_judgements(config, tmp_path / "two.eval", runs=runs, format="inspect")


def test_what_was_exported_comes_back(folder: Path, tmp_path: Path) -> None:
    small.run(tmp_path, EDITS, WORDS)
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    done = import_judgements(config, folder / "logs", runs=runs, format="inspect")
    assert (done.rows, done.left_out) == ({"outputs": 9, "ratings": 16}, {})
    same = {
        "outputs": ["sample_id", "system", "sample_digest", "image", "outcome"],
        "ratings": ["sample_id", "system", "judge", "rubric", "repeat", "rating", "explanation"],
    }
    for name, columns in same.items():
        mine, theirs = (
            pq.read_table(root(one) / f"{name}.parquet").select(columns).to_pylist()
            for one in (folder, tmp_path)
        )
        assert theirs == sorted(mine, key=lambda row: [*map(str, row.values())])
    own = folder / "evaluation.yaml"
    again = import_judgements(own, folder / "logs", runs=folder / "runs", format="inspect")
    assert again.left_out == {NotImported.TAKEN: 25}
