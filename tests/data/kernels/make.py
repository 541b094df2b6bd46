# SPDX-License-Identifier: Apache-2.0
# Makes <type>.bin: random valid blocks of a type, then the floats that the Python package `gguf` reads from them.
# Usage: python -m venv v && v/bin/pip install gguf==0.19.0 numpy && v/bin/python make.py
import numpy as np
import gguf

# type: offsets of its half-precision fields
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}
ELEMENTS = 1024

rng = np.random.default_rng(3)
for name, halves in HALVES.items():
    kind = gguf.GGMLQuantizationType[name]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    count = ELEMENTS // block
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in halves:
        values = rng.standard_normal(count).astype(np.float32) * 10.0 ** rng.integers(-4, 1, count)
        values[0] = 3e-7  # subnormal as a half
        data[:, at:at + 2] = values.astype(np.float16).view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        data[:, 0] = [0, 1, 2, 250] + list(rng.integers(100, 140, count - 4))
    floats = gguf.quants.dequantize(data.reshape(1, -1), kind).astype(np.float32)
    assert floats.size == ELEMENTS
    with open(f"{name}.bin", "wb") as file:
        file.write(data.tobytes() + floats.tobytes())
