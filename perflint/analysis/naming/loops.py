"""What names say of loops: how many turns they have, and what a turn is."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

#: Loops whose turns are meant to begin from the start.
STARTS_AFRESH = pattern(
    r"fold|seed|trial|attempt|retr(?:y|ies)|repeat|restart|ensemble|member|replica|worker|rank|experiment|(?:^|_)runs?(?:_|$)",
    re.IGNORECASE,
)
#: Loops of a handful of steps, of one part of a model or of several models.
FEW_STEPS = pattern(
    r"critic|disc|(?:^|_)[dgn]_(?:steps|iters|updates)|range\([1-9]\)|optim|\bopts?\b|models\b|agents\b|[nN]ets\b|networks\b"
)
LENGTH_LIMIT = pattern(r"\bmax_(?:\w+_)?(?:len|length|tokens|decod\w*)(?:_|\b)")
MANY_TEXTS = pattern(r"files?(?:names?)?$|paths?$|lines$|texts$|words$|tokens$|sentences$|samples$|listdir|glob")
#: What hands out several prompts a turn, or waits for somebody to write one.
OVER_BATCHES = pattern(
    r"batch|chunk|loader|split\(|group|shard|tile|patch|crop|window|slid|stride|fold|stream|frame|video|capture|stdin|"
    r"input\(|turn|conversation|dialog|history|queue|request|step|epoch|iteration|episode|attempt|retr(?:y|ies)|"
    r"layer|head|level|lvl|scale|stage|block|model|augment|view|seed|trial|device|gpu|rank",
    re.IGNORECASE,
)
#: What there are few of.
OVER_FEW_PARTS = pattern(
    r"layer|head|level|lvl|scale|stage|block|channel|coord|dim|stack|codebook|quantizer|group|chunk|expert|view|order|"
    r"world|device|gpu|class|camera|axis|ndim|spatial|window|kernel",
    re.IGNORECASE,
)
#: What there is a handful of, whatever the data: parts of a model, of a batch, of a machine; what fills up a rest.
HANDFUL = pattern(
    r"(?:^|_)(?:layers?|blocks?|devices?|gpus?|ranks?|experts?|towers?|heads?|groups?|beam\w*|crops?|views?|scales?|levels?|"
    r"stages?|in_?context\w*|few_?shot|shots|demos|branch(?:es)?|folds?|days|modes?|components?|class(?:es)?|categor(?:y|ies)|conds?|conditions?|types?|kwargs|"
    r"modalit(?:y|ies)|pad(?:s|ding)?|dummies|n_?class(?:es)?|spaces?|before|after|unroll|tasks?|"
    r"degrees?|l_?max|m_?max|resolutions?)(?:_|$)",
    re.IGNORECASE,
)
#: What there may be thousands of, also in code that runs once.
MANY = pattern(
    r"loader|dataset|batches|iter|vocab|corpus|data(?:$|_)|(?:^|_)(?:data|samples|sentences|texts|prompts|tokens|examples|"
    r"records|rows|documents|queries|episodes|frames|steps|files|paths|users?|uids?|instances|scenes)(?:_|$)",
    re.IGNORECASE,
)
#: Loops over a data set, which turn often: what is encoded in them is copied as often as there are batches.
OVER_DATA = pattern(r"loader|dataset|batches|iter|range|(?:^|_)data$", re.IGNORECASE)
#: How often something is drawn, by the names of such numbers.
DRAWS_SAMPLES = pattern(r"(?:^|_)(?:samples?|draws?|mc|monte_?carlo|particles?)(?:_|$)", re.IGNORECASE)
#: Loops over epochs, by what they say.
OVER_EPOCHS = pattern(r"for (?:\w*epoch\w*|ep) in .*range\(", re.IGNORECASE)
COUNTS_EPOCHS = pattern(r"range\(.*epochs\b")
EPOCH = pattern(r"epoch", re.IGNORECASE)
#: Among how many processes, devices or workers turns are shared.
PROCESSES = pattern(
    r"_*(?:world_?size|n(?:um)?_?(?:replicas|processes|procs?|ranks|gpus?|devices|workers|shards|nodes)|"
    r"(?:dp|ddp|data_parallel)_(?:world_)?size|nprocs?|nranks|gpu_num|device_count)$",
    re.IGNORECASE,
)
