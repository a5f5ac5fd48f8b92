"""What programs that start several processes tell them, by environment variables; light to import."""

import os
from collections.abc import Mapping

# Of any launcher: the variables with the number of processes, and that of this one.
SIZES = {"OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK", "PMI_SIZE": "PMI_RANK", "SLURM_NTASKS": "SLURM_PROCID"}
# Those that JAX detects, with the variable of their number of processes; a shell on a node of Slurm is a step with one.
DETECTED = {"SLURM_STEP_NODELIST": "SLURM_STEP_NUM_TASKS", "OMPI_MCA_orte_hnp_uri": "OMPI_COMM_WORLD_SIZE"}
MPI = "OMPI_COMM_WORLD_SIZE"  # of all versions of Open MPI; JAX recognizes those up to 4


def is_detected(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether JAX can find the other processes by itself."""
    return any(_number(variables, size) > 1 for name, size in DETECTED.items() if name in variables)


def is_launched(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher has started several processes.

    Example:
        >>> is_launched({"OMPI_COMM_WORLD_SIZE": "2"}), is_launched({"SLURM_NTASKS": "2"})
        (True, False)
    """
    return is_detected(variables) or _number(variables, MPI) > 1


def place_in(variables: Mapping[str, str] = os.environ) -> tuple[int | None, int | None]:
    """Return the number of processes and that of this one, as a launcher says; None if there is none."""
    for size, rank in SIZES.items():
        if size in variables and rank in variables:
            return int(variables[size]), int(variables[rank])
    return None, None


def _number(variables, name):
    return int(variables.get(name) or 1)
