"""Things that a job keeps while it waits for a cluster."""

import gc
import time
import weakref

import numpy as np
from distributed import Client

from workers.cluster.workforce import Waiting


def test_what_a_caller_had_in_hand_is_let_go_with_it(client: Client) -> None:
    """Not when garbage is collected: vectors of millions of rows would gather until then."""

    def asked() -> weakref.ref[object]:
        in_hand = np.zeros(1)
        assert Waiting(client, lambda: None).gathered([client.submit(time.sleep, 0.3)]) == [None]
        return weakref.ref(in_hand)

    gc.disable()
    try:
        assert asked()() is None
    finally:
        gc.enable()
