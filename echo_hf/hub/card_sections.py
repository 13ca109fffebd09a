"""The sections of the dataset card: safety, models, columns, leanings, people, citation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from datasets import Image, List

from echo_hf._infra.text import escaped, one_line, share, table
from echo_hf.config.sections import Hazard
from echo_hf.engines.base import abstains
from echo_hf.hub.facts import ALL, CONFIGS, ReleaseFacts, SampleCounts
from echo_hf.hub.manifest import Manifest
from echo_hf.reasons import LeftOut, Notice
from echo_hf.tables import SAMPLES, Table

SAFETY = "safety"
PRIVACY = "privacy"
NOT_SCREENED = (
    "**No safety model has looked at these samples**: the build has no `safety` stage, so "
    "`has_nsfw` and `safety` are null, and nothing was removed for what it shows or says."
)
CLEANED = (
    "- What the files of images said beside their pixels is removed: EXIF but the orientation, "
    "GPS, XMP, IPTC, comments, texts, thumbnails, signatures. Color profiles stay. The counts of "
    "the `privacy` stage say what was found in posted ones."
)
NOT_CLEANED = (
    "- **Images are the very bytes that were posted or drawn**, with what their files say beside "
    "the pixels, such as where they were taken and by whom: this build did not remove it."
)
STAND_IN = "plain rules or recorded answers"
NO_GUARD = (
    f"**{STAND_IN.capitalize()} stood in for a safety model.** Where they did not decide, as the "
    "counts of the `safety` stage say, `has_nsfw` and `safety` are null: nothing has looked at "
    "those samples."
)


class GuardCard(NamedTuple):
    source: str
    rates: Mapping[str, tuple[int, int]]


GUARDS: Mapping[str, GuardCard] = {
    "meta-llama/Llama-Guard-4-12B": GuardCard(
        "https://github.com/meta-llama/PurpleLlama/blob/main/Llama-Guard4/12B/MODEL_CARD.md",
        {
            "English text": (69, 11),
            "text in seven other languages": (43, 3),
            "one image": (41, 9),
            "several images": (61, 9),
        },
    ),
}


def safety_text(facts: ReleaseFacts) -> str:
    if SAFETY not in facts.provenance:
        return NOT_SCREENED
    engine = facts.provenance[SAFETY].get("engine") or {}
    if abstains(engine):
        return f"{NO_GUARD}\n\n{_removed(facts)}"
    model = str(engine.get("model") or "an unnamed model")
    looked = (
        f"The `safety` stage asked {escaped(model)} about the text and the images of each "
        "sample, as the stage's counts above say. `safety` keeps every category that it named, "
        "removed or not; `has_nsfw` is true for the removed ones."
    )
    return "\n\n".join([looked, _removed(facts), _recall(model)])


def privacy_text(facts: ReleaseFacts) -> str:
    masked = (
        "In `community_feedback` e-mail and IP addresses, numbers of phones, cards and bank "
        "accounts, keys of services and names of accounts are masked."
        if PRIVACY in facts.provenance
        else "**Feedback stands as it was posted**: the build has no `privacy` stage, which masks "
        "personal data."
    )
    return "\n".join(
        [
            "- `author` is a keyed hash of the account's name, equal for all samples of one author "
            "in this repository; who lacks the key can neither read the name nor test a guess. It "
            "is null where no key was set.",
            f"- {masked} Prompts are not masked, because that would change the task.",
            "- `review` says why a person has to look at a sample: it may show a minor, or its "
            "prompt holds personal data. It is empty when nothing is open.",
            NOT_CLEANED if facts.metadata_stripper is None else CLEANED + _kept_uncleaned(facts),
            "- `post_urls` lead to the posts, and so to their authors: that is how a post is named "
            "and found again when its author wants it removed. Faces in images are not masked.",
        ]
    )


def _kept_uncleaned(facts: ReleaseFacts) -> str:
    noted = facts.funnel.get(PRIVACY, {}).get("noted")
    count = noted.get(Notice.IMAGE_NOT_CLEANED, 0) if isinstance(noted, Mapping) else 0
    if not count:
        return ""
    return (
        f" **{count:,} could not be cleaned**: a sample with one is left out, unless a reviewer "
        "kept it with all that its file says."
    )


def _removed(facts: ReleaseFacts) -> str:
    counted = facts.funnel.get("splits", {}).get("rejected")
    if isinstance(counted, Mapping):
        number = f"{counted.get('flagged', 0):,} were taken out"
    else:
        number = "how many were taken out is unknown"
    if facts.removed_categories is None:
        categories = "which categories those are is not stated by this build"
    else:
        categories = ", ".join(map(_named, facts.removed_categories)) or "no category"
    return (
        f"Samples flagged with a category that is removed are in no config: {number}. Removed: "
        f"{categories}.{_kept(facts.removed_categories)}"
    )


def _named(category: str) -> str:
    meanings = {str(one): one.meaning for one in Hazard}
    return f"{escaped(category)} ({meanings.get(category, 'on no list of ours')})"


def _kept(removed: Sequence[str] | None) -> str:
    if removed is None or Hazard.INTELLECTUAL_PROPERTY in removed:
        return ""
    return (
        " S8 (intellectual property) is named and not removed: guards give it to requests in the "
        "style of a famous studio, which are a large part of what people do, and it is a question "
        "of licences, not of harm."
    )


def _recall(model: str) -> str:
    card = GUARDS.get(model)
    if card is None:
        return "How much this model misses is not known here: see what its own card says."
    rows: list[tuple[Any, ...]] = [
        (what, f"{recall} %", f"{wrong} %") for what, (recall, wrong) in card.rates.items()
    ]
    figures = table(["What it classifies", "Recall", "False positives"], rows, numbers=2)
    return (
        f"A guard misses much. Its own [model card]({card.source}) states, for a test set of its "
        f"makers:\n\n{figures}\n\nSo what it did not flag is not thereby safe."
    )


MODELS = "**Part of the text in this dataset was made with models.**"
NO_MODELS = (
    f"**Part of the text in this dataset was made by {STAND_IN}**, where a full build asks models."
)
MADE = (
    "A prompt with `prompt_modified` was joined, completed or reworded by them, or read from a "
    "image; `quality`, `kind`, `task`, `verdict` and `keyword` are their opinions. The other "
    "prompts and the comments are people's own words, in pieces that they chose."
)
OF_MODELS = {
    "outputs": "the images of `outputs` and the `text` beside them were made by the systems "
    "under test",
    "ratings": "the explanations in `ratings` were written by judges",
    "comparisons": "the choices in `comparisons`, and the reasons for them, are judges' own",
    "applicability": "the reasons in `applicability` were written by a model",
    "responses": "`responses` holds models' answers as they came",
}


# What is left to say of a config of which all texts are left out.
OF_MODELS_IN_SILENCE = {
    "outputs": "the images of `outputs` were made by the systems under test",
    "ratings": "the ratings were given by judges, whose explanations are left out",
    "comparisons": "the choices in `comparisons` are judges' own, whose reasons are left out",
    "applicability": "the answers in `applicability` were given by a model, whose reasons are left "
    "out",
}


def model_text(facts: ReleaseFacts, manifest: Manifest) -> str:
    engines = [one for origin in facts.provenance.values() if (one := origin.get("engine"))]
    makers = NO_MODELS if engines and all(map(abstains, engines)) else MODELS
    return "\n\n".join([f"{makers} {MADE}", *_beside(facts, manifest), _models(facts)])


def provenance_table(facts: ReleaseFacts) -> str:
    rows = [_origin_row(*row) for row in facts.provenance.items()]
    return table(["Stage", "Digest", "Instructions", "Engine"], rows or [["none", "", "", ""]])


def _beside(facts: ReleaseFacts, manifest: Manifest) -> list[str]:
    silent = {name for name in OF_MODELS_IN_SILENCE if _is_silent(name, facts, manifest)}
    told = {name: OF_MODELS_IN_SILENCE[name] for name in silent}
    held = [told.get(name, said) for name, said in OF_MODELS.items() if name in manifest.configs]
    text = "; ".join(held)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def _is_silent(config: str, facts: ReleaseFacts, manifest: Manifest) -> bool:
    silenced = facts.left_out.get(config, {}).get(LeftOut.SILENCED.value, 0)
    return config in manifest.configs and silenced >= max(1, manifest.configs[config].rows)


def _models(facts: ReleaseFacts) -> str:
    stages: dict[str, list[str]] = {}
    for stage, origin in facts.provenance.items():
        if engine := origin.get("engine"):
            stages.setdefault(_name(engine), []).append(stage)
    if not stages:
        return "Which models those are is not recorded in this release."
    asked = "\n".join(
        f"- {name}, in {', '.join(map(escaped, some))}" for name, some in stages.items()
    )
    return f"In this build the engines were:\n\n{asked}"


def _name(engine: Mapping[str, Any]) -> str:
    if abstains(engine):
        return f"{escaped(engine['kind'])}, which is not a model"
    named = engine.get("model") or "an unnamed model"
    return f"{escaped(named)} by {escaped(engine.get('kind') or 'an unnamed engine')}"


def _origin_row(stage: str, origin: Mapping[str, Any]) -> list[str]:
    engine, prompt = origin.get("engine"), origin.get("prompt")
    said = json.dumps(engine, sort_keys=True, ensure_ascii=False) if engine else "none"
    digests = (str(origin["digest"])[:16], str(prompt)[:16] if prompt else "none")
    return [escaped(cell) for cell in (stage, *digests, said)]


class Maker(StrEnum):
    COPIED = "copied"
    RULE = "rule"
    MODEL = "model"


class Origin(NamedTuple):
    """Who decides a column's values, and in which stages; no stage where none alone does."""

    maker: Maker
    stages: tuple[str, ...] = ()


ORIGINS: Mapping[str, Origin] = {
    "id": Origin(Maker.RULE, ("extract", "roles")),
    "post_id": Origin(Maker.COPIED, ("collect",)),
    "post_urls": Origin(Maker.MODEL, ("extract", "roles")),
    "author": Origin(Maker.RULE, ("privacy",)),
    "target": Origin(Maker.COPIED),
    "prompt": Origin(Maker.MODEL, ("extract", "roles", "screenshots")),
    "prompt_sha256": Origin(Maker.RULE, ("privacy",)),
    "prompt_spans": Origin(Maker.RULE, ("privacy",)),
    "prompt_modified": Origin(Maker.RULE, ("extract", "roles", "screenshots")),
    "prompt_fill_blank": Origin(Maker.MODEL, ("roles",)),
    "quality": Origin(Maker.MODEL, ("extract", "roles")),
    "community_feedback": Origin(Maker.MODEL, ("extract", "feedback")),
    "input_images": Origin(Maker.MODEL, ("roles", "screenshots")),
    "output_images": Origin(Maker.MODEL, ("roles", "screenshots")),
    "screenshot": Origin(Maker.MODEL, ("roles",)),
    "is_screenshot": Origin(Maker.MODEL, ("screenshots",)),
    "input_bboxs": Origin(Maker.MODEL, ("screenshots",)),
    "output_bboxs": Origin(Maker.MODEL, ("screenshots",)),
    "picture_sources": Origin(Maker.RULE, ("privacy",)),
    "has_nsfw": Origin(Maker.RULE, ("safety",)),
    "safety": Origin(Maker.MODEL, ("safety",)),
    "review": Origin(Maker.MODEL, ("roles", "privacy")),
    "kind": Origin(Maker.MODEL, ("feedback",)),
    "task": Origin(Maker.MODEL, ("feedback",)),
    "sample_digest": Origin(Maker.RULE),
    "dehydrated": Origin(Maker.RULE),
    "provenance": Origin(Maker.RULE),
}


def made_by(column: str, provenance: Mapping[str, Mapping[str, Any]]) -> str:
    maker, stages = ORIGINS[column]
    ran = [stage for stage in stages if stage in provenance]
    if stages and not ran:
        return f"nobody: no {_origin_named(stages, 'or')} in this build"
    where = f", in {_origin_named(ran, 'and')}" if ran else ""
    if maker is not Maker.MODEL:
        return f"{'copied' if maker is Maker.COPIED else 'a fixed rule'}{where}"
    return f"{_asked([provenance[stage] for stage in ran])}{where}"


def _asked(origins: list[Mapping[str, Any]]) -> str:
    without = [abstains(origin.get("engine")) for origin in origins]
    if all(without):
        return f"{STAND_IN} instead of a model"
    return f"a model, or {STAND_IN} in its place" if any(without) else "a model"


def _origin_named(stages: list[str] | tuple[str, ...], word: str) -> str:
    *others, last = [f"`{stage}`" for stage in stages]
    return f"{', '.join(others)} {word} {last}" if others else last


def sample_columns(facts: ReleaseFacts) -> str:
    rows = [[*_column(SAMPLES, name), made_by(name, facts.provenance)] for name in SAMPLES.columns]
    return table(["Column", "Type", "Meaning", "Made by"], rows)


def other_columns(manifest: Manifest) -> str:
    held = [name for name in CONFIGS if name in manifest.configs]
    others = [name for name in held if CONFIGS[name].table is not SAMPLES]
    return "".join(_part(name, CONFIGS[name].table) for name in others)


def _part(name: str, declared: Table) -> str:
    rows = (_column(declared, column) for column in declared.columns)
    shown = table(["Column", "Type", "Meaning"], rows)
    return f"### Columns of `{name}`\n\nOne row is {declared.about}.\n\n{shown}\n\n"


def _column(declared: Table, name: str) -> list[str]:
    meaning = declared.columns[name].meaning.replace("|", "\\|")
    return [f"`{name}`", type_name(declared.released_features[name]), meaning]


MOST_NAMES = 12
NOT_COUNTED = "Not counted: this release was written without the posts that its samples came from."
Parts = Mapping[str, SampleCounts]


def measured_text(measured: Parts) -> str:
    if not measured:
        return NOT_COUNTED
    parts = {name: counts for name, counts in measured.items() if name != ALL}
    rows = [*_sizes(parts), *_shares(measured, parts), *_authors(parts)]
    headings = ["", *(f"`{name}`" for name in parts)]
    return (
        "Counted in the samples when this revision was written; language and platform are those of "
        "the primary post, as its platform names them.\n\n"
        + table(headings, rows, numbers=len(parts))
    )


def _sizes(parts: Parts) -> Iterator[list[str]]:
    yield ["samples", *(f"{counts.samples:,}" for counts in parts.values())]


def _shares(measured: Parts, parts: Parts) -> Iterator[list[str]]:
    for kind, field in (("language", "languages"), ("platform", "platforms"), ("task", "tasks")):
        counted = {name: getattr(counts, field) for name, counts in parts.items()}
        order = list(getattr(measured.get(ALL, next(iter(measured.values()))), field))
        shown, others = order[:MOST_NAMES], order[MOST_NAMES:]
        for name in shown:
            cells = [_share(counted[part].get(name, 0), parts[part].samples) for part in parts]
            yield [f"{kind}: {escaped(name)}", *cells]
        if others:
            sums = {part: sum(counted[part].get(name, 0) for name in others) for part in parts}
            cells = [_share(sums[part], parts[part].samples) for part in parts]
            yield [f"{kind}: {len(others):,} others", *cells]


def _authors(parts: Parts) -> Iterator[list[str]]:
    every = parts.values()
    yield ["authors", *(f"{counts.authors:,}" for counts in every)]
    several = [_share(counts.repeated_authors, counts.authors) for counts in every]
    yield ["authors of several samples", *several]
    unknown = [_share(counts.unknown_authors, counts.samples) for counts in every]
    yield ["samples of an unknown author", *unknown]


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({share(part, whole)})" if part else "0"


HASHED_AUTHORS = (
    "Authors stand in it as keyed hashes: they tell whether two posts are by one person, and only "
    "who made the dataset has the key that tells which. Where the address of a post holds its "
    "author's name, there is no hash: it would be undone by that row."
)
NO_AUTHORS = "No author stands in it."
OPEN_REVIEWS = (
    "**Samples that a person still has to look at: {count:,}.** Their column `review` says why; "
    "until that is done this dataset is not for publication."
)
NO_OPEN_REVIEWS = (
    "No sample waits for a person: one does while a model says that an image may show a minor, or "
    "while its prompt holds personal data, and nobody has decided about it."
)
UNSCREENED = (
    "**Samples that no safety model has looked at: {count:,}.** Expect some that are harmful."
)
ALL_SCREENED = (
    "A safety model has looked at every sample; column `safety` says what it found. What reviewers "
    "wrote or brought into one afterwards a person has looked at instead."
)


def screening_text(manifest: Manifest) -> str:
    unscreened = manifest.unscreened
    return UNSCREENED.format(count=unscreened) if unscreened else ALL_SCREENED


def people_text(manifest: Manifest) -> str:
    waiting = manifest.open_reviews
    authors = HASHED_AUTHORS if manifest.hashed_authors else NO_AUTHORS
    return f"{authors} {OPEN_REVIEWS.format(count=waiting) if waiting else NO_OPEN_REVIEWS}"


PAPER = """@inproceedings{ge2026constantly,
  title     = {Constantly Improving Image Models Need Constantly Improving Benchmarks},
  author    = {Ge, Jiaxin and Luo, Grace and Lee, Heekyung and Malpani, Nishant and Lian, Long and
               Wang, XuDong and Holynski, Aleksander and Darrell, Trevor and Min, Sewon and
               Chan, David M.},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year      = {2026},
  url       = {https://openreview.net/forum?id=nOcy5NvNI1}
}"""
WORDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def citation_text(facts: ReleaseFacts) -> str:
    if facts.citation:
        return f"{_fenced(PAPER)}\n\n{_fenced(facts.citation.strip())}"
    return (
        f"{_fenced(PAPER)}\n\nWho made this revision, and when, is not stated in its config; by "
        f"what is known of it:\n\n{_fenced(_dataset(facts))}"
    )


def bibtex(text: object) -> str:
    """Text as the value of a BibTeX field, which LaTeX prints as it is."""
    shown = re.sub(r"[\\~^]|[{}%$#&_]", _replaced, one_line(text))
    return shown.replace("`", "'")


def _replaced(found: re.Match[str]) -> str:
    return WORDS.get(found[0], f"\\{found[0]}")


def _dataset(facts: ReleaseFacts) -> str:
    key = re.sub(r"[^a-z0-9]+", "_", facts.name.lower()).strip("_")
    where = f", {bibtex(facts.repository)}" if facts.repository else ""
    return (
        f"@misc{{echo_{key},\n"
        f"  title        = {{ECHO benchmark: {bibtex(facts.target.name)}}},\n"
        f"  howpublished = {{Hugging Face dataset{where}}},\n"
        f"  note         = {{Revision {bibtex(facts.name)}}}\n"
        "}"
    )


def _fenced(text: str) -> str:
    # Longer than any run of backticks inside, so that the text cannot end the block.
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max([3, *(run + 1 for run in runs)])
    return f"{fence}bibtex\n{text}\n{fence}"


def type_name(feature: Any) -> str:
    if isinstance(feature, List):
        return f"list of {type_name(feature.feature)}"
    if isinstance(feature, dict):
        inner = ", ".join(f"{name}: {type_name(each)}" for name, each in feature.items())
        return f"{{{inner}}}"
    return "image" if isinstance(feature, Image) else str(feature.dtype)
