"""ONNX: the operations of a function, one node each.

A function is traced for a batch of unknown size n, and each of its primitive operations has a rule below. Operations
that only broadcast become a change of shape, since ONNX broadcasts like NumPy. Converters for all of JAX exist, but
install several other frameworks; an encoder and a decoder need about forty operations.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from aevb.export.functions import Exported, exported_functions
from aevb.files import written_whole
from aevb.fitted import FittedModel

OPSET = 17
SAME = {  # JAX's name: ONNX's, for operations with the same arguments
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow",
    "neg": "Neg", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
    "logistic": "Sigmoid", "erf": "Erf", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil",
    "gt": "Greater", "lt": "Less", "ge": "GreaterOrEqual", "le": "LessOrEqual", "eq": "Equal",
    "and": "And", "or": "Or", "not": "Not", "stop_gradient": "Identity", "copy": "Identity",
}  # fmt: skip
INSIDE = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint")


def write_onnx(model: FittedModel, folder: Path) -> list[Path]:
    """Write `encoder.onnx` and `decoder.onnx` to an existing folder; needs ``aevb[onnx]``."""
    files = []
    for each in exported_functions(model):
        path = folder / f"{each.name}.onnx"
        with written_whole(path) as scratch:
            scratch.write_bytes(to_onnx(each))
        files.append(path)
    return files


def to_onnx(exported: Exported) -> bytes:
    """Return a function as an ONNX model with a batch axis of any size.

    Raises:
        ValueError: It uses an operation that has no rule here.
    """
    onnx: Any = _onnx()
    closed = jax.make_jaxpr(exported.function)(exported.shape())
    graph = _Graph(onnx)
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        graph.names[variable] = graph.constant(np.asarray(value))
    graph.names[closed.jaxpr.invars[0]] = exported.input
    graph.add_all(closed.jaxpr)
    for name, variable in zip(exported.outputs, closed.jaxpr.outvars, strict=True):
        graph.node("Identity", [graph.name(variable)], outputs=[name])
    sizes = [variable.aval.shape[1] for variable in closed.jaxpr.outvars]
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            exported.name,
            [helper.make_tensor_value_info(exported.input, number, ["n", exported.width])],
            [
                helper.make_tensor_value_info(name, number, ["n", size])
                for name, size in zip(exported.outputs, sizes, strict=True)
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="aevb",
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """The nodes so far, and the name of each variable of the traced function."""

    def __init__(self, onnx):
        self.onnx, self.nodes, self.constants, self.names = onnx, [], [], {}

    def name(self, variable) -> str:
        if isinstance(variable, Literal):
            aval: Any = variable.aval
            return self.constant(np.asarray(variable.val, aval.dtype))
        return self.names[variable]

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, kind: str, inputs: list[str], num_outputs: int = 1, outputs: list[str] | None = None, **options):
        outputs = outputs or [f"v{len(self.nodes)}_{place}" for place in range(num_outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, outputs, **options))
        return outputs

    def add_all(self, jaxpr) -> None:
        for equation in jaxpr.eqns:
            found = self.add(equation)
            self.names.update(zip(equation.outvars, found, strict=True))

    def add(self, equation) -> list[str]:
        kind, inputs = equation.primitive.name, [self.name(variable) for variable in equation.invars]
        if kind in INSIDE:
            return self.inside(equation, inputs)
        if kind in SAME:
            return self.node(SAME[kind], inputs)
        if kind in RULES:
            return RULES[kind](self, equation, inputs)
        raise ValueError(
            f"export: the operation {kind!r} of this model has no rule for ONNX. Use --format stablehlo, which has all."
        )

    def inside(self, equation, inputs) -> list[str]:
        """Add the operations of a function that is called; its constants are closed over."""
        called = next(equation.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in equation.params)
        jaxpr = getattr(called, "jaxpr", called)
        for variable, value in zip(jaxpr.constvars, getattr(called, "consts", ()), strict=True):
            self.names[variable] = self.constant(np.asarray(value))
        self.names.update(zip(jaxpr.invars, inputs, strict=True))
        self.add_all(jaxpr)
        return [self.name(variable) for variable in jaxpr.outvars]


def _power(graph, equation, inputs):
    return graph.node("Pow", [*inputs, graph.constant(np.float32(equation.params["y"]))])


def _square(graph, equation, inputs):
    return graph.node("Mul", inputs * 2)


def _log1p(graph, equation, inputs):
    return graph.node("Log", graph.node("Add", [*inputs, graph.constant(np.float32(1))]))


def _expm1(graph, equation, inputs):
    return graph.node("Sub", [*graph.node("Exp", inputs), graph.constant(np.float32(1))])


def _differ(graph, equation, inputs):
    return graph.node("Not", graph.node("Equal", inputs))


def _rsqrt(graph, equation, inputs):
    return graph.node("Reciprocal", graph.node("Sqrt", inputs))


def _select(graph, equation, inputs):
    which, if_false, if_true = inputs
    return graph.node("Where", [which, if_true, if_false])


def _transpose(graph, equation, inputs):
    return graph.node("Transpose", inputs, perm=[int(axis) for axis in equation.params["permutation"]])


def _product(graph, equation, inputs):
    """A matrix product of the last axis of the first factor and the first of the second, without batch axes."""
    (left, right), batch = equation.params["dimension_numbers"]
    ranks = [len(variable.aval.shape) for variable in equation.invars]
    if any(batch) or tuple(left) != (ranks[0] - 1,) or tuple(right) != (0,) or ranks[1] != 2:
        raise ValueError("export: this matrix product has no rule for ONNX. Use --format stablehlo, which has all.")
    return graph.node("MatMul", inputs)


def _broadcast(graph, equation, inputs):
    """Put axes of length 1 where there are none; the rest is ONNX's own broadcasting."""
    shape, places = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]
    sizes = equation.invars[0].aval.shape
    found = [1] * len(shape)
    for place, size in zip(places, sizes, strict=True):
        found[int(place)] = size if isinstance(size, int) else -1
    return _reshaped(graph, inputs, found)


def _reshape(graph, equation, inputs):
    shape = [size if isinstance(size, int) else -1 for size in equation.outvars[0].aval.shape]
    return _reshaped(graph, inputs, shape)


def _reshaped(graph, inputs, shape):
    return graph.node("Reshape", [*inputs[:1], graph.constant(np.array(shape, np.int64))])


def _split(graph, equation, inputs):
    sizes = graph.constant(np.array(equation.params["sizes"], np.int64))
    options = {"axis": int(equation.params["axis"])}
    return graph.node("Split", [*inputs, sizes], len(equation.outvars), **options)


def _concatenate(graph, equation, inputs):
    return graph.node("Concat", inputs, axis=int(equation.params["dimension"]))


RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "dot_general": _product,
    "expm1": _expm1,
    "integer_pow": _power,
    "log1p": _log1p,
    "ne": _differ,
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "split": _split,
    "square": _square,
    "squeeze": _reshape,
    "transpose": _transpose,
}


def _onnx():
    try:
        return import_module("onnx")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("export: writing ONNX needs onnx: pip install 'aevb[onnx]'") from error
