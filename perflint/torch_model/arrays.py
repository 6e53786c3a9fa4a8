"""numpy arrays, Python numbers and text: what is not a tensor, and is known not to be."""

from __future__ import annotations

from perflint.torch_model.names import within, words

ARRAY_FUNCTIONS = within(
    "numpy",
    "array asarray ascontiguousarray zeros ones empty full arange linspace eye identity stack concatenate vstack "
    "hstack dstack zeros_like ones_like empty_like full_like load loadtxt memmap frombuffer fromfile reshape transpose "
    "squeeze expand_dims repeat tile pad clip where argsort sort unique cumsum diff abs exp log sqrt maximum minimum "
    "dot matmul random.rand random.randn random.randint random.permutation random.normal random.uniform random.choice "
    "append delete insert flip roll rot90 random.random argwhere column_stack split einsum outer "
    "lib.stride_tricks.sliding_window_view linalg.norm linalg.inv linalg.svd round floor ceil power square isnan isinf "
    "logical_and logical_or logical_not random.shuffle asfortranarray histogram percentile cov corrcoef "
    "lib.stride_tricks.as_strided broadcast_to moveaxis swapaxes rollaxis ravel atleast_1d atleast_2d atleast_3d "
    "fliplr flipud take take_along_axis compress tensordot cross kron tril triu diag vander indices "
    "nan_to_num interp convolve gradient copy sin cos tan arcsin arccos arctan arctan2 tanh log1p log2 log10 expm1 "
    "deg2rad rad2deg add subtract multiply divide mod",
) | words(
    "cv2.imread cv2.resize cv2.cvtColor cv2.imdecode PIL.ImageOps.exif_transpose imageio.imread librosa.load "
    "soundfile.read cv2.flip cv2.rotate cv2.remap cv2.warpAffine cv2.warpPerspective cv2.GaussianBlur cv2.medianBlur "
    "cv2.blur cv2.erode cv2.dilate cv2.merge cv2.copyMakeBorder cv2.addWeighted cv2.undistort cv2.normalize "
    "skimage.util.view_as_windows skimage.util.shape.view_as_windows skimage.util.view_as_blocks "
    "skimage.util.shape.view_as_blocks skimage.util.random_noise skimage.util.img_as_float skimage.util.img_as_ubyte "
    "skimage.transform.resize skimage.transform.rescale skimage.transform.rotate skimage.transform.warp "
    "skimage.color.rgb2gray skimage.color.gray2rgb skimage.color.rgb2lab skimage.color.lab2rgb skimage.io.imread "
    "scipy.ndimage.zoom scipy.ndimage.rotate scipy.ndimage.shift scipy.ndimage.gaussian_filter "
    "scipy.ndimage.affine_transform scipy.ndimage.map_coordinates scipy.ndimage.sobel scipy.ndimage.laplace "
    "scipy.ndimage.median_filter scipy.ndimage.binary_dilation scipy.ndimage.binary_erosion "
    "scipy.ndimage.distance_transform_edt scipy.signal.medfilt scipy.signal.lfilter scipy.signal.resample "
    "librosa.resample librosa.stft librosa.istft librosa.feature.melspectrogram librosa.feature.mfcc "
    "librosa.power_to_db librosa.amplitude_to_db"
)
#: Functions that give an array for each dimension: indices.
ARRAY_TUPLES = within(
    "numpy",
    "tril_indices triu_indices diag_indices tril_indices_from triu_indices_from diag_indices_from ix_ "
    "mask_indices unravel_index nonzero meshgrid",
)
#: One number, or an array when more is given than this: the size, which comes last.
DRAWS = {
    f"numpy.random.{name}": most
    for name, most in (("rand", 0), ("randn", 0), ("random", 0), ("normal", 2), ("uniform", 2), ("randint", 2))
}
#: What draws numbers, and the functions of `numpy.random` that its methods are like.
GENERATORS = within("numpy.random", "default_rng Generator RandomState")
DRAWN_BY = {
    "integers": "randint",
    "standard_normal": "randn",
    "random_sample": "random",
    **{name: name for name in words("rand randn random normal uniform randint permutation choice")},
}
#: One number, or an array when an axis is given.
ARRAY_REDUCTIONS = within("numpy", "mean sum std var median max min prod any all argmax argmin amax amin nanmean ptp")
NUMBER_FUNCTIONS = (
    within(
        "builtins",
        "len int float bool round hash id ord isinstance issubclass hasattr callable any all complex divmod pow",
    )
    | within(
        "math",
        "sqrt exp log log2 log10 floor ceil sin cos tan tanh pow fabs prod isnan isinf isfinite gcd factorial radians "
        "degrees atan atan2 acos asin hypot dist fsum erf gamma lgamma comb copysign fmod isclose trunc",
    )
    | within("time", "time perf_counter monotonic process_time time_ns perf_counter_ns monotonic_ns")
    | within("random", "random randint uniform gauss randrange getrandbits betavariate expovariate normalvariate")
    | within("numpy", "float32 float64 int32 int64 isscalar allclose array_equal")
    | within("os", "cpu_count getpid path.exists path.isfile path.isdir path.getsize path.getmtime")
    | words("gc.collect multiprocessing.cpu_count")
)
STRING_FUNCTIONS = (
    within("builtins", "str repr format chr ascii hex bin oct input")
    | within("os", "getcwd path.join path.basename path.dirname path.abspath path.expanduser getenv fspath")
    | words("time.strftime time.ctime json.dumps textwrap.dedent socket.gethostname")
)
STRING_METHODS = words(
    "strip lstrip rstrip lower upper replace format join encode decode title capitalize zfill ljust rjust center "
    "removeprefix removesuffix swapcase casefold expandtabs translate isoformat strftime"
)
#: Methods that hand back lists of strings.
STRING_LIST_METHODS = words("split rsplit splitlines")
#: Methods of containers and files that give numbers.
NUMBER_METHODS = words(
    "startswith endswith isdigit isalpha isspace isnumeric find rfind is_file is_dir exists bit_length"
)

#: Of an array these methods give an array again.
ARRAY_METHODS = frozenset(
    "astype reshape transpose flatten ravel copy squeeze swapaxes clip repeat cumsum toarray todense view".split()
)
