"""From numbers to verdicts: pure functions, one per claim, each of which may contradict the paper."""

from typing import NamedTuple

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"


class Verdict(NamedTuple):
    """What the numbers say about a claim."""

    verdict: str  # HOLDS, IN_PART or FAILS
    because: str  # the numbers in a sentence


def _verdict(successes: list[bool], because: str) -> Verdict:
    return Verdict(HOLDS if all(successes) else IN_PART if any(successes) else FAILS, because)


def score_function_is_impractical(variances: list[dict]) -> Verdict:
    """Claim 1: at equal L its variance is at least ten times that of SGVB, and more samples do not compensate for it.

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
        f"ratio of variances, score function over SGVB: {min(ratios):,.0f} to {max(ratios):,.0f} at equal L; "
        f"with L = {most} against L = 1 for SGVB, still {worst[0]:,.1f} or more"
    )
    return _verdict([min(ratios) >= 10, worst[0] > 1], because)


def b_varies_less_than_a(variances: list[dict]) -> Verdict:
    """Claim 2: the gradient of estimator A has the larger variance in every case measured."""
    ratios = {
        (row["data"], row["stage"]): row["sgvb-a"] / row["sgvb-b"] for row in variances if row["num_samples"] == 1
    }
    details = ", ".join(f"{ratio:.2f} ({data}, {stage:,} samples)" for (data, stage), ratio in ratios.items())
    return _verdict([ratio > 1 for ratio in ratios.values()], f"ratio of gradient variances, A over B: {details}")


def one_sample_is_enough(bounds: list[dict], tolerance: float = 1.0) -> Verdict:
    """Claim 3: after equal computation with M = 100, no other L is better than L = 1 by more than one nat.

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
    details = ", ".join(f"{gain:.1f} nats (M = {size})" for size, gain in gains.items())
    at_100 = gains[near_100] <= tolerance
    because = f"gain of the best L over L = 1 after equal computation: {details}"
    return Verdict(HOLDS if at_100 else FAILS, because)


def aevb_beats_wake_sleep(curves: list[dict]) -> Verdict:
    """Claim 4: AEVB's bound on test data is above that of wake-sleep at every point of every experiment ("faster"), and
    at the end ("better").
    """  # noqa: D205
    leads, last_leads = [], []
    for aevb, baseline in _pairs(curves, "aevb", "wake-sleep"):
        others = {point["samples"]: point["test"]["mean"] for point in baseline["points"]}
        lead = [
            point["test"]["mean"] - others[point["samples"]] for point in aevb["points"] if point["samples"] in others
        ]
        leads += lead
        last_leads.append(lead[-1])
    ahead, at_end = sum(lead > 0 for lead in leads), sum(lead > 0 for lead in last_leads)
    because = (
        f"AEVB is ahead at {ahead} of {len(leads)} points, and at the end in {at_end} of {len(last_leads)} "
        f"experiments, by {min(last_leads):.1f} to {max(last_leads):.1f} nats"
    )
    return _verdict([ahead == len(leads), at_end == len(last_leads)], because)


def superfluous_latents_do_not_overfit(curves: list[dict], tolerance: float = 1.0) -> Verdict:
    """Claim 5: with AEVB neither more latent variables nor more training lowers the bound on test data.

    A decrease of at most `tolerance` nats does not count. A data set that already overfits with its fewest latent
    variables says nothing about superfluous ones: only what the larger number adds to the decrease counts.
    """
    successes, details = [], []
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
        details.append(
            f"{data}: best bound {best[most]:.1f} with J = {most}, {max(best.values()):.1f} with the best J; "
            f"it decreases by at most {max(falls):.1f} during training"
        )
    return _verdict(successes, "; ".join(details))


def mcem_is_for_small_data(rows: list[dict]) -> Verdict:
    """Claim 6: on all images Monte Carlo EM is behind AEVB after the same computation.

    Args:
        rows: For the large training set: `core_seconds`, and the log-likelihood of test data, `mcem` and `aevb`, the
            latter at the last point that took no longer.
    """
    leads = [row["aevb"] - row["mcem"] for row in rows]
    details = "; ".join(
        f"{row['mcem']:.1f} against {row['aevb']:.1f} after {row['core_seconds']:.0f} s on one core" for row in rows
    )
    because = f"log p(x) of test data with the large training set, MCEM against AEVB: {details}"
    return _verdict([lead > 0 for lead in leads], because)


def speed_is_as_stated(minutes: float, gigaflops: float) -> Verdict:
    """Claim 7: at 40 GFLOPS a million training samples take 20 to 40 minutes, or less.

    Args:
        minutes: Time per million training samples on this machine.
        gigaflops: Speed of this machine in the same run.
    """
    scaled = minutes * gigaflops / 40
    because = (
        f"{minutes:.2f} minutes per million training samples at {gigaflops:.0f} GFLOPS, which would be {scaled:.1f} "
        "minutes at 40 GFLOPS; the paper reports 20 to 40"
    )
    return Verdict(HOLDS if scaled <= 40 else FAILS, because)


def estimator_is_for_few_dimensions(rows: list[dict], tolerance: float = 0.5) -> Verdict:
    """Claim 8: appendix D's estimate is accurate below 5 dimensions, and inaccurate beyond.

    Args:
        rows: `latent_dim`, `error` (the average over images of estimate minus truth) and `truth` (its method).
        tolerance: Largest error of an accurate estimate, in nats.
    """
    few = [abs(row["error"]) <= tolerance for row in rows if row["latent_dim"] < 5]
    many = [abs(row["error"]) > tolerance for row in rows if row["latent_dim"] > 5]
    details = ", ".join(f"{row['error']:+.2f} (J = {row['latent_dim']}, {row['truth']})" for row in rows)
    because = f"average error in nats: {details}"
    if not all(few):
        return Verdict(FAILS, because)
    return Verdict(HOLDS if all(many) else IN_PART, because + ("" if all(many) else "; also accurate beyond 5"))


def linear_models_are_pca(angle: float, shortfall: float) -> Verdict:
    """Claim 9: a linear model learned by AEVB spans the subspace of PCA and reaches its likelihood.

    Args:
        angle: Largest principal angle between the two subspaces, in degrees.
        shortfall: By how much its log-likelihood is below the maximum, in nats per datapoint.
    """
    because = f"largest angle between subspaces {angle:.2f} degrees; log p(x) {shortfall:.3f} nats below the maximum"
    return _verdict([angle < 5, abs(shortfall) < 0.1], because)


def _same_place(one, other):
    return all(one[key] == other[key] for key in ("data", "stage"))


def _is(curve, data, learner):
    return curve["settings"]["data"] == data and curve["settings"]["learner"] == learner


def _pairs(curves, one, other):
    """Return the pairs of results of two learners under otherwise equal settings."""
    by_settings: dict[tuple, dict[str, dict]] = {}
    for curve in curves:
        setting = {**curve["settings"], "learner": None}
        by_settings.setdefault(tuple(map(str, setting.items())), {})[curve["settings"]["learner"]] = curve
    return [(pair[one], pair[other]) for pair in by_settings.values() if one in pair and other in pair]
