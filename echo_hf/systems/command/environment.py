"""The environment of a worker: what programs need to run, and none of the keys of its parent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from echo_hf.systems.secrecy import SHORTEST, is_secret

KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TORCH_HOME",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
# A worker in Python speaks UTF-8, and no line of its own waits in a buffer.
PYTHON = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


def worker_environment(
    given: Mapping[str, str], passed: Sequence[str], parent: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a worker.

    Args:
        given: Variables with their values, which win over all others.
        passed: Names of the parent's variables that it gets.
        parent: The environment of echo-hf.

    Returns:
        Those, and the few of the parent that hold no secrets.

    Example:
        >>> parent = {"PATH": "/bin", "SHOP_KEY": "k"}
        >>> worker_environment({"STEPS": "5"}, [], parent)["PATH"], "SHOP_KEY" in parent
        ('/bin', True)
        >>> "SHOP_KEY" in worker_environment({}, [], parent)
        False
    """
    names = [name for name in (*KEPT, *passed) if name in parent]
    return {**PYTHON, **{name: parent[name] for name in names}, **given}


def hidden(said: bytes, passed: Sequence[str], parent: Mapping[str, str]) -> bytes:
    """What a worker wrote, without the secrets that were passed on to it.

    Args:
        said: What it wrote.
        passed: Names of the variables.
        parent: The environment of echo-hf.

    Returns:
        The same, with the name of each variable in place of its value.

    Example:
        >>> hidden(b"refused: key abcdef", ["SHOP_KEY"], {"SHOP_KEY": "abcdef"})
        b'refused: key $SHOP_KEY'
    """
    # The longest first: one may be a part of another.
    secrets = [(parent.get(name, ""), name) for name in passed if is_secret(name)]
    for value, name in sorted(secrets, key=lambda one: -len(one[0])):
        if len(value) < SHORTEST:
            continue
        # As it is, and as it stands in a line of JSON.
        written = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
        for one in (value, *written):
            said = said.replace(os.fsencode(one), f"${name}".encode())
    return said
