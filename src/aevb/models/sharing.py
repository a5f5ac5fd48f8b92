"""Parts of a model that use each other's networks: a ladder uses the prior's, a VampPrior the encoder's.

What is shared is learned once, in the part that it belongs to. The other part borrows it when the model is used.
"""

from typing import Any

from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel


def tied(models: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return a pair (generative, recognition) whose parts have borrowed what they share; others are unchanged."""
    return _lent(models, models)


def untied(models: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the same pair with everything that is learned in it once, as it is trained and saved."""
    return _lent(models, (None, None))


def _lent(models, lenders):
    generative, recognition = models
    if hasattr(getattr(generative, "prior", None), "borrowing"):
        generative = GenerativeModel(generative.prior.borrowing(*lenders), generative.decoder)
    if hasattr(getattr(recognition, "encoder", None), "borrowing"):
        recognition = RecognitionModel(recognition.encoder.borrowing(*lenders))
    return generative, recognition
