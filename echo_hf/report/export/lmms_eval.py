"""Tasks of lmms-eval: a YAML file a split, and the Python file that they share."""

from __future__ import annotations

import json
from pathlib import Path

from echo_hf.curate.splits import BENCHMARKS
from echo_hf.hub.manifest import SPLIT
from echo_hf.report.export.export import FORMATS, ExportedRun, slug

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
