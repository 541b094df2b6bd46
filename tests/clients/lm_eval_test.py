# SPDX-License-Identifier: Apache-2.0
"""lm-evaluation-harness over HTTP: its log likelihoods are those that `weir eval choices` computes, to the last digit that JSON carries."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from weir_server import DATA, MODEL, SMOLLM2, WEIR, ServerTest

TASKS = pathlib.Path(__file__).resolve().parent / "lm_eval_tasks"
CHOICES = DATA / "eval/choices.jsonl"


class LmEval(ServerTest):
    def harness(self, folder, **model_args):
        tasks = pathlib.Path(folder) / "tasks"
        tasks.mkdir()
        for file in TASKS.glob("*.yaml"):
            (tasks / file.name).write_text(file.read_text().replace("CHOICES_FILE", str(CHOICES)))
        arguments = {"model": MODEL, "base_url": f"{self.server.url}/v1/completions", "num_concurrent": 4, "max_retries": 1, **model_args}
        done = subprocess.run(
            [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--tasks", "weir_choices", "--include_path", str(tasks),
             "--model_args", ",".join(f"{key}={value}" for key, value in arguments.items()), "--output_path", f"{folder}/out",
             "--log_samples"],
            capture_output=True, text=True, timeout=600, cwd=folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": folder, "OPENAI_API_KEY": "none",
                 "TOKENIZERS_PARALLELISM": "false"})
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-3000:])
        results = json.loads(next(pathlib.Path(folder, "out").rglob("results_*.json")).read_text())["results"]["weir_choices"]
        samples = {}
        for line in next(pathlib.Path(folder, "out").rglob("samples_*.jsonl")).read_text().splitlines():
            sample = json.loads(line)
            samples[sample["doc_id"]] = [float(answer[0][0]) for answer in sample["resps"]]
        return results, samples

    def test_its_scores_are_ours(self):
        ours = json.loads(subprocess.run([WEIR, "eval", "choices", SMOLLM2, CHOICES, "--json"], capture_output=True, text=True, timeout=300,
                                         check=True).stdout)
        with tempfile.TemporaryDirectory() as folder:
            results, samples = self.harness(folder, tokenizer_backend="remote", tokenized_requests=True)
        self.assertEqual(results["acc,none"], ours["acc"])
        self.assertEqual(results["acc_norm,none"], ours["acc_norm"])
        self.assertGreater(results["acc,none"], 0.7)
        self.assertEqual(len(samples), len(ours["tasks"]))
        for number, likelihoods in samples.items():
            for theirs, choice in zip(likelihoods, ours["tasks"][number]["choices"], strict=True):
                self.assertTrue(math.isclose(theirs, choice["logprob"], rel_tol=1e-5, abs_tol=1e-5), (number, theirs, choice))
