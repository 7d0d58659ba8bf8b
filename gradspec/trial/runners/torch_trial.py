"""Trial of torch modules: values, gradcheck, gradgradcheck, second derivatives."""

from __future__ import annotations

import warnings
from functools import partial
from types import ModuleType
from typing import Any

import torch
from ranked_trying import compare_second, cotangents, probes, shapes, tensors
from reporting import SECOND_ORDER, Trial, slack
from trying import arrays, main, runs, smooth, upstreams

KINDS = {"int": "int64", "bool": "bool"}
CHECKED_POINTS = 5

_GRADCHECK = partial(torch.autograd.gradcheck, check_forward_ad=True)


class TorchAdapter:
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        tensor = torch.tensor(value, dtype=getattr(torch, KINDS.get(kind, dtype)))
        return tensor.requires_grad_(kind == "float")

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape)

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in value.detach().reshape(-1).tolist()]

    def vjp(
        self,
        module: ModuleType,
        case: dict[str, Any],
        inputs: list[Any],
        statics: dict[str, Any],
    ) -> tuple[tuple[Any, ...], Any]:
        outputs = _tuple(getattr(module, case["rule"])(*inputs, **statics))
        return outputs, lambda *upstream: _gradients(
            _floating(case, outputs), inputs, upstream
        )

    def further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        chosen = smooth(case, group, CHECKED_POINTS)
        if chosen is None:
            return
        self._second(trial, module, case, chosen)
        if case["exact"]:
            self._gradcheck(trial, module, case, chosen)

    def _second(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        """∂(dx)/∂x through the emitted backward."""
        for numbered, run in runs(case, group):
            inputs = arrays(self, case, run)
            upstream = [u.detach() for u in upstreams(self, case, run)]
            function = getattr(module, case["rule"])
            outputs = _tuple(function(*inputs, **group["statics"]))
            first = _gradients(
                _floating(case, outputs), inputs, upstream, create_graph=True
            )
            for (name, _, _), x, gradient in zip(
                case["inputs"], inputs, first, strict=True
            ):
                if gradient is None:
                    continue
                second = _derivative(gradient, x)
                for place, number in enumerate(numbered):
                    expected = group["second"][number][f"d{name}"]
                    point = group["points"][number]
                    room = slack(expected, point, SECOND_ORDER)
                    got = second.reshape(-1)[place].item()
                    trial.expect(
                        f"second derivative by {name}", str(point), got, expected, room
                    )

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        dtype = getattr(torch, KINDS.get(kind, "float64"))
        tensor = torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape)
        return tensor.requires_grad_(kind == "float")

    def restrided(self, tensor: Any) -> Any:
        if not tensor.dim():
            return tensor
        doubled = tensor.detach().repeat_interleave(2, dim=-1)
        turned = doubled.transpose(0, -1).contiguous().transpose(0, -1)[..., ::2]
        return turned.requires_grad_(tensor.requires_grad)

    def ranked_further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
    ) -> None:
        if call["second"] is None:
            return
        inputs = tensors(self, case, call)
        outputs, _ = self.vjp(module, case, inputs, call["statics"])
        upstream = [u.detach() for u in cotangents(self, case, call)]
        first = _gradients(
            _floating(case, outputs), inputs, upstream, create_graph=True
        )
        whole = sum(
            (g * p).sum()
            for g, p in zip(first, probes(self, case, call), strict=True)
            if g is not None
        )
        second = [
            None if g is None else _derivative(whole, x)
            for g, x in zip(first, inputs, strict=True)
        ]
        compare_second(trial, self, case, call, second)
        if case["exact"]:
            self._ranked_gradcheck(trial, module, case, call)

    def _ranked_gradcheck(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
    ) -> None:
        inputs = tuple(tensors(self, case, call))
        if not any(x.requires_grad and x.numel() for x in inputs):
            return
        function = getattr(module, case["rule"])

        def floats(*given: Any) -> Any:
            return _floating(case, _tuple(function(*given, **call["statics"])))

        where = shapes(case, call)
        trial.attempt("gradcheck", where, lambda: _check(_GRADCHECK, floats, inputs))
        trial.attempt(
            "gradgradcheck",
            where,
            lambda: _check(torch.autograd.gradgradcheck, floats, inputs),
        )

    def _gradcheck(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        """torch's own finite differences, with its default tolerances, against both
        modes.
        """
        function = getattr(module, case["rule"])
        for _, run in runs(case, group):
            inputs = tuple(arrays(self, case, run))
            if not any(x.requires_grad for x in inputs):
                continue

            def call(*tensors: Any) -> Any:
                outputs = _tuple(function(*tensors, **group["statics"]))
                return _floating(case, outputs)

            trial.attempt(
                "gradcheck",
                str(run),
                lambda i=inputs: _check(_GRADCHECK, call, i),
            )
            trial.attempt(
                "gradgradcheck",
                str(run),
                lambda i=inputs: _check(torch.autograd.gradgradcheck, call, i),
            )


def _check(check: Any, call: Any, inputs: tuple[Any, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(call, inputs)


def _gradients(
    outputs: tuple[Any, ...],
    inputs: list[Any],
    upstream: Any,
    create_graph: bool = False,
) -> tuple[Any, ...]:
    """One gradient an input, None where it takes none."""
    reached = [(o, u) for o, u in zip(outputs, upstream, strict=True)]
    reached = [(o, u) for o, u in reached if o.requires_grad]
    leaves = [x for x in inputs if x.requires_grad]
    if not leaves or not reached:
        return tuple(None for _ in inputs)
    found = iter(
        torch.autograd.grad(
            [o for o, _ in reached],
            leaves,
            [u.detach() for _, u in reached],
            create_graph=create_graph,
            materialize_grads=True,
        )
    )
    return tuple(next(found) if x.requires_grad else None for x in inputs)


def _floating(case: dict[str, Any], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs that take an upstream gradient."""
    return tuple(
        output
        for (_, kind), output in zip(case["outputs"], outputs, strict=True)
        if kind == "float"
    )


def _derivative(gradient: Any, x: Any) -> Any:
    if not gradient.requires_grad:
        return torch.zeros_like(x)
    (second,) = torch.autograd.grad(
        gradient.sum(), x, retain_graph=True, materialize_grads=True
    )
    return second


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(TorchAdapter())
