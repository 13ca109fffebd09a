"""Stands for torch where it is not installed: no more of it than is asked for here."""

import types

bfloat16 = "bfloat16"
cuda = types.SimpleNamespace(device_count=lambda: 0, is_available=lambda: False)
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace())
_seeds = [None]


def manual_seed(seed):
    _seeds[0] = seed


def initial_seed():
    return _seeds[0]


class _Module:
    def eval(self):
        return self


class _Weight:
    def tolist(self):
        return [[1.0, 2.0], [3.0, 4.0]]


class _Linear(_Module):
    def __init__(self, *_, **__):
        self.weight = _Weight()


nn = types.SimpleNamespace(Module=_Module, Linear=_Linear)
