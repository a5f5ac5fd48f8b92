"""The paper's claims, each with how it is measured, the numbers, and a verdict, which may contradict the paper.

Paper: §2.3, §4, §5, App. D.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from aevb.data import check_parameter
from aevb.experiments.claims import measures, verdicts
from aevb.experiments.claims.measures import Laboratory, effort_curves, figure_curves, mcem_curve
from aevb.experiments.claims.verdicts import Verdict
from aevb.experiments.cost import gigaflops
from aevb.experiments.figures import write_numbers
from aevb.experiments.settings import PROFILES, Curve, Watch, read
from aevb.files import written_whole

REFERENCE_GIGAFLOPS = 94.0  # of one core of the machine on which `core_minutes` were measured


class Claim(NamedTuple):
    """A statement, how it is measured, and how the verdict is reached."""

    statement: str
    place: str  # section or figure of the paper
    how: str
    measure: Callable[[Laboratory], Any]
    judge: Callable[[Any], Verdict]


CLAIMS = (
    Claim(
        "The score-function gradient's variance makes it impractical.",
        "§2.2",
        "variance of the encoder's gradient over draws of the noise, for one minibatch of 100, by L and stage",
        measures.gradient_variances,
        verdicts.score_function_is_impractical,
    ),
    Claim(
        "Estimator B typically varies less than A.",
        "§2.3",
        "the same, A over B, with L = 1",
        measures.gradient_variances,
        verdicts.b_varies_less_than_a,
    ),
    Claim(
        "L = 1 is enough as long as M is about 100.",
        "§2.3",
        "bound on 10,000 test images after an equal number of (datapoint, sample) pairs, by L and M",
        measures.bounds_by_effort,
        verdicts.one_sample_is_enough,
    ),
    Claim(
        "AEVB converges faster than wake-sleep and reaches a better solution, in all experiments.",
        "Figure 2",
        "bound on test data at each point of the curves of figure 2",
        measures.bound_curves,
        verdicts.aevb_beats_wake_sleep,
    ),
    Claim(
        "Superfluous latent variables do not lead to overfitting.",
        "§5",
        "bound on test data by J, and its decrease during training, in the AEVB curves of figure 2",
        measures.bound_curves,
        verdicts.superfluous_latents_do_not_overfit,
    ),
    Claim(
        "Monte Carlo EM is not an on-line algorithm, and cannot be applied efficiently to the full data set.",
        "Figure 3",
        "log p(x) of test data after training on all images, compared with AEVB for no more computation",
        measures.likelihoods_by_time,
        verdicts.mcem_is_for_small_data,
    ),
    Claim(
        "A million training samples take 20 to 40 minutes at 40 GFLOPS.",
        "Figure 2",
        "median time for chunks of 25,000 samples on all cores, and speed of float32 products in the same run",
        measures.speed,
        lambda found: verdicts.speed_is_as_stated(found["minutes_per_million"], found["gigaflops"]),
    ),
    Claim(
        "Appendix D's estimator is good below 5 dimensions, and not beyond.",
        "App. D",
        "compared with quadrature (J = 2) and annealed importance sampling, on test images",
        measures.estimator_errors,
        verdicts.estimator_is_for_few_dimensions,
    ),
    Claim(
        "A linear-Gaussian model's maximum likelihood is PCA's solution.",
        "§4",
        "a linear model of 1,797 digits learned by AEVB, J = 5, compared with probabilistic PCA in closed form",
        measures.pca,
        lambda found: verdicts.linear_models_are_pca(**found),
    ),
)


def reproduce_claims(
    profile: str, folder: Path, *, seed: int = 0, watch: Watch = lambda *_: None, processes: int | None = None
) -> list[Path]:
    """Measure the paper's claims and write a table of verdicts, `claims.md` and `claims.json`."""
    check_parameter("profile", profile, choices=PROFILES)
    lab = Laboratory(profile, folder, seed, watch, processes)
    rows = []
    for number, claim in enumerate(CLAIMS, start=1):
        numbers = claim.measure(lab)
        verdict = claim.judge(numbers)
        row = {"claim": number, "statement": claim.statement, "place": claim.place, "how": claim.how}
        rows.append(row | verdict._asdict() | {"numbers": _without_curves(numbers)})
    settings = read("claims")
    numbers = {"title": settings["title"], "profile": profile, "seed": seed, "claims": rows}
    with written_whole(folder / "claims.md") as scratch:
        scratch.write_text(table(rows), encoding="utf-8")
    return [folder / "claims.md", write_numbers(folder / "claims.json", numbers)]


def table(rows: list[dict]) -> str:
    """Return the claims as a Markdown table."""
    lines = ["| claim | the paper | verdict | what was measured |", "| --- | --- | --- | --- |"]
    for row in rows:
        statement = f"{row['statement']} ({row['place']})"
        lines.append(f"| {row['claim']} | {statement} | **{row['verdict']}** | {row['how']}: {row['because']} |")
    return "\n".join(lines) + "\n"


def curves_for_claims(profile: str, seed: int) -> list[Curve]:
    """Return the curves that the claims need: those of figures 2, 3 and 5, and a few more."""
    shared = figure_curves(profile, seed, "figure-2", "figure-3", "figure-5")
    return [*shared, mcem_curve(profile, seed), *effort_curves(profile, seed)]


def claims_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for everything but the curves; 0 if it is done."""
    if (folder / "claims" / "linear.json").exists():
        return 0.0
    return 60 * read("claims")["core_minutes"][profile] * REFERENCE_GIGAFLOPS / gigaflops()


def _without_curves(numbers):
    """Leave out curves, which are in the file of their figure."""
    is_curve = isinstance(numbers, list) and numbers and "points" in numbers[0]
    return "see figure-2.json" if is_curve else numbers
