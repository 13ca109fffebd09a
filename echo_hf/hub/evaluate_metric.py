"""The class behind the `evaluate` module: what a user can get wrong is one line."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import evaluate
import pyarrow as pa
from datasets import Features

from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_configs import Stored, config_named


@contextmanager
def whole(parts: Iterable[Stored], features: Features) -> Iterator[Iterator[Stored]]:
    """Takes all parts before it gives any, with one of them in memory at a time.

    `evaluate` cannot take back what it has written. So that nothing of a batch stays whose last
    row is wrong, parts lie in a file of their own first, which goes when the block is left.

    Args:
        parts: Rows by column; taken one after the other, and what that raises passes through.
        features: Of the columns.

    Yields:
        The same parts, and one without rows where there are none.
    """
    schema = features.arrow_schema
    with TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for part in parts:
                writer.write_table(pa.Table.from_pydict(dict(part), schema))
        file.seek(0)
        yield _read(file, schema)


def _read(file: object, schema: pa.Schema) -> Iterator[Stored]:
    empty = True
    for batch in pa.ipc.open_stream(file):
        empty = False
        yield batch.to_pydict()
    if empty:
        yield {name: [] for name in schema.names}


HOMEPAGE = "https://echo-bench.github.io"
CITATION = """@inproceedings{echo2026,
  title = {Constantly Improving Image Models Need Constantly Improving Benchmarks},
  author = {Ge, Jiaxin and Luo, Grace and Lee, Heekyung and Malpani, Nishant and Lian, Long and
    Wang, XuDong and Holynski, Aleksander and Darrell, Trevor and Min, Sewon and Chan, David M.},
  booktitle = {International Conference on Learning Representations},
  year = {2026},
}"""
OWN = frozenset(inspect.signature(evaluate.Metric.__init__).parameters)


class EchoMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """A measure of `echo_hf` as `evaluate` knows metrics.

    Args:
        config_name: Which measure: a name of `echo_hf.hub.evaluate_configs.CONFIGS`.
        **given: What `evaluate.load` passes on, and parameters of the measure, which `compute`
            then takes where it is given no others. `seed` is evaluate's own here.

    Raises:
        ScoreError: There is no such measure, or it has no such parameter.
    """

    data: Any  # the rows, while they are out of their file to be computed

    def __init__(self, config_name: str | None = None, **given: Any) -> None:
        self._config = config_named(config_name)
        self._options = {name: value for name, value in given.items() if name not in OWN}
        self._config.check_options(self._options)
        super().__init__(config_name, **{name: given[name] for name in given if name in OWN})
        # By this name `evaluate.combine` tells the results of several measures apart.
        self.info.module_name = self._config.name

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Adds one sample, or one rating."""
        given = {"predictions": prediction, "references": reference, **others}
        mine = self._config.columns.features
        self.add_batch(
            **{name: [one] for name, one in given.items() if name in mine or one is not None}
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Adds samples, or ratings: all of them, or none where one is wrong."""
        given = {"predictions": predictions, "references": references, **others}
        with whole(self._config.store(given), self._config.columns.features) as parts:
            for part in parts:
                super().add_batch(**part)

    def compute(
        self, *, predictions: Any = None, references: Any = None, **options: Any
    ) -> dict[str, Any] | None:
        """Computes the measure from all that was added; what was added stays if that fails."""
        self._config.check_installed()
        self._config.check_options(options)
        before = len(self)
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        if self.writer is None:
            raise ScoreError(
                f"{self._config.name}: nothing was added: expected predictions=, or add_batch() "
                "before compute()"
            )
        try:
            found: dict[str, Any] | None = super().compute(**{**self._options, **options})
        except BaseException:
            self._put_back(before)
            raise
        return found

    def _info(self) -> evaluate.MetricInfo:
        config = self._config
        info = evaluate.MetricInfo(
            description=f"ECHO's {config.name}: {config.description}",
            citation=CITATION,
            inputs_description=config.inputs_description,
            features=config.columns.features,
            homepage=HOMEPAGE,
            license="apache-2.0",
        )
        # So that rows stay in their file until they are read; evaluate refuses formats for all
        # but plain values at first, since it has numpy in mind.
        info.format = "arrow"
        return info

    def _compute(self, **given: Any) -> dict[str, Any]:
        columns = {name: given.pop(name) for name in self._config.columns.features}
        return self._config.compute(columns, given)

    def _enforce_nested_string_type(self, schema: Any, obj: Any) -> None:
        """Types were checked before, and there null is a value."""

    def _put_back(self, count: int) -> None:
        """Writes the first rows again, which a `compute` that failed has taken out."""
        # What several processes have added is one process's now, which cannot give it back.
        if self.data is None or self.num_process > 1:
            return
        taken, self.data = self.data, None
        if count:
            self.selected_feature_format = self.features
            self._init_writer()
        step = self._config.columns.at_once
        for start in range(0, count, step):
            self.writer.write_table(taken[start : min(start + step, count)])
        del taken
        for lock, path in zip(self.filelocks or (), self.file_paths or (), strict=True):
            Path(path).unlink()
            lock.release()
