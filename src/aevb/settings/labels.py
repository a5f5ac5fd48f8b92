"""The arguments of `VAERegressor` and `VAEClassifier`: most are those of `VAE`, with defaults of their own."""

from dataclasses import replace

from aevb.settings.sequences import SEQUENCE_SETTINGS
from aevb.settings.setting import Setting
from aevb.settings.table import SETTINGS

_SHARED = (
    "activation",
    "posterior",
    "batch_size",
    "optimizer",
    "learning_rate",
    "max_epochs",
    "validation_fraction",
    "patience",
    "parameter_prior",
    "random_state",
    "progress",
)

REGRESSOR_SETTINGS: dict[str, Setting] = {
    "latent_dim": Setting(
        2,
        """
        J, number of latent variables: how many independent sources of noise are bent into the distribution of y.
        """,
        int,
        low=1,
        largest=SETTINGS["latent_dim"].largest,
        is_structural=True,
    ),
    "likelihood": Setting(
        "student-t",
        """
        p(y|x, z) of the targets: a kind of column as in `VAE`, such as ``"student-t"``, whose tails are as heavy as
        those of the data, ``"gaussian"``, ``"lognormal"`` or ``"count"``, for all targets or by their names;
        ``"auto"`` chooses from their values. The distribution of y given x is a mixture of these over z.
        """,
        choices=("auto", "student-t", "gaussian"),
        is_structural=True,
    ),
    "conditional_prior": Setting(
        True,
        """
        Whether z depends on x: a Gaussian p(z|x) by a network with the `hidden` layers. Otherwise p(z) = N(0, I).
        """,
        bool,
        is_structural=True,
    ),
    "hidden": replace(
        SETTINGS["hidden"],
        default=(50, 50),
        help="""
        Widths of the hidden layers, or the width of a single one; the encoder has them in reverse order. Several
        branches of y need two layers: one cannot step from one to the next steeply enough.
        """,
    ),
    "estimator": replace(
        SETTINGS["estimator"],
        default="importance",
        choices=(),
        help="""
        The bound that is learned from: ``"importance"``, which with `num_samples` draws is close to log p(y|x), or
        ``"sgvb-b"``, ``"sgvb-a"`` or ``"score-function"``.
        """,
    ),
    "num_samples": replace(SETTINGS["num_samples"], default=10),
    **{name: SETTINGS[name] for name in _SHARED},
    "learning_rate": replace(SETTINGS["learning_rate"], default=0.005, help="Of the optimizer."),
    "parameter_prior": replace(
        SETTINGS["parameter_prior"],
        help="""
        ``"auto"`` for MAP estimation with the prior N(0, I) on all parameters, or a variance of 0.1 with fewer than
        1,000 rows; ``"normal"`` for N(0, I), None for maximum likelihood, or a number, the precision.
        """,
    ),
}
CLASSIFIER_SETTINGS: dict[str, Setting] = {
    "model": Setting(
        "m2",
        """
        A model of Kingma et al. (2014). ``"m2"``: p(y) p(z) p(x|z, y) with a classifier q(y|x), in which the label is a
        latent variable of the rows without one. ``"m1"``: a `VAE` of all rows, and a linear classifier of the posterior
        means of its z, learned from the rows with labels. ``"m1+m2"``: M2 of draws of the z of a `VAE`.
        """,
        choices=("m1", "m2", "m1+m2"),
        is_structural=True,
    ),
    "features": Setting(
        None,
        """
        For ``"m1"`` and ``"m1+m2"``, the `VAE` whose z are learned from: one with the arguments to fit it with, or one
        that has been fitted, which is used as it is. None for one with the arguments given here.
        """,
        None,
    ),
    "latent_dim": replace(REGRESSOR_SETTINGS["latent_dim"], default=10, help="J, number of latent variables."),
    "likelihood": SETTINGS["likelihood"],
    "label_prior": Setting(
        "uniform",
        """
        p(y): ``"uniform"``, or ``"observed"`` for the shares of the classes among the rows with labels.
        """,
        choices=("uniform", "observed"),
        is_structural=True,
    ),
    "classifier_weight": Setting(
        0.1,
        """
        How much the classifier q(y|x) learns from the labels themselves: its log-likelihood has the weight
        ``classifier_weight * N / N_labeled`` in the objective, 0.1 N / N_labeled as published.
        """,
        float,
        low=0,
    ),
    "hidden": replace(
        SETTINGS["hidden"],
        help="""
        Widths of the decoder's hidden layers, or the width of a single one; the encoder and the classifier have them in
        reverse order. None: one of 500. With ``network="conv"`` or ``"resnet"``, channels at each resolution; None: as
        of `VAE`.
        """,
    ),
    "network": replace(
        SETTINGS["network"],
        help="""
        The network of encoder, decoder and classifier: ``"mlp"``, with the `hidden` layers; for images ``"conv"``,
        convolutions at each of several resolutions, or ``"resnet"``, the same with residual blocks. For ``"m1+m2"``,
        give ``features=VAE(network="conv")``.
        """,
    ),
    "image_shape": SETTINGS["image_shape"],
    "estimator": Setting(
        "sgvb-b",
        'The bound that is learned from; ``"auto"`` for that of `VAE`.',
        choices=("auto", "sgvb-b", "sgvb-a"),
    ),
    "num_samples": SETTINGS["num_samples"],
    "label_annealing": Setting(
        "auto",
        """
        Number of steps in which the influence of rows without labels on the classifier q(y|x) grows from 0 to 1: at
        first it learns from labels only, and p(x|z, y) from its predictions. Without it the classes that are learned
        may be other groups than those of the labels. ``"auto"``: 2,000 for more than 20,000 rows, else 0.
        """,
        int,
        choices=("auto",),
        low=0,
    ),
    **{name: SETTINGS[name] for name in _SHARED},
}
ESTIMATOR_SETTINGS = {
    "VAE": SETTINGS,
    "VAERegressor": REGRESSOR_SETTINGS,
    "VAEClassifier": CLASSIFIER_SETTINGS,
    "SequenceVAE": SEQUENCE_SETTINGS,
}
# The settings that say what a model consists of; those of the same name mean the same for all estimators.
STRUCTURE = {
    name: setting
    for settings in ESTIMATOR_SETTINGS.values()
    for name, setting in settings.items()
    if setting.is_structural
}
