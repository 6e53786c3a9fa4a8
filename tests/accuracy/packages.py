"""Packages that are observed class by class, and what their classes need (small_modules.py says how they are made)."""

from __future__ import annotations

from typing import Any

import small_tensors as inputs
from small_modules import Package, call_and_aggregate, denoise, update_and_compute

_PAIR = (16, 16)
_KORNIA = Package(
    parts=tuple("augmentation color contrib enhance feature filters geometry losses metrics morphology".split()),
    arguments={
        **dict.fromkeys(("size", "window_size", "patch_size"), _PAIR),
        **dict.fromkeys(("mean", "std"), (0.5, 0.5, 0.5)),
        **dict.fromkeys(("degrees", "shear"), 20.0),
        **dict.fromkeys(("max_size", "num_classes"), 16),
        **dict.fromkeys(("brightness_factor", "contrast_factor", "gamma", "hue_factor", "saturation_factor"), 0.5),
        **dict.fromkeys(("factor", "thresh", "alpha", "beta", "k", "alpha_val", "sigma_color"), 0.5),
        "kernel_size": (3, 3),
        "times": (1, 2),
        "eps": 1e-6,
        "num_features": 3,
        "reduction": "mean",
        "p": 1.0,
        "pretrained": False,
    },
    of_class={
        "RandomGaussianBlur": {"sigma": (0.5, 1.5)},
        "RandomMotionBlur": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
        "RandomMotionBlur3D": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
        "RandomCrop3D": {"size": (4, 16, 16)},
        "CenterCrop3D": {"size": (4, 16, 16)},
        "MotionBlur": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
        "GaussianBlur2d": {"sigma": (1.0, 1.0)},
        "BilateralBlur": {"sigma_color": 0.1, "sigma_space": (1.0, 1.0)},
        "UnsharpMask": {"sigma": (1.0, 1.0)},
        "SSIMLoss": {"window_size": 5},
        "SSIM": {"window_size": 5},
        "MS_SSIMLoss": {"sigmas": [0.5, 1.0]},
    },
)

_TORCHMETRICS = Package(
    parts=tuple(
        "aggregation audio classification clustering detection image nominal regression retrieval segmentation shape "
        "text wrappers".split()
    ),
    base="torchmetrics:Metric",
    arguments={
        **dict.fromkeys(("num_classes", "num_labels"), 5),
        **dict.fromkeys(("min_recall", "min_precision", "min_specificity", "min_sensitivity", "threshold"), 0.5),
        **dict.fromkeys(("data_range", "beta"), 1.0),
        "num_groups": 2,
        "p": 2,
        "things": {0},
        "stuffs": {1},
    },
    inputs=inputs.measured,
    use=update_and_compute,
)


def _miner() -> Any:
    from pytorch_metric_learning import losses, miners

    mine, loss = miners.MultiSimilarityMiner(), losses.TripletMarginLoss()
    return lambda vectors, labels: loss(vectors, labels, mine(vectors, labels))


def _cross_batch() -> Any:
    from pytorch_metric_learning import losses

    return losses.CrossBatchMemory(losses.ContrastiveLoss(), embedding_size=8, memory_size=32)


def _reduced(name: str, **options: Any) -> Any:
    def make() -> Any:
        from pytorch_metric_learning import losses, reducers

        return losses.TripletMarginLoss(reducer=getattr(reducers, name)(**options))

    return make


def _tripled(name: str) -> Any:
    """A loss with a distance and an embedding regularizer of its own."""

    def make() -> Any:
        from pytorch_metric_learning import distances, losses, regularizers

        parts = {"distance": getattr(distances, name)(), "embedding_regularizer": regularizers.LpRegularizer()}
        return losses.ContrastiveLoss(pos_margin=0.2, neg_margin=0.8, **parts)

    return make


_METRIC_LEARNING = Package(
    parts=("losses", "miners", "distances", "regularizers"),
    arguments={"num_classes": 5, "embedding_size": 8, "descriptors_dim": 8, "margin": 0.5, "Tn": 0.5},
    of_class={
        "LargeMarginSoftmaxLoss": {"margin": 4},
        "SphereFaceLoss": {"margin": 4},
        "MinedTripletLoss": _miner,
        "CrossBatchMemory": _cross_batch,
        **{
            f"Triplet{name}": _reduced(name, **({"low": 0.1, "high": 0.9} if name == "ThresholdReducer" else {}))
            for name in ("MeanReducer", "AvgNonZeroReducer", "SumReducer", "ThresholdReducer")
        },
        **{f"Contrastive{name}": _tripled(name) for name in ("CosineSimilarity", "SNRDistance")},
    },
    inputs=inputs.embeddings,
)


def _decoder(**options: Any) -> Any:
    def make() -> Any:
        from x_transformers import Decoder, TransformerWrapper

        layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
        return TransformerWrapper(num_tokens=20, max_seq_len=64, attn_layers=layers)

    return make


def _wrapped(name: str, **options: Any) -> Any:
    """A training wrapper around a decoder."""

    def make() -> Any:
        import x_transformers

        return getattr(x_transformers, name)(_decoder(rotary_pos_emb=True)(), **options)

    return make


def _encoder_decoder() -> Any:
    from x_transformers import XTransformer

    sizes = {f"{side}_{key}": value for side in ("enc", "dec") for key, value in _XSIZES.items()}
    return XTransformer(dim=32, **sizes)


def _vision() -> Any:
    from x_transformers import Encoder, ViTransformerWrapper

    return ViTransformerWrapper(image_size=32, patch_size=8, num_classes=5, attn_layers=Encoder(dim=32, depth=2))


_XSIZES = {"num_tokens": 20, "depth": 1, "heads": 2, "max_seq_len": 32}
_X_TRANSFORMERS = Package(
    arguments={"dim": 32, "depth": 2, "heads": 4, "entropy_threshold": 2.0},
    of_class={
        "AutoregressiveWrapper": _wrapped("AutoregressiveWrapper"),
        "MaskedAutoregressive": _wrapped("AutoregressiveWrapper", mask_prob=0.15),
        "NonAutoregressiveWrapper": _wrapped("NonAutoregressiveWrapper", mask_id=1),
        "XTransformer": _encoder_decoder,
        "ViTransformerWrapper": _vision,
        "Rotary": _decoder(rotary_pos_emb=True),
        "Alibi": _decoder(alibi_pos_bias=True),
        "Relative": _decoder(rel_pos_bias=True),
        "DynamicPosition": _decoder(dynamic_pos_bias=True),
        "Sparse": _decoder(attn_sparse_topk=4),
        "Xpos": _decoder(rotary_xpos=True),
        "Shift": _decoder(shift_tokens=1),
        "Memory": _decoder(attn_num_mem_kv=4),
        "Talking": _decoder(attn_pre_talking_heads=True),
        "Flash": _decoder(attn_flash=True),
        "Dropped": _decoder(layer_dropout=0.2, attn_dropout=0.1),
        "Normed": _decoder(use_rmsnorm=True, attn_qk_norm=True, ff_glu=True),
        "Hyper": _decoder(num_residual_streams=2),
    },
    inputs=inputs.vectors,
)


def _quantizer(**options: Any) -> Any:
    def make() -> Any:
        from vector_quantize_pytorch import VectorQuantize

        return VectorQuantize(dim=32, codebook_size=16, **options)

    return make


_QUANTIZERS = Package(
    arguments={
        "dim": 32,
        "codebook_size": 16,
        "levels": [8, 5, 5],
        "num_quantizers": 2,
        "codebook_dim": 16,
        "num_codebooks": 2,
    },
    of_class={
        "LFQ": {"dim": 16, "codebook_size": 16},
        "GroupedResidualVQ": {"groups": 2, "dim": 32, "num_quantizers": 2, "codebook_size": 16},
        "GroupedResidualFSQ": {"groups": 2, "dim": 32, "num_quantizers": 2, "levels": [8, 5, 5]},
        "GroupedResidualLFQ": {"groups": 2, "dim": 32, "num_quantizers": 2, "codebook_size": 16},
        "KMeans": _quantizer(kmeans_init=True, kmeans_iters=2),
        "DeadCodes": _quantizer(threshold_ema_dead_code=2),
        "Cosine": _quantizer(use_cosine_sim=True, threshold_ema_dead_code=1),
        "Heads": _quantizer(heads=4, separate_codebook_per_head=True, codebook_dim=8),
        "Orthogonal": _quantizer(orthogonal_reg_weight=10.0, orthogonal_reg_max_codes=8),
        "Learnable": _quantizer(learnable_codebook=True, ema_update=False),
        "Diverse": _quantizer(codebook_diversity_loss_weight=0.1),
        "Sampled": _quantizer(stochastic_sample_codes=True, sample_codebook_temp=0.5),
    },
    inputs=inputs.vectors,
)


def _segmented() -> inputs.Inputs:
    import torch

    yield (torch.rand(2, 3, 64, 64),)
    yield (torch.rand(2, 3, 224, 224),)
    yield torch.randn(2, 3, 16, 16), torch.randint(0, 3, (2, 16, 16))
    yield torch.randn(2, 1, 16, 16), torch.randint(0, 2, (2, 1, 16, 16)).float()


_SEGMENTATION = Package(
    parts=("", "losses"),
    arguments={"encoder_weights": None, "encoder_name": "resnet18", "classes": 3, "mode": "multiclass"},
    of_class={
        "DPT": {"encoder_name": "tu-vit_tiny_patch16_224", "classes": 3, "encoder_weights": None},
        "Segformer": {"encoder_name": "mit_b0", "classes": 3, "encoder_weights": None},
    },
    inputs=_segmented,
)


_MONAI_ARGUMENTS = {
    **dict.fromkeys(("in_channels", "channels_in"), 1),
    **dict.fromkeys(("out_channels", "num_classes"), 2),
    **dict.fromkeys(("img_size", "input_image_size"), (32, 32)),
    **dict.fromkeys(("kernel_size", "upsample_kernel_size", "radius"), 3),
    **dict.fromkeys(("num_layers", "num_layers_d", "num_res_blocks", "depth", "num_d"), 1),
    **dict.fromkeys(("hidden_size", "mlp_dim", "embedding_dim", "num_channel_initial"), 16),
    "spatial_dims": 2,
    "channels": (8, 16, 32),
    "strides": (2, 2),
    "in_shape": (1, 32, 32),
    "out_shape": (4,),
    "classes": 2,
    "block": "basic",
    "layers": (1, 1, 1, 1),
    "block_inplanes": [8, 16, 16, 16],
    "feature_size": 12,
    "patch_size": 8,
    "num_heads": 2,
    "latent_size": 4,
    "model_name": "efficientnet-b0",
    "pretrained": False,
    "num_embeddings": 8,
    "norm_name": "instance",
    "stride": 1,
    "sigma": 1.0,
    "window_length": 5,
    "order": 1,
    "submodule": None,
}


def _spectral_loss() -> Any:
    from monai.losses import JukeboxLoss

    return JukeboxLoss(spatial_dims=2)


def _multi_scale() -> Any:
    from monai.losses import DiceLoss, MultiScaleLoss

    return MultiScaleLoss(DiceLoss(sigmoid=True), scales=[0.5, 1.0])


def _masked() -> Any:
    from monai.losses import DiceLoss, MaskedLoss

    return MaskedLoss(DiceLoss, sigmoid=True)


def _wasserstein() -> Any:
    import torch
    from monai.losses import GeneralizedWassersteinDiceLoss

    return GeneralizedWassersteinDiceLoss(dist_matrix=(1 - torch.eye(3)).tolist())


def _one_hot(kind: str, **options: Any) -> Any:
    """A loss that makes classes one-hot."""

    def make() -> Any:
        import monai.losses

        return getattr(monai.losses, kind)(to_onehot_y=True, softmax=True, include_background=False, **options)

    return make


_MONAI = Package(
    parts=("losses", "networks.nets", "networks.layers"),
    arguments=_MONAI_ARGUMENTS,
    of_class={
        "Unet": {"in_channels": 1, "out_channels": 2, "channels": (8, 16), "strides": (2,), "num_res_units": 1},
        "JukeboxLoss": _spectral_loss,
        "MultiScaleLoss": _multi_scale,
        "MaskedLoss": _masked,
        "GeneralizedWassersteinDiceLoss": _wasserstein,
        **{
            f"OneHot{kind}": _one_hot(kind)
            for kind in ("DiceLoss", "DiceCELoss", "DiceFocalLoss", "GeneralizedDiceLoss", "TverskyLoss")
        },
    },
    inputs=inputs.volumes,
)


def _metric_inputs() -> inputs.Inputs:
    """One-hot masks first, as MONAI's metrics want them."""
    import torch

    def hot() -> Any:
        return torch.eye(3)[torch.randint(0, 3, (2, 16, 16))].permute(0, 3, 1, 2).contiguous()

    yield hot(), hot()
    yield torch.rand(16, 2), torch.eye(2)[torch.arange(16) % 2]
    yield torch.rand(2, 1, 32, 32), torch.rand(2, 1, 32, 32)
    yield torch.rand(16, 8), torch.rand(16, 8)


_MONAI_METRICS = Package(
    parts=("metrics",),
    base="monai.metrics:CumulativeIterationMetric",
    arguments={
        "num_classes": 3,
        "spatial_dims": 2,
        "max_val": 1.0,
        "class_thresholds": [0.5, 0.5, 0.5],
        "include_background": True,
    },
    inputs=_metric_inputs,
    use=call_and_aggregate,
)


def _unet(**options: Any) -> Any:
    def make() -> Any:
        from diffusers import UNet2DModel

        blocks = {
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        }
        sizes = {"sample_size": 16, "in_channels": 4, "out_channels": 4, "layers_per_block": 1, "norm_num_groups": 4}
        return UNet2DModel(block_out_channels=(8, 16), attention_head_dim=4, **blocks, **sizes, **options)

    return make


def _conditional_unet() -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=4,
        layers_per_block=1,
    )


_DIFFUSERS_MODELS = Package(
    parts=("models.transformers", "models.autoencoders", "models.unets"),
    arguments={
        **dict.fromkeys(("num_attention_heads", "attention_head_dim", "num_layers"), 2),
        **dict.fromkeys(("cross_attention_dim", "embedding_dim", "caption_channels"), 32),
        **dict.fromkeys(("in_channels", "out_channels"), 4),
        "block_out_channels": (8, 16),
        "norm_num_groups": 4,
        "sample_size": 16,
        "patch_size": 2,
        "layers_per_block": 1,
    },
    of_class={
        "UNet2DModel": _unet(),
        "ScaleShiftUNet": _unet(resnet_time_scale_shift="scale_shift"),
        "UNet2DConditionModel": _conditional_unet,
    },
    inputs=inputs.denoised,
)
_SCHEDULERS = Package(
    parts=("schedulers",),
    base="diffusers.schedulers:SchedulerMixin",
    inputs=inputs.denoised,
    use=denoise,
)


def _clip(name: str = "", **options: Any) -> Any:
    """A small model for texts and pictures, with its loss."""

    def make() -> Any:
        import open_clip
        import torch
        from open_clip import CLIP, ClipLoss, CoCa, CoCaLoss

        vision = {"layers": 1, "width": 32, "head_width": 16, "patch_size": 8, "image_size": 32}
        text = {"context_length": 16, "vocab_size": 20, "width": 32, "heads": 2, "layers": 1}
        if name == "CoCa":
            both = {"multimodal_cfg": text, "text_cfg": text | {"embed_cls": True, "output_tokens": True}}
            model = CoCa(32, vision_cfg=vision | {"attentional_pool": True, "output_tokens": True}, **both)
            loss = CoCaLoss(caption_loss_weight=1.0, clip_loss_weight=1.0)
        elif name == "SigLIP":
            model, loss = CLIP(32, vision, text, init_logit_bias=-10.0, output_dict=True), open_clip.SigLipLoss()
        else:
            model, loss = CLIP(32, vision | options, text, output_dict=True), ClipLoss()

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.model, self.loss = model, loss

            def forward(self, pictures: Any, tokens: Any) -> Any:
                return self.loss(**self.model(pictures, tokens), output_dict=True)

        return Trained()

    return make


_OPEN_CLIP = Package(
    parts=("transformer", "modified_resnet", "coca_model"),
    arguments={
        **dict.fromkeys(("width", "output_dim", "d_model"), 32),
        **dict.fromkeys(("heads", "layers", "n_head"), 2),
        "image_size": 32,
        "patch_size": 8,
        "mlp_ratio": 2.0,
        "vocab_size": 20,
        "context_length": 16,
    },
    of_class={
        "ModifiedResNet": {"layers": (1, 1, 1, 1), "output_dim": 32, "heads": 2, "image_size": 32, "width": 8},
        "CLIP": _clip(),
        "DroppedCLIP": _clip(patch_dropout=0.5),
        "SigLIP": _clip("SigLIP"),
        "CoCa": _clip("CoCa"),
    },
    inputs=inputs.vectors,
)


def _adapted(name: str, **options: Any) -> Any:
    """A small network with an adapter."""

    def make() -> Any:
        import peft
        import torch

        layers = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32))
        return peft.get_peft_model(layers, getattr(peft, name)(target_modules=["0", "2"], **options))

    return make


_PEFT = Package(
    parts=(),
    of_class={
        "LoRA": _adapted("LoraConfig"),
        "DoRA": _adapted("LoraConfig", use_dora=True),
        "RsLoRA": _adapted("LoraConfig", use_rslora=True, lora_dropout=0.1),
        "PiSSA": _adapted("LoraConfig", init_lora_weights="pissa"),
        "AdaLoRA": _adapted("AdaLoraConfig", total_step=10),
        "LoHa": _adapted("LoHaConfig"),
        "LoKr": _adapted("LoKrConfig"),
        "OFT": _adapted("OFTConfig", oft_block_size=8),
        "BOFT": _adapted("BOFTConfig", boft_block_size=4),
        "VeRA": _adapted("VeraConfig"),
        "FourierFT": _adapted("FourierFTConfig", n_frequency=10),
        "IA3": _adapted("IA3Config", feedforward_modules=["2"]),
        "HRA": _adapted("HRAConfig"),
        "VBLoRA": _adapted("VBLoRAConfig", num_vectors=8, vector_length=4, r=2),
        "Bone": _adapted("BoneConfig", r=8),
        "MiSS": _adapted("MissConfig", r=8),
        "RandLoRA": _adapted("RandLoraConfig"),
        "SHiRA": _adapted("ShiraConfig", r=4),
        "Road": _adapted("RoadConfig", group_size=8, variant="road_1"),
        "C3A": _adapted("C3AConfig", block_size=8),
        "LN": _adapted("LNTuningConfig"),
        "Wave": _adapted("WaveFTConfig", n_frequency=10),
        "Delora": _adapted("DeloraConfig"),
    },
    inputs=inputs.vectors,
)

#: By the name of the corpus: the package, and how its classes are made.
PACKAGES: dict[str, tuple[str, Package]] = {
    "kornia": ("kornia", _KORNIA),
    "torchmetrics": ("torchmetrics", _TORCHMETRICS),
    "pytorch-metric-learning": ("pytorch_metric_learning", _METRIC_LEARNING),
    "x-transformers": ("x_transformers", _X_TRANSFORMERS),
    "vector-quantize-pytorch": ("vector_quantize_pytorch", _QUANTIZERS),
    "segmentation-models-pytorch": ("segmentation_models_pytorch", _SEGMENTATION),
    "monai": ("monai", _MONAI),
    "monai-metrics": ("monai", _MONAI_METRICS),
    "diffusers": ("diffusers", _DIFFUSERS_MODELS),
    "diffusers-schedulers": ("diffusers", _SCHEDULERS),
    "open-clip": ("open_clip", _OPEN_CLIP),
    "peft": ("peft", _PEFT),
}
