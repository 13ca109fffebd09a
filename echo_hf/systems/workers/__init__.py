"""Workers that echo-hf brings: programs for other environments, which import none of it."""
