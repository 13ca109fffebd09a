"""The adapters that echo-hf brings; importing this file registers them, and loads no model."""

import echo_hf.systems.command
import echo_hf.systems.files  # noqa: F401 - importing them registers them
