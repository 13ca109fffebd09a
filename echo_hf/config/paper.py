"""The paper's settings, and how a config that reproduces it differs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from echo_hf.config.checks import EngineChoice, Section, Statement, Words
from echo_hf.config.collection import Search
from echo_hf.errors import ConfigError, unknown

if TYPE_CHECKING:
    from echo_hf.config.loading import Config

PAPER_SYSTEMS = (
    *("4o Image Gen", "Nano Banana", "Gemini 2.0 Flash", "Bagel-Think", "Bagel"),
    *("Flux Kontext", "LLM+Diffusion", "Anole"),
)
PAPER_JUDGES = ("GPT-4o", "Gemini 2.0 Flash", "Qwen2.5-VL-32B-Instruct")
PAPER_POSTS = (
    "x: 4o, chatgpt, gpt, gpt-4o, openai in windows of 1d for 14 days; "
    "4o image, 4o prompt, create image, create image gpt, gpt image, gpt prompt, image gen, "
    "prompt share, 生成, 画像 in windows of 7d"
)
PAPER_VALUES = {
    "posts": PAPER_POSTS,  # figure D.1
    "splits.cap": "1000",  # section 4
    "splits.doubts": "keep",  # section 4: people look at them
    "protocol": "published",
}
# Some version of these, as of the stages' engines; `gpt-4o-mini` is another model.
PAPER_MODELS = {
    "applicability": "gpt-4o",  # figure E.3
    "analysis.perplexity": "pythia-12b",  # figure 3
}


class PaperOptions(Section):
    """Marks a config that reproduces the paper, and lists its differences.

    Attributes:
        differences: What differs from the paper, and why: a key of this config whose value is not
            the paper's, such as `splits.cap`; `systems.NAME` or `judges.NAME` for one of the
            paper's that nothing stands for; or anything else, in words. What replaces a system
            or a judge says so in its own note.
    """

    differences: Mapping[Words, Statement] = {}


class PaperDifference(NamedTuple):
    what: str  # a key of the config with its value and the paper's, a system, a judge, or words
    why: str


def find_differences(config: Config) -> tuple[PaperDifference, ...]:
    """Return where a config that claims to reproduce the paper differs, with the reasons."""
    if config.paper is None:
        return ()
    explained, keys, differences = config.paper.differences, set[str](), list[PaperDifference]()
    unexplained = []
    for key, value, paper_value in _compare_with_paper(config):
        keys.add(key)
        if value != paper_value and key not in explained:
            problem = f"nothing stands for it and the paper has it: {paper_value}"
            problem = (
                problem if value is None else f"is {value!r} and the paper has {paper_value!r}"
            )
            unexplained.append(f"{key}: {problem}; say why under paper.differences, as {key!r}")
        elif value == paper_value and key in explained:
            raise ConfigError(
                f"paper.differences.{key}: it is as in the paper, {paper_value!r}: leave the "
                "reason out"
            )
        elif value != paper_value:
            text = (
                "nothing stands for it" if value is None else f"{value}, in the paper {paper_value}"
            )
            differences.append(PaperDifference(f"{key}: {text}", explained[key]))
    if unexplained:
        raise ConfigError("; ".join(unexplained))
    differences += _iterate_notes("system", config.systems)
    differences += _iterate_notes("judge", config.judges)
    for key, why in explained.items():
        if key not in keys:
            first = key.partition(".")[0]
            if first in type(config).model_fields and key != first:
                raise ConfigError(unknown("difference", key, keys, "paper.differences"))
            differences.append(PaperDifference(key, why))
    return tuple(differences)


def _compare_with_paper(config: Config) -> Iterator[tuple[str, str | None, str]]:
    """Yield each key that the paper specifies, with its value here and in the paper."""
    values = {
        "posts": " and ".join(
            _describe_search(entry.source, entry.search) for entry in config.posts
        ),
        "splits.cap": str(config.splits.cap),
        "splits.doubts": config.splits.doubts,
        "protocol": config.protocol,
    }
    models, paper_models = dict[str, str](), dict[str, str]()
    paper_values = {"posts": PAPER_VALUES["posts"]}
    for stage, options in config.stages:
        for option, paper_value in options.paper.items():
            key, value = f"stages.{stage}.{option}", getattr(options, option)
            if option == "engine":
                models[key], paper_models[key] = _get_model(config.engines[value]), paper_value
            else:
                values[key], paper_values[key] = _format_value(value), paper_value
    if config.applicability:
        models["applicability"] = _get_model(config.applicability.engine)
    if config.analysis.perplexity:
        models["analysis.perplexity"] = config.analysis.perplexity.model
    for key, paper_value in (paper_values | PAPER_VALUES).items():
        yield key, values[key] or "none", paper_value
    for key, paper_value in (paper_models | PAPER_MODELS).items():
        model = models.get(key, "none")
        is_version = re.search(rf"{re.escape(paper_value)}(?!-?[a-z])", model.lower())
        yield key, paper_value if is_version else model, paper_value
    for kind, names in (("systems", PAPER_SYSTEMS), ("judges", PAPER_JUDGES)):
        stood_for = {member.stands_for for member in getattr(config, kind)}
        for name in names:
            yield f"{kind}.{name}", name if name in stood_for else None, name


def _format_value(value: Any) -> str:
    """Format an option's value; those of a list in their order, whatever that of the config."""
    values = value if isinstance(value, tuple) else (value,)
    return ", ".join(sorted(map(str, values), key=lambda text: (len(text), text)))


def _describe_search(source: str, search: Search | None) -> str:
    phases = [
        f"{', '.join(sorted(phase.terms))} in windows of {phase.window}"
        + (f" for {phase.days} days" if phase.days else "")
        + (f" in {', '.join(phase.languages)}" if phase.languages else "")
        for phase in (search.phases if search else ())
    ]
    return f"{source}: {'; '.join(phases)}" if phases else source


def _get_model(engine: EngineChoice) -> str:
    return str(engine.options.get("model", engine.kind))


def _iterate_notes(kind: str, members: Iterable[Any]) -> Iterator[PaperDifference]:
    """Yield what stands in for what, what is not in the paper, and what it leaves open."""
    for member in members:
        if member.status == "substitute":
            yield PaperDifference(
                f"{kind} {member.name}, in place of {member.stands_for}", member.note
            )
        elif member.status == "current":
            yield PaperDifference(
                f"{kind} {member.name}", f"None of the paper's. {member.note or ''}".strip()
            )
        elif member.note is not None:
            yield PaperDifference(
                f"{kind} {member.name}, the paper's {member.stands_for}", member.note
            )
