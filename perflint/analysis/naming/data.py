"""What names say of data: what gives a sample and what that costs, and what moves a batch."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

#: Folders of what is done to samples before they are batched.
TRANSFORMS_FILE = pattern(r"(?:^|/)data(?:sets?|_\w+)?/(?:\w+/)*transforms?(?:/|\.py$)")
#: What reads a file, decodes, augments or tokenizes, by the last name of what is called. Bare `load`, `read`, `process`
#: or `collate` say nothing: the project's own are looked into.
COSTLY = pattern(
    r"open|imread|imdecode|decode_image|read_image|read_video|VideoReader|VideoCapture|load_image\w*|load_audio\w*|"
    r"load_wav\w*|pil_loader|image_loader|fromfile|memmap|loadtxt|read_csv|"
    r"\w*transforms?|transform_\w+|augment\w*|\w+_augment\w*|\w*_aug|aug|pipeline|resample|\w*spectrogram|mfcc|stft|"
    r"resize\w*|rotate\w*|warp\w*|nlp|parse\w*|simulate\w*|render\w*|\w*processor|feature_extractor"
)
#: What reads one sample from a file or a camera, by the last name of what is called, where it is given what a loop
#: binds.
READS_SAMPLE = frozenset(
    "open imread imdecode read_image decode_image decode_jpeg read_video load_image load_img pil_loader default_loader "
    "loadtxt loadmat read_wav load_wav load_audio read load read_frame get_frame next_frame grab retrieve".split()
)
#: What gives the frames of a video or the records of a file, one for each iteration.
GIVES_FRAMES = frozenset("decode iter_frames iter_data get_reader VideoReader VideoCapture".split())
#: What tokenizes a text: worth a worker sample by sample, not where a fast tokenizer does a batch at once.
TOKENIZES = pattern(r"\w*tokeni[sz]er|tokeni[sz]e\w*|encode_plus|batch_encode_plus|apply_chat_template")
LABELS = pattern(r"target|label")
#: Parts of a batch that are a number for each sample as a rule.
FEW_NUMBERS = pattern(r"target|label|len(?:gth)?s?(?:_|\b)|count|(?:^|_)(?:idx|index|indices|ids?)(?:_|\b)")
TEXT_ENCODER = pattern(r"tok|bpe|sp(?:_?model|_?processor)?$", re.IGNORECASE)
#: What data sets are derived from that read everything at once.
IN_MEMORY = pattern(r"in_?memory", re.IGNORECASE)
#: Helpers that are called for what they do to a batch, not for what they give.
MOVES_IN_PLACE = pattern(
    r"(?:^|_)(?:to|2)_?(?:cuda|device|gpu)(?:_|$)|^_?(?:move|send|put)_\w*(?:batch|data|dict|inputs?)"
)
MOVES_BATCHES = pattern(
    r"(?:^|_)(?:to|2)_?(?:cuda|device|gpu)$|^_?(?:cast|move|send|copy|put)_(?:data|batch|samples?|inputs?)"
)
#: Functions that cut the next batch out of what they hold.
FETCHES_BATCH = pattern(r"^_?(?:get|next|fetch|load)_(?:mini)?batch$")
BATCH = pattern(r"^(?:mini_?)?batch(?:es|_data|_dict|_inputs?)?$|_batch$")
#: Methods of classes whose instances are batches, by the names of these.
BATCH_METHOD = pattern(r"Batch\w*\.")
TOKENIZER = pattern(r"(?:tokeni[sz]er|processor)s?$|(?:^|_)toks?$", re.IGNORECASE)
SEVERAL_TEXTS = pattern(r"texts$|prompts$|sentences$|batch")
#: Where one sample a batch is meant: samples of different shapes, whole graphs, or batches already made.
OF_MANY_SHAPES = pattern(
    r"graph|bucket|variable|ragged|volume|scene|episode|rollout|chunk|shard|packed|batch", re.IGNORECASE
)
#: What a short answer that is known is called.
KNOWN_TEXT = pattern(r"answer|label|choice|option|verbali[sz]er|expected|gold", re.IGNORECASE)
#: What an epoch leaves behind, one of each batch, and what files hold; within a step there may be a handful.
COLLECTED = pattern(r"(?:^|_)(?:outputs|predictions|preds|embeddings|lines?|reader)$", re.IGNORECASE)
#: What is far longer than any text that a model takes.
LONG_TEXTS = pattern(r"genom|chrom|fasta", re.IGNORECASE)
#: Parameters that hold several samples.
PLURAL = pattern(r"(?:texts|prompts|sentences|images|samples|inputs|examples|list|s_ids)$")
#: Names of single tokens: decoding those one by one shows where one ends and the next begins.
TOKEN = pattern(r"tok|word|piece|char|vocab|idx|index|^(?:t|i|j|k|v|id|tid|_id)$|^(?!.*ids).*_id$", re.IGNORECASE)
#: Tokenizers that have no `batch_decode`.
#: What gives one piece of text after the other, to be shown as it comes.
STREAM = pattern(r"(?:^|_)(?:generator|stream(?:er)?)(?:_|$)")
#: Options of a command line that set the batch size of a training.
BATCH_SIZE_OPTION = pattern(r"^--?(?:per[-_]device[-_])?(?:train(?:ing)?[-_])?(?:micro[-_])?batch[-_]?size$|^--?bs$")
#: Functions that make of a text what a model reads.
PREPARES_TEXTS = pattern(r"tokeniz|preprocess|preproc|collate|encode|__getitem__")
#: What moves a batch, by the last name of the call, and who does it for the loop. A tensor that is given the size of
#: each batch (`resize_`) is one that batches are copied into.
MOVES = pattern(
    r"^(?:to|cuda|Variable|type|xpu|resize_)$|device|cuda|gpu|^set_input$|^feed_data$|^prepare_inputs?$|^send_to"
)
#: Data sets that are told the epoch.
TOLD_THE_EPOCH = pattern(r"(?:dataset|_ds|_set|trainset)\.(?:set_epoch\(|\w*epoch\w*\s*=[^=])")
#: Libraries of tokenizers that have no `batch_decode`, and what says that one is of transformers.
OTHER_TOKENIZERS = pattern(r"\b(?:tiktoken|sentencepiece|from tokenizers|import tokenizers|torchtune|mistral_common)\b")
OF_TRANSFORMERS = pattern(r"\b(?:transformers|batch_decode|skip_special_tokens)\b")
#: What a file says of machines that compile a program for its shapes.
OF_TPUS = pattern(r"\b(?:TPUs?|cloud-tpu-client)\b")
#: Ends of the names of files that are no text for people.
FILE_ENDING = pattern(r"\.(jpe?g|png|gif|wav|flac|mp4|npy|npz|pt|pth|safetensors|json|txt|csv)$")
#: What a function is told how to work, not what it works on.
OPTION = pattern(
    r"^(?:args?|opts?|options?|cfg|config|conf|hparams?|hps?|params?|settings|device)$|_(?:cfg|config|device)$"
)
