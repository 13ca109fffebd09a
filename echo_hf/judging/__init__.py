"""Models as judges (ECHO section 5): `echo-hf judge` rates outputs, and says which metrics fit."""
