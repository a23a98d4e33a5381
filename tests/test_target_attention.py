"""Which attention kernel torch would call on a GPU: the rules, against what torch itself answers.

The answers are those of torch 2.13 for CUDA with cuDNN 9.20, asked with a device of its own making
(`torch.backends.cuda.can_use_cudnn_attention` and its like); none of it runs.
"""

from __future__ import annotations

import pytest
import torch

from dynamo_nb.target.attention import Attention, candidates
from dynamo_nb.target.devices import DEVICES

HALF, BRAIN, SINGLE, DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64

#: For cuda:75, cuda:80, cuda:89, cuda:90 and cuda:100 what takes the call: cuDNN, flash, efficient.
CASES = [
    ({"dtype": HALF}, "e fe fe cfe cfe"),
    ({"dtype": BRAIN}, "- fe fe cfe cfe"),
    ({"dtype": SINGLE}, "e e e e e"),
    ({"dtype": DOUBLE}, "- - - - -"),
    ({"dtype": HALF, "mask": torch.bool}, "e e e ce ce"),
    ({"dtype": HALF, "mask": HALF}, "e e e ce ce"),
    ({"dtype": SINGLE, "mask": torch.bool}, "e e e e e"),
    ({"dtype": HALF, "causal": True}, "e fe fe cfe cfe"),
    ({"dtype": HALF, "causal": True, "rows": 64}, "e e e ce ce"),
    ({"dtype": HALF, "rows": 1}, "e fe fe cfe cfe"),
    ({"dtype": HALF, "rows": 1, "dropout": 0.25, "grad": True}, "e fe fe fe fe"),
    ({"dtype": HALF, "columns": 1}, "e fe fe fe fe"),
    ({"dtype": HALF, "dropout": 0.1, "grad": True}, "e fe fe fe fe"),
    ({"dtype": HALF, "dropout": 0.25, "grad": True}, "e fe fe cfe cfe"),
    ({"dtype": HALF, "width": 192}, "e fe fe cfe fe"),
    ({"dtype": HALF, "width": 192, "values": 128}, "e e e ce ce"),
    ({"dtype": HALF, "width": 224, "grad": True}, "e fe e cfe fe"),
    ({"dtype": HALF, "width": 256, "grad": True}, "e fe fe cfe fe"),
    ({"dtype": HALF, "width": 256, "grad": True, "dropout": 0.25}, "e fe e cfe fe"),
    ({"dtype": HALF, "width": 264}, "e e e e e"),
    ({"dtype": HALF, "width": 60}, "- f f f f"),
    ({"dtype": SINGLE, "width": 33}, "e - - - -"),
    ({"dtype": HALF, "heads": 2}, "- f f cf cf"),
    ({"dtype": SINGLE, "heads": 2}, "- - - - -"),
]


def call(
    dtype: torch.dtype,
    *,
    mask: torch.dtype | None = None,
    rows: int = 128,
    columns: int = 128,
    width: int = 64,
    values: int = 0,
    heads: int = 8,
    grad: bool = False,
    dropout: float = 0.0,
    causal: bool = False,
) -> Attention:
    def made(*size: int, dtype: torch.dtype = dtype) -> torch.Tensor:
        return torch.empty(2, *size, dtype=dtype, device="meta")

    tensors = (
        made(8, rows, width),
        made(heads, columns, width),
        made(heads, columns, values or width),
    )
    for tensor in tensors:
        tensor.requires_grad_(grad)
    given = None if mask is None else made(1, rows, columns, dtype=mask)
    q, k, v = tensors
    grouped = heads != 8
    return Attention(q=q, k=k, v=v, mask=given, dropout=dropout, causal=causal, grouped=grouped)


@pytest.mark.parametrize(("given", "answers"), CASES, ids=[str(case) for case, _ in CASES])
def test_the_rules_are_torchs(given, answers):
    names = {"c": "cudnn", "f": "flash", "e": "efficient", "-": "math"}
    for spec, answer in zip(("75", "80", "89", "90", "100"), answers.split(), strict=True):
        expected = [names[letter] for letter in answer]
        found = candidates(DEVICES[f"cuda:{spec}"], call(**given))
        assert found == [*expected, *(["math"] if answer != "-" else [])], spec


def test_what_the_user_forbids_is_not_taken(monkeypatch):
    hopper, given = DEVICES["cuda:90"], call(HALF)
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    assert candidates(hopper, given) == ["flash", "efficient", "math"]
    monkeypatch.delenv("TORCH_CUDNN_SDPA_DEPRIORITIZED")
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION]):
        assert candidates(hopper, given) == ["efficient", "math"]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"dtype": HALF}, ["flash", "efficient", "math"]),
        ({"dtype": SINGLE}, ["efficient", "math"]),
        ({"dtype": HALF, "width": 512}, ["flash", "math"]),
        ({"dtype": HALF, "mask": torch.bool}, ["efficient", "math"]),
        ({"dtype": HALF, "mask": torch.bool, "width": 60}, ["math"]),
    ],
)
def test_rules_of_amd(given, answer):
    assert candidates(DEVICES["hip:gfx942"], call(**given)) == answer


def test_heads_that_lie_apart_are_not_taken():
    given = call(HALF)
    given.q = given.q.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert candidates(DEVICES["cuda:90"], given) == ["math"]
