"""Functions that no formula says: their kinds, by their names."""

from __future__ import annotations

import re

from gradspec.lift.values import words

FRAMEWORKS = words("torch tensorflow jax numpy scipy math keras jaxlib flax builtins")
RANDOM = words(
    "rand randn bernoulli rand_like randn_like uniform normal randint randperm"
    " multinomial poisson dropout random_uniform gumbel truncated_normal"
    " exponential categorical laplace cauchy random_normal permutation"
    " alpha_dropout feature_dropout"
)
"""Functions whose results are random (in place with `_`)."""

RESHAPING = words(
    "view reshape flatten cat concat concatenate stack chunk split gather scatter"
    " index_select pad roll tile repeat narrow unfold take take_along_axis"
    " take_along_dim sort argsort topk argmax argmin nonzero cumsum cumprod unbind"
    " masked_select one_hot flip diag diagonal tril triu repeat_interleave"
    " index_add scatter_add unstack ravel fft rfft irfft ifft svd eigh inverse inv"
    " qr cholesky solve einsum tensordot conv2d conv1d conv_transpose2d trace det"
    " logdet embedding dynamic_slice searchsorted unsorted_segment_sum segment_sum"
    " movedim moveaxis rot90 gather_nd boolean_mask triangular_solve hstack vstack"
)
"""Functions that rearrange elements or compute with whole matrices: the language says
them otherwise, or not yet."""

_COMMUNICATION = re.compile(
    r"all_reduce|all_gather|reduce_scatter|all_to_all|distributed|\bdist\b|psum|pmean"
    r"|ppermute|\bsend\b|\brecv\b|isend|irecv|process_group|comm_group|\bbarrier\b|nccl|horovod"
    r"|_group\b|communicat"
)
_KERNEL = re.compile(
    r"cuda|triton|_C\b|_ext\b|ext\b|kernel|cpp|backend|_ops\b|cupy|load_library|lib$|pallas"
    r"|\.ops\.|numpy_function|py_func|pure_callback|custom_call|numba|ctypes|libs?\b"
)
_AUTOGRAD = re.compile(
    r"autograd\.|\.grad$|\.vjp$|\.jvp$|value_and_grad|\.gradients$|jacobian|hessian"
    r"|GradientTape|enable_grad|\.jacfwd$|\.jacrev$|\.linearize$|\.backward$"
)


def kind_of_unknown(name: str) -> tuple[str, str] | None:
    """The kind of a function that is not one of numbers, and what is said of it."""
    if name.startswith("tensorflow.python.ops."):
        name = name.rpartition(".")[2]
    if _AUTOGRAD.search(name):
        return "autograd", f"`{name}` is automatic differentiation itself"
    if _COMMUNICATION.search(name):
        return "communication", f"`{name}` communicates"
    if _KERNEL.search(name):
        return "kernel", f"`{name}` is a compiled function"
    tail = name.rpartition(".")[2].rstrip("_")
    if tail in RANDOM or ".random." in name:
        return "random", f"`{name}` is random"
    if tail in RESHAPING:
        return "reshape", f"`{name}` rearranges elements"
    return None
