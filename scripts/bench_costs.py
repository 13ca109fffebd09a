"""Count what a release costs by how its posts are asked about, in tokens and in dollars.

    python scripts/bench_costs.py [--posts 10000] [--models gpt-5.4-mini ...] [--tokenizer FILE]

First the prompt tokens of the stage `relevance` for each relevant post, one post a request and
several, on the bundled posts, which are drawn by hand, and on as many generated ones. Then the
dollars of all stages, by the shares of calls and the prices of the dated list, for a released
sample of the bundled corpus, and for corpora of 68,000 and 1,000,000 posts: one by one, several
posts a request, in batches, and both; beside them what X charges for as many posts. Nobody is
asked. Tokens are our estimate, four Latin letters each; with `--tokenizer`, a `tekken` file of the
package mistral-common, those of the first table are counted by it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from bench_scale import posts as generate_posts
from rich.console import Console
from rich.table import Table as Screen

from echo_hf.builder.build import open_run
from echo_hf.builder.update import plan_stage
from echo_hf.collect.platforms.x import PRICE
from echo_hf.collect.relevance import Relevance
from echo_hf.config.checks import EngineChoice
from echo_hf.config.loading import Config, load_config
from echo_hf.config.sections import Target
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Request, Text
from echo_hf.engines.planner import estimate_tokens
from echo_hf.pipeline.packing import group_by_packing, pack_requests
from echo_hf.tables import POSTS, arrow_rows

SIZES = (1, 4, 16, 64)
CORPORA = (68_000, 1_000_000)
RELEVANT_SCORES = frozenset({4, 5})
PROVIDER_MODELS = ("gpt-5.4-nano", "gpt-5.4-mini", "gpt-6-luna", "gemini-3.8-flash")
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
CountTokens = Callable[[str], int]


def open_tokenizer(file: Path | None) -> CountTokens:
    if file is None:
        return estimate_tokens
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer: Any = Tekkenizer.from_file(file)
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


def build_bundled() -> tuple[pa.Table, Config, set[str], int]:
    """Return the bundled posts, their config, the relevant ones, and the number of samples."""
    config = load_config(shipped_config())
    with TemporaryDirectory() as folder, open_run(config, folder) as run:
        results = list(run.results("splits"))
        scored = results[1].dataset.to_list()
        relevant = {post["url"] for post in scored if _score(post) in RELEVANT_SCORES}
        samples = sum("analysis" in row["splits"] for row in results[-1].dataset)
        return arrow_rows(results[0].dataset).select(list(POSTS.columns)), config, relevant, samples


def _score(post: Mapping[str, Any]) -> int | None:
    score: int | None = (post["relevance"] or {}).get("score")
    return score


def generate_table(count: int) -> tuple[pa.Table, set[str]]:
    """Return generated posts, of which those are relevant that show a prompt."""
    plain = dict.fromkeys(POSTS.columns)
    rows, relevant = list[dict[str, Any]](), set[str]()
    for post in generate_posts(count):
        images = [{"sha256": None, "url": None, **image} for image in post.get("pictures", ())]
        pictures = [
            {key: image.get(key) for key in ("sha256", "url", "alt_text")} for image in images
        ]
        fields = {"url": post["url"], "text": post["text"], "keywords": post["keywords"]}
        rows.append({**plain, **fields, "pictures": pictures})
        if "parent_url" not in post:
            relevant.add(post["url"])
    return pa.Table.from_pylist(rows, schema=POSTS.schema), relevant


def list_requests(table: pa.Table, target: Target, size: int) -> Iterator[Request]:
    stage = Relevance(target, posts_per_request=size)
    requests = (request for row in stage.requests(table) for request in row)
    return map(pack_requests, group_by_packing(requests, lambda request: request))


def count_prompt(request: Request, count: CountTokens) -> int:
    texts = (part for message in request.messages for part in message.parts)
    return sum(count(part.text) for part in texts if isinstance(part, Text))


def show_tokens(
    console: Console, corpora: Mapping[str, tuple[pa.Table, Target, set[str]]], count: CountTokens
) -> None:
    screen = Screen("posts", "a request", "requests", "prompt tokens", "a relevant post", "share")
    for name, (table, target, relevant) in corpora.items():
        single = 0
        for size in SIZES:
            requests = list(list_requests(table, target, size))
            tokens = sum(count_prompt(request, count) for request in requests)
            single = single or tokens
            per_post = f"{tokens / len(relevant):,.1f}"
            figures = (f"{len(requests):,}", f"{tokens:,}", per_post, f"{tokens / single:.3f}")
            screen.add_row(name, str(size), *figures)
    console.print(screen)


def plan_with(config: Config, model: str, posts: int) -> dict[str, float]:
    """Return the dollars of each way of asking a model about so many posts."""
    options = {"base_url": GEMINI, "api_key_env": "HOME"} if model.startswith("gemini") else {}
    engine = EngineChoice(kind="openai", model=model, **{"api_key_env": "HOME", **options})
    ways: dict[str, float] = {}
    changed = config.model_copy(update={"engines": dict.fromkeys(config.engines, engine)})
    with TemporaryDirectory() as folder, open_run(changed, folder, writes=False) as run:
        for name in run.stages:
            if (asked := run.engine(name)) is not None:
                planned = plan_stage(run, name, asked, posts, counted=False)
                for way, usd in planned.ways.items():
                    ways[way] = ways.get(way, 0.0) + (usd.likely if usd else 0.0)
    return ways


def show_dollars(
    console: Console, config: Config, models: Sequence[str], per_sample: float
) -> None:
    words = ("one by one", "16 posts a request", "in batches", "both")
    screen = Screen(
        "model", "posts", *words, "a sample, one by one", "a sample, both", "X, posts alone"
    )
    for posts in CORPORA:
        for model in models:
            usd = list(plan_with(config, model, posts).values())
            a_sample = (f"${amount / (posts * per_sample):.4f}" for amount in (usd[0], usd[3]))
            amounts = (f"${amount:,.0f}" for amount in usd)
            reading = f"${posts * PRICE.usd_per_post:,.0f}"
            screen.add_row(model, f"{posts:,}", *amounts, *a_sample, reading)
    console.print(screen)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--posts", type=int, default=10_000, help="posts to generate")
    parser.add_argument("--models", nargs="+", default=PROVIDER_MODELS, help="models of the list")
    parser.add_argument("--tokenizer", type=Path, help="a tekken file; our estimate without one")
    options = parser.parse_args()
    console = Console(width=160)
    bundled, config, relevant, samples = build_bundled()
    generated, shown = generate_table(options.posts)
    corpora = {
        f"{len(bundled)} bundled": (bundled, config.target, relevant),
        f"{options.posts:,} generated": (generated, config.target, shown),
    }
    show_tokens(console, corpora, open_tokenizer(options.tokenizer))
    console.print(f"{samples} samples of {len(bundled)} posts")
    show_dollars(console, config, options.models, samples / len(bundled))


if __name__ == "__main__":
    main()
