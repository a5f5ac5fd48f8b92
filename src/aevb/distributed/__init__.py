"""Training on several hosts or devices: the same call in each process, after `aevb.distributed.start()`."""

from aevb.distributed.launch import Launch, launch_from, leave, start
from aevb.distributed.meeting import PeersError

__all__ = ["Launch", "PeersError", "launch_from", "leave", "start"]
