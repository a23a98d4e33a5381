"""The magic's line, read without torch."""

from __future__ import annotations

import pytest

from dynamo_nb.options import Options, UsageError, argument_parser, help_text, parse


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("", {}),
        ("--fullgraph", {"fullgraph": True}),
        ("--backend eager  # a comment", {"backend": "eager"}),
        ("--dynamic auto", {"dynamic": None}),
        ("--dynamic true", {"dynamic": True}),
        ("--dynamic=false", {"dynamic": False}),
        ("--as-is", {"compile": "as-is"}),
        ("--compile cell", {"compile": "cell"}),
        ("--options a.b=1 --options c=text", {"options": {"a.b": 1, "c": "text"}}),
        ("--config x=True --config y=false", {"config": {"x": True, "y": False}}),
        ("--config x=none --config y=1.5", {"config": {"x": None, "y": 1.5}}),
        ("--config 'x=[1, 2]' --config y=a=b", {"config": {"x": [1, 2], "y": "a=b"}}),
        ("--save 'my file.html' --view text", {"save": "my file.html", "view": "text"}),
        ("--device cuda:1 --name n --fresh", {"device": "cuda:1", "name": "n", "fresh": True}),
    ],
)
def test_lines(line, fields):
    got = parse(line)
    expected = Options(**fields, given=got.given)
    assert got == expected


def test_given_flags_are_kept():
    assert parse("--backend=eager --fresh").given == ("--backend", "--fresh")


@pytest.mark.parametrize(
    "line",
    [
        "--full",
        "--as-is --compile cell",
        "x",
        "--config x",
        "--config =1",
        "--save",
        "--view pdf",
        "--mode a --options b=1",
        "'open",
    ],
)
def test_mistakes(line):
    with pytest.raises(UsageError, match="%%dynamo"):
        parse(line)


def test_only_what_is_near_is_suggested():
    with pytest.raises(UsageError, match=r"Did you mean --options\?"):
        parse("--optionz a=1")
    with pytest.raises(UsageError) as told:
        parse("--bogus")
    assert "Did you mean" not in str(told.value)


def test_a_record_keeps_what_differs():
    options = parse("--backend eager --save x.json --view text --fresh --config a=1")
    assert options.shown() == {"backend": "eager", "fresh": True, "config": {"a": 1}}


def test_help_names_every_flag():
    flags = [flag for action in argument_parser()._actions for flag in action.option_strings]
    assert len(flags) == 18
    assert [flag for flag in flags if flag not in help_text()] == []


def test_an_error_renders_as_one_line():
    with pytest.raises(UsageError) as caught:
        parse("--bakend x")
    assert caught.value._render_traceback_() == [f"UsageError: {caught.value}"]
    assert "--backend" in str(caught.value)
