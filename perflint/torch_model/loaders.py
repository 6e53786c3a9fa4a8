"""Data loaders, what wraps them, and the data sets below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perflint.torch_model.names import canonical, last, root, within, words

#: Those that make their batches where `device` says.
PLACING_LOADERS = frozenset(
    f"{package}.{name}"
    for package in ("torchtext.data", "torchtext.legacy.data")
    for name in ("Iterator", "BucketIterator", "BPTTIterator")
)
#: Classes (and functions) whose instances give batches of host tensors.
LOADERS = (
    words(
        "torch.utils.data.DataLoader torchdata.StatefulDataLoader torch_geometric.data.DataLoader webdataset.WebLoader "
        "monai.data.DataLoader monai.data.ThreadDataLoader monai.data.dataloader.DataLoader dgl.dataloading.DataLoader "
        "dgl.dataloading.GraphDataLoader timm.data.create_loader timm.data.loader.create_loader "
        "timm.data.loader.MultiEpochsDataLoader timm.data.MultiEpochsDataLoader litdata.StreamingDataLoader "
        "litdata.streaming.dataloader.StreamingDataLoader streaming.StreamingDataLoader torchdata.DataLoader2 "
        "speechbrain.dataio.dataloader.SaveableDataLoader speechbrain.dataio.dataloader.make_dataloader "
        "fastai.data.core.DataLoader fastai.data.load.DataLoader ultralytics.data.build.InfiniteDataLoader "
        "mmengine.runner.Runner.build_dataloader mmdet.datasets.build_dataloader mmcv.runner.build_dataloader "
        "nemo.core.DataLoader ffcv.loader.Loader ffcv.Loader sentence_transformers.datasets.NoDuplicatesDataLoader "
        "monai.data.DataLoader"
    )
    | within(
        "torch_geometric.loader",
        "DataLoader NeighborLoader LinkNeighborLoader HGTLoader ClusterLoader GraphSAINTSampler GraphSAINTNodeSampler "
        "GraphSAINTEdgeSampler GraphSAINTRandomWalkSampler ShaDowKHopSampler RandomNodeLoader ZipLoader DataListLoader "
        "DenseDataLoader TemporalDataLoader NodeLoader LinkLoader",
    )
    | within(
        "torch_geometric.data",
        "DataLoader DataListLoader DenseDataLoader ClusterLoader GraphSAINTSampler GraphSAINTNodeSampler "
        "GraphSAINTEdgeSampler GraphSAINTRandomWalkSampler ShaDowKHopSampler RandomNodeSampler",
    )
    | PLACING_LOADERS
    | within(
        "detectron2.data", "build_detection_train_loader build_detection_test_loader build.build_detection_train_loader"
    )
)

#: Loaders that give batches on the device.
DEVICE_LOADERS = words(
    "timm.data.PrefetchLoader timm.data.loader.PrefetchLoader torch_geometric.loader.PrefetchLoader "
    "torch_xla.distributed.parallel_loader.MpDeviceLoader torch_xla.distributed.parallel_loader.ParallelLoader "
    "nvidia.dali.plugin.pytorch.DALIClassificationIterator nvidia.dali.plugin.pytorch.DALIGenericIterator "
    "fastai.data.core.DataLoaders fastai.vision.data.ImageDataLoaders"
)

#: Loaders of graphs that draw and cut a subgraph for each batch, on the host.
SAMPLING_LOADERS = within(
    "torch_geometric.loader",
    "NeighborLoader NeighborSampler LinkNeighborLoader HGTLoader ClusterLoader GraphSAINTSampler GraphSAINTNodeSampler "
    "GraphSAINTEdgeSampler GraphSAINTRandomWalkSampler ShaDowKHopSampler RandomNodeLoader",
) | within(
    "torch_geometric.data",
    "NeighborSampler ClusterLoader GraphSAINTSampler GraphSAINTNodeSampler GraphSAINTEdgeSampler "
    "GraphSAINTRandomWalkSampler ShaDowKHopSampler RandomNodeSampler",
)

#: Names that are a loader's wherever they are defined: what unknown modules call their subclasses and factories.
_LOADER_SUFFIXES = ("DataLoader", "Dataloader")


class Wrapper(NamedTuple):
    """A call that hands on the elements of an argument.

    `argument` is its position. `shape` says what one element looks like: "same", "counted" for `(index, element)`,
    "zipped" for a tuple with one element of each argument, "chunk" for a list of elements.
    """

    argument: int = 0
    shape: str = "same"


_SAME = Wrapper()
#: Calls around an iterable, by dotted name.
WRAPPERS: Mapping[str, Wrapper] = {
    "builtins.iter": _SAME,
    "builtins.list": _SAME,
    "builtins.tuple": _SAME,
    "builtins.reversed": _SAME,
    "builtins.sorted": _SAME,
    "builtins.enumerate": Wrapper(shape="counted"),
    "builtins.zip": Wrapper(shape="zipped"),
    "builtins.filter": Wrapper(1),
    "itertools.islice": _SAME,
    "itertools.cycle": _SAME,
    "itertools.chain": _SAME,
    "itertools.tee": _SAME,
    "itertools.zip_longest": Wrapper(shape="zipped"),
    "itertools.takewhile": Wrapper(1),
    "itertools.dropwhile": Wrapper(1),
    "more_itertools.peekable": _SAME,
    "more_itertools.chunked": Wrapper(shape="chunk"),
    **dict.fromkeys(
        words(
            "itertools.batched itertools.permutations itertools.combinations itertools.combinations_with_replacement "
            "itertools.pairwise"
        ),
        Wrapper(shape="chunk"),
    ),
    "tqdm.tqdm": _SAME,
    "tqdm.tqdm_notebook": _SAME,
    "rich.progress.track": _SAME,
    "rich.progress.Progress.track": Wrapper(),
    "alive_progress.alive_it": _SAME,
    "progressbar.progressbar": _SAME,
    "fastprogress.progress_bar": _SAME,
    "fastprogress.fastprogress.progress_bar": _SAME,
    "fastprogress.master_bar": _SAME,
    "fastprogress.fastprogress.master_bar": _SAME,
    "copy.copy": _SAME,
    "typing.cast": Wrapper(1),
    "more_itertools.take": Wrapper(1),
    "prefetch_generator.BackgroundGenerator": _SAME,
    "accelerate.skip_first_batches": _SAME,
}
#: Wrappers that also move what they hand on to the device.
DEVICE_WRAPPERS: Mapping[str, Wrapper] = dict.fromkeys(DEVICE_LOADERS, _SAME)
#: Wrapper methods by last name, for receivers that are not known: `progress.track(loader)`,
#: `metric_logger.log_every(loader, ...)`.
WRAPPER_METHODS = words("track log_every skip_first_batches")

#: Data sets whose items are already in memory: workers only cost.
IN_MEMORY_DATASETS = words(
    "torch.utils.data.TensorDataset torch.utils.data.Subset torch_geometric.data.InMemoryDataset "
    "torchvision.datasets.MNIST torchvision.datasets.FashionMNIST torchvision.datasets.CIFAR10 "
    "torchvision.datasets.CIFAR100 torchvision.datasets.KMNIST torchvision.datasets.EMNIST torchvision.datasets.QMNIST "
    "torchvision.datasets.USPS torchvision.datasets.SVHN torchvision.datasets.STL10 monai.data.ArrayDataset "
    "torch_geometric.datasets.Planetoid torch_geometric.datasets.TUDataset"
)
#: Data sets that hand on the samples of others.
PASSING_ON = within("torch.utils.data", "Subset ConcatDataset ChainDataset random_split")
#: Data sets that read and decode a file for each item.
DECODING_DATASETS = within(
    "torchvision.datasets",
    "ImageFolder DatasetFolder ImageNet CocoDetection CocoCaptions VOCDetection VOCSegmentation Cityscapes CelebA LSUN "
    "Places365 Kinetics UCF101 HMDB51 Flickr8k Flickr30k SBDataset Food101 OxfordIIITPet Flowers102 StanfordCars "
    "FGVCAircraft DTD SUN397 Caltech101 Caltech256 INaturalist Kitti FakeData",
) | within("torchaudio.datasets", "LIBRISPEECH SPEECHCOMMANDS YESNO LJSPEECH VCTK_092 COMMONVOICE GTZAN")
#: Methods by which data sets make whole batches for a loader that asks for them, in the process that trains.
#: `__getitems__` is given the indices of a batch: https://docs.pytorch.org/docs/stable/data.html
BATCH_MAKERS = words("generate_batch sample_batch __getitems__")
#: Data sets of which a pass takes seconds, or a minute: to start workers for each of them shows.
SMALL_DATASETS = within(
    "torchvision.datasets",
    "MNIST FashionMNIST KMNIST EMNIST QMNIST USPS CIFAR10 CIFAR100 SVHN STL10 VOCDetection VOCSegmentation SBDataset "
    "Flickr8k OxfordIIITPet Flowers102 StanfordCars FGVCAircraft DTD Caltech101 Kitti",
) | words(
    "torchaudio.datasets.YESNO torchaudio.datasets.GTZAN torch_geometric.datasets.Planetoid "
    "torch_geometric.datasets.TUDataset torch_geometric.datasets.PPI torch_geometric.data.InMemoryDataset"
)
#: The smallest of them: a pass takes a few seconds.
TINY_DATASETS = within("torchvision.datasets", "MNIST FashionMNIST KMNIST EMNIST QMNIST USPS") | words(
    "torchaudio.datasets.YESNO torch_geometric.datasets.Planetoid torch_geometric.datasets.TUDataset"
)
DATASETS = (
    words(
        "torch.utils.data.Dataset torch.utils.data.IterableDataset torch.utils.data.ConcatDataset "
        "torch.utils.data.ChainDataset torch.utils.data.StackDataset torch.utils.data.random_split "
        "datasets.load_dataset datasets.Dataset datasets.IterableDataset datasets.load_from_disk "
        "datasets.concatenate_datasets webdataset.WebDataset monai.data.Dataset monai.data.CacheDataset "
        "monai.data.PersistentDataset streaming.StreamingDataset litdata.StreamingDataset torch_geometric.data.Dataset "
        "torchvision.datasets.VisionDataset fairseq.data.FairseqDataset"
    )
    | IN_MEMORY_DATASETS
    | DECODING_DATASETS
)

#: Keywords of data sets for what they call with each sample: `pre_transform` runs once, when the files are made.
#: https://pytorch-geometric.readthedocs.io/en/latest/tutorial/create_dataset.html,
#: https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.VisionDataset.html
SAMPLE_HOOKS = words("transform transforms target_transform")
#: Those that may hold a single item, which a program takes out once.
_OF_GRAPHS = words(
    "torch_geometric.data.Dataset torch_geometric.data.InMemoryDataset torch_geometric.data.dataset.Dataset "
    "torch_geometric.data.in_memory_dataset.InMemoryDataset"
)

#: Functions that read a file and decode what is in it.
FILE_READERS = words(
    "PIL.Image.open cv2.imread cv2.VideoCapture numpy.load numpy.loadtxt numpy.genfromtxt torch.load torchaudio.load "
    "torchvision.io.read_image torchvision.io.read_video torchvision.io.decode_image torchvision.io.read_file "
    "librosa.load soundfile.read scipy.io.wavfile.read scipy.io.loadmat imageio.imread imageio.v2.imread "
    "imageio.v3.imread skimage.io.imread matplotlib.pyplot.imread pandas.read_csv pandas.read_parquet pandas.read_json "
    "pandas.read_pickle h5py.File nibabel.load tifffile.imread rasterio.open pydicom.dcmread decord.VideoReader "
    "av.open safetensors.torch.load_file safetensors.safe_open joblib.load pickle.load "
    # What unpacks bytes that a store gives for each sample.
    "pickle.loads cloudpickle.loads dill.loads msgpack.unpackb msgpack.loads lmdb.open zlib.decompress "
    "lz4.frame.decompress"
)


def is_loader(dotted: str) -> bool:
    """Whether a library class or factory gives a data loader."""
    name = canonical(dotted)
    if name in LOADERS or name in DEVICE_LOADERS:
        return True
    # Libraries subclass DataLoader under its own name; a project's classes are judged by their bases instead.
    return "." in name and root(name) != "builtins" and last(name).endswith(_LOADER_SUFFIXES)


def is_device_loader(dotted: str) -> bool:
    """Whether its batches come on the device."""
    return canonical(dotted) in DEVICE_LOADERS


def is_dataset(dotted: str) -> bool:
    name = canonical(dotted)
    return name in DATASETS or name.startswith(
        ("torchvision.datasets.", "torchaudio.datasets.", "torch_geometric.datasets.")
    )


def calls_hooks(dotted: str) -> bool:
    """Whether a library's data set calls what it is made with for each of its samples, and has many."""
    name = canonical(dotted)
    return name == "monai.data.Dataset" or name.startswith("torchvision.datasets.")


def may_hold_one(dotted: str) -> bool:
    """The same of a data set of graphs, which may be one graph."""
    return canonical(dotted) in _OF_GRAPHS


def hook_places(dotted: str) -> tuple[int, ...]:
    """Where among its arguments a data set takes what it calls for each sample."""
    name = canonical(dotted)
    if name in _OF_GRAPHS or name == "monai.data.Dataset":
        return (1,)
    return (1, 2, 3) if last(name) == "VisionDataset" else (1, 2) if last(name) == "ImageFolder" else ()


def wrapper_of(dotted: str) -> Wrapper | None:
    """How a call passes on the elements of its argument, None when it does not."""
    name = canonical(dotted)
    return WRAPPERS.get(name) or DEVICE_WRAPPERS.get(name)
