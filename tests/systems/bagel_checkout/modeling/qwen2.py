"""Stands for a module of BAGEL: the tokenizer."""


class Qwen2Tokenizer:
    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def from_pretrained(cls, folder):
        return cls(folder)
