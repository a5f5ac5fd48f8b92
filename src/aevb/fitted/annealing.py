"""How the objective becomes the bound during the first steps of training."""

from typing import NamedTuple

from aevb.learners import Ascent
from aevb.settings import Arguments
from aevb.training.budget import AUTO

CAN_ANNEAL = (AUTO, "sgvb-a", "sgvb-b", "sgvb-stl", "importance")


class Annealing(NamedTuple):
    """In how many steps the objective becomes the bound, and the weight of the KL term at first."""

    steps: int = 0  # 0 if it is the bound from the start
    kl_weight: float = 0.0


NO_ANNEALING = Annealing()
ANNEALING = Annealing(2000)  # for tables, for a second start, and for labels of many rows
LABEL_FIRST = Annealing(1000, 10.0)  # for conditional models of many rows: what y can tell is not learned from z


def can_anneal(arguments: Arguments, kind: type[Ascent]) -> bool:
    """Whether the KL term can have a smaller weight at first."""
    return kind.can_anneal and arguments.estimator in CAN_ANNEAL
