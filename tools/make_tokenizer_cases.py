#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tokenizer/json_cases.jsonl: small tokenizer.json files of every supported component, and what the
`tokenizers` library makes of random Unicode text with them.
    python3 -m venv v && v/bin/pip install tokenizers==0.23.3 && v/bin/python tools/make_tokenizer_cases.py
Also tests/data/tokenizer/unicode_digests.json: what each normalizer makes of every single character, as a hash.
A line of json_cases.jsonl is {"name", "tokenizer", "cases": [[text, ids without added special tokens, ids with them, decoded text], …]}.
"""
import json
import random
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

ROOT = Path(__file__).resolve().parent.parent
RANGES = [(0x20, 0x7E)] * 6 + [(0xA0, 0xFF), (0x100, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x600, 0x6FF),
          (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x209F), (0x2100, 0x218F),
          (0x3040, 0x30FF), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xF9FF), (0xFB00, 0xFB4F), (0xFF00, 0xFFEF), (0x1D400, 0x1D4FF),
          (0x1F300, 0x1F6FF), (0x20000, 0x20020)]
WORDS = ["the", "The", "THE", "don't", "I'll", "WE'RE", "it's", "'s", "hello", "world", "naïve", "Ünïcödé", "straße", "İstanbul", "3.14", "12345",
         "x=1;", "foo_bar", "<tag>", "e\u0301", "안녕", "中文", "日本語", "ǅungla", "Ⓐ", "½", "\u200d", "a\u200cb", "<mask>", "[EXTRA]", "<sep>", "  "]
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\n\n", " \n ", ""]


def random_text(rng):
    out = []
    for _ in range(rng.randint(1, 10)):
        kind = rng.random()
        if kind < 0.55:
            out.append(rng.choice(WORDS))
        else:
            low, high = rng.choice(RANGES)
            out.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 5))))
        out.append(rng.choice(SPACES))
    return "".join(out)


def corpus(rng, ascii_only):
    text = (ROOT / "tests/data/wikitext2_test.txt").read_text(encoding="utf-8")[:60_000].splitlines()
    lines = text + [random_text(rng) for _ in range(200)]
    return [line.encode("ascii", "ignore").decode() for line in lines] if ascii_only else lines


def trained(model, trainer, pre=None, norm=None, post=None, dec=None, added=(), rng=None, ascii_only=False):
    tok = Tokenizer(model)
    if norm is not None:
        tok.normalizer = norm
    if pre is not None:
        tok.pre_tokenizer = pre
    if dec is not None:
        tok.decoder = dec
    tok.train_from_iterator(corpus(rng, ascii_only), trainer)
    if added:
        tok.add_tokens([a for a in added if not a.special])
        tok.add_special_tokens([a for a in added if a.special])
    if post is not None:
        tok.post_processor = post
    return tok


def bpe_trainer(size, **more):
    return trainers.BpeTrainer(vocab_size=size, show_progress=False, **more)


def byte_level(rng, pre, size=330, **more):
    return trained(models.BPE(), bpe_trainer(size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), pre=pre, dec=decoders.ByteLevel(), rng=rng, **more)


def regex_split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_vocab(text_tokens, merges):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + text_tokens
    return {t: i for i, t in enumerate(dict.fromkeys(tokens))}, merges


def llama_like(rng, fuse=True, fallback=True, pre=None, norm=None, dec=None, unk="<unk>", **more):
    base = trained(models.BPE(unk_token="<unk>"), bpe_trainer(260, special_tokens=["<unk>"], limit_alphabet=90), norm=normalizers.Replace(" ", "▁"), rng=rng)
    data = json.loads(base.to_str())["model"]
    vocab, merges = byte_vocab([t for t in data["vocab"] if t != "<unk>"], [tuple(m) for m in data["merges"]])
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token=unk, fuse_unk=fuse, byte_fallback=fallback, **more))
    if norm is not None:
        tok.normalizer = norm
    if pre is not None:
        tok.pre_tokenizer = pre
    if dec is not None:
        tok.decoder = dec
    return tok


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
U, L = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
C = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = rf"[^\r\n\p{{L}}\p{{N}}]?{U}*{L}+{C}|[^\r\n\p{{L}}\p{{N}}]?{U}+{L}*{C}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{U}*{L}+|[^\r\n\p{{L}}\p{{N}}]?{U}+{L}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ADDED = [AddedToken("<mask>", lstrip=True, special=True), AddedToken("[EXTRA]", rstrip=True, special=False, normalized=False),
         AddedToken("<sep>", special=True, single_word=True), AddedToken("hello", single_word=True, normalized=True, special=False)]


def all_tokenizers(rng):
    P, N, D = pre_tokenizers, normalizers, decoders
    yield "byte-level gpt2", byte_level(rng, P.ByteLevel(add_prefix_space=False))
    yield "byte-level prefix space", byte_level(rng, P.ByteLevel(add_prefix_space=True), added=ADDED)
    yield "byte-level digits", byte_level(rng, P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)]))
    yield "byte-level digit runs, punctuation", byte_level(rng, P.Sequence([P.Digits(individual_digits=False), P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False)]))
    yield "llama3 regex", byte_level(rng, regex_split(LLAMA3), added=ADDED)
    yield "o200k regex", byte_level(rng, regex_split(O200K))
    yield "tekken regex", byte_level(rng, regex_split(TEKKEN, "removed", True))
    yield "gpt2 regex, unknown to the scanners", byte_level(rng, regex_split(GPT2 + r"|\Z"))
    yield "word borders", byte_level(rng, regex_split(r"\b|\d{1,3}(?=(?:\d{3})*\b)"))
    yield "classes", byte_level(rng, regex_split(r"[\w\s&&[^a]]+".replace("&&[^a]", "") + r"|[^\s\w]+"))
    yield "nfc", byte_level(rng, P.ByteLevel(add_prefix_space=False), norm=N.NFC())
    yield "nfd", byte_level(rng, P.ByteLevel(add_prefix_space=False), norm=N.NFD())
    yield "nfkc lowercase", byte_level(rng, P.ByteLevel(add_prefix_space=False), norm=N.Sequence([N.NFKC(), N.Lowercase()]), added=ADDED)
    yield "nfkd strip accents", byte_level(rng, P.ByteLevel(add_prefix_space=False), norm=N.Sequence([N.NFKD(), N.StripAccents(), N.Strip()]))
    yield "replace", byte_level(rng, P.ByteLevel(add_prefix_space=False), norm=N.Sequence([N.Replace("e", "E!"), N.Replace(Regex(r"\s{2,}"), " "), N.Prepend("_")]), added=ADDED)
    for behavior in ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]:
        for invert in [False, True]:
            yield f"split {behavior} {invert}", byte_level(rng, regex_split(r"[aeiou]|\s|\p{N}", behavior, invert), size=290)
        yield f"split string {behavior}", byte_level(rng, P.Sequence([P.Split("e", behavior), P.ByteLevel(add_prefix_space=False, use_regex=False)]), size=290)
    yield "metaspace always", llama_like(rng, pre=P.Metaspace(prepend_scheme="always"), dec=D.Metaspace(prepend_scheme="always"))
    yield "metaspace first, not split", llama_like(rng, pre=P.Metaspace(prepend_scheme="first", split=False), dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]))
    yield "metaspace never", llama_like(rng, pre=P.Metaspace(prepend_scheme="never"), dec=D.Metaspace(prepend_scheme="never"), fallback=False)
    yield "no fusing", llama_like(rng, fuse=False, fallback=False, pre=P.Whitespace())
    yield "llama2", llama_like(rng, norm=N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]))
    yield "gemma", llama_like(rng, norm=N.Replace(" ", "▁"), pre=P.Split(" ", "merged_with_previous"), dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]), ignore_merges=True)
    yield "no unknown", llama_like(rng, fallback=False, unk=None, pre=P.WhitespaceSplit())
    unk_trainer = trainers.UnigramTrainer(vocab_size=260, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    yield "unigram metaspace", trained(models.Unigram(), unk_trainer, ascii_only=True, pre=P.Metaspace(), norm=N.NFKC(), dec=D.Metaspace(), rng=rng,
                                       post=processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]))
    yield "unigram whitespace split", trained(models.Unigram(), unk_trainer, ascii_only=True, pre=P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")]), rng=rng, added=ADDED)
    bytes_vocab = [("<unk>", 0.0)] + [(f"<0x{b:02X}>", -20.0) for b in range(256)] + [("▁", -2.5), ("▁the", -3.0), ("e", -4.0), ("t", -4.5), ("h", -5.0), ("the", -7.0), ("a", -4.0), ("▁a", -4.4), ("in", -5.0), ("i", -4.9), ("n", -5.1)]
    fallback = Tokenizer(models.Unigram(bytes_vocab, 0, True))
    fallback.pre_tokenizer = P.Metaspace(prepend_scheme="always", split=False)
    fallback.decoder = D.Sequence([D.ByteFallback(), D.Metaspace()])
    yield "unigram byte fallback", fallback
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    wp = trainers.WordPieceTrainer(vocab_size=300, special_tokens=specials, limit_alphabet=120, show_progress=False)
    bert_post = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    for cased in [False, True]:
        yield f"bert lowercase={not cased}", trained(models.WordPiece(unk_token="[UNK]"), wp, pre=P.BertPreTokenizer(), norm=N.BertNormalizer(lowercase=not cased), post=bert_post, dec=D.WordPiece(), added=ADDED, rng=rng)
    yield "wordpiece whitespace", trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=6), wp, pre=P.Whitespace(), norm=N.BertNormalizer(strip_accents=True, lowercase=False, handle_chinese_chars=False), post=processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), dec=D.WordPiece(cleanup=False), rng=rng)
    yield "punctuation and characters", trained(models.WordPiece(unk_token="[UNK]"), wp, pre=P.Sequence([P.CharDelimiterSplit("a"), P.Punctuation("merged_with_previous"), P.WhitespaceSplit()]), rng=rng)
    yield "roberta", byte_level(rng, P.ByteLevel(add_prefix_space=True), post=processors.RobertaProcessing(("e", 70), ("a", 66)))
    yield "sequence of processors", byte_level(rng, P.ByteLevel(add_prefix_space=False), post=processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(single="a $A b c", special_tokens=[("a", 66), ("b", 67), ("c", 68)])]))


def fnv1a(chunks):
    value = 0xCBF29CE484222325
    for chunk in chunks:
        for byte in chunk:
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def write_digests():
    """FNV-1a 64 over normalize(character) + newline for all characters in order."""
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    steps = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents(),
             normalizers.Strip(), normalizers.BertNormalizer(), *[normalizers.BertNormalizer(**(bert | {name: True})) for name in bert]]
    out = []
    for step in steps:
        tok = Tokenizer(models.BPE())
        tok.normalizer = step
        results = (step.normalize_str(chr(cp)).encode() + b"\n" for cp in range(0x110000) if not 0xD800 <= cp < 0xE000)
        out.append({"normalizer": json.loads(tok.to_str())["normalizer"], "fnv1a": fnv1a(results)})
    path = ROOT / "tests/data/tokenizer/unicode_digests.json"
    path.write_text(json.dumps(out, indent=1) + "\n")


def main():
    write_digests()
    rng = random.Random(20261)
    out = ROOT / "tests/data/tokenizer/json_cases.jsonl"
    with out.open("w", encoding="ascii") as file:
        for name, tok in all_tokenizers(rng):
            texts = ["", " ", "  ", "\n"] + [random_text(rng) for _ in range(24)]
            cases = []
            for text in texts:
                plain = tok.encode(text, add_special_tokens=False).ids
                # An added token that is looked for in normalised text comes out normalised: a quirk that is not copied.
                decoded = None if name == "replace" else tok.decode(plain, skip_special_tokens=False)
                cases.append([text, plain, tok.encode(text).ids, decoded])
            file.write(json.dumps({"name": name, "tokenizer": json.loads(tok.to_str()), "cases": cases}, separators=(",", ":")) + "\n")
    print(out, out.stat().st_size)


if __name__ == "__main__":
    main()
