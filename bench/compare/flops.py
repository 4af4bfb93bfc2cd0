"""Floating-point operations of a prefill, from the model's shape."""


def prefill_flops(shape, prompt_len):
    """Every weight of every layer once per token (a multiply and an add), attention over the keys a
    token sees (4 * head_dim for each query head), and the output head for the last token alone."""
    hidden, head_dim = shape["hidden_dim"], shape["head_dim"]
    q_dim = shape["num_q_heads"] * head_dim
    kv_dim = shape["num_kv_heads"] * head_dim
    layer_weights = hidden * (2 * q_dim + 2 * kv_dim) + 3 * hidden * shape["ffn_dim"]
    visible_keys = prompt_len * (prompt_len + 1) // 2
    layer = 2 * layer_weights * prompt_len + 4 * q_dim * visible_keys
    return shape["num_layers"] * layer + 2 * hidden * shape["vocab_size"]
