"""What is compared, and the bars. A quantity is `measurement.name`, as in `8000.prefill_rate`."""
from table import Row

# What the project asks of itself; of other lengths and quantities, no less than the peer.
PREFILL_RATIOS = {512: 1.5, 2000: 2, 8000: 3}
DECODE_RATIO = 1.5  # with a budget, over the peer's whole cache
PEAK_RATIO = 1 / 0.7  # at most 0.7 of the peer's bytes
LIMIT_SHARE = 0.6  # of the arithmetic limit, by the whole forward pass of a prompt
THREAD_EFFICIENCY = 0.925  # of as many times as there are threads
COMPRESS_SHARE = 0.02  # of the prefill


def quantity_rows(lengths, budget):
    """Rows beside a peer."""
    longest = lengths[-1]
    rows = [Row(f"prefill, {length:,} tokens", f"{length}.prefill_rate", f"{length}.prefill_rate",
                "tokens/s", True, PREFILL_RATIOS.get(length, 1)) for length in lengths]
    rows.append(Row(f"prefill, {longest:,} tokens, full cache", f"{longest}.full_prefill_rate",
                    f"{longest}.prefill_rate", "tokens/s", True, 1))
    rows.append(Row(f"decode after {longest:,} tokens, budget {budget:,}",
                    f"{longest}.decode_rate", f"{longest}.decode_rate", "tokens/s", True,
                    DECODE_RATIO))
    rows.append(Row(f"decode after {longest:,} tokens, full cache",
                    f"{longest}.full_decode_rate", f"{longest}.decode_rate", "tokens/s", True, 1))
    rows.append(Row(f"peak resident set, {longest:,} tokens", f"{longest}.peak_bytes",
                    f"{longest}.peak_bytes", "bytes", False, PEAK_RATIO))
    return rows


def start_row(prompt_len):
    return Row(f"start to first token, {prompt_len} tokens", "start.start_seconds",
               "start.start_seconds", "seconds", False, 1)


def own_rows(lengths, threads):
    """Rows of TideKV alone."""
    rows = [Row(f"share of the arithmetic limit, prefill of {length:,} tokens",
                f"{length}.limit_share", None, "share", True, LIMIT_SHARE) for length in lengths]
    longest = lengths[-1]
    if threads > 1:
        rows.append(Row(f"prefill of {longest:,} tokens, {threads} threads over one",
                        f"{longest}.thread_speedup", None, "times", True,
                        THREAD_EFFICIENCY * threads))
    rows.append(Row(f"compression's share of the prefill of {longest:,} tokens",
                    f"{longest}.compress_share", None, "share", False, COMPRESS_SHARE))
    return rows
