"""What a notebook's generated code must not depend on: this machine's CPU and number of threads.

`make refresh` sets the same when it writes the outputs.
"""

from __future__ import annotations

import os

os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["OMP_NUM_THREADS"] = "1"
