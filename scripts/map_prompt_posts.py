"""Turn a published collection of image prompts into posts in our own format.

    python scripts/map_prompt_posts.py CASES.json OUT.jsonl [--language {en,original}]

CASES.json is a list of cases, each a prompt that somebody posted: `case` (a number), `title`,
`prompt`, `alt_text` and their English `title_en`, `prompt_en`, `alt_text_en`, `author`, `image` (a
file name) and `source_links` ([{"url"}]).

A case becomes one post: its title, a blank line, and its prompt after "Prompt: ", or "提示词：" in
the original Chinese, found by the search term "prompt share". Its address is the first of the
links that is a post of X, whose number holds the time; else the first link, and no time. A case
without a link, or whose link another case has already, gets the address
`https://example.org/prompt-posts/<case>`, which is invented. Image files in the folders `<case>`,
`raw/<case>` or `cases/<case>` beside CASES.json are copied to `pictures` beside OUT.jsonl; without
the file there is no image to describe, and the post has none.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from echo_hf.collect.urls import canonical_url, platform_of, post_id_of

Case = Mapping[str, Any]

INVENTED = "https://example.org/prompt-posts"
FOLDERS = ("", "raw", "cases")
IMAGES = "pictures"
KEYWORD = "prompt share"
# What people write before a prompt that they share, in the language of the collection.
LABELS = {"en": "Prompt: ", "original": "提示词："}
# The first milliseconds of X's numbers; 22 bits below the time tell posts of one of them apart.
X_EPOCH = datetime.datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=datetime.UTC)
X_SHIFT = 22


def time_of(number: int) -> datetime.datetime:
    """When a post of X was written, to the millisecond, from its number.

    Example:
        >>> time_of(1 << 22).isoformat(timespec="milliseconds")
        '2010-11-04T01:42:54.658+00:00'
    """
    return X_EPOCH + datetime.timedelta(milliseconds=number >> X_SHIFT)


def post_of_x(url: str) -> int | None:
    """The number of a post of X; null for any other address."""
    number = post_id_of(url)
    return int(number) if platform_of(url) == "x" and number.isdecimal() else None


def addresses(cases: Sequence[Case]) -> list[str]:
    """An address for each case, no two the same."""
    given: dict[str, None] = {}
    for case in cases:
        links = [canonical_url(link.get("url")) for link in case.get("source_links") or []]
        known = [link for link in links if link]
        best = next((link for link in known if post_of_x(link)), known[0] if known else None)
        given[best if best and best not in given else f"{INVENTED}/{case['case']}"] = None
    return list(given)


def image_of(case: Case, beside: Path) -> Path | None:
    """The case's image file, null when there is none; nothing outside the folder is taken."""
    name = Path(case.get("image") or "").name
    places = (beside / folder / str(case["case"]) / name for folder in FOLDERS)
    found = next((place.resolve() for place in places if name and place.is_file()), None)
    return found if found and found.is_relative_to(beside.resolve()) else None


def post_of(case: Case, url: str, image: str | None, language: str) -> dict[str, Any]:
    """A case as a line of our own format."""
    end = "_en" if language == "en" else ""
    title, prompt = case[f"title{end}"].strip(), case[f"prompt{end}"].strip()
    post: dict[str, Any] = {
        "url": url,
        "author": case["author"].removeprefix("@"),
        "text": f"{title}\n\n{LABELS[language]}{prompt}",
        "keywords": [KEYWORD],
    }
    if number := post_of_x(url):
        post["timestamp"] = time_of(number).isoformat()
    if language == "en":
        post["lang"] = "en"
    if image:
        post["pictures"] = [{"path": image, "alt_text": case.get(f"alt_text{end}") or None}]
    return post


def copied(case: Case, beside: Path, into: Path) -> str | None:
    """Copies the case's image; gives its path relative to OUT.jsonl's folder."""
    image = image_of(case, beside)
    if image is None:
        return None
    into.joinpath(IMAGES).mkdir(exist_ok=True)
    path = f"{IMAGES}/{case['case']}{image.suffix}"
    shutil.copyfile(image, into / path)
    return path


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, or a stop with one line."""
    try:
        cases = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot read {str(path)!r}: {error}")
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        sys.exit(f"{str(path)!r} holds {type(cases).__name__}, expected a list of cases")
    wanted = {"case", "title", "title_en", "prompt", "prompt_en", "author"}
    for place, case in enumerate(cases):
        if lacking := sorted(wanted - case.keys()):
            sys.exit(f"{str(path)!r}: case at place {place} lacks {', '.join(lacking)}")
    if len({case["case"] for case in cases}) < len(cases):
        sys.exit(f"{str(path)!r} has two cases of one number: expected each once")
    return cases


def main() -> None:
    """Maps a file of cases to a file of posts, and says how many there are of what."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", type=Path, metavar="CASES.json")
    parser.add_argument("out", type=Path, metavar="OUT.jsonl")
    parser.add_argument("--language", choices=LABELS, default="en")
    arguments = parser.parse_args()
    cases = read_cases(arguments.cases)
    beside, into = arguments.cases.parent, arguments.out.parent
    into.mkdir(parents=True, exist_ok=True)
    posts = [
        post_of(case, url, copied(case, beside, into), arguments.language)
        for case, url in zip(cases, addresses(cases), strict=True)
    ]
    lines = (json.dumps(post, ensure_ascii=False) for post in posts)
    arguments.out.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    images = sum("pictures" in post for post in posts)
    timed = sum("timestamp" in post for post in posts)
    print(f"{len(posts)} posts, {timed} of X, {images} with an image")


if __name__ == "__main__":
    main()
