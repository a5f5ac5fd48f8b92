"""The rules by which operations of JAX become nodes of ONNX."""

from collections.abc import Callable
from typing import Any

import numpy as np

NO_RULE = "export: this form of {!r} has no rule for ONNX. Use --format stablehlo, which has all."


# ---- entry by entry --------------------------------------------------------------------------------------------------


def _number(graph, value):
    return graph.constant(np.float32(value))


def _log1p(graph, inputs):
    return graph.node("Log", graph.node("Add", [*inputs, _number(graph, 1)]))


def _expm1(graph, inputs):
    return graph.node("Sub", [*graph.node("Exp", inputs), _number(graph, 1)])


def _erfc(graph, inputs):
    return graph.node("Sub", [_number(graph, 1), *graph.node("Erf", inputs)])


def _differ(graph, inputs):
    return graph.node("Not", graph.node("Equal", inputs))


def _rsqrt(graph, inputs):
    return graph.node("Reciprocal", graph.node("Sqrt", inputs))


def _select(graph, inputs):
    which, if_false, if_true = inputs
    return graph.node("Where", [which, if_true, if_false])


def _clamp(graph, inputs):
    low, x, high = inputs
    return graph.node("Min", [*graph.node("Max", [low, x]), high])


def _is_finite(graph, inputs):
    return graph.node("Not", graph.node("Or", [*graph.node("IsNaN", inputs), *graph.node("IsInf", inputs)]))


SAME: dict[str, Any] = {  # JAX's name: ONNX's for operations with the same arguments, or a rule for their names
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow",
    "neg": "Neg", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
    "logistic": "Sigmoid", "erf": "Erf", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil",
    "gt": "Greater", "lt": "Less", "ge": "GreaterOrEqual", "le": "LessOrEqual", "eq": "Equal",
    "and": "And", "or": "Or", "not": "Not", "stop_gradient": "Identity", "copy": "Identity", "copy_p": "Identity",
    "square": lambda graph, inputs: graph.node("Mul", inputs * 2),
    "log1p": _log1p, "expm1": _expm1, "erfc": _erfc, "ne": _differ, "rsqrt": _rsqrt, "select_n": _select,
    "clamp": _clamp, "is_finite": _is_finite,
}  # fmt: skip


# ---- entry by entry, with options ------------------------------------------------------------------------------------


def _power(graph, equation, inputs):
    return graph.node("Pow", [*inputs, _number(graph, equation.params["y"])])


def _convert(graph, equation, inputs):
    kind = graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(equation.params["new_dtype"]))
    return graph.node("Cast", inputs, to=kind)


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _broadcast(graph, equation, inputs):
    """Put axes of length 1 where there are none; the rest is ONNX's own broadcasting."""
    shape, places = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]
    name, (operand, *_) = inputs[0], equation.invars
    found = [1] * len(shape)
    for place, size in zip(places, operand.aval.shape, strict=True):
        found[int(place)] = size
    sizes = [-1 if not isinstance(size, int) else size for size in found]
    if name in graph.narrow:
        name = graph.full(name, operand.aval.shape)
    (result,) = _reshaped(graph, name, sizes)
    if tuple(found) != tuple(shape):
        graph.narrow.add(result)
    return [result]


def _reshape(graph, equation, inputs):
    shape = [size if isinstance(size, int) else -1 for size in equation.outvars[0].aval.shape]
    return _reshaped(graph, inputs[0], shape)


def _reshaped(graph, name, shape):
    return graph.node("Reshape", [name, graph.whole(shape)])


def _transpose(graph, equation, inputs):
    return _transposed(graph, inputs[0], equation.params["permutation"])


def _transposed(graph, name, order):
    return graph.node("Transpose", [name], perm=[int(axis) for axis in order])


def _split(graph, equation, inputs):
    sizes = graph.whole(list(equation.params["sizes"]))
    return graph.node("Split", [*inputs, sizes], len(equation.outvars), axis=int(equation.params["axis"]))


def _concatenate(graph, equation, inputs):
    pieces = [name for name, variable in zip(inputs, equation.invars, strict=True) if not is_empty(variable)]
    return graph.node("Concat", pieces, axis=int(equation.params["dimension"]))


def _slice(graph, equation, inputs):
    starts, ends = equation.params["start_indices"], equation.params["limit_indices"]
    steps = equation.params["strides"] or (1,) * len(starts)
    axes = [axis for axis, end in enumerate(ends) if isinstance(end, int)]  # the others are whole
    picked = ([int(numbers[axis]) for axis in axes] for numbers in (starts, ends))
    first, last = picked
    return graph.node("Slice", [*inputs, *map(graph.whole, (first, last, axes, [int(steps[axis]) for axis in axes]))])


def _pad(graph, equation, inputs):
    before, after, inside = zip(*equation.params["padding_config"], strict=True)
    _check(not any(inside), equation)
    x, value = inputs
    return graph.node("Pad", [x, graph.whole([*before, *after]), value])


def _gather(graph, equation, inputs):
    """Entries along one axis, whole along the others."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    (operand, places), (axis, *others) = equation.invars, numbers.collapsed_slice_dims
    shape, of_places = operand.aval.shape, places.aval.shape[:-1]
    whole = (*shape[:axis], 1, *shape[axis + 1 :])
    kept = [place for place in range(len(shape) - 1 + len(of_places)) if not axis <= place < axis + len(of_places)]
    is_along = not others and tuple(numbers.start_index_map) == (axis,) and tuple(sizes) == whole
    _check(is_along and list(numbers.offset_dims) == kept and not numbers.operand_batching_dims, equation)
    x, indices = inputs
    found = graph.node("Squeeze", [indices, graph.whole([len(of_places)])])
    return graph.node("Gather", [x, *found], axis=int(axis))


def _iota(graph, equation, inputs):
    shape, axis = equation.params["shape"], equation.params["dimension"]
    _check(all(isinstance(size, int) for size in shape), equation)
    numbers = np.arange(shape[axis], dtype=equation.params["dtype"])
    along = numbers.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return [graph.constant(np.broadcast_to(along, shape))]


# ---- sums and products -----------------------------------------------------------------------------------------------


def _sum(graph, equation, inputs):
    return graph.node("ReduceSum", [*inputs, graph.whole(_axes(equation))], keepdims=0)


def _running_sum(graph, equation, inputs):
    axis, is_reverse = graph.constant(np.int64(equation.params["axis"])), equation.params["reverse"]
    return graph.node("CumSum", [*inputs, axis], reverse=int(is_reverse))


def _reduction(kind):
    return lambda graph, equation, inputs: graph.node(kind, inputs, axes=_axes(equation), keepdims=0)


def _axes(equation):
    return [int(axis) for axis in equation.params["axes"]]


def _largest(graph, equation, inputs):
    (axis,) = _axes(equation)
    found = graph.node("ArgMax", inputs, axis=axis, keepdims=0)
    kind = graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(equation.params["index_dtype"]))
    return graph.node("Cast", found, to=kind)


def _product(graph, equation, inputs):
    """A matrix product of the last axis of the first factor and the first of the second, without batch axes."""
    (left, right), batch = equation.params["dimension_numbers"]
    ranks = [len(variable.aval.shape) for variable in equation.invars]
    _check(not any(batch) and tuple(left) == (ranks[0] - 1,) and tuple(right) == (0,) and ranks[1] == 2, equation)
    return graph.node("MatMul", inputs)


def _convolution(graph, equation, inputs):
    """ONNX has batch and channels first, so that images and kernels are transposed, and the result back."""
    options, spec = equation.params, equation.params["dimension_numbers"]
    _check(all(step == 1 for step in options["lhs_dilation"]) and options["batch_group_count"] == 1, equation)
    orders = zip(inputs, (spec.lhs_spec, spec.rhs_spec), strict=True)
    parts = [_transposed(graph, name, order)[0] for name, order in orders]
    before, after = zip(*options["padding"], strict=True)
    result = graph.node(
        "Conv",
        parts,
        strides=list(options["window_strides"]),
        pads=[int(size) for size in (*before, *after)],
        dilations=list(options["rhs_dilation"]),
        group=int(options["feature_group_count"]),
    )
    return _transposed(graph, result[0], np.argsort(spec.out_spec))


def is_empty(variable: Any) -> bool:
    """Return whether an array has no entries: the features of a kind of column that a table does not have."""
    return any(isinstance(size, int) and size == 0 for size in variable.aval.shape)


def _check(holds, equation):
    if not holds:
        raise ValueError(NO_RULE.format(equation.primitive.name))


RULES: dict[str, Callable] = {
    "argmax": _largest,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "conv_general_dilated": _convolution,
    "convert_element_type": _convert,
    "cumsum": _running_sum,
    "dot_general": _product,
    "gather": _gather,
    "integer_pow": _power,
    "iota": _iota,
    "pad": _pad,
    "reduce_max": _reduction("ReduceMax"),
    "reduce_min": _reduction("ReduceMin"),
    "reduce_sum": _sum,
    "reshape": _reshape,
    "slice": _slice,
    "split": _split,
    "squeeze": _reshape,
    "transpose": _transpose,
}
