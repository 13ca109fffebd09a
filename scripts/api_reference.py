"""The page of what users import, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

import echo_hf

INTRODUCTION = """# Python

Made by `scripts/write_docs.py` from signatures and docstrings: `help()` says the same.
Errors that a user can cause derive from `EchoError`.
"""
STAGES = """## Stages

`STAGES` of `echo_hf.config.sections` finds each by its name, and has the built-in ones in the order
in which they run: `echo_hf.pipeline.stage.register` adds others, `echo-hf plugins -v` lists all.
"""
PLUGINS = """## Plug-ins

A package brings its own by an entry point of the group `echo_hf.engines`, `echo_hf.sources`,
`echo_hf.platforms`, `echo_hf.sites`, `echo_hf.stages`, `echo_hf.systems`, `echo_hf.metrics`,
`echo_hf.rubrics`, `echo_hf.readers` or `echo_hf.exports`; `echo-hf plugins` lists what is there.
In a script, the `register` of the same module does, and of the last two that of `READERS` and
`FORMATS`. A metric is a subclass of `echo_hf.metrics.Metric`.
"""
PLUGIN_NAMES = (
    "echo_hf.engines.base.Engine",
    "echo_hf.engines.base.Request",
    "echo_hf.engines.base.Completion",
    "echo_hf.engines.base.register",
    "echo_hf.collect.sources.base.Source",
    "echo_hf.collect.sources.base.register",
    "echo_hf.collect.platforms.base.Platform",
    "echo_hf.collect.platforms.base.PostChecker",
    "echo_hf.pipeline.stage.register",
    "echo_hf.systems.base.System",
    "echo_hf.systems.base.Task",
    "echo_hf.systems.base.GenerationResult",
    "echo_hf.systems.registry.register",
    "echo_hf.judging.imports.ImportedRow",
    "echo_hf.report.export.ExportedRun",
)
WIDTH = 80
PARTS = (("echo_hf", echo_hf), ("Scores", echo_hf.scores), ("Metrics", echo_hf.metrics))
SECTION = re.compile(r"^(Args|Attributes|Examples|Raises|Returns|Yields):\n", re.M)
ITEM = re.compile(r"^(\S+):(?= )", re.M)


class Annotation(str):
    """An annotation as its author wrote it, without the quotes that `inspect` puts around it."""

    __slots__ = ()
    __repr__ = str.__str__


def api_page() -> str:
    lines = [INTRODUCTION]
    for title, module in PARTS:
        lines += [f"## {title}\n", *map(description, public_names(module))]
    lines += [STAGES, PLUGINS, *map(description, PLUGIN_NAMES)]
    return "\n".join(lines).rstrip() + "\n"


def public_names(module: Any) -> list[str]:
    """What a module exports, its functions before the classes of what they return."""
    values = {name: getattr(module, name) for name in module.__all__}
    names = [name for name, value in values.items() if callable(value)]
    names.sort(key=lambda name: inspect.isclass(values[name]))
    return [f"{module.__name__}.{name}" for name in names]


def description(path: str) -> str:
    module, _, name = path.rpartition(".")
    value = getattr(import_module(module), name)
    lines = [f"### {path}\n", *signature_lines(name, value), *docstring_lines(value)]
    for method, member in vars(value).items() if inspect.isclass(value) else ():
        function = getattr(member, "__func__", member)
        computed = getattr(member, "fget", None) or getattr(member, "func", None)
        if method.startswith("_") or not inspect.isfunction(computed or function):
            continue
        if computed:
            lines.append(f"```text\n{name}.{method}\n```\n")
        else:
            lines += signature_lines(f"{name}.{method}", function)
        lines += docstring_lines(computed or function)
    return "\n".join(lines)


def signature_lines(name: str, value: Any) -> Iterator[str]:
    """How it is called, with a line for each parameter where a single line is too long."""
    if getattr(value, "_is_protocol", False) or (
        inspect.isclass(value) and issubclass(value, BaseModel | BaseException)
    ):
        return  # what nobody calls, and configs, which have a page of their own
    signature = inspect.signature(value)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    pieces = [
        str(parameter.replace(annotation=as_written(parameter.annotation)))
        for parameter in parameters
    ]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        pieces.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = None if inspect.isclass(value) else signature.return_annotation
    end = f") -> {returned}" if isinstance(returned, str) else ")"
    text = f"{name}({', '.join(pieces)}{end}"
    if len(text) > WIDTH:
        text = "\n    ".join((f"{name}(", *(f"{piece}," for piece in pieces))) + f"\n{end}"
    yield f"```text\n{text}\n```\n"


def as_written(annotation: Any) -> Any:
    return Annotation(annotation) if isinstance(annotation, str) else annotation


def docstring_lines(value: Any) -> Iterator[str]:
    """A docstring as Markdown: its sections become paragraphs, lists and code."""
    about, *sections = SECTION.split(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    yield f"{about.strip()}\n"
    for section, body in zip(sections[::2], sections[1::2], strict=True):
        text = dedent(body).strip()
        if section == "Examples":
            yield f"```pycon\n{text}\n```\n"
        elif section in ("Returns", "Yields"):
            yield f"{section}: {text}\n"
        else:
            items = ITEM.sub(r"- `\1`:", re.sub(r"\n {4,}", " ", text))
            yield f"{section}:\n\n{items}\n"
