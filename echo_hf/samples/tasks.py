"""What images are a task together, and the rows of samples that they become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from echo_hf._infra.text import MARK
from echo_hf.reasons import Review
from echo_hf.samples.blanks import placeholders
from echo_hf.samples.sample import (
    Sample,
    places_of,
    provenance_with,
    sample_digest,
    sample_id,
    texts_of,
)
from echo_hf.samples.shown_images import images_of
from echo_hf.samples.spans import SpanIndex

Key = TypeVar("Key")
Fillings = tuple[tuple[str, str], ...]


@dataclass(eq=False)
class Task:
    prompt: str
    fillings: Fillings = ()
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    screenshot: str | None = None

    @property
    def shown_by(self) -> list[str]:
        return [*self.outputs, *filter(None, [self.screenshot])]

    @property
    def images(self) -> list[str]:
        return [*self.shown_by, *self.inputs]

    def join(self, other: Task) -> None:
        """Takes in what another answer says about the same task."""
        for mine, others in ((self.inputs, other.inputs), (self.outputs, other.outputs)):
            mine.extend(one for one in others if one not in mine)
        self.posts.extend(one for one in other.posts if one not in self.posts)
        self.screenshot = self.screenshot or other.screenshot


def joined(tasks: Iterable[tuple[Key, Task]]) -> list[Task]:
    first: dict[Key, Task] = {}
    for key, task in tasks:
        if first.setdefault(key, task) is not task:
            first[key].join(task)
    return list(first.values())


def tries(tasks: Sequence[Task]) -> list[Task]:
    """Joins what belongs to the same try of a prompt."""
    apart: list[Task] = []
    for task in tasks:
        first, *others = [*(one for one in apart if _share(one, task)), task]
        for other in others:
            first.join(other)
        apart = [*(one for one in apart if one not in others), *([task] if first is task else [])]
    first_shown = next((task for task in apart if task.images), None)
    placed = ((task if task.images else first_shown, task) for task in apart)
    return joined((same if same and same.inputs else None, task) for same, task in placed)


def told_and_seen(told: Sequence[Task], seen: Sequence[Task]) -> list[Task]:
    """Joins what is told in words with the screenshots that show it."""
    apart = []
    for task in told:
        same = next((one for one in seen if _share(one, task)), None)
        if same:
            same.join(task)
        else:
            apart.append(task)
    lacking = next((task for task in apart if not (task.inputs and task.outputs)), None)
    if lacking and seen and len(apart) == len(told):
        seen[0].join(lacking)
        apart.remove(lacking)
    return [*apart, *seen]


def _share(one: Task, other: Task) -> bool:
    return not set(one.images).isdisjoint(other.images)


Feedback = list[Mapping[str, Any]]


def rows_of(
    sample: Sample,
    tasks: Sequence[Task],
    made_by: Mapping[str, Any],
    may_show_minor: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    context, places = sample["context"], places_of(sample)
    own = []
    for task in tasks:
        images = set(task.images)
        shown = [
            n for n in places if any(one["sha256"] in images for one in context[n]["pictures"])
        ]
        own.append(list(dict.fromkeys([places[0], *task.posts, *shown])))
    feedback = _shared_out(sample, own)
    named = {place for posts in own for place in posts}
    own[0].extend(place for place in places if place not in named)
    written = SpanIndex(texts_of(context))
    for nth, task in enumerate(tasks):
        modified = bool(task.fillings) and not written.holds(task.prompt)
        waits = any(one in may_show_minor for one in task.images)
        yield {
            **sample,
            "id": _name(sample, task, nth),
            "post_urls": [context[place]["url"] for place in own[nth]],
            "prompt": task.prompt,
            "quality": quality_with(task.prompt, sample["quality"]),
            "prompt_modified": sample["prompt_modified"] or modified,
            "prompt_fill_blank": bool(task.fillings),
            "community_feedback": feedback[nth],
            "input_images": task.inputs,
            "output_images": task.outputs,
            "screenshot": task.screenshot,
            "review": [*sample["review"], *([Review.MAY_SHOW_MINOR.value] if waits else [])],
            "sample_digest": sample_digest(task.prompt, task.inputs),
            "provenance": _provenance(sample, task, made_by),
        }


def without_task(sample: Sample, made_by: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a sample whose images show no coherent task: its words stay for analysis."""
    return {
        **sample,
        "quality": at_most_analysis(sample["quality"]),
        "output_images": [],
        "provenance": _provenance(sample, Task(sample["prompt"]), made_by),
    }


def quality_with(prompt: str, quality: str) -> str:
    """The quality of a sample with this prompt: what is no whole task is for analysis only."""
    whole = not placeholders(prompt) and not MARK.search(prompt)
    return quality if whole else at_most_analysis(quality)


def at_most_analysis(quality: str) -> str:
    return "Analysis" if quality == "Benchmark" else quality


def _name(sample: Sample, task: Task, nth: int) -> str:
    if not nth and not task.fillings:
        return str(sample["id"])
    # Completions may share inputs; of other tasks each has its own.
    own = task.shown_by if task.fillings else task.images
    first = next(one.sha256 for one in images_of(sample) if one.sha256 in own)
    return sample_id(sample["id"], first)


def _shared_out(sample: Sample, own: Sequence[Sequence[int]]) -> list[Feedback]:
    context = sample["context"]
    place = {post["url"]: number for number, post in enumerate(context)}
    # All tasks have the primary post; what stands below it alone goes to the first.
    owner = {number: nth for nth, posts in reversed([*enumerate(own)]) for number in posts}
    given: list[Feedback] = [[] for _ in own]
    for said in sample["community_feedback"]:
        number = place[said["post_url"]]
        while number >= 0 and number not in owner:
            number = context[number]["parent"]
        given[owner.get(number, 0)].append(said)
    return given


def _provenance(sample: Sample, task: Task, made_by: Mapping[str, Any]) -> str:
    said = dict(made_by)
    if task.fillings:
        blanks = [{"placeholder": blank, "value": value} for blank, value in task.fillings]
        said |= {"template": sample["prompt"], "blanks": blanks}
    return provenance_with(sample, "roles", said)
