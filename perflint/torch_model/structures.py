"""Classes of libraries whose objects hold tensors under names, and are moved as one."""

from __future__ import annotations

from perflint.torch_model.names import words

#: A constructor takes the tensors by keyword, or in a dictionary.
OF_TENSORS = words(
    "torch_geometric.data.Data torch_geometric.data.HeteroData torch_geometric.data.Batch "
    "torch_geometric.data.data.Data torch_geometric.data.batch.Batch torch_geometric.data.hetero_data.HeteroData "
    "tensordict.TensorDict tensordict.tensordict.TensorDict"
)
#: What puts several of them into one.
JOINED = frozenset(
    f"{name}.{method}" for name in OF_TENSORS if name.endswith(".Batch") for method in ("from_data_list", "collate")
)
#: What makes a dict, or an object of attributes, of its keywords, by the last name.
OF_KEYWORDS = words("dict Dict OrderedDict SimpleNamespace Namespace EasyDict edict Munch")
#: Plain objects with the attributes that they are given.
NAMESPACES = words("types.SimpleNamespace argparse.Namespace")
#: Dictionaries whose keys are attributes as well.
KEYED_NAMESPACES = words(
    "munch.Munch munch.DefaultMunch easydict.EasyDict addict.Dict addict.addict.Dict box.Box attrdict.AttrDict "
    "ml_collections.ConfigDict ml_collections.config_dict.ConfigDict"
)
#: What holds what it is given by name.
HOLDING_BY_NAME = NAMESPACES | KEYED_NAMESPACES
