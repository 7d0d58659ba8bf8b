"""Conformance of torch modules: two processes that talk by gloo."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from conforming import imported, require
from conforming_torch_setting import Layer, Setting, feature
from torch import distributed

WORLD = 2


def _start(s: Setting, name: str) -> Any:
    """``name`` in two processes; the first one's gradients."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port, out = free.getsockname()[1], Path(folder) / "gradients.json"
        free.close()
        given = (name, s.path, s.case, port, str(out))
        torch.multiprocessing.spawn(_process, given, WORLD)
        require(out.exists(), "the processes gave no gradients")
        return json.loads(out.read_text("utf-8"))


def _process(
    rank: int, name: str, path: str, case: dict[str, Any], port: int, out: str
) -> None:
    here = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {**here, "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=WORLD)
    try:
        module: ModuleType = imported(path)
        found = _WAYS[name](Setting(module, case))
        if rank == 0:
            Path(out).write_text(json.dumps(found), "utf-8")
        distributed.barrier()
    finally:
        distributed.destroy_process_group()


def _ddp(s: Setting) -> Any:
    """Gradients are the mean over processes, which have the same inputs."""
    layer = torch.nn.parallel.DistributedDataParallel(Layer(s))
    layer().backward()
    return s.listed([weight.grad for weight in layer.module.weights])


def _fsdp(s: Setting) -> Any:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    layer = Layer(s)
    mesh = distributed.init_device_mesh("cpu", (WORLD,))
    scalars = [w for w in layer.weights if not w.dim()]
    fully_shard(layer, mesh=mesh, ignored_params=set(scalars))
    layer().backward()
    return s.listed(
        w.grad.full_tensor() if isinstance(w.grad, DTensor) else w.grad
        for w in layer.weights
    )


def _dtensor(s: Setting) -> Any:
    """The first axis is spread over the processes where there is a batch."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = distributed.init_device_mesh("cpu", (WORLD,))

    def spread(x: Any) -> Any:
        whole = x.dim() and x.shape[0] % WORLD == 0
        return distribute_tensor(x, mesh, [Shard(0) if whole else Replicate()])

    s.inputs, s.upstream = list(map(spread, s.inputs)), list(map(spread, s.upstream))
    leaves = [x.detach().requires_grad_() for x in s.floats]
    s.total(*leaves).full_tensor().backward()
    return s.listed([leaf.grad.full_tensor() for leaf in leaves])


_WAYS = {"DDP": _ddp, "FSDP2": _fsdp, "DTensor": _dtensor}


def _feature(name: str) -> None:
    feature(name)(lambda s: _start(s, name))


for _name in _WAYS:
    _feature(_name)
