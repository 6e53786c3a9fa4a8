"""What libraries that compute on the host take milliseconds for, by dotted name; each group has another way out."""

from __future__ import annotations

from perflint.torch_model.names import within, words

#: Likeness of pictures, which tensors compute in batches.
LIKENESS = (
    within("skimage.metrics", "structural_similarity")
    | within("skimage.measure", "compare_ssim structural_similarity")
    | words("sewar.full_ref.ssim sewar.full_ref.msssim sewar.full_ref.vifp sewar.full_ref.uqi")
)
#: Quality of sounds, each sound by itself.
SOUNDS = words(
    "pesq.pesq pypesq.pesq pystoi.stoi pystoi.stoi.stoi mir_eval.separation.bss_eval_sources "
    "mir_eval.separation.bss_eval_sources_framewise mir_eval.separation.bss_eval_images museval.evaluate "
    "fast_bss_eval.numpy.bss_eval_sources"
)
#: Filters over every pixel, with windows in float64 or by sorting.
FILTERS = within(
    "scipy.ndimage",
    "zoom rotate affine_transform map_coordinates median_filter percentile_filter rank_filter generic_filter "
    "distance_transform_edt gaussian_filter",
) | words("cv2.fastNlMeansDenoising cv2.fastNlMeansDenoisingColored skimage.restoration.denoise_nl_means")
SLOW_ON_HOST = LIKENESS | SOUNDS | FILTERS
