"""The arguments of `SequenceVAE`: some are those of `VAE`."""

from dataclasses import replace

from aevb.settings.setting import Setting
from aevb.settings.table import SETTINGS

_SHARED = (
    "optimizer",
    "max_epochs",
    "validation_fraction",
    "patience",
    "random_state",
    "progress",
)
SEQUENCE_SETTINGS: dict[str, Setting] = {
    "latent_dim": Setting(
        None,
        """
        J, number of variables of the state at each step. None: 16, or fewer if fewer than 2,000 values are observed.
        """,
        int,
        low=1,
        largest=SETTINGS["latent_dim"].largest,
        is_structural=True,
    ),
    "likelihood": Setting(
        "auto",
        """
        p(x_t|z_t) of the columns: a kind as in `VAE`, such as ``"gaussian"``, ``"bernoulli"`` or ``"count"``, for all
        columns or by their names; ``"auto"`` chooses from their values.
        """,
        choices=("auto", "gaussian", "bernoulli"),
        is_structural=True,
    ),
    "transition": Setting(
        None,
        """
        p(z_t|z_{t-1}): ``"gated"``, a network that mixes linear and nonlinear dynamics, ``"linear"``, or your own: an
        Equinox module that maps a state and a ``Step`` (``inputs``, ``elapsed``) to a NumPyro distribution. None:
        gated, or linear if fewer than 2,000 values are observed.
        """,
        registry="aevb.models:TRANSITIONS",
        is_structural=True,
    ),
    "recognition": Setting(
        "smoother",
        """
        q(z|x): ``"smoother"``, each state given the one before it and the observations from it on, which are the
        factors of the exact posterior; ``"forward"``, given the one before and the observations up to it, as a filter;
        or ``"mean-field"``, independent states given all observations.
        """,
        registry="aevb.models:RECOGNITIONS",
        is_structural=True,
    ),
    "network": Setting(
        "gru",
        """
        The network over the observations: ``"gru"``, recurrent, or ``"tcn"``, a temporal convolution over 81 steps.
        """,
        registry="aevb.networks:SEQUENCE_NETWORKS",
        is_structural=True,
    ),
    "recurrent_size": Setting(
        None,
        "Width of the network over the observations. None: 100, or 32 if fewer than 2,000 values are observed.",
        int,
        low=1,
        largest=SETTINGS["latent_dim"].largest,
        is_structural=True,
    ),
    "hidden": replace(
        SETTINGS["hidden"],
        default=None,
        help="Widths of the hidden layers of p(x_t|z_t), or the width of a single one; () for a linear one. None: one "
        "of 100, or of 32 if fewer than 2,000 values are observed.",
    ),
    "transition_hidden": replace(
        SETTINGS["hidden"], default=(100,), help="Widths of the hidden layers of a gated transition."
    ),
    "activation": replace(SETTINGS["activation"], default="relu"),
    "autoregressive": Setting(
        False,
        """
        Whether x_t depends on x_{t-1} in addition to z_t, on what is observed of it. It describes values that stay
        close to the previous ones with fewer state variables. ``"states"``: the transition depends on x_{t-1} too.
        """,
        bool,
        choices=("states",),
        is_structural=True,
    ),
    "dropout": Setting(
        0.0,
        """
        Probability with which each hidden unit, and each input of q's network, is left out of a step of training, the
        same ones for all its sequences and their steps. It is a remedy for overfitting, if training sequences have a
        much higher bound than others. Results are always computed with all units.
        """,
        float,
        low=0,
        high=0.9,
    ),
    "linear_start": Setting(
        None,
        """
        Whether learning starts with the linear state-space model that fits best, which is found by the Kalman filter.
        None: if there are fewer than 10 sequences. It needs columns of real numbers, 32 at most, a transition by name,
        and hidden layers at least twice as wide as the state; otherwise it has no effect.
        """,
        bool,
        is_structural=True,
    ),
    "estimator": Setting("sgvb-b", "The bound that is learned from.", choices=("sgvb-b", "sgvb-a", "importance")),
    "num_samples": replace(SETTINGS["num_samples"], help="L, draws of all states per sequence and step of training."),
    "kl_annealing": Setting(
        0,
        """
        Number of steps of training during which the weight of the KL term grows from 0 to 1. It helps if the states are
        not used at first, as with many binary columns; 0, the default, for none: with few columns of real numbers it
        only delays learning.
        """,
        int,
        low=0,
    ),
    "batch_size": Setting(
        "auto",
        'Sequences per step of training. ``"auto"``: a tenth of them, from 16 to 64.',
        int,
        choices=("auto",),
        low=1,
    ),
    "window": Setting(
        "auto",
        """
        Longer sequences are cut into windows of this many steps for training, which then needs memory for windows only;
        the state at the end of one is carried to the next. None: sequences are never cut. ``"auto"``: 200 if one has
        more than 1,000 steps.
        """,
        int,
        choices=("auto", None),
        low=2,
    ),
    "learning_rate": Setting(None, "Of the optimizer; None for its default.", float, above=0),
    "parameter_prior": replace(
        SETTINGS["parameter_prior"],
        default=None,
        help="""
        None for maximum likelihood, ``"normal"`` for MAP estimation with the prior N(0, I) on all parameters, or a
        number, the precision of the prior.
        """,
        choices=("normal", None),
    ),
    **{name: SETTINGS[name] for name in _SHARED},
}
