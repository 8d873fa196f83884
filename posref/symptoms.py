"""Symptoms: what people see, in their words, with possible mistakes and the command that finds the right one."""

from typing import NamedTuple


class Symptom(NamedTuple):
    """What one sees, other words for it, the mistakes to suspect, and the question that decides between them."""

    sees: str
    words: str
    suspects: tuple[str, ...]
    ask: str


SYMPTOMS = (
    Symptom(
        "Text is nonsense from the first tokens on.",
        "gibberish garbage nonsense broken salad loss high perplexity output converted checkpoint gguf hf",
        ("other_layout", "not_permuted", "sign", "wrong_base", "all_rotated", "q_not_rotated", "scale_ignored", "no_mask"),
        "posref check my_ops.py:rope --config config.json",
    ),
    Symptom(
        "Short texts are right; beyond some length the text turns to nonsense.",
        "long context length beyond after n tokens garbage gibberish degrades needle extrapolation 4096 8192 32k 128k",
        ("unscaled", "wrong_base", "positions_clamped", "positions_modulo", "f16_positions", "bf16_positions", "no_magnitude"),
        "posref explain config.json --longer 32768; posref check my_ops.py:rope --config config.json; posref precision",
    ),
    Symptom(
        "The prompt is read right; generated text repeats itself or drifts away.",
        "repetition repeats loops looping decoding decode generation generate incremental drift",
        ("queries_left_aligned", "queries_from_zero", "cache_ignored", "cache_counted_twice", "positions_ignored"),
        "posref check my_ops.py:attend --as rope.attend --contract",
    ),
    Symptom(
        "Output with a KV cache differs from output without a KV cache.",
        "kv cache cached caching position off by one resume prefix reuse chunked prefill eviction sinks streaming",
        ("queries_left_aligned", "row_for_position", "cache_ignored", "cache_counted_twice", "positions_from_first"),
        "posref check my_ops.py:positions --as position_ids.cached --contract",
    ),
    Symptom(
        "A text alone is right; in a batch with padding it is not.",
        "left padding padded right batch batched batching attention mask rows ragged",
        ("positions_ignored", "positions_shared_across_batch", "positions_from_first", "mask_inverted", "counted_from_one"),
        "posref check my_ops.py:positions --as position_ids.padded --contract",
    ),
    Symptom(
        "Documents that are packed into one row see or disturb each other.",
        "packing packed documents cu_seqlens varlen flash concatenated sequence leak",
        ("never_reset", "one_document", "packed_from_one", "end_to_the_document_before", "positions_from_first"),
        "posref mistakes position_ids",
    ),
    Symptom(
        "float32 is right; 16 bits are not, and worse the longer the text is.",
        "fp16 float16 bf16 bfloat16 half precision mixed autocast quantized low cast dtype inf overflow",
        ("bf16_positions", "f16_positions", "bf16_inv_freq", "f16_inv_freq", "bf16_tables", "bf16_chain", "int16_positions"),
        "posref precision; posref check my_ops.py:rope --as rope --dim 128 --layout half --to torch.bfloat16",
    ),
    Symptom(
        "Outputs are NaN.",
        "nan inf infinite fully masked row empty",
        ("empty_row_nan", "sink_without_exp", "cap_without_division", "mask_multiplied"),
        "posref mistakes attention",
    ),
    Symptom(
        "Speculative decoding accepts fewer tokens than it should.",
        "speculative draft tree medusa eagle verify acceptance rejected lookahead",
        ("row_for_position", "queries_left_aligned", "cache_counted_twice", "positions_ignored", "sees_one_ahead"),
        "posref check my_ops.py:attend --as rope.attend --contract",
    ),
    Symptom(
        "Only some heads are wrong, or the model is wrong after it was split over devices.",
        "heads gqa mqa grouped tensor parallel tp shard sharded split repeat_kv kv",
        ("heads_tiled", "heads_modulo", "first_slopes", "slopes_of_the_shard", "permuted_across_heads", "first_head_alone"),
        "posref check my_ops.py:attend --as attention.attend --contract",
    ),
    Symptom(
        "Images or videos are described wrongly, above all large or wide ones; text is right.",
        "image images video vision resolution mrope m-rope multimodal vit patches rows columns frames aspect",
        ("rows_and_columns_exchanged", "wrong_axis", "patches_from_zero", "after_the_tokens", "time_of_the_frame_left_out"),
        "posref check my_ops.py:positions --as position_ids.multimodal --contract",
    ),
    Symptom(
        "A sliding window behaves as if it were longer, shorter or absent.",
        "sliding window local swa mistral gemma one off attends far",
        ("window_one_more", "window_one_less", "window_ignored", "window_forward_too", "window_left_aligned"),
        "posref check my_ops.py:mask --as attention.window_mask --contract",
    ),
)


SMALL = "a the is are it in of or and to from as on with that not no only some if by for wrong"


def found(words: str) -> list[Symptom]:
    """The symptoms that share the most words with `words`; none if no symptom shares a word.

    >>> [symptom.sees for symptom in found("garbage after 4096 tokens")]
    ['Short texts are right; beyond some length the text turns to nonsense.']
    """
    given = {*words.lower().replace("-", " ").replace(",", " ").split()} - {*SMALL.split()}
    shared = [len(given & {*symptom.words.split(), *symptom.sees.lower().strip(".").split()}) for symptom in SYMPTOMS]
    return [symptom for symptom, n in zip(SYMPTOMS, shared, strict=True) if n and n == max(shared)]
