"""The explorer's front end: one ES module and one stylesheet, built from `widgets/`."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from pathlib import Path

__all__ = ["module", "style", "travelling_module"]

_STATIC = Path(__file__).parent.parent / "static"

#: A module that unpacks another one and passes on what it exports.
_UNPACK = """\
const packed = Uint8Array.from(atob("{packed}"), (char) => char.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const source = new Blob([await new Response(stream).text()], {{ type: "text/javascript" }});
const address = URL.createObjectURL(source);
const explorer = await import(address);
URL.revokeObjectURL(address);
export default explorer.default;
"""


@cache
def module() -> str:
    """Return the ES module."""
    return _read("explorer.js")


@cache
def style() -> str:
    """Return the stylesheet."""
    return _read("explorer.css")


@cache
def travelling_module() -> str:
    """Return the ES module packed: it is sent, and saved, once for every widget."""
    packed = gzip.compress(module().encode(), 9, mtime=0)
    return _UNPACK.format(packed=base64.b64encode(packed).decode())


def _read(name: str) -> str:
    path = _STATIC / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"{path} is missing: in a source checkout, run `npm ci && npm run build` in widgets/."
        raise FileNotFoundError(msg) from error
