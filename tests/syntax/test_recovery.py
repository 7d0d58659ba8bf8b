"""One fault does not hide the next, nor the items that are right."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.source import Source
from gradspec.syntax.parse import MAX_FAULTS, parse
from tests.syntax.test_modules import FIRST


def codes(text: str) -> list[tuple[int, str]]:
    source = Source("a.grad", text)
    faults = parse(source).diagnostics
    return [(source.position(d.labels[0].span.start)[0], d.code) for d in faults]


def names(text: str) -> list[str]:
    module = parse(Source("a.grad", text)).value
    assert module is not None
    return [getattr(item, "name", "import") for item in module.items]


MANY = """\
from a.grad import u
def first(t) = t^2
rule second(x) -> y
    y = x +
    dx = (dy
    override dx = -dy
rule third(x, lambda: static = 1) -> y:
    y = 2x if x = 1 else lambda
    dx = dy)
      dt = 3
rule fourth(x) -> y:
    y = x
stray = 1
rule fifth(x) -> y:
"""


def test_all_faults_of_a_file_are_reported_in_order() -> None:
    assert codes(MANY) == [
        (1, "GS101"),
        (2, "GS109"),
        (3, "GS102"),
        (4, "GS101"),
        (5, "GS103"),
        (6, "GS110"),
        (7, "GS115"),
        (8, "GS125"),
        (9, "GS104"),
        (10, "GS106"),
        (13, "GS112"),
        (14, "GS111"),
    ]


def test_the_items_without_a_fault_are_kept_and_the_others_named() -> None:
    module = parse(Source("a.grad", MANY)).value
    assert module is not None
    assert names(MANY) == ["fourth"]
    assert module.broken == ("u", "first", "second", "third", "fifth")


def test_every_line_with_a_fault_is_reported() -> None:
    lines = FIRST.splitlines()
    broken = [
        f"{line} +"
        if " = " in line
        and "example" not in line
        and "def" not in line
        and "rule" not in line
        and "because" not in line
        else line
        for line in lines
    ]
    expected = [
        (number, "GS101")
        for number, (old, new) in enumerate(zip(lines, broken, strict=True), 1)
        if old != new
    ]
    assert codes("\n".join(broken)) == expected


def test_an_open_bracket_costs_one_line() -> None:
    text = "rule f(x) -> y:\n    u = (x\n    v = g(x,\n          x]\n    y = u +\n\nrule g(x) -> y:\n    y = x\n"
    assert codes(text) == [(2, "GS103"), (4, "GS104"), (5, "GS101")]
    assert names(text) == ["g"]


def test_many_open_brackets_are_each_reported() -> None:
    text = "rule f(x) -> y:\n" + "    y = f(x\n" * 5 + "rule g(x) -> y:\n    y = (x)\n"
    assert codes(text) == [(line, "GS103") for line in range(2, 7)]
    assert names(text) == ["g"]


def test_the_head_of_a_rule_over_several_lines_is_never_closed() -> None:
    text = "rule f(\n    x,\n    k: static = 2 -> y:\n    y = x +\n"
    assert codes(text) == [(1, "GS103"), (4, "GS101")]


def test_closing_brackets_at_the_margin_are_no_fault() -> None:
    assert codes("rule f(\n  x\n) -> y:\n    y = (\n  x\n)\n    dx = (\ndy)\n") == []


def test_a_name_is_reported_once_in_an_item() -> None:
    rule = "rule f(lambda) -> y:\n    y = lambda * lambda\n"
    assert codes(rule * 2) == [(1, "GS115"), (3, "GS115")]


def test_there_is_an_end_to_what_is_reported() -> None:
    assert len(codes("rule f(x) -> y:\n" + "    y = x +\n" * 300)) == MAX_FAULTS
    assert len(codes("rule f(x) -> y:\n    y = " + "? " * 3000)) == MAX_FAULTS


pieces = st.sampled_from(
    "rule def from import assume solve surrogate override because save example if else for and"
    " or not nograd int static x y dx f _z lambda in 2 1.5 1e9 .5 'a' \"b\" \"\"\" ''' ( )"
    " [ ] , . ... : = == < <= -> ** * / + - % ^ && ! ? \\ ; é × # \n \n \n\t \r\n".split(
        " "
    )
)
soups = st.lists(pieces, max_size=40).map(" ".join)


@given(
    st.text(max_size=80)
    | soups
    | soups.map(lambda soup: "rule f(x) -> y:\n    " + soup.replace("\n", "\n    "))
)
@settings(max_examples=500, deadline=None)
def test_any_text_gives_a_module_or_says_why_not(text: str) -> None:
    source = Source("a.grad", text)
    outcome = parse(source)
    module = outcome.value
    assert module is not None
    assert module.items or outcome.failed
    for fault in outcome.diagnostics:
        span = fault.labels[0].span
        assert 0 <= span.start <= span.end <= len(text)
        assert fault.code.startswith("GS1")
        assert fault.help or fault.code == "GS101"


@given(
    st.integers(0, len(FIRST)),
    st.integers(0, 12),
    st.sampled_from(["", "(", "]", '"', "\n", " ", "=", "\t"]),
)
@settings(max_examples=300, deadline=None)
def test_damage_is_reported_or_harmless(start: int, length: int, put: str) -> None:
    text = FIRST[:start] + put + FIRST[start + length :]
    outcome = parse(Source("a.grad", text))
    assert outcome.value is not None
    assert outcome.failed or not outcome.value.broken
