"""Safe YAML in which a key that is given twice is an error, not a silent loss."""

from __future__ import annotations

from typing import Any

import yaml

MERGE_TAG = "tag:yaml.org,2002:merge"


class UniqueKeys(yaml.SafeLoader):
    """YAML without the silent loss of a key that is given twice."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    own = [key for key, _ in node.value if key.tag != MERGE_TAG]
    seen = [loader.construct_object(key, deep=True) for key in own]
    twice = next((key for key in seen if seen.count(key) > 1), None)
    if twice is not None:
        raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {twice!r} is given twice")
    return loader.construct_mapping(node, deep=True)


UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
