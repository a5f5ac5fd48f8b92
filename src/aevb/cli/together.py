"""Options of commands that run in several processes."""

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from aevb.cli.console import whole
from aevb.launchers import is_launched

_GROUP = Group("Several hosts", sort_key=2.5)
Coordinator = Annotated[
    str | None,
    Parameter(
        group=_GROUP,
        help="To work in several processes: host:port of process 0. All get the same command, with their own "
        "--process-id. srun and mpirun need none of these options. See docs/scale.md.",
    ),
]
NumProcesses = Annotated[int | None, Parameter(group=_GROUP, converter=whole, help="How many processes there are.")]
ProcessId = Annotated[int | None, Parameter(group=_GROUP, converter=whole, help="Which of them this is, from 0.")]
PeerTimeout = Annotated[float, Parameter(group=_GROUP, help="Seconds to wait until all of them have started.")]
ShardParameters = Annotated[bool, Parameter(group=_GROUP, negative=())]


@Parameter(name="*")
@dataclass(frozen=True)
class Launch:
    """How several processes are started."""

    coordinator: Coordinator = None
    num_processes: NumProcesses = None
    process_id: ProcessId = None
    peer_timeout: PeerTimeout = 300.0

    @property
    def is_given(self) -> bool:
        """Whether options say how processes find each other."""
        return (self.coordinator, self.num_processes, self.process_id) != (None, None, None)

    def start(self, shard_parameters: bool = False) -> bool:
        """Connect this process with others, if there are any; return whether it is the first of them.

        Raises:
            ValueError: Options are missing, or a process does not arrive in time.
        """
        if not self.is_given and not shard_parameters and not is_launched():
            return True
        from aevb.cli.waiting import waiting

        with waiting("Waiting for the other processes", after=5.0, says=True):
            from aevb.distributed import start

            launch: dict[str, Any] = {"num_processes": self.num_processes, "process_id": self.process_id}
            launch |= {"arrival_timeout": self.peer_timeout, "shard_parameters": shard_parameters}
            return start(self.coordinator, **launch).is_first


ALONE = Launch()
