"""The explorer's front end: one ES module and one stylesheet, built from `widgets/`."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from pathlib import Path

__all__ = ["module", "style", "travelling_module"]

_STATIC = Path(__file__).parent.parent / "static"

#: Base 85 is a sixteenth shorter than base 64. A comma stands for `<`, which could begin a comment
#: where a notebook's state is part of an HTML page.
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"

#: A module that unpacks another one and passes on what it exports.
_UNPACK = """\
const digits = "{digits}";
const text = "{packed}";
const words = new DataView(new ArrayBuffer((text.length / 5) * 4));
for (let at = 0; at < text.length; at += 5) {{
  let word = 0;
  for (const digit of text.slice(at, at + 5)) word = word * 85 + digits.indexOf(digit);
  words.setUint32((at / 5) * 4, word);
}}
const packed = new Uint8Array(words.buffer, 0, {size});
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
    text = base64.b85encode(packed, pad=True).decode().replace("<", ",")
    return _UNPACK.format(digits=_DIGITS, packed=text, size=len(packed))


def _read(name: str) -> str:
    path = _STATIC / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"{path} is missing: in a source checkout, run `npm ci && npm run build` in widgets/."
        raise FileNotFoundError(msg) from error
