# SPDX-License-Identifier: Apache-2.0
"""How each engine is asked for a measure. An engine returns {measure key: value or (value, share of the limit)} or raises Unavailable.

Weir and llama.cpp run one process per measure. OpenVINO GenAI and vLLM take seconds to minutes to start, so a worker process is kept
for each model; it is stopped (SIGSTOP) while others are measured, so that its threads cost nothing.
"""

import ctypes
import json
import os
import pathlib
import resource
import select
import shlex
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROMPT_TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


class Unavailable(Exception):
    """This engine cannot do this measure; the text says why."""


class Disturbance:
    """What other processes took of the processors while one figure was measured, 0 to 1: a figure with much of it is to be doubted."""

    TICK = os.sysconf("SC_CLK_TCK")

    def __init__(self, worker_pid=None):
        self.worker_pid = worker_pid
        self.begin = (self.busy(), self.own(), time.monotonic())

    def busy(self):
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        user, nice, system, _, _, irq, softirq = fields[:7]
        return (user + nice + system + irq + softirq) / self.TICK

    def own(self):
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(u.ru_utime + u.ru_stime for u in usage)
        for pid in [self.worker_pid, *children(self.worker_pid)] if self.worker_pid else []:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            seconds += (int(fields[11]) + int(fields[12])) / self.TICK
        return seconds

    def share(self):
        busy, own, begin = self.begin
        seconds = time.monotonic() - begin
        others = (self.busy() - busy) - (self.own() - own)
        return min(max(others / (seconds * os.cpu_count()), 0.0), 1.0) if seconds > 0 else 0.0


class Runner:
    """Starts commands with the same prefix for every engine, and remembers the commands for the report."""

    def __init__(self, prefix="", timeout=1800):
        self.prefix = shlex.split(prefix)
        self.timeout = timeout
        self.commands = {}  # what was run first for (engine, measure)

    def note(self, engine, measure, command):
        self.commands.setdefault(f"{engine} {measure}", shlex.join(map(str, command)))

    def output(self, engine, measure, command):
        self.note(engine, measure, command)
        done = subprocess.run([*self.prefix, *map(str, command)], capture_output=True, text=True, timeout=self.timeout, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Unavailable(f"{pathlib.Path(str(command[0])).name}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def timed(self, engine, measure, command, sign):
        """Seconds from the start of a process until its output holds `sign`, and its peak resident bytes."""
        self.note(engine, measure, command)
        start = time.monotonic()
        process = subprocess.Popen([*self.prefix, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        seen, seconds = b"", None
        while data := process.stdout.read1(65536):
            seen = seen[-len(sign):] + data
            if seconds is None and sign in seen:
                seconds = time.monotonic() - start
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 or seconds is None:
            raise Unavailable(f"{pathlib.Path(str(command[0])).name}: status {process.returncode}, no first token")
        return seconds, usage.ru_maxrss * 1024


class Weir:
    name = "weir"
    worker = None

    def __init__(self, program, threads, runner):
        self.program, self.threads, self.runner, self.details = program, threads, runner, {}

    def bench(self, measure, *arguments):
        out = json.loads(self.runner.output(self.name, measure, [self.program, "bench", "engine", *arguments, "-t", self.threads, "--json", "-"]))
        self.details.update({key: out[key] for key in ("weir", "isa") if key in out})
        return out

    def open(self, model):
        return self

    def measure(self, model, m):
        if m.key == "first_token":
            cold = self.bench(m.key, model, "--cold", "--runs", 3)["cold"]
            return {"first_token": cold["first_token_s"], "resident": cold["peak_resident_bytes"] / 1e6}
        out = self.bench(m.key, model, "--batch", m.batch, "--prompt", m.prompt, "--generate", m.generate, "--depth", m.depth, "--runs", 1)
        result = out["results"][0]
        return {m.key: (result[f"{m.kind}_tokens_per_s"], result["share_of_limit"][m.kind])}

    def close(self):
        pass

    def version(self):
        return f"{self.details.get('weir', '?')} ({self.details.get('isa', '?')})"


class LlamaCpp:
    """Flash attention is off for several streams and at depth: on CPUs that is llama.cpp's faster setting there."""

    name = "llama.cpp"
    worker = None

    def __init__(self, folder, threads, runner):
        self.bin, self.threads, self.runner, self.commit = pathlib.Path(folder) / "bin", threads, runner, "?"
        self.deep_decode = {}  # model → what was measured along with its prefill at depth

    def open(self, model):
        return self

    def bench(self, model, m, *arguments):
        text = self.runner.output(self.name, m.key, [self.bin / "llama-bench", "-m", model, "-t", self.threads, "-r", 1, "-o", "json", *arguments])
        results = json.loads(text)
        self.commit = results[0].get("build_commit", "?")
        return [result["avg_ts"] for result in results]

    def measure(self, model, m):
        if m.key == "first_token":
            command = [self.bin / "llama-simple", "-m", model, "-n", 1, PROMPT_TEXT]
            self.runner.timed(self.name, m.key, command, b"decoded 1 tokens")  # fills the page cache
            runs = sorted(self.runner.timed(self.name, m.key, command, b"decoded 1 tokens") for _ in range(3))
            return {"first_token": runs[1][0], "resident": runs[1][1] / 1e6}
        if m.batch > 1:
            context = m.batch * (m.prompt + m.generate)
            text = self.runner.output(self.name, m.key, [self.bin / "llama-batched-bench", "-m", model, "-t", self.threads, "-c", context,
                                                         "-npp", m.prompt, "-ntg", m.generate, "-npl", m.batch, "-fa", "off",
                                                         "--output-format", "jsonl"])
            lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            return {m.key: lines[-1]["speed_tg"]}
        if m.depth:
            return {m.key: self.at_depth(model, m)}
        sizes = ["-p", m.prompt, "-n", 0] if m.kind == "prefill" else ["-p", 0, "-n", m.generate]
        return {m.key: self.bench(model, m, *sizes)[0]}

    def at_depth(self, model, m):
        """One run gives prefill and decode, so that the depth itself is computed once."""
        if m.kind == "decode" and model in self.deep_decode:
            return self.deep_decode.pop(model)
        prefill, decode = self.bench(model, m, "-p", 512, "-n", 64, "-fa", "off", "-d", m.depth)
        if m.kind == "decode":
            return decode
        self.deep_decode[model] = decode
        return prefill

    def close(self):
        pass

    def version(self):
        return f"{self.commit} (from llama-cpp-python's source distribution, or as built)"


def end_with_parent():
    """A worker must not outlive compare_peers, stopped and with gigabytes in memory."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Worker:
    """A process that takes lines of JSON {"batch", "prompt", "generate", "warm_up"} and answers with {"prefill_s", "decode_s"}."""

    def __init__(self, engine, runner, command, environment, log):
        runner.note(engine, "worker", command)
        self.start = time.monotonic()
        self.log = log
        self.process = subprocess.Popen([*runner.prefix, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                                        env={**os.environ, **environment}, start_new_session=True, preexec_fn=end_with_parent)
        self.timeout = runner.timeout
        self.pending = b""  # output after the last whole line

    def ask(self, request):
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            return self.answer()
        except (BrokenPipeError, ValueError) as error:
            raise Unavailable(f"the worker ended: {error}") from error
        finally:
            self.signal(signal.SIGSTOP)

    def next_line(self, deadline):
        while b"\n" not in self.pending:
            if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.signal(signal.SIGKILL)  # a late answer would be taken for the next one
                raise Unavailable("no answer in time")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.log.seek(0)
                raise Unavailable("the worker ended: " + self.log.read()[-300:].strip().replace("\n", " | "))
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def answer(self):
        """Workers print to standard output only lines that start with '@'; libraries may print others."""
        deadline = time.monotonic() + self.timeout
        while True:
            line = self.next_line(deadline)
            if line.startswith(b"@"):
                reply = json.loads(line[1:])
                if "error" in reply:
                    raise Unavailable(reply["error"])
                return reply

    def resident(self):
        """Peak resident bytes of the worker and its children."""
        total = 0
        for pid in [self.process.pid, *children(self.process.pid)]:
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * 1024
        return total

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *children(child)]
    return found


class WorkerEngine:
    """A peer that is asked through a worker of its own. The first start of it is what a cold process costs."""

    def __init__(self, python, script, threads, runner):
        self.python, self.script, self.threads, self.runner, self.worker = python, script, threads, runner, None
        self.cold, self.cold_others, self.details = {}, 0.0, "?"

    def arguments(self, model):
        return [model, self.threads]

    def environment(self):
        return {}

    def open(self, model):
        log, disturbance = tempfile.TemporaryFile("w+"), Disturbance()
        worker = Worker(self.name, self.runner, [self.python, HERE / self.script, *self.arguments(model)], self.environment(), log)
        try:
            self.details = worker.answer().get("version", "?")
            worker.ask({"batch": 1, "prompt": 16, "generate": 1, "warm_up": False})
            disturbance.worker_pid = worker.process.pid
            self.cold_others = disturbance.share()
            self.cold = {"first_token": time.monotonic() - worker.start, "resident": worker.resident() / 1e6}
        except Unavailable:
            worker.close()
            raise
        self.worker = worker
        return self

    def measure(self, model, m):
        if m.key == "first_token":
            return dict(self.cold)
        if m.depth and m.kind == "prefill":
            raise Unavailable("a prompt at a depth cannot be timed alone")
        prompt = m.depth or m.prompt
        reply = self.worker.ask({"batch": m.batch, "prompt": prompt, "generate": m.generate, "warm_up": True})
        if m.kind == "prefill":
            return {m.key: m.batch * m.prompt / reply["prefill_s"]}
        return {m.key: m.batch * m.generate / reply["decode_s"]}

    def close(self):
        if self.worker:
            self.worker.close()
            self.worker = None

    def version(self):
        return self.details


class OpenVino(WorkerEngine):
    name = "OpenVINO"

    def __init__(self, python, threads, runner):
        super().__init__(python, "openvino_worker.py", threads, runner)


class Vllm(WorkerEngine):
    """Random bf16 weights in the file's shape: vLLM's CPU build is compared on BF16 files of the llama architecture only."""

    name = "vLLM"

    def __init__(self, python, threads, runner, weir):
        super().__init__(python, "vllm_worker.py", threads, runner)
        self.weir = weir

    def arguments(self, model):
        shown = json.loads(subprocess.run([self.weir, "show", model, "--json"], capture_output=True, text=True, check=True).stdout)
        types = {t["type"]: t["elements"] for t in shown["types"]}
        if shown["architecture"] != "llama" or max(types, key=types.get) != "BF16":
            raise Unavailable("only BF16 files of the llama architecture")
        return [json.dumps(llama_config(shown)), self.threads]

    def environment(self):
        libraries = [p for p in (pathlib.Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"),
                                 pathlib.Path(self.python).parent.parent / "lib/libiomp5.so") if p.exists()]
        return {"LD_PRELOAD": ":".join(map(str, libraries))} if libraries else {}


def llama_config(shown):
    """The Hugging Face config of a GGUF file's shape."""
    meta = shown["metadata"]
    heads = meta["llama.attention.head_count"]
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "torch_dtype": "bfloat16",
            "hidden_size": meta["llama.embedding_length"], "intermediate_size": meta["llama.feed_forward_length"],
            "num_hidden_layers": meta["llama.block_count"], "num_attention_heads": heads,
            "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
            "head_dim": meta.get("llama.attention.key_length", meta["llama.embedding_length"] // heads),
            "vocab_size": meta.get("llama.vocab_size", 32000), "max_position_embeddings": meta["llama.context_length"],
            "rms_norm_eps": meta.get("llama.attention.layer_norm_rms_epsilon", 1e-5), "rope_theta": meta.get("llama.rope.freq_base", 10000.0),
            "tie_word_embeddings": shown.get("tied", True), "bos_token_id": 1, "eos_token_id": 2}
