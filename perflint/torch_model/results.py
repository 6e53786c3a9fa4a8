"""The types and ranks of what PyTorch's operations give (https://docs.pytorch.org/docs/stable/tensor_attributes.html)."""

from __future__ import annotations

from perflint.torch_model.names import words

#: Give booleans of whatever they compare or test.
BOOLEAN = words(
    "eq ne lt le gt ge equal not_equal less less_equal greater greater_equal isnan isinf isfinite isneginf isposinf "
    "isreal isin isclose logical_and logical_or logical_xor logical_not signbit any all is_nonzero"
)
#: Give indices or counts.
INTEGER = words(
    "argmax argmin argsort argwhere nonzero nonzero_static count_nonzero bincount searchsorted bucketize randperm "
    "tril_indices triu_indices multinomial one_hot nms batched_nms"
)
#: Give floating numbers, also of integers; of floating ones those of the same type.
FLOATING = words(
    "sigmoid softmax log_softmax exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh asin acos atan atan2 "
    "sinh cosh reciprocal div divide true_divide erf erfc erfinv lgamma digamma mean std var norm logsumexp deg2rad "
    "rad2deg sinc logit float_power nanmean dropout gelu silu relu6 softplus layer_norm batch_norm group_norm "
    "normalize cross_entropy mse_loss l1_loss smooth_l1_loss nll_loss kl_div "
    "binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity"
)
#: Of integers they may give integers, as an argument says.
ROUNDED = words("div divide")
#: Sums of booleans are integers.
SUMMING = words("sum cumsum prod cumprod nansum")
#: Give numbers of the type of their tensors.
KEEPING = words(
    "add sub subtract mul multiply neg negative abs absolute clamp clip clamp_min clamp_max relu square pow floor ceil "
    "round trunc sign max min amax amin maximum minimum median sum cumsum prod cumprod nansum matmul mm bmm einsum dot "
    "cat concat concatenate stack hstack vstack dstack view view_as reshape reshape_as permute transpose t squeeze "
    "unsqueeze expand expand_as flatten unflatten narrow select diagonal detach detach_ contiguous swapaxes swapdims "
    "movedim moveaxis ravel adjoint unfold as_strided clone repeat repeat_interleave tile roll flip fliplr flipud "
    "gather index_select masked_select masked_fill index_fill index_add scatter scatter_add take take_along_dim tril "
    "triu diag diag_embed diagflat split chunk unbind tensor_split sort topk unique unique_consecutive broadcast_to "
    "zeros_like ones_like empty_like full_like rand_like randn_like new_zeros new_ones new_empty new_full "
    "bitwise_and bitwise_or bitwise_xor bitwise_not remainder fmod floor_divide lerp addmm baddbmm linear conv1d "
    "conv2d conv3d pad rearrange repeat reduce pad_sequence requires_grad_ cpu cuda pin_memory rot90 "
    "swapaxes movedim cross outer kron trace det inverse interpolate"
)
#: Work on each number by itself: the result has the dimensions that their tensors broadcast to.
ELEMENTWISE = words(
    "eq ne lt le gt ge not_equal less less_equal greater greater_equal isnan isinf isfinite isneginf isposinf isreal "
    "isclose logical_and logical_or logical_xor logical_not signbit add sub subtract mul multiply div divide "
    "true_divide neg negative abs absolute clamp clip clamp_min clamp_max relu square pow floor ceil round trunc sign "
    "maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor bitwise_not remainder fmod floor_divide lerp where "
    "sigmoid exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh asin acos atan atan2 sinh cosh reciprocal "
    "erf erfc erfinv lgamma digamma deg2rad rad2deg sinc logit float_power dropout gelu silu relu6 softplus "
    "nan_to_num masked_fill xlogy heaviside copysign hypot addcmul addcdiv rsub"
)
#: Give a tensor of as many dimensions as their first one.
SAME_RANK = words(
    "softmax log_softmax cumsum cumprod logcumsumexp flip roll tril triu sort argsort clone contiguous detach detach_ "
    "requires_grad_ transpose permute swapaxes swapdims movedim moveaxis t narrow index_select gather scatter "
    "scatter_add index_add index_copy index_fill masked_scatter resolve_conj resolve_neg normalize fliplr flipud rot90 "
    "topk kthvalue mode cummax cummin split chunk tensor_split split_with_sizes float double half bfloat16 long int "
    "short char byte bool type type_as to cpu cuda pin_memory data take_along_dim searchsorted bucketize layer_norm"
)
#: Give so many dimensions.
FIXED_RANK = {
    **dict.fromkeys(words("nms batched_nms unique masked_select bincount unique_consecutive ravel"), 1),
    **dict.fromkeys(words("nonzero argwhere tril_indices triu_indices mm cdist"), 2),
    **dict.fromkeys(words("bmm baddbmm"), 3),
    **dict.fromkeys(words("clip_grad_norm get_total_norm"), 0),
}
#: Constructors whose arguments are the sizes of their dimensions, and those of a fixed number of dimensions.
SIZED = words("zeros ones empty rand randn")
CONSTRUCTED_RANK = {
    **dict.fromkeys(
        words(
            "arange range linspace logspace randperm hann_window hamming_window blackman_window bartlett_window "
            "kaiser_window"
        ),
        1,
    ),
    **dict.fromkeys(words("eye tril_indices triu_indices"), 2),
    "scalar_tensor": 0,
}
#: Constructors of floating numbers where no `dtype=` is given, and of integers.
FLOATING_CONSTRUCTORS = words(
    "zeros ones empty rand randn linspace logspace eye normal hann_window hamming_window blackman_window "
    "bartlett_window kaiser_window"
)
INTEGER_CONSTRUCTORS = words("randint randperm tril_indices triu_indices")
#: Give values with the positions they were found at.
WITH_INDICES = words("sort topk kthvalue mode cummax cummin median nanmedian")
