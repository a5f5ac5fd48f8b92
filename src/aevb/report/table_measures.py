"""The numbers in the report of a table: how its columns, their dependence and its rows compare with synthetic ones."""

import numpy as np

from aevb.data.frames.texts import entry_texts
from aevb.data.run_data import RunData
from aevb.fitted import FittedModel, coding, likelihoods
from aevb.fitted.surprise import most_surprising, surprises
from aevb.report.association import association, mean_absolute_difference
from aevb.report.marginals import shares
from aevb.report.nearest_table import nearest_distances
from aevb.report.some_rows import some
from aevb.report.table_rows import RealAndSynthetic, are_labels, in_units, real_and_synthetic

NEAREST_ROWS, MAX_DIFFERENCES = (50, 500), 10**9  # rows whose nearest training row is searched
STRANGEST, MAX_RANKED = 10, 2000  # rows shown, and those that they are chosen from
NUM_SAMPLES = 10  # of z for the bound by which rows are ranked


def measure_table(model: FittedModel, run_data: RunData, seed: int) -> dict:
    """Return what the report of a table says in addition.

    Args:
        model: A model of a table.
        run_data: Its data, as stored numbers.
        seed: Random seed of the draws.
    """
    rows = real_and_synthetic(model, run_data, seed)
    found = {"columns": _columns(model, rows), "association": _associations(rows)}
    if len(run_data.train):
        found["nearest_training_row"] = _nearest(model, run_data, seed)
    if model.recognition is not None:
        found["strangest_rows"] = _strangest(model, run_data)
    return found


def _columns(model, rows: RealAndSynthetic):
    """Return for each column of the frame what it is and why, and how far synthetic entries are from real ones."""
    entries = zip(model.format.columns, rows.real.T, rows.synthetic.T, strict=True)
    distances = {column.name: _distance(column, real, synthetic) for column, real, synthetic in entries}
    unknown = {"total_variation": None, "by_chance": None}
    return [row._asdict() | distances.get(row.column, unknown) for row in model.format.summary()]


def _distance(column, real, synthetic):
    """Return the distance between real and synthetic entries, and what it would be if the model were right."""
    _, one, other = shares(column, real, synthetic)
    sizes = [int(np.sum(~np.isnan(entries))) for entries in (real, synthetic)]
    return {"total_variation": total_variation(one, other), "by_chance": variation_by_chance(one, *sizes)}


def total_variation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the total variation distance of two vectors of shares: from 0, the same, to 1, disjoint.

    Example:
        >>> total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
        0.25
    """
    return float(np.abs(one - other).sum() / 2)


def variation_by_chance(p: np.ndarray, n: int, m: int) -> float:
    r"""Return the expected total variation distance between the shares in n and m draws from one distribution.

    .. math:: \frac{1}{2} \sum_k \sqrt{\frac{2}{\pi} p_k (1 - p_k) \left(\frac{1}{n} + \frac{1}{m}\right)}

    by the normal approximation, in which the mean absolute deviation is :math:`\sqrt{2 / \pi}` standard deviations.

    Args:
        p: The shares, or estimates of them.
        n: Number of draws.
        m: Number of other draws.

    Example:
        >>> round(variation_by_chance(np.array([0.5, 0.5]), 200, 200), 3)
        0.04
    """
    return float(np.sum(np.sqrt(2 / np.pi * p * (1 - p) * (1 / max(n, 1) + 1 / max(m, 1)))) / 2)


def _associations(rows: RealAndSynthetic):
    """Return how far the associations of synthetic columns are from those of real ones, and what is noise."""
    order = np.random.default_rng(0).permutation(len(rows.real))
    halves = (association(rows.real[half], rows.are_labels) for half in np.array_split(order, 2))
    real, synthetic = matrices(rows)
    return {
        "mean_absolute_difference": mean_absolute_difference(real, synthetic),
        "between_halves_of_the_data": mean_absolute_difference(*halves),
        "rows": len(rows.real),
    }


def matrices(rows: RealAndSynthetic) -> tuple[np.ndarray, np.ndarray]:
    """Return the associations of real rows and of equally many synthetic ones: few rows overstate those of labels."""
    return tuple(association(each[: len(rows.real)], rows.are_labels) for each in (rows.real, rows.synthetic))  # type: ignore


def distances_to_training(model: FittedModel, run_data: RunData, seed: int) -> dict[str, np.ndarray]:
    """Return the distances to the nearest training row of synthetic rows and of held-out rows.

    Synthetic rows lack the same entries as held-out rows, so that the distances are comparable.
    """
    most = int(np.clip(MAX_DIFFERENCES // max(run_data.train.size, 1), *NEAREST_ROWS))
    held_out = some(run_data.test, most)
    drawn = coding.sample(model, most, random_state=seed)
    drawn = np.where(np.isnan(np.resize(held_out, drawn.shape)), np.nan, drawn)
    train, labels = in_units(model, run_data.train), are_labels(model)
    rows = {"synthetic": drawn, "held_out": held_out}
    return {name: nearest_distances(in_units(model, each), train, labels) for name, each in rows.items()}


def _nearest(model, run_data, seed):
    found = distances_to_training(model, run_data, seed)
    facts = {name: float(np.median(distances)) for name, distances in found.items()}
    facts |= {f"{name}_copies": float(np.mean(distances == 0)) for name, distances in found.items()}
    rows = {f"{name}_rows": len(distances) for name, distances in found.items()}
    return {**facts, **rows, "unit": "median of Gower's distance to the nearest training row", "seed": seed}


def _strangest(model, run_data):
    """Return the held-out rows with the smallest lower bound, and the columns that made them so."""
    numbers = np.arange(len(run_data.test))
    numbers = some(numbers, MAX_RANKED)
    bounds = np.asarray(likelihoods.lower_bound_terms(model, run_data.test[numbers], NUM_SAMPLES).lower_bound)
    chosen = numbers[np.argsort(bounds, kind="stable")[:STRANGEST]]
    rows = run_data.test[chosen]
    found, texts = surprises(model, rows), entry_texts(model.format, rows)
    names = list(texts)
    by_number = dict(zip(numbers.tolist(), bounds.tolist(), strict=True))
    return [
        {
            "row": int(number if run_data.test_rows is None else run_data.test_rows[number]),
            "score": -by_number[int(number)],
            "because": [
                {"column": names[place], "value": texts[names[place]][row], "nats": float(found[row, place])}
                for place in places
                if found[row, place] > 0
            ],
        }
        for row, (number, places) in enumerate(zip(chosen, most_surprising(found), strict=True))
    ]
