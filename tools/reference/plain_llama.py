"""A Llama, Mistral, Qwen2 or Qwen3 forward pass in numpy float64, straight from the equations.

It shares no code with Transformers beyond the rounding of the inverse frequencies to float32. The
generators compare it with the float64 run, so a rounding to float32 left in that run cannot go
unseen.
"""
import numpy as np


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def inverse_frequencies(config):
    """Of RoPE types default, linear and llama3, in float64: [D/2]."""
    rope, dim = config.rope_parameters, head_dim(config)
    frequencies = rope["rope_theta"] ** -(np.arange(0, dim, 2) / dim)
    if rope["rope_type"] == "linear":
        return frequencies / rope["factor"]
    if rope["rope_type"] == "llama3":
        turns = rope["original_max_position_embeddings"] * frequencies / (2 * np.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return frequencies * (kept + (1.0 - kept) / rope["factor"])
    assert rope["rope_type"] == "default"
    return frequencies


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
    kv_heads, dim = config.num_key_value_heads, head_dim(config)
    positions = np.arange(len(ids), dtype=np.float32)
    angle = (positions[:, None] * inv_freq.astype(np.float32)).astype(np.float64)[:, None, :]
    cos, sin = np.cos(angle), np.sin(angle)
    x = weights["model.embed_tokens.weight"][ids]
    hidden = []
    for layer in range(config.num_hidden_layers):
        def weight(name):
            return weights.get(f"model.layers.{layer}.{name}")

        def linear(name, rows):
            bias = weight(f"{name}.bias")
            return rows @ weight(f"{name}.weight").T + (0.0 if bias is None else bias)

        def rotated(name, num_heads):
            rows = linear(f"self_attn.{name}_proj", h).reshape(-1, num_heads, dim)
            head_norm = weight(f"self_attn.{name}_norm.weight")  # Qwen3
            return rotate(rows if head_norm is None else rms_norm(rows, head_norm, eps), cos, sin)

        h = rms_norm(x, weight("input_layernorm.weight"), eps)
        v = linear("self_attn.v_proj", h).reshape(-1, kv_heads, dim)
        out = attend(rotated("q", heads), rotated("k", kv_heads), v)
        x = x + linear("self_attn.o_proj", out)
        h = rms_norm(x, weight("post_attention_layernorm.weight"), eps)
        gate = linear("mlp.gate_proj", h)
        x = x + linear("mlp.down_proj", gate / (1.0 + np.exp(-gate)) * linear("mlp.up_proj", h))
        hidden.append(x)
    last = rms_norm(x[-1], weights["model.norm.weight"], eps)
    output = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return hidden, output @ last


def check_float64(model, run, prompt_ids):
    """Raises if the float64 run is off by more than the order of its float64 sums explains."""
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    inv_freq = model.model.rotary_emb.inv_freq.numpy()
    np.testing.assert_allclose(inv_freq, inverse_frequencies(model.config), rtol=1e-6)
    hidden, logits = forward(weights, model.config, inv_freq, np.array(prompt_ids))
    pairs = list(zip(run.hidden, hidden)) + [(run.logits[0], logits)]
    worst = max(np.abs(ours.numpy() - plain).max() / np.abs(plain).max() for ours, plain in pairs)
    if worst > 1e-12:
        raise AssertionError(f"the float64 run is {worst:.2e} away from plain float64")
    return worst
