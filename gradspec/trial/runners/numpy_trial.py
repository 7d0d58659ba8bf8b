"""Trial of NumPy modules: f, f_vjp and f_jvp."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from trying import KINDS, RELATIVE, Adapter, Case, One, main, tuple_of


class NumpyAdapter(Adapter):
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return np.array(value, dtype=KINDS.get(kind, dtype))

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        return np.array(values, dtype=KINDS.get(kind, "float64")).reshape(shape)

    def restrided(self, tensor: Any) -> Any:
        if not tensor.ndim:
            return tensor
        doubled = np.repeat(np.asfortranarray(tensor), 2, axis=-1)
        return np.swapaxes(np.swapaxes(doubled, 0, -1).copy(), 0, -1)[..., ::2]

    def shape(self, value: Any) -> tuple[int, ...]:
        return np.shape(value)

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in np.ravel(np.asarray(value))]

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        name = case["rule"]
        plain = tuple_of(getattr(module, name)(*inputs, **statics))
        outputs, pullback = getattr(module, f"{name}_vjp")(*inputs, **statics)
        for one, other in zip(plain, tuple_of(outputs), strict=True):
            nan = np.asarray(one).dtype.kind == "f"
            if not np.array_equal(one, other, equal_nan=nan):
                raise AssertionError(f"{name}: f and f_vjp give different outputs")
        return tuple_of(outputs), lambda *upstream: tuple_of(pullback(*upstream))

    def further(self, one: One) -> None:
        """⟨u, J t⟩ = ⟨Jᵀ u, t⟩ for a tangent of each input, with the true gradients; of
        an elementwise rule at each point.
        """
        kinds = [kind for _, kind in one.case["outputs"]]
        if not one.case["exact"] or any(kind != "float" for kind in kinds):
            return
        jvp = getattr(one.module, f"{one.case['rule']}_jvp")
        inputs, upstream, moves = one.inputs(), one.cotangents(), one.probes()
        for place, (name, _) in enumerate(one.case["inputs"]):
            if moves[place] is None:
                continue
            tangents = [m if k == place else None for k, m in enumerate(moves)]
            _, found = jvp(tuple(inputs), tuple(tangents), **one.statics)
            pairs = list(zip(upstream, tuple_of(found), strict=True))
            shape, flat = one.call["expected"][f"d{name}"]
            right = np.reshape(flat, shape) * moves[place]
            what = f"tangent along {name}"
            if one.case["axes"]:
                left = float(sum(np.sum(u * t) for u, t in pairs))
                room = RELATIVE * float(np.max(np.abs(right), initial=1.0))
                one.trial.expect(what, one.where, left, float(np.sum(right)), room)
            else:
                wanted = (shape, right.ravel().tolist())
                one.compare(what, sum(u * t for u, t in pairs), wanted)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(NumpyAdapter())
