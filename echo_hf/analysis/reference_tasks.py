"""What kind of task each prompt of a reference set is, which no reference set says itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.engines.rules.folding import fold, without_addresses
from echo_hf.engines.rules.verdicts.tasks import LONGEST, Wish, task_of


def task_by_rules(prompt: str, inputs: int) -> str:
    """The kind of a task by the plain rules that the `rules` engine uses in the stage `feedback`.

    Args:
        prompt: What is asked for.
        inputs: How many pictures it comes with.

    Returns:
        One of the tasks of `tables.SAMPLES`.

    Example:
        >>> task_by_rules("a photo of a bench", 0), task_by_rules("make the frisbee a ball", 1)
        ('text_to_image', 'edit')
    """
    text = without_addresses(prompt)
    return task_of(Wish(fold(text)[:LONGEST], text[:LONGEST], inputs))


def reference_tasks(references: Sequence[PromptSet], inputs: Sequence[int]) -> list[Counter[str]]:
    """Counts the tasks of reference sets.

    Args:
        references: The sets.
        inputs: For each set, how many pictures its prompts come with.

    Returns:
        For each set, prompts by task.
    """
    return [
        Counter(task_by_rules(prompt, pictures) for prompt in one.prompts)
        for one, pictures in zip(references, inputs, strict=True)
    ]
