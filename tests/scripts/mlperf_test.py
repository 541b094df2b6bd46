#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir bench mlperf from outside: SmolLM2 under the real LoadGen, in process and over HTTP. $WEIR is the program."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

WEIR = os.environ.get("WEIR", "build/release/weir")
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CACHE = pathlib.Path(os.environ.get("WEIR_TEST_CACHE") or pathlib.Path.home() / ".cache/weir/test-data")
SMOLLM2 = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTIONS = DATA / "mlperf/questions.jsonl"
# No test may depend on how busy the machine is.
PATIENT = ("--ttft-latency", 600000, "--tpot-latency", 600000)


def weir(*arguments):
    return subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "WEIR_HOME": "/dev/null/nowhere"})


def has_loadgen():
    try:
        return weir("bench", "mlperf", "--mlperf-conf").returncode == 0
    except OSError:
        return False


class Constraints(unittest.TestCase):
    def test_list_names_the_bounds_of_each_benchmark(self):
        done = weir("bench", "mlperf", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"llama2-70b +24576 +2000/200 +450/40")

    def test_help_has_examples(self):
        self.assertIn("Examples:", weir("help", "bench", "mlperf").stdout)


@unittest.skipUnless(has_loadgen(), "this build has no MLPerf LoadGen")
class Usage(unittest.TestCase):
    def test_what_is_missing_or_makes_no_sense_is_status_2(self):
        for arguments in ((), ("--scenario", "Offline"), ("--scenario", "Offline", "--model", "x"),
                          ("--scenario", "Offline", "--model", "x", "--dataset", QUESTIONS, "--find-peak"),
                          ("--scenario", "Server", "--model", "x", "--dataset", QUESTIONS, "--benchmark", "nonesuch"),
                          ("--scenario", "Interactive", "--model", "x", "--dataset", QUESTIONS, "--benchmark", "mixtral-8x7b"),
                          ("--scenario", "Offline", "--model", "x", "--dataset", "/no/such/file"),
                          ("--scenario", "Offline", "--url", "http://127.0.0.1:1", "--model", "x", "--dataset", QUESTIONS)):
            with tempfile.TemporaryDirectory() as folder:
                done = weir("bench", "mlperf", "--output", folder, *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertTrue(done.stderr, arguments)

    def test_the_built_in_conf_can_be_read(self):
        self.assertIn("*.*.schedule_rng_seed = 16159082839903944936", weir("bench", "mlperf", "--mlperf-conf").stdout)


@unittest.skipUnless(has_loadgen(), "this build has no MLPerf LoadGen")
@unittest.skipUnless(SMOLLM2.exists(), f"{SMOLLM2} is not here: run tools/fetch_test_data.py")
class SmolLM2(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name) / "logs"

    def bench(self, *arguments, status=0, tokens=2, target=("--model", SMOLLM2)):
        done = weir("bench", "mlperf", *target, "--dataset", QUESTIONS, "--completions", "--max-tokens", tokens, "--warm-up", 1,
                    "--output", self.folder, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def verdict(self):
        return re.search(r"^Result is : (\w+)$", (self.folder / "mlperf_log_summary.txt").read_text(), re.M).group(1)

    def test_single_stream_is_valid(self):
        self.bench("--scenario", "SingleStream", "--min-duration", 100, "--percentile", 80, "--min-query-count", 36)
        self.assertEqual(self.verdict(), "VALID")

    def test_offline_is_valid_and_leaves_a_record(self):
        self.bench("--scenario", "Offline", "--min-duration", 0, "--min-query-count", 24)
        self.assertEqual(self.verdict(), "VALID")
        record = json.loads((self.folder / "run.json").read_text())
        self.assertEqual((record["schema"], record["verb"]), ("weir.bench.record/1", "mlperf"))
        self.assertEqual(record["command"][:2], ["bench", "mlperf"])
        results = record["results"]
        self.assertEqual(results["loadgen"], "6.0.17")
        self.assertEqual(results["answered"], 24)
        self.assertEqual(results["seeds"]["schedule"], 16159082839903944936)
        self.assertTrue(results["target"]["kernel_table"])
        self.assertEqual(len(results["dataset"]["sha256"]), 64)

    def test_server_is_valid_within_its_bounds_and_invalid_beyond_them(self):
        server = ("--scenario", "Server", "--percentile", 90, "--min-duration", 100, "--min-query-count", 48, "--target-qps", 100)
        self.bench(*server, *PATIENT)
        self.assertEqual(self.verdict(), "VALID")
        self.bench(*server, "--tpot-latency", 600000, "--ttft-latency", 0, status=1)
        self.assertEqual(self.verdict(), "INVALID")

    def test_accuracy_scores_each_sample(self):
        done = self.bench("--scenario", "Offline", "--accuracy", tokens=12)
        scores = json.loads((self.folder / "accuracy.json").read_text())
        self.assertEqual((scores["count"], scores["scored"], scores["missing"]), (12, 12, 0))
        self.assertGreater(scores["rougeL"], 10)
        self.assertIn("ROUGE-L", done.stdout)

    def test_over_http_the_answers_are_those_in_process(self):
        self.bench("--scenario", "Offline", "--accuracy", tokens=12)
        here = json.loads((self.folder / "accuracy.json").read_text())
        with subprocess.Popen([WEIR, "serve", f"smollm2={SMOLLM2}", "--listen", "127.0.0.1:0", "--no-prefix-cache"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                url = next(m.group(0) for m in (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stdout) if m)
                self.bench("--scenario", "SingleStream", "--accuracy", tokens=12, target=("--url", url, "--model", "smollm2"))
                there = json.loads((self.folder / "accuracy.json").read_text())
                self.bench("--scenario", "Server", "--percentile", 90, "--min-duration", 100, "--min-query-count", 48, "--target-qps", 100,
                           *PATIENT, target=("--url", url, "--model", "smollm2"))
                self.assertEqual(self.verdict(), "VALID")
            finally:
                server.terminate()
                server.stdout.read()
        self.assertEqual([s["answer"] for s in there["samples"]], [s["answer"] for s in here["samples"]])
        self.assertEqual([s["tokens"] for s in there["samples"]], [s["tokens"] for s in here["samples"]])


if __name__ == "__main__":
    unittest.main()
