"""Trials: every call of a rule through a few features, in float64, against the truth,
and the worked examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gradspec.driver.emitted import import_file
from gradspec.measure.features import Feature, applies
from gradspec.measure.frameworks.asking import (
    Listed,
    ask,
    fault_line,
    gaps,
    is_close,
    truths,
)
from gradspec.measure.frameworks.setting import Case, Run, report

RELATIVE = 1e-10
"""Float64 against the true value, at moderate points."""

SECOND_ORDER = 1e-6

CANCELLED = 1e-13
"""Absolute slack in units of the largest number at hand: a number near zero comes from
terms of that size."""

_FORMATS = ("float64", "float32")

ROUGH = 1e-3
"""Kernels of rules, which compute in float32 and sum in an order of their own."""

SINGLE = 2e-4
"""Float32, on examples: enough to see an overflow or a lost term."""


def work(job: Case, setting: Any, register: Mapping[str, Run]) -> None:
    """Try every rule of the job."""
    setting.prepare_trial()
    features = [Feature(**data) for data in job["features"]]
    for module_job in job["modules"]:
        module = import_file(module_job["path"])
        for case in module_job["cases"]:
            trial = _Trial(module, case, features, register, setting)
            for call in case["calls"]:
                trial.call({**case, **call, "way": "rule"})
            for example in case["examples"]:
                for dtype in ("float32",) if case.get("is_rough") else _FORMATS:
                    trial.example(example, dtype)
            found = {"checks": trial.checks, "failures": trial.failures}
            where = {"display": module_job["display"], "rule": case["rule"]}
            report({**where, **found, "values": trial.values})


@dataclass(slots=True)
class _Trial:
    """The failures of a rule; ``values`` are for a comparison between targets."""

    module: Any
    case: Case
    features: list[Feature]
    register: Mapping[str, Run]
    setting: Any
    checks: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)

    def call(self, case: Case) -> None:
        """The values and gradients of a call; the other features, if it is checked."""
        where = _where(case)
        self.attempt("values", where, lambda: self._values(case, where))
        for feature in self.features[1:]:
            if case["checked"] and applies(feature, case):
                run = partial(self._feature, feature, case, where)
                self.attempt(feature.name, where, run)

    @property
    def _is_rough(self) -> bool:
        """True of a rule with kernels, which compute in float32."""
        return bool(self.case.get("is_rough"))

    def _ask(self, case: Case, run: Run) -> list[Listed] | None:
        dtype = "float32" if self._is_rough else "float64"
        return ask(lambda: self.setting(self.module, case, dtype), run)

    def _values(self, case: Case, where: str) -> None:
        expected, first = dict(case["values"]), self.features[0]
        has_first = applies(first, case)

        def run(s: Any) -> list[Any]:
            found: list[Any] = s.every_output()
            return [*found, *self.register[first.name](s)] if has_first else found

        expected |= case["first"] if has_first else {}
        found = self._ask(case, run) or []
        for (name, true), got in zip(expected.items(), found, strict=True):
            self.compare(name, where, got, true, RELATIVE, case.get("scale"))
            self.values += [] if self._is_rough else [got[1]]

    def _feature(self, feature: Feature, case: Case, where: str) -> None:
        found = self._ask(case, self.register[feature.name])
        if feature.order == 0 and found is None:  # it has checked what there is
            return
        relative = SECOND_ORDER if feature.order == 2 else RELATIVE
        expected = truths(case, feature.order) or {}
        for (name, true), got in zip(expected.items(), found or (), strict=True):
            what = f"{name} ({feature.name})"
            self.compare(what, where, got, true, relative, case.get("scale"))

    def compare(
        self,
        what: str,
        where: str,
        got: Listed,
        expected: Listed,
        relative: float,
        scales: list[float] | None,
    ) -> None:
        """Shape and elements. What has no value is not compared."""
        true = expected[1]
        largest = max([1.0, *(abs(v) for v in true if math.isfinite(v))])
        scales = scales or [largest]
        scales = scales if len(scales) == len(true) else [max(scales)] * len(true)
        least = ROUGH / 10 if self._is_rough else max(CANCELLED, relative * 1e-3)
        relative = ROUGH if self._is_rough else relative
        pairs = zip(true, scales, strict=True)
        rooms = [relative * abs(v) + least * scale for v, scale in pairs]
        for gap in gaps(got, expected, rooms):
            if gap.element is None:
                told = f"got shape {gap.got}, expected {gap.expected}"
                self.fail(what, where, told)
                return
            self._fail_number(
                f"{what}, element {gap.element}", where, gap.got, gap.expected
            )
        self.checks += sum(not math.isnan(v) for v in true)

    def expect(
        self, what: str, where: str, got: float, expected: float, slack: float
    ) -> None:
        """``got`` within ``slack`` of ``expected``; NaN and ±inf agree with
        themselves."""
        self.checks += 1
        if not is_close(got, expected, slack):
            self._fail_number(what, where, got, expected)

    def _fail_number(self, what: str, where: str, got: float, expected: float) -> None:
        self.fail(what, where, f"got {got!r}, expected {expected!r}")

    def fail(self, what: str, where: str, message: str) -> None:
        self.failures.append({"what": what, "where": where, "message": message})

    def attempt(self, what: str, where: str, action: Callable[[], None]) -> None:
        """Run a step; an exception is a failure of that step and no more."""
        self.checks += 1
        try:
            action()
        except Exception as fault:
            self.fail(what, where, fault_line(fault))

    # --- worked examples ---------------------------------------------------------------

    def example(self, example: Case, dtype: str) -> None:
        """Every number that the author expects, from a run in ``dtype``."""
        where = f"example at line {example['line']} ({dtype})"
        self.attempt("example", where, lambda: self._example(example, dtype, where))

    def _example(self, example: Case, dtype: str, where: str) -> None:
        given = {name: _array(value) for name, value in example["given"].items()}
        inputs = {name: given.pop(name) for name, _ in self.case["inputs"]}
        cotangents = {f"d{name}" for name, _ in self.case["outputs"]}
        statics = {
            name: int(flat[0]) if float(flat[0]).is_integer() else flat[0]
            for name, (_, flat) in given.items()
            if name not in cotangents
        }
        case: Case = {**self.case, "statics": statics, "given": inputs, "way": "rule"}
        case |= {"upstream": {}, "probes": {}}
        s = self.setting(self.module, case, dtype)
        names = [name for name, _ in self.case["outputs"]]
        got = dict(zip(names, s.listed(s.every_output()), strict=True))
        for name, kind in self.case["outputs"]:
            if kind == "float":
                shape = got[name][0]
                flat = given.get(f"d{name}", [[], [1.0]])[1]
                flat = flat * math.prod(shape) if len(flat) == 1 else flat
                case["upstream"][name] = [shape, flat[: math.prod(shape)]]
        floats = [name for name, kind in self.case["inputs"] if kind == "float"]
        if case["upstream"] and floats:
            s = self.setting(self.module, case, dtype)
            found = s.listed(self.register[self.features[0].name](s))
            got |= zip((f"d{name}" for name in floats), found, strict=True)
        for name, value in example["expected"].items():
            texts, found = list(_flat(value)), got[name][1]
            if len(found) != len(texts):
                counts = f"got {len(found)} values, expected {len(texts)}"
                self.fail(name, where, counts)
                continue
            for text, number in zip(texts, found, strict=True):
                self._expect_text(name, where, text, float(number), dtype)

    def _expect_text(
        self, name: str, where: str, text: str, got: float, dtype: str
    ) -> None:
        expected = float(_number(text))
        room = _digits(text) if math.isfinite(expected) else 0.0
        if dtype == "float32" and math.isfinite(expected):
            room = max(room, SINGLE * max(abs(expected), 1e-6))
        self.expect(name, where, got, expected, room)


def _where(case: Case) -> str:
    """The shapes of the inputs, to say where something failed; of a single point the
    numbers.
    """
    parts = [
        f"{name}{shape}" if shape else f"{name} = {flat[0]!r}"
        for name, (shape, flat) in case["given"].items()
    ]
    return ", ".join([*parts, *(f"{n} = {v}" for n, v in case["statics"].items())])


def _digits(text: str) -> float:
    """Half a unit of the last decimal written. A number without decimals is meant
    exactly, as in ``y = 4``, up to one part in a million.
    """
    mantissa, _, exponent = text.lower().lstrip("+-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals:
        return 1e-6 * max(1.0, abs(float(text)))
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return 0.5 * unit * (1.0 + 1e-9) + 4e-16 * abs(float(text))


def _number(text: str) -> float | bool:
    words = {"true": True, "false": False}
    return words[text.lower()] if text.lower() in words else float(text)


def _array(value: Any) -> list[Any]:
    """[shape, elements] of nested lists of texts."""
    shape, part = [], value
    while isinstance(part, list):
        shape.append(len(part))
        part = part[0]
    return [shape, [_number(text) for text in _flat(value)]]


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value
