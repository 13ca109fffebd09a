"""What posts and models wrote, in every view of the terminal: text, whatever it says."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import importlib
import inspect
import io
import json
import sys
import types
import typing
import unicodedata
from collections import Counter, abc
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, JsonValue
from rich.columns import Columns
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

import echo_hf
from echo_hf._infra.bootstrap import Unscored
from echo_hf._infra.console import PlainConsole
from echo_hf.cli.progress import TerminalProgress
from echo_hf.images.tricks import NotDrawn
from echo_hf.judging.board import show_scores
from echo_hf.judging.score import score_win_rates
from echo_hf.reasons import Reason
from echo_hf.scores.rating_table import read_ratings

MARKUP = "[/b]x [link=https://x.example]y[/link] :smile:"
HOSTILE = f"{MARKUP}\x1b]8;;https://x.example\x07\x1b[31m\x9b31m\u202e\u2066\x00"
PACKAGE = Path(echo_hf.__file__).parent
# Names and numbers of our own, and what a view reads from JSON.
FIGURE = {"rated": 1, "change": 1.0, "interval": None, "not_seen": 1, "share": 1.0, "raises": True}
PICTURES = {
    kind: {
        "pictures": {HOSTILE: FIGURE}, "raised_by": [HOSTILE], "rated": 1, "share": 1.0,
        "left_out": {NotDrawn.NO_FONT: {HOSTILE: 1}}, "languages": {"left_out": [HOSTILE]},
    }
    for kind in ("tricks", "faults")
}  # fmt: skip
AUDIT = {
    "rubric": HOSTILE,
    "mean_of_real_outputs": None,
    "noise": {"equal": None, "samples": 1, "deviation": None},
    "scale_use": None,
    "pictures": PICTURES,
    "checks": {
        HOSTILE: {
            "passed": None, "reason": HOSTILE, "rated": 1, "mean": None, "share": None,
            "rule": {"share": None},
        }
    },
}  # fmt: skip
POST = {"missing": None, "pictures": [], "author": HOSTILE, "text": HOSTILE, "parent": -1}
SAMPLE = {
    "prompt": HOSTILE, "quality": HOSTILE, "prompt_modified": True, "input_images": [],
    "output_images": [], "community_feedback": [{"feedback": HOSTILE}], "id": HOSTILE,
}  # fmt: skip
TRIAL = {
    **dict.fromkeys(("who", "answer", "wanted", "finish_reason", "regex", "problem"), HOSTILE),
    "engine": {"model": HOSTILE},
    "messages": [{"role": HOSTILE, "parts": [{"text": HOSTILE}, {"image": HOSTILE}]}],
    "schema": {HOSTILE: HOSTILE},
    "max_tokens": 1,
    "usage": {"prompt": 1, "completion": 1},
    "seconds": 0.5,
    "cost_usd": None,
}
OURS: dict[str, Any] = {
    "AuditResult.judges": {HOSTILE: AUDIT},
    "JudgingResult.trials": (),
    "show_trials.trials": [TRIAL],
    "make_check_table.audit": AUDIT,
    "show_pictures.pictures": PICTURES,
    "CheckResult.half": "all",
    "StageDifference.stage": "roles",
    "Query.phase": 0,
    "StageCheck.stage": "roles",
    "render_thread_and_samples.thread": {"posts": [POST]},
    "render_thread_and_samples.samples": [SAMPLE],
    "NonInferiority.definition": {"confidence": 0.95},
    "show_left_out.counts": [(HOSTILE, {Unscored.NO_DRAWS: 1})],
    "HumanRanking.tests": {"dunn": (), "siegel_castellan": ()},
}
# They read a file, ask the Hub, build, or write the ranks of people, and print what is our own;
# or they make an empty table.
ASK = {"make_table", "show", "show_address", "show_draw", "show_holding", "show_scores"}
ASK |= {"show_board", "show_change", "show_table", "show_win_rates", "show_ranking_files"}
CONTAINERS = {list: list, abc.Sequence: list, abc.Iterable: list, abc.Collection: list}


def filled(kind: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in (Any, object, JsonValue) or isinstance(kind, typing.TypeVar):
        return HOSTILE
    if origin is typing.Annotated:
        return filled(inner[0])
    if origin is typing.Literal:
        return inner[0]
    if origin in (typing.Union, types.UnionType):
        return filled(next(one for one in inner if one is not types.NoneType))
    if origin in (tuple, set, frozenset):
        return origin(filled(one) for one in inner if one is not Ellipsis)
    if origin in CONTAINERS:
        return [filled(inner[0])]
    if origin in (dict, abc.Mapping, Counter):
        return {filled(inner[0]): filled(inner[1]) if inner[1:] else 1}
    if origin is abc.Callable:
        return lambda *_: HOSTILE
    return _of_class(kind)


def _of_class(kind: type) -> Any:
    if kind is Reason:
        return Unscored.NO_DRAWS
    if issubclass(kind, Enum):
        return next(iter(kind))
    for base, value in {
        str: HOSTILE,
        Path: Path(HOSTILE),
        bool: True,
        datetime.datetime: datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC),
        datetime.date: datetime.date(2026, 3, 2),
        pa.Table: pa.table({}),
    }.items():
        if issubclass(kind, base):
            return value
    if issubclass(kind, int | float):
        return kind(1)
    if issubclass(kind, BaseModel):
        fields = {name: field.annotation for name, field in kind.model_fields.items()}
        return kind.model_construct(**_values(kind, fields))
    names = getattr(kind, "_fields", None) or [one.name for one in dataclasses.fields(kind)]
    hints = typing.get_type_hints(kind)
    return kind(**_values(kind, {name: hints[name] for name in names}))


def _values(owner: Any, hints: dict[str, Any]) -> dict[str, Any]:
    keys = {name: f"{owner.__name__}.{name}" for name in hints}
    return {n: OURS[keys[n]] if keys[n] in OURS else filled(one) for n, one in hints.items()}


def _views() -> Iterator[Callable[..., Any]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "rich" in text and ("Console" in text or "Table" in text) and "cli" not in path.stem:
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for one in vars(importlib.import_module(name)).values():
                is_ours = inspect.isfunction(one) and one.__module__ == name
                if is_ours and not one.__name__.startswith("_") and _shows(one):
                    yield one


def _shows(view: Callable[..., Any]) -> bool:
    told = inspect.signature(view)
    kinds = ("Table", "Iterator[Table]", "RenderableType")
    is_view = "console" in told.parameters or told.return_annotation in kinds
    return is_view and view.__name__ not in ASK


def _types_of(view: Callable[..., Any]) -> dict[str, Any]:
    """What its module imports for type checkers alone."""
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[view.__module__])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), view.__module__, "exec"), names)  # noqa: S102 - imports
    return names


def obeyed(text: str) -> list[str]:
    return [one for one in text if unicodedata.category(one)[0] == "C" and one != "\n"]


@pytest.mark.parametrize("view", [*_views()], ids=lambda view: f"{view.__module__}.{view.__name__}")
def test_every_view_prints_words_as_they_stand(view: Callable[..., Any]) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=300)
    hints = typing.get_type_hints(view, localns=_types_of(view))
    named = inspect.signature(view).parameters.values()
    needed = [one.name for one in named if one.default is inspect.Parameter.empty]
    values = _values(view, {name: hints[name] for name in needed if name != "console"})
    if "console" in needed:
        view(console, **values)
    else:
        made = view(**values)
        for one in made if inspect.isgenerator(made) else (made,):
            console.print(one)
    assert obeyed(out.getvalue()) == []
    assert "[/b]" in out.getvalue()


def test_a_board_prints_words_as_they_stand(tmp_path: Path) -> None:
    """Names of systems and judges are somebody's words, and so is a whole file of figures."""
    share = {"value": None, "interval": None, "count": 0, "reason": Unscored.NO_DRAWS}
    judged = dict.fromkeys(("consistent", "follows_position", "agreement"), share)
    rows = [
        {"sample_id": "s", "system": name, "judge": HOSTILE, "rating": 1.0, "explanation": HOSTILE}
        for name in (HOSTILE, f"{HOSTILE} again")
    ]
    ratings = read_ratings(pa.Table.from_pylist(rows))
    rated = score_win_rates("s", ratings, "corrected", 0, {}).details
    split = {
        "samples": 1,
        "win_rate": rated.model_dump(mode="json"),
        "pairwise": {"judges": {HOSTILE: {"pairs": 1, **judged}}, "definition": {}},
        "metrics": [
            {"metric": "color_shift", "system": HOSTILE, "samples": [], "counts": {HOSTILE: 1},
             "missing": missing, "result": None}
            for missing in (HOSTILE, None)
        ],
    }  # fmt: skip
    written = {
        "left_out": {HOSTILE: {Unscored.NO_DRAWS: 1}}, "failed_audit": {HOSTILE: [HOSTILE]},
        "benchmark": {}, "protocol": "corrected", "details": {HOSTILE: split},
        "systems": {HOSTILE: {"status": "substitute", "stands_for": HOSTILE}},
        "judges": {HOSTILE: {"status": "substitute", "stands_for": HOSTILE}},
        "trust": [
            {"measure": "gap", "split": HOSTILE, "said": HOSTILE, "meaning": "m", "reason": why}
            for why in (None, "one_system")
        ],
    }  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(written), "utf-8")
    out = io.StringIO()
    show_scores(PlainConsole(file=out, width=300), tmp_path / "results.json")
    assert obeyed(out.getvalue()) == []
    assert out.getvalue().count("[/b]") >= 10


@pytest.mark.parametrize(
    "shown",
    [
        HOSTILE, Text(HOSTILE), Table(HOSTILE, title=HOSTILE, caption=HOSTILE), Tree(HOSTILE),
        Columns([HOSTILE]), Panel(HOSTILE),
    ],
    ids=lambda shown: type(shown).__name__,
)  # fmt: skip
@pytest.mark.parametrize("markup", [True, False])
def test_a_terminal_obeys_no_text(shown: RenderableType, markup: bool) -> None:
    out = io.StringIO()
    PlainConsole(file=out, width=300, markup=markup).print(shown)
    assert MARKUP in out.getvalue()
    assert obeyed(out.getvalue()) == []


def test_bars_obey_no_text() -> None:
    out = io.StringIO()
    with TerminalProgress(
        PlainConsole(file=out, width=300, force_terminal=True, color_system=None)
    ) as watch:
        watch.report_progress(HOSTILE, 1, HOSTILE, 2)
    assert MARKUP in out.getvalue()
    assert all(one not in out.getvalue() for one in ("\x1b]8", "\x1b[31m"))


def test_there_is_no_other_terminal() -> None:
    makers, words = [], ("Console", "from_markup", "PlainConsole", "TextColumn")
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        for call in ast.walk(ast.parse(text)) if any(word in text for word in words) else ():
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", None))
                makers += [(path.name, name)] if name in words[:3] else []
                if name == "TextColumn":
                    told = {one.arg: getattr(one.value, "value", None) for one in call.keywords}
                    assert told.get("markup") is False, path
    assert makers == [("console.py", "PlainConsole")]
