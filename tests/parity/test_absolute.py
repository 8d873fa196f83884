"""Absolute encodings of real libraries, run where they are installed; test_originals.py has those that are not.

Libraries calculate sinusoids in float32; `sinusoid_bound` follows their roundings, entry by entry.
"""

import importlib

import numpy as np
import pytest

from posref.absolute import learned, sinusoidal, zero_padding

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")

from transformers import BertConfig, GPT2Config, OPTConfig, RobertaConfig  # noqa: E402
from transformers.generation import GenerationMixin  # noqa: E402
from transformers.models.bert.modeling_bert import BertEmbeddings  # noqa: E402
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding  # noqa: E402
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding  # noqa: E402
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding  # noqa: E402
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings  # noqa: E402
from transformers.models.whisper.modeling_whisper import sinusoids  # noqa: E402

F32 = float(np.finfo(np.float32).eps)
F64 = float(np.finfo(np.float64).eps)
RNG = np.random.default_rng(0)

# Tokens of 5 lanes: all words, padding on the right, on the left, in between, nothing but padding. 1 is padding.
TOKENS = np.array([[5, 6, 7, 8, 9], [5, 6, 7, 1, 1], [1, 1, 5, 6, 7], [5, 1, 6, 1, 7], [1, 1, 1, 1, 1]])
MASK = TOKENS != 1


def sinusoid_bound(positions, dim):
    """exp(-t ln(10000) / (dim/2 - 1)) in float32 errs by the rounded exponent and 1 ulp of exp, the angle by 1 rounding more;
    then sine and cosine by 1 ulp. The table of the specification, in float64, is exact in comparison."""
    exponent = np.log(1e4) * np.arange(dim // 2) / (dim // 2 - 1)
    angle = positions[:, None] * np.exp(-exponent)
    return np.tile(angle * (exponent + 2) * F32 + F32, (1, 2))


def encode(positions, dim, *, divisor, layout):
    return sinusoidal.encode(positions, sinusoidal.frequencies(dim, divisor=divisor), layout=layout)


@pytest.mark.parametrize("dim", [8, 512])
def test_marian_is_half_with_the_papers_divisor(dim):
    table = MarianSinusoidalPositionalEmbedding(300, dim).create_weight().numpy()
    positions = np.arange(300)
    ours = encode(positions, dim, divisor="dim", layout="half")
    # Both angles are float64: the power and the quotient against the product, 12 roundings at most; then one to float32.
    angle = np.tile(positions[:, None] * sinusoidal.frequencies(dim), (1, 2))
    assert (np.abs(table - ours) <= F32 / 2 * np.abs(ours) + 12 * F64 * angle + F64).all()
    other = encode(positions, dim, divisor="dim - 2", layout="half")
    assert np.abs(table - other).max() > 0.1


@pytest.mark.parametrize("dim", [8, 384])
def test_whisper_is_half_with_the_codes_divisor(dim):
    table = sinusoids(1500, dim).numpy()
    positions = np.arange(1500)
    assert (np.abs(table - encode(positions, dim, divisor="dim - 2", layout="half")) <= sinusoid_bound(positions, dim)).all()
    other = encode(positions, dim, divisor="dim", layout="half")
    assert np.abs(table - other).max() > 0.1


def test_m2m100_counts_from_padding_and_zeroes_its_row():
    dim, padding_idx = 16, 1
    released = M2M100SinusoidalPositionalEmbedding(30, dim, padding_idx)
    assert released.weights.shape == (32, dim)
    ids = learned.position_ids(MASK, convention="m2m100")
    theirs = released(torch.tensor(TOKENS)).numpy()
    assert np.array_equal(theirs, released.weights.numpy()[ids])
    table = encode(np.arange(32), dim, divisor="dim - 2", layout="half")
    bound = sinusoid_bound(np.arange(32), dim)
    table[padding_idx] = 0
    assert (np.abs(theirs - learned.encode(ids, table)) <= bound[ids]).all()
    assert not theirs[~MASK].any()
    # Tokens are encoded at 2, 3, ..: the first is not sin(0), cos(0).
    assert np.abs(theirs[0, 0] - table[0]).max() > 0.5
    embedded = released(inputs_embeds=torch.zeros(5, 5, dim)).numpy()
    all_tokens = learned.position_ids(np.ones_like(MASK), convention="m2m100")
    assert np.array_equal(embedded, released.weights.numpy()[all_tokens])


def test_opt_reads_two_rows_further():
    released = OPTLearnedPositionalEmbedding(8, 4)
    table = released.weight.detach().numpy()
    assert table.shape[0] == 8 + 2
    theirs = released(torch.tensor(MASK.astype(int))).detach().numpy()
    ids = learned.position_ids(MASK, convention="opt")
    assert np.array_equal(theirs, learned.encode(ids, table))
    cached = released(torch.tensor(MASK.astype(int)), past_key_values_length=3).detach().numpy()
    assert np.array_equal(cached, learned.encode(ids[:, 3:], table))


def bare(module):
    """The embedding module of a BERT reduced to its positions: word and type vectors are zero, nothing is normalized."""
    module.eval()
    module.LayerNorm = torch.nn.Identity()
    with torch.no_grad():
        module.word_embeddings.weight.zero_()
        module.token_type_embeddings.weight.zero_()
    return module


SMALL = {"vocab_size": 10, "hidden_size": 4, "num_attention_heads": 1, "max_position_embeddings": 12}


@pytest.mark.parametrize("padding_idx", [1, 3])
def test_roberta_counts_from_padding(padding_idx):
    module = bare(RobertaEmbeddings(RobertaConfig(**SMALL, pad_token_id=padding_idx)))
    tokens = np.where(MASK, 5, padding_idx)
    table = module.position_embeddings.weight.detach().numpy()
    ids = learned.position_ids(MASK, convention="roberta", padding_idx=padding_idx)
    assert np.array_equal(module(torch.tensor(tokens)).detach().numpy(), learned.encode(ids, table))
    assert np.array_equal(module.create_position_ids_from_input_ids(torch.tensor(tokens), padding_idx).numpy(), ids)
    embedded = module(inputs_embeds=torch.zeros(5, 5, 4)).detach().numpy()
    all_tokens = learned.position_ids(np.ones_like(MASK), convention="roberta", padding_idx=padding_idx)
    assert np.array_equal(embedded, learned.encode(all_tokens, table))


def test_roberta_counts_padding_of_the_past_among_the_tokens():
    """With a cache RoBERTa adds the length of the past, padding included: not the last rows of the ids of the whole."""
    left = torch.tensor(TOKENS[2:3, 3:])
    cached = RobertaEmbeddings.create_position_ids_from_input_ids(left, 1, past_key_values_length=3)
    assert cached.tolist() == [[5, 6]]
    assert learned.position_ids(MASK[2], convention="roberta")[3:].tolist() == [3, 4]


def test_bert_counts_padding():
    module = bare(BertEmbeddings(BertConfig(**SMALL)))
    table = module.position_embeddings.weight.detach().numpy()
    ids = learned.position_ids(MASK, convention="bert")
    assert np.array_equal(module(torch.tensor(TOKENS)).detach().numpy(), learned.encode(ids, table))


def test_generate_gives_padding_zero():
    tensors = {"input_ids": torch.tensor(TOKENS), "attention_mask": torch.tensor(MASK.astype(int))}
    theirs = GenerationMixin()._prepare_position_ids_for_generation(tensors["input_ids"], tensors)
    assert np.array_equal(theirs.numpy(), learned.position_ids(MASK, convention="generate"))


def test_presets_are_the_published_sizes():
    rows = {name: preset["rows"] for name, preset in learned.PRESETS.items()}
    opt = OPTLearnedPositionalEmbedding(OPTConfig().max_position_embeddings, 1)
    assert rows["bert_base"] == BertConfig().max_position_embeddings
    assert rows["gpt2"] == GPT2Config().max_position_embeddings
    assert rows["opt_125m"] == opt.num_embeddings
    for name, config in (("bert_base", BertConfig()), ("gpt2", GPT2Config()), ("opt_125m", OPTConfig())):
        assert learned.PRESETS[name]["dim"] == config.hidden_size


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("padding", "theirs"), [("zero", "same"), ("valid", "valid")])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_convolution_is_torchs(width, padding, theirs):
    x = torch.tensor(RNG.integers(-9, 10, size=(2, 6, 3)), dtype=torch.float64)
    kernel = torch.tensor(RNG.integers(-9, 10, size=(width, 3, 4)), dtype=torch.float64)
    y = torch.nn.functional.conv1d(x.transpose(1, 2), kernel.permute(2, 1, 0), padding=theirs).transpose(1, 2)
    assert np.array_equal(zero_padding.convolve(x.numpy(), kernel.numpy(), padding=padding), y.numpy())


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_circular_convolution_is_torchs(width):
    module = torch.nn.Conv1d(3, 4, width, padding="same", padding_mode="circular", bias=False, dtype=torch.float64)
    kernel = torch.tensor(RNG.integers(-9, 10, size=(width, 3, 4)), dtype=torch.float64)
    x = torch.tensor(RNG.integers(-9, 10, size=(2, 6, 3)), dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(kernel.permute(2, 1, 0))
        y = module(x.transpose(1, 2)).transpose(1, 2).numpy()
    assert np.array_equal(zero_padding.convolve(x.numpy(), kernel.numpy(), padding="circular"), y)


@pytest.mark.parametrize("model", ["wav2vec2", "hubert", "wavlm", "speecht5"])
@pytest.mark.parametrize("width", [4, 5])
def test_convolutional_position_embedding(model, width):
    """Groups are blocks of the kernel; an even width reaches one row further to the left, so an entry of zeros is the last."""
    name = {"wav2vec2": "Wav2Vec2", "hubert": "Hubert", "wavlm": "WavLM", "speecht5": "SpeechT5"}[model]
    theirs = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    config = getattr(theirs, f"{name}Config")(hidden_size=6, num_conv_pos_embeddings=width, num_conv_pos_embedding_groups=2)
    torch.manual_seed(1)
    module = getattr(theirs, f"{name}PositionalConvEmbedding")(config).double()
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    groups = module.conv.weight.detach().numpy().transpose(2, 1, 0)  # (width, channels of a group, c_out)
    kernel = np.zeros((width, 6, 6))
    kernel[:, :3, :3], kernel[:, 3:, 3:] = groups[..., :3], groups[..., 3:]
    kernel = kernel if width % 2 else np.concatenate([kernel, 0 * kernel[:1]])
    y = zero_padding.convolve(x.numpy(), kernel, padding="zero") + module.conv.bias.detach().numpy()
    ours = torch.nn.functional.gelu(torch.tensor(y))
    with torch.no_grad():
        np.testing.assert_allclose(module(x).numpy(), ours.numpy(), rtol=0, atol=2.0**-46)
