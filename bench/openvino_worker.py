#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenVINO GenAI on a GGUF file, behind lines of JSON (engines.py, Worker). Run with a Python that has openvino-genai.

    openvino_worker.py MODEL.gguf THREADS

Each prompt is made of fresh random tokens, so that no prefix is found in a cache.
"""
import json
import sys
import time

import numpy as np
import openvino as ov
import openvino_genai as genai


def reply(**values):
    print("@" + json.dumps(values), flush=True)


def main():
    rng = np.random.default_rng(1)
    try:
        pipeline = genai.LLMPipeline(sys.argv[1], "CPU", INFERENCE_NUM_THREADS=int(sys.argv[2]))
    except Exception as error:  # a file that it cannot read is an answer, not a crash
        return reply(error=str(error).replace("\n", " ")[-300:])
    config = genai.GenerationConfig()
    config.ignore_eos, config.do_sample = True, False
    reply(version=ov.__version__)

    def run(batch, prompt, generate):
        ids = ov.Tensor(rng.integers(100, 40000, (batch, prompt)).astype(np.int64))
        inputs = genai.TokenizedInputs(ids, ov.Tensor(np.ones((batch, prompt), np.int64)))
        config.max_new_tokens = generate
        begin = time.monotonic()
        result = pipeline.generate(inputs, config)
        seconds = time.monotonic() - begin
        if [len(tokens) for tokens in result.tokens] != [generate] * batch:
            raise RuntimeError("sequences of another length than asked for")
        return seconds, result.perf_metrics

    seen = set()
    for line in sys.stdin:
        ask = json.loads(line)
        batch, prompt, generate = ask["batch"], ask["prompt"], ask["generate"]
        try:
            if ask["warm_up"]:  # the first time buffers of this shape, then only threads that have slept
                run(*((1, 16) if (batch, prompt) in seen else (batch, prompt)), 2)
                seen.add((batch, prompt))
            if batch == 1:  # its own clock: time to the first token, and per token after it
                metrics = run(1, prompt, generate + 1)[1] if generate > 1 else run(1, prompt, 1)[1]
                decode = metrics.get_tpot().mean * 1e-3 * generate if generate > 1 else 0
                reply(prefill_s=metrics.get_ttft().mean * 1e-3, decode_s=decode)
            else:
                first, whole = run(batch, prompt, 1)[0], run(batch, prompt, generate + 1)[0]
                reply(prefill_s=first, decode_s=whole - first)
        except Exception as error:
            reply(error=str(error).replace("\n", " ")[-300:])


if __name__ == "__main__":
    main()
