"""What mpirun, horovodrun or srun told this process about the job, before MPI has started."""

from __future__ import annotations

from collections.abc import Mapping

# Set by the launcher, by its convention, for every process that it starts; the first that is set counts.
WORLD_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


def promised_size(environment: Mapping[str, str]) -> tuple[int | None, str]:
    """The number of ranks that the launcher promised, and the variable that says so; (None, "") without a launcher."""
    return _first_number(WORLD_SIZE_VARIABLES, environment)


def is_first_rank(environment: Mapping[str, str]) -> bool:
    """Whether this process speaks for the job: it is rank 0 of it, or was started without a launcher."""
    rank, _ = _first_number(RANK_VARIABLES, environment)
    return not rank


def _first_number(names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[int | None, str]:
    for name in names:
        text = environment.get(name, "")
        if text.isdigit():
            return int(text), name
    return None, ""
