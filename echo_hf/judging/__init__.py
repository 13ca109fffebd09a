"""Models as judges (ECHO section 5): `echo-hf judge` rates outputs, and says which metrics fit.

A rubric is a file `prompts/judging/NAME.md` and a name in `Rubric` of `config/evaluation.py`;
`score.py` decides which rubrics have figures.
"""
