"""Reads off a module's code where a shortcut and a rectifier follow a group normalisation, to compute them in one pass.

By `torch.fx`: a copy of the module is called with a stand-in for its inputs, and what it does is written down. A module
whose steps depend on its inputs, or on whether it is trained or scored, is left as it is. So is one that draws numbers
or changes anything of its own: what is written down would do so once, and never again.
"""

import copy
import operator
from typing import Any

import torch
from torch import fx, nn

from fedelect.federation.torch.images.channels_last import ChannelsLastConv2d, ChannelsLastMaxPool2d
from fedelect.federation.torch.images.group_norm import ChannelsLastGroupNorm

_RECTIFIERS = (torch.relu, nn.functional.relu, "relu")
_SUMS = (operator.add, operator.iadd, torch.add)


class _Reader(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        ours = isinstance(m, ChannelsLastGroupNorm | ChannelsLastConv2d | ChannelsLastMaxPool2d)
        return ours or super().is_leaf_module(m, module_qualified_name)


def fuse(module: nn.Module) -> nn.Module | None:
    """The module with one pass for each such group, sharing its layers; None where there is nothing to gain.

    Args:
        module: The module, without hooks.
    """
    if not any(isinstance(layer, ChannelsLastGroupNorm) for layer in module.modules()):
        return None
    try:
        graph = _read(copy.deepcopy(module))
        if graph is None or not sum([_fuse_at(module, graph, node) for node in list(graph.nodes)]):
            return None
        return fx.GraphModule(module, graph)
    except Exception:  # whatever it is that the module does with a stand-in
        return None


def _read(module: nn.Module) -> fx.Graph | None:
    """What the module does; None if that is not all, or not always the same."""
    graphs = []
    with torch.random.fork_rng(devices=[]):
        for trained in (False, True):
            module.train(trained)
            state, drawn = _list_state(module), torch.get_rng_state()
            graphs.append(_Reader().trace(module))
            if _list_state(module) != state or not torch.equal(torch.get_rng_state(), drawn):
                return None
    return graphs[0] if str(graphs[0]) == str(graphs[1]) else None


def _list_state(module: nn.Module) -> list[tuple[Any, ...]]:
    """All that the module and its layers hold, such that a change shows: which objects, and how often changed."""
    held = []
    for name, layer in module.named_modules():
        own = {**vars(layer), **layer._parameters, **layer._buffers}
        for key, value in own.items():
            size = len(value) if isinstance(value, list | dict | set) else 0
            held.append((name, key, id(value), size, value._version if isinstance(value, torch.Tensor) else 0))
    return held


def _fuse_at(module: nn.Module, graph: fx.Graph, node: fx.Node) -> bool:
    """Put a rectifier into what it follows, if it can be."""
    if not _rectifies(module, node) or not node.args or not isinstance(before := node.args[0], fx.Node):
        return False
    added, done = None, [node, before]
    if before.op == "call_function" and before.target in _SUMS and len(before.args) == 2 and not before.kwargs:
        one, other = before.args
        if _normalises(module, other) and before.target is not operator.iadd:
            one, other = other, one
        if len(before.users) != 1 or not isinstance(one, fx.Node) or not isinstance(other, fx.Node) or one is other:
            return False
        before, added = one, other
        done.append(one)
    if not _normalises(module, before) or len(before.users) != 1:
        return False
    with graph.inserting_before(node):
        fused = graph.call_module(str(before.target), (before.args[0], added, True))
    node.replace_all_uses_with(fused)
    for replaced in done:
        graph.erase_node(replaced)
    return True


def _rectifies(module: nn.Module, node: fx.Node) -> bool:
    if node.op == "call_module":
        return type(module.get_submodule(str(node.target))) is nn.ReLU
    return node.op in ("call_function", "call_method") and node.target in _RECTIFIERS


def _normalises(module: nn.Module, node: Any) -> bool:
    return (
        isinstance(node, fx.Node)
        and node.op == "call_module"
        and len(node.args) == 1
        and not node.kwargs
        and isinstance(module.get_submodule(str(node.target)), ChannelsLastGroupNorm)
    )
