"""The cache in the record: entries in the order of the look-up, hits, origin, invalidated ones."""

from __future__ import annotations

import textwrap

from dynamo_nb.record.types import CacheEntry
from tests.capturing import Captured
from tests.conftest import Shell

SIZES = textwrap.dedent(
    """\
    @torch.compile(backend="eager", dynamic=False)
    def f(x):
        return x + 1

    for size in (3, 4, 3):
        f(torch.ones(size))
    f(torch.ones(4))
    f(torch.ones(4))
    """
)


def test_entries_stand_as_the_next_look_up_tries_them() -> None:
    (state,) = Captured(SIZES).record.cache
    assert (state.name, state.file, state.first_line) == ("f", "<cell>", 1)
    assert state.entries == [
        CacheEntry(entry="0/1", hits=2, lines=[7, 8]),
        CacheEntry(entry="0/0", hits=1, lines=[6]),
    ]


def test_a_resume_function_has_a_cache_of_its_own() -> None:
    source = (
        "@torch.compile(backend='eager')\ndef f(x):\n    y = x + 1\n"
        "    torch._dynamo.graph_break()\n    return y * 2\nf(torch.ones(3))\n"
    )
    states = Captured(source).record.cache
    assert [(s.resume_of, [e.entry for e in s.entries]) for s in states] == [
        ("", ["0/0"]),
        ("f", ["1/0"]),
    ]


def test_an_invalidated_entry_is_said() -> None:
    source = textwrap.dedent(
        """\
        import gc
        def box():
            return type("Box", (), {"scale": 2})
        @torch.compile(backend="eager")
        def f(x, box):
            return x * box.scale
        f(torch.ones(3), box()())
        gc.collect()
        f(torch.ones(3), box()())
        """
    )
    (state,) = Captured(source).record.cache
    assert [entry.entry for entry in state.entries] == ["0/1", "0/0"]
    assert state.entries[1].invalidated
    assert "0x" not in state.entries[1].invalidated


def test_a_recompile_after_an_invalidated_entry_says_so(shell: Shell) -> None:
    shell.run(
        "%%dynamo --backend eager --as-is\nimport gc, torch\n"
        "first, second = (type('Box', (), {'scale': n}) for n in (2, 3))\n"
        "f = torch.compile(lambda x, box: x * box.scale, backend='eager')\n"
        "_ = f(torch.ones(3), first())\ndel first\n_ = gc.collect()\n"
        "_ = f(torch.ones(3), second())\n"
    )
    (finding,) = shell.record.findings
    assert finding.code == "recompile"
    assert "an object that an entry is guarded on is gone" in finding.message
    assert "type(L['box']) got deallocated" in finding.message
    assert "Keep the object alive" in finding.advice


def test_entries_of_earlier_cells_have_their_number(shell: Shell) -> None:
    shell.run(
        "%%dynamo --backend eager --dynamic false\nimport torch\n"
        "def f(x):\n    return x + 1\nf(torch.ones(3))\n"
    )
    shell.run("%%dynamo --backend eager --dynamic false\nf(torch.ones(4))\nf(torch.ones(3))\n")
    (state,) = shell.record.cache
    assert [(e.entry, e.cell, e.hits) for e in state.entries] == [("0/0", 1, 1), ("0/1", None, 0)]


def test_torchs_wrapper_is_named_for_the_modules_it_serves() -> None:
    source = (
        "net = torch.nn.Sequential(torch.nn.Linear(3, 3))\n"
        "torch.compile(net, backend='eager')(torch.ones(2, 3))\n"
    )
    (state,) = Captured(source).record.cache
    assert state.name == "Sequential"


def test_text_and_html_show_the_cache() -> None:
    from dynamo_nb.views.html import to_html
    from dynamo_nb.views.text import to_text

    record = Captured(SIZES).record
    lines = to_text(record).splitlines()
    at = lines.index("Cache, in the order of the next look-up")
    assert lines[at + 1] == "  f (line 1): 0/1 (2 hits from lines 7-8), 0/0 (1 hit from line 6)"
    html = to_html(record)
    assert "next look-up tries" in html
    assert "2 hits from lines 7-8" in html


def test_one_entry_that_is_in_use_needs_no_text() -> None:
    from dynamo_nb.views.text import to_text

    source = "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))\n"
    assert "Cache" not in to_text(Captured(source).record)
