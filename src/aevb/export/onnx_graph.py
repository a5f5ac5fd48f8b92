"""ONNX: the operations of a function, one node each.

A function is traced for a batch of unknown size n, and each of its primitive operations has a rule, see
:mod:`aevb.export.onnx_rules`. Converters for all of JAX exist, but install several other frameworks; an encoder and a
decoder need about sixty operations.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from aevb.export.facts import write_facts
from aevb.export.functions import Exported, exported_functions
from aevb.export.onnx_rules import RULES, SAME, is_empty
from aevb.files import written_whole
from aevb.fitted import FittedModel

OPSET = 17
INSIDE = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint")


def write_onnx(model: FittedModel, folder: Path) -> list[Path]:
    """Write `encoder.onnx`, `decoder.onnx` and others to an existing folder; needs ``aevb[onnx]``.

    See :func:`aevb.export.exported_functions`.
    """
    files = []
    for each in exported_functions(model):
        path = folder / f"{each.name}.onnx"
        with written_whole(path) as scratch:
            scratch.write_bytes(to_onnx(each))
        files.append(path)
    return [*files, write_facts(model, folder)]


def to_onnx(exported: Exported) -> bytes:
    """Return a function as an ONNX model with a batch axis of any size.

    Raises:
        ValueError: It uses an operation that has no rule here.
    """
    onnx: Any = _onnx()
    closed = jax.make_jaxpr(exported.function)(*exported.shapes())
    graph = Graph(onnx, next(iter(exported.inputs)))
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        graph.names[variable] = graph.constant(np.asarray(value))
    graph.names.update(zip(closed.jaxpr.invars, exported.inputs, strict=True))
    graph.add_all(closed.jaxpr)
    for name, variable in zip(exported.outputs, closed.jaxpr.outvars, strict=True):
        graph.node("Identity", [graph.full(graph.name(variable), variable.aval.shape)], outputs=[name])
    sizes = [variable.aval.shape[1] for variable in closed.jaxpr.outvars]
    helper, number = onnx.helper, onnx.TensorProto.FLOAT

    def described(widths):
        return [helper.make_tensor_value_info(name, number, ["n", width]) for name, width in widths]

    outputs = described(zip(exported.outputs, sizes, strict=True))
    model = helper.make_model(
        helper.make_graph(graph.nodes, exported.name, described(exported.inputs.items()), outputs, graph.read()),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="aevb",
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class Graph:
    """The nodes so far, and the name of each variable of the traced function.

    ONNX broadcasts like NumPy, so that what is only broadcast keeps axes of length 1 until an operation needs its full
    shape: these names are `narrow`.

    Args:
        onnx: The package.
        rows: Name of an input, whose first axis has length n.
    """

    def __init__(self, onnx: Any, rows: str):
        self.onnx, self.rows = onnx, rows
        self.nodes, self.constants, self.names, self.narrow = [], [], {}, set()

    def name(self, variable: Any) -> str:
        """Return the name of a variable or of a number."""
        if isinstance(variable, Literal):
            aval: Any = variable.aval
            return self.constant(np.asarray(variable.val, aval.dtype))
        return self.names[variable]

    def constant(self, value: np.ndarray) -> str:
        """Add an array; return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self, kind: str, inputs: list[str], num_outputs: int = 1, outputs: list[str] | None = None, **options: Any
    ) -> list[str]:
        """Add an operation; return the names of its results."""
        outputs = outputs or [f"v{len(self.nodes)}_{place}" for place in range(num_outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, outputs, **options))
        return outputs

    def full(self, name: str, shape: tuple) -> str:
        """Return the name of an array that has all of this shape."""
        if name not in self.narrow:
            return name
        (n,) = self.node("Slice", [*self.node("Shape", [self.rows]), *(self.whole([end]) for end in (0, 1))])
        parts = [self.whole([size]) if isinstance(size, int) else n for size in shape]
        return self.node("Expand", [name, *self.node("Concat", parts, axis=0)])[0]

    def whole(self, numbers: list[int]) -> str:
        """Add whole numbers, as shapes and axes are; return their name."""
        return self.constant(np.array(numbers, np.int64))

    def read(self) -> list:
        """Return the constants that a node reads; runtimes warn about others."""
        names = {name for node in self.nodes for name in node.input}
        return [constant for constant in self.constants if constant.name in names]

    def add_all(self, jaxpr: Any) -> None:
        """Add the operations of a function whose arguments have names."""
        for equation in jaxpr.eqns:
            self.names.update(zip(equation.outvars, self.add(equation), strict=True))

    def add(self, equation: Any) -> list[str]:
        """Add one operation; return the names of its results."""
        kind, inputs = equation.primitive.name, [self.name(variable) for variable in equation.invars]
        if kind in INSIDE:
            return self.inside(equation, inputs)
        if all(is_empty(variable) for variable in equation.outvars):
            return [""] * len(equation.outvars)  # ONNX cannot reshape it, and nothing reads it
        shapes = [variable.aval.shape for variable in equation.invars]
        if kind in SAME:
            shape = equation.outvars[0].aval.shape
            found = SAME[kind](self, inputs) if callable(SAME[kind]) else self.node(SAME[kind], inputs)
            if not any(name not in self.narrow and size == shape for name, size in zip(inputs, shapes, strict=True)):
                self.narrow.update(found)
            return found
        if kind not in RULES:
            raise ValueError(
                f"export: the operation {kind!r} of this model has no rule for ONNX. Use --format stablehlo, which has "
                "all."
            )
        if kind != "broadcast_in_dim":
            inputs = [self.full(name, shape) for name, shape in zip(inputs, shapes, strict=True)]
        return RULES[kind](self, equation, inputs)

    def inside(self, equation: Any, inputs: list[str]) -> list[str]:
        """Add the operations of a function that is called; its constants are closed over."""
        called = next(equation.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in equation.params)
        jaxpr = getattr(called, "jaxpr", called)
        for variable, value in zip(jaxpr.constvars, getattr(called, "consts", ()), strict=True):
            self.names[variable] = self.constant(np.asarray(value))
        self.names.update(zip(jaxpr.invars, inputs, strict=True))
        self.add_all(jaxpr)
        return [self.name(variable) for variable in jaxpr.outvars]


def _onnx():
    try:
        return import_module("onnx")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("export: writing ONNX needs onnx: pip install 'aevb[onnx]'") from error
