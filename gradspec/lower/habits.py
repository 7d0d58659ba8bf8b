"""Functions and names of other libraries: how they are written here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradspec.lower.context import Context, Role
from gradspec.primitives.lookup import is_function
from gradspec.syntax import nodes
from gradspec.syntax.foreign import STOPPING
from gradspec.syntax.grammar import REDUCTIONS

_FORMS = {
    "ln": "log({0})",
    "where": "{1} if {0} else {2}",
    "select": "{1} if {0} else {2}",
    "cond": "{1} if {0} else {2}",
    "ifelse": "{1} if {0} else {2}",
    "maximum": "max({0}, {1})",
    "fmax": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "fmin": "min({0}, {1})",
    "clamp": "clip({0}, {1}, {2})",
    "clip_by_value": "clip({0}, {1}, {2})",
    "arctan": "atan({0})",
    "arcsin": "asin({0})",
    "arccos": "acos({0})",
    "arcsinh": "asinh({0})",
    "arccosh": "acosh({0})",
    "arctanh": "atanh({0})",
    "arctan2": "atan2({0}, {1})",
    "power": "({0})**({1})",
    "pow": "({0})**({1})",
    "exp2": "2**({0})",
    "sgn": "sign({0})",
    "fabs": "abs({0})",
    "absolute": "abs({0})",
    "rsqrt": "1 / sqrt({0})",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "mod": "{0} % {1}",
    "fmod": "{0} % {1}",
    "expit": "sigmoid({0})",
    "logistic": "sigmoid({0})",
    "gammaln": "lgamma({0})",
    "loggamma": "lgamma({0})",
    "psi": "digamma({0})",
    "step": "1 if {0} > 0 else 0",
    "heaviside": "1 if {0} > 0 else 0",
    "norm": "sqrt(sum(x[i]**2 for i))",
    "dot": "sum(a[i] * b[i] for i)",
    "inner": "sum(a[i] * b[i] for i)",
    "matmul": "sum(a[i, l] * b[l, j] for l)",
    "mm": "sum(a[i, l] * b[l, j] for l)",
    "einsum": "sum(a[i, l] * b[l, j] for l)",
    "softmax": "exp(x[i]) / sum(exp(x[j]) for j)",
    "log_softmax": "x[i] - logsumexp(x[j] for j)",
    "var": "mean((x[i] - m)**2 for i)",
    "std": "sqrt(mean((x[i] - m)**2 for i))",
    "cumsum": "sum(x[j] for j if j <= i)",
    "argmax": "max(x[i] for i)",
    "amax": "max(x[i] for i)",
    "amin": "min(x[i] for i)",
    "reduce_sum": "sum(x[i] for i)",
    "reduce_mean": "mean(x[i] for i)",
    "reduce_max": "max(x[i] for i)",
}
"""By the name of NumPy, PyTorch, TensorFlow, SciPy or C; ``{0}`` is the first argument.
Of functions of whole arrays the formula of an element, in which `x` is the array."""

_GRADIENT = re.compile(r"(?:grad|gradient|upstream|cotangent|g)_?(\w*)")


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
        return _reduced(name, node, arguments, cx)
    if name in ("stop_gradient", "detach"):
        return STOPPING
    if name in _FORMS:
        return f"write `{_filled(_FORMS[name], arguments)}`"
    if node.output is not None and is_function(name):
        return f"`{name}` is a built-in: write `{name}({', '.join(arguments)})`"
    return ""


def is_of_arrays(node: nodes.Call) -> bool:
    """True if a function from elsewhere takes whole arrays: their names have no
    indices."""
    name = node.output or node.function
    return name in REDUCTIONS or "{0}" not in _FORMS.get(name, "{0}")


def reduction_help(node: nodes.Call, cx: Context) -> str:
    """Advice for ``sum(x)`` and ``max(x[i])``."""
    arguments = [cx.findings.text(arg.span) for arg in node.args]
    return _reduced(node.function, node, arguments, cx)


def name_help(name: str, cx: Context) -> str:
    """The name here of what another library calls so; empty if there is none."""
    if name == "e":
        return "Euler's number is `exp(1)`; write `exp(x)` for its powers"
    upstream = [v.name for v in cx.scope.variables.values() if v.role is Role.UPSTREAM]
    called = _GRADIENT.fullmatch(name)
    if called is None or not upstream:
        return ""
    wanted = f"d{called[1]}"
    one = wanted if wanted in upstream else upstream[0]
    return f"the upstream gradient of `{one[1:]}` is called `{one}`"


def _filled(form: str, arguments: Sequence[str]) -> str:
    places = len(set(re.findall(r"\{\d\}", form)))
    if places and len(arguments) != places:
        arguments = ["a", "b", "c"][:places]
    text = form.format(*arguments)
    return re.sub(
        r"\(([\w.]+)\)\*\*", r"\1**", re.sub(r"\*\*\(([\w.]+)\)", r"**\1", text)
    )


def _element(cx: Context, name: str) -> str:
    """A variable, with an index for each axis."""
    axes = cx.scope.variables[name].axes
    indices = ", ".join("ijklmnpqrs"[: len(axes)])
    return f"{name}[{indices}]" if axes else name


def _reduced(name: str, node: nodes.Call, arguments: Sequence[str], cx: Context) -> str:
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
    return sorted(n for n in names if scope.index(n) is None and n not in scope.known())
