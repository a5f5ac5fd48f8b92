"""From numbers to verdicts: pure functions, one a claim, each of which can come out against the paper."""

from typing import NamedTuple

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"


class Verdict(NamedTuple):
    """What the numbers say of a claim."""

    verdict: str  # HOLDS, IN_PART or FAILS
    because: str  # the numbers in a sentence


def _verdict(successes: list[bool], because: str) -> Verdict:
    return Verdict(HOLDS if all(successes) else IN_PART if any(successes) else FAILS, because)


def score_function_is_impractical(variances: list[dict]) -> Verdict:
    """Claim 1: at equal L its variance is at least ten times SGVB's, and more samples do not make up for it.

    Args:
        variances: Rows with `data`, `stage`, `num_samples`, and the variances by estimator.
    """
    ratios = [row["score-function"] / row["sgvb-b"] for row in variances]
    by_most_samples = []
    for row in variances:
        if row["num_samples"] == max(other["num_samples"] for other in variances):
            fewest = min(
                (other for other in variances if _same_place(other, row)), key=lambda other: other["num_samples"]
            )
            by_most_samples.append((row["score-function"] / fewest["sgvb-b"], row["num_samples"]))
    worst, most = min(by_most_samples), by_most_samples[0][1]
    because = (
        f"variance of the encoder's gradient, score function over SGVB: {min(ratios):,.0f} to {max(ratios):,.0f} times "
        f"at equal L; with L = {most} against SGVB's L = 1 still {worst[0]:,.1f} times or more"
    )
    return _verdict([min(ratios) >= 10, worst[0] > 1], because)


def b_varies_less_than_a(variances: list[dict]) -> Verdict:
    """Claim 2: the gradient of estimator A has the larger variance, everywhere that was looked."""
    ratios = {
        (row["data"], row["stage"]): row["sgvb-a"] / row["sgvb-b"] for row in variances if row["num_samples"] == 1
    }
    said = ", ".join(f"{ratio:.2f} ({data}, {stage:,} samples)" for (data, stage), ratio in ratios.items())
    return _verdict([ratio > 1 for ratio in ratios.values()], f"variance of the gradient, A over B: {said}")


def one_sample_is_enough(bounds: list[dict], tolerance: float = 1.0) -> Verdict:
    """Claim 3: after equal computation with M = 100, no other L is better than L = 1 by more than a nat.

    Args:
        bounds: Rows with `batch_size`, `num_samples` and `bound`.
        tolerance: In nats.
    """
    sizes = sorted({row["batch_size"] for row in bounds})
    near_100 = min(sizes, key=lambda size: abs(size - 100))
    gains = {}
    for size in sizes:
        by_samples = {row["num_samples"]: row["bound"] for row in bounds if row["batch_size"] == size}
        gains[size] = max(by_samples.values()) - by_samples[1]
    said = ", ".join(f"{gain:.1f} nats (M = {size})" for size, gain in gains.items())
    at_100 = gains[near_100] <= tolerance
    because = f"what the best of all L gains over L = 1 after equal computation: {said}"
    return Verdict(HOLDS if at_100 else FAILS, because)


def aevb_beats_wake_sleep(curves: list[dict]) -> Verdict:
    """Claim 4: AEVB's bound of test data is above wake-sleep's at every point of every experiment ("faster"), and
    at the end ("better").
    """  # noqa: D205
    leads, last_leads = [], []
    for aevb, rival in _pairs(curves, "aevb", "wake-sleep"):
        others = {point["samples"]: point["test"]["mean"] for point in rival["points"]}
        lead = [
            point["test"]["mean"] - others[point["samples"]] for point in aevb["points"] if point["samples"] in others
        ]
        leads += lead
        last_leads.append(lead[-1])
    ahead, at_end = sum(lead > 0 for lead in leads), sum(lead > 0 for lead in last_leads)
    because = (
        f"AEVB is ahead at {ahead} of {len(leads)} points, and at the end in {at_end} of {len(last_leads)} "
        f"experiments, there by {min(last_leads):.1f} to {max(last_leads):.1f} nats"
    )
    return _verdict([ahead == len(leads), at_end == len(last_leads)], because)


def superfluous_latents_do_not_overfit(curves: list[dict], tolerance: float = 1.0) -> Verdict:
    """Claim 5: with AEVB neither more latent variables nor more training makes the bound of test data fall.

    Each falls if it loses more than a nat and two standard errors. A data set that overfits with its fewest latent
    variables already says nothing of superfluous ones: only what the larger number adds to the fall counts.
    """
    successes, said = [], []
    for data in dict.fromkeys(curve["settings"]["data"] for curve in curves):
        ours = [curve for curve in curves if _is(curve, data, "aevb")]
        ours.sort(key=lambda curve: curve["settings"]["latent_dim"])
        best = {curve["settings"]["latent_dim"]: max(p["test"]["mean"] for p in curve["points"]) for curve in ours}
        falls = [
            best_so_far - curve["points"][-1]["test"]["mean"]
            for best_so_far, curve in zip(best.values(), ours, strict=True)
        ]
        most = max(best)
        loss = max(best.values()) - best[most]
        successes += [loss <= tolerance, max(falls) - falls[0] <= tolerance]
        said.append(
            f"{data}: best bound {best[most]:.1f} with J = {most}, {max(best.values()):.1f} with the best J; "
            f"it falls by at most {max(falls):.1f} while learning goes on"
        )
    return _verdict(successes, "; ".join(said))


def mcem_is_for_small_data(rows: list[dict]) -> Verdict:
    """Claim 6: on all images Monte Carlo EM is behind AEVB after the same computing.

    Args:
        rows: Of the large training set: `core_seconds`, and the log-likelihood of test data, `mcem` and
            `aevb`, this at the last point that took no more.
    """
    leads = [row["aevb"] - row["mcem"] for row in rows]
    said = "; ".join(
        f"{row['mcem']:.1f} against {row['aevb']:.1f} after {row['core_seconds']:.0f} s of one core" for row in rows
    )
    because = f"log p(x) of test data on the large training set, MCEM against AEVB after no more computing: {said}"
    return _verdict([lead > 0 for lead in leads], because)


def speed_is_as_stated(minutes: float, gigaflops: float) -> Verdict:
    """Claim 7: at 40 GFLOPS a million training samples take 20 to 40 minutes, or less.

    Args:
        minutes: Taken here for a million training samples.
        gigaflops: Of this machine, in the same run.
    """
    scaled = minutes * gigaflops / 40
    because = (
        f"{minutes:.2f} minutes a million training samples at {gigaflops:.0f} GFLOPS, which would be {scaled:.1f} "
        "minutes at 40 GFLOPS; the paper has 20 to 40"
    )
    return Verdict(HOLDS if scaled <= 40 else FAILS, because)


def estimator_is_for_few_dimensions(rows: list[dict], tolerance: float = 0.5) -> Verdict:
    """Claim 8: appendix D's estimate is right below 5 dimensions, and wrong beyond.

    Args:
        rows: `latent_dim`, `error` (the average over images of estimate minus truth) and `truth` (its method).
        tolerance: In nats, for right.
    """
    few = [abs(row["error"]) <= tolerance for row in rows if row["latent_dim"] < 5]
    many = [abs(row["error"]) > tolerance for row in rows if row["latent_dim"] > 5]
    said = ", ".join(f"{row['error']:+.2f} (J = {row['latent_dim']}, {row['truth']})" for row in rows)
    because = f"average error in nats: {said}"
    if not all(few):
        return Verdict(FAILS, because)
    return Verdict(HOLDS if all(many) else IN_PART, because + ("" if all(many) else "; it is right beyond 5 as well"))


def linear_models_are_pca(angle: float, shortfall: float) -> Verdict:
    """Claim 9: a linear model learned by AEVB spans what PCA spans, and is as likely as probabilistic PCA.

    Args:
        angle: Largest principal angle between the two spaces, in degrees.
        shortfall: By how much its log-likelihood is below the maximum, in nats a datapoint.
    """
    because = f"largest angle between the spaces {angle:.2f} degrees; log p(x) {shortfall:.3f} nats below the maximum"
    return _verdict([angle < 5, abs(shortfall) < 0.1], because)


def _same_place(one, other):
    return all(one[key] == other[key] for key in ("data", "stage"))


def _is(curve, data, learner):
    return curve["settings"]["data"] == data and curve["settings"]["learner"] == learner


def _pairs(curves, one, other):
    """Give the results of two learners under otherwise equal settings."""
    by_settings: dict[tuple, dict[str, dict]] = {}
    for curve in curves:
        setting = {**curve["settings"], "learner": None}
        by_settings.setdefault(tuple(map(str, setting.items())), {})[curve["settings"]["learner"]] = curve
    return [(pair[one], pair[other]) for pair in by_settings.values() if one in pair and other in pair]
