"""Runs Transformers' Llama, Mistral, Qwen2 and Qwen3 in float64, float32 and bfloat16 and records what a test needs.

float32 and bfloat16 are Transformers as it comes. Transformers computes three things in float32 even
in a float64 model: RMSNorm, the rotary cosines and the softmax. load_float64 replaces those, and
only those, so that nothing after the rotary angle is rounded below float64. The angle itself, the
float32 product of the position and the float32 inverse frequency, is the model's definition and
stays.
"""
import types

import torch
from transformers import AttentionInterface, AutoModelForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

# The attentions below, as Transformers knows them: ours, and its own sdpa with the state beside it.
REFERENCE = "reference"
RECORDED_SDPA = "recorded_sdpa"


class AttentionState:
    """What reference_attention records and which cached rows it hides; one forward at a time."""

    def __init__(self):
        self.recorded = None  # layer -> (queries [Hq, rows, D], keys [Hkv, S, D]), both after RoPE
        self.query_rows = slice(None)  # of the queries, what is recorded
        self.hidden_rows = None  # layer -> bool [Hkv, S]: prompt rows decode must not see


STATE = AttentionState()
QUERY_BLOCK = 4096  # rows whose logits, [QUERY_BLOCK, keys] of one head, exist at a time


def record(module, query, key):
    if STATE.recorded is not None:
        STATE.recorded[module.layer_idx] = (query[0, :, STATE.query_rows].clone(), key[0])


def reference_attention(module, query, key, value, attention_mask, scaling, **unused):
    """Causal attention, one head at a time, softmax in the dtype of the queries."""
    record(module, query, key)
    q, k, v = query[0], key[0], value[0]  # [heads, rows, D]; the batch is one prompt
    num_rows, before = q.shape[1], k.shape[1] - q.shape[1]
    group = q.shape[0] // k.shape[0]
    out = torch.empty_like(q)
    for begin in range(0, num_rows, QUERY_BLOCK):
        rows = slice(begin, min(begin + QUERY_BLOCK, num_rows))
        num_keys = before + rows.stop
        future = torch.ones(rows.stop - begin, num_keys, dtype=torch.bool).triu(before + begin + 1)
        for head in range(q.shape[0]):
            logits = (q[head, rows] @ k[head // group, :num_keys].T) * scaling
            logits.masked_fill_(future, -torch.inf)
            if STATE.hidden_rows is not None:
                hidden = STATE.hidden_rows[module.layer_idx][head // group]
                logits[:, :hidden.shape[0]].masked_fill_(hidden, -torch.inf)
            out[head, rows] = torch.softmax(logits, dim=-1) @ v[head // group, :num_keys]
    return out.transpose(0, 1)[None], None  # [1, rows, heads, D]


def recorded_sdpa(module, query, key, value, attention_mask, scaling, **options):
    if STATE.hidden_rows is not None:
        return reference_attention(module, query, key, value, attention_mask, scaling)
    record(module, query, key)
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling,
                                  **options)


AttentionInterface.register(REFERENCE, reference_attention)
AttentionInterface.register(RECORDED_SDPA, recorded_sdpa)


def rms_norm_float64(self, hidden_states):
    assert hidden_states.dtype == torch.float64
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


def rotary_float64(self, x, position_ids):
    """float64 cosine and sine of Transformers' float32 angle."""
    assert x.dtype == torch.float64 and self.attention_scaling == 1.0
    angle = position_ids[..., None].float() * self.inv_freq.float()
    angle = torch.cat((angle, angle), dim=-1).double()
    return angle.cos(), angle.sin()


def load(folder, dtype, attention):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=attention)
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    return model.eval()


def load_float64(folder):
    """The stored weights, exactly, in a model that computes in float64 throughout."""
    model = load(folder, torch.float32, REFERENCE)
    inv_freq = model.model.rotary_emb.inv_freq.clone()
    model = model.double()
    assert torch.equal(model.model.rotary_emb.inv_freq.float(), inv_freq)
    for module in model.modules():
        kind = type(module).__name__  # LlamaRMSNorm and so on, one like the other
        if kind.endswith("RMSNorm"):
            module.forward = types.MethodType(rms_norm_float64, module)
        elif kind.endswith("RotaryEmbedding"):
            module.forward = types.MethodType(rotary_float64, module)
    return model


def record_hidden(model, rows, layers, hidden):
    """Appends to `hidden` the given rows [n, d] after each layer; returns what to remove."""
    def hook(module, inputs, output):
        hidden.append(output[0, rows].clone())

    return [model.model.layers[layer].register_forward_hook(hook) for layer in layers]


class Run:
    """One forward over `ids`, of which the first `num_prompt` are the prompt.

    hidden: per layer [num_prompt, d], before the final norm, or only the given layers and rows.
    logits: [n, vocab] for the rows from the last of the prompt to the last of `ids`. recorded: see
    AttentionState, `reference` only.
    """

    @torch.no_grad()
    def __init__(self, model, ids, num_prompt, layers=None, rows=None):
        self.hidden = []
        layers = range(model.config.num_hidden_layers) if layers is None else layers
        hooks = record_hidden(model, slice(num_prompt) if rows is None else rows, layers,
                              self.hidden)
        STATE.recorded = {}
        output = model(torch.tensor([ids]), use_cache=False,
                       logits_to_keep=len(ids) - num_prompt + 1)
        self.recorded, STATE.recorded = STATE.recorded, None
        self.logits = output.logits[0]
        for hook in hooks:
            hook.remove()
        assert len(self.hidden) == len(layers)
        assert all(h.dtype == model.dtype for h in self.hidden) and self.logits.dtype == model.dtype


def errors(values, reference):
    """How far the rows of `values` are from those of `reference` (both [rows, n])."""
    difference = values.double() - reference
    relative = difference.norm(dim=-1) / reference.norm(dim=-1)
    return {"rms_rel": relative.square().mean().sqrt().item(),
            "median_row_rel": relative.median().item(),
            "max_row_rel": relative.max().item(),
            "max_abs": difference.abs().max().item()}


def run_errors(run, reference, rows):
    """Errors of one run: per layer over the stored rows and over all rows, and of the logits."""
    pairs = list(zip(run.hidden, reference.hidden))
    return {"hidden": [errors(h[rows], r[rows]) for h, r in pairs],
            "hidden_all_rows": [errors(h, r) for h, r in pairs],
            "logits": errors(run.logits, reference.logits)}


def all_errors(folder, reference, ids, num_prompt, rows):
    """Errors of Transformers' own float32 and bfloat16, under both of its stock attentions."""
    out = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        for attention in ("sdpa", "eager"):
            run = Run(load(folder, dtype, attention), ids, num_prompt)
            out[f"{name}_{attention}"] = run_errors(run, reference, rows)
    return out


@torch.no_grad()
def prefill(model, ids):
    """Full attention over the prompt: its cache, and the logits of its last row [vocab]."""
    output = model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
    return output.cache, output.logits[0, -1]


@torch.no_grad()
def greedy(model, cache, logits, position, count, hidden_rows=None, seen=None):
    """`count` ids from `logits` on, never stopping at an end token; changes `cache`.

    Also the lead of each chosen logit over the second best. hidden_rows: see AttentionState. The
    logits of each step are appended to the list `seen`.
    """
    ids, leads = [], []
    STATE.hidden_rows = hidden_rows
    while True:
        if seen is not None:
            seen.append(logits)
        best = torch.topk(logits, 2)
        ids.append(best.indices[0].item())
        leads.append((best.values[0] - best.values[1]).item())
        if len(ids) == count:
            break
        output = model(torch.tensor([[ids[-1]]]), cache=cache, use_cache=True,
                       position_ids=torch.tensor([[position + len(ids) - 1]]))
        logits = output.logits[0, -1]
    STATE.hidden_rows = None
    return ids, leads


def spread_rows(num_rows, spread=60, last=4):
    """`spread` rows evenly over the prompt from row 0 on, and the last `last` rows."""
    first = [round(i * (num_rows - last - 1) / (spread - 1)) for i in range(spread)]
    return first + list(range(num_rows - last, num_rows))
