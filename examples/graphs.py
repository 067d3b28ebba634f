"""Graphs: nodes and edges are sequences of each graph; one step of message passing over a whole batch.

python examples/graphs.py

Edges have the numbers of nodes in their own graph. In a batch nodes of all graphs are one tensor, so the number of
nodes before the graph is added to both ends of its edges.
"""

import numpy as np
import pyarrow as pa

import seqflow as sf

graphs = pa.table(
    {
        "node": [[1.0, 2.0, 3.0], [10.0], [4.0, 5.0]],
        "source": [[0, 1, 2], [], [0]],
        "target": [[1, 2, 1], [], [1]],
    }
)


def passed(batch):
    """Send the value of each node along its edges, and add what arrives."""
    node, source, target = batch["node"], batch["source"], batch["target"]
    first = np.repeat(node.offsets[:-1], source.lengths)
    messages = sf.ops.gather(node.values, source.values + first)
    sums = sf.ops.unsorted_segment_sum(messages, target.values + first, num_segments=len(node.values))
    return {"node.values": node.values + sums, "node.lengths": node.lengths}


(batch,) = sf.Loader(graphs, batch=3, net=passed)
print("after one step:", batch["node"].to_lists(), "sums of graphs:", batch["node"].sum().tolist())
assert batch["node"].to_lists() == [[1.0, 6.0, 5.0], [10.0], [4.0, 9.0]]
