"""Libraries for images: functions and transforms that give a tensor where the tensor is that they are given, and those
that make the host wait for it.

Read in the sources of torchvision (`transforms/functional.py`, `transforms/_functional_tensor.py`,
`transforms/v2/functional`, `utils.py`) and of kornia. What is given a picture of the host gives another one: of that
nothing is said here.
"""

from __future__ import annotations

from perflint.torch_model.names import last, root, within, words

_FUNCTIONAL = ("torchvision.transforms.functional", "torchvision.transforms.v2.functional")
_SHAPED = (
    "resize pad crop center_crop resized_crop hflip vflip horizontal_flip vertical_flip perspective rotate affine "
    "elastic elastic_transform to_grayscale rgb_to_grayscale erase gaussian_blur gaussian_noise normalize invert "
    "posterize solarize autocontrast equalize adjust_brightness adjust_contrast adjust_saturation adjust_hue "
    "adjust_gamma adjust_sharpness convert_image_dtype to_dtype"
)
_KEEPING = frozenset().union(*(within(module, _SHAPED) for module in _FUNCTIONAL))
_TRANSFORMS = (
    "torchvision.transforms.",
    "kornia.augmentation.",
    "kornia.filters.",
    "kornia.geometry.",
    "kornia.color.",
)
#: Functions of kornia that take or give something else than a tensor, or several of them.
_OTHERS = words(
    "image_to_tensor tensor_to_image image_list_to_tensor create_meshgrid create_meshgrid3d load_image write_image "
    "print_image get_perspective_transform find_homography_dlt eye_like vec_like"
)
#: Transforms that make a picture or several, or do what they are given.
_OTHER_TRANSFORMS = words(
    "ToTensor PILToTensor ToPILImage ToImage Compose Lambda RandomApply RandomChoice RandomOrder FiveCrop TenCrop "
    "AugmentationSequential ImageSequential PatchSequential VideoSequential"
)
#: What divides by deviations that are given as numbers: they are copied to the device, and then asked whether one is 0.
CHECKING = within(_FUNCTIONAL[0], "normalize")
#: What makes a picture of the host.
PICTURES = frozenset().union(*(within(module, "to_pil_image") for module in _FUNCTIONAL)) | within(
    "kornia", "tensor_to_image utils.tensor_to_image image.tensor_to_image"
)

#: What makes a tensor of the host out of a picture or an array, as classes and as functions.
_MAKERS = words("ToTensor PILToTensor")
MAKING = frozenset().union(*(within(module, "to_tensor pil_to_tensor") for module in _FUNCTIONAL))
COMPOSITIONS = within("torchvision.transforms", "Compose v2.Compose transforms.Compose")


def makes_tensor(name: str) -> bool:
    """Whether calling an instance of a library's class on a picture gives a tensor."""
    return name.startswith(_TRANSFORMS[0]) and last(name) in _MAKERS


def keeps_place(name: str) -> bool:
    """Whether a library's function gives a tensor where it is given one."""
    if name in _KEEPING:
        return True
    return root(name) == "kornia" and last(name)[:1].islower() and last(name) not in _OTHERS


def is_transform(name: str) -> bool:
    """Whether calling an instance of a library's class on a tensor gives a tensor in the same place."""
    return name.startswith(_TRANSFORMS) and last(name) not in _OTHER_TRANSFORMS
