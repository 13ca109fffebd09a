"""Write the parts of the documentation that are made from the code, or check that they are current.

    python scripts/write_docs.py [--check]

In `docs/reference`, `tables.md` lists every table and column, with the names used by the paper's
table D.1 and by the official dataset; `config.md` every key of a config, which
`echo_hf/config/config.schema.json` tells to editors; `cli.md` the verbs as `--help` does; and
`api.md` what Python imports. `gold.md` and `metrics` are copies of pages that the package brings.
`dataset_card/README.md` is the card of the bundled benchmark. The README shows
what the quickstart prints, `docs/how-to/check_engine.md` what `check-engine` does.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import datasets
from api_reference import api_page
from cli_reference import cli_page
from config_reference import reference_page, schema_text
from rich.console import Console

import echo_hf
from echo_hf.builder.build import build
from echo_hf.builder.gold.check import check_engine
from echo_hf.cli.build_view import show_check
from echo_hf.cli.progress import TerminalProgress
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import Hazard
from echo_hf.config.systems import shipped_config
from echo_hf.curate.privacy import KEY_VARIABLE
from echo_hf.curate.splits import SPLIT_SAMPLES
from echo_hf.errors import describe_install
from echo_hf.hub.evaluate_metric import METRIC_FIELDS, list_configs
from echo_hf.quickstart.run import show_quickstart
from echo_hf.reasons import list_enums
from echo_hf.tables import (
    OFFICIAL_DATASET,
    PAPER_PROCESSED,
    PAPER_RELEASED,
    PAPER_RETRIEVED,
    TABLES,
    Table,
)

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
CHECK_ENGINE = ROOT / "docs" / "how-to" / "check_engine.md"
SPACE = ROOT / "echo_hf" / "hub" / "metric_space" / "README.md"
WIDTH = 110
INTRODUCTION = """# Tables

Made by `scripts/write_docs.py` from `echo_hf/tables.py` and the enums of reasons: change those.

In a run, images are named by the sha256 of their bytes; in a release the columns
`input_images`, `output_images` and `screenshot` hold the images themselves. Keys are in bold.
"""


def type_name(feature: Any) -> str:
    if isinstance(feature, Mapping):
        inner = ", ".join(f"{name}: {type_name(value)}" for name, value in feature.items())
        return f"{{{inner}}}"
    if hasattr(feature, "feature"):
        return f"list of {type_name(feature.feature)}"
    return str(feature.dtype).replace("timestamp[us, tz=UTC]", "time (UTC)")


def table_lines(table: Table) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield f"One row is {table.about}.\n"
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for name, column in table.columns.items():
        shown = f"**`{name}`**" if name in table.key else f"`{name}`"
        yield f"| {shown} | {type_name(column.feature)} | {column.meaning} |"
    yield ""


def name_lines() -> Iterator[str]:
    yield "## Names in the paper and in the official dataset\n"
    yield "| table D.1 | here | in a release | official dataset |"
    yield "|---|---|---|---|"
    for paper, ours in {**PAPER_RETRIEVED, **PAPER_PROCESSED}.items():
        released = PAPER_RELEASED.get(paper, ours)
        kept = f"`{released}`" if released.startswith("samples.") else ""
        yield f"| `{paper}` | `{ours}` | {kept} | {_official(ours)} |"
    named = {path.removeprefix("samples.") for path in PAPER_PROCESSED.values()}
    every = dict.fromkeys(name for names in OFFICIAL_DATASET.values() for name in names)
    for name in every:
        if name not in named:
            ours = f"samples.{name}"
            yield f"| | `{ours}` | `{ours}` | {_official(ours)} |"
    yield ""


def _official(ours: str) -> str:
    table, _, name = ours.partition(".")
    if table != "samples":
        return ""
    return ", ".join(config for config, names in OFFICIAL_DATASET.items() if name in names)


def reason_lines() -> Iterator[str]:
    yield "## Reasons\n"
    for module in walk_packages(echo_hf.__path__, "echo_hf."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    kinds = {kind for kind in list_enums() if kind.__module__.startswith("echo_hf.")} - {Hazard}
    for kind in sorted(kinds, key=lambda kind: (kind.__module__, kind.__name__)):
        purpose = (kind.__doc__ or "").partition("\n")[0].removesuffix(".")
        yield f"### {kind.__name__}\n"
        yield f"Of `{kind.__module__}`.\n"
        yield f"| {purpose} | meaning |"
        yield "|---|---|"
        yield from (f"| `{reason}` | {reason.meaning} |" for reason in kind)
        yield ""


def hazard_lines() -> Iterator[str]:
    yield "## Hazards\n"
    yield "| `safety.categories` | name |"
    yield "|---|---|"
    yield from (f"| `{hazard}` | {hazard.meaning} |" for hazard in Hazard)
    yield ""


def tables_page() -> str:
    lines = [INTRODUCTION]
    for table in (*TABLES.values(), SPLIT_SAMPLES):
        if table is SPLIT_SAMPLES:
            lines.append("## samples after splits\n")
            lines.append("As `samples`, with one more column.\n")
            lines.append("| column | type | meaning |\n|---|---|---|")
            column = table.columns["splits"]
            lines.append(f"| `splits` | {type_name(column.feature)} | {column.meaning} |\n")
        else:
            lines.extend(table_lines(table))
    return "\n".join([*lines, *name_lines(), *hazard_lines(), *reason_lines()]).rstrip() + "\n"


def copied_pages() -> dict[Path, str]:
    """Pages that the package brings, where readers of the documentation look for them."""
    package = ROOT / "echo_hf"
    pages = {REFERENCE / "metrics" / card.name: card for card in package.glob("metrics/cards/*.md")}
    pages[REFERENCE / "gold.md"] = package / "quickstart" / "gold" / "README.md"
    note = "<!-- A copy of {}: change that. -->\n\n"
    return {
        page: note.format(path.relative_to(ROOT)) + path.read_text("utf-8")
        for page, path in pages.items()
    }


def space_page() -> str:
    """The page of the `evaluate` module, with a row for each config."""
    lines = [
        "| config | predictions | references | better | needs | adds |",
        "|---|---|---|---|---|---|",
    ]
    shared = {*METRIC_FIELDS.replace(" (of reasons)", "").split(", ")}
    for name, config in list_configs().items():
        metric = config.metric
        given = metric.needs if metric else ("ratings",)
        needs, adds = [], []
        if metric is None:
            parameters = inspect.signature(config.load_function()).parameters.values()
            required = (one.name for one in parameters if one.default is one.empty)
            needs = [f"`{one}=`" for one in required if one != "ratings"]
        else:
            needs = [f"`{describe_install(metric.extra).split(', or')[0]}`"] if metric.extra else []
            adds = [f"`{one}`" for one in config.gives.split(", ") if one.split()[0] not in shared]
        better = metric.better if metric else "higher"
        cells = (f"`{name}`", given[-1], *given[:-1], *[""] * (2 - len(given)), better)
        lines.append(f"| {' | '.join((*cells, ', '.join(needs), ', '.join(adds)))} |")
    return replaced(SPACE.read_text("utf-8"), "configs", "\n".join(lines))


def quickstart_pages() -> dict[Path, str]:
    """The pages with what the quickstart and `check-engine` print, and the card of the first."""
    # From inside the folder, so that commands are printed as for whoever changes no option.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        out, runs = io.StringIO(), Path("runs")
        # Before there are results, whose bytes depend on what is installed here.
        card = (build(shipped_config(), runs=runs).path / "README.md").read_text("utf-8")
        console = Console(file=out, width=WIDTH, force_terminal=False)
        show_quickstart(TerminalProgress(console, details=False))
        checked = check_printed(runs)
        printed = out.getvalue().replace(f"{ROOT}/", "")
    printed = "\n".join(line.rstrip() for line in printed.splitlines()).strip()
    return {
        ROOT / "README.md": with_output(ROOT / "README.md", "quickstart", printed),
        CHECK_ENGINE: with_output(CHECK_ENGINE, "check-engine", checked),
        ROOT / "dataset_card" / "README.md": card,
    }


def with_output(page: Path, name: str, text: str) -> str:
    return replaced(page.read_text("utf-8"), name, f"```text\n{text}\n```")


def replaced(page: str, name: str, text: str) -> str:
    """A page with other text between the two comments of a name."""
    before, start, rest = page.partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    return f"{before}{start}\n{text}\n{end}{after}"


def check_printed(runs: Path) -> str:
    out = io.StringIO()
    result = check_engine(engine=EngineChoice(kind="rules"), runs=runs)
    show_check(Console(file=out, width=WIDTH, force_terminal=False), result)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip()


def _is_current(path: Path, text: str) -> bool:
    # Sizes depend on the version of Parquet's writer, digests on every word of a prompt.
    def comparable(page: str) -> str:
        return re.sub(r"_(size|bytes): \d+|\b[0-9a-f]{16,64}\b", "", page)

    return path.exists() and comparable(path.read_text("utf-8")) == comparable(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    check = parser.parse_args().check
    datasets.disable_progress_bars()
    os.environ.pop(KEY_VARIABLE, None)  # the pages are those of whoever has no key
    pages = {
        REFERENCE / "tables.md": tables_page(),
        REFERENCE / "config.md": reference_page(),
        ROOT / "echo_hf" / "config" / "config.schema.json": schema_text(),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "api.md": api_page(),
        **copied_pages(),
        SPACE: space_page(),
        **quickstart_pages(),
    }
    stale = [path for path, text in pages.items() if not _is_current(path, text)]
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path])
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
