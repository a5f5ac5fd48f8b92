"""The report of a fitted model, and its pictures."""

from aevb.report.images import compare, manifold, reconstructions, samples, sheet
from aevb.report.learning import learning_curve
from aevb.report.plots import latent_scatter
from aevb.report.references import grey_level_ceiling, independent_pixels
from aevb.report.report import write_report
from aevb.tasks import manifold_grid

__all__ = [
    "compare",
    "grey_level_ceiling",
    "independent_pixels",
    "latent_scatter",
    "learning_curve",
    "manifold",
    "manifold_grid",
    "reconstructions",
    "samples",
    "sheet",
    "write_report",
]
