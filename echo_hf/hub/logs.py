"""The logs of runs in inspect_ai's format, in a dataset beside the one of the releases.

A dataset of the Hub has one kind of files: its viewer, and `load_dataset`, would read logs among
the tables of a release as tables. So each dataset `NAME` has its logs in `NAME-logs`, with a config
for each tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCardData, HfApi

from echo_hf._infra.text import escape_markdown, format_table
from echo_hf.errors import HubError
from echo_hf.hub.manifest import CARD, SPLIT
from echo_hf.hub.publish import FIRST_FILES, TAG, check_names
from echo_hf.hub.remote import Remote

SUFFIX = "-logs"
LOG_PATH = re.compile(rf"{TAG.pattern}/[\w-]+\.eval", re.ASCII)
TAGS = ["benchmark", "echo", "inspect_ai", "eval-logs"]
CARD_TEXT = """# Logs of {repo}

How systems were judged on the releases of [{repo}](https://huggingface.co/datasets/{repo}): a log
of [inspect_ai](https://inspect.aisi.org.uk/) for each system and split, made by
`echo-hf publish --logs`.

{table}

```bash
inspect view --log-dir hf://datasets/{logs}/TAG
```

```python
logs = load_dataset("{logs}", "TAG")  # a row for each sample
```
"""


def publish_logs(folder: Path, repo_id: str, tag: str, *, api: HfApi | None = None) -> str:
    """Publish the logs of a run on a tag's release, in place of earlier ones, in one commit.

    Args:
        folder: As `echo-hf export --to inspect` wrote it, which leaves out what must not be passed
            on.
        repo_id: The dataset of the release; the logs are as private as it is.
        tag: The release's tag.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        The address of the logs.

    Raises:
        HubError: There is no such tag, the repository of logs holds something else, the token may
            not write, or the Hub is out of reach.
    """
    check_names(repo_id, tag)
    release = Remote(api or HfApi(), repo_id)
    state, remote = release.require_state(), Remote(release.api, f"{repo_id}{SUFFIX}")
    if tag not in state.tags:
        raise HubError(f"{repo_id!r} has no tag {tag!r}: publish the release first")
    remote.check_token()
    held = remote.read_state() or remote.create(state.private)
    if state.private and not held.private:
        raise HubError(
            f"{remote.repo_id!r} is public, and {repo_id!r} is private: change one of them in its "
            "settings first"
        )
    present = remote.list_files(held.head)
    foreign = [path for path in present if not LOG_PATH.fullmatch(path)]
    if foreign := sorted(set(foreign) - FIRST_FILES):
        raise HubError(
            f"{remote.repo_id!r} holds {foreign[0]!r}, which is no log of a tag: move it elsewhere"
        )
    logs = {f"{tag}/{path.name}": path for path in sorted(folder.glob("*.eval"))}
    others = [path for path in present if LOG_PATH.fullmatch(path)]
    stale = [path for path in others if path.startswith(f"{tag}/") and path not in logs]
    card = _render_card(repo_id, remote.repo_id, {*others, *logs} - {*stale})
    added = [CommitOperationAdd(path, source) for path, source in logs.items()]
    deleted = [CommitOperationDelete(path, is_folder=False) for path in stale]
    card_added = CommitOperationAdd(CARD, card.encode())
    remote.commit([*added, *deleted, card_added], f"Logs on {tag}", held.head, create_pr=False)
    return f"{remote.page}/tree/main/{tag}"


def _render_card(repo_id: str, logs_id: str, paths: Iterable[str]) -> str:
    """Render the card, with a config for each tag, from which the viewer knows the logs."""
    counts = Counter(PurePosixPath(path).parts[0] for path in sorted(paths))
    files = {tag: [{"split": SPLIT, "path": f"{tag}/*.eval"}] for tag in counts}
    configs = [{"config_name": tag, "data_files": data_files} for tag, data_files in files.items()]
    data = DatasetCardData(tags=TAGS, source_datasets=[repo_id], configs=configs)
    rows = ([escape_markdown(tag), f"{count:,}"] for tag, count in counts.items())
    table = format_table(["tag", "logs"], rows, numbers=1)
    text = CARD_TEXT.format(repo=repo_id, logs=logs_id, table=table)
    return f"---\n{data.to_yaml()}\n---\n{text}"
