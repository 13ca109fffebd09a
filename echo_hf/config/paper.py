"""The paper's settings, and how a config that reproduces it differs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from echo_hf.config.checks import EngineChoice, Section, Statement, Words
from echo_hf.config.collection import Search
from echo_hf.config.sections import NAMED_HAZARDS
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
    "stages.relevance.keep": "4, 5",  # section 3.1
    "stages.screenshots.inset": "10",  # the released code
    "stages.safety.remove": ", ".join(NAMED_HAZARDS),  # section 6
    "splits.cap": "1000",  # section 4
    "splits.doubts": "keep",  # section 4: people look at them
    "protocol": "published",
}
# Some version of these; `gpt-4o-mini` is another model.
STAGE_MODELS = {
    "relevance": "gpt-4o",  # figure D.2
    "extract": "gpt-4o",  # figure D.3
    "roles": "gpt-4o",  # figure D.4
    "screenshots": "qwen2.5-vl",  # figure D.5
    "safety": "llama-guard-4-12b",  # section 6
}
PAPER_MODELS = {
    **{f"stages.{stage}.engine": model for stage, model in STAGE_MODELS.items()},
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
    stages = config.stages
    values = {
        "posts": " and ".join(
            _describe_search(entry.source, entry.search) for entry in config.posts
        ),
        "stages.relevance.keep": ", ".join(map(str, sorted(stages.relevance.keep))),
        "stages.screenshots.inset": str(stages.screenshots.inset),
        "stages.safety.remove": ", ".join(
            hazard for hazard in NAMED_HAZARDS if hazard in stages.safety.remove
        ),
        "splits.cap": str(config.splits.cap),
        "splits.doubts": config.splits.doubts,
        "protocol": config.protocol,
    }
    for key, paper_value in PAPER_VALUES.items():
        yield key, values[key] or "none", paper_value
    engines = {stage: config.engines[str(stages.get_engine(stage))] for stage in STAGE_MODELS}
    models = {f"stages.{stage}.engine": _get_model(engine) for stage, engine in engines.items()}
    if config.applicability:
        models["applicability"] = _get_model(config.applicability.engine)
    if config.analysis.perplexity:
        models["analysis.perplexity"] = config.analysis.perplexity.model
    for key, paper_value in PAPER_MODELS.items():
        model = models.get(key, "none")
        is_version = re.search(rf"{re.escape(paper_value)}(?!-?[a-z])", model.lower())
        yield key, paper_value if is_version else model, paper_value
    for kind, names in (("systems", PAPER_SYSTEMS), ("judges", PAPER_JUDGES)):
        stood_for = {member.stands_for for member in getattr(config, kind)}
        for name in names:
            yield f"{kind}.{name}", name if name in stood_for else None, name


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
