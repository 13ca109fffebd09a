"""What the paper did, and where a config that reproduces it does otherwise, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from echo_hf.config.checks import EngineChoice, Section, Statement, Words
from echo_hf.config.collection import Search
from echo_hf.config.sections import NAMED
from echo_hf.errors import ConfigError, unknown

if TYPE_CHECKING:
    from echo_hf.config.loading import Config

SYSTEMS = (
    *("4o Image Gen", "Nano Banana", "Gemini 2.0 Flash", "Bagel-Think", "Bagel"),
    *("Flux Kontext", "LLM+Diffusion", "Anole"),
)
JUDGES = ("GPT-4o", "Gemini 2.0 Flash", "Qwen2.5-VL-32B-Instruct")
POSTS = (
    "x: 4o, chatgpt, gpt, gpt-4o, openai in windows of 1d for 14 days; "
    "4o image, 4o prompt, create image, create image gpt, gpt image, gpt prompt, image gen, "
    "prompt share, 生成, 画像 in windows of 7d"
)
VALUES = {
    "posts": POSTS,  # figure D.1
    "stages.relevance.keep": "4, 5",  # section 3.1
    "stages.screenshots.inset": "10",  # the released code
    "stages.safety.remove": ", ".join(NAMED),  # section 6
    "splits.cap": "1000",  # section 4
    "splits.doubts": "keep",  # section 4: people look at them
    "protocol": "published",
}
# Some version of these; `gpt-4o-mini` is another model.
READING = {
    "relevance": "gpt-4o",  # figure D.2
    "extract": "gpt-4o",  # figure D.3
    "roles": "gpt-4o",  # figure D.4
    "screenshots": "qwen2.5-vl",  # figure D.5
    "safety": "llama-guard-4-12b",  # section 6
}
MODELS = {
    **{f"stages.{stage}.engine": model for stage, model in READING.items()},
    "applicability": "gpt-4o",  # figure E.3
    "analysis.perplexity": "pythia-12b",  # figure 3
}


class PaperOptions(Section):
    """That a config reproduces the paper, and where it does otherwise.

    Attributes:
        differences: What differs from the paper, and why: a key of this config whose value is not
            the paper's, such as `splits.cap`; `systems.NAME` or `judges.NAME` for one of the
            paper's that nothing stands for; or anything else, in words. What replaces a system
            or a judge says so in its own note.
    """

    differences: Mapping[Words, Statement] = {}


class Difference(NamedTuple):
    what: str  # a key of the config with its value and the paper's, a system, a judge, or words
    why: str


def differences(config: Config) -> tuple[Difference, ...]:
    """Where a config that claims to reproduce the paper differs from it, with the reasons."""
    if config.paper is None:
        return ()
    given, known, found = config.paper.differences, set[str](), list[Difference]()
    unexplained = []
    for key, value, papers in _compared(config):
        known.add(key)
        if value != papers and key not in given:
            what = f"nothing stands for it and the paper has it: {papers}"
            what = what if value is None else f"is {value!r} and the paper has {papers!r}"
            unexplained.append(f"{key}: {what}; say why under paper.differences, as {key!r}")
        elif value == papers and key in given:
            raise ConfigError(
                f"paper.differences.{key}: it is as in the paper, {papers!r}: leave the reason out"
            )
        elif value != papers:
            shown = "nothing stands for it" if value is None else f"{value}, in the paper {papers}"
            found.append(Difference(f"{key}: {shown}", given[key]))
    if unexplained:
        raise ConfigError("; ".join(unexplained))
    found += _notes("system", config.systems)
    found += _notes("judge", config.judges)
    for key, why in given.items():
        if key not in known:
            first = key.partition(".")[0]
            if first in type(config).model_fields and key != first:
                raise ConfigError(unknown("difference", key, known, "paper.differences"))
            found.append(Difference(key, why))
    return tuple(found)


def _compared(config: Config) -> Iterator[tuple[str, str | None, str]]:
    """Each key that the paper says something of, with the value here and in the paper."""
    stages = config.stages
    values = {
        "posts": " and ".join(_searched(entry.source, entry.search) for entry in config.posts),
        "stages.relevance.keep": ", ".join(map(str, sorted(stages.relevance.keep))),
        "stages.screenshots.inset": str(stages.screenshots.inset),
        "stages.safety.remove": ", ".join(one for one in NAMED if one in stages.safety.remove),
        "splits.cap": str(config.splits.cap),
        "splits.doubts": config.splits.doubts,
        "protocol": config.protocol,
    }
    for key, papers in VALUES.items():
        yield key, values[key] or "none", papers
    asked = {stage: config.engines[str(stages.engine_of(stage))] for stage in READING}
    models = {f"stages.{stage}.engine": _model_of(engine) for stage, engine in asked.items()}
    if config.applicability:
        models["applicability"] = _model_of(config.applicability.engine)
    if config.analysis.perplexity:
        models["analysis.perplexity"] = config.analysis.perplexity.model
    for key, papers in MODELS.items():
        model = models.get(key, "none")
        is_version = re.search(rf"{re.escape(papers)}(?!-?[a-z])", model.lower())
        yield key, papers if is_version else model, papers
    for kind, names in (("systems", SYSTEMS), ("judges", JUDGES)):
        there = {one.stands_for for one in getattr(config, kind)}
        for name in names:
            yield f"{kind}.{name}", name if name in there else None, name


def _searched(source: str, search: Search | None) -> str:
    phases = [
        f"{', '.join(sorted(one.terms))} in windows of {one.window}"
        + (f" for {one.days} days" if one.days else "")
        + (f" in {', '.join(one.languages)}" if one.languages else "")
        for one in (search.phases if search else ())
    ]
    return f"{source}: {'; '.join(phases)}" if phases else source


def _model_of(engine: EngineChoice) -> str:
    return str(engine.options.get("model", engine.kind))


def _notes(kind: str, some: Iterable[Any]) -> Iterator[Difference]:
    """What stands in for what, what the paper has not, and what it leaves open."""
    for one in some:
        if one.status == "substitute":
            yield Difference(f"{kind} {one.name}, in place of {one.stands_for}", one.note)
        elif one.status == "current":
            yield Difference(f"{kind} {one.name}", f"None of the paper's. {one.note or ''}".strip())
        elif one.note is not None:
            yield Difference(f"{kind} {one.name}, the paper's {one.stands_for}", one.note)
