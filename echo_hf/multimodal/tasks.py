"""What pictures are a task together, and which answers speak of the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Key = TypeVar("Key")
Fillings = tuple[tuple[str, str], ...]


@dataclass(eq=False)
class Task:
    """One task that the pictures show.

    Attributes:
        prompt: The prompt, completed where it is a template.
        fillings: Placeholder and value of each blank that was filled, in the order given.
        inputs: Digests of its input pictures.
        outputs: Digests of its outputs.
        posts: Places of its posts in the sample's context, the most important first.
        screenshot: Digest of the conversation or collage that it is read from.
    """

    prompt: str
    fillings: Fillings = ()
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    screenshot: str | None = None

    @property
    def shown_by(self) -> list[str]:
        """Digests of its outputs and its screenshot."""
        return [*self.outputs, *filter(None, [self.screenshot])]

    @property
    def pictures(self) -> list[str]:
        """Digests of all its pictures."""
        return [*self.shown_by, *self.inputs]

    def join(self, other: Task) -> None:
        """Takes in what another answer says about the same task."""
        for mine, others in ((self.inputs, other.inputs), (self.outputs, other.outputs)):
            mine.extend(one for one in others if one not in mine)
        self.posts.extend(one for one in other.posts if one not in self.posts)
        self.screenshot = self.screenshot or other.screenshot


def joined(tasks: Iterable[tuple[Key, Task]]) -> list[Task]:
    """Joins tasks that have one key.

    Args:
        tasks: Each with its key.

    Returns:
        One task a key, in the order of their first appearance.

    Example:
        >>> cat, more = Task("a cat", outputs=["x"]), Task("a cat", outputs=["y"])
        >>> [task.outputs for task in joined([("a cat", cat), ("a cat", more)])]
        [['x', 'y']]
    """
    first: dict[Key, Task] = {}
    for key, task in tasks:
        if first.setdefault(key, task) is not task:
            first[key].join(task)
    return list(first.values())


def tries(tasks: Sequence[Task]) -> list[Task]:
    """Joins what belongs to the same try of a prompt.

    What shares a picture is one try. People who put in pictures of their own made tries of their
    own, or a system would be given the pictures of all of them at once. All that was made from the
    words alone is one try, apart from those with inputs: nobody knows that it came from theirs.
    What is told without any picture belongs to the first try.

    Args:
        tasks: Tasks of one prompt.

    Returns:
        The tries, in the order of their first tasks.

    Example:
        >>> told = [Task("p", outputs=["a"]), Task("p", inputs=["b"]), Task("p", inputs=["c"])]
        >>> [(task.inputs, task.outputs) for task in tries(told)]
        [([], ['a']), (['b'], []), (['c'], [])]
    """
    apart: list[Task] = []
    for task in tasks:
        first, *others = [*(one for one in apart if _share(one, task)), task]
        for other in others:
            first.join(other)
        apart = [*(one for one in apart if one not in others), *([task] if first is task else [])]
    first_shown = next((task for task in apart if task.pictures), None)
    return joined((_same_try(task if task.pictures else first_shown), task) for task in apart)


def told_and_seen(told: Sequence[Task], seen: Sequence[Task]) -> list[Task]:
    """Joins what is told in words with the screenshots that show it.

    Args:
        told: Tries of a prompt.
        seen: Tasks of the same prompt in different screenshots.

    Returns:
        All tasks: a try stands with the first screenshot task that shares a picture with it; where
        none shares any, the first try that lacks inputs or outputs with the first screenshot, which
        may show them. A try that has both needs no screenshot, and stays what it is.

    Example:
        >>> told = [Task("p", outputs=["a"]), Task("p", inputs=["b"])]
        >>> seen = [Task("p", inputs=["b"], screenshot="c")]
        >>> [task.pictures for task in told_and_seen(told, seen)]
        [['a'], ['c', 'b']]
    """
    apart = []
    for task in told:
        same = next((one for one in seen if _share(one, task)), None)
        if same:
            same.join(task)
        else:
            apart.append(task)
    lacking = next((task for task in apart if not _is_whole(task)), None)
    if lacking and seen and len(apart) == len(told):
        seen[0].join(lacking)
        apart.remove(lacking)
    return [*apart, *seen]


def _same_try(task: Task | None) -> Task | None:
    return task if task and task.inputs else None


def _is_whole(task: Task) -> bool:
    return bool(task.inputs and task.outputs)


def _share(one: Task, other: Task) -> bool:
    return not set(one.pictures).isdisjoint(other.pictures)
