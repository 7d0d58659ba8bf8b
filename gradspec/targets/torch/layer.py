"""`torch.nn.Module` for rules with params: it holds them and calls the function."""

from __future__ import annotations

from gradspec.targets import layers
from gradspec.targets.docstring import sentence
from gradspec.targets.layers import Layer
from gradspec.targets.lines import Lines, indented, returned

_OWN = """
T_destination add_module apply bfloat16 buffers call_super_init children compile cpu
cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state
get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers
named_children named_modules named_parameters parameters register_backward_hook
register_buffer register_forward_hook register_forward_pre_hook
register_full_backward_hook register_full_backward_pre_hook
register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module
register_parameter register_state_dict_post_hook register_state_dict_pre_hook
requires_grad_ reset_parameters set_extra_state set_submodule share_memory state_dict
to to_empty train training type xpu zero_grad
self device dtype shape torch super tuple isinstance int getattr
"""

OWN = frozenset(_OWN.split())
"""Names in the class and its methods, which no argument or attribute may have."""


def layer_class(layer: Layer) -> Lines:
    """The whole class."""
    data = ", ".join(f"{layer.public(i.name)}: Tensor" for i in layer.data)
    params = layers.listed(layer.public(i.name) for i in layer.params)
    return [
        f"class {layer.name}(torch.nn.Module):",
        sentence(f"`{layer.program.name}` with a learned {params}.", 1),
        "",
        f"    def __init__({', '.join(_arguments(layer))}) -> None:",
        *indented(indented(_constructor(layer))),
        "",
        "    def reset_parameters(self) -> None:",
        sentence("Every parameter as in a new layer.", 2),
        "        for name, value in self._initial.items():",
        "            torch.nn.init.constant_(getattr(self, name), value)",
        "",
        f"    def forward(self, {data}) -> {returned(layer.program, 'Tensor')}:",
        f"        return {layers.call(layer)}",
        "",
        "    def extra_repr(self) -> str:",
        *indented(indented(_shown(layer))),
    ]


def _arguments(layer: Layer) -> Lines:
    free = [f"{layers.SHAPE}: int | tuple[int, ...] = ()"] if layer.is_free else []
    return [
        "self",
        *(f"{layer.public(size)}: int" for size in layer.sizes),
        "*",
        *layers.statics(layer),
        *layers.starts(layer),
        *free,
        "device: torch.device | str | None = None",
        "dtype: torch.dtype | None = None",
    ]


def _constructor(layer: Layer) -> Lines:
    lines = ["super().__init__()", *layers.kept(layer, layer.sizes)]
    for i in layer.params:
        empty = f"torch.empty({layers.shape(layer, i)}, device=device, dtype=dtype)"
        lines.append(f"self.{layer.public(i.name)} = torch.nn.Parameter({empty})")
    return [*lines, "self.reset_parameters()"]


def _shown(layer: Layer) -> Lines:
    """The constructor arguments; for params their initial values."""
    sizes = [f"{layer.public(n)}={{self.{layer.public(n)}}}" for n in layer.sizes]
    free = [f"{layers.SHAPE}={{self.{layers.SHAPE}}}"] if layer.is_free else []
    names = [layer.public(i.name) for i in layer.program.statics]
    fixed = [f"{name}={{self.{name}}}" for name in names]
    text = ", ".join([*sizes, *free, *fixed])
    first = f'f"{text}", ' if text else ""
    return [
        'started = (f"{name}={value}" for name, value in self._initial.items())',
        f'return ", ".join([{first}*started])',
    ]
