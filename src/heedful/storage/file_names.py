"""The names of all files and directories in a MODEL and in a RUN."""

from __future__ import annotations

from heedful.manifest import VOCABULARY

MARKER = ".heedful"  # marks a directory that heedful created

# MODEL
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.model"
SOURCE_TOKENIZER, TARGET_TOKENIZER = "source.spm", "target.spm"  # imported from Marian
MARIAN_TOKENIZER = (SOURCE_TOKENIZER, TARGET_TOKENIZER, VOCABULARY)
TOKENIZER_FILES = (TOKENIZER, *MARIAN_TOKENIZER)  # a model has the first or the three others
CONFIG = "config.json"
MODEL_FILES = (CONFIG, *TOKENIZER_FILES, WEIGHTS)
CTRANSLATE2_WEIGHTS = "model.bin"

# RUN
RECIPE = "config.toml"
LOG = "log.jsonl"
DATA = "data"
TRAINING, VALIDATION = "training", "validation"  # token stores in RUN/data
STORES = (TRAINING, VALIDATION)
VERIFIED = "verified.json"  # in RUN/data: which stores were verified
CHECKPOINTS = "checkpoints"
BEST = "best"
AVERAGED = "model"
TENSORBOARD = "tensorboard"
ATTENTION_FIGURE, ATTENTION_PAGE = "attention.png", "attention.html"
RUN_ENTRIES = (
    *(RECIPE, *TOKENIZER_FILES, LOG, DATA, CHECKPOINTS, BEST, AVERAGED),
    *(TENSORBOARD, ATTENTION_FIGURE, ATTENTION_PAGE),
)

# RUN/checkpoints/step-00001000
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
CHECKPOINT_FILES = (WEIGHTS, OPTIMIZER, STATE)
