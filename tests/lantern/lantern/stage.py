"""A stage: how many words a prompt has, and its first one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from datasets import Value

from echo_hf.pipeline.stage import Stage, StageRows
from echo_hf.reasons import NoticeReason
from echo_hf.tables import SAMPLES, Column


class Wordy(NoticeReason):
    """What was noticed of a prompt."""

    MANY_WORDS = "lantern_many_words", "its prompt has more words than one looks at"


@dataclass(frozen=True)
class Words(Stage):
    """Counts the words of prompts."""

    name: ClassVar[str] = "lantern_words"
    version: ClassVar[int] = 1
    after: ClassVar[str] = "privacy"
    inputs = SAMPLES
    adds: ClassVar[dict[str, Column]] = {
        "lantern_count": Column(Value("int64"), "words of the prompt", content="derived"),
        "lantern_first": Column(Value("string"), "first word of it", content="post_text"),
    }

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = StageRows(self.outputs)
        for number, row in enumerate(self.input_rows(table)):
            words = row["prompt"].split()
            if len(words) > 6:
                rows.add_issue(number, row["id"], Wordy.MANY_WORDS, str(len(words)))
            columns = {"lantern_count": len(words), "lantern_first": words[0]}
            rows.keep(number, row["id"], {"id": row["id"], **columns})
        return rows.to_table()
