"""The arguments of `VAE`: the name of each, its default, its allowed values, and its meaning."""

from aevb.settings.learning import LEARNING
from aevb.settings.setting import Setting

OWN_PARTS = ("prior", "encoder", "decoder", "transition")  # that a user may define
MAX_WIDTH = 10**6  # of a layer: more would not fit into memory


SETTINGS: dict[str, Setting] = {
    "latent_dim": Setting(
        None,
        """
        J, number of latent variables. None: 2; for tables and matrices of real numbers 10, or as many as there are
        columns, or tens of training rows, if they are fewer. ``"auto"``: 1, 2, 4, 8, ... are tried, each
        for up to 2,000 steps and on the same held-out rows, until their bound stops improving by more than one
        standard error, or no more latent variables become active; the smallest J within two standard errors of
        the best is used, and training starts again with it. ``latent_dim_`` and ``latent_dim_search_`` contain
        the result. Each J is compiled separately, which takes a few seconds in addition to its steps. It needs
        held-out rows and an encoder, and does not work with your own networks or prior. Several numbers, such as
        ``(100, 50)``, for a hierarchy: the level next to the data first; see `hierarchy`. `transform` returns
        the variables of all levels, in this order.
        """,
        int,
        choices=("auto",),
        low=1,
        largest=MAX_WIDTH,
        several=True,
        is_structural=True,
    ),
    "hierarchy": Setting(
        "ladder",
        """
        With several levels, the form of q(z|x). ``"ladder"``: x says something about each level, and levels are drawn
        from the top down, as p draws them, with p's networks; it profits from `kl_annealing`. ``"bottom-up"``: each
        level is drawn given the one below it.
        """,
        registry="aevb.models:HIERARCHIES",
        is_structural=True,
    ),
    "likelihood": Setting(
        "auto",
        """
        p(x|z). ``"bernoulli"`` for data in [0, 1]: for binary data the bound is on log p(x) in nats; for grey
        levels it is the average bound over random binarizations with these probabilities, and comparable with
        neither binary nor continuous results. ``"gaussian"`` for real data; columns are standardized
        internally, and the bound is on the density in the units of X (k/255 for bytes that are grey levels).
        ``"sigmoid-gaussian"`` keeps the means in (0, 1), as for Frey Face in the paper.
        ``"discretized-logistic"`` for 8-bit grey levels and colours, k/255: a mixture of logistic
        distributions, whose bound is on the log probability of the levels, also given in bits per dimension.
        ``"multinomial"`` for counts of words, dense or a SciPy sparse matrix, given the length of each
        document: the decoder is linear, so that latent variables are topics, and the bound is on the log
        probability of the counts, with the multinomial coefficient; see `topics` and `perplexity`. ``"auto"``
        chooses from the values in X: Bernoulli for 0 and 1 and for grey levels that are mostly near 0 and 1,
        like ink on paper; sigmoid-Gaussian for other grey levels, such as photographs; Gaussian for all other
        data.
        ``likelihood_`` and ``likelihood_reason_`` say which one, and why.
        """,
        choices=("auto",),
        registry="aevb.models:NAMED_LIKELIHOODS",
        is_structural=True,
    ),
    "missing": Setting(
        "ignored",
        """
        What the model of a table says about missing entries. ``"ignored"``: nothing; the bound is on log p of the
        observed entries, which is right if entries are missing for reasons that the observed ones explain.
        ``"modeled"``: for each column with missing entries, whether an entry is missing is one more binary
        variable, learned with the others. The bound is then on log p(observed entries, which are missing);
        `sample` returns missing entries as the data have them, and `impute` uses what their absence says.
        """,
        choices=("ignored", "modeled"),
        is_structural=True,
    ),
    "conditional": Setting(
        False,
        """
        Whether the model is conditioned on y, as p(x|z, y) and q(z|x, y): `fit(X, y)`. y is a label or a number for
        each row, or a table of covariates, whose columns may be of different kinds; p(y) is not modelled.
        `transform`, `posterior`, `reconstruct`, `score`, `log_likelihood` and `sample` then need y too.
        """,
        bool,
        is_structural=True,
    ),
    "hidden": Setting(
        None,
        """
        Widths of the decoder's hidden layers, or the width of a single one; the encoder has them in reverse
        order. None: one of 500, for tables two of 200. With ``likelihood="multinomial"`` only the encoder has
        hidden layers. With ``network="conv"`` or ``"resnet"``, channels at each resolution, each twice the one
        before; None: as many as lead to 8 pixels or fewer, with 32 channels at the last one, and twice as many at
        each one before. Of a hierarchy, those between the data and the first level; those above are half as wide from
        level to level. Or all of them, as ``((200, 200), (100, 100))``.
        """,
        int,
        low=1,
        largest=MAX_WIDTH,
        several=True,
        is_structural=True,
    ),
    "network": Setting(
        "mlp",
        """
        The network of encoder and decoder: ``"mlp"``, with the `hidden` layers; for images ``"conv"``, convolutions at
        each of several resolutions, or ``"resnet"``, the same with residual blocks.
        """,
        registry="aevb.networks:NETWORKS",
        is_structural=True,
    ),
    "image_shape": Setting(
        None,
        """
        (height, width) or (height, width, channels) of images that are given as flat rows; None if X has this shape
        itself, (n, height, width) or (n, height, width, channels), or if rows are not images.
        """,
        int,
        low=1,
        largest=MAX_WIDTH,
        several=True,
        is_structural=True,
    ),
    "augment": Setting(
        None,
        """
        Random changes of the images that training sees, anew at each visit: ``"shift"``, by up to a fourteenth of
        the sides, ``"flip"``, left and right, or both. Held-out rows and `score` see the images as they are. It
        needs rows in memory.
        """,
        choices=("shift", "flip"),
        several=True,
    ),
    "activation": Setting(
        "gelu",
        """
        Activation of the hidden layers: ``"tanh"`` (the paper's), ``"relu"``, ``"gelu"``, ``"silu"``, ...
        """,
        registry="aevb.networks:ACTIVATIONS",
        is_structural=True,
    ),
    "posterior": Setting(
        "gaussian",
        """
        The family of q(z|x): ``"gaussian"``, with diagonal covariance, ``"full-gaussian"``, ``"flow"``
        (coupling layers), or one of independent variables: ``"laplace"``, ``"student-t"`` (more than 2
        degrees of freedom, so that means and variances exist), ``"logistic"``, ``"gumbel"``,
        ``"lognormal"``, ``"gamma"``, ``"weibull"``, ``"exponential"``, ``"beta"``; or ``"dirichlet"``, with
        z on the simplex.
        """,
        registry="aevb.models:POSTERIORS",
        is_structural=True,
    ),
    "amortized": Setting(
        True,
        """
        Whether an encoder computes q(z|x). If not, each training row has its own q(z), improved at each
        visit, and `transform`, `posterior` and `score` find that of any row by a thousand steps of gradient
        ascent on its bound; nothing is held out, and training runs for `max_epochs`.
        """,
        bool,
        is_structural=True,
    ),
    **LEARNING,
    "prior": Setting(
        None,
        """
        p(z). ``"standard"`` for the one that matches the posterior: N(0, I), or the family's standard member,
        such as Gamma(1, 1), Beta(1, 1) or a Dirichlet distribution with concentrations 1. Learned ones:
        ``"mixture"``, of Gaussians; ``"flow"``, a Gaussian transformed by coupling layers; ``"vamp"``, the average of
        q(z|x) at inputs that are learned. Or your own: a NumPyro distribution, or an Equinox module that
        returns one and is learned. None: ``"standard"``, or for small tables of real numbers ``"mixture"`` if
        cross-validation of linear models prefers it; ``prior_`` is the one in use.
        """,
        choices=(None,),
        registry="aevb.models:PRIOR_NAMES",
        is_structural=True,
    ),
    "encoder": Setting(
        None,
        """
        Your own network for q(z|x): an Equinox module that maps one datapoint to a NumPyro distribution.
        """,
        kind=None,
        is_structural=True,
    ),
    "decoder": Setting(
        None,
        """
        Your own network for p(x|z): an Equinox module that maps one z to a NumPyro distribution.
        """,
        kind=None,
        is_structural=True,
    ),
    "random_state": Setting(0, "As in scikit-learn, but 0 by default: the same data give the same model.", int),
    "progress": Setting(
        True,
        """
        Whether to show a progress bar. Copies by scikit-learn's ``clone``, as in ``GridSearchCV``, show none.
        """,
        kind=None,
    ),
}
