"""Numbers in the documentation are those that experiments stored: docs/reproduction/*.json.

Each row of an experiment's own summary has a line, or a paragraph, with all of its numbers in the page that tells of
it. Words may differ, numbers may not.
"""

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "reproduction"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*\.\d+")
PAGES = {  # the module that summarizes an experiment, and the page that tells of it
    "anomalies": "docs/reproduction.md",
    "convolutions": "docs/reproduction.md",
    "imputation": "docs/reproduction.md",
    "ladder": "docs/reproduction.md",
    "likelihoods": "docs/reproduction.md",
    "miwae": "docs/reproduction.md",
    "synthetic": "docs/reproduction.md",
}
TABLES = {  # tables that show some of the numbers, with fewer digits: their page, and how their headers begin
    "regression": ("docs/tasks/labels.md", "| set | splits |"),
    "semi_supervised": ("docs/tasks/labels.md", "| labels |"),
    "forecasts": ("docs/tasks/sequences.md", "| series | CRPS |"),
}


def stored(name):
    return json.loads((RESULTS / f"{name.replace('_', '-')}.json").read_text(encoding="utf-8"))


def summary_of(name) -> str:
    return importlib.import_module(f"aevb.experiments.{name}").summary(stored(name)["results"])


def numbers(line) -> Counter:
    """Return the decimal numbers of a line; 1.030 and 1.03 are the same."""
    return Counter(float(found.replace(",", "")) for found in NUMBER.findall(line.replace("−", "-")))


def lines_of(page) -> list[Counter]:
    """Return the numbers of each line of a table and of each paragraph."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paragraphs = re.split(r"\n\s*\n|\n(?=[|-])", text)
    return [numbers(paragraph) for paragraph in paragraphs]


def untold(summary, page) -> list[str]:
    """Return the rows of a summary of which the page does not have all numbers together."""
    lines = lines_of(page)
    return [row for row in summary.splitlines() if not any(numbers(row) <= line for line in lines)]


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_the_numbers_of_the_experiments(name):
    assert untold(summary_of(name), PAGES[name]) == []


@pytest.mark.parametrize("name", TABLES)
def test_tables_round_the_numbers_of_the_experiments(name):
    page, header = TABLES[name]
    known = list(numbers(summary_of(name)))
    tables = [part for part in (ROOT / page).read_text(encoding="utf-8").split("\n\n") if part.startswith(header)]
    shown = [text for table in tables for text in NUMBER.findall(table.replace("−", "-"))]
    assert len(shown) > 10
    assert [text for text in shown if not any(rounds(text, number) for number in known)] == []


def rounds(text, number) -> bool:
    """Return whether a number is written as this text if it is rounded."""
    digits = len(text.partition(".")[2])
    return abs(float(text) - number) <= 0.5000001 * 10.0**-digits


def test_the_claims_have_the_numbers_that_were_measured():
    claims = importlib.import_module("aevb.experiments.claims")
    assert untold(claims.table(stored("claims")["claims"]), "docs/reproduction.md") == []


CURVES = {  # tables of curves: the figure, and the setting that is in the first column beside the learner
    "| learner, J | step size |": ("figure-2", "mnist", "latent_dim"),
    "| learner, J | step | 0.1M | 0.4M | 0.8M | 1.6M | 3.2M |": ("figure-2", "frey-faces", "latent_dim"),
    "| learner, N | step |": ("figure-3", "mnist", "num_train"),
}


@pytest.mark.parametrize("header", CURVES)
def test_tables_of_curves_have_the_stored_points(header):
    """Test data first; training data in parentheses are compared in figure 3, whose others are of another program."""
    figure, data, setting = CURVES[header]
    curves = {
        (curve["settings"]["learner"], curve["settings"][setting]): curve
        for curve in stored(figure)["curves"]
        if curve["settings"]["data"] == data
    }
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8").replace("−", "-")
    (table,) = (part for part in text.split("\n\n") if part.startswith(header))
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    num_compared = 0
    for name, step_size, *cells in rows:
        learner, _, number = name.partition(", ")
        curve = curves[learner, int(number.replace(",", ""))]
        assert float(step_size) == curve["step_size"]
        for column, cell in zip(names[2:], cells, strict=True):
            millions = [float(found) for found in re.findall(r"([\d.]+)M", column)]
            near = [p for p in curve["points"] if any(abs(p["samples"] / 1e6 - m) < 0.02 * m for m in millions)]
            parts = ["train"] if column.startswith("training") else ["test", "train"][: 1 + (figure == "figure-3")]
            for part, shown in zip(parts, NUMBER.findall(cell), strict=False):
                assert rounds(shown, near[0][part]["mean"]), (name, column, cell)
                num_compared += 1
    assert num_compared >= 40


def test_a_wrong_number_is_noticed():
    assert untold("| Wine | normal | 0.899 | 0.851 |", "docs/reproduction.md")


def table_of(page, header) -> list[list[str]]:
    """Return the cells of the rows of a table."""
    text = (ROOT / page).read_text(encoding="utf-8").replace(r"\|", "¦")
    (table,) = (part for part in text.split("\n\n") if part.startswith(header))
    rows = [[cell.strip().replace("¦", "|") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return rows[2:]


def test_small_tables_have_the_stored_numbers():
    found = importlib.import_module("aevb.experiments.small_tables").summary(stored("small-tables")["tables"])
    assert untold(found, "docs/reproduction.md") == []


def test_chorales_have_the_stored_numbers():
    found = stored("music")
    rows = {name: runs["seed 0"] for name, runs in found["results"].items()}
    kinds = ("bound", "importance", "filtered", "filtered_by_more")
    told = [[name, *(f"{row[kind]:.2f}" for kind in kinds)] for name, row in rows.items()]
    published = [f"{found['published'][kind]:.2f}" for kind in kinds[:2]]
    assert table_of("docs/tasks/sequences.md", "| model | bound |") == [
        *told,
        ["p(x_t|z_t), published", *published, "", ""],
    ]


def test_variances_of_gradients_have_the_stored_numbers():
    results = stored("gradients")["results"]
    for case, *cells in table_of("docs/reproduction/gradients.md", "| estimator |"):
        assert cells == [f"{stage[case]['variance']:.3g}" for stage in results.values()]


def test_errors_of_posteriors_have_the_stored_numbers():
    results = stored("posteriors")["results"]
    rows = table_of("docs/posteriors.md", "| posterior | `fit_posterior`")
    compared = [(name, cell) for name, cell, *_ in rows if name in results]
    assert {name for name, _ in compared} == set(results)
    for name, cell in compared:
        mean, std, seconds = cell.split(", ")
        assert rounds(mean, results[name]["default"]["mean_error"]), name
        assert rounds(std, results[name]["default"]["std_error"]), name
        assert rounds(seconds, results[name]["default"]["cpu_seconds"]), name


def rounded(cells, values) -> bool:
    """Return whether the numbers of some cells are these values, in this order, rounded."""
    shown = NUMBER.findall(" ".join(cells).replace("−", "-"))
    return len(shown) == len(values) and all(map(rounds, shown, values))


def test_tasks_have_the_stored_numbers():
    found = [
        [float(np.mean(value)) for value in task["values"].values()] for task in stored("tasks")["results"].values()
    ]
    rows = [cells for _, _, *cells in table_of("docs/tasks/index.md", "| task | data | VAE |")]
    assert len(rows) == len(found)
    assert [row for row in rows if sum(rounded(row, values) for values in found) != 1] == []


def test_small_measurements_have_the_stored_numbers():
    found = stored("measured")["results"]
    for name, *cells in table_of("docs/guide.md", "| learned by |"):
        assert rounded(cells, [found["full_vb"][name][key] for key in ("training", "held_out", "log_likelihood")])
    methods = [value for value in found["log_likelihoods"].values() if isinstance(value, dict)]
    for (_, number, *cells), method in zip(table_of("docs/guide.md", "| `method` | samples |"), methods, strict=True):
        assert int(number) == method["num_samples"]
        assert rounded(cells, [method[key] for key in ("mean", "root_mean_square", "largest")])
    bernoulli, gaussian = (found["noisy_faces"][name] for name in ("bernoulli", "sigmoid-gaussian"))
    kinds = ("reconstruct", "given", "estimated")
    for level, *cells in table_of("docs/tasks/denoise.md", "| noise | noisy |"):
        models = bernoulli[level], gaussian[level]
        assert rounded(cells, [models[0]["noisy"], *(model[kind] for model in models for kind in kinds)])


def test_topics_have_the_stored_numbers_and_words():
    found, page = stored("topics"), "docs/tasks/topics.md"
    (fit,) = found["fits"]
    frequencies, ours = table_of(page, "| model | seed | test perplexity")
    assert frequencies[2] == f"{found['frequencies']:.1f}"
    assert ours[1:] == [str(fit["seed"]), f"{fit['perplexity']:.1f}", str(fit["epochs"]), f"{fit['cpu_seconds']:.0f}"]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert all(f"\n{n}. {' '.join(words)}\n" in text for n, words in enumerate(fit["topics"][:14], start=1))


def test_predicted_efficiencies_follow_from_the_formula():
    """The formula and constants of the page: m P c + 2 (k - 1) a + 2 (k - 1)/k 4 P / B; test_prose.py compares c."""
    m, c, a, B = 1000, 5.5e-11, 50e-6, 1e9
    for name, *cells in table_of("docs/scale.md", "| parameters | 8 hosts |"):
        P = 1e6 * float(name.split()[0].replace(",", ""))
        for cell, k, cores in zip(cells, (8, 64, 1024, 8, 1024), (1, 1, 1, 16, 16), strict=True):
            alone = m * P * c / cores
            assert rounds(cell, alone / (alone + 2 * (k - 1) * a + 2 * (k - 1) / k * 4 * P / B)), (name, k, cores)
