"""What the modules of each model type do with position: one row per type. A drift test compares them with transformers 5.23.0.

A row says what a configuration does not. `like` names another row, whose entries hold unless this row has them. Entries:

    encoding    rope, or the encoding that the model has instead
    layout      how the released weights are read: half or interleaved; writes: the layout after the rotation, if it differs
    key         a boolean key of the file that decides between `layout` with `writes` and half
    sign        -1 where features rotate clockwise
    rotated_heads  how many heads rotate, where not all of them do
    rotated     first or last: the features of a head that rotate, where not all of them do
    head        the source of the rotated width: head_dim (hidden_size / heads where it is missing), hidden (always this
                quotient), or another key
    partial     the share of the head that rotates if no key says it; absent: the default schedule looks for no share
    scale       of the scores: head, inverse (1 / head width), latent (nope + rope width), yarn (as latent, times the magnitude
                squared), a key, -key (its inverse root), or a number
    beside      False where the class does not read a share of the head that stands beside rope_parameters
    before      the factor of queries before their product with keys: a key, or a power of the width
    keys_before the factor of keys before their rotation, in the same form
    parameters  the rule that makes rope_parameters (posref.explain.parameters)
    without     the rope_parameters of a file that has none
    forward     the positions that the module uses by default, where they are not 0, 1, 2, ..
    kinds       the rule for the kinds of the layers (posref.explain.layer_kinds); layers: another key that counts the layers
    window      kinds with a window: the key of its width, a number added to it, whether it has both sides; after: the key
                that counts later keys, and a number added to it; usual: the width where the file has no such key
    stretched   kinds whose coordinates are scaled so that a whole picture has the range of one window
    nope        which kinds do not rotate, or the key of a list
    class       the type whose code is used, where transformers has no type of this name; with `code`: the class from which
                the classes of this code inherit
    code        for a type that transformers lacks: the code that ships with its checkpoints. file: its repository and path;
                classes: its model classes; defaults: values of its configuration for keys that a file lacks;
                names: {other name of a key: its name}; unused: keys that do not reach its layers
    variants    {row: {key: value, or "given" for any}}, where models of one type differ and no key says how: a file with all
                values of a model gets the row of this model; {} fits every file; a file that fits none is not described
    ntk_length  TeleChat: the length from which its NTK factor is counted, or the key of this length
    generate    the positions in generate(), where they are not those of transformers
    mask_if     a key of the file that hides earlier keys in a way that is not described
    rows        the rule by which a token chooses its row of a learned table: a name in posref.explain.positions.ROWS. Without
                this key token n reads row n. With ALiBi: the position of a token; without it the number of tokens before it
    keys_of     kinds whose sizes have keys of their own: {kind: {usual key: (key of this kind, value without it)}}
    heads_by_layer  the key of a list with the number of heads of each layer
    heads_of, key_heads_of  kinds with another number of heads: the key of the number, and for key heads also its default
    key_heads   one: all query heads share one key head; multi_query: this key says whether they do; attn_config: the number
                is in this dictionary; read: the module reads a key that its class lacks; heads: as many as query heads, always
    inside      {key of a dictionary in the file: {key in this dictionary: the name that the class gives to its value}}; the
                inner dictionary is empty where the class reads nothing of it
    more_key_heads  kinds with that many times the key heads of the file
    decoder_if  the key of the file that makes an encoder a decoder
    asks        False where generate() never gives this module positions
    keys_times  a number that multiplies keys before their product with queries
    around      three keys of the file: how many tokens a chunk has, and how many keys a query sees to the left and to the right
    long_window the window of every second layer with a window, unless the file has per_layer_config
    chunks      {before, after: a key of the file}: how many chunks before or after its own chunk a query sees, or a list of the
                layers whose queries see one such chunk
    norm        of queries and keys (not of latents they are made of): before or after the rotation; norm_if: a boolean key of
                the file that decides it; norm_of: "turned" for layers that rotate, or kinds
    indexer     the layout of its pairs; shared_selection: the file says which layers lack one and use keys of the last one
    grid        of Swin: keys of the sides of the picture and of a patch; stages: equal, where no stage merges patches
    shifts      everywhere: every second layer shifts its windows; else it shifts them only if one window does not cover the
                picture, the image_size ("by the file"), or a picture of the one size that all have ("by one picture")
    file        FILE of modeling_FILE.py where it is not the module's name, or a whole file name that ends in .py
    cached      positions after a cache, for models that do not continue the count
    state       layers that keep a state (posref.explain.state_layers): the op of posref.state, formulas that give its arguments
                from the trained numbers, sizes, and the convolution before it
    read        kinds of attention that posref describes; absent: all
    input       learned, where a learned table is added to the patches before the first layer, beside the rotation
    only        {key: values}: a file with another value, also within a list, is not described; "given": any value but none
    encoder, decoder, crossing  encoding of these layers, where it is not `encoding`; crossing: the attention to the encoder;
                crossing_wider: the factor by which the heads of this attention are wider
    also        the bias that a model with a table at the input also adds to the scores
    buckets, reach  the keys of T5's bias, where they have other names; gated: its rows have a gate
    table_of    which layers have this table; segments: two keys of the file, for the number of segments (each pair of segments
                has a row of the table), and for the number of trained tokens before the text (a segment of their own)
    boxes       which numbers of boxes T5's buckets use; box_buckets: keys or values of their number and their max_distance;
                of_places: the same two for tokens, where no key says them
    rows_key    the key of the number of rows of a table
    whole       the key of the width of all heads together, if not hidden_size; of several keys, the first with a value
    towers      further layers of the same file: {their part: what differs from this row, and `keys`, the names of their keys}
    cross       True where each layer of a decoder also attends to an encoder; or the key that says which layers do; False where
                this attention is not described
    crossing_sizes  {size: its key} of the attention to an encoder, for the sizes that differ from those of self-attention
    shared      True where all layers have the same weights; times: the key that multiplies the number of layers
    base        of 2-D sinusoids: a key or a number
    text        which rows the tokens of the text have, where other tokens stand beside them
    staged      {key: value} for the layers, the width and the heads of each stage, in this order; a fourth key: the width of a
                head. The value is the list that stands where the file has none, or the key of the factor from stage to stage
    table       number of rows of the table, where the file does not say it
    per_head    features per head, where no key says how many heads there are
    fewer_heads the factor by which heads of the same width are fewer than the file says
    vectors     of Shaw: keys of the largest offset to the left and to the right, and which offset; beyond: 0, where
                larger offsets have no vector; fewer: how much smaller the largest offset to the left is than its key says
    patches     which rows patches have, where each patch does not have a row of its own
    sees        per stack, which keys a query sees beside those of the mask; mask: why the mask is not described
    encoding_if  {key: encoding}: the first key that is set in the file decides; encoding_else: the encoding if none is set
    others      sinks, softcap, temperature, axes, chunk

The source of a row is models/MODULE/modeling_MODULE.py of transformers, with the module that `types.json` names, or the file
that its `code` names.

`UNKNOWN` is the row of every other type: posref describes nothing of it.
"""

import math
from typing import Any

UNKNOWN = {"encoding": None}
SLIDING = {"key": "sliding_window", "kinds": ["sliding_attention"]}
EVERY = {"key": "sliding_window"}
SIZES_OF_A_STACK = ("hidden_size", "num_attention_heads", "num_hidden_layers")
ONE_STACK = {"stacks": "one", "causal": False}
BUILT_FOR_SPEECH = "classes that write text do not build these layers"
AFTER_SOUND = (
    "with add_adapter, convolutions shorten the sequence of frames; then num_adapter_layers layers of attention without "
    "position read the frames. Classes that read text alone do not build these layers"
)
OF_SOUND = {
    **ONE_STACK,
    "keys": {"num_hidden_layers": "speech_encoder_layers", "num_attention_heads": "speech_encoder_attention_heads"},
    "sees": {"": AFTER_SOUND},
}
TO_UNITS = {
    "encoding": "none",
    "head": "hidden",
    "kinds": {"keys": ()},
    "causal": False,
    "keys": {"num_hidden_layers": "t2u_encoder_layers", "num_attention_heads": "t2u_encoder_attention_heads"},
    "sees": {"": f"the tokens are the states of the text decoder. {BUILT_FOR_SPEECH.capitalize()}"},
}
UNITS = {"pad_token_id": "t2u_pad_token_id", "max_target_positions": "t2u_max_position_embeddings"}
HALVED = {"key": "attention_window", "halved": True, "plus": 1, "stack": "encoder"}
MLA = {
    "layout": "interleaved",
    "writes": "half",
    "head": "qk_rope_head_dim",
    "rotated": "last",
    "scale": "yarn",
    "norm": None,
}
AXIAL = {
    "encoding": "rope",
    "layout": "half",
    "head": "head_dim",
    "scale": "head",
    "parameters": "axial",
    "axes": "hw",
    "causal": False,
}
GATE = "-exp(A_log) * softplus({} + dt_bias)"
GATED_DELTA: dict[str, Any] = {
    "call": "delta.recurrent",
    "value_heads": "linear_num_value_heads",
    "key_heads": "linear_num_key_heads",
    "key_width": "linear_key_head_dim",
    "value_width": "linear_value_head_dim",
    "log_decay": GATE.format("a"),
    "decay_per": "value head",
    "strength": "sigmoid(b)",
    "unit": 1e-6,
    "convolution": {
        "of": ["queries", "keys", "values"],
        "width": "linear_conv_kernel_dim",
        "activation": "hidden_act",
        "bias": False,
    },
    "chunk": 64,
}
KIMI_DELTA: dict[str, Any] = {
    **GATED_DELTA,
    "value_heads": "linear_attn_config.num_heads linear_num_heads",
    "key_heads": "value_heads",
    "key_width": "linear_attn_config.head_dim linear_head_dim",
    "value_width": "key_width",
    "log_decay": GATE.format("f"),
    "decay_per": "feature of the keys",
    "convolution": {
        **GATED_DELTA["convolution"],
        "width": "linear_attn_config.short_conv_kernel_size linear_conv_kernel_dim",
    },
}
GLM_BOUND = "linear_attn_config.gate_lower_bound linear_lower_bound"
SAFE_GATE = "{%s} * sigmoid(exp(A_log) * (f + dt_bias))"
MAMBA_2: dict[str, Any] = {
    "call": "gated.recurrent",
    "inner": "expand*hidden_size",
    "value_heads": "num_heads",
    "key_heads": "n_groups",
    "key_width": "state_size",
    "value_width": "head_dim",
    "limits": "time_step_limit",
    "step": "softplus(dt + dt_bias)",
    "log_decay": "-exp(A_log) * step",
    "decay_per": "value head",
    "values": "step * x",
    "skip": "D * x",
    "scale": 1.0,
    "convolution": {
        "of": ["queries", "keys", "values"],
        "width": "conv_kernel",
        "activation": "hidden_act",
        "bias": "use_conv_bias",
    },
    "chunk": "chunk_size",
}
BAMBA: dict[str, Any] = {
    **MAMBA_2,
    "inner": "mamba_expand*hidden_size",
    "value_heads": "mamba_n_heads",
    "key_heads": "mamba_n_groups",
    "key_width": "mamba_d_state",
    "value_width": "mamba_d_head mamba_expand*hidden_size/value_heads",
    "convolution": {**MAMBA_2["convolution"], "width": "mamba_d_conv", "bias": "mamba_conv_bias"},
    "chunk": "mamba_chunk_size",
}
MAMBA_1: dict[str, Any] = {
    **{name: rule for name, rule in MAMBA_2.items() if name not in ("limits", "chunk", "inner")},
    "value_heads": "expand*hidden_size",
    "key_heads": 1,
    "value_width": 1,
    "decay_per": "value and feature of the keys",
    "gated": "silu(z)",
    "convolution": {**MAMBA_2["convolution"], "of": ["values"]},
}
JAMBA: dict[str, Any] = {
    **MAMBA_1,
    "value_heads": "mamba_expand*hidden_size",
    "key_width": "mamba_d_state",
    "convolution": {**MAMBA_1["convolution"], "width": "mamba_d_conv", "bias": "mamba_conv_bias"},
}
QUERIES_JOIN = (
    "not described: all tokens see each other; trained queries join before the last num_blocks layers, where a mask that "
    "the model predicts may hide patches from them"
)
NORMED_STATE = "keys, queries, and what dt is projected from, go through an RMS norm"
LIGHTNING: dict[str, Any] = {
    "call": "retention.recurrent",
    "value_heads": "num_attention_heads",
    "key_heads": "value_heads",
    "key_width": "head_dim hidden_size/num_attention_heads",
    "value_width": "key_width",
    "log_decay": "-(2 ** (-8 * (h + 1) / {value_heads})) * (1 - i / ({num_hidden_layers} - 1 + 1e-5) + 1e-5)",
    "decay_per": "head h of layer i",
    "activation": "hidden_act",
    "scale": 1.0,
    "chunk": "block_size",
}
SHORT: dict[str, Any] = {
    "call": "convolution.causal",
    "kinds": ["conv"],
    "convolution": {
        "of": ["B * x"],
        "width": "conv_L_cache",
        "activation": None,
        "bias": "conv_bias",
        "gated": "C",
    },
}
RG_LRU: dict[str, Any] = {
    "call": "gated.recurrent",
    "value_heads": "lru_width hidden_size",
    "key_heads": 1,
    "key_width": 1,
    "value_width": 1,
    "keys": "k = q = 1",
    "log_decay": "where(p > 0, -8 * sigmoid(r) * softplus(recurrent_param), -inf)",
    "decay_per": "value: position 0 empties the state",
    "values": "sqrt(1 - decay ** 2) * sigmoid(g) * x",
    "scale": 1.0,
    "convolution": {"of": ["values"], "width": "conv1d_width", "activation": None, "bias": True},
}
DOTS3_WIDTHS = {"head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64}
LLAMA4_ROPE = {"factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096}
SIZES = {  # of Baichuan
    "7B": {"hidden_size": 4096, "num_hidden_layers": 32},
    "13B": {"hidden_size": 5120, "num_hidden_layers": 40},
}
OLD_TOKENS = "position_ids.padded(mask, filler=1)"  # of generate() in transformers 4
TASKS = ("CausalLM", "SequenceClassification", "TokenClassification", "QuestionAnswering")
GEMMA4_ROPE = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
}

FAMILIES: dict[str, dict[str, Any]] = {
    # a type that posref does not know, with a base in its file: only its frequencies are described
    "keys alone": {
        "encoding": "rope",
        "layout": None,
        "head": "head_dim",
        "partial": 1.0,
        "scale": None,
        "parameters": "minimax_m2",
        "causal": None,
    },
    "llama": {"encoding": "rope", "layout": "half", "head": "head_dim", "scale": "head", "parameters": "flat", "causal": True},
    "partial": {"like": "llama", "partial": 1.0},
    "interleaved": {"like": "llama", "layout": "interleaved"},
    "windowed": {"like": "llama", "window": SLIDING},
    # one window for all layers
    "mistral": {"like": "llama", "window": EVERY},
    "mixtral": {"like": "mistral"},
    "starcoder2": {"like": "mistral"},
    "ministral3": {
        "like": "mistral",
        "without": {
            "type": "yarn",
            "rope_theta": 1000000.0,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale_all_dim": 1.0,
            "mscale": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
        "temperature": "ministral3",
    },
    "ministral": {"like": "windowed", "kinds": {"rule": "ministral"}},
    "phi3": {"like": "mistral", "partial": 1.0, "parameters": "phi3"},
    "phi4_multimodal": {"like": "phi3"},
    "phimoe": {"like": "mistral", "magnitudes": ("short_mscale", "long_mscale")},
    "olmoe": {"like": "llama", "norm": "before"},
    "minimax": {"like": "mistral", "kinds": {"every": 2, "at": 0, "else": "linear_attention"}, "state": LIGHTNING},
    "recurrent_gemma": {
        "state": RG_LRU,
        "like": "mistral",
        "partial": 0.5,
        "kinds": {"rule": "recurrent_gemma", "keys": ()},
        "window": EVERY,
    },
    "qwen3_moe": {"like": "mistral", "window": {"key": "sliding_window", "if": "use_sliding_window"}, "norm": "before"},
    # layers of two kinds
    "qwen2": {"like": "windowed", "kinds": {"rule": "qwen2"}},
    "qwen3": {"like": "qwen2", "norm": "before"},
    "dots1": {"like": "windowed", "kinds": {"rule": "dots1"}, "norm": "before"},
    "qwen2_moe": {
        "like": "windowed",
        "kinds": {"rule": "qwen2_moe"},
        "window": {**SLIDING, "zero_unless": "use_sliding_window"},
    },
    "cwm": {
        "like": "windowed",
        "kinds": {"every": 4, "at": 0},
        "without": {
            "rope_type": "llama3",
            "rope_theta": 1000000.0,
            "factor": 16.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 8192,
        },
    },
    "gpt_oss": {
        "like": "windowed",
        "kinds": {"every": 2},
        "sinks": True,
        "without": {"rope_type": "yarn", **LLAMA4_ROPE},
    },
    "openai_privacy_filter": {
        "like": "gpt_oss",
        "layout": "interleaved",
        "kinds": {},
        "window": {"key": "sliding_window", "plus": 1, "sides": "both"},
        "scale": 1.0,
        "before": -0.25,
        "keys_before": -0.25,
        "causal": False,
    },
    "afmoe": {
        "like": "windowed",
        "kinds": {"every": 4, "key": "global_attn_every_n_layers"},
        "nope": ["full_attention"],
        "norm": "before",
    },
    "smollm3": {
        "like": "windowed",
        "kinds": {"rule": "smollm3"},
        "window": {**SLIDING, "if": "use_sliding_window"},
        "nope": "no_rope_layers",
    },
    "llama4_text": {
        "like": "interleaved",
        "kinds": {"rule": "llama4"},
        "nope": "no_rope_layers",
        "chunk": "attention_chunk_size",
        "norm": "after",
        "norm_if": "use_qk_norm",
        "norm_of": "turned",
        "temperature": "llama4",
    },
    "cohere": {"like": "interleaved", "norm": "before", "norm_if": "use_qk_norm"},
    "cohere2": {
        "like": "interleaved",
        "kinds": {"every": 4, "key": "sliding_window_pattern"},
        "window": SLIDING,
        "nope": ["full_attention"],
    },
    "cohere2_moe": {
        "like": "cohere2",
        "kinds": {"rule": "cohere2_moe"},
        "nope": "cohere2_moe",
        "parameters": "without_scaling",
    },
    "exaone4": {"like": "windowed", "kinds": {"rule": "exaone4"}, "nope": "unless_windowed", "norm": "before"},
    "exaone_moe": {"like": "exaone4"},
    "kolibri1": {"like": "windowed", "kinds": {"every": 5}, "nope": "unless_windowed", "norm": "before"},
    "flint": {"like": "windowed", "kinds": {"rule": "flint"}, "nope": ["full_attention"], "sinks": True, "norm": "before"},
    "granite_swa": {
        "like": "windowed",
        "scale": "attention_multiplier",
        "kinds": {"every": 4, "at": 0},
        "sinks": True,
        "parameters": "by_layer",
    },
    "granitemoe_swa": {"like": "granite_swa"},
    "muse_glimmer_text": {
        "like": "windowed",
        "kinds": {"every": 4, "at": 0, "from_end": True},
        "nope": "muse",
        "norm": "before",
        "before": "qk_scale_factor",
    },
    "muse_spark_text": {"like": "muse_glimmer_text", "without": {"rope_theta": 500000.0}},
    "muse_glimmer_assistant": {"like": "windowed", "kinds": {"all": "sliding_attention"}, "norm": "before", "asks": False},
    # two bases
    "gemma": {"like": "llama"},
    "gemma2": {
        "like": "windowed",
        "kinds": {"every": 2},
        "scale": "-query_pre_attn_scalar",
        "softcap": "attn_logit_softcapping",
    },
    "vaultgemma": {"like": "gemma2"},
    "t5_gemma_module": {"like": "gemma2", "causal": None},
    "gemma3_text": {
        "like": "windowed",
        "kinds": {"every": 6, "key": "sliding_window_pattern"},
        "scale": "-query_pre_attn_scalar",
        "parameters": "gemma3",
        "norm": "before",
        "both_if": "use_bidirectional_attention",
    },
    "t5gemma2_text": {"like": "gemma3_text", "causal": False},
    "t5gemma2_decoder": {"like": "gemma3_text"},
    "gemma3n_text": {"like": "gemma3_text", "kinds": {"every": 5}, "scale": 1.0},
    "gemma4_text": {
        "like": "windowed",
        "kinds": {"every": 6, "last": "full_attention"},
        "scale": 1.0,
        "parameters": "given",
        "without": GEMMA4_ROPE,
        "head_of": {"full_attention": ("global_head_dim", 512)},
        "key_heads_of": {"full_attention": ("num_global_key_value_heads", None)},
        "norm": "before",
        "both_if": "use_bidirectional_attention",
    },
    "gemma4_unified_text": {"like": "gemma4_text"},
    "hrm_text": {"like": "llama", "kinds": {"layers": "num_layers_per_stack"}},
    "diffusion_gemma_text": {"like": "gemma4_text", "partial": 1.0, "asks": False},
    "embedding_gemma2_text": {
        "like": "gemma4_text",
        "key_heads_of": {"full_attention": ("num_global_key_value_heads", 1)},
        "window": {**SLIDING, "plus": 1, "sides": "both"},
        "kinds": {"every": 6, "key": "sliding_window_pattern", "last": "full_attention"},
        "without": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        "both_if": None,
        "causal": False,
    },
    "olmo3": {"like": "windowed", "kinds": {"every": 4}, "parameters": "olmo3", "norm": "before"},
    "modernbert": {
        "like": "llama",
        "head": "hidden",
        "kinds": {"every": 3, "key": "global_attn_every_n_layers", "at": 0},
        "window": {
            "key": "local_attention",
            "halved": True,
            "plus": 1,
            "kinds": ["sliding_attention"],
            "sides": "both",
            "instead": "sliding_window",  # half of local_attention
            "instead_plus": 1,
        },
        "parameters": "modernbert",
        "causal": False,
    },
    "modernbert-decoder": {
        "like": "modernbert",
        "window": {
            "key": "local_attention",
            "halved": True,
            "kinds": ["sliding_attention"],
            "instead": "sliding_window",
            "instead_plus": 0,
        },
        "causal": True,
    },
    "mimo_v2_flash": {
        "like": "windowed",
        "partial": 0.334,
        "kinds": {"every": 6, "also": (0,)},
        "parameters": "given",
        "without": {
            "full_attention": {"rope_type": "default", "rope_theta": 5000000.0, "partial_rotary_factor": 0.334},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.334},
        },
        "window": {**SLIDING, "instead": "sliding_window_size", "instead_plus": 1},
        "sinks": ["sliding_attention"],
        "more_key_heads": {"sliding_attention": 2},
    },
    "laguna": {
        "like": "windowed",
        "heads_by_layer": "num_attention_heads_per_layer",
        "partial": 1.0,
        "parameters": "given",
        "without": {
            "full_attention": {"rope_type": "default", "rope_theta": 500000.0, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        },
        "norm": "before",
    },
    "mellum": {
        "like": "windowed",
        "partial": 1.0,
        "beside": False,
        "parameters": "given",
        "without": {
            "full_attention": {"rope_type": "default", "rope_theta": 500000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "norm": "before",
    },
    "beam": {
        "like": "windowed",
        "temperature": "beam",
        "kinds": {"every": 6, "also": (-1,)},
        "parameters": "given",
        "without": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}, "full_attention": None},
        "norm": "before",
    },
    "step3p5": {
        "like": "windowed",
        "partial": 1.0,
        "scale": "-query_pre_attn_scalar",
        "scale_without": "head_dim",
        "parameters": "step3p5",
        "heads_of": {"sliding_attention": "num_sliding_attention_heads"},
        "norm": "before",
    },
    "ultrabert": {
        "like": "windowed",
        "kinds": {"rule": "ultrabert"},
        "window": {**SLIDING, "plus": 1, "sides": "both"},
        "parameters": "ultrabert",
        "without": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "default", "rope_theta": 2560000.0},
        },
        "causal": False,
    },
    "lfm3": {
        "state": SHORT,
        "like": "windowed",
        "kinds": {"rule": "lfm3"},
        "parameters": "lfm3",
        "without": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.5},
        },
        "norm": "before",
    },
    "neomme": {
        "like": "llama",
        "partial": 1.0,
        "kinds": {"every": 6, "also": (-1,)},
        "long_window": 1024,
        "axes": "in_turn",
        "parameters": "filled",
        "without": {
            "full_attention": {"rope_type": "default", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        },
        "norm": "before",
        "causal": False,
        "patches": "row and column of each patch, counted by the processor; a token of a text has equal positions on both axes",
    },
    "zaya": {
        "like": "llama",
        "partial": 1.0,
        "kinds": {"all": "hybrid"},
        "window": {"key": "sliding_window", "kinds": ["hybrid_sliding"]},
        "parameters": "given",
        "without": {
            "hybrid": {"rope_type": "default", "rope_theta": 5000000.0, "partial_rotary_factor": 0.5},
            "hybrid_sliding": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        },
        "norm": "before",
    },
    "inkling2_text": {
        "like": "llama",
        "encoding": "none",
        "instead": "inkling",
        "kinds": {"every": 6, "then": "hybrid", "else": "hybrid_sliding"},
        "only": {"layer_types": (None, "hybrid", "hybrid_sliding")},  # others: heads of the first, mask of the second
        "window": {"key": "sliding_window", "kinds": ["hybrid_sliding"]},
        "heads_of": {"hybrid_sliding": "swa_num_attention_heads"},
        "key_heads_of": {"hybrid_sliding": ("swa_num_key_value_heads", None)},
        "head_of": {"hybrid_sliding": ("swa_head_dim", None)},
        "temperature": "inkling",
        "sees": {
            "": "and a sink, whose score the query's token projects. Queries and keys longer than qk_l2_clip_threshold are "
            "shortened to this length, and what mixes the curves to rel_l2_clip_threshold. Not described: convolutions of keys "
            "and values, in hybrid layers with weights that the token projects, and of outputs (modeling_inkling2.py)"
        },
    },
    "inkling_text": {
        "like": "inkling2_text",
        "kinds": {"rule": "inkling"},
        "scale": "inverse",
        "norm": "before",
        "asks": False,  # it counts places in the cache
        "sees": {},
        "state": {
            "call": "convolution.causal",
            "kinds": ["hybrid", "hybrid_sliding"],
            "convolution": {
                "of": ["keys", "values", "outputs of attention and MLP"],
                "width": "conv_kernel_size",
                "activation": None,
                "bias": False,
                "added": True,
            },
        },
    },
    # another scale
    "granite": {"like": "llama", "scale": "attention_multiplier"},
    "hyperclovax": {"like": "llama", "scale": "attention_multiplier", "scale_without": "head_dim"},
    "granitemoehybrid": {
        "state": BAMBA,
        "like": "granite",
        "kinds": {"all": "linear_attention", "keys": ("layer_types", "layers_block_type")},
        "nope": "position_embedding_type",
    },
    "cohere_compass_text": {
        "like": "windowed",
        "kinds": {"all": "full_attention"},
        "axes": "interleaved",
        "sections": [24, 20, 20],
        "parameters": "given",
        "only": {"rope_parameters": "given"},
    },
    "mllama_text_model": {
        "like": "llama",
        "head": "hidden",
        "kinds": {"rule": "mllama"},
        "nope": ["cross_attention"],
        "norm": "before",
        "norm_of": ["cross_attention"],
    },
    "higgs_audio_v2": {
        "like": "llama",
        "without": {
            "factor": 32.0,
            "rope_theta": 500000.0,
            "high_freq_factor": 0.5,
            "low_freq_factor": 0.125,
            "original_max_position_embeddings": 1024,
            "rope_type": "llama3",
        },
    },
    "jetmoe": {"like": "llama", "head": "kv_channels", "tiled": ("num_experts_per_tok", 2)},  # the keys are repeated as a whole
    "dia_encoder": {"like": "llama", "scale": 1.0, "causal": False},
    "dia_decoder": {
        "like": "llama",
        "scale": 1.0,
        "asks": False,
        "cross": True,
        "crossing_sizes": {
            "heads": "cross_num_attention_heads",
            "kv_heads": "cross_num_key_value_heads",
            "head_dim": "cross_head_dim",
        },
    },
    "zamba2": {
        "state": {
            **BAMBA,
            "kinds": ["linear_attention", "hybrid"],
            "value_heads": "n_mamba_heads",
            "key_heads": "mamba_ngroups",
            "value_width": "mamba_expand*hidden_size/value_heads",
            "limits": "time_step_min",
            "convolution": {**BAMBA["convolution"], "activation": "silu", "bias": True},
            "chunk": "chunk_size",
        },
        "like": "llama",
        "kinds": {"rule": "zamba2", "keys": ("layers_block_type",)},
        "head": "zamba2",
        "scale": "zamba2",
        "nope": "use_mem_rope",
    },
    "qwen2_5_omni_dit": {
        "like": "interleaved",
        "writes": "half",
        "rotated_heads": 1,
        "kinds": {"all": "chunked_attention", "keys": ()},
        "chunk": "block_size",
        "chunks": {"before": "look_backward_layers", "after": "look_ahead_layers"},
        "causal": False,
    },
    "nanochat": {"like": "llama", "sign": -1, "norm": "after"},
    # only part of a head rotates
    "gpt_neox": {"like": "partial", "parameters": "gpt_neox", "partial": 0.25, "head": "hidden"},
    "gpt_neox_japanese": {"like": "gpt_neox", "partial": 1.0},
    "phi": {"like": "partial", "partial": 0.5, "norm": "before", "norm_if": "qk_layernorm"},
    "persimmon": {"like": "phi", "head": "hidden"},
    "stablelm": {"like": "persimmon", "partial": 0.25},
    "nemotron": {"like": "partial", "partial": 0.5},
    "glm": {"like": "partial", "partial": 0.5, "layout": "interleaved"},
    "glm4": {"like": "glm"},
    "glm4_moe": {"like": "partial", "partial": 0.5, "norm": "before", "norm_if": "use_qk_norm"},
    "solar_open": {"like": "partial"},
    "bamba": {"cached": "arange(n)", "like": "partial", "partial": 0.5, "kinds": {"rule": "bamba", "keys": ()}, "state": BAMBA},
    "minimax_m2": {"like": "partial", "parameters": "minimax_m2", "norm": "before"},
    "minimax_m3_vl_text": {"like": "partial", "norm": "before", "kinds": {"rule": "minimax_m3"}},
    "qwen3_next": {
        "state": GATED_DELTA,
        "like": "partial",
        "partial": 0.25,
        "kinds": {"every": 4, "key": "full_attention_interval", "else": "linear_attention"},
        "norm": "before",
    },
    "qwen3_5_text": {"like": "qwen3_next", "axes": "interleaved", "sections": [11, 11, 10]},
    "qwen3_5_moe_text": {"like": "qwen3_5_text"},
    "moonshine": {
        "like": "glm",
        "partial": 0.9,
        "cross": True,
        # the encoder writes its number of heads into the configuration of the decoder; released models have one for both
        "only": {"encoder_num_attention_heads": (8,), "decoder_num_attention_heads": (8,)},
        "towers": {
            "encoder": {
                "causal": False,
                "cross": False,
                "keys": {
                    f"num_{name}": f"encoder_num_{name}" for name in ("hidden_layers", "attention_heads", "key_value_heads")
                },
            }
        },
    },
    "moonshine_streaming": {
        "like": "glm",
        "partial": 1.0,
        "without": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.8},
        "cross": True,
        "crossing": "learned",
        "key_heads": "read",
    },
    "evolla": {
        "like": "llama",
        "head": "hidden",
        "sees": {
            "": "after each (num_hidden_layers // aligner_num_add_layers)th layer tokens read latents of "
            "proteins, without position"
        },
    },
    "EvollaModel": {"like": "evolla"},
    "eomt_dinov3": {"like": "dinov3_vit", "mask": QUERIES_JOIN},
    "hy_v3": {"like": "llama", "norm": "before"},
    "dbrx": {"like": "llama", "head": "hidden", "key_heads": "attn_config"},
    # hybrids
    "jamba": {
        "like": "llama",
        "encoding": "none",
        "kinds": {"rule": "jamba", "keys": ()},
        "state": {**JAMBA, "normed": NORMED_STATE},
    },
    "nemotron_h": {
        "state": {
            **MAMBA_2,
            "inner": "mamba_num_heads*mamba_head_dim",
            "value_heads": "mamba_num_heads",
            "key_width": "ssm_state_size",
            "value_width": "mamba_head_dim",
            "limits": "time_step_min",
            "convolution": {**MAMBA_2["convolution"], "activation": "mamba_hidden_act"},
        },
        "like": "llama",
        "encoding": "none",
        "kinds": {"rule": "nemotron_h", "keys": ("layer_types", "layers_block_type")},
    },
    "zamba": {
        "state": {
            **JAMBA,
            "kinds": ["linear_attention", "hybrid"],
            "key_heads": "n_mamba_heads",
            "convolution": {**JAMBA["convolution"], "activation": "hidden_mamba_act"},
        },
        "like": "llama",
        "encoding": "none",
        "kinds": {"rule": "zamba", "keys": ("layers_block_type",)},
        "head": "zamba",
        "scale": "zamba2",
    },
    "falcon_h1": {
        "like": "llama",
        "kinds": {"all": "hybrid", "keys": ()},
        "state": {
            **BAMBA,
            "kinds": ["hybrid"],
            "inner": "mamba_d_ssm mamba_expand*hidden_size",
            "value_width": "mamba_d_head mamba_d_ssm/value_heads mamba_expand*hidden_size/value_heads",
            "multipliers": {
                name: f"ssm_in_multiplier*ssm_multipliers.{i} ssm_in_multiplier"
                for i, name in enumerate(("x", "keys", "queries", "dt"), 1)
            },
        },
        "keys_before": "key_multiplier",
    },
    "lfm2": {"like": "llama", "kinds": {"rule": "lfm2"}, "norm": "before", "state": SHORT},
    "lfm2_moe": {"like": "lfm2"},
    "olmo_hybrid": {
        "state": {
            **GATED_DELTA,
            "value_heads": "linear_num_value_heads num_attention_heads",
            "key_heads": "linear_num_key_heads num_attention_heads",
            "key_width": "linear_key_head_dim 0.75*hidden_size/key_heads",
            "value_width": "linear_value_head_dim 2*key_width",
            "strength": ("linear_allow_neg_eigval", "2 * sigmoid(b)", "sigmoid(b)"),
        },
        "like": "llama",
        "kinds": {"every": 4, "else": "linear_attention"},
        "norm": "before",
        "nope": "no_base",
    },
    "mamba2": {"like": "states", "state": MAMBA_2},
    "mamba": {"like": "states", "state": MAMBA_1},
    "falcon_mamba": {"like": "mamba", "state": {**MAMBA_1, "normed": NORMED_STATE}},
    "qwen4_exp_text": {
        "like": "qwen3_next",
        "kinds": {"every": 4, "key": "full_attention_interval", "then": "indexed_attention", "else": "linear_attention"},
        "read": [],
    },
    "glm5_next_text": {
        "like": "llama",
        "kinds": {"every": 4, "then": "indexed_attention", "else": "linear_attention"},
        "read": [],
        "state": {
            **KIMI_DELTA,
            "log_decay": (GLM_BOUND, SAFE_GATE % GLM_BOUND, GATE.format("f")),
        },
    },
    "states": {"like": "llama", "encoding": "none", "kinds": {"all": "linear_attention", "keys": ()}},  # in every layer
    # latent attention
    "deepseek_v2": {"like": "llama", **MLA, "writes": "interleaved"},
    "deepseek_v3": {"like": "llama", **MLA, "key": "rope_interleave"},
    "kimi_k2": {"like": "deepseek_v3", "class": "deepseek_v3"},
    "deepseek_v32": {"like": "llama", **MLA, "kinds": {"all": "indexed_attention", "keys": ()}, "indexer": "half"},
    "minicpm3": {"like": "llama", **MLA, "layout": "half"},
    "glm4_moe_lite": {"like": "deepseek_v3"},
    "youtu": {"like": "deepseek_v3"},
    "axk1": {"like": "deepseek_v3"},
    "axk2": {"like": "deepseek_v32"},
    "hy_v4": {"like": "deepseek_v32", "layout": "half", "sinks": True, "indexer": None},
    "glm_moe_dsa": {"like": "deepseek_v32", "indexer": "interleaved_to_half", "shared_selection": True},
    "dots3_note_text": {
        "like": "llama",
        **MLA,
        "scale": "latent",
        "kinds": {
            **{"every": 4, "at": 1, "also": (0,), "then": "indexed_attention"},
            "named": {"full_attention": "indexed_attention"},
        },
        "only": {
            **dict.fromkeys(("use_dsa", "use_sliding_window"), (None, True)),
            **{f"swa_{name}": (None, width) for name, width in DOTS3_WIDTHS.items()},
            **dict.fromkeys(("per_layer_config", "rope_scaling"), (None,)),
        },
        "keys_of": {
            "sliding_attention": {
                **{name: (f"swa_{name}", 64) for name in ("num_attention_heads", "num_key_value_heads")},
                **{name: (f"swa_{name}", width) for name, width in DOTS3_WIDTHS.items()},
                **{
                    name: (f"swa_{name}", width)
                    for name, width in (("v_head_dim", 128), ("q_lora_rank", 1024), ("kv_lora_rank", 1024))
                },
            }
        },
        "window": {**SLIDING, "usual": 512},
        "indexer": "interleaved_to_half",
        "parameters": "dots3",
        "sees": {"": "all heads share the rotated features of a key, which are normed before the rotation"},
    },
    "longcat_flash": {"like": "llama", **MLA, "kinds": {"layers": "num_layers"}},
    "bailing_hybrid": {
        "like": "deepseek_v3",
        "kinds": {"rule": "bailing"},
        "state": {
            **KIMI_DELTA,
            "value_heads": "num_attention_heads",
            "key_width": "head_dim",
            "log_decay": ("kda_safe_gate", SAFE_GATE % "kda_lower_bound", GATE.format("f")),
            "convolution": {**KIMI_DELTA["convolution"], "width": "short_conv_kernel_size"},
        },
    },
    "mistral4": {
        "like": "deepseek_v3",
        "head": "latent",
        "temperature": "ministral3",
        "parameters": "mistral4",
        "without": {
            "type": "yarn",
            "rope_theta": 10000.0,
            "factor": 128.0,
            "original_max_position_embeddings": 8192,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale_all_dim": 1.0,
            "mscale": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    },
    "kimi_linear": {
        "state": KIMI_DELTA,
        "like": "llama",
        "encoding": "none",
        "kinds": {"rule": "kimi_linear"},
        "scale": "latent",
        "head": "qk_rope_head_dim",
    },
    "deepseek_v4": {
        "like": "interleaved",
        "rotated": "last",
        "kinds": {"rule": "deepseek_v4"},
        "parameters": "deepseek_v4",
        "partial": 0.125,
        "window": EVERY,
        "sinks": True,
        "undo": True,
        "norm": "before",
        "key_heads": "one",
    },
    # more than one axis
    "qwen2_vl_text": {"like": "qwen2", "head": "hidden", "parameters": "mrope", "axes": "sections"},
    "qwen2_5_vl_text": {"like": "qwen2_vl_text"},
    "qwen2_5_omni_text": {"like": "qwen2", "axes": "sections"},
    "qwen2_5_omni_talker": {"like": "qwen2_5_omni_text"},
    "qwen3_vl_text": {"like": "llama", "axes": "interleaved", "sections": [24, 20, 20], "norm": "before"},
    "qwen3_vl_moe_text": {"like": "qwen3_vl_text"},
    "qwen3_omni_moe_text": {"like": "qwen3_vl_text"},
    "paddleocr_vl_text": {"like": "llama", "axes": "sections"},
    "glm4v_text": {
        "like": "partial",
        "layout": "interleaved",
        "axes": "sections",
        "sections": [8, 12, 12],
        "head": "hidden",
    },
    "glm_ocr_text": {"like": "glm4v_text", "head": "head_dim"},
    "glm4v_moe_text": {"like": "partial", "partial": 0.5, "axes": "sections", "sections": [8, 12, 12]},
    "ernie4_5_vl_moe_text": {
        "like": "interleaved",
        "axes": "ernie",
        "sections": [22, 22, 20],
    },
    "hunyuan_v1_dense": {"like": "llama", "parameters": "hunyuan", "norm": "after"},
    "hunyuan_v1_moe": {"like": "hunyuan_v1_dense"},
    "hunyuan_vl_text": {
        "like": "hunyuan_v1_dense",
        "patches": "four positions each, read by equal parts of a head in turn: the two features of a pair read different ones",
    },
    "glm_image_text": {"like": "glm4v_moe_text"},
    "cosmos3_edge_text": {
        "like": "qwen3_vl_text",
        "norm": None,
        "without": {"rope_type": "default", "rope_theta": 100000000.0, "mrope_section": [24, 20, 20]},
    },
    "qwen3_omni_moe_talker_text": {"like": "qwen3_vl_text", "window": EVERY},
    "qwen3_omni_moe_talker_code_predictor": {"like": "dots1"},
    "molmo2_text": {
        "like": "llama",
        "kinds": {"rule": "molmo2", "keys": ()},
        "parameters": "molmo2",
        "norm": "before",
        "norm_if": "qk_norm_type",
    },
    "mistral_large4_text": {
        "like": "llama",
        **MLA,
        "kinds": {"all": "indexed_attention", "keys": ()},
        "indexer": "interleaved_to_half",
        "shared_selection": True,
        "nope": "no_rope_layers",
        "without": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 2048.0,
            "original_max_position_embeddings": 512,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "attention_factor": 1.0,
        },
    },
    "blt_global_transformer": {"like": "interleaved", "head": "hidden"},
    "blt_local_encoder": {
        "like": "blt_global_transformer",
        "window": EVERY,
        "cross": False,
        "sees": {"": "patches then read the tokens of their bytes, without position (modeling_blt.py)"},
    },
    "blt_local_decoder": {
        "like": "blt_global_transformer",
        "cross": True,
        "mask": "not described: BltModel gives it the mask of its encoder, with a window of local_attention_window_len",
    },
    "blt_patcher": {"like": "blt_global_transformer", "window": EVERY},
    "deepseek_ocr2_text": {"like": "llama", "head": "hidden"},
    "deepseek_ocr2_encoder": {"like": "qwen2", "causal": None},
    "unlimited_ocr_text": {"like": "llama", "head": "hidden", "kinds": {"keys": ()}},
    # sound
    "lasr_encoder": {"like": "llama", "causal": False},
    "nemotron3_diarization_audio": {"like": "glmasr_encoder", "partial": 1.0},
    "nemotron3_5_transcribe_asr_audio": {
        "like": "nemotron3_diarization_audio",
        "norm": "before",
        "without": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    },
    "nemotron3_5_transcribe_word_timestamp": {"like": "nemotron3_5_transcribe_asr_audio"},
    "glmasr_encoder": {"like": "partial", "partial": 0.5, "causal": False},
    "dots3_note_audio_encoder": {
        "like": "glmasr_encoder",
        "head": "hidden",
        "key_heads": "heads",
        "inside": {
            "whisper_config": {
                "d_model": "hidden_size",
                "encoder_attention_heads": "num_attention_heads",
                "encoder_layers": "num_hidden_layers",
                "max_source_positions": "max_position_embeddings",
            }
        },
    },
    "timesfm2_5": {
        "like": "llama",
        "scale": None,
        "norm": "after",
        "asks": False,
        "forward": "arange(n) - (~mask).sum()",
        "cached": None,
    },
    "pe_audio_encoder": {"like": "interleaved", "causal": False, "norm": "before"},
    "timesfm": {
        "like": "llama",
        "encoding": "none",
        "scale": None,
        "asks": False,
        "only": {"use_positional_embedding": (False,)},
    },
    # pictures
    "axial": AXIAL,
    "pixtral": {"like": "axial", "axes": "hw_split", "head": "hidden"},
    "dinov3_vit": {
        "like": "axial",
        "parameters": "dinov3",
        "axes": "hw_centred",
        "head": "hidden",
    },
    "sapiens2": {"like": "dinov3_vit", "norm": "before", "norm_if": "use_qk_norm"},
    "gemma4_vision": {"like": "axial", "axes": "blocks", "scale": 1.0, "norm": "before"},
    "sam3_vit_model": {
        "like": "axial",
        "layout": "interleaved",
        "axes": "wh",
        "head": "hidden",
        "kinds": {"rule": "global_by_list", "keys": ()},
        "stretched": ["full_attention"],
        "input": "learned",
        "patches": "axes.grid(height, width): row and column of each patch, in its window or in a picture without windows",
    },
    "step3p5_vision": {"like": "axial", "axes": "wh", "input": "learned"},
    "inkling2_vision": {"like": "axial", "axes": "wh_from_one", "input": "learned", "layout": "interleaved"},
    "minimax_m3_vl_vision": {"like": "axial", "axes": "thirds", "head": "hidden"},
    "kimi_k25_vision": {"like": "axial", "layout": "half", "axes": "wh_alternating"},
    "llama4_vision_model": {
        "like": "axial",
        "layout": "interleaved",
        "parameters": "llama4_vision",
        "axes": "wh_from_one",
        "head": "hidden",
    },
    # encoders
    "eurobert": {"like": "llama", "causal": False},
    "clvp_encoder": {
        "like": "eurobert",
        "head": "hidden",
        "parameters": "clvp",
        "partial": 1.0,
        "scale": 1.0,
        "before": -0.5,
        "only": {"use_rotary_embedding": (True,)},
        "sees": {"": "values rotate as keys do, and the output is not rotated back (modeling_clvp.py)"},
    },
    "esm": {
        "like": "llama",
        "parameters": "esm",
        "head": "hidden",
        "scale": 1.0,
        "before": -0.5,
        "nope": "esm",
        "instead": "learned",
        "rows": "roberta",
        "causal": False,
    },
    # fixed in code
    "gptj": {"like": "interleaved", "parameters": "gptj", "head": "hidden"},
    "codegen": {"like": "gptj"},
    "falcon": {
        "like": "llama",
        "head": "hidden",
        "nope": "alibi",
        "instead": "alibi",
        "form": "key",
        "key_heads": "multi_query",
    },
    "roformer": {"like": "interleaved", "parameters": "roformer", "head": "hidden", "causal": False},
}

LIKE = {
    "llama": (
        "arcee aria_text bitnet csm csm_depth_decoder_model diffllama emu3_text_model iquestcoder "
        "internlm3 jais2 olmo gradium_phonon_tts pocket_tts moshi kyutai_speech_to_text seed_oss idefics"
    ),
    "granite": "granitemoe granitemoeshared granite_docling_text granite4_vision_text",
    "interleaved": "ernie4_5 ernie4_5_moe helium",
    "eurobert": "gte jina_embeddings_v3 nomic_bert",
    "mistral": "voxtral_realtime_text",
}
NORMED = {
    "llama": "olmo2 flex_olmo apertus chameleon doge",
    "eurobert": "esmc",
    "axial": "dots3_note_vision_encoder glm5_next_vision glm_ocr_vision",
}
POCKET = "pocket_tts_audio_tokenizer pocket_tts_audio_tokenizer_encoder pocket_tts_audio_tokenizer_decoder"
CODECS = {"llama": "neucodec xcodec2", "mistral": "mimi mimi_encoder mimi_decoder voxtral_realtime_encoder " + POCKET}
APERTUS_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 12000000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
AXIAL_TYPES = (
    "cohere_compass_vision ernie4_5_vl_moe_vision glm4v_moe_vision glm4v_vision paddleocr_vl_vision "
    "qwen3_5_moe_vision qwen3_5_vision qwen3_omni_moe_vision_encoder qwen3_vl_moe_vision qwen3_vl_vision qwen4_exp_vision "
    "video_llama_3_vision"
)
LEARNED_INPUT = (
    "cohere_compass_vision gemma4_vision glm4v_moe_vision glm4v_vision kimi_k25_vision llama4_vision_model muse_glimmer_vision "
    "muse_spark_vision paddleocr_vl_vision qwen3_5_moe_vision qwen3_5_vision qwen3_omni_moe_vision_encoder "
    "qwen3_vl_moe_vision qwen3_vl_vision qwen4_exp_vision"
)
FAMILIES |= {name: {"like": row} for row, names in LIKE.items() for name in names.split()}
FAMILIES |= {name: {"like": row, "norm": "before"} for row, names in NORMED.items() for name in names.split()}
FAMILIES |= {name: {"like": row, "asks": False} for row, names in CODECS.items() for name in names.split()}
FAMILIES["apertus"]["without"] = APERTUS_ROPE
FAMILIES["idefics"] |= {
    "forward": "position_ids.padded(mask, filler=1)",
    "sees": {"": "before layers 0, n, 2 n, .. (n: cross_layer_interval), tokens attend to pictures, without position"},
}
FAMILIES |= {name: {"like": "axial"} for name in AXIAL_TYPES.split()}
FAMILIES |= {name: {"like": "axial", "learned_first": True} for name in ("mlcd", "mlcd_vision_model")}
FAMILIES["lfm3_vl_vision"] = {"like": "axial", "kinds": {"rule": "lfm3_vl_vision"}, "norm": "before"}
FAMILIES |= {
    name: {"like": "axial", "axes": "wh_from_one", "kinds": {"every": 4, "also": (-1,), "else": "window_attention"}}
    for name in ("muse_glimmer_vision", "muse_spark_vision")
}
FAMILIES |= {
    name: {"like": "axial", "kinds": {"rule": "full_by_list"}}
    for name in ("exaone4_5_vision", "qwen2_5_omni_vision_encoder", "qwen2_5_vl_vision")
}
FAMILIES |= {name: {**FAMILIES[name], "input": "learned"} for name in LEARNED_INPUT.split()}
FAMILIES["qwen2_vl_vision"] = {"like": "axial", "head": "embed"}

# position enters at the input or in the scores; a head has hidden_size / heads features, and scores are divided by their root
LEARNED = (
    "aimv2_text_model aimv2_vision_model align_text_model altclip_vision_model "
    "audio-spectrogram-transformer bert bert-generation blip_2_vision_model blip_vision_model "
    "chinese_clip_text_model chinese_clip_vision_model clip_vision_model clipseg_vision_model "
    "deit dinov2 dinov2_with_registers distilbert dpr electra ernie git_vision_model "
    "granite_docling_vision idefics2_vision idefics3_vision ijepa instructblip_vision_model "
    "instructblipvideo_vision_model kosmos_2_vision_model layoutlm "
    "metaclip_2_vision_model mgp-str ovis2_vision owlv2_vision_model owlvit_vision_model "
    "phi4_multimodal_vision pixio radio roc_bert siglip2_text_model "
    "siglip2_vision_model siglip_text_model siglip_vision_model smolvlm_vision splinter "
    "unlimited_ocr_vision_encoder vit vit_mae vit_msn vitpose_backbone vivit yolos "
    "flava_image_model flava_text_model squeezebert tipsv2_vision_model "
    "cosmos3_edge_vision glm_image_vision hunyuan_vl_vision molmo2_vision megatron-bert rembert"
)
ROBERTA = (
    "altclip_text_model bridgetower_text_model camembert clap_text_model data2vec-text ibert markuplm roberta "
    "roberta-prelayernorm xlm-roberta xlm-roberta-xl xmod"
)
SAM = (
    "deepseek_ocr2_sam_vision_model got_ocr2_vision pp_formulanet_vision sam_hq_vision_model sam_vision_model slanext_vision "
    "unlimited_ocr_sam_vision_model pp_chart2table_vision"
)
LEARNED_CAUSAL = "git gpt-sw3 gpt2 imagegpt openai-gpt"
TOWERS = (  # causal, and never asked to continue a text
    "clip_text_model clipseg_text_model decision_transformer groupvit_text_model metaclip_2_text_model owlv2_text_model "
    "owlvit_text_model xclip_text_model"
)
SINUSOIDAL = (
    "qwen2_5_omni_audio_encoder qwen3_asr_encoder qwen3_omni_moe_audio_encoder audioflamingo3_encoder qwen2_audio_encoder "
    "voxtral_encoder tipsv2_text_model videomae"
)
APPROXIMATED = {
    "mra": "not described: all tokens see each other; only for near blocks are the weights exact (modeling_mra.py)",
    "nystromformer": "not described: all tokens see each other, by exact weights only where num_landmarks is "
    "segment_means_seq_len; a convolution of the values is added (modeling_nystromformer.py)",
    "yoso": "not described: all tokens see each other, by weights (1 - angle / pi)^9 or their estimate (modeling_yoso.py)",
}
TABLES = {
    "learned": LEARNED,
    "learned_normed": "internvl_vision janus_vision_model qianfan_ocr_vision",
    "learned_roberta": ROBERTA,
    "learned_causal": LEARNED_CAUSAL,
    "learned_tower": TOWERS,
    "sinusoidal": SINUSOIDAL,
    "bart": "mbart mvp plbart",
    "blenderbot": "blenderbot-small",
    "marian": "pegasus",
    "xlm": "flaubert",
    "qformer": "instructblip_qformer instructblipvideo_qformer",
    "kosmos_2_text_model": "kosmos_2_5_text_model",
    "trocr": "pp_formulanet_text",
    "sam_windows": SAM,
    "wav2vec2": "data2vec-audio hubert sew unispeech unispeech-sat",
    "conformer": "parakeet_encoder",
    "m2m_100": "nllb-moe speech_to_text fsmt",
    "t5": "mt5 switch_transformers",
    "rt_detr": "d_fine deimv2 pp_doclayout_v2 pp_doclayout_v3 pp_doclayout_v4 rt_detr_v2",
}
FAMILIES |= {
    "learned": {"encoding": "learned", "scale": "head", "stacks": "one", "causal": False},
    "learned_normed": {"like": "learned", "norm": "before", "norm_if": "use_qk_norm"},
    "learned_roberta": {"like": "learned", "rows": "roberta"},
    "learned_causal": {"like": "learned", "causal": True},
    "learned_tower": {"like": "learned_causal", "asks": False},
    "gpt_bigcode": {"like": "learned_causal", "key_heads": "multi_query"},
    "opt": {"like": "learned_causal", "rows": "opt"},
    "biogpt": {"like": "learned_causal", "rows": "bart"},
    "sinusoidal": {"encoding": "sinusoidal", "scale": "head", "stacks": "one", "causal": False},
    "xglm": {"like": "sinusoidal", "causal": True, "rows": "bart"},
    "ctrl": {"like": "sinusoidal", "causal": True},
    "albert": {"like": "learned", "shared": True, "times": "inner_group_num"},
    "mobilebert": {"like": "learned", "whole": "intra_bottleneck_size", "only": {"use_bottleneck": (True,)}},
    "patchtst": {"like": "learned", "only": {"channel_attention": (False,), "positional_encoding_type": ("random", "sincos")}},
    "dpt": {"like": "learned", "only": {"backbone": (None,), "backbone_config": (None,)}},
    "beit": {
        "like": "learned",
        "encoding_else": "none",
        "encoding_if": {
            "use_relative_position_bias": "swin_with_cls",
            "use_shared_relative_position_bias": "swin_with_cls",
            "use_absolute_position_embeddings": "learned",
        },
    },
    "data2vec-vision": {"like": "beit"},
    "eomt": {"like": "learned", "mask": QUERIES_JOIN},
    "videomt": {"like": "eomt"},
    "cohere_asr": {"like": "ctrl", "cross": True, "head": "head_dim"},
    "seggpt": {
        "like": "learned",
        "encoding": "decomposed",
        "only": {"use_relative_position_embeddings": (True,)},
        "patches": "row and column of each patch within its picture, above whose lower half the prompt stands; a learned table "
        "at the input is resized to the upper half, and read by both",
    },
    "sam3_lite_text_text_model": {
        "like": "llama",
        "encoding": "none",
        "instead": "learned",
        "head": "hidden",
        "causal": False,
        "kinds": {"every": 512, "at": 0, "also": (-1,), "then": "conv", "else": "full_attention", "keys": ()},
        "only": {"use_repmixer_blocks": (True,)},
        "text": "counted from 0; the table is stretched to the length of the text",
    },
    "semantic": {"like": "learned_causal", "rows_key": "block_size", "asks": False},
    "coarse_acoustics": {"like": "semantic"},
    "fine_acoustics": {"like": "semantic", "causal": False},
    "moshi_depth": {
        "like": "llama",
        "encoding": "none",
        "kinds": {"keys": ()},
        "causal": None,
        "asks": False,
        "mask": "not described: with attention_mask no codebook sees a later codebook; without attention_mask eager attention "
        "hides nothing. Each codebook has its own projections, so the codebooks are ordered (modeling_moshi.py)",
    },
    "vjepa2": {
        "like": "learned",
        "encoding": "two_angles_per_pair",
        "base": 10000.0,
        "towers": {"predictor": {"keys": {name: f"pred_{name}" for name in SIZES_OF_A_STACK}}},
    },
    "big_bird": {"like": "learned"},
    "bigbird_pegasus": {"like": "blenderbot"},
    "luke": {
        "like": "learned_roberta",
        "text": "as without position_ids; an entity has the mean of its tokens' rows of a second table",
    },
    "visual_bert": {
        "like": "learned",
        "text": "counted from 0; a patch has row 0 of a second table, and the mean of the rows that image_text_alignment names",
    },
    **{name: {"like": "learned", "rows": "bart", "mask": words} for name, words in APPROXIMATED.items()},
    "yoso": {"like": "learned", "rows": "bart", "mask": APPROXIMATED["yoso"], "scale": 1.0, "norm": "before"},
    "reformer": {
        "like": "learned",
        "stacks": "reformer",
        "encoding_if": {"axial_pos_embds": "learned_axial"},
        "head": "attention_head_size",
        "decoder_if": "is_decoder",
        "rows_key": "axial_pos_shape",
        "mask": (
            "not described: local layers see their chunk and its neighbours, lsh layers the tokens of their hash bucket, with "
            "keys of one length (modeling_reformer.py)"
        ),
    },
    "canine": {
        "like": "learned",
        "rows_key": "num_hash_buckets",
        "text": "characters, counted as without position_ids",
        "sees": {
            "": "a token is downsampling_rate characters, which a convolution joins; one layer before and one after see "
            "characters, the first within chunks of local_transformer_stride (modeling_canine.py)"
        },
    },
    "groupvit_vision_model": {
        "like": "learned",
        "stacks": "depths",
        "sees": {
            "": "trained tokens of groups stand behind them; after a stage the groups gather the tokens by attention, which is "
            "not described, and are the tokens of the next stage (modeling_groupvit.py)"
        },
    },
    "idefics2_perceiver": {
        "like": "learned",
        "encoding": "unordered",
        "stacks": "perceiver",
        "head": "resampler_head_dim",
        "sees": {"": "and the tokens of the vision encoder, in the same softmax (modeling_idefics2.py)"},
    },
    "idefics_perciever": {
        "like": "idefics2_perceiver",
        "norm": "before",
        "norm_if": "qk_layer_norms_perceiver",
        "file": "perceiver.py",
        "sees": {"": "and the tokens of the vision encoder, in the same softmax (perceiver.py)"},
    },
    "idefics_vision": {"like": "learned", "file": "vision.py"},
    "perceiver": {
        "like": "learned",
        "encoding": "unordered",
        "stacks": "perceiver_blocks",
        "whole": "qk_channels d_latents",
        "sees": {"": "the inputs are seen once, before; their positions come from the preprocessor of the class"},
    },
    "convbert": {
        "like": "learned",
        "fewer_heads": 2,
        "only": {"head_ratio": (2,)},
        "sees": {"": "and, for as many features again, a convolution whose weights each token makes (modeling_convbert.py)"},
    },
    "moss_transcribe_diarize_audio": {"like": "sinusoidal"},
    "fun_asr_nano_encoder": {
        "like": "sinusoidal",
        "rows": "from_one",
        "sees": {"": "a convolution of the values of neighbouring frames is added to the output (modeling_fun_asr_nano.py)"},
    },
    "mllama_vision_model": {
        "like": "learned",
        "stacks": "mllama_vision",
        "patches": (
            "one row of the table for each patch of a tile, times 1 - tanh(gate); and learned vectors of tiles, times the tanh "
            "of gates"
        ),
        "mask": "not described: patches of all tiles and padding see each other, except that padding sees no padding "
        "(modeling_mllama.py)",
    },
    "videoprism_vision_model": {
        "like": "learned",
        "stacks": "videoprism",
        "softcap": "attn_logit_softcapping",
        "patches": "one row of the table for each patch of a frame; after num_spatial_layers, one row of a second per frame",
        "mask": "not described: patches of one frame see each other; after num_spatial_layers those at one place of all frames",
    },
    "sam2_hiera_det_model": {
        "like": "learned",
        "staged": {
            "blocks_per_stage": [1, 2, 7, 2],
            "embed_dim_per_stage": [96, 192, 384, 768],
            "num_attention_heads_per_stage": [1, 2, 4, 8],
        },
        "rows_key": "window_positional_embedding_background_size",
        "table": [7, 7],
        "file": "sam2",
        "patches": "the table resized to the picture, and one of window_size_per_stage[0] rows and columns repeated over it",
        "mask": "not described: patches of one window of window_size_per_stage see each other, in global_attention_blocks all "
        "patches; the first layer of a later stage has the window of the stage before, and may pool its queries "
        "(modeling_sam2.py)",
    },
    "pvt": {
        "like": "learned",
        "staged": {"depths": None, "hidden_sizes": None, "num_attention_heads": None},
        "patches": "one row of the table of its stage for each patch; in the last stage row 0 is that of [CLS]",
        "sees": {"": "where sequence_reduction_ratios is above 1, a convolution makes one key of as many rows and columns"},
    },
    "segformer": {
        "like": "pvt",
        "encoding": "convolved",
        "sees": {"": "where sr_ratios is above 1, a convolution makes one key of as many rows and columns"},
    },
    "glpn": {"like": "segformer"},
    "pvt_v2": {
        "like": "segformer",
        "sees": {
            "": "with linear_attention the keys are made of means of patches, 7 x 7 of them; without linear_attention, where "
            "sr_ratios is above 1, a convolution makes one key of as many rows and columns"
        },
    },
    "hiera": {
        "like": "learned",
        "staged": {"depths": None, "embed_dim": "embed_dim_multiplier", "num_heads": None},
        "mask": "not described: in stages of masked_unit_attention, and in the first layer after such a stage, patches of one "
        "unit see each other, elsewhere all patches; a unit has masked_unit_size rows and columns, divided by query_stride in "
        "each later stage. In each of the num_query_pool stages after the first, the first layer takes the maximum of each "
        "feature over query_stride neighbouring rows and columns of queries (modeling_hiera.py)",
    },
    "levit": {
        "like": "learned",
        "encoding": "unsigned",
        "staged": {"depths": None, "hidden_sizes": None, "num_attention_heads": None, "key_dim": None},
        "patches": "row and column of each patch in the grid of its stage",
        "sees": {
            "": "after each stage but the last, an attention with a table of its own, whose queries are every second row and "
            "column of the patches, makes the patches of the next stage (modeling_levit.py)"
        },
    },
    "tapas": {
        "like": "learned",
        "text": "counted from 0; token_type_ids name cells of a table, and reset_position_index_per_cell counts each from 0",
    },
    "vilt": {"like": "learned", "text": "as without position_ids; patches, which follow them, have a table of their own"},
    "vitdet": {
        "like": "learned",
        "encoding_else": "none",
        "encoding_if": {"use_absolute_position_embeddings": "learned"},
        "only": {"use_relative_position_embeddings": (False,), "window_block_indices": ([],), "residual_block_indices": ([],)},
    },
    "flava_multimodal_model": {"like": "llama", "encoding": "none", "causal": False, "head": "hidden"},
    "blip_text_model": {
        "like": "learned",
        "cross": True,
        "only": {"is_decoder": (True,)},
        "file": "blip_text",
        "mask": "not described: causal where it writes; all tokens see each other where it compares a text with a picture",
    },
    "xclip_vision_model": {
        "like": "learned",
        "sees": {
            "": "each patch also sees a token of its frame; attention between frames, without position, made these tokens"
        },
        "towers": {
            "mit": {
                "keys": {name: f"mit_{name}" for name in SIZES_OF_A_STACK},
                "rows_key": "num_frames",
                "patches": "one row of the table for each frame",
                "sees": {"": "each token is a frame: its projected [CLS]; XCLIPVisionModel alone lacks these layers"},
            }
        },
    },
    "clvp_decoder": {
        "like": "learned_causal",
        "asks": False,
        "sees": {
            "": "ClvpModelForConditionalGeneration puts a prefix before the tokens of sound: one token, which "
            "num_mel_attn_blocks layers of attention without a term for position make of a recording, and the text, which has "
            "a learned table of its own, max_text_tokens rows. Its generate() adds no row of the decoder's table to this "
            "prefix; the first token of sound has row 0, the next tokens have rows 2, 3, .. (modeling_clvp.py)"
        },
    },
    "minicpmv4_6_vision": {
        "like": "learned",
        "sees": {
            "": "after layer insert_layer_id, attention within windows of window_kernel_size patches, without a term for "
            "position, joins each window to one token; with downsample_mode 4x this step is left out"
        },
    },
    "minicpm_ocr_vision": {"like": "minicpmv4_6_vision"},
    "minicpmv4_7_vision": {"like": "minicpmv4_6_vision"},
    "bridgetower_vision_model": {"like": "learned", "per_head": 64, "only": {"remove_last_layer": (False,)}},
    "lxmert": {
        "like": "learned",
        "stacks": "lxmert",
        "inside": {"num_hidden_layers": {}},  # the class writes it, and does not read it
        **dict.fromkeys(("r_layers", "x_layers"), "none"),
        "sees": {
            "r_layers": "the tokens are objects; before the first layer the projection of the box of each object is added to "
            "the object's features (modeling_lxmert.py)",
            "x_layers": "before this self-attention the text reads the objects and the objects read the text, with the same "
            "weights; then the text and the objects each see their own tokens (modeling_lxmert.py)",
        },
    },
    "videoprism_text_model": {"like": "sinusoidal", "softcap": "attn_logit_softcapping"},
    "longformer": {"like": "learned_roberta", "window": HALVED},
    "led": {"like": "blenderbot", "stacks": "led", "window": HALVED},
    "layoutlmv3": {
        "like": "learned_roberta",
        "also": "boxes",
        "boxes": "x0 and y1",
        "box_buckets": ("rel_2d_pos_bins", "max_rel_2d_pos"),
        "buckets": "rel_pos_bins",
        "reach": "max_rel_pos",
        "only": {"has_relative_attention_bias": (True,), "has_spatial_attention_bias": (True,), "text_embed": (True,)},
        "text": (
            "in the table at the input; x0, x1, y0, y1, height and width of its box read tables of their own, joined; in the "
            "bias, tokens count from 0, and patches, which follow them and have a table of their own, from 0 again"
        ),
    },
    "lilt": {
        "like": "learned_roberta",
        "also": "layout_stream",
        "text": "in both streams; the stream of boxes also reads tables of x0, y0, x1, y1, height and width of each box",
    },
    "bros": {"like": "learned", "also": "box_offsets", "only": {"is_decoder": (False,)}},
    "tvp": {
        "like": "learned",
        "text": "counted from 0; the 10 trained tokens before the text have no row; a place of the picture, which is the mean "
        "of all frames, reads two other tables, one by its row and one by its column",
    },
    "mpnet": {"like": "learned_roberta", "also": "t5", "only": {"relative_attention_num_buckets": (32,)}},
    "pix2struct_vision_model": {
        "like": "learned",
        "encoding": "learned_2d",
        "head": "d_kv",
        "scale": 1.0,
        "rows_key": "seq_len",
    },
    "kosmos_2_5_vision_model": {"like": "learned", "encoding": "learned_2d", "head": "head_dim", "rows_key": "max_num_patches"},
    "blip_2_qformer": {"like": "qformer", "encoding_else": "unordered", "encoding_if": {"use_qformer_text_input": "learned"}},
    "musicgen_melody_decoder": {"like": "ctrl"},
    "musicgen_decoder": {"like": "ctrl", "cross": True},
    "xlm": {
        "like": "learned",
        "decoder_if": "causal",
        "encoding_if": {"sinusoidal_embeddings": "sinusoidal"},
        "asks": False,
        "sees": {
            "": "if attention_mask is not given and causal is false, as many last tokens are hidden as the row has pad_token_id"
        },
    },
    "qformer": {
        "like": "learned",
        "cross": "cross_attention_frequency",
        "text": "counted from 0; the trained queries, which stand before them, have no row",
    },
    "kosmos_2_text_model": {"like": "xglm", "rows": "roberta"},
    "canary_decoder": {"like": "ctrl", "cross": True, "head": "head_dim"},
    "trocr": {
        "like": "biogpt",
        "stacks": "decoder",
        "cross": True,
        "only": {"use_learned_position_embeddings": (True, None)},
    },
    "gpt_neo": {
        "like": "llama",
        "encoding": "none",
        "instead": "learned",
        "head": "hidden",
        "scale": 1.0,
        "kinds": {"rule": "gpt_neo", "keys": ()},
        "window": {"key": "window_size", "kinds": ["sliding_attention"]},
    },
    "sam_windows": {
        "like": "llama",
        "encoding": "none",
        "instead": "decomposed",
        "head": "hidden",
        "causal": False,
        "kinds": {"rule": "global_by_list", "keys": ()},
        "only": {"use_rel_pos": (True,)},
    },
    "wav2vec2": {"like": "learned", "encoding": "convolution_input"},
    "wavlm": {"like": "wav2vec2", "also": "t5", "buckets": "num_buckets", "reach": "max_bucket_distance", "gated": True},
    "conformer": {"like": "learned", "encoding": "transformer_xl"},
    "wav2vec2-bert": {
        "like": "learned",
        "encoding": "relative",
        "only": {"position_embeddings_type": ("relative_key",)},
        "vectors": ("left_max_position_embeddings", "right_max_position_embeddings", "j - i"),
    },
    "vits": {
        "like": "learned",
        "encoding": "relative",
        "vectors": ("window_size", "window_size", "j - i"),
        "beyond": 0,
        "only": {"window_size": "given"},
        "sees": {
            "": "the vector of each offset of a second table is added to its value, 0 beyond window_size (modeling_vits.py)"
        },
    },
    "speecht5": {
        "like": "marian",
        "encoding": "sinusoids_of_the_class",
        "encoder": "relative_after_sinusoids",
        "vectors": ("encoder_max_relative_position", "encoder_max_relative_position", "i - j"),
        "fewer": 1,
        "text": "offsets and the sinusoids at the input count from 0, padding too; of sound, with pad_token_id 1, the "
        "sinusoids of frames are counted from 2, and padding has row 1, which is 0; with another pad_token_id padding is "
        "counted",
    },
    "granite_speech_encoder": {
        "like": "learned",
        "encoding": "relative",
        "head": "dim_head",
        "chunk": "context_size",
        "vectors": ("max_pos_emb", "max_pos_emb", "i - j"),
    },
    "granite_speech_plus_encoder": {"like": "granite_speech_encoder"},
    "granite_speech5_encoder": {
        "like": "granite_speech_encoder",
        "head": "head_dim",
        "vectors": ("max_position_embeddings", "max_position_embeddings", "i - j"),
    },
    "gemma3n_audio": {
        "like": "learned",
        "encoding": "distances",
        "stacks": "gemma3n_audio",
        "scale": "softplus",
        "softcap": "conf_attention_logit_cap",
        "around": ("conf_attention_chunk_size", "conf_attention_context_left", "conf_attention_context_right"),
        "window": {"key": "conf_attention_context_left", "plus": 0, "after": ("conf_attention_context_right", 1), "stack": ""},
    },
    "gemma4_audio": {
        "like": "gemma3n_audio",
        "stacks": "one",
        "keys_times": math.log(1 + math.e) / math.log(2),
        "softcap": "attention_logit_cap",
        "around": ("attention_chunk_size", "attention_context_left", "attention_context_right"),
        "window": {"key": "attention_context_left", "plus": -1, "after": ("attention_context_right", 0), "stack": ""},
    },
    "phi4_multimodal_audio": {
        "like": "learned",
        "encoding": "offsets",
        "stacks": "phi4_audio",
        "chunk": 500,
        "only": {"bias_symmetric": (False,), "chunk_size": (-1,)},
        "sees": {"": "padding is not hidden: 1 is added to the scores of keys that are tokens, 0 to the scores of padding"},
    },
    "wav2vec2-conformer": {"like": "conformer", "only": {"position_embeddings_type": ("relative",)}},
    "funnel": {
        "like": "learned",
        "encoding": "pooled",
        "stacks": "funnel",
        "causal": False,
        "head": "d_head",
        "only": {
            "attention_type": ("relative_shift",),
            "block_repeats": (None, 1),
            **dict.fromkeys(("pool_q_only", "separate_cls", "truncate_seq"), (True,)),
        },
        "text": "token t of a layer has the place 1 - s + s t, s: query_step or key_step of its bias",
        "sees": {
            "": "before each block after the first, the last token is dropped and each pair of tokens behind [CLS] becomes one "
            "token, as pooling_type says. The last num_decoder_layers layers read all tokens again; FunnelBaseModel lacks them"
        },
    },
    "fastspeech2_conformer": {"like": "conformer", "stacks": "fastspeech2", "cross": False},
    "detr": {
        "like": "learned",
        "stacks": "detr",
        "encoding": "sinusoidal_2d",
        "base": 10000.0,
        "decoder": "object_queries",
        "crossing": "object_queries_and_patches",
        "rows_key": "num_queries",
        "only": {"position_embedding_type": ("sine",)},
    },
    "table-transformer": {"like": "detr"},
    "sam3_detr_encoder": {"like": "learned", "encoding": "sinusoidal_2d", "base": 10000.0, "cross": True},
    "sam3_lite_text_detr_encoder": {"like": "sam3_detr_encoder"},
    "conditional_detr": {
        "like": "detr",
        "crossing": "object_points",
        "crossing_wider": 2,
        "sees": {"decoder": "the vector of an object has projections of its own for queries and keys"},
    },
    "dab-detr": {
        "like": "conditional_detr",
        "base": "temperature_height",
        "decoder": "object_boxes",
        "only": {
            "temperature_height": (20,),
            "temperature_width": (20,),
            "sine_position_embedding_scale": (None,),
            "keep_query_pos": (False,),
        },
        "sees": {
            "encoder": "the sinusoid of a patch is multiplied by what a network makes of the patch's features",
            "decoder": "DabDetrForObjectDetection corrects the boxes in each layer; the sinusoids of the centre are also "
            "multiplied by a predicted height or width, divided by the height or width of the box",
        },
    },
    "sam3_detr_decoder": {
        "like": "learned",
        "encoding": "object_boxes",
        "rows_key": "num_queries",
        "cross": False,
        "sees": {
            "": "a token without a box stands first. Then each object reads the text, whose keys have no position, and the "
            "picture, whose keys have the sinusoid of their patch; two networks of the distances between rows and columns of a "
            "patch and the edges of the box, which each layer corrects, add to these scores"
        },
    },
    "sam3_lite_text_detr_decoder": {"like": "sam3_detr_decoder"},
    "sam3_geometry_encoder": {
        "like": "flava_multimodal_model",
        "kinds": {"layers": "num_layers", "keys": ()},
        "cross": False,
        "sees": {
            "": "the tokens are boxes, and one [CLS]; before the first layer projections of a box, of the sinusoids of its "
            "centre and of the features inside the box are added. After this attention the tokens read the picture, whose keys "
            "have the sinusoid of their patch"
        },
    },
    "sam3_lite_text_geometry_encoder": {"like": "sam3_geometry_encoder"},
    "deformable_detr": {
        "like": "detr",
        "stacks": "detr_decoder",
        "cross": False,
        "only": {"two_stage": (False,)},
        "sees": {
            "decoder": "each object then reads points of the picture around a point, which a projection of its trained vector "
            "gives (modeling_deformable_detr.py)"
        },
    },
    "rt_detr": {
        "like": "learned",
        "stacks": "detr_encoder",
        "encoding": "sinusoidal_2d_counted",
        "encoding_if": {"eval_size": "none"},
        "base": "positional_encoding_temperature",
        "whole": "encoder_hidden_dim",
        "only": {"encode_proj_layers": ([2],)},
    },
    "pop2piano": {"like": "t5"},
    "pegasus_x": {
        "like": "marian",
        "mask": {
            "encoder": "not described: tokens of one block and num_global_tokens trained tokens see each other; every second "
            "layer begins its blocks half a block later with stagger_local_blocks (modeling_pegasus_x.py)"
        },
    },
    "moonshine_streaming_encoder": {
        "like": "llama",
        "encoding": "none",
        "causal": False,
        "mask": "not described: with attention_mask layer i sees sliding_windows[i], keys before and then those after; "
        "convolutions before the first layer order the frames (modeling_moonshine_streaming.py)",
    },
    "rf_detr_dinov2": {
        "like": "learned",
        "mask": "not described: patches of one window see each other in layers of window_block_indexes, all patches in the "
        "others; each window has its own [CLS] (modeling_rf_detr.py)",
    },
    "lw_detr_vit": {
        "like": "learned",
        "mask": "not described: patches of one window see each other in layers of window_block_indices, all patches in the "
        "others (modeling_lw_detr.py)",
    },
    "bart": {"encoding": "learned", "scale": "head", "stacks": "encoder_decoder", "rows": "bart"},
    "blenderbot": {"like": "bart", "rows": "bert"},
    "marian": {"encoding": "sinusoidal", "scale": "head", "stacks": "encoder_decoder"},
    "m2m_100": {"like": "marian", "rows": "roberta"},
    "seamless_m4t": {
        "like": "m2m_100",
        "only": {"position_embeddings_type": ("relative",)},
        "sees": {"encoder": "classes that read speech alone do not build these layers"},
        "towers": {
            "speech_encoder": {**OF_SOUND, "encoding": "transformer_xl"},
            "t2u_encoder": TO_UNITS,
            "t2u_decoder": {
                "stacks": "decoder",
                "cross": True,
                "keys": {
                    "decoder_layers": "t2u_decoder_layers",
                    "decoder_attention_heads": "t2u_decoder_attention_heads",
                    **UNITS,
                },
                "sees": {"": BUILT_FOR_SPEECH},
            },
        },
    },
    "seamless_m4t_v2": {
        "like": "m2m_100",
        "only": {"position_embeddings_type": ("relative_key",)},
        "sees": {"encoder": "classes that read speech alone do not build these layers"},
        "towers": {
            "speech_encoder": {
                **OF_SOUND,
                "encoding": "relative",
                "vectors": ("left_max_position_embeddings", "right_max_position_embeddings", "j - i"),
                "chunk": "speech_encoder_chunk_size",
                "chunks": {"before": "speech_encoder_left_chunk_num"},
                "sees": {
                    "": f"eager attention does not hide other chunks: it adds 1 to the scores of these keys; {AFTER_SOUND}"
                },
            },
            "t2u_encoder": TO_UNITS,
            "t2u_decoder": {
                **ONE_STACK,
                "rows": "prophetnet",
                "keys": {
                    "num_hidden_layers": "t2u_decoder_layers",
                    "num_attention_heads": "t2u_decoder_attention_heads",
                    **UNITS,
                },
                "sees": {
                    "": "the tokens are characters, which the model repeats as often as it predicts. Before that, sinusoids of "
                    "the characters, counted alike, were added too; both sinusoids are multiplied by trained numbers. Each "
                    f"layer also has two convolutions over neighbours. {BUILT_FOR_SPEECH.capitalize()}"
                },
            },
        },
    },
    "time_series_transformer": {"like": "marian", "rows": {"decoder": "after_context"}},
    "informer": {
        "like": "time_series_transformer",
        "mask": {
            "encoder": "not described: with attention_type prob, queries whose highest score on keys drawn at random is "
            "furthest above the mean see all tokens, and the other queries get the mean of all values; with distil a "
            "convolution halves the tokens after each layer but the last (modeling_informer.py)",
            "decoder": "not described: with attention_type prob, queries whose highest score on keys drawn at random is "
            "furthest above the mean see earlier tokens, and the other queries get the sum of the values up to their own "
            "(modeling_informer.py)",
        },
    },
    "t5": {"encoding": "t5", "scale": 1.0, "head": "d_kv", "stacks": "t5"},
    "umt5": {"like": "t5", "every_layer": True},
    "cpmant": {
        "like": "learned",
        "encoding": "t5",
        "head": "dim_head",
        "buckets": "position_bias_num_buckets",
        "reach": "position_bias_max_distance",
        "table_of": "the model, used by all layers",
        "segments": ("segment_types", "prompt_length"),
        "sees": {
            "": "and the prompt_length trained tokens before the text: between them and the text the bias has one value per "
            "head and direction (modeling_cpmant.py)"
        },
    },
    "longt5": {
        "like": "t5",
        "only": {"encoder_attention_type": ("local", "transient-global")},
        "window": {"key": "local_radius", "plus": 1, "stack": "encoder"},
    },
    "prophetnet": {
        "like": "bart",
        "stacks": "prophetnet",
        "decoder": "learned_and_buckets",
        "rows": "prophetnet",
        "buckets": "num_buckets",
        "reach": "relative_max_distance",
        "sees": {"decoder": "its streams that predict later tokens are not described"},
    },
    "udop": {
        "like": "t5",
        "encoder": "boxes",
        "boxes": "100 (x0 + x1) / 2 and 100 (y0 + y1) / 2, differences rounded to 0",
        "box_buckets": (32, 100),
        "of_places": {"buckets": 32, "max_distance": 128},
        "only": {"relative_bias_args": (None, [{"type": "1d"}, {"type": "horizontal"}, {"type": "vertical"}])},
        "text": (
            "counted from 0, and patches without text after them; the encoder also adds rows floor((box_table - 1) x) of "
            "x0 and x1, and those of y0 and y1, from two tables"
        ),
    },
    "pix2struct_text_model": {"like": "t5", "stacks": "decoder", "cross": True, "only": {"is_decoder": (True,)}, "asks": False},
    "bloom": {"encoding": "alibi", "scale": "head", "stacks": "one", "causal": True, "form": "key", "asks": False},
    "mpt": {"like": "bloom", "rows": "bert"},
    "deberta-v2": {"like": "deberta"},
    "whisper": {"like": "blenderbot", "encoder": "sinusoidal"},
    "timesformer": {
        "like": "learned",
        "only": {"attention_type": ("divided_space_time",)},
        "patches": "one row of the table for each patch of a frame, and one of a second table for each frame",
        "mask": "not described: patches at one place of all frames see each other, then those of one frame and [CLS]",
    },
    "sew-d": {"like": "deberta", "encoding": "convolution_input", "also": "disentangled"},
    "deberta": {"encoding": "disentangled", "scale": "terms", "stacks": "one", "causal": False},
    "xlnet": {"encoding": "xlnet", "scale": "head", "stacks": "one", "causal": "attn_type", "asks": False},
    "swin": {"encoding": "swin", "scale": "head", "whole": "embed_dim", "grid": ("image_size", "patch_size")},
    "clap_audio_model": {
        "like": "swin",
        "whole": "patch_embeds_hidden_size",
        "grid": ("spec_size", "patch_stride"),
        "shifts": "by one picture",
        "file": "clap",
    },
    "donut-swin": {"like": "swin", "file": "donut_swin"},
    "maskformer-swin": {"like": "swin", "shifts": "everywhere", "file": "maskformer_swin"},
    "swinv2": {"like": "swin", "encoding": "swin_v2", "scale": None, "shifts": "by the file"},
    "swin2sr": {"like": "swinv2", "stages": "equal"},
}
FAMILIES |= {name: {"like": row} for row, names in TABLES.items() for name in names.split()}
FAMILIES |= {
    "RefinedWebModel": {
        "like": "falcon",
        "parameters": "fixed",
        "asks": False,
        "cached": "arange(n)",
        "only": {"rope_parameters": (None,)},
        "code": {
            "file": "modelling_RW.py of falcon-7b-instruct",
            "classes": f"RWModel {' '.join(f'RWFor{task}' for task in TASKS)}",
            "defaults": {
                **{"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8},
                **{"multi_query": False, "alibi": False},
            },
            "names": {"n_embed": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"},
        },
    },
    "bailing_moe": {
        "encoding": None,
        "variants": {"bailing_moe_v2": {"architectures": ["BailingMoeV2ForCausalLM"]}, "bailing_moe 1": {}},
    },
    "bailing_moe 1": {
        "like": "llama",
        "parameters": "bailing_moe",
        "generate": OLD_TOKENS,
        "only": {"rope_parameters": (None,)},
        "code": {
            "file": "models/modeling_bailing_moe.py of inclusionAI/Ling",
            "classes": "BailingMoeModel BailingMoeForCausalLM",
            "defaults": {
                **{"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 0},
                **{"head_dim": None, "max_position_embeddings": 16384, "rope_theta": 10000.0, "rope_scaling": None},
            },
            "unused": "use_sliding_window sliding_window max_window_layers norm_head norm_softmax",
        },
    },
    "bailing_moe_v2": {
        "like": "partial",
        "norm": "before",
        "norm_if": "use_qk_norm",
        "generate": OLD_TOKENS,
        "only": {"rope_parameters": (None,)},
        "code": {
            "file": "models/modeling_bailing_moe_v2.py of inclusionAI/Ling-V2",
            "classes": "BailingMoeV2Model BailingMoeV2ForCausalLM",
            "defaults": {
                **{"hidden_size": 2048, "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4},
                **{"head_dim": 128, "max_position_embeddings": 32768, "rope_theta": 600000.0, "rope_scaling": None},
                "use_qk_norm": True,
            },
            "unused": "max_window_layers rotary_dim",
        },
    },
    "intern_vit_6b": {
        "like": "learned_normed",
        "norm_if": "qk_normalization",
        "code": {
            "file": "modeling_intern_vit.py of OpenGVLab/InternVL",
            "classes": "InternVisionModel",
            "defaults": {
                **{"hidden_size": 3200, "num_hidden_layers": 48, "num_attention_heads": 25},
                **{"image_size": 224, "patch_size": 14, "qk_normalization": True},
            },
        },
    },
    "baichuan": {
        "encoding": None,
        "variants": {f"baichuan {name}": sizes for name, sizes in SIZES.items()},
    },
    "baichuan 7B": {
        "like": "llama",
        "head": "hidden",
        "parameters": "fixed",
        "generate": OLD_TOKENS,
        "only": {"rope_parameters": (None,)},
        "code": {
            "file": "modeling_baichuan.py of Baichuan-7B",
            "classes": "BaichuanModel BaiChuanForCausalLM BaichuanForCausalLM",
            "defaults": {"num_attention_heads": 32, "max_position_embeddings": 4096, **SIZES["7B"]},
            "unused": "model_max_length",
        },
    },
    "baichuan 13B": {
        "like": "mpt",
        "code": {
            "file": "modeling_baichuan.py of Baichuan-13B",
            "classes": "BaichuanModel BaichuanForCausalLM",
            "defaults": {"num_attention_heads": 40, **SIZES["13B"]},
            "unused": "model_max_length max_position_embeddings",
        },
    },
}
FAMILIES["RefinedWeb"] = {
    "like": "RefinedWebModel",
    "key_heads": "read",
    "code": {
        **FAMILIES["RefinedWebModel"]["code"],
        "file": "modelling_RW.py of falcon-40b",
        "names": {**FAMILIES["RefinedWebModel"]["code"]["names"], "n_head_kv": "num_key_value_heads"},
    },
}
FAMILIES |= {
    "qwen": {
        "like": "partial",
        "head": "hidden",
        "key_heads": "heads",
        "parameters": "qwen",
        "temperature": "qwen",
        "asks": False,
        "only": {"visual": (None,), "audio": (None,)},
        "code": {
            "file": "modeling_qwen.py of Qwen-7B",
            "classes": "QWenModel QWenLMHeadModel",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128},
                **{"max_position_embeddings": 8192, "rotary_emb_base": 10000, "rotary_pct": 1.0},
                **{"use_dynamic_ntk": True, "use_logn_attn": True},
            },
            "unused": "rope_theta scale_attn_weights onnx_safe no_bias",
        },
    },
    "telechat": {
        "encoding": None,
        "variants": {
            "telechat 2": {"base_seqlen": "given"},
            "telechat 7B": {"hidden_size": 4096, "n_layer": 30},
            "telechat 12B": {"hidden_size": 5120, "n_layer": 38},
        },
    },
    "telechat 7B": {
        "like": "llama",
        "head": "hidden",
        "key_heads": "heads",
        "parameters": "telechat",
        "ntk_length": 4096,
        "asks": False,
        "code": {
            "file": "models/7B/modeling_telechat.py of Tele-AI/Telechat",
            "classes": "TelechatModel TelechatForCausalLM",
            "defaults": {"num_attention_heads": 32, "training_seqlen": 8192},
            "names": {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads"},
            "unused": "seq_length logn embed_layernorm masked_softmax_fusion skip_bias_add skip_bias_add_qkv semi_causal "
            "bias_dropout_fusion slow_but_exact pretraining_tp",
        },
    },
    "minicpm": {
        "like": "llama",
        "head": "hidden",
        "parameters": "minicpm",
        "generate": OLD_TOKENS,
        "mask_if": "sparse_config",
        "only": {"architectures": (None, "MiniCPMForCausalLM", "MiniCPMModel")},
        "code": {
            "file": "modeling_minicpm.py of MiniCPM-2B and MiniCPM4",
            "classes": "MiniCPMModel MiniCPMForCausalLM MiniCPMForSequenceClassification",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": None},
                **{"max_position_embeddings": 2048, "rope_theta": 10000.0, "rope_scaling": None, "sparse_config": None},
            },
            "unused": "scale_emb scale_depth dim_model_base mup_denominator",
        },
    },
}
FAMILIES["telechat 12B"] = {
    "like": "telechat 7B",
    "ntk_length": 8192,
    "code": {**FAMILIES["telechat 7B"]["code"], "file": "models/12B/modeling_telechat.py of Tele-AI/Telechat"},
}
FAMILIES["telechat 2"] = {
    "like": "telechat 7B",
    "ntk_length": "base_seqlen",
    "key_heads": "read",
    "code": {
        **FAMILIES["telechat 7B"]["code"],
        "file": "model/115B/modeling_telechat.py of Tele-AI/TeleChat2",
        "classes": "TelechatModel TelechatForCausalLM Telechat2ForCausalLM",
    },
}
OWN_HEAD_DIM = "deit dinov2 dinov2_with_registers ijepa pixio radio vit vit_mae vit_msn"
FAMILIES |= {name: {**FAMILIES[name], "head": "head_dim"} for name in OWN_HEAD_DIM.split()}
FAMILIES["videomae"] = {"like": "sinusoidal"}
for name in ("videomae", "vit_mae"):
    keys = {key: f"decoder_{key}" for key in SIZES_OF_A_STACK}
    FAMILIES[name] |= {"towers": {"decoder": {"keys": keys}}}
DECODERS = (  # which are encoders without is_decoder
    "bert bert-generation bridgetower_text_model camembert data2vec-text electra ernie esm roberta roberta-prelayernorm "
    "roc_bert roformer xlm-roberta xlm-roberta-xl xmod megatron-bert rembert"
)
FAMILIES |= {name: {**FAMILIES[name], "decoder_if": "is_decoder"} for name in DECODERS.split()}
FAMILIES |= {
    "deepseek": {
        "like": "llama",
        "head": "hidden",
        "parameters": "linear_or_dynamic",
        "generate": OLD_TOKENS,
        "only": {"rope_parameters": (None,)},
        "code": {
            "file": "modeling_deepseek.py of deepseek-moe-16b-base",
            "classes": "DeepseekModel DeepseekForCausalLM DeepseekForSequenceClassification",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 30, "num_attention_heads": 32, "num_key_value_heads": 32},
                **{"max_position_embeddings": 2048, "rope_theta": 10000.0, "rope_scaling": None},
            },
        },
    },
    "internlm": {
        "like": "llama",
        "head": "hidden",
        "parameters": "internlm",
        "asks": False,
        "only": {key: (None,) for key in ("rope_parameters", "rope_scaling", "rope_theta", "num_key_value_heads", "head_dim")},
        "code": {
            "file": "modeling_internlm.py of InternLM/InternLM",
            "classes": "InternLMModel InternLMForCausalLM InternLMForSequenceClassification",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048}
            },
        },
    },
    "internlm2": {
        "like": "deepseek",
        "code": {
            "file": "internvl_chat/internvl/model/internlm2/modeling_internlm2.py of OpenGVLab/InternVL",
            "classes": "InternLM2Model InternLM2ForCausalLM InternLM2ForSequenceClassification",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": None},
                **{"max_position_embeddings": 2048, "rope_theta": 10000.0, "rope_scaling": None},
            },
        },
    },
    "stablelm_epoch": {
        "like": "partial",
        "head": "hidden",
        "generate": OLD_TOKENS,
        "only": {"rope_parameters": (None,), "rope_scaling": (None,)},
        "code": {
            "file": "modeling_stablelm_epoch.py of stable-code-3b",
            "classes": "StableLMEpochModel StableLMEpochForCausalLM",
            "defaults": {
                **{"hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32},
                **{"max_position_embeddings": 4096, "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
            },
            "names": {"rope_pct": "partial_rotary_factor"},
            "unused": "rotary_scaling_factor num_heads",
        },
    },
    "mixformer-sequential": {
        "like": "partial",
        "head": "hidden",
        "parameters": "minimax_m2",
        "asks": False,
        "only": {
            key: (None,) for key in ("rope_parameters", "rope_scaling", "rope_theta", "head_dim", "partial_rotary_factor")
        },
        "code": {
            "file": "modeling_mixformer_sequential.py of phi-1_5",
            "classes": "MixFormerSequentialForCausalLM",
            "defaults": {
                **{"hidden_size": 1024, "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": None},
                **{"max_position_embeddings": 2048, "rotary_dim": 32},
            },
            "names": {
                **{"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"},
                **{"n_positions": "max_position_embeddings", "n_head_kv": "num_key_value_heads"},
            },
            "unused": "flash_rotary",
        },
    },
    "codeshell": {
        "like": "deepseek",
        "forward": OLD_TOKENS,
        "only": {
            **{"rope_parameters": (None,), "rope_theta": (None,)},
            **{"position_embedding_type": ("rope",), "group_query_attention": (True,)},
        },
        "code": {
            "file": "modeling_codeshell.py of CodeShell-7B-Chat-int4",
            "classes": "CodeShellModel CodeShellForCausalLM CodeShell4bitForCausalLM",
            "defaults": {
                **{"hidden_size": 4096, "num_hidden_layers": 42, "num_attention_heads": 32, "num_key_value_heads": 1},
                **{"max_position_embeddings": 8192, "rope_scaling": None},
                **{"position_embedding_type": "learned_absolute", "group_query_attention": True},
            },
            "names": {
                **{"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"},
                **{"n_positions": "max_position_embeddings", "num_query_groups": "num_key_value_heads"},
            },
            "unused": "max_sequence_length scale_attn_weights pre_allocate_kv_cache pad_key_length",
        },
    },
    "llada": {
        "like": "llama",
        "head": "hidden",
        "norm": "before",
        "norm_if": "attention_layer_norm",
        "causal": False,
        "sees": {"": "padding is visible too: the attention is given no mask (modeling_llada.py)"},
        "only": {
            **{"rope": (True,), "alibi": (False,), "multi_query_attention": (None,)},
            **{"rope_parameters": (None,), "rope_scaling": (None,), "head_dim": (None,)},
        },
        "code": {
            "file": "modeling_llada.py of LLaDA-8B-Instruct",
            "classes": "LLaDAModel LLaDAModelLM",
            "defaults": {
                **{"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": None},
                **{"max_position_embeddings": 1024, "rope_theta": 10000.0, "rope": False, "alibi": False},
                **{"attention_layer_norm": False, "multi_query_attention": None},
            },
            "names": {
                **{"d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads"},
                **{"n_kv_heads": "num_key_value_heads", "max_sequence_length": "max_position_embeddings"},
            },
            "unused": "alibi_bias_max rope_full_precision attention_layer_norm_with_affine activation_type bias_for_layer_norm "
            "block_group_size block_type flash_attention include_bias include_qkv_bias init_fn input_emb_norm layer_norm_type "
            "layer_norm_with_affine mlp_hidden_size precision scale_logits weight_tying",
        },
    },
    "mimo": {
        "like": "qwen2",
        "class": "qwen2",
        "only": {"use_mrope": (None, False)},
        "code": {
            "file": "modeling_mimo.py of MiMo-7B, whose layers are those of Qwen2 in transformers",
            "classes": "MiMoModel MiMoForCausalLM",
        },
    },
    "moonvit": {
        "like": "axial",
        "layout": "interleaved",
        "head": "hidden",
        "axes": "wh_alternating",
        "input": "learned",
        "only": {"rope_theta": (None,)},
        "code": {
            "file": "modeling_kimi_vl.py of Kimi-VL-A3B-Instruct",
            "classes": "MoonVitPretrainedModel",
            "defaults": {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14},
            "rope_type": "axial",
            "unused": "init_pos_emb_height init_pos_emb_width merge_kernel_size",
        },
    },
}
