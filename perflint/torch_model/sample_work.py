"""What library calls cost that samples are made with, by dotted name: files, and what computes more than it need."""

from __future__ import annotations

from perflint.torch_model.names import within, words

#: Opens a file that has an index of its own, to read a part of it.
OPENERS = words(
    "h5py.File zipfile.ZipFile tarfile.open tarfile.TarFile lmdb.open sqlite3.connect netCDF4.Dataset rasterio.open "
    "pandas.HDFStore tables.open_file"
)
#: Reads and parses all of a file, by a path or an open file.
PARSERS = words(
    "numpy.load numpy.loadtxt numpy.genfromtxt torch.load pickle.load joblib.load json.load yaml.load yaml.safe_load "
    "scipy.io.loadmat pandas.read_csv pandas.read_table pandas.read_json pandas.read_pickle pandas.read_excel "
    "pandas.read_parquet pandas.read_feather pandas.read_hdf safetensors.torch.load_file safetensors.numpy.load_file"
)
#: Of these, what takes a millisecond and more however small the file is.
SLOW_PARSERS = words(
    "pandas.read_csv pandas.read_table pandas.read_json pandas.read_excel "
    "pandas.read_parquet pandas.read_feather pandas.read_hdf"
)
#: Reads a picture or a sound and decodes it.
DECODERS = words(
    "PIL.Image.open cv2.imread torchvision.io.read_image torchvision.io.read_video torchvision.io.decode_image "
    "imageio.imread imageio.v2.imread imageio.v3.imread skimage.io.imread matplotlib.pyplot.imread tifffile.imread "
    "torchaudio.load librosa.load soundfile.read scipy.io.wavfile.read nibabel.load pydicom.dcmread"
)
#: Of these, what decodes every pixel before it tells the size of a picture.
WHOLE_PICTURES = words(
    "cv2.imread torchvision.io.read_image torchvision.io.decode_image imageio.imread imageio.v2.imread "
    "imageio.v3.imread skimage.io.imread matplotlib.pyplot.imread tifffile.imread"
)
#: Computes in float64 what others compute in the type of the picture.
IN_FLOAT64 = within("skimage.transform", "resize rescale warp rotate warp_polar swirl") | within(
    "skimage.color", "rgb2lab lab2rgb rgb2hsv hsv2rgb rgb2xyz"
)
#: Transforms of graphs and point clouds that search neighbours, triangulate, draw points or solve for eigenvectors.
#: https://pytorch-geometric.readthedocs.io/en/latest/modules/transforms.html
GRAPH_TRANSFORMS = words(
    "Delaunay KNNGraph RadiusGraph SamplePoints FaceToEdge GenerateMeshNormals GridSampling GDC RootedEgoNets "
    "AddLaplacianEigenvectorPE AddRandomWalkPE VirtualNode LineGraph TwoHop PointPairFeatures"
)
#: Draws with matplotlib.
FIGURES = within("matplotlib.pyplot", "figure subplots")
#: Swaps the rows of an array one after the other; of an array of one dimension, numbers at once.
SHUFFLES = words("numpy.random.shuffle")
#: Parses numbers out of text.
TEXT_PARSERS = words("numpy.loadtxt numpy.genfromtxt")
