#!/usr/bin/env python3
"""The numbers between samples and table: needs neither llama.cpp nor a model."""
import os
import sys
import tempfile
import unittest

import compare
import machine
from flops import prefill_flops
from process import CompareError, run, run_script
from rows import own_rows, quantity_rows, start_row
from samples import Spread, better_of, ratio_of, spread_of
from sides import Measurement
from table import Row, markdown_table, result_of, text_of

SMOLLM2_135M = {"num_layers": 30, "hidden_dim": 576, "ffn_dim": 1536, "num_q_heads": 9,
                "num_kv_heads": 3, "head_dim": 64, "vocab_size": 49152}


class Samples(unittest.TestCase):
    def test_spread_is_median_least_and_most(self):
        self.assertEqual(spread_of([3, 1, 10]), Spread(3, 1, 10))
        self.assertEqual(spread_of([4, 1]), Spread(2.5, 1, 4))
        with self.assertRaises(ValueError):
            spread_of([])

    def test_ratio_is_above_one_where_ours_is_better(self):
        self.assertEqual(ratio_of([2, 4, 3], [6, 4, 12], False), Spread(2, 1, 4))  # seconds
        self.assertEqual(ratio_of([6, 4, 12], [2, 4, 3], True), Spread(2, 1, 4))  # rates
        with self.assertRaises(ValueError):
            ratio_of([1, 2], [1], True)

    def test_better_has_the_better_median(self):
        candidates = {"on": [1, 9, 9], "off": [5, 5, 5], "same": [5, 5, 5]}
        self.assertEqual(better_of(candidates, True), "on")
        self.assertEqual(better_of(candidates, False), "off")


class Flops(unittest.TestCase):
    def test_prefill_counts_weights_visible_keys_and_one_row_of_logits(self):
        tiny = {"num_layers": 1, "hidden_dim": 2, "ffn_dim": 3, "num_q_heads": 2,
                "num_kv_heads": 1, "head_dim": 1, "vocab_size": 5}
        # Weights: q and o 4 each, k and v 2 each, three of 6; 2 tokens see 1 + 2 keys.
        self.assertEqual(prefill_flops(tiny, 2), 2 * 30 * 2 + 4 * 2 * 3 + 2 * 2 * 5)

    def test_a_token_of_smollm2_takes_as_much_as_its_shape_says(self):
        linear, attention, head = 212_336_640, 69_120, 2 * 576 * 49152
        for length in (512, 8192):
            expected = length * linear + attention * length * (length + 1) // 2 + head
            self.assertEqual(prefill_flops(SMOLLM2_135M, length), expected)


class Table(unittest.TestCase):
    def test_numbers_have_units_and_a_spread_only_where_samples_differ(self):
        self.assertEqual(text_of(Spread(1234.56, 1000, 2000), "tokens/s"),
                         "1,234.6 (1,000.0..2,000.0) tok/s")
        self.assertEqual(text_of(Spread(0.1, 0.1, 0.1), "seconds"), "0.100 s")
        self.assertEqual(text_of(Spread(162283520, 162283520, 162283520), "bytes"), "162.3 MB")
        self.assertEqual(text_of(Spread(0.5, 0.25, 0.75), "share"), "50.0 (25.0..75.0) %")

    def test_the_better_variant_of_a_peer_counts(self):
        row = Row("start", "a", "b", "seconds", False, 1)
        result = result_of(row, {"a": [2, 2]}, {"on": {"b": [5, 5]}, "off": {"b": [3, 3]}})
        self.assertEqual((result["variant"], result["ratio"].median), ("off", 1.5))
        self.assertEqual(result["bar_text"], "at least 1.00 x: met")
        slower = result_of(row, {"a": [4, 4]}, {"on": {"b": [5, 5]}, "off": {"b": [3, 3]}})
        self.assertEqual(slower["bar_text"], "at least 1.00 x: missed")

    def test_a_row_without_a_peer_holds_its_value_to_the_bar(self):
        share = Row("limit", "a", None, "share", True, 0.8)
        self.assertEqual(result_of(share, {"a": [0.7]}, {})["bar_text"], "at least 80.0 %: missed")
        most = Row("compression", "a", None, "share", False, 0.05)
        self.assertEqual(result_of(most, {"a": [0.05]}, {})["bar_text"], "at most 5.0 %: met")
        self.assertEqual(result_of(most, {"a": [0.06]}, {})["bar_text"], "at most 5.0 %: missed")

    def test_a_row_without_a_bar_misses_none(self):
        row = Row("prefill", "a", "b", "tokens/s", True, None)
        self.assertEqual(result_of(row, {"a": [1]}, {"on": {"b": [2]}})["bar_text"], "")

    def test_markdown_has_a_line_for_each_row(self):
        rows = [Row("prefill", "a", "b", "tokens/s", True, 1),
                Row("compression", "c", None, "share", False, 0.05)]
        ours = {"a": [10, 20, 30], "c": [0.01, 0.02, 0.03]}
        results = [result_of(row, ours, {"on": {"b": [10, 10, 10]}}) for row in rows]
        self.assertEqual(markdown_table(results, "llama.cpp").splitlines(), [
            "| | TideKV | llama.cpp | ratio (above 1: TideKV is better) | bar |",
            "|---|---|---|---|---|",
            "| prefill | 20.0 (10.0..30.0) tok/s | 10.0 tok/s, on | 2.00 (1.00..3.00) x "
            "| at least 1.00 x: met |",
            "| compression | 2.0 (1.0..3.0) % |  |  | at most 5.0 %: met |"])


class FakeSide:
    """Gives every quantity that the rows may ask for, and notes the turns."""

    def __init__(self, name, turns):
        self.name, self.turns, self.first_tokens, self.can_start = name, turns, {}, True

    def measure(self, measurement):
        self.turns.append((measurement.name, self.name))
        if measurement.starts:
            return {"start_seconds": [0.5] * measurement.starts}
        values = {name: [2.0] for name in ("prefill_seconds", "prefill_rate", "peak_bytes",
                                           "compress_share")}
        if measurement.decode:
            values |= {name: [2.0] for name in ("decode_rate", "full_prefill_rate",
                                                "full_decode_rate", "thread_speedup")}
        return values


class Turns(unittest.TestCase):
    class Options:
        rounds, peak_gflops, threads, budget = 2, 100.0, 2, 64

    def take(self):
        turns = []
        sides = [(name, FakeSide(name, turns)) for name in ("tidekv", "llama.cpp, on")]
        measurements = [Measurement("8", [1] * 8, 0), Measurement("16", [1] * 16, 4),
                        Measurement("start", [1], 0, 3)]
        compare.say, old = lambda text: None, compare.say
        try:
            kept = []
            samples = compare.take_turns(sides, measurements, self.Options, [], kept.append)
            self.assertEqual(len(kept), 2 * 3)
        finally:
            compare.say = old
        return turns, samples, [sides[1][1]]

    def test_every_side_takes_every_measurement_and_who_begins_changes(self):
        turns, samples, _ = self.take()
        self.assertEqual(turns[:4], [("8", "tidekv"), ("8", "llama.cpp, on"),
                                     ("16", "llama.cpp, on"), ("16", "tidekv")])
        self.assertEqual(len(turns), 2 * 3 * 2)
        self.assertEqual(samples["tidekv"]["8.prefill_rate"], [2.0, 2.0])
        self.assertEqual(samples["llama.cpp, on"]["start.start_seconds"], [0.5] * 6)

    def test_every_row_finds_its_quantities(self):
        _, samples, peers = self.take()
        peers[0].name = "on"
        compare.add_limit_shares(samples["tidekv"], SMOLLM2_135M, [8, 16], 100)
        tables = compare.make_tables(self.Options, [8, 16], samples, {"llama.cpp": peers})
        rows = quantity_rows([8, 16], 64) + [start_row(10)] + own_rows([8, 16], 2)
        self.assertEqual([result["what"] for result in tables["llama.cpp"]],
                         [row.what for row in rows])


class Failures(unittest.TestCase):
    def test_ids_that_differ_are_an_error_that_says_where(self):
        compare.check_same_ids([1, 2, 3], [1, 2, 3])
        with self.assertRaisesRegex(CompareError, r"token 1 is \[5, 3\] in TideKV and \[2, 3\]"):
            compare.check_same_ids([1, 5, 3], [1, 2, 3])
        with self.assertRaisesRegex(CompareError, r"token 2 is \[\] in TideKV and \[3\]"):
            compare.check_same_ids([1, 2], [1, 2, 3])

    def test_a_process_that_fails_is_an_error_with_its_last_words(self):
        with self.assertRaisesRegex(CompareError, "exit code 3; it said last:\n    too bad"):
            run([sys.executable, "-c", "import sys; sys.stderr.write('too bad'); sys.exit(3)"])
        with self.assertRaisesRegex(CompareError, "killed by signal 9"):
            run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
        with self.assertRaisesRegex(CompareError, "/no/program: cannot start: No such file"):
            run(["/no/program"])

    def test_a_script_that_prints_no_result_is_an_error(self):
        with self.assertRaisesRegex(CompareError, "flops.py: printed no result"):
            run_script(sys.executable, "flops.py", {})

    def refused(self, arguments):
        """What the program says as it ends with 1."""
        said = []
        compare.say, old = said.append, compare.say
        try:
            self.assertEqual(compare.main(arguments), 1)
        finally:
            compare.say = old
        return said[-1]

    def test_what_is_missing_is_named_before_any_work(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.gguf")
            base = ["--tidekv", sys.executable, "-m", model]
            self.assertIn("model.gguf: no such file; expected a GGUF file", self.refused(base))
            with open(model, "wb"):
                pass
            for flags, message in (
                    (["--micro", "/no/micro"], "no arithmetic limit: --micro: /no/micro: no such"),
                    (["--tidekv", "/no/tidekv"], "--tidekv: /no/tidekv: no such program"),
                    (["--python", "/no/python"], "--python: /no/python: no such program"),
                    (["--transformers", "/no/py"], "--transformers: /no/py: no such program"),
                    (["--lengths", "512,x"], "--lengths: '512,x' is not a list like"),
                    (["--lengths", "512,100"], "--lengths: '512,100' must rise"),
                    (["--peak-gflops", "-1"], "--peak-gflops: -1.0; must be more than 0"),
                    (["--peak-gflops", "1", "--json", "/no/a.json"],
                     "/no/a.json: cannot write: No such file"),
                    (["--rounds", "0"], "--rounds: 0; must be 1 or more")):
                self.assertIn("compare: error: " + message, self.refused(base + flags))


class Machine(unittest.TestCase):
    def test_peak_is_the_best_loop_of_micros_report(self):
        with tempfile.TemporaryDirectory() as folder:
            micro = os.path.join(folder, "micro")
            for text, ok in (('{"peak_loops": [{"name": "a", "flops_per_second": 2e9}, '
                              '{"name": "b", "flops_per_second": 3e9}]}', True),
                             ('{"results": []}', False), ("no JSON", False)):
                with open(micro, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
                os.chmod(micro, 0o755)
                if ok:
                    self.assertEqual(machine.peak_gflops(micro, 2), 3)
                else:
                    with self.assertRaisesRegex(CompareError, "has no peak_loops"):
                        machine.peak_gflops(micro, 2)

    def test_a_file_is_known_by_its_sha256(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"abc")
            file.flush()
            self.assertEqual(machine.sha256_of(file.name),
                             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


if __name__ == "__main__":
    unittest.main(argv=[__file__, "--quiet"])
