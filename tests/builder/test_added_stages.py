"""A stage of another package: its columns and reasons go wherever those of the built-in ones go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Value, load_dataset
from pydantic import BaseModel

import echo_hf
from echo_hf._infra.console import make_console
from echo_hf.builder.build import build, open_run, run_until
from echo_hf.builder.review import read_cases
from echo_hf.builder.shards import build_shard, merge
from echo_hf.builder.takedown import forget
from echo_hf.builder.update import explain_changes, plan_build, update
from echo_hf.cli.progress import TerminalProgress
from echo_hf.config.loading import load_config
from echo_hf.config.sections import STAGES, StageOptions
from echo_hf.engines.base import Text
from echo_hf.errors import ConfigError, EchoError, ReleaseError, StageError
from echo_hf.hub.diff import diff
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.manifest import read_manifest
from echo_hf.hub.redistribution import dehydrate
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import Stage, StageRows, register
from echo_hf.pipeline.stage_order import order_stages
from echo_hf.prompts import Prompt
from echo_hf.reasons import NoticeReason, RejectReason, find_meaning
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.samples.stage import SampleStage
from echo_hf.tables import SAMPLES, Column, Table
from tests.hub.quickstart_release import entry
from tests.recorded_as_model import X, answers, bundled_posts, config_over, rows

FORGOTTEN = "https://x.com/hana_hikes/status/9900316480787844284"
ADDRESS, LOUD_WORD = "jane.roe@example.org", "Turn"
Row = dict[str, Any]


class TooShort(RejectReason):
    """Why a sample is left out."""

    FEW_CHARACTERS = "few_characters", "its prompt has fewer characters than the config asks for"


class Tone(NoticeReason):
    """How a prompt sounds."""

    COMMANDING = "commanding", "its prompt begins with an order"


class WordingOptions(StageOptions):
    """Options of the stage.

    Attributes:
        shortest: Fewest characters of a prompt.
    """

    shortest: int = 12


@dataclass(frozen=True)
class Wording(Stage):
    """Looks at how prompts are worded."""

    name: ClassVar[str] = "wording"
    version: ClassVar[int] = 1
    after: ClassVar[str | None] = "privacy"
    inputs: ClassVar[Table] = SAMPLES
    adds: ClassVar[Mapping[str, Column]] = {
        "opening": Column({"words": Value("string")}, "how it | begins", content="post_text"),
        "characters": Column(Value("int64"), "length of the prompt", content="derived"),
    }
    Options: ClassVar[type[StageOptions]] = WordingOptions

    shortest: int = 0

    def __call__(self, table: pa.Table) -> pa.Table:
        found = StageRows(self.outputs)
        for number, row in enumerate(self.input_rows(table)):
            length = len(row["prompt"])
            if length < self.shortest:
                found.add_issue(number, row["id"], TooShort.FEW_CHARACTERS, str(length))
                continue
            if row["prompt"].startswith(LOUD_WORD):
                found.add_issue(number, row["id"], Tone.COMMANDING)
            words = {"words": f"{row['prompt'][:40]} by @hana_hikes, {ADDRESS}"}
            found.keep(number, row["id"], {"id": row["id"], "opening": words, "characters": length})
        return found.to_table()


class Caption(BaseModel):
    """A caption of a sample."""

    caption: str


@dataclass(frozen=True)
class Captions(SampleStage):
    """Asks a model what a sample shows."""

    name: ClassVar[str] = "captions"
    version: ClassVar[int] = 1
    after: ClassVar[str | None] = "feedback"
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = Caption
    adds: ClassVar[Mapping[str, Column]] = {
        "caption": Column(Value("string"), "what it shows", content="post_text")
    }

    @property
    def prompt(self) -> Prompt:
        return Prompt(self.name, "Describe the sample.")

    def build_questions(self, row: Row) -> Iterator[Any]:
        yield [Text(row["prompt"])], {"prompt": row["prompt"]}, row["post_urls"]

    def finish_row(
        self, row: Row, given: Sequence[BaseModel | Failure], made_by: Any
    ) -> tuple[list[Row], list[Any]]:
        del made_by
        said = given[0].caption if isinstance(given[0], Caption) else None
        return [{"id": row["id"], "caption": said}], []


def forget_stages() -> None:
    for name in STAGES.entries.keys() - STAGES.modules:
        del STAGES.entries[name]


@pytest.fixture(autouse=True)
def plugins() -> Iterator[None]:
    register(Wording)
    register(Captions)
    yield
    forget_stages()


def made_config(folder: Path, sections: Mapping[str, Any], posts: Sequence[Row] = ()) -> Path:
    path = config_over(folder, posts or bundled_posts(X)[:60], "recorded")
    config = yaml.safe_load(path.read_text("utf-8"))
    config["stages"] = {**config.get("stages", {}), **sections}
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path


def samples_of(release: Path) -> dict[str, Row]:
    table = pq.read_table(release / "analysis")
    return {row["id"]: row for row in table.drop(["input_images", "output_images"]).to_pylist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished build with the stage that asks no model."""
    register(Wording)
    folder = tmp_path_factory.mktemp("added")
    build(made_config(folder, {"wording": {"shortest": 12}}), runs=folder / "runs")
    forget_stages()
    return folder


@pytest.fixture
def release(folder: Path) -> Path:
    return folder / "runs" / "quickstart" / "release"


def test_its_columns_are_in_every_config_of_samples(release: Path, folder: Path) -> None:
    for config in ("image_to_image", "text_to_image", "analysis"):
        names = pq.read_schema(next((release / config).glob("*.parquet"))).names
        assert names == [*SAMPLES.columns, "opening", "characters"]
    for row in samples_of(release).values():
        assert row["characters"] == len(row["prompt"]) >= 12
        assert row["opening"]["words"].startswith(row["prompt"][:40].split("@")[0][:10])
    without = rows(folder / "runs" / "quickstart", "wording", "rejects")
    assert {row["_reason"] for row in without} <= {"few_characters"}
    assert all(len(row["prompt"]) < 12 for row in without)


def test_its_texts_are_masked_as_comments_are(release: Path, folder: Path) -> None:
    """Also in what the run keeps; the notices say how often, and never what."""
    run = folder / "runs" / "quickstart"
    for row in (*samples_of(release).values(), *rows(run, "wording"), *rows(run, "splits")):
        assert ADDRESS not in row["opening"]["words"]
        assert "hana_hikes" not in row["opening"]["words"]
    noted = json.loads((run / "stages" / "wording" / "stats.json").read_text())["noted"]
    kept = len(rows(run, "wording"))
    assert (noted["masked_e_mail"], noted["masked_handle"]) == (kept, kept)
    details = {row["_detail"] for row in rows(run, "wording", "notices")}
    assert details <= {"opening", None}


def test_it_loads_without_the_package(release: Path) -> None:
    forget_stages()
    loaded = echo_hf.load_benchmark(release, "analysis")
    assert loaded.features["characters"] == Value("int64")
    plain = load_dataset(str(release), "analysis", split="test")
    assert plain["characters"] == loaded["characters"]
    assert plain.features["opening"] == {"words": Value("string")}
    manifest = read_manifest(release)
    assert {name: entry.stage for name, entry in manifest.columns.items()} == {
        "opening": "wording",
        "characters": "wording",
    }
    card = (release / "README.md").read_text("utf-8")
    line = "| `opening` | {words: string} | how it \\| begins | a fixed rule, in `wording` |"
    assert line in card


def test_a_dehydrated_release_has_its_numbers_and_not_its_texts(
    release: Path, folder: Path, tmp_path: Path
) -> None:
    forget_stages()
    dry, wet = tmp_path / "dry", tmp_path / "wet"
    dehydrate(release, dry)
    full, left = samples_of(release), samples_of(dry)
    assert any(row["dehydrated"] for row in left.values())
    for name, row in left.items():
        assert row["characters"] == full[name]["characters"]
        assert row["opening"] == (None if row["dehydrated"] else full[name]["opening"])
    result = hydrate(dry, wet, [entry(folder / "posts.jsonl")])
    lacking = {
        name: part.detail
        for sample in result.samples
        for name, part in sample.parts.items()
        if part.match == "missing"
    }
    assert "build the posts again" in lacking.pop("column.opening")
    assert lacking.keys() <= {"prompt"}  # those that a model wrote
    back = samples_of(wet)
    assert all(row["prompt"] in (None, full[name]["prompt"]) for name, row in back.items())
    assert any(row["prompt"] for name, row in back.items() if left[name]["dehydrated"])
    assert all(back[name]["dehydrated"] for name, row in left.items() if row["dehydrated"])
    change = diff(release, dry)
    assert (change.added, change.removed, change.changed) == ((), (), ())


@pytest.mark.parametrize(
    ("name", "entry_change", "message"),
    [
        ("prompt", {}, "expected no column of samples among them, such as 'prompt'"),
        ("tone", {"type": {"_type": "Image"}}, "expected a plain type of a column"),
        ("tone", {"type": [[[]]]}, "expected a plain type of a column"),
        ("tone", {"type": {"dtype": "binary", "_type": "Value"}}, "expected a plain type"),
        ("tone", {"content": "secret"}, "columns.tone.content is 'secret'"),
        ("../x", {}, "columns"),
    ],
)
def test_a_manifest_of_others_cannot_say_what_a_column_is_not(
    release: Path, tmp_path: Path, name: str, entry_change: Row, message: str
) -> None:
    shutil.copytree(release, tmp_path / "release")
    file = tmp_path / "release" / "manifest.json"
    manifest = json.loads(file.read_text("utf-8"))
    manifest["columns"][name] = {**manifest["columns"]["characters"], **entry_change}
    file.write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(ReleaseError, match=r"manifest\.json") as error:
        dehydrate(tmp_path / "release", tmp_path / "dry")
    assert message in str(error.value)


def test_a_forgotten_post_takes_its_columns_along(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    config, run = tmp_path / "config.yaml", tmp_path / "runs" / "quickstart"
    before = samples_of(run / "release")
    theirs = {
        name: row["opening"]["words"][:30]
        for name, row in before.items()
        if FORGOTTEN.rpartition("/")[2] in " ".join(row["post_urls"])
    }
    assert theirs
    forget([FORGOTTEN], config, runs=tmp_path / "runs")
    tables = [pq.read_table(file).to_pylist() for file in run.rglob("*.parquet")]
    assert not any(words in str(table) for table in tables for words in theirs.values())
    after = update(config, runs=tmp_path / "runs").release
    remaining = samples_of(after.path)
    assert set(remaining) == set(before) - set(theirs)
    assert all(row["characters"] for row in remaining.values())


def test_the_build_knows_it_by_name(folder: Path, tmp_path: Path) -> None:
    """`--until`, `why`, the funnel, the review and the dry run go through its stages."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    config, runs = tmp_path / "config.yaml", tmp_path / "runs"
    watch = TerminalProgress(make_console(), details=True)
    last = run_until(config, "wording", runs=runs, watch=watch)[-1]
    assert last.stats.stage == "wording"
    assert "characters" in last.dataset.column_names
    with open_run(config, runs, writes=False) as run:
        assert run.stages[-3:] == ("privacy", "wording", "splits")
        assert explain_changes(run) == []
        case = next(iter(read_cases(run).values()))
        assert case.row["characters"] == len(case.row["prompt"])
    made_config(tmp_path, {"wording": {"shortest": 30}})
    with open_run(config, runs, writes=False) as run:
        (change,) = explain_changes(run)
    assert change.sentence == "wording: parameters.shortest changed: 2 stages, from 'wording' on"
    assert plan_build(config, runs=runs)[1] == ()
    funnel = read_manifest(runs / "quickstart" / "release").funnel
    assert [step.stage for step in funnel][-2:] == ["wording", "splits"]
    assert find_meaning("few_characters") == TooShort.FEW_CHARACTERS.meaning


def test_shards_with_a_stage_that_asks_a_model_merge_into_what_a_build_gives(
    tmp_path: Path,
) -> None:
    """Its answers come from the recorded ones, its texts pass the later stages, and are masked."""
    path = made_config(tmp_path, {"captions": {}, "wording": {}})
    run_until(path, "feedback", runs=tmp_path / "first")
    samples = rows(tmp_path / "first" / "quickstart", "feedback")
    told = [
        {"stage": "captions", "row": row["id"], "answer": {"caption": f"write to {ADDRESS}"}}
        for row in samples[1:]
    ]
    lines = [*answers().splitlines(), *map(json.dumps, told)]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines), "utf-8")
    whole = build(path, runs=tmp_path / "whole")
    captions = {row["caption"] for row in samples_of(whole.path).values()}
    assert captions <= {"write to [e-mail]", None}
    assert "write to [e-mail]" in captions
    stats = json.loads(
        (tmp_path / "whole/quickstart/stages/captions/stats.json").read_text("utf-8")
    )
    assert stats["quarantined"] == {"needs_model": 1}
    parts = [build_shard(path, f"{part}/2", runs=tmp_path / "parts")[0].root for part in (0, 1)]
    merged = merge(parts)
    assert samples_of(merged.path) == samples_of(whole.path)


def bad_stage(**facts: Any) -> type[Stage]:
    return type("Bad", (Wording,), {"name": "bad", "__module__": __name__, **facts})


WRONG_STAGES = {
    "column": ({"adds": {"prompt": Column(Value("string"), "", content="derived")}}, "'prompt'"),
    "hidden": (
        {"adds": {"context": Column(Value("string"), "", content="derived")}},
        "adds column 'context', which 'safety' has",
    ),
    "content": (
        {"adds": {"tone": Column(Value("string"), "")}},
        "no content, expected 'post_text'",
    ),
    "image": (
        {"adds": {"tone": Column(Value("binary"), "", content="derived")}},
        "expected plain values",
    ),
    "after": ({"after": "privcy"}, "unknown stage 'privcy'; did you mean 'privacy'?"),
    "early": ({"after": "extract"}, "'roles' makes other samples: expected after = 'roles'"),
}


@pytest.mark.parametrize("case", WRONG_STAGES)
def test_a_stage_that_does_not_fit_is_refused_in_one_line(case: str) -> None:
    facts, message = WRONG_STAGES[case]
    register(bad_stage(**facts))
    with pytest.raises(StageError) as error:
        order_stages(["bad"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_stages_may_not_add_one_column() -> None:
    register(bad_stage())
    with pytest.raises(StageError, match="turn one of two plug-ins off"):
        order_stages(["bad", "wording"])


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"wordign": {}}, "unknown key in stages 'wordign'"),
        ({"wording": {"shortets": 3}}, "did you mean 'shortest'"),
        ({"wording": {"shortest": "few"}}, "stages.wording.shortest is 'few'"),
        ({"captions": {"engine": "nobody"}}, "stages.captions.engine: unknown engine 'nobody'"),
    ],
)
def test_its_options_are_checked_with_the_config(
    tmp_path: Path, sections: Row, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(made_config(tmp_path, sections))
    assert message in str(error.value)


def test_a_run_with_it_says_what_is_missing_without_it(folder: Path, tmp_path: Path) -> None:
    forget_stages()
    with pytest.raises(EchoError, match="unknown key in stages 'wording'"):
        load_config(folder / "config.yaml")
