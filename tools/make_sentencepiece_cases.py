#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tokenizer/sentencepiece_cases.jsonl: small SentencePiece models as GGUF metadata would hold them, and the
ids that the `sentencepiece` library gives for random text.
    python3 -m venv v && v/bin/pip install sentencepiece==0.2.3 protobuf tokenizers==0.23.3 && v/bin/python tools/make_sentencepiece_cases.py
A line is {"name", "model", "tokens", "scores", "types", "add_space_prefix", "remove_extra_whitespaces", "charsmap", "cases"}.
"""
import base64
import io
import json
import random
import tempfile
from pathlib import Path

import sentencepiece as spm
from make_tokenizer_cases import ROOT, corpus, random_text
from sentencepiece import sentencepiece_model_pb2 as pb

RULES = [("Ａ", "A"), ("é", "e\u0301"), ("ﬁ", "fi"), ("½", "1/2"), ("\u3000", " "), ("\t", " "), ("\u200d", ""), ("ab", "X"), ("abc", "Y")]


def train(rng, **options):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        for source, target in RULES:
            hexes = [" ".join(f"{ord(c):X}" for c in side) for side in (source, target)]
            rules.write("\t".join(hexes) + "\n")
        rules.flush()
        if options.pop("with_rules", False):
            options["normalization_rule_tsv"] = rules.name
        else:
            options["normalization_rule_name"] = "identity"
        out = io.BytesIO()
        lines = [line for line in corpus(rng, True) if line.strip()]
        spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=2, **options)
    proto = pb.ModelProto()
    proto.ParseFromString(out.getvalue())
    return proto, spm.SentencePieceProcessor(model_proto=out.getvalue())


def main():
    rng = random.Random(5)
    path = ROOT / "tests/data/tokenizer/sentencepiece_cases.jsonl"
    with path.open("w", encoding="ascii") as file:
        for name, model, options in [
            ("bpe", "llama", dict(model_type="bpe", vocab_size=500, byte_fallback=True, remove_extra_whitespaces=False)),
            ("bpe without prefix", "llama", dict(model_type="bpe", vocab_size=450, byte_fallback=True, remove_extra_whitespaces=False, add_dummy_prefix=False)),
            ("bpe across words", "llama", dict(model_type="bpe", vocab_size=500, byte_fallback=True, remove_extra_whitespaces=False, split_by_whitespace=False)),
            ("unigram", "t5", dict(model_type="unigram", vocab_size=300)),
            ("unigram with rules", "t5", dict(model_type="unigram", vocab_size=300, with_rules=True)),
            ("unigram, spaces kept", "t5", dict(model_type="unigram", vocab_size=300, with_rules=True, remove_extra_whitespaces=False)),
        ]:
            proto, processor = train(rng, **options)
            spec = proto.normalizer_spec
            cases = []
            for text in ["", "a", "hello world", "  two  spaces ", "abc ab X", "   "] + [random_text(rng) for _ in range(40)]:
                cases.append([text, processor.encode(text)])
            types = [piece.type for piece in proto.pieces]
            # As converters to GGUF do: spaces of user-defined tokens are plain.
            tokens = [p.piece.replace("▁", " ") if p.type == 4 else p.piece for p in proto.pieces]
            file.write(json.dumps({
                "name": name, "model": model, "tokens": tokens, "scores": [p.score for p in proto.pieces], "types": types,
                "add_space_prefix": spec.add_dummy_prefix, "remove_extra_whitespaces": spec.remove_extra_whitespaces,
                "charsmap": base64.b16encode(spec.precompiled_charsmap).decode(), "cases": cases}, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
