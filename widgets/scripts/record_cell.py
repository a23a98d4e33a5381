"""Record the cells that the tests of the panes read: tests/data/*.json.gz.

    python widgets/scripts/record_cell.py [NAME ...]

They have what every pane shows. `cell`: a graph break, a recompile that was reused, kernels in both
directions, guards, bytecode, steps, times. `shapes`: symbolic sizes, a specialization, and a check
against eager that fails. `passes`: custom graph passes, one of which raises. `gpu`: the memory of
kernels, measured times, and the kernels for a GPU that is not there. Needs torch and Triton; run it
when the record's meaning changes.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import dynamo_nb  # noqa: E402

TARGET = ROOT / "tests" / "data"
SETUP = """import torch

torch.manual_seed(0)


def wrong(module, inputs):
    return lambda *given: [result + 1 for result in module(*given)]


def twice(graph):
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        if node.args[1] == 2:
            with graph.inserting_before(node):
                added = graph.call_function(torch.ops.aten.add.Tensor, (node.args[0],) * 2)
            added.meta = dict(node.meta)
            node.replace_all_uses_with(added)
            graph.erase_node(node)


def failing(graph):
    raise ValueError("this graph is not mine")
"""
CELL = """%%dynamo
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())

    def forward(self, x, scale=1.0):
        h = self.up(x).sin() * scale
        print("between")
        return h.cos() + 1

net = Net()
net(torch.randn(3, 4)).sum().backward()
net(torch.randn(3, 4), scale=0.5)
net(torch.randn(3, 4), scale=0.25)
"""
SHAPES = """%%dynamo --fresh --check --backend wrong
def attend(q, k):
    if k.shape[0] > 3:
        k = k * 2
    return (q @ k.T).softmax(-1) / q.shape[1]

for keys in (5, 6, 7):
    attend(torch.randn(2, 8), torch.randn(keys, 8))
attend(torch.randn(2, 8), torch.randn(2, 8))
"""
PASSES = """%%dynamo --fresh
@torch.compile(options={"post_grad_custom_pre_pass": twice})
def scaled(x):
    return (x * 2).sin()

@torch.compile(options={"joint_custom_post_pass": failing})
def shifted(x):
    return (x + 1).cos()

scaled(torch.randn(8))
try:
    shifted(torch.randn(8))
except RuntimeError:
    pass
"""
GPU = """%%dynamo --fresh --time --target cuda:90
def scored(x, weight):
    h = x @ weight
    scores = h.softmax(-1)
    return scores.T.cos(), (scores - h).sum(0)

scored(torch.randn(64, 32), torch.randn(32, 128));
"""
CELLS = {"cell": CELL, "shapes": SHAPES, "passes": PASSES, "gpu": GPU}
#: What differs from run to run and from machine to machine, and what stands in its place.
SCRUBBED = {r"/tmp/[\w./-]+": "cache.py", r"\b1[34]\d{13}\b": "140000000000000"}


def main() -> None:
    """Run the cells that are named, or all, as a notebook would, and write what was recorded."""
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    for cell in (SETUP, "%load_ext dynamo_nb"):
        shell.run_cell(cell, store_history=True).raise_error()
    for name in sys.argv[1:] or CELLS:
        shell.run_cell(CELLS[name], store_history=True).raise_error()
        write(name)


def write(name: str) -> None:
    """Write the last record, without what differs from run to run."""
    record = dynamo_nb.last()
    assert record is not None
    text = record.to_json().decode()
    for pattern, standing in SCRUBBED.items():
        text = re.sub(pattern, standing, text)
    data = json.dumps(json.loads(text), separators=(",", ":")).encode()
    (TARGET / f"{name}.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    main()
