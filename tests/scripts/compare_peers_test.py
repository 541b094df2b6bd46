#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/compare_peers against engines that only pretend: the order of runs, medians, ratios, and what happens when one fails."""

import json
import pathlib
import stat
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True

import engines  # noqa: E402
import measures  # noqa: E402
from importlib.machinery import SourceFileLoader  # noqa: E402

compare_peers = SourceFileLoader("compare_peers", str(ROOT / "bench/compare_peers")).load_module()


def sample(measure, engine, value, model="m.gguf", round_number=0, share=None):
    return measures.Sample(model, measure, engine, round_number, value, share)


class Rounds(unittest.TestCase):
    def test_each_round_begins_with_another_engine(self):
        self.assertEqual([measures.order_of_round(list("abc"), r) for r in range(4)], [list("abc"), list("bca"), list("cab"), list("abc")])
        self.assertEqual(measures.order_of_round([], 1), [])


class Tables(unittest.TestCase):
    def test_ratios_are_to_the_best_peer_and_above_one_where_weir_is_better(self):
        samples = [sample("decode", "weir", v, share=s) for v, s in ((90, 0.5), (110, 0.7), (100, 0.6))]
        samples += [sample("decode", "A", 40), sample("decode", "B", 50), sample("first_token", "weir", 0.2), sample("first_token", "A", 0.5)]
        decode, first = measures.summarize(samples, ["weir", "A", "B"])
        self.assertEqual((decode["best_peer"], decode["ratio"], decode["share_of_limit"]), ("B", 2.0, 0.6))
        self.assertEqual(decode["engines"]["weir"], {"median": 100, "min": 90, "max": 110, "count": 3})
        self.assertEqual((first["best_peer"], first["ratio"]), ("A", 2.5))

    def test_what_was_not_measured_leaves_a_dash_and_no_ratio(self):
        rows = measures.summarize([sample("prefill", "weir", 1234.5), sample("decode", "A", 5.0)], ["weir", "A"])
        self.assertNotIn("ratio", rows[0])
        table = measures.markdown(rows, ["weir", "A"], "heading")
        self.assertIn("| m.gguf | prefill 512, tokens/s | 1,234 | – | – |", table)
        self.assertIn("|  | decode, 1 stream, tokens/s | – | 5.00 | – |", table)


WEIR = """#!/usr/bin/env python3
import json, sys
a = sys.argv
assert a[1:3] == ["bench", "engine"], a
if "--cold" in a:
    print(json.dumps({"weir": "9.9", "cold": {"first_token_s": 0.25, "peak_resident_bytes": 5e6}, "results": []}))
else:
    batch = int(a[a.index("--batch") + 1])
    print(json.dumps({"weir": "9.9", "isa": "best", "results": [{"batch": batch, "prefill_tokens_per_s": 400.0, "decode_tokens_per_s": 20.0 * batch,
                      "share_of_limit": {"prefill": 0.5, "decode": 0.75}}]}))
"""
LLAMA_BENCH = """#!/usr/bin/env python3
import json, sys
sizes = {a: sys.argv[sys.argv.index(a) + 1] for a in ("-p", "-n")}
print(json.dumps([{"build_commit": "abc", "avg_ts": speed} for size, speed in (("-p", 100.0), ("-n", 10.0)) if sizes[size] != "0"]))
"""
BATCHED = """#!/usr/bin/env python3
import json, sys
print("some chatter")
if sys.argv[sys.argv.index("-npl") + 1] == "32": sys.exit("out of memory")
print(json.dumps({"pl": 8, "speed_tg": 40.0}))
"""
SIMPLE = "#!/bin/sh\necho 'one twomain: decoded 1 tokens in 0.1 s' >&2\n"
WORKER = """import json, sys
print("@" + json.dumps({"version": "1.2"}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    print("noise of a library", flush=True)
    if ask["batch"] == 32: print("@" + json.dumps({"error": "too many"}), flush=True)
    else: print("@" + json.dumps({"prefill_s": ask["prompt"] / 200, "decode_s": ask["generate"] / 16}), flush=True)
"""


class FakeEngine(engines.WorkerEngine):
    name = "Fake"


class Whole(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("weir", WEIR), ("llama/bin/llama-bench", LLAMA_BENCH), ("llama/bin/llama-batched-bench", BATCHED),
                           ("llama/bin/llama-simple", SIMPLE), ("worker.py", WORKER)):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_all(self, *more):
        arguments = ["--peers", str(self.folder), "--weir", str(self.folder / "weir"), "--threads", "2", "--rounds", "2",
                     "--out", str(self.folder / "out"), *more, "some/model.gguf"]
        status = compare_peers.main(arguments)
        return status, json.loads((self.folder / "out.json").read_text())

    def test_a_failing_measure_is_noted_and_the_rest_goes_on(self):
        status, out = self.run_all("--engines", "weir,llama.cpp")
        self.assertEqual(status, 0)
        rows = {row["measure"]: row for row in out["rows"]}
        self.assertEqual(set(rows), {m.key for m in measures.MEASURES})
        self.assertEqual((rows["prefill"]["ratio"], rows["decode"]["ratio"], rows["streams8"]["ratio"]), (4.0, 2.0, 4.0))
        self.assertEqual(rows["decode"]["share_of_limit"], 0.75)
        self.assertEqual(list(rows["streams32"]["engines"]), ["weir"])
        self.assertTrue(any("32 streams" in note and "out of memory" in note for note in out["notes"]), out["notes"])
        self.assertEqual(rows["decode"]["engines"]["weir"]["count"], 2)
        self.assertEqual(rows["deep_decode"]["engines"]["weir"]["count"], 1)  # a slow measure
        self.assertEqual(out["versions"]["weir"], "9.9 (best)")
        self.assertEqual((rows["deep_prefill"]["ratio"], rows["deep_decode"]["ratio"]), (4.0, 2.0))
        self.assertIn("-fa off", out["commands"]["llama.cpp deep_prefill"])
        self.assertNotIn("llama.cpp deep_decode", out["commands"])  # both come from one run
        first = [s["engine"] for s in out["samples"] if s["measure"] == "decode"]
        self.assertEqual(first, ["weir", "llama.cpp", "llama.cpp", "weir"])

    def test_only_the_measures_asked_for(self):
        _, out = self.run_all("--engines", "weir", "--measures", "decode,first_token")
        self.assertEqual([row["measure"] for row in out["rows"]], ["decode", "first_token", "resident"])
        with self.assertRaises(SystemExit):
            self.run_all("--measures", "nonsense")

    def test_a_worker_is_asked_line_by_line_and_its_errors_are_told(self):
        runner = engines.Runner(timeout=30)
        fake = FakeEngine(sys.executable, self.folder / "worker.py", 2, runner)
        fake.open("m")
        self.addCleanup(fake.close)
        self.assertEqual(fake.measure("m", measures.BY_KEY["prefill"]), {"prefill": 200.0})
        self.assertEqual(fake.measure("m", measures.BY_KEY["decode"]), {"decode": 16.0})
        self.assertGreater(fake.measure("m", measures.BY_KEY["first_token"])["resident"], 0)
        with self.assertRaisesRegex(engines.Unavailable, "too many"):
            fake.measure("m", measures.BY_KEY["streams32"])
        with self.assertRaises(engines.Unavailable):
            fake.measure("m", measures.BY_KEY["deep_prefill"])
        self.assertEqual(fake.measure("m", measures.BY_KEY["streams8"]), {"streams8": 8 * 16.0})

    def test_a_worker_that_dies_is_no_hang(self):
        (self.folder / "worker.py").write_text("import sys; sys.exit('no such model')")
        fake = FakeEngine(sys.executable, self.folder / "worker.py", 2, engines.Runner(timeout=30))
        with self.assertRaisesRegex(engines.Unavailable, "no such model"):
            fake.open("m")


class Quietness(unittest.TestCase):
    def test_own_work_is_not_counted_as_others(self):
        disturbance = engines.Disturbance()
        self.assertGreaterEqual(disturbance.busy(), disturbance.own())
        own = disturbance.own()
        sum(range(2_000_000))
        self.assertGreater(disturbance.own(), own)
        self.assertTrue(0.0 <= disturbance.share() <= 1.0)
        self.assertEqual(compare_peers.quiet([sample("decode", "A", 1)]), "0 % (at most 0 %)")


class Repeats(unittest.TestCase):
    class Counting:
        worker, calls = None, 0

        def measure(self, model, m):
            self.calls += 1
            return {m.key: float(self.calls)}

    def test_a_disturbed_figure_is_measured_again_and_a_quiet_one_is_not(self):
        quiet, disturbed = self.Counting(), self.Counting()
        self.assertEqual(compare_peers.least_disturbed(quiet, "m", measures.BY_KEY["decode"], 1.0)[0], {"decode": 1.0})
        compare_peers.least_disturbed(disturbed, "m", measures.BY_KEY["decode"], -1.0)
        self.assertEqual((quiet.calls, disturbed.calls), (1, 3))


class Shapes(unittest.TestCase):
    def test_a_config_has_the_files_shape(self):
        meta = {"llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.embedding_length": 2048,
                "llama.feed_forward_length": 8192, "llama.block_count": 16, "llama.context_length": 8192, "llama.vocab_size": 49152}
        config = engines.llama_config({"metadata": meta})
        self.assertEqual((config["head_dim"], config["num_key_value_heads"], config["num_hidden_layers"]), (64, 8, 16))


if __name__ == "__main__":
    unittest.main()
