"""Stop asking a question when none of the answers to it can be used."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datasets import Dataset
from pydantic import BaseModel

from echo_hf._infra.text import clean
from echo_hf.engines.base import Completion, Failed, Request
from echo_hf.errors import UnusableAnswersError
from echo_hf.pipeline.answer_store import MAX_TRIES, Store, compute_request_keys
from echo_hf.pipeline.answers import Failure, NoAnswers, parse
from echo_hf.reasons import Reason
from echo_hf.tables import arrow_batches

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import ModelStage

MAX_UNUSABLE = 10  # answers, none of which can be used, after which a question is asked no more
ROWS_PER_BATCH = 100  # whose stored answers are read at once, until one can be used
MAX_QUOTED_CHARACTERS = 160
IGNORED_REASONS = frozenset({Failed.NEEDS_MODEL, Failed.NOT_ANSWERED, Failed.DAMAGED_ANSWER})


def signature_of(stage: ModelStage) -> str:
    answers = stage.answers or NoAnswers()
    return json.dumps(answers.signature, sort_keys=True, default=str)


@dataclass
class UsableAnswers:
    """Checks the answers to a stage's question until one of them can be used.

    Of fewer than `MAX_UNUSABLE` answers none need be of use where the engine has answered another
    question in this run.

    Args:
        stage: The stage, which reads its stored answers.
        dataset: All its rows, of which a run may ask about some.
        store: Where its answers are kept.
        is_sealed: Whether no answer may be quoted.
    """

    stage: ModelStage
    dataset: Dataset
    store: Store
    is_sealed: bool = field(default=False, kw_only=True)
    is_usable: bool = False
    unusable: int = 0
    given_up: int = 0
    first: str = ""
    has_answered: bool = False  # whether anything came but errors
    is_searched: bool = False  # what was stored before this run, which does not change

    def add(
        self, request: Request, completion: Completion, answer: BaseModel | Failure, *, last: bool
    ) -> None:
        """Count an arrived answer; `last` means that its request is given up after it."""
        if self.is_usable:
            return
        failure = answer if isinstance(answer, Failure) else None
        reason: Reason | None
        reason = answer.reason if isinstance(answer, Failure) else self.stage.unusable(answer)
        if reason in IGNORED_REASONS:
            return
        self.is_usable = reason is None
        if self.is_usable:
            self.store.proven.add(signature_of(self.stage))
        if reason is not None:
            self.has_answered = self.has_answered or reason != Failed.ENGINE_ERROR
            self.unusable += 1
            self.given_up += last or failure is None
            self.first = self.first or self._describe(request, completion, reason, failure)

    def is_hopeless(self) -> bool:
        """Return whether to stop asking: enough answers came, and none can be used."""
        # Of calls that are under way together, the second tries have yet to come.
        is_enough = self.unusable >= MAX_UNUSABLE and self.given_up >= MAX_UNUSABLE // MAX_TRIES
        return is_enough and not self.find_stored()

    def check(self) -> None:
        """Raise where there are answers and none can be used.

        Raises:
            UnusableAnswersError: It quotes one unless it is sealed, and says which form is wanted.
        """
        if self.is_usable or self.find_stored() or not self.unusable:
            return
        # Few may be refused or cut by chance, of an engine that answers other questions.
        if self.unusable < MAX_UNUSABLE and signature_of(self.stage) in self.store.proven:
            return
        summary = f"none of {self.unusable:,} answers can be used"
        if self.unusable == 1:
            summary = "the only answer cannot be used"
        advice = "mend the model, the prompt or the config, and add --again to ask these anew"
        if not self.has_answered:
            advice = "mend the server or its base_url in the config: the same command asks again"
        raise UnusableAnswersError(f"{summary}, {self.first}: {advice}; or go on with --keep-going")

    def find_stored(self) -> bool:
        """Return whether an answer of an earlier run can be used."""
        if self.is_searched:
            return self.is_usable
        self.is_searched = True
        summary = UsableAnswers(self.stage, self.dataset, self.store, is_sealed=self.is_sealed)
        answers = self.stage.answers or NoAnswers()
        for rows in arrow_batches(self.dataset, ROWS_PER_BATCH):
            requests = [request for row in self.stage.requests(rows) for request in row]
            keys = compute_request_keys(answers.signature, requests)
            completions = self.store.get(keys)
            for key, request in dict(zip(keys, requests, strict=True)).items():
                if (completion := completions.get(key)) is not None:
                    answer = parse(request, completion, key)
                    summary.add(request, completion, answer, last=True)
            if summary.is_usable:
                self.is_usable = True
                return True
        self.unusable = max(self.unusable, summary.unusable)
        self.first = self.first or summary.first
        self.has_answered = self.has_answered or summary.has_answered
        return False

    def _describe(
        self, request: Request, completion: Completion, reason: Reason, failure: Failure | None
    ) -> str:
        text = completion.text or completion.error or completion.finish_reason
        if self.is_sealed:
            return f"such as one that is not shown ({reason}: {reason.meaning})"
        cause = failure.detail if failure and reason == Failed.OFF_SCHEMA else reason.meaning
        form = self.stage.wanted_form(request)
        quoted = clean(text, MAX_QUOTED_CHARACTERS)
        return f"such as {quoted!r} ({reason}: {clean(cause)}), where {form} is wanted"
