"""The report of a model with labels, targets or covariates."""

from pathlib import Path
from typing import Any

from aevb.data.label_data import CLASSIFIER, REGRESSOR, LabelData
from aevb.fitted import FittedModel
from aevb.report.judgement import written
from aevb.report.label_baselines import baseline_words
from aevb.report.label_measures import LEVEL
from aevb.report.page import common_facts, render

_LEADS = {
    CLASSIFIER: "A classifier with a generative model of its rows",
    REGRESSOR: "A model of the distribution of its targets, given the other columns",
}


def render_label_report(
    folder: Path, model: FittedModel, data: LabelData, metrics: dict, pictures: list[str], **origin: str
) -> Path:
    """Write `report.html`.

    Args:
        folder: Folder of the report.
        model: The model.
        data: Its data.
        metrics: See :func:`aevb.report.label_measures.measure_labels`.
        pictures: Names of the pictures.
        origin: See :func:`aevb.report.page.render_report`.
    """
    a, kind = model.arguments, metrics["kind"]
    facts: dict[str, Any] = common_facts(folder, model, data, metrics, pictures, **origin)
    rows = f"{metrics['rows']:,} {metrics['judged_by']} rows"
    tiles, numbers = {CLASSIFIER: _classifier, REGRESSOR: _regressor}.get(kind, _conditional)(metrics, rows)
    facts |= {
        "title": data.title,
        "num_train": data.num_train,
        "lead": _LEADS.get(kind, "A model of rows given y"),
        "tiles": [tile for tile in tiles if tile is not None],
        "numbers": numbers,
        "rows": rows,
        "kind": kind,
        "classifier": a.option("model", "m2").upper(),
        "hidden": ", ".join(map(str, a.hidden_for(is_table=model.is_table))) or "none",
        "given": ", ".join(str(column.name) for column in model.given.columns),
        "columns": [column for column in model.format.columns if kind == REGRESSOR] if model.is_table else [],
    }
    return render(folder, "label_report.html", facts)


def _classifier(metrics, rows):
    simple, error = metrics["without_inputs"], metrics["expected_calibration_error"]
    tiles = [
        (
            f"{metrics['accuracy']:.1%}",
            f"of {rows} get the right label",
            baseline_words(metrics, "accuracy", ".1%"),
        ),
        (_text(metrics["log_loss"]), "log loss, nats per label", baseline_words(metrics, "log_loss", ".2f")),
        (_text(error["value"], 3), "expected calibration error", f"{error['by_chance']:.3f} expected by chance"),
    ]
    numbers = [
        (
            f"{metrics['accuracy']:.1%}",
            f"of {rows} have the label that is most probable under q(y|x); the 95% interval of this share is "
            f"{metrics['accuracy_interval'][0]:.1%} to {metrics['accuracy_interval'][1]:.1%}",
        ),
        (f"{simple['accuracy']:.1%}", f"have the label that is most frequent in {simple['of']}"),
        (
            f"{_text(metrics['log_loss'], 3)} ± {_text(metrics['log_loss_std_error'], 3)}",
            "log loss: minus the mean of log q(y|x) of their labels, in nats; lower is better",
        ),
        (
            _text(simple["log_loss"], 3),
            f"log loss of probabilities that ignore the other columns: the frequencies of the labels in {simple['of']}",
        ),
        (
            _text(error["value"], 3),
            f"expected calibration error ({error['estimator']}); {error['by_chance']:.3f} would be expected by chance "
            "if the probabilities were right",
        ),
    ]
    return tiles, numbers


def _regressor(metrics, rows):
    tiles = [(_text(metrics["log_prob"], 2), "log p(y|x), nats per row", f"± {_text(metrics['log_prob_std_error'])}")]
    numbers = [
        (
            f"{_text(metrics['log_prob'], 3)} ± {_text(metrics['log_prob_std_error'], 3)}",
            f"mean of log p(y|x) of {rows}, in nats and in the units of the targets ({metrics['how']}); higher "
            "is better",
        )
    ]
    for number, target in enumerate(metrics["targets"]):
        share, error = target["within_90_percent_interval"], target["root_mean_squared_error"]
        low, high = target["within_90_percent_interval_interval"]
        if number == 0:
            tiles += [
                (
                    f"{error:.4g}",
                    f"root mean squared error of {target['name']}",
                    baseline_words(metrics, "root_mean_squared_error", ".4g"),
                ),
                (f"{share:.1%}", f"within the {LEVEL:.0%} interval", rows),
            ]
        numbers += [
            (
                f"{error:.4g}",
                f"root mean squared error of the predicted mean of {target['name']}; that of its mean in "
                f"{metrics['without_inputs']['of']} is {target['error_of_the_mean']:.4g}",
            ),
            (
                f"{share:.1%}",
                f"of these rows have a {target['name']} within its {LEVEL:.0%} interval; the 95% interval of this "
                f"share is {low:.1%} to {high:.1%}",
            ),
            (
                _text(target["quantile_error"], 3),
                f"mean difference between the levels of quantiles of {target['name']} and the share of rows below "
                "them; 0 if all are right",
            ),
        ]
    return tiles, numbers


def _conditional(metrics, rows):
    tiles = [
        (_text(metrics["lower_bound"]), "lower bound of log p(x|y), nats per row", rows),
        (_text(metrics["log_likelihood"]), "log p(x|y), nats per row", rows),
        (_text(metrics["lower_bound"] - metrics["with_other_y"]), "nats per row that y tells about x", ""),
    ]
    numbers = [
        (
            f"{_text(metrics['lower_bound'], 2)} ± {_text(metrics['lower_bound_std_error'], 2)}",
            f"lower bound of log p(x|y), mean of {rows}",
        ),
        (
            f"{_text(metrics['log_likelihood'], 2)} ± {_text(metrics['log_likelihood_std_error'], 2)}",
            f"log p(x|y) of the same rows ({metrics['how']})",
        ),
        (_text(metrics["with_other_y"], 2), "lower bound with the y of other rows: what the model loses without y"),
    ]
    return tiles, numbers


def _text(value, digits=2):
    return written(value, digits).replace("-", "−")
