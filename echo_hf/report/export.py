"""`echo-hf export`: a run's figures, judgements and outputs, as other projects read them.

The format of Every Eval Ever has a module of its own.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from echo_hf._infra.atomic import replaced_whole
from echo_hf._infra.registry import Needs, Registry
from echo_hf._infra.text import escaped
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.loading import Config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, ImageError, ReleaseError, RunError
from echo_hf.hub.card import eval_file
from echo_hf.hub.manifest import BENCHMARK, SPLIT, Manifest, toolkit_version
from echo_hf.hub.redistribution import restricted_posts
from echo_hf.images.loader import format_of
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import Review
from echo_hf.report.report import eval_entries
from echo_hf.report.run_data import Output, ReportSample, RunData, manifest_of, read_run_data
from echo_hf.systems.benchmark import benchmark_of, load_evaluation

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample, EvalScore


@dataclass(frozen=True)
class ExportedRun:
    """A run without words and images that must stay here.

    Attributes:
        data: Its tables and figures.
        config: What it was run with.
        reference: The benchmark that its config names.
        manifest: That of the benchmark's release; null where there is none.
        organization: Who ran it, if somebody says so.
    """

    data: RunData
    config: Evaluated
    reference: str
    manifest: Manifest | None
    organization: str | None

    @property
    def name(self) -> str:
        """The benchmark's."""
        return self.data.results.benchmark.name or self.config.name

    @property
    def on_hub(self) -> tuple[str, str] | None:
        """Repository and revision of the benchmark."""
        repo, at, revision = (self.data.results.benchmark.on_hub or "").rpartition("@")
        return (repo, revision) if at else None


@dataclass(frozen=True)
class Exported:
    format: str
    path: Path
    files: tuple[str, ...]
    silenced: int


# Takes a run and an empty folder, and fills that.
Writer = Callable[[ExportedRun, Path], None]
OURS = {
    "csv": "csv_tables",
    "every-eval-ever": "every_eval_ever",
    "hub-eval": "export",
    "inspect": "export",
    "lmms-eval": "export",
}
FORMATS: Registry[Writer, Needs] = Registry(
    "format", "echo_hf.exports", {name: f"{__package__}.{one}" for name, one in OURS.items()}
)


def export(
    config: Evaluated | Path | str,
    folder: Path,
    *,
    to: str,
    runs: Path | str | None = None,
    organization: str | None = None,
) -> Exported:
    """Writes a run into a new folder, whole or not at all."""
    if to == "croissant":
        raise ConfigError(
            "nothing to write: of a published dataset the Hub makes Croissant itself, at "
            "https://huggingface.co/api/datasets/ORGANIZATION/NAME/croissant"
        )
    write = FORMATS.find(to, "--to")
    (FORMATS.facts(to) or Needs()).check_installed(f"format {to!r}")
    config = load_evaluation(config)
    data = read_run_data(config, runs)
    if data.stale:
        raise RunError(
            f"the figures of {config.name!r} are of other samples than its benchmark has now: run "
            "`echo-hf score` with this config first"
        )
    reference = benchmark_of(config, run_folder(config, runs)).reference
    try:
        manifest = manifest_of(reference)
    except ReleaseError:
        manifest = None
    rights = manifest.statements.rights if manifest else {}
    rights = config.rights if isinstance(config, Config) else rights
    # Also what a person has to look at first, as `publish` does.
    waits = {"nsfw", *map(str, Review)}
    held = {
        one.id: one
        for one in data.samples
        if restricted_posts(one.urls, rights) or waits.intersection(one.flags)
    }
    run = ExportedRun(passed_on(data, held), config, reference, manifest, organization)
    with replaced_whole(folder.resolve(), ()) as partial:
        write(run, partial)
        files = sorted(
            one.relative_to(partial).as_posix() for one in partial.rglob("*") if one.is_file()
        )
    return Exported(to, folder, tuple(files), len(held))


def passed_on(data: RunData, held: Mapping[str, ReportSample]) -> RunData:
    """The run without what a release leaves out of samples that may not be passed on."""
    posted = {digest for one in held.values() for digest in (*one.posted, *one.inputs)}
    samples, outputs, ratings = list(data.samples), dict(data.outputs), dict(data.ratings)
    for at, one in enumerate(samples):
        if one.id in held:
            samples[at] = ReportSample(one.id, one.split, prompt="")
    for key, output in outputs.items():
        if sample := held.get(key[0]):
            # An edit of a posted image shows it, too.
            is_shown = not sample.inputs and output.image not in posted
            outputs[key] = Output(output.image if is_shown else None, output.outcome)
    for name in held.keys() & ratings.keys():
        ratings[name] = tuple(replace(one, explanation=None) for one in ratings[name])
    return replace(data, samples=tuple(samples), outputs=outputs, ratings=ratings)


def slug(name: str | None) -> str:
    """A name as a part of a path."""
    plain = re.sub(r"[^\w-]+", "-", (name or "").lower(), flags=re.ASCII)
    return plain.strip("-")[:60] or "unknown"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A name of a file for each name of something, no two of them alike."""
    found = dict[str, str]()
    for name in names:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
        stem = slug(name)
        found[name] = f"{stem}-{digest[:8]}" if stem in found.values() else stem
    return found


REQUEST = """# Add echo-hf to the frameworks of the Hub

Until both are granted, the Hub keeps the files and shows nothing.

1. A pull request to https://github.com/huggingface/huggingface.js adds to
   `packages/tasks/src/eval.ts`:

```ts
	"echo-hf": {{
		name: "echo-hf",
		description: "Benchmarks from public posts about image models, scored by judges that see.",
		url: "https://github.com/echo-hf/echo-hf",
	}},
```

2. A comment on https://huggingface.co/spaces/OpenEvals/README/discussions/2 asks to list
   {repo} as a benchmark: its `eval.yaml` lies in its root, and in this folder.

Then a pull request to each model's repository adds its file:

{files}
"""
TASK = """dataset_path: {place}
dataset_name: {split}
{revision}task: {task}
test_split: {part}
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: prompt
doc_to_target: id
process_results: !function utils.process_results
metric_list:
  - metric: drawn
    aggregation: mean
    higher_is_better: true
{metrics}metadata:
  - version: 1.0
    benchmark: {name}
"""
COLOR_SHIFT = """  - metric: color_shift
    aggregation: !function utils.color_shift
    higher_is_better: false
"""


@FORMATS.register("hub-eval")
def hub_eval(run: ExportedRun, folder: Path) -> None:
    """`SYSTEM/.eval_results/echo.yaml`, `eval.yaml` and the text of the requests."""
    if run.on_hub is None:
        raise ConfigError(
            f"the benchmark of {run.config.name!r} is a folder, and results of the Hub name one "
            "that is published: score with a config that has benchmark: ORGANIZATION/NAME@TAG"
        )
    repo, _ = run.on_hub
    found = eval_entries(run.data)
    text = eval_file(run.manifest) if run.manifest else None
    if not found or text is None:
        raise ConfigError(
            f"no system of {run.config.name!r} has a win rate on {repo}: have judges rate outputs, "
            "and run `echo-hf score`"
        )
    (folder / BENCHMARK).write_text(text, "utf-8")
    lines, models = [], run.data.results.system_models
    for system, name in file_names(found).items():
        place = folder / name / ".eval_results" / "echo.yaml"
        place.parent.mkdir(parents=True)
        entries = yaml.safe_dump(found[system], sort_keys=False, allow_unicode=True, width=10_000)
        place.write_text(entries, "utf-8")
        model = (system in models and models[system].model) or system
        lines.append(f"- {escaped(model)}: `{place.relative_to(folder)}`")
    request = REQUEST.format(repo=escaped(repo), files="\n".join(lines))
    (folder / "pull_request.md").write_text(request, "utf-8")


@FORMATS.register("lmms-eval")
def lmms_eval(run: ExportedRun, folder: Path) -> None:
    """`echo_NAME_SPLIT.yaml` and `utils.py`: `--include_path FOLDER` finds them."""
    place, revision = run.on_hub or (str(Path(run.reference).resolve()), None)
    stem = slug(run.name).replace("-", "_")
    for split in run.data.splits:
        text = TASK.format(
            place=json.dumps(place),
            split=split,
            revision=f"dataset_kwargs: {{revision: {json.dumps(revision)}}}\n" if revision else "",
            task=f"echo_{stem}_{split}",
            part=SPLIT,
            metrics=COLOR_SHIFT if split == BENCHMARKS[0] else "",
            name=json.dumps(run.name),
        )
        (folder / f"echo_{stem}_{split}.yaml").write_text(text, "utf-8")
    shared = Path(__file__).with_name("lmms_eval_task.py").read_text("utf-8")
    (folder / "utils.py").write_text(shared, "utf-8")


@FORMATS.register("inspect", Needs(extra="inspect", packages=("inspect_ai",)))
def inspect_log(run: ExportedRun, folder: Path) -> None:
    """`SYSTEM_SPLIT.eval`: samples with their images, ratings as scores, figures as metrics."""
    from inspect_ai import log

    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    results = run.data.results
    for system, name in file_names(run.data.systems).items():
        for split in run.data.splits:
            samples = list(_samples(run, system, split))
            if not samples:
                continue
            count, model = len(samples), results.system_models.get(system)
            spec = log.EvalSpec(
                created=created,
                run_id=run.config.name,
                task=f"echo/{split}",
                task_id=f"{name}_{split}",
                dataset=log.EvalDataset(
                    name=results.benchmark.on_hub or run.name,
                    samples=count,
                    sample_ids=[one.id for one in samples],
                ),
                model=(model and model.model) or system,
                config=log.EvalConfig(),
                packages={"echo-hf": toolkit_version()},
                metadata={"system": system, "protocol": results.protocol},
            )
            found = log.EvalResults(
                total_samples=count,
                completed_samples=count,
                scores=list(_figures(run, system, split)),
            )
            told = log.EvalLog(status="success", eval=spec, results=found, samples=samples)
            log.write_eval_log(told, str(folder / f"{name}_{split}.eval"))


def _samples(run: ExportedRun, system: str, split: str) -> Iterator[EvalSample]:
    from inspect_ai import log, model, scorer

    def images(digests: Iterable[str | None]) -> list[Any]:
        """Those that are there, as a log holds them."""
        found = []
        for digest in filter(None, digests):
            with suppress(ImageError):
                data = run.data.images.open(digest)
                address = f"data:image/{str(format_of(data)).lower()};base64,"
                found.append(model.ContentImage(image=address + base64.b64encode(data).decode()))
        return found

    for sample in run.data.of_split(split):
        output = run.data.outputs.get((sample.id, system))
        rated = [one for one in run.data.ratings.get(sample.id, ()) if one.system == system]
        if output is None and not rated:
            continue
        words = model.ContentText(text=sample.prompt)
        asked = model.ChatMessageUser(content=[words, *images(sample.inputs)])
        drawn = images([output.image]) if output else []
        said = " ".join(filter(None, (output.outcome, output.reason))) if output else ""
        content = drawn or [model.ContentText(text=said)]
        scores = {
            f"{one.judge} {one.rubric} {one.repeat}": scorer.Score(
                value=one.value,
                explanation=one.explanation,
                metadata={"judge": one.judge, "rubric": one.rubric, "repeat": one.repeat},
            )
            for one in rated
            if one.value is not None
        }
        yield log.EvalSample(
            id=sample.id,
            epoch=1,
            input=[asked],
            target="",
            messages=[asked, model.ChatMessageAssistant(content=content, model=system)],
            output=model.ModelOutput(model=system, completion="" if drawn else said),
            scores=scores,
            metadata={"task": sample.task, "outcome": output.outcome if output else None},
        )


def _figures(run: ExportedRun, system: str, split: str) -> Iterator[EvalScore]:
    from inspect_ai import log

    for row in run.data.results.results:
        if (row.system, row.split) == (system, split) and row.value is not None:
            every = ((row.metric, row.value), ("low", row.low), ("high", row.high))
            metrics = {
                name: log.EvalMetric(name=name, value=value)
                for name, value in every
                if value is not None
            }
            name = f"{row.metric} ({row.protocol})"
            yield log.EvalScore(name=name, scorer="echo-hf", metrics=metrics)
