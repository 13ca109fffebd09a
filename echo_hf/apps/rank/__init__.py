"""People rank what systems made of a sample, without knowing who made what: `echo-hf rank`."""
