"""Options of commands that run in several processes."""

from typing import Annotated, Any

from cyclopts import Group, Parameter

from aevb.cli.console import whole
from aevb.launchers import is_launched

_GROUP = Group("Several hosts", sort_key=2.5)
Coordinator = Annotated[str | None, Parameter(group=_GROUP)]
NumProcesses = Annotated[int | None, Parameter(group=_GROUP, converter=whole)]
ProcessId = Annotated[int | None, Parameter(group=_GROUP, converter=whole)]
PeerTimeout = Annotated[float, Parameter(group=_GROUP)]
ShardParameters = Annotated[bool, Parameter(group=_GROUP, negative=())]


def start_together(
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
    seconds: float,
    shard_parameters: bool = False,
) -> bool:
    """Connect this process with others, if there are any; return whether it is the first of them.

    Raises:
        ValueError: Options are missing, or a process does not arrive in time.
    """
    is_asked = (coordinator, num_processes, process_id, shard_parameters) != (None, None, None, False)
    if not is_asked and not is_launched():
        return True
    from aevb.cli.waiting import waiting

    with waiting("Waiting for the other processes", after=5.0, says=True):
        from aevb.distributed import start

        launch: dict[str, Any] = {"num_processes": num_processes, "process_id": process_id}
        return start(coordinator, **launch, arrival_timeout=seconds, shard_parameters=shard_parameters).is_first
