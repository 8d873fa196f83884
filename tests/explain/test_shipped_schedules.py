"""Qwen 1, TeleChat and MiniCPM: frequencies by the length of a text. The code of their checkpoints was run, and gave these.

modeling_qwen.py: zhangningboo/Qwen-7B@ffe04dd7, of the checkpoint Qwen/Qwen-7B, and mapengAdam/qianwen-72B, the same
modeling_telechat.py: Tele-AI/Telechat/models/7B, models/12B and models/12B-V2, Tele-AI/TeleChat2/model/115B
modeling_telechat2.py: Tele-AI/TeleChat2/llama_factory_training
modeling_minicpm.py: oshersidi/OCD@421d5cd7ea (MiniCPM-2B), wxthu/nas_tuner@fa57d0ce91 (MiniCPM4)
"""

import json
import math

import numpy as np
import pytest

from posref.explain import explain, explanation, longer, output, presets
from posref.explain.words import describe
from posref.rotary import rope, scaling
from tests.every import every
from tests.explain.test_configs import BY_NAME

QWEN, TELECHAT = BY_NAME["Qwen-14B-Chat"]["config"], BY_NAME["TeleChat_7B"]["config"]
TELECHAT_2 = TELECHAT | {"hidden_size": 8192, "n_head": 64, "n_layer": 96, "num_key_value_heads": 8}  # 115B
TELECHAT_12B = TELECHAT | {"hidden_size": 5120, "n_layer": 38}
MINICPM = BY_NAME["mlc_minicpm_2b"]["config"]
MINICPM_4 = BY_NAME["mllm_minicpm4_config_minicpm4"]["config"] | {"model_type": "minicpm"}
MINICPM_4 |= {"architectures": ["MiniCPMForCausalLM"]}


def one(config):
    explained = explain(config)
    assert explained["unsupported"] == explained["unread"] == []
    (group,) = explained["layers"]
    assert group["source"].startswith("code that ships with the checkpoint: ")
    assert (group["layout"], group["causal"], group["rotated"]) == ("half", True, "first")
    return group


def by_base(base, width):
    return [base ** (-2 * t / width) for t in range(width // 2)]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def called(group, n=None):
    """What the call that `explain` prints gives for a text of n tokens."""
    names = {"n": n, "ceil": math.ceil, "log2": math.log2, "rope": rope, "scaling": scaling}
    return eval(group["call"].partition(", n: ")[0], names)


@every([(1, 1), (1000, 1), (2048, 1), (2049, 3), (4096, 3), (4097, 7), (8192, 7), (8193, 15), (32000, 31)])
def test_qwen_has_one_base_per_doubling_of_the_prompt(n, factor):
    group = one(QWEN)
    close(called(group, n), by_base(1e4 * factor ** (128 / 126), 128))
    close(group["frequencies"], by_base(1e4, 128))
    if n > 2048:
        own = longer.options(explanation(QWEN), n)["rules"][-1]
        assert own["slower"][-1] == pytest.approx(factor, rel=1e-12)


def test_qwen():
    group = one(QWEN)
    assert (group["heads"], group["kv_heads"], group["head_dim"], group["softmax_scale"]) == (40, 40, 128, 128**-0.5)
    assert group["temperature"] == {"rule": "max(1, ln(p + 1) / ln(f))", "f": 2048}
    assert (group["positions"]["generate"], group["positions"]["cached"]) == (None, "arange(c, c + n)")
    assert one(QWEN | {"use_logn_attn": False})["temperature"] is None
    assert any("unless FlashAttention 2.1 or later reads one text alone" in trap for trap in explain(QWEN)["traps"])
    plain = one(QWEN | {"use_dynamic_ntk": False, "rotary_emb_base": 1000000, "rotary_pct": 0.25, "rope_theta": 5})
    assert plain["scaling"] is None
    close(plain["frequencies"], by_base(1e6, 32))
    for words, keys in (("seq_length is missing", {"seq_length": None}), ("is 5120, expected 2560", {"hidden_size": 2560})):
        with pytest.raises(ValueError, match=words):
            explain(QWEN | keys)


def test_nothing_is_said_of_other_code_of_the_same_type():
    """Qwen-VL and Qwen-Audio have other masks, MiniCPM-Embedding and MiniCPM-Reranker are encoders."""
    explained = explain(QWEN | {"visual": {"layers": 48}})
    assert explained["layers"] == []
    assert len(explained["traps"]) == 1
    for name in ("MiniCPM", "MiniCPMForSequenceClassification"):
        explained = explain(MINICPM | {"architectures": [name]})
        assert (explained["layers"], len(explained["traps"])) == ([], 1)


def test_no_single_list_is_written_for_qwen():
    with pytest.raises(ValueError, match="change with the length of a text beyond 2048 tokens"):
        output.code(explanation(QWEN), "numpy", "Qwen")
    with pytest.raises(ValueError, match="follow the length of the prompt"):
        presets.op_and_settings(QWEN)


def test_code_of_one_list_is_not_written_for_longer_texts_of_telechat():
    with pytest.raises(ValueError, match=r"a text of n > .* tokens has .*: the code printed here has one list"):
        output.code(explanation(TELECHAT), "torch", "telechat")


def test_an_error_names_the_key_of_the_file():
    with pytest.raises(ValueError, match="n_layer is 0, expected"):
        explain({"model_type": "telechat", "base_seqlen": 8192, "training_seqlen": 8192, "n_layer": 0})


@pytest.mark.parametrize("number", [3, True, None, [], b"config.json"])
def test_what_is_no_path_is_not_opened(number):
    with pytest.raises(TypeError, match=r"explain: source is .*, expected a dictionary, a path or a name"):
        explain(number)


def test_telechat_has_a_static_factor_that_its_code_holds():
    """4096 in the code of 7B, 8192 in that of 12B; no key says it, and of other sizes no code was read."""
    seven, twelve = one(TELECHAT), one(TELECHAT_12B)
    close(seven["frequencies"], by_base(1e4 * 3 ** (128 / 126), 128))
    close(twelve["frequencies"], by_base(1e4, 160))
    close(one(TELECHAT | {"training_seqlen": 4096})["frequencies"], by_base(1e4, 128))
    assert (len(seven["indices"]), seven["kv_heads"], seven["softmax_scale"]) == (30, 32, 128**-0.5)
    assert [group["magnitude"] for group in (seven, twelve)] == [1, 1]
    (entry,) = explain(TELECHAT | {"hidden_size": 2048})["unsupported"]
    assert "telechat 2 has a base_seqlen; telechat 7B has 4096, 30; telechat 12B has 5120, 38" in entry["why"]


@every([(8192, 1), (4096, 3), (2048, 7)])
def test_telechat_2_reads_the_length_of_its_factor(base_seqlen, factor):
    group = one(TELECHAT_2 | {"base_seqlen": base_seqlen})
    assert (group["heads"], group["kv_heads"], len(group["indices"])) == (64, 8, 96)
    close(group["frequencies"], by_base(1e4 * factor ** (128 / 126), 128))


@every([(100, 1), (65536, 1), (65537, 1 + 4 / 65536), (131072, 5), (200000, 4 * 200000 / 65536 - 3)])
def test_dynamic_ntk_of_minicpm(n, factor):
    group = one(MINICPM)
    close(scaling.dynamic_ntk(rope.frequencies(64, 1e6), length=n, factor=4.0, original_length=65536), called_at(group, n))
    close(called_at(group, n), by_base(1e6 * factor ** (64 / 62), 64))


def called_at(group, n):
    return called(group | {"call": group["call"].replace("length=..", "length=n")}, n)


def test_minicpm():
    group = one(MINICPM)
    assert (group["heads"], group["kv_heads"], group["head_dim"], group["softmax_scale"]) == (36, 36, 64, 1 / 8)
    assert group["positions"]["generate"] == "position_ids.padded(mask, filler=1)"
    close(one(MINICPM | {"rope_scaling": {"type": "linear", "factor": 2.0}})["frequencies"], np.array(by_base(1e6, 64)) / 2)
    assert explain(MINICPM | {"is_causal": False})["layers"][0]["causal"] is True  # a key that its code does not read
    with pytest.raises(ValueError, match="rope_type is 'yarn'; the code of minicpm knows linear, dynamic and longrope"):
        explain(MINICPM | {"rope_scaling": {"type": "yarn", "factor": 2.0}})


def test_longrope_of_minicpm_4():
    """The longest text decides, and before any text the number of rows of its table; a factor in the file is not read."""
    group, given = one(MINICPM_4), MINICPM_4["rope_scaling"]
    short, long = (np.array(by_base(1e4, 64)) / given[f"{which}_factor"] for which in ("short", "long"))
    close(group["frequencies"], short)
    close(group["frequencies_long"], long)
    lengthened = MINICPM_4 | {"rope_scaling": given | {"original_max_position_embeddings": 8192}}
    group = one(lengthened)
    close(group["frequencies"], long)
    assert "frequencies_long" not in group
    assert any("in texts of more than 32768 tokens, SDPA attention" in trap for trap in explain(MINICPM_4)["traps"])  # run
    assert any("takes the long list at every length" in trap for trap in explain(lengthened)["traps"])
    assert group["magnitude"] == pytest.approx(math.sqrt(1 + math.log(4) / math.log(8192)), rel=1e-14)
    assert explain(lengthened | {"rope_scaling": lengthened["rope_scaling"] | {"factor": 9.0}})["unread"] == [
        "rope_scaling.factor"
    ]
    with pytest.raises(ValueError, match="original_max_position_embeddings is 32768, expected an integer from 2 to 8192"):
        explain(MINICPM_4 | {"max_position_embeddings": 8192})


def test_sparse_attention_of_minicpm_4():
    config = MINICPM_4 | {"sparse_config": {"dense_len": 4096, "topk": 64}}
    explained = explanation(config)
    assert "causal in texts of fewer than 4096 tokens (sparse_config.dense_len); longer texts are not described:" in describe(
        explained, "x"
    )
    assert explained.unread == ["sparse_config.topk"]
    json.dumps(explained.as_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="dense_len is None, expected an integer from 1 on"):
        explain(MINICPM_4 | {"sparse_config": {"dense_len": None}})
