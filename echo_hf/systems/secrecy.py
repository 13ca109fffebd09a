"""Keep credentials, and the folders of this machine, out of what is written down.

Libraries put whole addresses into their errors, and configs name files of one machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from echo_hf.config_check import CREDENTIALS

# Shorter values would hide words that mean something else.
SHORTEST = 6
SECRET = re.compile(
    r"(?:^|_)(?:(?:API)?KEYS?|TOKEN|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|BEARER"
    r"|AUTHORIZATION|COOKIE)\d*(?:_|$)|(?:^|_)AUTH$"
)
HIDDEN = "[hidden]"
FOLDERS = re.compile(r"(?<![\w./:\\-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+")
IN_QUERY = re.compile(r"([?&](?:api_?)?(?:key|token|signature|sig)=)[^&\s'\"]+", re.IGNORECASE)


def is_secret(variable: str) -> bool:
    """Whether an environment variable holds a secret, by its name.

    Example:
        >>> is_secret("SHOP_KEY"), is_secret("TOKENIZERS_PARALLELISM")
        (True, False)
    """
    return SECRET.search(variable.upper()) is not None


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """A text without keys and passwords.

    Args:
        text: What somebody else's code said.
        environment: Where credentials are kept: the values of variables with names such as
            `OPENAI_API_KEY` or `HF_TOKEN`, of 6 characters or more, are hidden.

    Returns:
        The text, with a remark in place of each.

    Example:
        >>> without_secrets("401 for https://mira:tulip@example.org/v1?key=abc", {})
        '401 for https://[hidden]@example.org/v1?key=[hidden]'
        >>> without_secrets("bad key sk-123456", {"OPENAI_API_KEY": "sk-123456"})
        'bad key [hidden]'
    """
    named = (value.strip() for name, value in environment.items() if is_secret(name))
    # The longest first: one may begin with another.
    for value in sorted(named, key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    text = CREDENTIALS.sub(f"://{HIDDEN}@", text)
    return IN_QUERY.sub(rf"\1{HIDDEN}", text)


def without_folders(text: str) -> str:
    """A text without the folders of absolute paths; the names of files stay.

    Example:
        >>> without_folders("--weights=/data/mira/lumen.ckpt"), without_folders("models/lumen.ckpt")
        ('--weights=lumen.ckpt', 'models/lumen.ckpt')
    """
    return FOLDERS.sub("", text)
