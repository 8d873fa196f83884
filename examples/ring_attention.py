"""Ring attention over processes, causal, with balanced shards: what a context-parallel kernel must compute.

    python examples/ring_attention.py
    python examples/ring_attention.py --ranks 3 --length 600

Every rank keeps its queries, and keys and values travel around a ring of processes (torch.distributed, gloo). At each step a
rank makes the State of its queries over the shard that it holds, and merges it with what it has (`posref.shards`). The sequence
is cut in two pieces a rank, r and the r-th from the end (zigzag), so that all ranks have as much work under a causal mask. The
result is compared with posref's attention over the whole sequence.
"""

import argparse
import socket

import numpy as np

from posref import attention, shards
from posref.position_ids import zigzag

HEADS, DIM, SCALE = 4, 16, 0.25


def whole(length):
    """q, k and v of the whole sequence, the same in every process."""
    return np.random.default_rng(0).standard_normal((3, HEADS, length, DIM))


def ring(rank, ranks, length, port):
    """One rank: it passes its keys to the next and receives those of the one before, until all have been here."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    positions = [zigzag(length, ranks=ranks, rank=r) for r in range(ranks)]
    own, everything = positions[rank], whole(length)
    q, k, v = everything[:, :, own]
    state = shards.attend(q, k, v, scale=SCALE, mask=attention.causal_mask(own, own))
    for step in range(1, ranks):
        leaving, coming = torch.from_numpy(np.ascontiguousarray([k, v])), torch.empty((2, *k.shape), dtype=torch.float64)
        for each in (distributed.isend(leaving, (rank + 1) % ranks), distributed.irecv(coming, (rank - 1) % ranks)):
            each.wait()
        k, v = coming.numpy()
        mask = attention.causal_mask(own, positions[(rank - step) % ranks])
        state = shards.merge(state, shards.attend(q, k, v, scale=SCALE, mask=mask))
    together = attention.causal_mask(np.arange(length), np.arange(length))
    expected = attention.attend(*everything, scale=SCALE, mask=together)[:, own]
    error = torch.tensor(np.abs(shards.finish(state) - expected).max())
    distributed.all_reduce(error, distributed.ReduceOp.MAX)
    if rank == 0:
        print(f"{ranks} ranks, {length} positions: the largest difference to attention over all of them is {error:.1e}")
    distributed.destroy_process_group()
    if not error < 1e-13:  # a merge adds a few roundings of float64 to values below 5
        raise ValueError(f"the ring differs from attention over the whole sequence by {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--length", type=int, default=240, help="a multiple of 2 ranks")
    options = parser.parse_args()
    try:
        from torch.multiprocessing import spawn
    except ImportError:
        print("This example sends keys between processes with torch.distributed, and torch is not installed: nothing was run.")
        return
    with socket.socket() as probe:  # a port that is free
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spawn(ring, (options.ranks, options.length, port), nprocs=options.ranks)


if __name__ == "__main__":
    main()
