"""Functions of other libraries: what is written here in the place of their calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gradspec.diagnostics import Fix
from gradspec.lower.context import Context
from gradspec.primitives.lookup import is_function
from gradspec.source import SHIPPED, Span
from gradspec.syntax import nodes
from gradspec.syntax.grammar import REDUCTIONS
from gradspec.syntax.mistakes import STOPPING

_HABITS = {
    name: forms
    for names, forms in {
        "ln": "log({0})",
        "where select cond ifelse": "{1} if {0} else {2}",
        "maximum fmax": "max({0}, {1})",
        "minimum fmin": "min({0}, {1})",
        "clamp clip clip_by_value": "clip({0}, {1}, {2}) | max({0}, {1}) | min({0}, {2})",
        "arctan": "atan({0})",
        "arcsin": "asin({0})",
        "arccos": "acos({0})",
        "arcsinh": "asinh({0})",
        "arccosh": "acosh({0})",
        "arctanh": "atanh({0})",
        "arctan2": "atan2({0}, {1})",
        "power pow": "({0})**({1})",
        "exp10": "10**({0})",
        "sgn": "sign({0})",
        "fabs absolute": "abs({0})",
        "rint": "round({0})",
        "fix": "trunc({0})",
        "add": "{0} + {1}",
        "subtract": "{0} - {1}",
        "multiply mul": "{0} * {1}",
        "divide true_divide div": "{0} / {1}",
        "negative neg": "-{0}",
        "mod fmod remainder": "{0} % {1}",
        "expit logistic": "sigmoid({0})",
        "log_expit log_sigmoid": "logsigmoid({0})",
        "gammaln loggamma": "lgamma({0})",
        "psi": "digamma({0})",
        "trigamma": "polygamma(1, {0})",
        "step heaviside": "1 if {0} > 0 else 0",
        "norm": "sqrt(sum(x[i]**2 for i))",
        "dot inner": "sum(a[i] * b[i] for i)",
        "matmul mm einsum": "sum(a[i, l] * b[l, j] for l)",
        "softmax": "exp(x[i]) / sum(exp(x[j]) for j)",
        "log_softmax": "x[i] - logsumexp(x[j] for j)",
        "var": "mean((x[i] - m)**2 for i)",
        "std": "sqrt(mean((x[i] - m)**2 for i))",
        "cumsum": "sum(x[j] for j if j <= i)",
        "sort": "x[nth(k, x[j] for j)]",
        "topk top_k": "x[nth(k, -x[j] for j)]",
        "argsort nth": "nth(k, x[j] for j)",
        "median": "x[nth(floor((n - 1) / 2), x[j] for j)]",
        "argmax amax reduce_max": "max(x[i] for i)",
        "amin reduce_min": "min(x[i] for i)",
        "reduce_sum": "sum(x[i] for i)",
        "reduce_mean": "mean(x[i] for i)",
    }.items()
    for name in names.split()
}
"""By the name of NumPy, PyTorch, TensorFlow, SciPy or C; ``{0}`` is the first argument.
Of functions of whole arrays the formula of an element, in which `x` is the array; of
several forms that for the arguments that are given."""

_PLACES = {
    "input x a base": 0,
    "min a_min low lo clip_value_min exponent other": 1,
    "max a_max high hi clip_value_max": 2,
}
"""The places of arguments that are passed by keyword."""


def call_help(node: nodes.Call, cx: Context) -> str:
    """Advice for a call of a function of another library; empty for any other."""
    arguments = [cx.findings.text(arg.span) for arg in node.args]
    name = node.function
    if node.output is not None:
        if name in cx.scope.variables:  # x.exp()
            own = _element(cx, name)
            arguments = [own, *arguments]
        name = node.output
    if name in REDUCTIONS:
        return reduction_text(name, node, arguments, cx)
    if name in ("stop_gradient", "detach"):
        return STOPPING
    if name in _HABITS:
        words = {word.name: cx.findings.text(word.value.span) for word in node.keywords}
        placed = {
            place: words[word]
            for some, place in _PLACES.items()
            for word in some.split()
            if word in words
        }
        return f"write `{_filled_form(_HABITS[name], placed | dict(enumerate(arguments)))}`"
    if node.output is not None and is_function(name):
        return f"`{name}` is a built-in: write `{name}({', '.join(arguments)})`"
    return ""


def rewritten_calls(node: nodes.Call, cx: Context) -> tuple[Fix, ...]:
    """The call of another library's function as it is written here."""
    return tuple(_each_rewritten_call(node, cx))


def _each_rewritten_call(node: nodes.Call, cx: Context) -> Iterator[Fix]:
    name = node.output or node.function
    form, count = _HABITS.get(name, "").split(" | ")[0], len(node.args)
    places = ", ".join(f"{{{k}}}" for k in range(count))
    if node.keywords or (node.output and node.function in cx.scope.variables):
        return
    if node.function == "stop_gradient":
        yield importing("stop_gradient", "control/gradients", cx)
    if node.output and is_function(name):
        yield Fix(f"write `{name}`", node.function_span, name, is_safe=True)
    elif form.endswith(f"({places})") and form.partition("(")[0].isidentifier():
        new = form.partition("(")[0]
        yield Fix(f"write `{new}`", node.function_span, new, is_safe=True)
    elif {*re.findall(r"\{\d\}", form)} == {*places.split(", ")}:
        form = re.sub(r"\((\{\d\})\)", r"\1", form)
        given = (cx.findings.text(arg.span) for arg in node.args)
        new = form.format(
            *(t if re.fullmatch(r"[\w.]+", t) else f"({t})" for t in given)
        )
        is_safe = name not in _OTHERWISE
        yield Fix(f"write `{new}`", node.span, f"({new})", is_safe=is_safe)


_OTHERWISE = frozenset(["mod", "fmod", "remainder", "step", "heaviside"])
"""Functions that other libraries define otherwise at single points, or by sign."""


def importing(name: str, file: str, cx: Context) -> Fix:
    """The text with an import of a rule that comes with gradspec."""
    line = f'from "{SHIPPED}{file}" import {name}'
    others = re.search(r"^from\b", cx.findings.source.text, re.MULTILINE)
    at, end = (others.start(), "\n") if others else (0, "\n\n")
    return Fix(f"write `{line}`", Span(at, at), f"{line}{end}", is_safe=True)


def is_of_arrays(node: nodes.Call) -> bool:
    """True if a function from elsewhere takes whole arrays: their names have no
    indices."""
    name = node.output or node.function
    return name in REDUCTIONS or "{0}" not in _HABITS.get(name, "{0}")


def _filled_form(forms: str, given: Mapping[int, str]) -> str:
    """The form whose places are given, with the arguments in them."""
    every = [
        (form, {int(place) for place in re.findall(r"\{(\d)\}", form)})
        for form in forms.split(" | ")
    ]
    form, places = next((one for one in every if one[1] == given.keys()), every[0])
    if places != given.keys():
        given = dict(enumerate("abc"))
    text = form.format(*(given.get(place, "") for place in range(3)))
    return re.sub(
        r"\(([\w.]+)\)\*\*", r"\1**", re.sub(r"\*\*\(([\w.]+)\)", r"**\1", text)
    )


def _element(cx: Context, name: str) -> str:
    """A variable, with an index for each axis."""
    axes = cx.scope.variables[name].axes
    indices = ", ".join("ijklmnpqrs"[: len(axes)])
    return f"{name}[{indices}]" if axes else name


def reduction_text(
    name: str, node: nodes.Call, arguments: Sequence[str], cx: Context
) -> str:
    """``sum(exp(x[j]))`` → ``sum(exp(x[j]) for j)``"""
    example = f"a reduction names its indices: `{name}(x[i] for i)`"
    if not arguments:
        return example
    text = arguments[0]
    if not node.args or node.function in cx.scope.variables:  # x.sum()
        indices = text.partition("[")[2][:-1]
    elif isinstance(node.args[0], nodes.Name) and text in cx.scope.variables:
        text = _element(cx, text)
        indices = text.partition("[")[2][:-1]
    else:
        indices = ", ".join(_unbound(node.args[0], cx))
    return f"write `{name}({text} for {indices})`" if indices else example


def _unbound(expr: nodes.Expr, cx: Context) -> Sequence[str]:
    """Names that stand as indices and mean nothing yet."""
    indexed = (n for n in nodes.walk(expr) if isinstance(n, nodes.Indexed))
    names = {
        index.id
        for node in indexed
        for index in node.indices
        if isinstance(index, nodes.Name)
    }
    scope = cx.scope
    return sorted(
        n for n in names if scope.index(n) is None and n not in scope.known_names()
    )
