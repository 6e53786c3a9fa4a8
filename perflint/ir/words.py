"""What the names in a test say of how often it holds: counters, intervals, flags."""

from __future__ import annotations

import re
from functools import lru_cache

from perflint.system.patterns import pattern

#: Of how many names it is remembered what they say.
REMEMBERED = 4096

#: What begins like a counter and is none: how much a batch holds, which process this is.
COUNTER = pattern(
    r"^(?!(?:step|iter|batch|global)_?(?:\w+_)?(?:sizes?|ranks?|world|first|dims?|norm|shape|len|lengths?|lr|rate|loss|time)$)"
    r"(?:i|j|k|n|t|it|idx|ii|bi|ni|tick|cur_tick|step|steps|iter|iters|iteration|iterations|batch|epoch|count|counter|num_updates|"
    r"total_batch_idx|.*_(?:i|idx|index|step|steps|iter|iters|iteration|num|no|count|counter)|(?:step|iter|batch|global)_?\w*|"
    r"\w*(?:_step|Step|Iter)|\w*_(?:step|iter|iteration|batch)_id)$"
)
SHOULD = pattern(
    r"(?:^|_)(?:should|needs?|want|time_to|do|must|is_time_to|if)_(?:\w+_)?"
    r"(?:log|print|save|eval|evaluate|validate|checkpoint|ckpt|vis|visuali[sz]e|plot|report|dump|sample|record|profile)\w*$"
    r"|^_?should_run$|^(?:is_)?(?:log|logging|save|eval|print|report|summary|checkpoint|vis|display|plot)_(?:step|iter|now|this_step|time|due)$"
    r"|every_n\w*|_every_n_|^(?:log|save|print|eval)_(?:due|now)$"
)
DEBUG = pattern(
    r"^(?:debug|_debug|is_debug|debugging|debug_mode|dry_run|profile|profiling|do_profile|sanity_check|verbose_debug)$"
    r"|^_?(?:IS_|DO_)?DEBUG(?:_\w+)?$|^_?debug_(?:assert|check|print)\w*$"
)
#: Flags of what happens once: calibration, lazy set-up. They are on from then on.
DONE = pattern(
    r"(?:^|_)(?:initiali[sz]ed|inited|initted|calibrated|built|set_?up|ready|loaded|prepared|registered|started|wired|"
    r"attached|installed|hooked|patched)$|^_?is_init$"
)
FIRST_TURN = pattern(r"^_?(?:is_)?first_(?:iter|iteration|step|batch|turn|run|time|epoch|call|pass)$")
NUMBER_OF_TURNS = pattern(r"(?:^|_)(?:steps|iters|iterations|updates|epochs)$")
#: Names of the last turn, and of how many there are in all: not of those before something begins or ends.
LAST_TURN = pattern(
    r"^_?(?:is_|at_)(?:the_)?(?:last|final)_(?:iter|iteration|step|batch|turn|epoch|pass)$"
    r"|^(?:last|final)_(?:iter|iteration|step)$"
)
ALL_TURNS = pattern(
    r"^_?(?:max|total)_(?!\w*warm)(?:\w+_)?(?:steps?|iters?|iterations?|batches|updates?)$|"
    r"^_?(?:num|n)_(?:(?:train(?:ing)?|val(?:id)?|eval|test|opt\w*|global|total|inner|outer|inference|sampling|gradient)_)*"
    r"(?:steps|iters|iterations|batches|updates)$"
)
#: When something is due: not what comes after this turn, or after this token.
NEXT = pattern(
    r"^_?next_(?!(?:\w+_)?(?:i|j|t|id|idx|index|tokens?|words?|char|state|obs|action|batch|batch_size|node|pos|position|value)s?$)\w+"
)
#: What counts on through all epochs: not the size of all processes' batches, or the rank among them.
OF_ALL_EPOCHS = pattern(r"(?:^|_)global_?(?:steps?|iter(?:ation)?s?|updates?|count(?:er)?|it)(?:_num|_count)?$")
ONCE = pattern(r"(?:^|_)(?:first|once|initial|report)(?:_|$)")
FAILED = pattern(
    r"(?:^|_)oom(?:$|_)|out_of_memory|^(?:was_)?(?:interrupted|preempted|killed)$"
    r"|^(?:is|has|have|any|found|saw|got|detected|contains)_(?:(?:nan|inf|non_?finite)s?(?:_(?:or_)?(?:nan|inf)s?)?)$"
    r"|^(?:nan|inf|non_?finite)s?_(?:found|detected)$",
    re.IGNORECASE,
)
#: What looks for values that have gone wrong, and says that there are some: `is_loss_nan_check(loss)`.
FINDS_BROKEN = pattern(
    r"^_?(?:is|has|have|any|contains|found|detects?|check)_(?!(?:\w+_)?(?:not?|without)_)(?:\w+_)?"
    r"nans?(?!_(?:free|safe|proof|clean|ok|guard|handling|aware)(?:_|$))(?:_\w+)?$"
)
#: Flags that end a loop, as one arm of a test that few turns pass.
ENDS = pattern(r"^_?(?:(?:should_|early_|force_)*stop(?:ped|_training|_now)?|stopping)$")
SETTINGS = pattern(r"^_?(?:\w+_)?(?:args?|config|cfg|conf|hparams?|opts?|settings|options)$")
#: What answers whether something is due, given the number of the turn: not whether to train, or to guide, at this one.
DUE_AT = pattern(
    r"^_?(?:should|is_time_to|time_to)_(?:compute|run|do|perform|execute|track|collect|measure|probe|monitor|refresh|"
    r"test|check|snapshot|analy[sz]e|diagnose)"
    r"(?:_(?!\w*(?:accum|backward|forward|optim|train|updat|cfg|guidance)|(?:\w+_)?step$)\w+)?$"
)
TURN = pattern(r"^(?:\w+_)?(?:step|steps|iter|iters|iteration|num_updates|batch_idx|batch_index)$")
#: What is another one on every turn: no size that is kept.
TURNS_ON = pattern(r"^(?:\w+_)?(?:step|iter|iteration|batch_(?:idx|index|id))$")
#: The end of an episode, told by the environment, and the keys of what it tells then.
EPISODE_OVER = pattern(r"^(?:dones?|(?:terminat|truncat)(?:ed|ions?)|terminal|episode_(?:over|done))$")
EPISODE_KEYS = frozenset({"episode", "final_info", "_final_info", "final_observation", "terminal_observation"})
NEW_BEST = pattern(r"^(?:is_|new_|found_)?(?:new_)?best(?:_\w+)?$")
SKIPS = pattern(r"(?:^|_)skip_(?:log|save|eval)")
DIVIDES = frozenset({"divisible_by", "is_divisible", "is_divisible_by"})
INTERVAL = pattern(r"every|interval|_per_|freq|period", re.IGNORECASE)
ACCUMULATES = pattern(r"accum|(?:^|_)acc(?:_|$)", re.IGNORECASE)
#: How many turns lie between two steps of training: those that only ask the model or the environment.
TRAINS_EVERY = pattern(
    r"^_?(?:train(?:ing)?|learn(?:ing)?|update|replay|optimi[sz]e\w*|gradient|agent)_?"
    r"(?:every|freq|frequency|interval|period|timesteps?)(?:_(?:n_)?(?:steps?|iters?|frames?|turns?))?$",
    re.IGNORECASE,
)
#: What is not done on every step of the optimizer, however many turns one of these has.
TELLS = pattern(r"(?:^|_)(?:log|print|disp|report|save|eval|valid|summary|ckpt|checkpoint)", re.IGNORECASE)
SINCE = pattern(r"(?:^|_)since(?:_|$)")
#: Variables of the environment that whatever starts the processes sets.
LAUNCHED = pattern(r"(?:^|_)(?:RANK|WORLD_SIZE|PROC_?ID|NODE_?ID|LOCAL_?ID|VISIBLE_DEVICES)$")
CACHE = pattern(r"(?:^|_)(?:cache|cached|memo)(?:_|s?$)", re.IGNORECASE)
#: How much a table holds that grows with the longest input: not how much a cache may hold, which it soon does.
CACHED = pattern(r"(?:^|_)cached(?:_|$)", re.IGNORECASE)
BEST = pattern(r"best|(?:^|_)(?:is_|new_)best|improv", re.IGNORECASE)
#: What only fills a place.
DUMMY = pattern(r"(?:^|_)(?:dummy|placeholder)(?:_|$)")
#: Calls that train what they are of, and what these are called that are trained so.
TEACHES = pattern(
    r"^(?:backward|train_?(?:step|batch|one_batch)|training_step|learn|optimi[sz]e(?:_\w+)?|"
    r"update_(?!\w*(?:target|ema|average|shadow|slow|momentum))"
    r"(?:actor|critic|policy|value|model|agent|networks?|param(?:eter)?s|weights)(?:_\w+)?)$"
)
LEARNER = pattern(
    r"^self$|(?:agent|policy|learner|trainer|algo(?:rithm)?|actor|critic|ppo|sac|dqn|ddpg|td3)s?$", re.IGNORECASE
)
#: Calls that make what is missing.
MAKES_IT = pattern(
    r"^_*(?:lazy_?)?(?:init|build|set_?up|create|fill|load|make|refresh|compute|ensure|start|open)(?:_|$)"
)
#: Numbers of the last turn, as they are written: `last_batch`, `num_steps`, `total_iters`.
LAST_NUMBER = pattern(r"last|^_?max_|^_?num_|^total|^n_|warm_?up")
#: Numbers of the first turn of a run, which may go on where another one ended.
FIRST_NUMBER = pattern(r"(?:^|_)(?:start|first|begin|initial|resume)(?:ed)?(?:_|$)")


# The same few names are tested all over a project: what they say is remembered.
@lru_cache(REMEMBERED)
def is_due(name: str) -> bool:
    return SHOULD.search(name) is not None


@lru_cache(REMEMBERED)
def is_turning_point(name: str) -> bool:
    return EPISODE_OVER.match(name) is not None or NEW_BEST.match(name) is not None


@lru_cache(REMEMBERED)
def is_counted(name: str) -> bool:
    return COUNTER.match(name) is not None


@lru_cache(REMEMBERED)
def is_best(name: str) -> bool:
    return BEST.search(name) is not None
