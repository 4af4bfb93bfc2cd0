"""Dense SnapKV, in the precision of the queries and keys it is given."""
import torch
import torch.nn.functional as F

WINDOW = 32
KERNEL = 7


def pooled_scores(queries, keys):
    """Scores of the prefix positions [Hkv, S - WINDOW]. queries [Hq, S, D] or only its last WINDOW
    rows, keys [Hkv, S, D].

    Softmax over all S keys, causal inside the window; prefix columns only; sum over the window's
    rows; mean over the query heads of a KV head; then the largest of the KERNEL prefix neighbours.
    """
    num_keys, dim = keys.shape[1:]
    prefix = num_keys - WINDOW
    group = queries.shape[0] // keys.shape[0]
    future = torch.ones(WINDOW, num_keys, dtype=torch.bool).triu(prefix + 1)
    summed = []
    for head in range(queries.shape[0]):
        logits = (queries[head, -WINDOW:] @ keys[head // group].T) / dim ** 0.5
        weights = torch.softmax(logits.masked_fill(future, -torch.inf), dim=-1)
        summed.append(weights[:, :prefix].sum(0))
    scores = torch.stack(summed).view(keys.shape[0], group, prefix).mean(1)
    return F.max_pool1d(scores[None], KERNEL, stride=1, padding=KERNEL // 2)[0]


def retained(scores, budget):
    """Positions kept of one KV head, ascending, and the smallest prefix score that is kept.

    The best budget - WINDOW of `scores` [S - WINDOW], of equal ones the lower position, and the
    whole window.
    """
    order = torch.sort(scores, descending=True, stable=True).indices[:budget - WINDOW]
    window = range(scores.shape[0], scores.shape[0] + WINDOW)
    return sorted(order.tolist()) + list(window), scores[order[-1]].item()


def selection(scores, scores_float32, budget):
    """What one KV head retains, with what a judge of another implementation needs to know.

    error: the worst relative error of Transformers' float32 among the positions that could come
    near the border. tie_tolerance: two scores, each off by at most twice that error, change places
    only if they lie within four times it; 2^-23 is for the float32 the scores are stored in.
    num_near: positions so close to the border and not equal to it. Where it is 0 no rounding of that
    size changes the set: equal scores are copies of one number, equal in any precision.
    """
    positions, threshold = retained(scores, budget)
    near = scores >= threshold / 2
    error = ((scores_float32.double() - scores).abs() / scores)[near].max().item()
    tolerance = 4 * error + 2 ** -23
    distance = (scores - threshold).abs()
    near = ((distance > 0) & (distance <= tolerance * threshold)).sum().item()
    return {"threshold": threshold, "float32_error": error, "tie_tolerance": tolerance,
            "num_near": near, "retained": positions}


def hidden_rows(scores, budget):
    """[Hkv, S], True for the evicted prompt rows."""
    num_keys = scores.shape[1] + WINDOW
    hidden = torch.ones(scores.shape[0], num_keys, dtype=torch.bool)
    for head in range(scores.shape[0]):
        hidden[head, retained(scores[head], budget)[0]] = False
    return hidden
