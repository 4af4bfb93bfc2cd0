"""A Llama forward pass in numpy float64, straight from the equations.

It shares no code with Transformers beyond the inverse frequencies. The generators compare it with
the float64 run, so a rounding to float32 left in that run cannot go unseen.
"""
import numpy as np


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def rotate(x, cos, sin):
    """x: [rows, heads, D]; dimension i turns with i + D/2. cos, sin: [rows, 1, D/2]."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)


def attend(q, k, v):
    """q: [rows, Hq, D]; k, v: [rows, Hkv, D]. Causal."""
    num_rows, num_heads, dim = q.shape
    group = num_heads // k.shape[1]
    out = np.empty_like(q)
    for head in range(num_heads):
        for row in range(num_rows):
            logits = k[:row + 1, head // group] @ q[row, head] / np.sqrt(dim)
            weights = np.exp(logits - logits.max())
            out[row, head] = weights @ v[:row + 1, head // group] / weights.sum()
    return out.reshape(num_rows, -1)


def forward(weights, config, inv_freq, ids):
    """weights: name -> float64 array. Hidden states per layer [rows, d] and last-row logits."""
    eps, heads = config.rms_norm_eps, config.num_attention_heads
    kv_heads, dim = config.num_key_value_heads, config.head_dim
    positions = np.arange(len(ids), dtype=np.float32)
    angle = (positions[:, None] * inv_freq.astype(np.float32)).astype(np.float64)[:, None, :]
    cos, sin = np.cos(angle), np.sin(angle)
    x = weights["model.embed_tokens.weight"][ids]
    hidden = []
    for layer in range(config.num_hidden_layers):
        def linear(name, rows):
            return rows @ weights[f"model.layers.{layer}.{name}.weight"].T

        def norm(name):
            return rms_norm(x, weights[f"model.layers.{layer}.{name}.weight"], eps)

        h = norm("input_layernorm")
        q = rotate(linear("self_attn.q_proj", h).reshape(-1, heads, dim), cos, sin)
        k = rotate(linear("self_attn.k_proj", h).reshape(-1, kv_heads, dim), cos, sin)
        v = linear("self_attn.v_proj", h).reshape(-1, kv_heads, dim)
        x = x + linear("self_attn.o_proj", attend(q, k, v))
        h = norm("post_attention_layernorm")
        gate = linear("mlp.gate_proj", h)
        x = x + linear("mlp.down_proj", gate / (1.0 + np.exp(-gate)) * linear("mlp.up_proj", h))
        hidden.append(x)
    last = rms_norm(x[-1], weights["model.norm.weight"], eps)
    output = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return hidden, output @ last


def check_float64(model, run, prompt_ids):
    """Raises if the float64 run is off by more than the order of its float64 sums explains."""
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    hidden, logits = forward(weights, model.config, model.model.rotary_emb.inv_freq.numpy(),
                             np.array(prompt_ids))
    pairs = list(zip(run.hidden, hidden)) + [(run.logits[0], logits)]
    worst = max(np.abs(ours.numpy() - plain).max() / np.abs(plain).max() for ours, plain in pairs)
    if worst > 1e-12:
        raise AssertionError(f"the float64 run is {worst:.2e} away from plain float64")
    return worst
