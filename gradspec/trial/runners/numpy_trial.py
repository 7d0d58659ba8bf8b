"""Trial of NumPy modules: f, f_vjp and f_jvp."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from ranked_trying import cotangents, probes, shapes, tensors
from reporting import RELATIVE, Trial, slack
from trying import arrays, main, runs

KINDS = {"int": "int64", "bool": "bool"}


class NumpyAdapter:
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return np.array(value, dtype=KINDS.get(kind, dtype))

    def shape(self, value: Any) -> tuple[int, ...]:
        return np.shape(value)

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in np.ravel(np.asarray(value))]

    def vjp(
        self,
        module: ModuleType,
        case: dict[str, Any],
        inputs: list[Any],
        statics: dict[str, Any],
    ) -> tuple[tuple[Any, ...], Any]:
        plain = _tuple(getattr(module, case["rule"])(*inputs, **statics))
        outputs, pullback = getattr(module, f"{case['rule']}_vjp")(*inputs, **statics)
        outputs = _tuple(outputs)
        for one, other in zip(plain, outputs, strict=True):
            if not np.array_equal(
                one, other, equal_nan=np.asarray(one).dtype.kind == "f"
            ):
                raise AssertionError(
                    f"{case['rule']}: f and f_vjp give different outputs"
                )
        return outputs, lambda *upstream: _tuple(pullback(*upstream))

    def further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        """The tangent of each output along each input is the pullback's entry: ⟨u, J t⟩ =
        ⟨Jᵀ u, t⟩, with the true gradients on the right.
        """
        if not case["exact"] or any(kind != "float" for _, kind in case["outputs"]):
            return
        jvp = getattr(module, f"{case['rule']}_jvp")
        for numbered, run in runs(case, group):
            inputs = arrays(self, case, run)
            for place, (name, kind, _) in enumerate(case["inputs"]):
                if kind != "float":
                    continue
                tangents = [
                    np.ones_like(v) if i == place else None
                    for i, v in enumerate(inputs)
                ]
                _, found = jvp(tuple(inputs), tuple(tangents), **group["statics"])
                self._compare(trial, case, group, numbered, name, _tuple(found))

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        return np.array(values, dtype=KINDS.get(kind, "float64")).reshape(shape)

    def restrided(self, tensor: Any) -> Any:
        if not tensor.ndim:
            return tensor
        doubled = np.repeat(np.asfortranarray(tensor), 2, axis=-1)
        return np.swapaxes(np.swapaxes(doubled, 0, -1).copy(), 0, -1)[..., ::2]

    def ranked_further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
    ) -> None:
        """⟨u, J t⟩ = ⟨Jᵀ u, t⟩ for a tangent of each input, with the true gradients."""
        if not case["exact"] or any(kind != "float" for _, kind in case["outputs"]):
            return
        jvp = getattr(module, f"{case['rule']}_jvp")
        inputs, upstream = tensors(self, case, call), cotangents(self, case, call)
        moves = probes(self, case, call)
        for place, (name, kind, _) in enumerate(case["inputs"]):
            if kind != "float":
                continue
            tangents: list[Any] = [None] * len(inputs)
            tangents[place] = moves[place]
            _, found = jvp(tuple(inputs), tuple(tangents), **call["statics"])
            left = sum(
                float(np.sum(u * t))
                for u, t in zip(upstream, _tuple(found), strict=True)
            )
            pairs = zip(
                call["expected"][f"d{name}"][1], self.listed(moves[place]), strict=True
            )
            terms = [gradient * move for gradient, move in pairs]
            room = RELATIVE * max([1.0, *(abs(v) for v in terms)])
            where = shapes(case, call)
            trial.expect(f"tangent along {name}", where, left, sum(terms), room)

    def _compare(
        self,
        trial: Trial,
        case: dict[str, Any],
        group: dict[str, Any],
        numbered: list[int],
        name: str,
        tangents: tuple[Any, ...],
    ) -> None:
        columns = [np.broadcast_to(t, (len(numbered),)) for t in tangents]
        for place, number in enumerate(numbered):
            point = group["points"][number]
            expected = group["expected"][f"d{name}"][number]
            terms = [
                float(column[place]) * point[f"d{output}"]
                for column, (output, _) in zip(columns, case["outputs"], strict=True)
            ]
            if not np.isnan(expected):
                room = slack(expected, point, RELATIVE)
                trial.expect(
                    f"tangent along {name}", str(point), sum(terms), expected, room
                )


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(NumpyAdapter())
