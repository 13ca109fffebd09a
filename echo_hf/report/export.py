"""`echo-hf export`: write a run's figures, judgements and outputs as other projects read them.

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

from echo_hf._infra.atomic import replace_folder
from echo_hf._infra.registry import Registry, Requirements
from echo_hf._infra.text import escape_markdown
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.loading import Config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, ImageError, ReleaseError, RunError
from echo_hf.hub.card import render_eval_file
from echo_hf.hub.manifest import EVAL_FILE, SPLIT, Manifest, get_version
from echo_hf.hub.publish import check_repository
from echo_hf.hub.redistribution import find_restricted
from echo_hf.images.loader import detect_format
from echo_hf.report.report import build_eval_entries
from echo_hf.report.run_data import ReportSample, RunData, SavedOutput, read_run_data
from echo_hf.samples.sample import Review
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample, EvalScore


@dataclass(frozen=True)
class ExportedRun:
    """A run without the texts and images that must not be passed on.

    Attributes:
        data: Its tables and figures.
        config: What it was run with.
        reference: The benchmark that its config names.
        manifest: That of the benchmark's release; null where there is none.
        organization: Who ran it, if somebody says so.
    """

    data: RunData
    config: EvaluationBase
    reference: str
    manifest: Manifest | None
    organization: str | None

    @property
    def name(self) -> str:
        """The name of the benchmark."""
        return self.data.results.benchmark.name or self.config.name

    @property
    def on_hub(self) -> tuple[str, str] | None:
        """The repository and revision of the benchmark."""
        repo, at, revision = (self.data.results.benchmark.on_hub or "").rpartition("@")
        return (repo, revision) if at else None


@dataclass(frozen=True)
class ExportResult:
    format: str
    path: Path
    files: tuple[str, ...]
    silenced: int


# Takes a run, and fills an empty folder.
ExportWriter = Callable[[ExportedRun, Path], None]
BUILT_IN = {
    "csv": "csv_tables",
    "every-eval-ever": "every_eval_ever",
    "hub-eval": "export",
    "inspect": "export",
    "lmms-eval": "export",
}
MODULES = {name: f"{__package__}.{module}" for name, module in BUILT_IN.items()}
FORMATS: Registry[ExportWriter, Requirements] = Registry("format", "echo_hf.exports", MODULES)


def export(
    config: RunOrConfig,
    folder: Path,
    *,
    to: str,
    runs: Path | str | None = None,
    organization: str | None = None,
) -> ExportResult:
    """Write a run into a new folder, all of it or nothing."""
    if to == "croissant":
        raise ConfigError(
            "nothing to write: of a published dataset the Hub makes Croissant itself, at "
            "https://huggingface.co/api/datasets/ORGANIZATION/NAME/croissant"
        )
    run = EvaluationRun.from_config(config, runs)  # whose plug-ins may bring the format
    write = FORMATS.find(to, "--to")
    (FORMATS.facts(to) or Requirements()).check_installed(f"format {to!r}")
    config, data = run.config, read_run_data(run)
    if data.stale:
        raise RunError(
            f"the figures of {config.name!r} are of other samples than its benchmark has now: run "
            "`echo-hf score` with this config first"
        )
    manifest = None
    with suppress(ReleaseError):
        manifest = run.benchmark.read_manifest()
    rights = manifest.statements.rights if manifest else {}
    rights = config.rights if isinstance(config, Config) else rights
    # Nor are samples passed on that `publish` would leave for a person to review.
    waits = {"nsfw", *map(str, Review)}
    restricted = {
        sample.id: sample
        for sample in data.samples
        if find_restricted(sample.urls, rights) or waits.intersection(sample.flags)
    }
    public = remove_restricted(data, restricted)
    exported = ExportedRun(public, config, run.benchmark.reference, manifest, organization)
    with replace_folder(folder.resolve(), ()) as partial:
        write(exported, partial)
        paths = [path for path in partial.rglob("*") if path.is_file()]
        files = sorted(path.relative_to(partial).as_posix() for path in paths)
    return ExportResult(to, folder, tuple(files), len(restricted))


def remove_restricted(data: RunData, restricted: Mapping[str, ReportSample]) -> RunData:
    """Remove from a run what a release leaves out of restricted samples."""
    posted = set[str]()
    for sample in restricted.values():
        posted.update(sample.posted, sample.inputs)
    samples, outputs, ratings = list(data.samples), dict(data.outputs), dict(data.ratings)
    for index, sample in enumerate(samples):
        if sample.id in restricted:
            samples[index] = ReportSample(sample.id, sample.split, prompt="")
    for key, output in outputs.items():
        if key[0] in restricted:
            # An edit of a posted image shows that image as well.
            is_shown = not restricted[key[0]].inputs and output.image not in posted
            outputs[key] = SavedOutput(output.image if is_shown else None, output.outcome)
    for name in restricted.keys() & ratings.keys():
        ratings[name] = tuple(replace(rating, explanation=None) for rating in ratings[name])
    return replace(data, samples=tuple(samples), outputs=outputs, ratings=ratings)


def slug(name: str | None) -> str:
    """Turn a name into a part of a path."""
    plain = re.sub(r"[^\w-]+", "-", (name or "").lower(), flags=re.ASCII)
    return plain.strip("-")[:60] or "unknown"


def make_file_names(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct file name for each name."""
    stems = dict[str, str]()
    for name in names:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
        stem = slug(name)
        stems[name] = f"{stem}-{digest[:8]}" if stem in stems.values() else stem
    return stems


REQUEST_TEXT = """# Ask the Hub to list the benchmark

Until it is listed, the Hub keeps the files and shows no board. What stands between the lines goes
into a comment on https://huggingface.co/spaces/OpenEvals/README/discussions/2.

---

Please add {repo} to the list of benchmarks: https://huggingface.co/datasets/{repo}

- `eval.yaml` lies in its root. It has no `evaluation_framework`, and we ask for none to be
  registered: a value is the win rate of a model against the others of the release, from 0 to 1,
  higher is better, which [echo-hf](https://github.com/echo-hf/echo-hf) computes from ratings by
  judges that see images.
- Tasks: {tasks}.
- Every release is a tag with its samples, ratings and results, so that
  `echo-hf leaderboard --hub --repo-id {repo}` checks what is filed.

---

Then a pull request to each model's repository adds its file:

{files}
"""
TASK_TEMPLATE = """dataset_path: {place}
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
COLOR_SHIFT_METRIC = """  - metric: color_shift
    aggregation: !function utils.color_shift
    higher_is_better: false
"""


@FORMATS.register("hub-eval")
def write_hub_eval(run: ExportedRun, folder: Path) -> None:
    """Write `SYSTEM/.eval_results/echo.yaml`, `eval.yaml` and the text of the request."""
    if run.on_hub is None:
        raise ConfigError(
            f"the benchmark of {run.config.name!r} is a folder, and results of the Hub name one "
            "that is published: score with a config that has benchmark: ORGANIZATION/NAME@TAG"
        )
    repo, _ = run.on_hub
    check_repository(repo)  # it becomes Markdown, and an address
    by_system = build_eval_entries(run.data)
    text = render_eval_file(run.manifest) if run.manifest else None
    if not by_system or text is None:
        raise ConfigError(
            f"no system of {run.config.name!r} has a win rate on {repo}: have judges rate outputs, "
            "and run `echo-hf score`"
        )
    (folder / EVAL_FILE).write_text(text, "utf-8")
    lines, models = [], run.data.results.system_models
    for system, name in make_file_names(by_system).items():
        path = folder / name / ".eval_results" / "echo.yaml"
        path.parent.mkdir(parents=True)
        entries = by_system[system]
        listed = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)
        path.write_text(listed, "utf-8")
        model = (system in models and models[system].model) or system
        lines.append(f"- {escape_markdown(model)}: `{path.relative_to(folder)}`")
    tasks = "; ".join(
        f"`{task['id']}` (config `{task['config']}`, split `{task['split']}`)"
        for task in yaml.safe_load(text)["tasks"]
    )
    request = REQUEST_TEXT.format(repo=repo, tasks=tasks, files="\n".join(lines))
    (folder / "request.md").write_text(request, "utf-8")


@FORMATS.register("lmms-eval")
def write_lmms_eval(run: ExportedRun, folder: Path) -> None:
    """Write `echo_NAME_SPLIT.yaml` and `utils.py`, for `--include_path FOLDER`."""
    dataset_path, revision = run.on_hub or (str(Path(run.reference).resolve()), None)
    stem = slug(run.name).replace("-", "_")
    for split in run.data.splits:
        text = TASK_TEMPLATE.format(
            place=json.dumps(dataset_path),
            split=split,
            revision=f"dataset_kwargs: {{revision: {json.dumps(revision)}}}\n" if revision else "",
            task=f"echo_{stem}_{split}",
            part=SPLIT,
            metrics=COLOR_SHIFT_METRIC if split == BENCHMARKS[0] else "",
            name=json.dumps(run.name),
        )
        (folder / f"echo_{stem}_{split}.yaml").write_text(text, "utf-8")
    shared = Path(__file__).with_name("lmms_eval_task.py").read_text("utf-8")
    (folder / "utils.py").write_text(shared, "utf-8")


@FORMATS.register("inspect", Requirements(extra="inspect", packages=("inspect_ai",)))
def write_inspect_log(run: ExportedRun, folder: Path) -> None:
    """Write `SYSTEM_SPLIT.eval`: samples with images, ratings as scores, figures as metrics."""
    from inspect_ai import log

    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    results = run.data.results
    for system, name in make_file_names(run.data.systems).items():
        for split in run.data.splits:
            samples = list(_build_samples(run, system, split))
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
                    sample_ids=[sample.id for sample in samples],
                ),
                model=(model and model.model) or system,
                config=log.EvalConfig(),
                packages={"echo-hf": get_version()},
                metadata={"system": system, "protocol": results.protocol},
            )
            eval_results = log.EvalResults(
                total_samples=count,
                completed_samples=count,
                scores=list(_build_scores(run, system, split)),
            )
            contents = {"eval": spec, "results": eval_results, "samples": samples}
            eval_log = log.EvalLog(status="success", **contents)
            log.write_eval_log(eval_log, str(folder / f"{name}_{split}.eval"))


def _build_samples(run: ExportedRun, system: str, split: str) -> Iterator[EvalSample]:
    from inspect_ai import log, model, scorer

    def load_images(digests: Iterable[str | None]) -> list[Any]:
        """Return the images that the run still has, as a log holds them."""
        images = []
        for digest in filter(None, digests):
            with suppress(ImageError):
                encoded = run.data.images.open(digest)
                kind, text = str(detect_format(encoded)).lower(), base64.b64encode(encoded).decode()
                images.append(model.ContentImage(image=f"data:image/{kind};base64,{text}"))
        return images

    for number, sample in enumerate(run.data.select_split(split), 1):
        output = run.data.outputs.get((sample.id, system))
        all_ratings = run.data.ratings.get(sample.id, ())
        ratings = [rating for rating in all_ratings if rating.system == system]
        if output is None and not ratings:
            continue
        words = model.ContentText(text=sample.prompt)
        question = model.ChatMessageUser(content=[words, *load_images(sample.inputs)])
        images = load_images([output.image]) if output else []
        text = " ".join(filter(None, (output.outcome, output.reason))) if output else ""
        content = images or [model.ContentText(text=text)]
        scores = {
            f"{rating.judge} {rating.rubric} {rating.repeat}": scorer.Score(
                value=rating.value,
                explanation=rating.explanation,
                metadata={"judge": rating.judge, "rubric": rating.rubric, "repeat": rating.repeat},
            )
            for rating in ratings
            if rating.value is not None
        }
        yield log.EvalSample(
            id=number,  # the Hub's viewer, which is that of datasets, takes numbers alone
            epoch=1,
            input=[question],
            target="",
            messages=[question, model.ChatMessageAssistant(content=content, model=system)],
            output=model.ModelOutput(model=system, completion="" if images else text),
            scores=scores,
            metadata={
                "sample_id": sample.id,
                "task": sample.task,
                "outcome": output.outcome if output else None,
            },
        )


def _build_scores(run: ExportedRun, system: str, split: str) -> Iterator[EvalScore]:
    from inspect_ai import log

    for row in run.data.results.results:
        if (row.system, row.split) == (system, split) and row.value is not None:
            figures = ((row.metric, row.value), ("low", row.low), ("high", row.high))
            metrics = {
                name: log.EvalMetric(name=name, value=value)
                for name, value in figures
                if value is not None
            }
            name = f"{row.metric} ({row.protocol})"
            yield log.EvalScore(name=name, scorer="echo-hf", metrics=metrics)
