"""Names of a lifted rule: the author's where the language takes them; and functions that no
formula says: their kinds, by their names.
"""

from __future__ import annotations

import keyword
import re
from functools import cache

from gradspec.lift.values import words
from gradspec.primitives.lookup import function_names

_WORDS = words(
    "pi inf for if else and or not sum mean prod max min logsumexp rule def"
    " assume surrogate override exact save recompute example because from import"
    " np torch tf jnp jax math numpy tensorflow scipy special static int bool"
    " nograd param Tensor true false nan gradspec"
)
AXES = ["n", "m", "d", "c", "h", "w", "b", "f", "g"]
LETTERS = ["i", "j", "k", "l", "p", "q", "r", "s", "t", "u", "v", "e"]


@cache
def _reserved_names() -> frozenset[str]:
    return _WORDS | frozenset(function_names())


def is_free(name: str) -> bool:
    """True if neither Python nor the language means something else by a name."""
    return not keyword.iskeyword(name) and (name not in _WORDS)


class Names:
    """The names that a rule has taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def reserve(self, name: str) -> None:
        """Names that belong to an input or an output beside its own."""
        self.taken |= {name, f"d{name}", f"{name}_dot"}

    def is_free(self, name: str) -> bool:
        return name not in self.taken and name not in _reserved_names()

    def fresh(self, hint: str) -> str:
        """The name itself, or one like it that nothing else has."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", hint).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, number = base, 1
        while not self.is_free(name):
            number += 1
            name = (
                f"{base}_{number}" if number > 2 or base in self.taken else f"{base}_v"
            )
        self.taken.add(name)
        return name

    def fresh_variable(self, hint: str) -> str:
        """The name of an input or an output, whose cotangent is free, too."""
        name = self.fresh(hint)
        while not (self.is_free(f"d{name}") and self.is_free(f"{name}_dot")):
            name = self.fresh(hint)
        self.reserve(name)
        return name


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
