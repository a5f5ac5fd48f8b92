"""Topics as methods of an estimator."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_parameter
from aevb.fitted import topics
from aevb.vae.base import ModelEstimator


class TopicMethods(ModelEstimator):
    """Estimators with methods for models of word counts."""

    def topics(self, vocabulary: Any = None, num_words: int = 10) -> list[list[str]]:
        """Return the words that describe each topic, of a model with ``likelihood="multinomial"``.

        A topic is a latent variable, described by the words whose probabilities it raises most. N(0, I) prefers no
        direction of z: with ``posterior="gaussian"`` the topics are directions that change few words much, found by a
        varimax rotation, and are not the columns of `transform`. With ``posterior="dirichlet"`` they are the latent
        variables themselves, in another order.

        Args:
            vocabulary: (D,), the words in the order of the columns of X; None for the names of the columns.
            num_words: Number of words for each topic.

        Returns:
            A list of lists of words, the topics that change the probabilities of words most first.
        """
        check_is_fitted(self)
        return topics.topics(self.model_, vocabulary, num_words)

    def perplexity(self, X: Any, *, num_samples: int | None = None) -> float:
        r"""Return an upper bound on the perplexity of documents.

        .. math:: \exp\left( -\frac{\sum_i L(x_i)}{\sum_i N_i} \right)

        L is the lower bound on the log probability of a document's words in their order, with the whole document seen
        by the encoder, and N its number of words. It is `score_samples` minus the logarithm of the multinomial
        coefficient, the number of orders that give the same counts.

        Args:
            X: (n, D), counts, dense or sparse.
            num_samples: L, draws of z per document; None for the model's own.
        """
        X = self._check_new_data(X)
        num_samples = self.model_.num_samples if num_samples is None else num_samples
        check_parameter("num_samples", num_samples, kind=int, low=1)
        return topics.perplexity(self.model_, X, num_samples, progress=self._shows_progress)
