"""Write src/schema.ts: the record's types in TypeScript, from the JSON schema of `CellRecord`.

`--check` writes nothing and fails when the file is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from dynamo_nb.record import types as record_types  # noqa: E402
from dynamo_nb.record.types import CELL, SCHEMA_VERSION, CellRecord  # noqa: E402

TARGET = HERE.parent / "src" / "schema.ts"
HEAD = "// Made by scripts/schema.py from the JSON schema of CellRecord. Do not edit.\n"
SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def name_of(schema: dict[str, Any]) -> str:
    """Return the name that a `$ref` leads to."""
    return str(schema["$ref"]).rpartition("/")[2]


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema's type in TypeScript."""
    if "$ref" in schema:
        return name_of(schema)
    if "anyOf" in schema:
        return " | ".join(type_of(one) for one in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        item = type_of(schema.get("items", {}))
        return f"({item})[]" if " " in item else f"{item}[]"
    if kind == "object":
        return f"Record<string, {type_of(schema.get('additionalProperties', {}))}>"
    return SIMPLE[kind] if isinstance(kind, str) else "unknown"


def structs_in(schema: dict[str, Any]) -> set[str]:
    """Return the structs that a field may hold."""
    if "$ref" in schema:
        return {name_of(schema)}
    below = [*schema.get("anyOf", []), schema.get("items", {})]
    return {name for one in below if one for name in structs_in(one)}


def is_tuple(schema: dict[str, Any]) -> bool:
    """Say whether a struct is an array in JSON."""
    return "prefixItems" in schema


def tuple_type(name: str, schema: dict[str, Any]) -> str:
    """Return a struct that is an array in JSON."""
    fields = getattr(record_types, name).__struct_fields__
    pairs = zip(fields, schema["prefixItems"], strict=True)
    items = ", ".join(f"{field}: {type_of(one)}" for field, one in pairs)
    return f"export type {name} = [{items}];\n"


def interface(name: str, schema: dict[str, Any]) -> str:
    """Return a struct as an interface; every field is there, see `complete` in record.ts."""
    text = " ".join(schema.get("description", "").split("\n\n")[0].split())
    fields = "".join(f"  {key}: {type_of(one)};\n" for key, one in schema["properties"].items())
    return f"/** {text} */\nexport interface {name} {{\n{fields}}}\n"


def absent_in(schema: dict[str, Any]) -> dict[str, str]:
    """Return the fields that JSON may leave out, by their default."""
    found: dict[str, list[str]] = {}
    for key, one in schema["properties"].items():
        if "default" in one:
            found.setdefault(json.dumps(one["default"]), []).append(key)
    return {default: " ".join(keys) for default, keys in found.items()}


def defaults(schemas: dict[str, Any], tuples: set[str]) -> str:
    """Return the table of fields that JSON leaves out, and of those that hold structs."""
    absent = {name: absent_in(schema) for name, schema in schemas.items()}
    nested = {
        name: {
            key: sorted(found)[0]
            for key, one in schema["properties"].items()
            if (found := structs_in(one) - tuples)
        }
        for name, schema in schemas.items()
    }
    return (
        "\n/** What JSON leaves out, by struct: the fields of each default, as JSON. */\n"
        "export const DEFAULTS: Record<string, Record<string, string>> = "
        f"{json.dumps({k: v for k, v in absent.items() if v}, indent=2)};\n"
        "\n/** The fields that hold structs, by struct. */\n"
        "export const NESTED: Record<string, Record<string, string>> = "
        f"{json.dumps({k: v for k, v in nested.items() if v}, indent=2)};\n"
    )


def render() -> str:
    """Return the whole file."""
    schemas = msgspec.json.schema(CellRecord)["$defs"]
    tuples = {name for name, one in schemas.items() if is_tuple(one)}
    objects = {name: one for name, one in sorted(schemas.items()) if name not in tuples}
    arrays = [tuple_type(name, schemas[name]) for name in sorted(tuples)]
    constants = (
        f"\nexport const SCHEMA_VERSION = {SCHEMA_VERSION};\n"
        f"\n/** The recorded cell's file name in every StackFrame. */\n"
        f"export const CELL = {json.dumps(CELL)};\n"
    )
    interfaces = [interface(name, one) for name, one in objects.items()]
    return "\n".join([HEAD, *arrays, *interfaces]) + constants + defaults(objects, tuples)


def main() -> int:
    """Write the file, or compare it."""
    text = render()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET} is stale: run npm run schema", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
