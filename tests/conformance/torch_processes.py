"""Features of the runtime for PyTorch: two processes that talk by gloo."""

from __future__ import annotations

import functools
import os
import socket
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from typing import Any

import torch
from runs_torch import Layer
from torch import distributed

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks.on_torch import Setting, feature

WORLD = 2


@functools.cache
def _processes() -> list[ProcessPoolExecutor]:
    """Two that serve one cell after another, since to start them takes ten times what a
    cell takes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    return [
        ProcessPoolExecutor(1, context, _begin, (rank, port)) for rank in range(WORLD)
    ]


def _begin(rank: int, port: int) -> None:
    here = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {**here, "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=WORLD)


def _in_processes(name: str) -> Any:
    """A feature in two processes; the first one's gradients. After a failure, which
    leaves the other waiting, the next cell gets others."""

    def run(s: Any) -> Any:
        cells = [p.submit(_gradients, name, s.path, s.case) for p in _processes()]
        try:
            for cell in wait(cells, return_when=FIRST_EXCEPTION).done:
                cell.result()
        except BaseException:
            for process in (q for p in _processes() for q in p._processes.values()):
                process.kill()
            _processes.cache_clear()
            raise
        return [s.tensor(g, "float") for g in cells[0].result()]

    return run


def _gradients(name: str, path: str, case: Any) -> Any:
    torch.compiler.reset()
    find = Setting.plain if case["way"] == "plain" else import_file
    s = Setting(find(path), case)
    found = s.listed(_WAYS[name](s))
    distributed.barrier()
    return found


def _shared(s: Any) -> Any:
    """Each process has every other element of the cotangents; the mean over the
    processes is half of what one would get.
    """
    for u in s.upstream:
        places = torch.arange(u.numel()).reshape(u.shape)
        u.mul_(places % WORLD == distributed.get_rank())
    return s


def _ddp(s: Any, **options: Any) -> Any:
    layer = torch.nn.parallel.DistributedDataParallel(Layer(_shared(s)))
    call = torch.compile(layer, **options) if options else layer
    call().backward()
    return [WORLD * weight.grad for weight in layer.module.weights]


def _fsdp(s: Any) -> Any:
    """Scalars cannot be sharded; their gradients are added up here."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    layer = Layer(_shared(s))
    mesh = distributed.init_device_mesh("cpu", (WORLD,))
    scalars = [w for w in layer.weights if not w.dim()]
    fully_shard(layer, mesh=mesh, ignored_params=set(scalars))
    layer().backward()
    for weight in scalars:
        distributed.all_reduce(weight.grad)
        weight.grad /= WORLD
    grads = [weight.grad for weight in layer.weights]
    return [WORLD * (g.full_tensor() if isinstance(g, DTensor) else g) for g in grads]


def _dtensor(s: Any) -> Any:
    """The first axis is spread over the processes where there is a batch."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = distributed.init_device_mesh("cpu", (WORLD,))

    def spread(x: Any) -> Any:
        has_parts = x.dim() and x.shape[0] % WORLD == 0
        return distribute_tensor(x, mesh, [Shard(0) if has_parts else Replicate()])

    s.inputs, s.upstream = list(map(spread, s.inputs)), list(map(spread, s.upstream))
    leaves = [x.detach().requires_grad_() for x in s.floats]
    s.total(*leaves).full_tensor().backward()
    return [leaf.grad.full_tensor() for leaf in leaves]


_WAYS = {
    "DDP": _ddp,
    "DDP, compiled": lambda s: _ddp(s, backend="aot_eager"),
    "FSDP2": _fsdp,
    "DTensor": _dtensor,
}

feature |= {name: _in_processes(name) for name in _WAYS}
