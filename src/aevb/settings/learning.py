"""The arguments of `VAE` that say how it learns: the bound, the steps, and when they end."""

from aevb.settings.setting import Setting

LEARNING: dict[str, Setting] = {
    "learner": Setting(
        "aevb",
        """
        ``"aevb"``; ``"full-vb"``, which learns a posterior over the decoder's weights and averages predictions
        over it, for small data; or a baseline of the paper's experiments: ``"wake-sleep"``, with the same
        networks, or ``"mcem"``, Monte Carlo EM, which has no encoder: it runs for `max_epochs`, and methods
        that need q(z|x) use Hybrid Monte Carlo or are unavailable.
        """,
        registry="aevb.learners:LEARNERS",
        is_structural=True,
    ),
    "estimator": Setting(
        "auto",
        """
        ``"sgvb-b"``, ``"sgvb-a"``, ``"score-function"`` or ``"importance"``, the importance-weighted bound with
        `num_samples` samples; or the same bounds with gradients of a smaller variance near the optimum:
        ``"sgvb-stl"``, A without the score ("sticking the landing"), and ``"importance-dreg"`` (doubly
        reparameterized). Where KL(q‖p) has no closed
        form, ``"sgvb-a"``, which samples it, is used instead of ``"sgvb-b"``. ``"auto"``: ``"sgvb-b"``; for tables
        of up to 20,000 rows ``"importance"`` with 5 samples. ``estimator_`` is the one in use.
        Wake-sleep uses it only to evaluate held-out rows; Monte Carlo EM does not use it; full VB supports the
        first two, eqs. (24) and (22) of the paper.
        """,
        choices=("auto",),
        registry="aevb.estimators:ESTIMATORS",
    ),
    "num_samples": Setting(1, "L, draws of z per datapoint and step.", int, low=1),
    "kl_annealing": Setting(
        "auto",
        """
        Number of steps in which the weight of the KL term grows from 0 to 1. Without it, latent variables that
        explain a little of several columns may never be used, as their cost comes before their benefit.
        ``"auto"``: 2,000 for tables of at least 1,000 rows; for more than 20,000 rows conditioned on labels 1,000, in
        which the weight falls from 10 to 1, so that the decoder learns from y what y can tell, and not from z; 0 for
        other data. It needs ``learner="aevb"`` and an
        estimator with a KL term: ``"sgvb-a"``, ``"sgvb-b"``, ``"sgvb-stl"`` or ``"importance"``. `score` and
        ``history_`` are always those of the bound.
        """,
        int,
        choices=("auto",),
        low=0,
    ),
    "free_bits": Setting(
        0.0,
        """
        Nats of KL divergence that the objective leaves to each level of a hierarchy, or to z, for nothing: as an
        average over the minibatch, less than that is no gain. It keeps levels in use that would be given up before
        the decoder has learned to read them; more than the levels need makes the bound worse. It needs
        ``learner="aevb"`` and an estimator with a KL term: ``"sgvb-a"``, ``"sgvb-b"`` or ``"sgvb-stl"``. `score` and
        ``history_`` are always those of the bound.
        """,
        float,
        low=0,
    ),
    "batch_size": Setting(
        "auto",
        """
        M, datapoints per step. ``"auto"``: 100, or with few rows a tenth of them, but at least 32.
        """,
        int,
        choices=("auto",),
        low=1,
    ),
    "optimizer": Setting(
        "adam",
        """
        ``"adam"``, ``"adagrad"``, ``"sgd"``, or an optax transformation with its own learning rate.
        """,
        registry="aevb.learners:OPTIMIZERS",
    ),
    "learning_rate": Setting(
        None,
        """
        None for the best known default; with ``"adagrad"`` it is then chosen from {0.01, 0.02, 0.1} by the
        first iterations on the training set, as in the paper. The updates of an optax transformation are
        multiplied by it.
        """,
        float,
        above=0,
    ),
    "averaging": Setting(
        "auto",
        """
        Share of the steps so far whose parameters are averaged. The model is that of the average, whose noise is
        smaller than that of the last step: it gets as good in fewer steps, which can be larger. 0
        for the parameters of the last step. ``"auto"``: 0.1 for ``learner="aevb"`` with ``"adam"`` and a known number
        of rows, 0 otherwise.
        """,
        float,
        choices=("auto",),
        low=0,
        high=1,
    ),
    "forgetting": Setting(
        0.0,
        """
        For streams that change: the fraction of its sums that ``"adagrad"`` forgets in each step, such as
        0.001 to remember about a thousand steps. With 0 its steps shrink forever. Adam always forgets.
        """,
        float,
        low=0,
        high=1,
    ),
    "init": Setting(
        "auto",
        """
        ``"glorot"``, or ``"paper"``: N(0, 0.01), where 0.01 is the variance. ``"auto"``: Glorot; if x and z
        are Gaussian, weights that make the initial model the best linear one (factor analysis or PCA); for a
        Bernoulli decoder, biases from the means of the columns.
        """,
        choices=("auto",),
        registry="aevb.networks:INITIALIZATIONS",
    ),
    "max_epochs": Setting(
        "auto",
        """
        Maximum number of passes through the data. ``"auto"``: 100, or 10,000 steps if that is more and
        held-out rows can end training earlier; a row of the history then covers at least 50 steps. With fewer
        than 1,000 rows the model is finally trained again on all rows, for as long as was best for the held-out
        rows.
        """,
        int,
        choices=("auto",),
        low=1,
    ),
    "validation_fraction": Setting(
        "auto",
        """
        Fraction of the rows held out to detect convergence; 0 for none. Fewer than ten such rows are not held
        out. ``"auto"``: a tenth; with fewer than 1,000 rows 100 or a fifth, with fewer than 20 none.
        """,
        float,
        choices=("auto",),
        low=0,
        high=0.9,
    ),
    "patience": Setting(
        "auto",
        """
        Epochs without a better held-out bound before training stops; the best parameters are kept. None to
        train for `max_epochs`. ``"auto"``: 10, or 1,000 steps if that is more; before it stops, training
        continues twice from the best parameters, each time with a quarter of the learning rate. With
        ``max_epochs="auto"`` it does so after 70% and 90% of the epochs at the latest.
        """,
        int,
        choices=("auto", None),
        low=1,
    ),
    "parameter_prior": Setting(
        "auto",
        """
        ``"normal"`` for MAP estimation with the prior N(0, I) on all parameters, ``None`` for maximum
        likelihood, ``"auto"`` for N(0, I), or a variance of 0.1 with fewer than 1,000 rows of real numbers. Or
        a number, the precision of a prior N(0, I / precision). Full VB has the prior N(0, I) on the decoder's
        weights, and none on the encoder's.
        """,
        float,
        choices=("auto", "normal", None),
        above=0,
    ),
}
