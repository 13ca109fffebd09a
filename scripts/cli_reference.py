"""The page of all verbs, from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from echo_hf.cli import app

INTRODUCTION = """# Command line

Made by `scripts/write_docs.py` from the commands: `echo-hf VERB --help` says the same.
"""
WIDE = {"terminal_width": 1000, "max_content_width": 1000}  # so that no line of a help is broken


def cli_page() -> str:
    group: Any = typer.main.get_command(app)
    root = group.context_class(group, info_name="echo-hf", **{**group.context_settings, **WIDE})
    lines = [INTRODUCTION]
    for line in group.get_help(root).splitlines():
        first, _, about = line.strip().partition("  ")
        if re.match(r"\w.*:$", line):
            lines.append(f"## {line[:-1]}\n")
        elif first in group.commands:
            lines.extend(verb_lines(group.commands[first], root))
        elif line.startswith("  -"):
            lines.append(f"`{first}`: {about.strip()}\n")
    return "\n".join(lines).rstrip() + "\n"


def verb_lines(command: Any, root: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=command.name, parent=root, **WIDE)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"### {command.name}\n"
    yield f"{inspect.cleandoc(command.help)}\n"
    yield f"```text\necho-hf {command.name} {usage}\n```\n"
    yield "| takes | meaning |"
    yield "|---|---|"
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            names, meaning = (" ".join(one.split()).replace("|", "\\|") for one in record)
            yield f"| `{names}` | {meaning} |"
    yield ""
