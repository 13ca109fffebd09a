"""What a config says of its analysis: prompt sets to compare with, models, draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from echo_hf.config_fields import File, Name, Section, Whole, Words

OWN = "benchmark"
PYTHIA = "EleutherAI/pythia-12b"
MINI_LM = "sentence-transformers/all-MiniLM-L6-v2"
WITHOUT_COLUMN = "text"
Format = Literal["text", "jsonl", "csv", "tsv"]


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str | Path) else given


class Reference(Section):
    """A prompt set to compare with: files, or a dataset on the Hub.

    Attributes:
        name: What tables and plots call it.
        path: A file or a list of files, relative to the config; null for a dataset.
        format: `text`, one prompt a line; `jsonl`, `csv` or `tsv`, one a row; null to tell it by
            the name: .jsonl, .csv, .tsv, anything else is text.
        column: The column or key that holds the prompt; needed for all but text.
        dataset: `ORGANISATION/NAME` on the Hub.
        config: Its config, null for the default one.
        split: Its split.
        revision: Its tag or commit; needed for a dataset, since a branch may move.
        inputs: Pictures that each prompt comes with: 1 for a set of edits. It tells rules that a
            prompt without a word about a picture is an edit all the same.
    """

    name: Name
    path: Annotated[tuple[File, ...], BeforeValidator(_several)] = ()
    format: Format | None = None
    column: Words | None = None
    dataset: Words | None = None
    config: Words | None = None
    split: Words = "train"
    revision: Words | None = None
    inputs: Annotated[Whole, Field(ge=0, le=100)] = 0

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.path) == bool(self.dataset):
            raise ValueError("expected either path, one file or several, or dataset on the Hub")
        if self.dataset and not (self.revision and self.column):
            raise ValueError("expected revision and column beside dataset")
        if self.dataset and self.format:
            raise ValueError("expected no format beside dataset: it goes with path")
        wants = [file for file in self.path if self.format_of(file) != WITHOUT_COLUMN]
        if wants and self.column is None:
            raise ValueError(f"expected the column of {wants[0].name!r} that holds the prompt")
        return self

    def format_of(self, file: Path) -> Format:
        """How a file of it is read."""
        by_name: dict[str, Format] = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv"}
        return self.format or by_name.get(file.suffix.lower(), "text")


class PerplexityOptions(Section):
    """The language model that says how natural a prompt is.

    Attributes:
        model: A causal language model on the Hub, or its folder; the paper's is Pythia-12B.
        revision: Its tag or commit.
        device: `auto`, spread over what there is, or one as torch names it, such as `cuda:0`.
        dtype: Precision of the weights.
        batch_tokens: Most tokens of a batch, padding included; halved when memory runs out.
        window: Most tokens that the model sees at once; null for what it was trained with.
        stride: New tokens of each further window; null for half of the window.
    """

    model: Words = PYTHIA
    revision: Words | None = None
    device: Words = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch_tokens: Annotated[Whole, Field(ge=1, le=10_000_000)] = 16_384
    window: Annotated[Whole, Field(ge=2)] | None = None
    stride: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _overlapping(self) -> Self:
        if self.window and self.stride and self.stride >= self.window:
            raise ValueError(
                f"stride is {self.stride} and window {self.window}: expected a smaller stride, so "
                "that every token but the first has something before it"
            )
        return self


class EmbeddingOptions(Section):
    """The sentence-embedding model that places prompts on a map.

    Attributes:
        model: A text encoder on the Hub, or its folder.
        revision: Its tag or commit.
        device: As torch names it; null for an accelerator where there is one.
        batch_size: Prompts at once.
        longest: Most tokens of a prompt; what is longer is cut, and counted.
    """

    model: Words = MINI_LM
    revision: Words | None = None
    device: Words | None = None
    batch_size: Annotated[Whole, Field(ge=1, le=4096)] = 32
    longest: Annotated[Whole, Field(ge=8, le=32_768)] = 256


class AnalysisOptions(Section):
    """How a benchmark is analyzed.

    Attributes:
        references: Prompt sets to compare with.
        perplexity: The language model; null to leave perplexity out.
        embedding: The embedding model; null to leave the map out.
        at: Number of prompts at which first bigrams are compared; null for the smallest set.
        seed: Of every random draw.
        draws: Draws of the bootstrap.
        similarity: Share of common three-word runs, 0 to 1, from which prompts are near-duplicates.
        examples: Most examples of each keyword.
        font: A font file for the word cloud; null for wordcloud's own, which has no characters of
            Chinese, Japanese or Korean.
    """

    references: tuple[Reference, ...] = ()
    perplexity: PerplexityOptions | None = None
    embedding: EmbeddingOptions | None = None
    at: Annotated[Whole, Field(ge=1)] | None = None
    seed: Annotated[Whole, Field(ge=0)] = 0
    draws: Annotated[Whole, Field(ge=0, le=100_000)] = 1000
    similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    examples: Annotated[Whole, Field(ge=0, le=1000)] = 5
    font: File | None = None

    @field_validator("references")
    @classmethod
    def _distinct(cls, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        names = [OWN, *(one.name for one in references)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice == OWN:
            raise ValueError(f"one is called {OWN!r}: expected another name, which is our own")
        if twice is not None:
            raise ValueError(f"two are called {twice!r}: expected a name for each")
        return references

    def located(self, folder: Path) -> AnalysisOptions:
        """The same options, with files below a folder where they are relative."""
        references = tuple(
            one.model_copy(update={"path": tuple(folder / file for file in one.path)})
            for one in self.references
        )
        font = folder / self.font if self.font else None
        return self.model_copy(update={"references": references, "font": font})
