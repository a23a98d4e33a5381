"""Record the cell that the tests of the panes read: tests/data/cell.json.gz.

It has what every pane shows: a graph break, a recompile that was reused, kernels in both
directions, guards, bytecode, times. Needs torch; run it when the record's meaning changes.
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

TARGET = ROOT / "tests" / "data" / "cell.json.gz"
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
#: What differs from run to run and from machine to machine, and what stands in its place.
SCRUBBED = {r"/tmp/[\w./-]+": "cache.py", r"\b1[34]\d{13}\b": "140000000000000"}


def main() -> None:
    """Run the cell as a notebook would, and write what was recorded."""
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    for cell in ("import torch", "%load_ext dynamo_nb", CELL):
        shell.run_cell(cell, store_history=True).raise_error()
    record = dynamo_nb.last()
    assert record is not None
    text = record.to_json().decode()
    for pattern, standing in SCRUBBED.items():
        text = re.sub(pattern, standing, text)
    data = json.loads(text)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
