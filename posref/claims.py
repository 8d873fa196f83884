"""Claims: what introductions and papers say about position, and what is true.

A claim of SAID has a source. Words in quotation marks are the words of that source; the rest sums the source up. The verdict
rests on `by`: a theorem ("rotary.rope.relative"), a refuted control of one ("rotary.rope.relative/relative_with_two_schedules",
whose witness is the claim's), or a command that shows it. A `witness` of the claim itself is an expression that is true; the
tests evaluate it.

Claims without a source are posref's own: false sentences near a theorem, each with its counterexample. They are nobody's words
and never stand in quotation marks.
"""

from typing import NamedTuple

from posref.statements import statements

SOURCES = {
    "history": "History of Position Encoding (a blog post)",
    "sarkale": "S. Sarkale, Position Encoding in Transformers (a blog post), 25 April 2024",
    "su": "J. Su, Transformer Position Encodings That Rack Researchers' Brains, translated from kexue.fm/archives/8130 (2021)",
    "slides": "Positional Embeddings, aka positional encodings (slides)",
    "vaswani": "Vaswani et al., Attention Is All You Need, arXiv 1706.03762, section 3.5",
    "roformer": "Su et al., RoFormer, arXiv 2104.09864, abstract",
    "t5": "Raffel et al., Exploring the Limits of Transfer Learning, arXiv 1910.10683, section 2.1",
    "": "posref, a false sentence with a counterexample",
}
VERDICTS = ("right", "imprecise", "wrong", "undecided")


class Claim(NamedTuple):
    """What is claimed, the verdict, what is true, what shows it, and a counterexample; `source` is "" for posref's own."""

    source: str
    sentence: str
    verdict: str
    truth: str
    by: str
    witness: str = ""


def claims(words: str = "") -> list[Claim]:
    """The claims in which all words occur, those with a source first.

    >>> [c.verdict for c in claims("oscillation ranges")]
    ['imprecise']
    """
    said = [c._replace(witness=c.witness or _witness(c.by)) for c in SAID]
    by = {c.by for c in said}
    said += [
        Claim("", r.sentence, "wrong", r.truth, f"{s.name}/{r.name}", r.witness)
        for s in statements().values()
        for r in s.refuted
        if r.kind == "claim" and f"{s.name}/{r.name}" not in by
    ]
    return [c for c in said if all(word.lower() in _text(c) for word in words.split())]


def _text(claim: Claim) -> str:
    return " ".join((SOURCES[claim.source], *claim)).lower()


def _witness(by: str) -> str:
    """The witness of the refuted control that `by` names; a theorem or a command has none."""
    theorem, _, name = by.partition("/")
    return next((r.witness for r in statements()[theorem].refuted if r.name == name), "") if name else ""


SAID = (
    # History of Position Encoding
    Claim(
        "history",
        "e_t ends in sin(w_{d/2} t), cos(w_{d/2} t).",
        "wrong",
        "The indices 0 .. d/2 are d/2 + 1 pairs, two features too many. The last pair is d/2 - 1, as in the post's own sum.",
        "absolute.sinusoidal.pinned",
        "sinusoidal.encode(np.arange(1), sinusoidal.frequencies(8), layout='interleaved').shape == (1, 8)",
    ),
    Claim(
        "history",
        "w_k = 1 / 10000^(2k/d), and words p_i and e_{i+k} whose product is a sum over i.",
        "imprecise",
        "k is both the number of a frequency and the offset, i both a position and the number of a frequency: the product is "
        "sum_t cos(w_t k), with t the pair and k the offset.",
        "absolute.sinusoidal.dot_product",
    ),
    Claim(
        "history",
        'Of the encodings of two words: "we can deduce the position between them by taking dot product"; the position as '
        "a signed offset.",
        "wrong",
        "sum_t cos(w_t k) is even in k, so it does not tell left from right.",
        "absolute.sinusoidal.dot_product/dot_product_is_odd",
    ),
    Claim(
        "history",
        'Of the encodings of two words: "we can deduce the position between them by taking dot product"; the position as '
        "a distance.",
        "wrong",
        "sum_t cos(w_t k) is not monotone in |k|, so several distances can have one product.",
        "absolute.sinusoidal.dot_product/similarity_falls_with_distance",
    ),
    Claim(
        "history",
        'Of the four terms of W_Q (x + e) (W_K (x + e))^T: "Only the fourth one that has the dot product of two '
        'positional embedding contain relative position of two words."',
        "wrong",
        "e_i W_Q W_K^T e_j^T depends on j - i alone exactly if W_Q W_K^T is made of 2 x 2 blocks that commute with the "
        "shifts: d of "
        "the d^2 directions. Otherwise it depends on both positions.",
        "attention.relative_exactly_for_the_commutant/relative_for_any_projections",
    ),
    Claim(
        "history",
        "W_Q (x_i + e_i) (W_K (x_j + e_j))^T expands to W_Q x_i x_j^T W_K + .. + W_Q e_i e_j^T W_K.",
        "wrong",
        "The transposed factor ends in W_K^T; and a score is a number only with words as rows: (x_i + e_i) W_Q W_K^T (x_j + "
        "e_j)^T.",
        "attention.four_terms_add_up/the_key_matrix_without_its_transpose",
    ),
    Claim(
        "history",
        "Attention(Q, K, V) = softmax(Q K^T) V.",
        "imprecise",
        "The scale has to be said: 1/sqrt(d) in Vaswani et al., 1/sqrt(2d) in TUPE, 1/sqrt(3d) in DeBERTa, and 1 in T5, whose "
        "weights contain it. Su's Eqs. (2) and (4) leave it out, too.",
        "relative.t5.no_scale/scaled_as_usual",
    ),
    Claim(
        "history",
        'Absolute positional encoding "is first introduced in the paper Attention Is All You Need".',
        "wrong",
        "Convolutional Sequence to Sequence Learning (arXiv 1705.03122) has learned ones a month earlier, as Su's survey says.",
        "posref show learned",
    ),
    Claim(
        "history",
        'Concatenation will "increase dimension of input vector with no significant increase of model\'s accuracy".',
        "undecided",
        "Accuracy needs training. What is proved: concatenation before a linear map contains addition, and not the other "
        "way round.",
        "absolute.merge.concatenation_contains_addition/addition_contains_concatenation",
    ),
    Claim(
        "history",
        'Of the sinusoid, which many call absolute: "this encoding method can learn the relative distance between two words".',
        "right",
        "A linear map takes p_m to p_{m+k} for all m. It is a possibility: weights have to find it, and few do, see the "
        "fourth term.",
        "absolute.sinusoidal.shift_is_linear",
    ),
    Claim(
        "history",
        '"without external help, Transformers can\'t acquire positional information"',
        "imprecise",
        "True without a mask: attention is permutation equivariant. A causal mask tells the order from the second layer on.",
        "attention.causal_mask_and_order/two_causal_layers_are_blind",
    ),
    Claim(
        "history",
        'Transformers have a "time complexity of O(N^2)".',
        "right",
        "Scores and averages of n tokens need about 2 n^2 d multiplications a head; `posref table` counts what each system "
        "adds.",
        "posref table",
    ),
    # Position Encoding in Transformers
    Claim(
        "sarkale",
        'i is the "Index of embedding dimension".',
        "imprecise",
        "i is the number of a pair, 0 .. d/2 - 1; the features are 2i and 2i + 1.",
        "absolute.sinusoidal.pinned",
    ),
    Claim(
        "sarkale",
        'The division term "is a decaying function which ranges between (0,1]".',
        "imprecise",
        "It ranges over [base^-(1 - 2/d), 1] and is never below 1/base: 1.0366e-4 for d = 512.",
        "absolute.sinusoidal.frequencies_pinned",
        "sinusoidal.frequencies(512)[0] == 1 and round(sinusoidal.frequencies(512)[-1], 8) == 0.00010366",
    ),
    Claim(
        "sarkale",
        '"all even indices at every position converge to 0", and "all the odd indices at every position converge to 1 as '
        'we go deeper in the dimension".',
        "wrong",
        "At a position m the last pair is sin and cos of m w with w = 1.0366e-4 (d = 512): near 0 and 1 for m far below "
        "10^4 alone.",
        "absolute.sinusoidal.later_components_near_zero_and_one/later_components_converge",
    ),
    Claim(
        "sarkale",
        '"as we go towards later dimensions of the positional vector this oscillation ranges between [0, 1]"',
        "imprecise",
        "It is so in the figure: for 100 tokens and d = 512 the features 232 to 511 lie in [0, 1]. It is no property of these "
        "features: with 104 tokens one of them is negative, and every feature takes both signs in the end.",
        "absolute.sinusoidal.components_reach_both_signs/later_components_stay_above_zero",
    ),
    Claim(
        "sarkale",
        '"each position pos can be represented uniquely"',
        "right",
        "In exact arithmetic: w_0 = 1 and pi is irrational. Rounded numbers can collide: bfloat16 at d = 4.",
        "absolute.sinusoidal.unique",
    ),
    Claim(
        "sarkale",
        '"Values for any position pos=p will remain the same irrespective of number of words in the sentence."',
        "right",
        "True of all encodings here but the normalized index.",
        "absolute.index.length_independent",
    ),
    Claim(
        "sarkale",
        'w_n with n in [0, 1, .. N], where N is the "total number of words".',
        "wrong",
        "N words have the numbers 0 .. N - 1.",
        "absolute.index.pinned",
        "index.encode(np.arange(3)).ravel().tolist() == [0, 1, 2]",
    ),
    Claim(
        "sarkale",
        'positional_encoding(max_len, d) returns a "Positional encodings matrix of shape (max_len, d)", for any d.',
        "wrong",
        "The function returns two arrays, and fails for odd d, where there is a sine without a cosine. Its exp(-2t "
        "log(base)/d) "
        "and base^(-2t/d) are two programs that differ in the last bits.",
        "posref show sinusoidal",
        "not np.array_equal(np.exp(np.arange(0, 512, 2) * (-np.log(10000.0) / 512)), sinusoidal.frequencies(512))",
    ),
    Claim(
        "sarkale",
        "PE(pos, 2i) = sin(pos / 10000^(2i/d)), the formula of the authors of Attention Is All You Need.",
        "imprecise",
        "It is the paper's. Their code, tensor2tensor, divides by d - 2 and puts all sines before all cosines.",
        "posref show sinusoidal",
    ),
    # Transformer Position Encodings That Rack Researchers' Brains
    Claim(
        "su",
        '"the vector at position alpha + beta can be expressed as a combination of vectors at positions alpha and beta"',
        "imprecise",
        "It is bilinear in them: a linear map of p_a whose coefficients come from p_b. No sum x p_a + y p_b gives it for d "
        ">= 4.",
        "absolute.sinusoidal.addition_is_bilinear/addition_is_a_sum",
    ),
    Claim(
        "su",
        '"lack of extrapolation is not really a clear drawback of absolute position encoding"',
        "imprecise",
        "Hierarchical decomposition makes n^2 rows of n, which are no trained ones; with alpha = 1/2 pairs of positions "
        "collide.",
        "absolute.hierarchical.exchanged_digits/exchanged_for_every_alpha",
    ),
    Claim(
        "su",
        '"sinusoidal position encoding is a particular solution of FLOATER"',
        "right",
        "Of a linear field that is the same at all times. That it is a solution of some field says nothing: every curve is.",
        "absolute.floater.sinusoid_solves_a_linear_field",
    ),
    Claim(
        "su",
        "Multiplicative position encoding is x_k (*) p_k.",
        "imprecise",
        "The author's library computes x (1 + p). x p deletes the sine features of token 0.",
        "absolute.merge.pinned/conventions_agree",
    ),
    Claim(
        "su",
        "R_{i,j} = p[clip(i - j, p_min, p_max)].",
        "imprecise",
        "Shaw et al. and their code have j - i; the tables are each other's reversed.",
        "relative.shaw.query_minus_key_is_the_table_reversed/query_minus_key_is_the_same",
    ),
    Claim(
        "su",
        'Since Transformer-XL "subsequent relative position encodings have only been added to the Attention matrix, and '
        'no longer to v_j".',
        "wrong",
        "NEZHA, which is later and which the same text names, adds its vectors to the values as well.",
        "relative.nezha.attend_pinned/on_the_matrix_alone",
    ),
    Claim(
        "su",
        'Because of the clipping "they can handle text of arbitrary length".',
        "imprecise",
        "There is no error at any length, and no order among far keys either: all offsets beyond the limit have one vector.",
        "offsets.clip_saturates/clip_keeps_offsets_apart",
    ),
    Claim(
        "su",
        'The R_{i-j} of Transformer-XL "is not clipped".',
        "imprecise",
        "Not in the paper; both released programs have `clamp_len`, which limits the distance.",
        "relative.transformer_xl.distances_pinned/never_clipped",
    ),
    Claim(
        "su",
        '"u W_Q and v W_Q can be merged into single vectors u and v"',
        "right",
        "Every u can be had if W_Q is onto; if it is not, merging enlarges the family.",
        "relative.transformer_xl.position_of_the_query_becomes_u/merging_never_changes_the_family",
    ),
    Claim(
        "su",
        "T5's f(i - j) is 0, 1, .. 7, 8, 8, 8, 8, 9, .. for i - j = 0, 1, .. 30.",
        "right",
        "It is the past half of the encoder's buckets; keys after the query have 16 more. The decoder is exact up to 15.",
        "relative.t5.buckets_pinned/printed_table_is_the_decoders",
    ),
    Claim(
        "su",
        'TUPE "contains the same idea" as T5.',
        "imprecise",
        "Only the bias is T5's. TUPE keeps a position term with matrices of its own and treats [CLS] apart.",
        "relative.tupe.only_the_bias_is_t5s/position_scores_are_a_bias_of_the_offset",
    ),
    Claim(
        "su",
        "T5's fourth term \"is actually just a scalar that depends only on (i, j), which we can directly train as a "
        'parameter".',
        "imprecise",
        "There is one number for each head and each bucket of j - i, shared by all layers, and no 1/sqrt(d).",
        "relative.t5.pinned",
    ),
    Claim(
        "su",
        "DeBERTa: q_i k_j + x_i W_Q W_K^T R_{i,j}^T + R_{j,i} W_Q W_K^T x_j^T.",
        "imprecise",
        "Positions have projections of their own, the scale is 1/sqrt(3d), and both released programs use (i, j) in the "
        "third term.",
        "relative.deberta.pinned/the_released_code_follows_the_paper",
    ),
    Claim(
        "su",
        'Of the base version of DeBERTa: "it has 13 layers total; the first 11 use only relative position encoding", and '
        "the last 2 are the decoder.",
        "imprecise",
        "It has 12 layers of weights. The decoder runs the last of them twice, which makes 11 + 2; fine-tuning has 11 + 1.",
        "relative.deberta.decoder_pinned",
    ),
    Claim(
        "su",
        'Of position in a CNN: "the most fundamental factor is the presence of zero padding".',
        "imprecise",
        "The finding of one paper. What is proved: without a border, or with circular padding, a convolution knows no "
        "position.",
        "absolute.zero_padding.circular_is_equivariant/zero_padding_is_equivariant",
    ),
    Claim(
        "su",
        'Of what zero padding tells a CNN: "Global, prior-free structures like Attention don\'t benefit from this."',
        "wrong",
        "Under a causal mask the first token is a border, and two layers tell the order of what came before.",
        "attention.causal_mask_and_order",
    ),
    Claim(
        "su",
        "The complex embedding is [r_1 e^(..), .., r_2 e^(..), .., r_d e^(..)], Eq. (12).",
        "wrong",
        "The entries are 1, 2, .., d: one ellipsis is misplaced.",
        "absolute.complex_order.pinned/second_entry_after_an_ellipsis",
    ),
    Claim(
        "su",
        '"If explicit absolute position information is also needed, one can additionally apply this encoding to v."',
        "imprecise",
        "True if the sum is not turned back. Turned back by the query's position it is relative again.",
        "rotary.value.relative_if_undone/relative_without_undoing",
    ),
    Claim(
        "su",
        '"the inner product depends only on the relative position m - n"',
        "imprecise",
        "It depends on q, k and m - n; no other position occurs in it.",
        "rotary.rope.not_trivial",
    ),
    # Positional Embeddings, slides
    Claim(
        "slides",
        'd_model is the "dimension index".',
        "wrong",
        "d_model is the number of features; the index is i, the number of a pair.",
        "absolute.sinusoidal.pinned",
    ),
    Claim(
        "slides",
        "The efficient form of RoPE multiplies the sines with (-x_2, x_1, .., -x_{d-1}, x_d).",
        "wrong",
        "The last two are (-x_d, x_{d-1}). As printed the map is no rotation.",
        "rotary.rope.efficient_form/efficient_form_as_printed",
    ),
    Claim(
        "slides",
        'RoPE "rotates the element embedding by (m*theta)", and theta is a "fixed small angle".',
        "imprecise",
        "Each pair has an angle of its own; the first is 1 radian, 57 degrees.",
        "rotary.rope.frequencies_pinned",
        "rope.frequencies(8)[0] == 1",
    ),
    Claim(
        "slides",
        'There are as many relative embeddings "as the total number of elements in the sequence".',
        "wrong",
        "n elements have 2n - 1 offsets; clipped at k there are 2k + 1.",
        "offsets.intervals",
        "len(np.unique(offsets.offsets(np.arange(5), np.arange(5)))) == 9",
    ),
    Claim(
        "slides",
        'Of the sinusoidal relative embedding: "Since its not symmetric through origin, the relative positions to left '
        'and right can be differentiated."',
        "right",
        "Sines are odd. In NEZHA's released code the offset is shifted by k before, so the two sides are no mirror images.",
        "relative.nezha.past_is_told_from_future/mirrored_in_the_released_form",
    ),
    Claim(
        "slides",
        'Of relative embeddings: "the embeddings arent dependent on input length", which "takes care of the sequence length".',
        "imprecise",
        "The vector of an offset does not change with the length. Offsets that training never had are untrained unless "
        "clipped.",
        "absolute.index.length_independent",
    ),
    Claim(
        "slides",
        'Of the angle of RoPE: "Adding words before or after doesn\'t affect it."',
        "imprecise",
        "Words before move all positions, and scores stay. More words enter the softmax, so its weights do change.",
        "rotary.rope.attention_is_translation_invariant",
    ),
    Claim(
        "slides",
        'A good embedding is "Input content independent".',
        "imprecise",
        "A wish for what is added to a word. RoPE and Complex Order depend on the word and work.",
        "absolute.index.content_independent/rope_adds_one_vector_to_all_words",
    ),
    Claim(
        "slides",
        'A need of a good embedding: "Unique embedding".',
        "imprecise",
        "A wish: clipped and bucketed offsets share one embedding beyond their limit, in T5 and in Shaw et al.",
        "absolute.index.unique/shaw_tells_all_offsets_apart",
    ),
    Claim(
        "slides",
        'A good embedding has "small values (relative to input)"; the sinusoid is listed as one.',
        "wrong",
        "|p| = sqrt(d/2) at every position: 35 times the length of a word whose features have a deviation of 0.02. Vaswani "
        "et al. "
        "multiply words by sqrt(d) before they add it.",
        "absolute.sinusoidal.longer_than_small_words/small_relative_to_the_input",
    ),
    Claim(
        "slides",
        'Of learned embeddings: "This has been implemented in BERT, RoBERTa, GPT2 etc. [Wang et. al. 2020]".',
        "imprecise",
        "That paper analyses them. They are of Gehring et al. 2017, BERT and GPT.",
        "posref show learned",
    ),
    Claim(
        "slides",
        "Theta = {theta_i = 10000^(-2(i-1)/d), i = 1 .. d/2}.",
        "right",
        "Counted from 1; the same numbers as 10000^(-2t/d), t = 0 .. d/2 - 1.",
        "rotary.rope.frequencies_pinned",
    ),
    Claim(
        "slides",
        'The normalized index is a "length dependent embedding".',
        "right",
        "And its step shrinks: one value belongs to many pairs of a position and a length.",
        "absolute.index.unique/normalized_index_is_unique",
    ),
    Claim(
        "slides",
        '"Relative positional embeddings are slower due to the additional step in the self attention layer."',
        "imprecise",
        "Shaw et al. add 28 multiplications for each pair of 16 tokens at d = 8, T5 and ALiBi none, RoPE 2: `posref table`.",
        "posref table",
    ),
    # Papers
    Claim(
        "vaswani",
        '"The wavelengths form a geometric progression from 2 pi to 10000 * 2 pi."',
        "imprecise",
        "With the printed exponent 2i/d the last one is 10000^(1 - 2/d) * 2 pi: 9647 * 2 pi for d = 512.",
        "absolute.sinusoidal.frequencies_pinned/the_paper_ends_at_one_over_base",
    ),
    Claim(
        "vaswani",
        '"for any fixed offset k, PE_{pos+k} can be represented as a linear function of PE_{pos}"',
        "right",
        "By an orthogonal matrix that depends on k alone.",
        "absolute.sinusoidal.shift_is_linear",
    ),
    Claim(
        "roformer",
        'RoPE has "decaying inter-token dependency with increasing relative distances".',
        "wrong",
        "A bound on the score falls on the whole. Scores need not: for each offset there are q and k whose score is largest "
        "there.",
        "rotary.rope.no_decay/the_bound_is_monotone",
    ),
    Claim(
        "t5",
        '"ranges that increase in size logarithmically up to an offset of 128 beyond which we assign all relative '
        'positions to the same embedding"',
        "imprecise",
        "The last bucket begins at 91 in the encoder and at 113 in the decoder.",
        "relative.t5.starts_pinned/saturates_at_max_distance",
        "t5.bucket_starts(16, 128)[-1] == 91 and t5.bucket_starts(32, 128)[-1] == 113",
    ),
)
