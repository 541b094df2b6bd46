#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/embedding: tiny random encoders, embedding models, classifiers and rerankers with their exact outputs.

Each folder is laid out as the hub has it. golden.json holds "cases": what goes in (text, or text and pair), the ids and token types
that the `tokenizers` library makes of it, and "vector" (pooled as the folder's files say) or "logits", computed by transformers in
float64. Needs torch, transformers >= 5, safetensors and tokenizers:

    python tests/scripts/make_embedding_models.py tests/data
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer

HIDDEN = 32
TEXTS = [
    "a cat",
    "A weir is a low dam built across a river.",
    "the quick brown fox jumps over the lazy dog, and then it sleeps in the sun until the evening comes",
]
PAIRS = [("what is a weir?", "a weir is a low dam"), ("cats", "the quick brown fox jumps over the lazy dog in the evening sun"), ("a", "b")]


def template(tokenizer, prefix, suffix, pair):
    """A post_processor in which every special token is written with its id."""
    ids = {name: tokenizer.token_to_id(name) for name in {*prefix, *suffix, *(p for p in pair if isinstance(p, str))}}
    one = [{"SpecialToken": {"id": p, "type_id": 0}} for p in prefix] + [{"Sequence": {"id": "A", "type_id": 0}}]
    one += [{"SpecialToken": {"id": p, "type_id": 0}} for p in suffix]
    two = []
    for p in pair:
        two.append({"SpecialToken": {"id": p, "type_id": 0}} if isinstance(p, str) else {"Sequence": {"id": p[0], "type_id": p[1]}})
    special = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in ids.items()}
    return {"type": "TemplateProcessing", "single": one, "pair": two, "special_tokens": special}


def write_tokenizer(folder, data, kind):
    """WordPiece from the tiny BERT, or byte-level BPE from the tiny Llama with the wrapping of RoBERTa, ModernBERT or Qwen."""
    source = data / "arch" / ("bert" if kind == "wordpiece" else "llama")
    text = (source / "tokenizer.json").read_text()
    value = json.loads(text)
    tokenizer = Tokenizer.from_str(text)
    names = [t["content"] for t in value["added_tokens"]]
    if kind == "wordpiece":
        value["post_processor"] = template(tokenizer, ["[CLS]"], ["[SEP]"], ["[CLS]", ("A", 0), "[SEP]", ("B", 1), "[SEP]"])
        for item in value["post_processor"]["pair"][-1:]:
            item["SpecialToken"]["type_id"] = 1
    elif kind == "roberta":
        a, b = names[0], names[1]
        value["post_processor"] = template(tokenizer, [a], [b], [a, ("A", 0), b, b, ("B", 0), b])
    elif kind == "modern":
        a, b = names[0], names[1]
        value["post_processor"] = template(tokenizer, [a], [b], [a, ("A", 0), b, ("B", 0), b])
    else:  # "last": one token behind the text
        value["post_processor"] = template(tokenizer, [], [names[1]], [("A", 0), ("B", 0), names[1]])
    (folder / "tokenizer.json").write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        scale = 0.25 if p.dim() > 1 else 0.1
        base = 1.0 if p.dim() == 1 and name.endswith("weight") and "norm" in name.lower() and "Gemma" not in type(model).__name__ else 0.0
        p.data = (base + scale * torch.randn(p.shape, generator=generator, dtype=torch.float64)).to(torch.float32).to(torch.float64)


def dense(folder, name, seed, size_in, size_out, activation):
    generator = torch.Generator().manual_seed(seed)
    weight = (0.3 * torch.randn(size_out, size_in, generator=generator, dtype=torch.float64)).float()
    bias = (0.1 * torch.randn(size_out, generator=generator, dtype=torch.float64)).float()
    (folder / name).mkdir()
    config = {"in_features": size_in, "out_features": size_out, "bias": True, "activation_function": f"torch.nn.modules.{activation}"}
    (folder / name / "config.json").write_text(json.dumps(config))
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / name / "model.safetensors")
    act = torch.tanh if activation.endswith("Tanh") else (lambda x: x)
    return lambda x: act(weight.double() @ x + bias.double())


def sentence_files(folder, mode, steps, extra=None, limit=None):
    """modules.json and what belongs to it; returns the function from hidden states to the vector."""
    package = "sentence_transformers.models"
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    functions = []
    for i, step in enumerate(steps):
        name = f"{i + 2}_{step[0]}"
        modules.append((name, step[0]))
        functions.append(torch.nn.functional.normalize if step[0] == "Normalize" else dense(folder, name, 70 + i, *step[1:]))
    listed = [{"idx": i, "name": str(i), "path": p, "type": f"{package}.{t}"} for i, (p, t) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed, indent=1))
    (folder / "1_Pooling").mkdir()
    flags = {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False}
    flags[f"pooling_mode_{mode}"] = True
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags, indent=1))
    if extra:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(extra, indent=1))
    if limit:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit, "do_lower_case": False}))

    def run(states):
        weights = torch.arange(1, len(states) + 1, dtype=torch.float64)[:, None]
        pooled = {
            "mean_tokens": lambda: states.mean(0),
            "cls_token": lambda: states[0],
            "lasttoken": lambda: states[-1],
            "max_tokens": lambda: states.max(0).values,
            "weightedmean_tokens": lambda: (weights * states).sum(0) / weights.sum(),
        }[mode]()
        for function in functions:
            pooled = function(pooled, dim=0) if function is torch.nn.functional.normalize else function(pooled)
        return pooled

    return run


def save(folder, model, config, rename=lambda state: state):
    state = {k: v.float().contiguous() for k, v in model.state_dict().items() if not k.endswith("position_ids")}
    tied = config.get("tie_word_embeddings", False)
    if tied:
        state.pop("lm_head.weight", None)
    save_file({k: v.clone() for k, v in rename(state).items()}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def golden(folder, tokenizer, model, run, pairs, types):
    cases = []
    for item in PAIRS if pairs else TEXTS:
        encoded = tokenizer.encode(*item) if pairs else tokenizer.encode(item)
        ids = torch.tensor([encoded.ids])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if types:
            inputs["token_type_ids"] = torch.tensor([encoded.type_ids])
        with torch.no_grad():
            out = model(**inputs)
        case = {"text": item[0], "pair": item[1]} if pairs else {"text": item}
        case |= {"ids": encoded.ids} | ({"types": encoded.type_ids} if types else {})
        if run:
            case["vector"] = run(out.last_hidden_state[0]).tolist()
        else:
            case["logits"] = out.logits[0].tolist()
        cases.append(case)
    (folder / "golden.json").write_text(json.dumps({"cases": cases}))


BERT = {"vocab_size": 112, "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 64, "type_vocab_size": 2, "pad_token_id": 0}
QWEN = {"vocab_size": 264, "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 512,
        "rope_theta": 1000000, "model_type": "qwen3", "tie_word_embeddings": True}
MODERN = {"model_type": "modernbert", "vocab_size": 264, "hidden_size": HIDDEN, "intermediate_size": 40, "num_hidden_layers": 4,
          "num_attention_heads": 4, "hidden_activation": "gelu", "max_position_embeddings": 256, "norm_eps": 1e-5, "norm_bias": False,
          "attention_bias": False, "mlp_bias": False, "local_attention": 12, "global_attn_every_n_layers": 3,
          "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
          "cls_token_id": 1, "sep_token_id": 2}
GEMMA = {"model_type": "gemma3_text", "vocab_size": 264, "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh",
         "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
         "sliding_window": 16, "query_pre_attn_scalar": 16, "use_bidirectional_attention": True, "attention_bias": False,
         "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]}


def labels(*names):
    return {"id2label": {str(i): n for i, n in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}


def nomic_hub(state):
    """As nomic-ai's checkpoints have it: q, k and v in one weight, other names."""
    out = {}
    for name, value in state.items():
        name = name.replace("layers.", "encoder.layers.", 1).replace("embeddings.LayerNorm", "emb_ln")
        for a, b in [("self_attn.o_proj", "attn.out_proj"), ("up_proj", "fc11"), ("gate_proj", "fc12"), ("down_proj", "fc2"),
                     ("post_attention_layernorm", "norm1"), ("post_mlp_layernorm", "norm2")]:
            name = name.replace(a, b)
        out[name] = value
    for name in [n for n in out if n.endswith("self_attn.q_proj.weight")]:
        parts = [out.pop(name.replace("q_proj", p)) for p in ("q_proj", "k_proj", "v_proj")]
        out[name.replace("self_attn.q_proj", "attn.Wqkv")] = torch.cat(parts)
    return {n: v for n, v in out.items() if not n.startswith("pooler")}


def gte_hub(state):
    """As Alibaba-NLP's "new" checkpoints have it."""
    out = {}
    for name, value in state.items():
        name = name.replace("layers.", "encoder.layer.", 1)
        for a, b in [("self_attn.o_proj", "attention.o_proj"), ("post_attention_layernorm", "attn_ln"), ("post_mlp_layernorm", "mlp_ln")]:
            name = name.replace(a, b)
        out[name] = value
    for name in [n for n in out if ".self_attn.q_proj." in n]:
        parts = [out.pop(name.replace("q_proj", p)) for p in ("q_proj", "k_proj", "v_proj")]
        out[name.replace("self_attn.q_proj", "attention.qkv_proj")] = torch.cat(parts)
    for name in [n for n in out if n.endswith("mlp.up_proj.weight")]:
        parts = [out.pop(name), out.pop(name.replace("up_proj", "gate_proj"))]
        out[name.replace("up_proj", "up_gate_proj")] = torch.cat(parts)
    return {n: v for n, v in out.items() if not n.startswith("pooler")}


def main():
    data = pathlib.Path(sys.argv[1])
    root = data / "embedding"
    torch.set_default_dtype(torch.float64)

    def make(name, cls, config, tokens, pooling=None, types=False, pairs=False, extra=None, rename=lambda s: s, load=None):
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        known = {**config, **(load or {})}
        settings = transformers.AutoConfig.for_model(known.pop("model_type"), **known, attn_implementation="eager")
        model = getattr(transformers, cls)(settings).double().eval()
        randomize(model, sum(map(ord, name)))
        run = sentence_files(folder, *pooling) if pooling else None
        tokenizer = write_tokenizer(folder, data, tokens)
        save(folder, model, config, rename)
        golden(folder, tokenizer, model, run, pairs, types)
        print(name, sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) // 1024, "KiB")

    bert = {"model_type": "bert", **BERT}
    make("bert_pairs", "BertForSequenceClassification", {"architectures": ["BertForSequenceClassification"], **bert, **labels("no", "maybe", "yes")},
         "wordpiece", types=True, pairs=True)
    xlmr = {"model_type": "xlm-roberta", **BERT, "vocab_size": 264, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
            "max_position_embeddings": 160}
    make("xlmr_rerank", "XLMRobertaForSequenceClassification",
         {"architectures": ["XLMRobertaForSequenceClassification"], **xlmr, **labels("LABEL_0")}, "roberta", pairs=True)
    make("xlmr_embed", "XLMRobertaModel", {"architectures": ["XLMRobertaModel"], **xlmr}, "roberta",
         pooling=("cls_token", [("Normalize",)], {"prompts": {"query": "query: "}, "default_prompt_name": None}, 120))
    distil = {"model_type": "distilbert", "vocab_size": 112, "dim": HIDDEN, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "activation": "gelu",
              "max_position_embeddings": 128, "pad_token_id": 0, "sinusoidal_pos_embds": False}
    make("distilbert_classes", "DistilBertForSequenceClassification",
         {"architectures": ["DistilBertForSequenceClassification"], **distil, **labels("NEGATIVE", "POSITIVE")}, "wordpiece")
    make("modernbert_embed", "ModernBertModel", {"architectures": ["ModernBertModel"], **MODERN}, "modern",
         pooling=("mean_tokens", [("Normalize",)], {"matryoshka_dims": [8, 16]}))
    make("modernbert_rerank", "ModernBertForSequenceClassification",
         {"architectures": ["ModernBertForSequenceClassification"], **MODERN, "classifier_pooling": "mean", **labels("LABEL_0")}, "modern", pairs=True)
    nomic = {"model_type": "nomic_bert", "n_embd": HIDDEN, "n_head": 4, "n_layer": 2, "n_inner": 48, "n_positions": 256, "vocab_size": 112,
             "type_vocab_size": 2, "activation_function": "swiglu", "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
             "prenorm": False, "use_rms_norm": False, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
             "rotary_emb_scale_base": None, "causal": False, "parallel_block": False, "layer_norm_epsilon": 1e-12, "pad_token_id": 0,
             "tie_word_embeddings": True, "is_matryoshka": True}
    make("nomic_embed", "NomicBertModel", {"architectures": ["NomicBertModel"], **nomic}, "wordpiece", types=True, rename=nomic_hub,
         pooling=("mean_tokens", [("Normalize",)]),
         load={"hidden_size": HIDDEN, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48,
               "max_position_embeddings": 256, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}})
    gte = {"model_type": "new", "vocab_size": 264, "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
           "hidden_act": "gelu", "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm", "max_position_embeddings": 256, "type_vocab_size": 1,
           "position_embedding_type": "rope", "rope_theta": 20000.0, "rope_scaling": None, "pack_qkv": True, "pad_token_id": 1}
    make("gte_embed", "GteModel", {"architectures": ["NewModel"], **gte}, "roberta", rename=gte_hub, pooling=("cls_token", [("Normalize",)]),
         load={"model_type": "gte"})
    make("qwen3_embed", "Qwen3Model", {"architectures": ["Qwen3ForCausalLM"], **QWEN, "is_matryoshka": True}, "last",
         pooling=("lasttoken", [("Normalize",)], {"prompts": {"query": "Instruct: find\nQuery:", "document": ""}, "default_prompt_name": None}))
    make("qwen3_rerank", "Qwen3ForSequenceClassification", {"architectures": ["Qwen3ForSequenceClassification"], **QWEN, **labels("LABEL_0")},
         "last", pairs=True, load={"pad_token_id": 0})
    mistral = {k: v for k, v in QWEN.items() if k != "tie_word_embeddings"} | {"model_type": "mistral", "sliding_window": None}
    make("mistral_embed", "MistralModel", {"architectures": ["MistralModel"], **mistral, "tie_word_embeddings": False}, "last",
         pooling=("weightedmean_tokens", []))
    make("gemma_embed", "Gemma3TextModel", {"architectures": ["Gemma3TextModel"], **GEMMA}, "modern",
         pooling=("mean_tokens", [("Dense", HIDDEN, 40, "linear.Identity"), ("Dense", 40, HIDDEN, "activation.Tanh"), ("Normalize",)],
                  {"prompts": {"query": "task: search result | query: "}}))


main()
