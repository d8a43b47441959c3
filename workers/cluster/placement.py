"""Which worker of a cluster reads which shard: about as many each, for each of its threads, and none moves without
need.
"""

from collections import Counter
from collections.abc import Mapping, Sequence


def placement(held: Sequence[str], threads: Mapping[str, int]) -> list[str]:
    """The worker of each shard; ``held`` names the one that has it now, or none (""), ``threads`` counts the threads of
    each.

    A shard moves where its worker has gone, or has more shards than its threads' part of them, rounded up.
    """
    total, counts = max(1, sum(threads.values())), Counter[str]()
    most = {worker: -(-len(held) * count // total) for worker, count in threads.items()}
    found = []
    for worker in held:
        stays = worker in threads and counts[worker] < most[worker]
        found.append(worker if stays else "")
        counts[found[-1]] += 1
    for number, worker in enumerate(found):
        if not worker:
            found[number] = max(threads, key=lambda each: most[each] - counts[each])
            counts[found[number]] += 1
    return found
