"""Libraries for graphs: which functions of torch_geometric, torch_scatter, torch_sparse and torch_cluster give tensors
where their arguments are, and which of them make the host wait for a size that they look up in an index.

Read in the sources of torch_geometric (`utils/num_nodes.py`, `_scatter.py`, `_softmax.py`, `_to_dense_batch.py`,
`_to_dense_adj.py`, `_coalesce.py`, `loop.py`, `nn/pool`), torch_scatter, torch_sparse and torch_cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import within, words

_UTILS, _NN = "torch_geometric.utils", "torch_geometric.nn"
_NEIGHBOURS = "radius radius_graph knn knn_graph"
_SCATTERS = words("scatter scatter_sum scatter_add scatter_mean scatter_mul scatter_std")
#: Functions that give one tensor.
FUNCTIONS = (
    within(_UTILS, "scatter softmax degree to_dense_adj segment spmm cumsum one_hot")
    | within(_NN, f"global_add_pool global_mean_pool global_max_pool fps {_NEIGHBOURS}")
    | within("torch_cluster", f"fps nearest grid_cluster graclus_cluster {_NEIGHBOURS}")
    | within("torch_scatter", "scatter_softmax scatter_log_softmax scatter_logsumexp segment_coo segment_csr")
    | within("torch_scatter", " ".join(sorted(_SCATTERS)))
    | within("torch_sparse", "spmm matmul")
)
#: Functions that give several tensors, with what is told of each one's type.
SEVERAL: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(within("torch_scatter", "scatter_max scatter_min"), ("", "torch.long")),
    **dict.fromkeys(
        within(
            _UTILS,
            "dense_to_sparse remove_self_loops add_self_loops add_remaining_self_loops subgraph dropout_edge "
            "dropout_adj get_laplacian to_edge_index",
        ),
        ("torch.long", ""),
    ),
    f"{_UTILS}.to_dense_batch": ("", "torch.bool"),
    **dict.fromkeys(within("torch_sparse", "coalesce transpose spspmm"), ("torch.long", "")),
}
#: Functions that give the indices of edges, and with `edge_attr` what belongs to each beside them.
OF_EDGES = within(_UTILS, "coalesce to_undirected sort_edge_index")
#: Functions for which the host waits: for the largest number of an index, or for how many entries a mask selects. With
#: the arguments, by name and place, of which any one spares that; none where nothing does.
WAITING: Mapping[str, tuple[tuple[str, int], ...]] = {
    **dict.fromkeys(
        within("torch_scatter", " ".join(sorted(_SCATTERS)) + " scatter_max scatter_min"), (("dim_size", 4), ("out", 3))
    ),
    f"{_UTILS}.scatter": (("dim_size", 3),),
    f"{_UTILS}.softmax": (("num_nodes", 3), ("ptr", 2)),
    f"{_UTILS}.degree": (("num_nodes", 1),),
    f"{_UTILS}.add_self_loops": (("num_nodes", 3),),
    f"{_UTILS}.maybe_num_nodes": (("num_nodes", 1),),
    **dict.fromkeys(within(_NN, "global_add_pool global_mean_pool global_max_pool"), (("size", 2),)),
    **dict.fromkeys(
        within(
            _UTILS,
            "to_dense_batch to_dense_adj dense_to_sparse remove_self_loops add_remaining_self_loops coalesce "
            "to_undirected contains_self_loops contains_isolated_nodes is_undirected unbatch unbatch_edge_index",
        )
        | within(_NN, _NEIGHBOURS)
        | within("torch_cluster", _NEIGHBOURS)
        | within("torch_sparse", "coalesce"),
        (),
    ),
}
#: The names of the functions that make the host wait.
WAITING_NAMES = frozenset(name.rpartition(".")[2] for name in WAITING)
