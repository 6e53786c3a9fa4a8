"""Tensors: what makes them, what hands them on, what moves them, and what makes the host wait for them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from perflint.torch_model import graphs, images
from perflint.torch_model.names import within, words

#: Make a tensor on the host unless `device=` says otherwise.
CONSTRUCTORS = within(
    "torch",
    "tensor as_tensor asarray zeros ones empty full rand randn randint randperm arange range linspace logspace eye "
    "tril_indices triu_indices normal empty_strided hann_window hamming_window blackman_window bartlett_window "
    "kaiser_window scalar_tensor sparse_coo_tensor sparse_csr_tensor from_file empty_permuted",
)
#: Of these, those that make it where the values are.
SPARSE_CONSTRUCTORS = within("torch", "sparse_coo_tensor sparse_csr_tensor")
#: As above, but without a `device=` keyword: always on the host.
HOST_CONSTRUCTORS = within(
    "torch",
    "from_numpy frombuffer from_dlpack Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor "
    "ShortTensor CharTensor ByteTensor BoolTensor",
) | words(
    "torchvision.transforms.functional.to_tensor torchvision.transforms.functional.pil_to_tensor "
    "torchvision.io.read_image torchvision.io.decode_image torchvision.io.decode_jpeg torchaudio.functional.load"
)
#: The one whose type, and with it whose device, `torch.set_default_tensor_type` sets.
DEFAULT_TYPE = "torch.Tensor"
#: Constructors of one type each, and what that is: they convert what they are given, as `torch.tensor` does not.
LEGACY_DTYPES: Mapping[str, str] = {
    "torch.Tensor": "torch.get_default_dtype()",
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
    "torch.HalfTensor": "torch.float16",
    "torch.BFloat16Tensor": "torch.bfloat16",
    "torch.LongTensor": "torch.long",
    "torch.IntTensor": "torch.int32",
    "torch.ShortTensor": "torch.int16",
    "torch.CharTensor": "torch.int8",
    "torch.ByteTensor": "torch.uint8",
    "torch.BoolTensor": "torch.bool",
}
#: Legacy classes of tensors on the accelerator.
DEVICE_CONSTRUCTORS = within(
    "torch.cuda",
    "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor ByteTensor BoolTensor",
)
#: Make a tensor where their first argument is, unless `device=` says otherwise.
LIKE_CONSTRUCTORS = within("torch", "zeros_like ones_like empty_like full_like rand_like randn_like randint_like")
#: Methods that make a tensor where the receiver is, unless `device=` says otherwise.
NEW_METHODS = words("new_zeros new_ones new_empty new_full new_tensor new_empty_strided new")
#: Constructors that take numbers from a random stream.
RANDOM_CONSTRUCTORS = within(
    "torch", "rand randn randint randperm normal bernoulli poisson multinomial rand_like randn_like randint_like"
)
#: Take Python data and copy it to the device synchronously when `device=` is an accelerator.
COPYING_CONSTRUCTORS = within("torch", "tensor as_tensor asarray scalar_tensor")
#: Constructors whose `.to(device)` can become `device=` with the same values (given literal arguments).
FOLDABLE_CONSTRUCTORS = within(
    "torch", "zeros ones empty full eye tensor arange tril_indices triu_indices zeros_like ones_like empty_like"
)

#: Functions of modules whose lower-case names all take tensors and give tensors on the same device.
FUNCTIONAL_MODULES = ("torch.nn.functional.", "torch.special.", "torch.fft.", "torch.linalg.", "torch.sparse.")
#: How many of the first arguments of a function are tensors, by its last name; of all others it is the first alone:
#: `conv2d(input, weight, bias, stride)`. From the signatures in https://docs.pytorch.org/docs/stable/torch.html and
#: https://docs.pytorch.org/docs/stable/nn.functional.html
TENSOR_ARGUMENTS: Mapping[str, int] = {
    **dict.fromkeys(
        words(
            "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear where addmm addbmm baddbmm "
            "addcmul addcdiv lerp batch_norm scaled_dot_product_attention triplet_margin_loss margin_ranking_loss "
            "cosine_embedding_loss gaussian_nll_loss ctc_loss"
        ),
        3,
    ),
    **dict.fromkeys(
        words(
            "matmul mm bmm mv dot inner outer ger kron cross add sub subtract mul multiply div divide true_divide "
            "floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot eq ne lt le gt ge equal allclose "
            "isclose logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor cdist solve lstsq "
            "triangular_solve embedding embedding_bag grid_sample cosine_similarity pairwise_distance prelu "
            "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy "
            "binary_cross_entropy_with_logits poisson_nll_loss hinge_embedding_loss soft_margin_loss "
            "multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss masked_select take bucketize "
            "searchsorted xlogy logaddexp dist scatter_sum scatter_mean scatter_max scatter_min to_dense_batch "
            "to_dense_adj remove_self_loops"
        ),
        2,
    ),
}

#: Functions of `torch` that give one tensor on the device of their arguments.
FUNCTIONS = within(
    "torch",
    "abs absolute acos acosh adjoint all any arccos arcsin as_strided broadcast_to detach gcd stft istft add addbmm "
    "addcdiv addcmul addmm addmv addr amax amin angle argmax argmin argsort argwhere asin asinh atan atan2 atanh "
    "arctan arctan2 baddbmm bernoulli bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm bucketize cat cdist "
    "ceil celu chain_matmul cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip clone column_stack "
    "complex concat concatenate conj conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d copysign "
    "corrcoef cos cosh cosine_similarity count_nonzero cov cross cumprod cumsum cumulative_trapezoid deg2rad det diag "
    "diag_embed diagflat diagonal diff digamma dist div divide dot dropout dstack einsum embedding eq erf erfc erfinv "
    "exp exp2 expm1 feature_dropout fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac "
    "full_like gather ge greater greater_equal gt heaviside histc hsplit hstack hypot imag index_add index_copy "
    "index_fill index_put index_select index_reduce inner inverse isclose isfinite isin isinf isnan isneginf isposinf "
    "isreal kron layer_norm ldexp le lerp less less_equal lgamma log log10 log1p log2 log_softmax logaddexp logaddexp2 "
    "logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp lt lu_solve masked_fill "
    "masked_scatter masked_select matmul matrix_exp matrix_power maximum mean minimum mm moveaxis movedim msort mul "
    "multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow native_layer_norm ne neg "
    "negative nextafter nonzero_static norm not_equal nuclear_norm numel orgqr outer pairwise_distance pdist permute "
    "pinverse pixel_shuffle pixel_unshuffle poisson polar polygamma positive pow prelu prod quantile rad2deg ravel "
    "real reciprocal relu relu_ remainder renorm repeat_interleave reshape rms_norm roll rot90 round row_stack rsqrt "
    "rsub scatter scatter_add scatter_reduce searchsorted select selu sgn sigmoid sign signbit sin sinc sinh "
    "slice_scatter softmax sqrt square squeeze stack std sub subtract sum swapaxes swapdims t take take_along_dim tan "
    "tanh tensordot threshold tile trace transpose trapezoid trapz tril triu true_divide trunc unflatten unsqueeze "
    "unique_consecutive var vander vdot view_as_complex view_as_real vstack where xlogy batch_norm group_norm "
    "instance_norm nn.utils.pad_sequence nn.utils.parameters_to_vector nn.utils.clip_grad_norm_ "
    "nn.utils.clip_grad_norm nn.utils.get_total_norm _foreach_norm nested.to_padded_tensor",
) - {"torch.numel"} | words(
    "torch.ops.torchvision.nms "
    "torchvision.ops.nms torchvision.ops.batched_nms torchvision.ops.roi_align torchvision.ops.box_iou "
    "torchvision.ops.generalized_box_iou torchvision.ops.box_convert torchvision.ops.sigmoid_focal_loss "
    "torchvision.ops.box_area torchvision.ops.roi_pool torchvision.ops.deform_conv2d "
    "torchvision.ops.clip_boxes_to_image torchvision.utils.make_grid einops.rearrange einops.repeat einops.reduce "
    "einops.einsum flash_attn.flash_attn_func "
    "torch.nn.attention.flex_attention.flex_attention torch.utils.checkpoint.checkpoint"
)
FUNCTIONS |= graphs.FUNCTIONS | within("torch.sparse", "FloatTensor DoubleTensor LongTensor IntTensor")
#: Functions that give several tensors on the device of their arguments.
TUPLE_FUNCTIONS = within(
    "torch",
    "split chunk unbind tensor_split vsplit dsplit meshgrid broadcast_tensors std_mean var_mean sort topk kthvalue "
    "mode cummax cummin svd qr eig symeig geqrf lu lstsq slogdet frexp histogram aminmax unravel_index linalg.svd "
    "linalg.eigh linalg.eig linalg.qr linalg.slogdet linalg.lstsq linalg.lu linalg.inv_ex linalg.cholesky_ex "
    "linalg.lu_factor autograd.grad split_with_sizes hsplit nn.utils.pad_packed_sequence lstm gru",
)
#: The names of the parts that functions of torch give in a named tuple (torch.return_types).
PARTS = words(
    "values indices solution residuals rank singular_values Q R U S V Vh eigenvalues eigenvectors LU pivots P L "
    "inverse sign logabsdet info min max mantissa exponent hist bin_edges LD"
)
#: Give a tensor, or (values, indices) when a dimension is given.
DIMENSIONED = words("max min median nanmedian")

#: Reductions: without a dimension the result is a 0-d tensor.
REDUCTIONS = words(
    "sum mean max min prod std var norm median nanmean nansum nanmedian argmax argmin all any amax amin count_nonzero "
    "logsumexp trace det dist dot vdot quantile nanquantile"
)
#: Losses: a 0-d tensor unless `reduction="none"`.
LOSS_FUNCTIONS = within(
    "torch.nn.functional",
    "cross_entropy binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss "
    "nll_loss kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss triplet_margin_loss "
    "triplet_margin_with_distance_loss cosine_embedding_loss soft_margin_loss multi_margin_loss multilabel_margin_loss "
    "multilabel_soft_margin_loss ctc_loss linear_cross_entropy",
)

#: Methods that hand back a view of the receiver, or the receiver itself where there is nothing to do.
VIEW_METHODS = words(
    "view view_as reshape reshape_as permute transpose t squeeze unsqueeze expand expand_as flatten unflatten narrow "
    "select diagonal detach detach_ contiguous swapaxes swapdims movedim moveaxis ravel adjoint unfold as_strided "
    "squeeze_ unsqueeze_ t_ transpose_ resolve_conj resolve_neg values indices requires_grad_ coalesce to_dense "
    "as_subclass broadcast_to"
)
#: Those of them that hold each number of the receiver once, in whatever shape and order.
RESHAPING_METHODS = VIEW_METHODS - words(
    "expand expand_as broadcast_to narrow select diagonal unfold as_strided values indices requires_grad_"
)
#: Methods that change the type, and hand back the receiver where it has it already.
CAST_METHODS = words("float double half bfloat16 long int short char byte bool type type_as")
#: Methods after which the numbers are those of the receiver, in another shape, type or place.
SAME_NUMBERS_METHODS = RESHAPING_METHODS | CAST_METHODS | words("to cpu cuda clone")
#: Methods that always hand back a new tensor.
FRESH_METHODS = words(
    "abs absolute acos add addbmm addcdiv addcmul addmm addmv addr all amax amin any argmax argmin argsort asin atan "
    "atan2 baddbmm bernoulli bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm ceil cholesky clamp clamp_max "
    "clamp_min clip clone conj cos cosh count_nonzero cross cumprod cumsum cov deg2rad det diag diag_embed diff "
    "digamma dist div divide dot eq erf erfc erfinv exp exp2 expm1 fix flip fliplr flipud floor floor_divide fmod frac "
    "gather ge greater greater_equal gt histc hypot index_add index_copy index_fill index_put index_select "
    "index_reduce inner inverse isclose isfinite isinf isnan isneginf isposinf kron ldexp le lerp less less_equal "
    "lgamma log log10 log1p log2 log_softmax logaddexp logcumsumexp logdet logical_and logical_not logical_or "
    "logical_xor logit logsumexp lt masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max "
    "maximum mean median min minimum mm mul multinomial multiply mv nan_to_num nanmean nanmedian nanquantile nansum ne "
    "neg negative nonzero_static norm not_equal outer pinverse pow prod quantile rad2deg reciprocal relu remainder "
    "renorm repeat repeat_interleave roll rot90 round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin "
    "sinh softmax sqrt square std sub subtract sum take take_along_dim tan tanh tile trace tril triu true_divide trunc "
    "unique_consecutive var vdot where xlogy new_tensor sinc acosh angle arctan arctan2 asinh atanh copysign corrcoef "
    "diagflat fmax fmin hardshrink select_scatter slice_scatter signbit stft istft to_sparse polygamma mvlgamma "
    "float_power heaviside nextafter nonzero argwhere unique"
)
#: Methods that hand back several tensors.
TUPLE_METHODS = words(
    "split chunk unbind tensor_split hsplit vsplit dsplit sort topk kthvalue mode cummax cummin svd qr eig symeig "
    "slogdet aminmax split_with_sizes lstsq geqrf"
)
#: Methods that write into the receiver and hand it back: everything that ends in one underscore, and these.
IN_PLACE_METHODS = words("__setitem__ __iadd__ __isub__ __imul__ __itruediv__")
#: Methods of tensors that give Python numbers, and no sync.
NUMBER_METHODS = words(
    "dim ndimension numel nelement element_size data_ptr storage_offset get_device is_contiguous is_floating_point "
    "is_complex is_pinned is_shared is_signed is_inference is_set_to is_conj is_neg stride sparse_dim dense_dim "
    "__len__"
)
#: Methods of tensors that nothing else commonly has: calling one is evidence that the receiver is a tensor.
TELLING_METHODS = words(
    "detach unsqueeze permute view_as numel masked_fill masked_fill_ index_select scatter scatter_ scatter_add_ "
    "softmax log_softmax sigmoid requires_grad_ retain_grad expand_as bmm clamp clamp_ logsumexp new_zeros new_ones "
    "new_full new_empty new_tensor type_as unbind narrow masked_select repeat_interleave"
)

#: Attributes of tensors: what they hold.
SAME_ATTRIBUTES = words("data T mT H mH real imag")
NUMBER_ATTRIBUTES = words(
    "ndim requires_grad is_cuda is_leaf is_mps is_sparse is_quantized is_meta is_cpu itemsize nbytes retains_grad "
    "output_nr is_nested"
)
#: Attributes of a batch of graphs that are plain numbers.
GRAPH_COUNTS = words("num_nodes num_edges num_graphs num_features num_node_features num_edge_features")


class Wait(enum.Enum):
    """Why the host waits for the device when a device tensor is treated so."""

    READ = "reads values on the host"
    SHAPE = "the size of the result depends on the values"
    CHECK = "checks for errors on the host"


#: Methods of a device tensor that make the host wait.
SYNC_METHODS: Mapping[str, Wait] = {
    **dict.fromkeys("item tolist cpu numpy __bool__ __float__ __int__ __index__".split(), Wait.READ),
    **dict.fromkeys(
        "nonzero argwhere unique unique_consecutive masked_select bincount repeat_interleave".split(), Wait.SHAPE
    ),
    **dict.fromkeys(
        "inverse cholesky svd eig symeig lstsq logdet pinverse allclose equal is_nonzero".split(), Wait.CHECK
    ),
}
#: Functions that make the host wait for device arguments.
SYNC_FUNCTIONS: Mapping[str, Wait] = {
    **dict.fromkeys(within("torch", "allclose equal is_nonzero"), Wait.READ),
    **dict.fromkeys(
        within("torch", "nonzero argwhere unique unique_consecutive masked_select bincount repeat_interleave"),
        Wait.SHAPE,
    ),
    **dict.fromkeys(
        within(
            "torch",
            "inverse cholesky svd lstsq pinverse linalg.inv linalg.solve linalg.cholesky linalg.svd linalg.svdvals "
            "linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals linalg.lstsq linalg.pinv linalg.matrix_rank "
            "linalg.cond linalg.lu_factor linalg.ldl_factor linalg.matrix_exp matrix_exp",
        ),
        Wait.CHECK,
    ),
    **dict.fromkeys(within("torchvision.ops", "nms batched_nms boxes.nms boxes.batched_nms"), Wait.SHAPE),
    "torch.ops.torchvision.nms": Wait.SHAPE,
}
#: Those that check and have no form that leaves it out, as `torch.linalg.inv_ex` does for `inv`: their own work on the
#: device takes longer than what the host's wait costs.
CHECKS_THAT_STAY = words("svd lstsq pinverse svdvals eigh eigvalsh eig eigvals pinv matrix_rank cond symeig")
#: Methods and functions whose backward makes the host wait, though they themselves do not: the gradient of the source
#: of `masked_scatter` selects by the mask, and those of products read whether a factor is zero
#: (tools/autograd/derivatives.yaml: masked_scatter_backward, prod_backward, cumprod_backward).
SYNC_BACKWARD: Mapping[str, Wait] = {
    **dict.fromkeys(words("masked_scatter masked_scatter_"), Wait.SHAPE),
    **dict.fromkeys(words("prod cumprod"), Wait.READ),
}
#: Builtins and functions of `math` and numpy that read a device tensor given to them.
READING_FUNCTIONS = (
    words(
        "builtins.float builtins.int builtins.bool builtins.complex builtins.min builtins.max builtins.sorted "
        "builtins.range builtins.round builtins.any builtins.all builtins.list builtins.tuple builtins.set"
    )
    | within("math", "sqrt isnan isinf isfinite exp log log2 log10 floor ceil sin cos tan tanh pow fabs")
    | within("numpy", "array asarray float32 float64 mean sum stack concatenate")
    | within("torch", "allclose equal is_nonzero")
    | images.CHECKING
    | images.PICTURES
)
#: Methods that answer about the values of a tensor with a Python bool.
ANSWERING_METHODS = words("allclose equal is_nonzero")
TO_DEVICE_METHODS = words("cuda xpu hpu npu")
#: Functions that move everything in their first argument to the device in their second.
TRANSFER_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "lightning.pytorch.utilities.move_data_to_device": (0, 1),
    "lightning_fabric.utilities.apply_func.move_data_to_device": (0, 1),
    "lightning_fabric.utilities.move_data_to_device": (0, 1),
    "pytorch_lightning.utilities.move_data_to_device": (0, 1),
    "pytorch_lightning.utilities.apply_func.move_data_to_device": (0, 1),
    "accelerate.utils.send_to_device": (0, 1),
    "accelerate.utils.operations.send_to_device": (0, 1),
    "ignite.utils.convert_tensor": (0, 1),
    "monai.utils.convert_to_tensor": (0, 2),
    "torchtnt.utils.copy_data_to_device": (0, 1),
    "torchtnt.utils.data.copy_data_to_device": (0, 1),
}
#: Costly pure functions: the same result for the same inputs, worth keeping.
COSTLY_FUNCTIONS = within(
    "torch",
    "linalg.eigh linalg.svd linalg.inv linalg.pinv linalg.qr linalg.solve linalg.cholesky linalg.matrix_exp cdist "
    "matrix_exp inverse svd meshgrid einsum matmul bmm mm fft.fft2 fft.rfft2",
)
#: Functions of one tensor that go element by element.
ELEMENTWISE_FUNCTIONS = within("torch", "relu sigmoid tanh exp log abs sqrt square") | within(
    "torch.nn.functional", "relu leaky_relu elu selu gelu silu mish hardswish softplus sigmoid tanh"
)
#: Losses that go element by element, and take the mean or the sum: of rows of one size they add up.
LOSSES_BY_ELEMENT = within(
    "torch.nn",
    "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss functional.mse_loss functional.l1_loss "
    "functional.smooth_l1_loss functional.huber_loss functional.binary_cross_entropy "
    "functional.binary_cross_entropy_with_logits",
)
#: Give Python numbers without touching a tensor's values.
NUMBER_FUNCTIONS = within(
    "torch",
    "is_tensor is_floating_point is_complex numel get_num_threads cuda.is_available cuda.device_count "
    "cuda.current_device backends.mps.is_available xpu.is_available initial_seed seed is_grad_enabled "
    "is_autocast_enabled cuda.is_bf16_supported cuda.memory_allocated cuda.max_memory_allocated cuda.memory_reserved "
    "cuda.max_memory_reserved cuda.get_device_capability distributed.is_initialized distributed.is_available "
    "distributed.get_rank distributed.get_world_size allclose equal is_nonzero cuda.utilization compiler.is_compiling "
    "jit.is_scripting jit.is_tracing is_inference_mode_enabled",
) | words("torch.are_deterministic_algorithms_enabled")
