"""Published prompts become posts: nothing of them is lost, changed or mixed up."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.build import build
from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.collect.urls import canonical_url
from echo_hf.config.loading import parse_config
from echo_hf.config.sections import Posts
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.blanks import placeholders

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "map_prompt_posts.py"
STATUS = re.compile(r"https://x\.com/\w+/status/(\d+)")
# The smallest image there is in this format: one transparent point.
GIF = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
INVENTED: list[dict[str, Any]] = [
    {
        "case": 1,
        "title": "紙の狐",
        "title_en": "Paper fox",
        "prompt": "雪の中の紙の狐\n",
        "prompt_en": "A paper fox in the snow\n",
        "author": "@mira_draws",
        "image": "fox.gif",
        "alt_text": "狐",
        "alt_text_en": "A fox",
        "source_links": [
            {"url": "https://foxes.example/1#top"},
            {"url": "https://twitter.com/mira_draws/status/4194304?s=20"},
        ],
    },
    {"case": 2, "source_links": [{"url": "https://foxes.example/1"}], "image": "../1/fox.gif"},
    {"case": 3, "source_links": [{"url": "https://foxes.example/1#other"}], "image": "none.gif"},
    {"case": 4, "source_links": []},
]

TARGETED: dict[str, Any] = {
    "name": "prompt-posts",
    "target": {
        "name": "GPT-4o image generation",
        "developer": "OpenAI",
        "released": "2025-03-25",
        "aliases": ["4o", "gpt-image-1"],
        "others": ["DALL-E", "Midjourney"],
    },
    "engines": {"text": {"kind": "rules"}},
}


def _mapped(cases: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(SCRIPT), str(cases), str(out), *options]
    subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


@pytest.fixture
def invented(tmp_path: Path) -> Path:
    """A file of four cases, the first with its image."""
    path = tmp_path / "prompts" / "cases.json"
    path.parent.joinpath("raw", "1").mkdir(parents=True)
    path.parent.joinpath("raw", "1", "fox.gif").write_bytes(GIF)
    cases = [{**INVENTED[0], **case} for case in INVENTED]
    path.write_text(json.dumps(cases), "utf-8")
    return path


@pytest.fixture
def real(test_data: Path) -> Path:
    """A hundred cases that people really posted."""
    return test_data / "posts" / "gpt4o_prompt_posts" / "cases.json"


def test_a_case_is_a_post(invented: Path, tmp_path: Path) -> None:
    """The post of X is its address and gives its time; the image lies beside the posts."""
    post = _mapped(invented, tmp_path / "out" / "posts.jsonl")[0]

    assert post == {
        "url": "https://x.com/i/status/4194304",  # 2 to the 22nd: one millisecond
        "author": "mira_draws",
        "text": "Paper fox\n\nPrompt: A paper fox in the snow",
        "keywords": ["prompt share"],
        "timestamp": "2010-11-04T01:42:54.658000+00:00",
        "lang": "en",
        "pictures": [{"path": "pictures/1.gif", "alt_text": "A fox"}],
    }
    assert (tmp_path / "out" / "pictures" / "1.gif").read_bytes() == GIF


def test_the_original_language_has_no_language_code(invented: Path, tmp_path: Path) -> None:
    """The label is that of the collection; the code is left out, as a case does not give it."""
    post = _mapped(invented, tmp_path / "posts.jsonl", "--language", "original")[0]

    assert post["text"] == "紙の狐\n\n提示词：雪の中の紙の狐"
    assert post["pictures"][0]["alt_text"] == "狐"
    assert "lang" not in post


def test_no_two_cases_share_an_address(invented: Path, tmp_path: Path) -> None:
    """A link that is taken, and none at all, give way to an address that is plainly invented."""
    posts = _mapped(invented, tmp_path / "posts.jsonl")

    assert [post["url"] for post in posts[1:]] == [
        "https://foxes.example/1",
        "https://example.org/prompt-posts/3",
        "https://example.org/prompt-posts/4",
    ]
    assert not any("timestamp" in post for post in posts[1:])


def test_only_a_case_s_own_image_is_taken(invented: Path, tmp_path: Path) -> None:
    """A path into another case's folder, a link out of the collection, an absent file: none."""
    secret = tmp_path / "secret.gif"
    secret.write_bytes(GIF)
    invented.parent.joinpath("4").mkdir()
    invented.parent.joinpath("4", "fox.gif").symlink_to(secret)

    posts = _mapped(invented, tmp_path / "posts.jsonl")

    assert [bool(post.get("pictures")) for post in posts] == [True, False, False, False]
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["1.gif"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "cannot read"),
        ("{}", "expected a list of cases"),
        ('[{"case": 1}]', "lacks author, prompt, prompt_en, title, title_en"),
        (json.dumps([INVENTED[0], INVENTED[0]]), "two cases of one number"),
    ],
)
def test_a_bad_file_is_told_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    """What is wrong with it is said, and nothing is written."""
    tmp_path.joinpath("cases.json").write_text(content, "utf-8")
    command = [sys.executable, str(SCRIPT), "cases.json", "posts.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode != 0
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not tmp_path.joinpath("posts.jsonl").exists()


def test_the_time_in_a_number_is_the_time_x_gives(test_data: Path) -> None:
    """For each post of a real page, up to the fraction that X leaves out."""
    page = json.loads((test_data / "posts" / "x_api_v2" / "noflat.jsonl").read_text("utf-8"))
    posts = [*page["data"], *page["includes"]["tweets"]]
    time_of = runpy.run_path(str(SCRIPT))["time_of"]

    given = [datetime.datetime.fromisoformat(post["created_at"]) for post in posts]
    assert [time_of(int(post["id"])).replace(microsecond=0) for post in posts] == given


@pytest.mark.parametrize(
    ("language", "end", "label"), [("en", "_en", "Prompt: "), ("original", "", "提示词：")]
)
def test_real_cases_end_as_posts(
    language: str, end: str, label: str, real: Path, tmp_path: Path
) -> None:
    """Each of a hundred cases is one post with all of its prompt; 94 are posts of X, with a time.

    The five image files that lie beside them are taken in as the bytes they are.
    """
    cases = json.loads(real.read_text("utf-8"))
    _mapped(real, tmp_path / "posts.jsonl", "--language", language)
    records = read_records([Posts(source="jsonl", path=tmp_path / "posts.jsonl")])
    result = run_stage(Collect(ImageStore(tmp_path / "store")), records)
    posts = result.dataset.to_list()

    assert (len(posts), len(result.rejects), len(result.notices)) == (100, 0, 0)
    assert len({post["url"] for post in posts}) == 100
    for case, post in zip(cases, posts, strict=True):
        assert post["text"].endswith(f"{label}{case[f'prompt{end}'].strip()}")
        assert post["author"] == case["author"].lstrip("@")
        number = STATUS.search(json.dumps(case["source_links"]))
        assert post["post_id"] == (number[1] if number else post["url"])
        assert (post["timestamp"] is None) == (number is None)
    assert sum(post["platform"] == "x" for post in posts) == 94
    files = sorted((real.parent / "raw").glob("*/*.png"))
    digests = {hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    assert {one["sha256"] for post in posts for one in post["pictures"]} == digests


@pytest.mark.parametrize(("language", "end"), [("en", "_en"), ("original", "")])
def test_real_cases_end_as_samples(language: str, end: str, real: Path, tmp_path: Path) -> None:
    """Plain rules find prompts to the letter; five posts with an image are left to a model.

    Templates that nobody filled in are for analysis; all others are in the benchmark.
    """
    cases = json.loads(real.read_text("utf-8"))
    posts = _mapped(real, tmp_path / "posts.jsonl", "--language", language)
    config = parse_config(
        {**TARGETED, "posts": [{"source": "jsonl", "path": str(tmp_path / "posts.jsonl")}]}, "here"
    )
    release = build(config, runs=tmp_path / "runs")

    def prompts(*parts: str) -> set[tuple[str, str]]:
        return {
            (sample["post_urls"][0], sample["prompt"])
            for part in parts
            for sample in release.datasets[part].select_columns(["post_urls", "prompt"])
        }

    drawable = {one for one in prompts("analysis") if not placeholders(one[1])}
    wanted = [
        (canonical_url(post["url"]), case[f"prompt{end}"].strip())
        for case, post in zip(cases, posts, strict=True)
    ]

    assert prompts("analysis") <= set(wanted)
    assert len(prompts("analysis")) == len(release.datasets["analysis"]) >= 93
    assert prompts("text_to_image", "image_to_image") == drawable
    assert len(drawable) > len(cases) / 2
