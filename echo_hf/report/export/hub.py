"""Results as the Hub shows them, and tasks of lmms-eval over a benchmark there."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from echo_hf._infra.text import escaped
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError
from echo_hf.hub.card import eval_file
from echo_hf.hub.manifest import BENCHMARK, SPLIT
from echo_hf.report.export.export import FORMATS, ExportedRun, file_names, slug
from echo_hf.report.report import eval_entries

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
