"""Conformance of torch modules: two processes that talk by gloo."""

from __future__ import annotations

import os
import socket
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

import torch
from conforming import imported, require, told, torch_module
from setting_torch import Layer, Setting, feature
from torch import distributed

WORLD = 2


class _Processes:
    """Two that serve one cell after another, since to start them takes ten times what a
    cell takes. After a failure they are in no known state: the next cell gets others.
    """

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = torch.multiprocessing.get_context("spawn")
        self.ends, self.children = [], []
        for rank in range(WORLD):
            here, there = context.Pipe()
            child = context.Process(
                target=_process, args=(rank, port, there), daemon=True
            )
            child.start()
            there.close()  # so that a process that dies is heard
            self.ends.append(here)
            self.children.append(child)

    def ask(self, *cell: Any) -> Any:
        """The first one's gradients; the first fault, which leaves the other
        waiting."""
        for end in self.ends:
            end.send(cell)
        found, waited = {}, list(self.ends)
        while waited:
            for end in wait(waited):
                found[end] = _answer(end)
                waited.remove(end)
        return found[self.ends[0]]

    def stop(self) -> None:
        for child in self.children:
            child.kill()
            child.join()


def _answer(end: Any) -> Any:
    try:
        found, fault = end.recv()
    except EOFError:
        raise RuntimeError("one of the processes died") from None
    require(not fault, fault)
    return found


_running: list[_Processes] = []


def _start(s: Setting, name: str) -> Any:
    """``name`` in two processes; the first one's gradients."""
    if not _running:
        _running.append(_Processes())
    try:
        found = _running[0].ask(name, s.path, s.case)
    except BaseException:
        _running.pop().stop()
        raise
    return [s.tensor(g, "float") for g in found]


def _process(rank: int, port: int, end: Connection) -> None:
    here = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {**here, "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=WORLD)
    while True:
        try:
            name, path, case = end.recv()
        except EOFError:
            return
        try:
            end.send((_gradients(name, path, case), ""))
        except Exception as fault:
            end.send((None, told(fault)))


def _gradients(name: str, path: str, case: dict[str, Any]) -> Any:
    torch.compiler.reset()
    find = torch_module if case["way"] == "plain" else imported
    module: ModuleType = find(path)
    s = Setting(module, case)
    found = s.listed(_WAYS[name](s))
    distributed.barrier()
    return found


def _shared(s: Setting) -> Setting:
    """Each process has every other element of the cotangents; the mean over the
    processes is half of what one would get.
    """
    rank = distributed.get_rank()
    for u in s.upstream:
        places = torch.arange(u.numel()).reshape(u.shape)
        u.mul_(places % WORLD == rank)
    return s


def _ddp(s: Setting, **options: Any) -> Any:
    layer = torch.nn.parallel.DistributedDataParallel(Layer(_shared(s)))
    call = torch.compile(layer, **options) if options else layer
    call().backward()
    return [WORLD * weight.grad for weight in layer.module.weights]


def _fsdp(s: Setting) -> Any:
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


def _dtensor(s: Setting) -> Any:
    """The first axis is spread over the processes where there is a batch."""
    from torch.distributed.tensor import Replicate, Shard

    return _spread(
        s,
        lambda x: Shard(0) if x.dim() and x.shape[0] % WORLD == 0 else Replicate(),
    )


def _replicated(s: Setting) -> Any:
    from torch.distributed.tensor import Replicate

    return _spread(s, lambda x: Replicate())


def _spread(s: Setting, placement: Any) -> Any:
    from torch.distributed.tensor import distribute_tensor

    mesh = distributed.init_device_mesh("cpu", (WORLD,))

    def spread(x: Any) -> Any:
        return distribute_tensor(x, mesh, [placement(x)])

    s.inputs, s.upstream = list(map(spread, s.inputs)), list(map(spread, s.upstream))
    leaves = [x.detach().requires_grad_() for x in s.floats]
    s.total(*leaves).full_tensor().backward()
    return [leaf.grad.full_tensor() for leaf in leaves]


_WAYS = {
    "DDP": _ddp,
    "DDP, compiled": lambda s: _ddp(s, backend="aot_eager"),
    "FSDP2": _fsdp,
    "DTensor": _dtensor,
    "DTensor, replicated": _replicated,
}


feature |= {name: lambda s, name=name: _start(s, name) for name in _WAYS}
