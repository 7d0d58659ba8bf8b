"""Rules in NumPy, which has no derivatives but theirs."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.measure.frameworks import setting
from gradspec.measure.frameworks.audit import Library
from gradspec.measure.frameworks.setting import Case, Register
from gradspec.measure.frameworks.shared import in_format, require, without_calls


class Setting(setting.Setting):
    """A rule at one point, in NumPy's words; gradients are those of its ``_vjp``."""

    differentiates = False

    def __init__(self, module: ModuleType, case: Case, dtype: str = "float32") -> None:
        super().__init__(module, case, dtype)
        self.module, self.statics = module, case["statics"]

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        dtype = {"int": "int64", "bool": "bool"}.get(kind, self.dtype)
        return np.asarray(flat, np.float64).reshape(shape).astype(dtype)

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        array = np.asarray(x, np.float64)
        return list(array.shape), array.ravel().tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return np.sum(x * y)

    def units(self, x: Any) -> Sequence[Any]:
        return [u.reshape(x.shape) for u in np.eye(x.size, dtype=x.dtype)]

    def function(self, suffix: str) -> Any:
        """The emitted function whose name ends so."""
        return getattr(self.module, self.case["rule"] + suffix)

    def vjp(self, *inputs: Any) -> Any:
        return self.function("_vjp")(*(inputs or self.inputs), **self.statics)

    def jvp(self, tangents: Sequence[Any]) -> Any:
        moved = self.among([None] * len(self.inputs), tangents)
        return self.function("_jvp")(tuple(self.inputs), tuple(moved), **self.statics)

    def pulled(self, pullback: Any) -> list[Any]:
        """The gradients that a pullback gives for the floating inputs."""
        found = tuple_of(pullback(*self.upstream))
        return [found[k] for k in self.places]

    def first(self, *_: Any) -> list[Any]:
        """The gradients."""
        return self.pulled(self.vjp()[1])

    def differentiable(self, outputs: Any) -> list[Any]:
        """The outputs that take a cotangent."""
        kinds = [kind for _, kind in self.case["outputs"]]
        pairs = zip(tuple_of(outputs), kinds, strict=True)
        return [y for y, kind in pairs if kind == "float"]

    def emitted(self) -> Case:
        """The quantities, gradients by the rule's own function."""
        values, pullback = self.vjp()
        names = self.floating("outputs")
        outputs = dict(zip(names, self.differentiable(values), strict=True))
        found = {f"0:{name}:": value for name, value in outputs.items()}
        weights = self.ones
        for name in outputs if self.case["order"] else ():
            pairs = zip(outputs.items(), weights, strict=True)
            self.upstream = [np.full_like(o, w * (n == name)) for (n, o), w in pairs]
            variables = zip(
                self.floating("inputs"), self.pulled(pullback), self.floats, strict=True
            )
            for variable, gradient, x in variables:
                found[f"1:{name}:{variable}"] = np.broadcast_to(gradient, x.shape)
        return found

    @staticmethod
    def library() -> Library:
        from scipy import special

        inverses = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
        return Library(
            (np, special),
            {f"a{name}": getattr(np, f"arc{name}") for name in inverses}
            | {
                "stop": lambda x: x,
                "sigmoid": special.expit,
                "logsigmoid": special.log_expit,
                "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
                "lgamma": special.gammaln,
                "sinc": lambda x: np.sinc(x / np.pi),
                "i0": special.i0,
            },
            {
                "huber": lambda x, t, delta: special.huber(delta, x - t),
                "pseudo_huber": lambda x, t, delta: special.pseudo_huber(delta, x - t),
                "sinc": np.sinc,
                "trigamma": lambda x: special.polygamma(1, x),
                "entropy": special.entr,
                "relative_entropy": special.rel_entr,
            },
        )


def tuple_of(value: Any) -> tuple[Any, ...]:
    """``value``, or a tuple of it alone."""
    return value if isinstance(value, tuple) else (value,)


def _push(s: Setting, tangents: Sequence[Any]) -> Any:
    moved = (t for t in tuple_of(s.jvp(tangents)[1]) if t is not None)
    return sum(map(s.dot, moved, s.upstream))


feature = Register(
    {
        "values": lambda s: s.outputs(*s.floats),
        "f_vjp, values": lambda s: s.differentiable(s.vjp()[0]),
        "f_jvp, values": lambda s: s.differentiable(
            s.jvp(list(map(np.ones_like, s.floats)))[0]
        ),
        "f_jvp": lambda s: s.along(lambda tangents: _push(s, tangents)),
        "float64": in_format("float64"),
        "empty arrays": without_calls,
    }
)


@feature("f_vjp")
def pulled(s: Setting) -> Any:
    found = tuple_of(s.vjp()[1](*s.upstream))
    kinds = [None if g is None else g.dtype for g in found]
    wanted = [x.dtype if k in s.places else None for k, x in enumerate(s.inputs)]
    require(kinds == wanted, f"gradients of the types {kinds}")
    return [found[k] for k in s.places]


@feature("pullback twice")
def pulled_twice(s: Setting) -> Any:
    """Two calls of one pullback leave arguments and cotangents unchanged."""
    before = [x.copy() for x in (*s.inputs, *s.upstream)]
    _, pullback = s.vjp()
    pullback(*s.upstream)
    found = s.pulled(pullback)
    same = all(map(np.array_equal, before, (*s.inputs, *s.upstream)))
    require(same, "an argument or a cotangent was changed in place")
    return found


@feature("non-contiguous inputs")
def strided(s: Setting) -> Any:
    s.inputs = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in s.inputs]
    return s.first()


if __name__ == "__main__":
    np.seterr(all="ignore")
    setting.do_job(Setting, feature)
