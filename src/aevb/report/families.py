"""One picture of the reparameterized families: densities, draws and pathwise gradients."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from aevb import distributions as dist
from aevb.report.canvas import FAINT, INK, new_figure, save

_NUM_DRAWS, _NUM_COLUMNS = 4000, 7


class _Panel(NamedTuple):
    """A family, as a function of the one parameter that varies; for vectors, the first coordinate is shown."""

    title: str
    parameter: str
    value: float
    build: Callable[..., dist.Distribution]
    marginal: Callable[..., dist.Distribution] | None = None  # of the first coordinate, if there are several


_IDENTITY = np.eye(2, dtype=np.float32)
_ROUTES: dict[str, tuple[str, list[_Panel]]] = {
    "Inverse CDF": (
        "#2a6fbb",
        [
            _Panel("Exponential", "rate", 1.0, lambda p: dist.Exponential(p)),
            _Panel("Cauchy", "scale", 1.0, lambda p: dist.Cauchy(0.0, p)),
            _Panel("Logistic", "scale", 1.0, lambda p: dist.Logistic(0.0, p)),
            _Panel("Rayleigh", "scale", 1.0, lambda p: dist.Rayleigh(p)),
            _Panel("Pareto", "alpha", 3.0, lambda p: dist.Pareto(1.0, p)),
            _Panel("Weibull", "concentration", 1.7, lambda p: dist.Weibull(1.0, p)),
            _Panel("Reciprocal", "high", 4.0, lambda p: dist.Reciprocal(0.5, p)),
            _Panel("Gompertz", "concentration", 0.3, lambda p: dist.Gompertz(p, 1.0)),
            _Panel("Gumbel", "scale", 1.0, lambda p: dist.Gumbel(0.0, p)),
            _Panel("Erlang", "rate", 1.0, lambda p: dist.Erlang(3, p)),
        ],
    ),
    "Location-scale": (
        "#c2571a",
        [
            _Panel("Normal", "scale", 1.0, lambda p: dist.Normal(0.0, p)),
            _Panel("Laplace", "scale", 1.0, lambda p: dist.Laplace(0.0, p)),
            _Panel("Student's t", "df", 3.0, lambda p: dist.StudentT(p)),
            _Panel("Uniform", "high", 1.0, lambda p: dist.Uniform(0.0, p)),
            _Panel("Triangular", "mode", 0.3, lambda p: dist.Triangular(0.0, p, 1.0)),
            _Panel(
                "Multivariate normal, z₁",
                "scale",
                1.0,
                lambda p: dist.MultivariateNormal(jnp.zeros(2), scale_tril=p * _IDENTITY),
                lambda p: dist.Normal(0.0, p),
            ),
            _Panel(
                "Multivariate t, z₁",
                "df",
                3.0,
                lambda p: dist.MultivariateStudentT(p, jnp.zeros(2), _IDENTITY),
                lambda p: dist.StudentT(p),
            ),
        ],
    ),
    "Composition": (
        "#2c8a57",
        [
            _Panel("Log-normal", "scale", 0.5, lambda p: dist.LogNormal(0.0, p)),
            _Panel("Gamma", "concentration", 2.5, lambda p: dist.Gamma(p, 1.0)),
            _Panel("Beta", "concentration1", 2.0, lambda p: dist.Beta(p, 3.0)),
            _Panel("Chi-squared", "df", 3.0, lambda p: dist.Chi2(p)),
            _Panel("F", "df1", 5.0, lambda p: dist.FisherSnedecor(p, 8.0)),
            _Panel(
                "Dirichlet, z₁",
                "concentration₁",
                2.0,
                lambda p: dist.Dirichlet(jnp.stack([p, jnp.ones_like(p), 2 * jnp.ones_like(p)], -1)),
                lambda p: dist.Beta(p, 3.0),
            ),
        ],
    ),
    "Numerical": (
        "#8a3f9e",
        [
            _Panel("Von Mises", "concentration", 2.0, lambda p: dist.VonMises(0.0, p)),
            _Panel("Kumaraswamy", "concentration1", 2.0, lambda p: dist.Kumaraswamy(p, 3.0)),
            _Panel(
                "Mixture of normals",
                "weight",
                0.4,
                lambda p: dist.MixtureSameFamily(
                    dist.Categorical(jnp.stack([p, 1 - p], -1)),
                    dist.Normal(jnp.array([-1.5, 1.0]), jnp.array([0.5, 0.8])),
                ),
            ),
        ],
    ),
}


def draw_families(path: Path) -> Path:
    r"""Draw every family of the paper's list: density, draws through the reparameterization, and pathwise gradient.

    Above, the density :math:`q_\phi(z)` over a histogram of :math:`z = g_\phi(\epsilon)`; below,
    :math:`\partial z / \partial \phi` of the same draws, for the one parameter that the panel names.

    Args:
        path: PNG to write. Folders are created if necessary, and an existing picture is replaced only when the new one
            is complete.

    Returns:
        ``path``.

    Paper: §2.4.
    """
    num_rows = [-(-len(panels) // _NUM_COLUMNS) for _, panels in _ROUTES.values()]
    figure = new_figure(2.3 * _NUM_COLUMNS, 2.7 * sum(num_rows) + 1.4)
    groups = figure.add_gridspec(
        len(_ROUTES), 1, height_ratios=num_rows, left=0.025, right=0.985, top=0.915, bottom=0.04, hspace=0.42
    )
    title = "Reparameterized families:  z = g(ε; φ),  ε free of φ"
    figure.text(0.025, 0.985, title, fontsize=17, color=INK, va="top")
    with ThreadPoolExecutor() as pool:  # most of the time is spent in the compiler, which releases the GIL
        draws = [pool.map(_draws_and_gradients, panels) for _, panels in _ROUTES.values()]
        for index, (rows, route, drawn) in enumerate(zip(num_rows, _ROUTES.items(), draws, strict=True)):
            group = groups[index]
            name, (color, panels) = route
            cells = group.subgridspec(rows, _NUM_COLUMNS, hspace=0.5, wspace=0.16)
            heading = group.get_position(figure).y1 + 0.34 / figure.get_figheight()
            figure.text(0.025, heading, name, fontsize=13, fontweight="bold", color=color, va="bottom")
            for index, (panel, (z, gradient)) in enumerate(zip(panels, drawn, strict=True)):
                _draw_panel(figure, cells[divmod(index, _NUM_COLUMNS)], panel, z, gradient, color)
    _draw_legend(figure)
    return save(figure, path)


def _draw_panel(
    figure: Figure, cell: SubplotSpec, panel: _Panel, z: np.ndarray, gradient: np.ndarray, color: str
) -> None:
    low, high = _shown_range(z)
    grid, density = _density(panel, np.linspace(low, high, 500))
    parts = cell.subgridspec(2, 1, height_ratios=(3, 2), hspace=0.08)
    above, below = figure.add_subplot(parts[0]), figure.add_subplot(parts[1])

    edges = np.linspace(grid[0], grid[-1], 36)
    counts, _ = np.histogram(z, edges)
    above.stairs(counts / (len(z) * np.diff(edges)), edges, fill=True, color=color, alpha=0.35)
    above.plot(grid, density, color=INK, lw=1.4)
    above.set_ylim(0, 1.15 * np.max(density))
    above.set_title(panel.title, fontsize=10.5, color=INK, pad=3)

    inside = np.flatnonzero((low < z) & (z < high))[:800]
    below.axhline(0, color=FAINT, lw=0.6)
    below.scatter(z[inside], gradient[inside], s=2.2, color=color, linewidths=0)
    below.set_xlabel(f"∂z / ∂ {panel.parameter}", fontsize=8.5, color=color, labelpad=1)
    for axes in (above, below):
        _style(axes, low, high)
    above.tick_params(labelbottom=False, bottom=False)


def _shown_range(z: np.ndarray) -> tuple[float, float]:
    """Return the range that contains nearly all draws, or the middle if the tails are heavy."""
    lowest, first, median, third, highest = np.quantile(z, [0.004, 0.25, 0.5, 0.75, 0.988])
    reach = 4 * (third - first)
    low, high = max(lowest, median - reach), min(highest, median + reach)
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def _draws_and_gradients(panel: _Panel) -> tuple[np.ndarray, np.ndarray]:
    """Return draws and their derivatives with respect to the parameter, (num_draws,) each."""

    @jax.jit
    def evaluate(value, key):
        noise, _ = dist.reparameterize(panel.build(value))
        epsilon = jnp.asarray(noise.sample(key, (_NUM_DRAWS,)))
        return jax.jvp(
            lambda p: dist.reparameterize(panel.build(p)).transform(epsilon), (value,), (jnp.ones_like(value),)
        )

    z, gradient = (np.asarray(part) for part in evaluate(jnp.asarray(panel.value), jax.random.key(0)))
    return (z, gradient) if panel.marginal is None else (z[:, 0], gradient[:, 0])


def _density(panel: _Panel, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of the grid that lies in the support, and the density there."""
    q = (panel.marginal or panel.build)(jnp.asarray(panel.value))
    assert q.support is not None
    grid = grid[np.asarray(q.support(jnp.asarray(grid)))]
    return grid, np.exp(np.asarray(q.log_prob(jnp.asarray(grid))))


def _style(axes: Axes, low: float, high: float) -> None:
    axes.set_xlim(low, high)
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(labelsize=7, colors=FAINT, length=2, pad=1.5)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _draw_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=INK, lw=1.4, label="density q(z; φ)"),
        Patch(color=FAINT, alpha=0.45, label=f"{_NUM_DRAWS} draws z = g(ε; φ)"),
        Line2D([], [], color=FAINT, marker="o", ms=3, ls="", label="pathwise gradient ∂z/∂φ of these draws"),
    ]
    figure.legend(
        handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.992), ncols=3, frameon=False, fontsize=9.5,
        labelcolor=INK,
    )  # fmt: skip
