// SPDX-License-Identifier: Apache-2.0
// Configs that lie: every change below gives an error that names the key or the tensor, whatever the family, and none a crash.
#include <gmock/gmock.h>

#include "base/testing.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/hf_folder.h"
#include "model/load.h"

namespace weir::model {
namespace {

using ::testing::HasSubstr;

formats::HfFolder folder(const char* name) {
  auto opened = formats::HfFolder::open(weir::testing::data_path(std::string("arch/") + name));
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(opened).value();
}

struct Lie {
  const char* architecture;
  const char* changes;  // JSON: members put into config.json; "-" removes one
  const char* message;
  ErrorCode code = ErrorCode::kCorrupt;
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.architecture << " with " << lie.changes; }

constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

const Lie kLies[] = {
    // Sizes.
    {"llama", R"({"hidden_size": 0})", "hidden_size is 0"},
    {"llama", R"({"hidden_size": -40})", "hidden_size is -40"},
    {"llama", R"({"hidden_size": 1e300})", "hidden_size"},
    {"llama", R"({"hidden_size": 40.5})", "hidden_size"},
    {"llama", R"({"hidden_size": "40"})", "hidden_size"},
    {"llama", R"({"hidden_size": 80})", "shape [264, 40], expected [264, 80]"},
    {"llama", R"({"hidden_size": "-"})", "hidden_size: required"},
    {"llama", R"({"num_hidden_layers": 0})", "num_hidden_layers is 0"},
    {"llama", R"({"num_hidden_layers": 4000000000})", "num_hidden_layers is 4000000000"},
    {"llama", R"({"num_hidden_layers": 3})", "model.layers.2.input_layernorm.weight: missing"},
    {"llama", R"({"vocab_size": 265})", "model.embed_tokens.weight: shape [264, 40], expected [265, 40]"},
    {"llama", R"({"vocab_size": -1})", "vocab_size"},
    {"llama", R"({"intermediate_size": 71})", "mlp.down_proj.weight: shape [40, 72], expected [40, 71]"},
    {"llama", R"({"intermediate_size": "-"})", "inner size of the ffn"},
    {"llama", R"({"num_attention_heads": 0})", "number of attention heads is 0"},
    {"llama", R"({"num_attention_heads": 3})", "3 attention heads for 2 KV heads"},
    {"llama", R"({"num_attention_heads": 1000000})", "number of attention heads is 1000000"},
    {"llama", R"({"num_key_value_heads": 3})", "4 attention heads for 3 KV heads"},
    {"llama", R"({"num_key_value_heads": 4})", "self_attn.k_proj.weight: shape [20, 40], expected [40, 40]"},
    {"llama", R"({"head_dim": 9})", "9 rotated dimensions"},
    {"llama", R"({"head_dim": -2})", "head_dim is -2"},
    {"llama", R"({"max_position_embeddings": -5})", "max_position_embeddings"},
    {"llama", R"({"rms_norm_eps": -1})", "rms_norm_eps"},
    {"llama", R"({"rms_norm_eps": "small"})", "rms_norm_eps"},
    {"mistral", R"({"sliding_window": -3})", "sliding_window is -3"},
    {"gemma3_text", R"({"sliding_window_pattern": 0})", "sliding_window_pattern is 0"},
    {"gemma2", R"({"attn_logit_softcapping": -1})", "attn_logit_softcapping"},
    {"gemma2", R"({"query_pre_attn_scalar": 0})", "query_pre_attn_scalar"},
    {"granite", R"({"logits_scaling": 0})", "logits_scaling"},
    // Rope.
    {"llama", R"({"rope_theta": 0})", "rope_theta"},
    {"llama", R"({"rope_theta": [1]})", "rope_theta"},
    {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 0}})", "factor is 0"},
    {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 4}})", "high_freq_factor"},
    {"llama", R"({"rope_scaling": {"rope_type": "xpos", "factor": 2}})", "\"xpos\" is not supported", kUnsupported},
    {"phi", R"({"partial_rotary_factor": 2})", "partial rotary factor 2"},
    {"phi", R"({"partial_rotary_factor": 0.2})", "1 rotated dimensions"},
    {"phi3", R"({"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]}})",
     "short_factor has 1 entries, expected 6"},
    {"phi3", R"({"rope_scaling": {"type": "longrope", "short_factor": 1, "long_factor": 1}})", "expected an array"},
    {"deepseek_v2", R"({"qk_rope_head_dim": 7})", "rope"},
    // What is not understood.
    {"llama", R"({"hidden_act": "quick_gelu"})", "activation \"quick_gelu\"", kUnsupported},
    {"llama", R"({"hidden_act": 3})", "hidden_act"},
    {"llama", R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})", "quantised with \"gptq\"", kUnsupported},
    {"llama", R"({"quantization_config": {"quant_method": "fp8"}})", "quantised with \"fp8\"", kUnsupported},
    {"llama", R"({"quantization_config": 4})", "quantization_config"},
    {"llama", R"({"model_type": "jamba"})", "model_type \"jamba\" is not supported", kUnsupported},
    {"llama", R"({"model_type": "-"})", "model_type"},
    {"falcon", R"({"alibi": true})", "alibi", kUnsupported},
    {"bert", R"({"position_embedding_type": "relative_key"})", "relative_key", kUnsupported},
    {"bert", R"({"is_decoder": true})", "decoder", kUnsupported},
    {"gpt2", R"({"scale_attn_weights": false})", "unscaled attention", kUnsupported},
    {"olmoe", R"({"clip_qkv": 8.0})", "clip_qkv", kUnsupported},
    {"cohere2", R"({"use_parallel_block": false})", "use_parallel_block", kUnsupported},
    {"deepseek_v3", R"({"topk_method": "random"})", "topk_method", kUnsupported},
    {"gemma", R"({"use_bidirectional_attention": true})", "both directions", kUnsupported},
    {"qwen3_next", R"({"layer_types": ["linear_attention", "mystery", "linear_attention", "full_attention"]})", "\"mystery\"",
     kUnsupported},
    {"gemma2", R"({"layer_types": ["full_attention"]})", "layer_types has 1 entries for 3 layers"},
    {"gemma2", R"({"layer_types": [1, 2, 3]})", "array of strings"},
    // Flags that do not fit the weights.
    {"llama", R"({"attention_bias": true})", "self_attn.q_proj.bias: missing"},
    {"llama_bias", R"({"attention_bias": false})", "has no place for: model.layers.0.self_attn.k_proj.bias", kUnsupported},
    {"llama_bias", R"({"mlp_bias": false})", "has no place for", kUnsupported},
    {"llama_tied", R"({"tie_word_embeddings": false})", "lm_head.weight: missing"},
    {"qwen3", R"({"model_type": "llama"})", "has no place for", kUnsupported},
    {"qwen2", R"({"model_type": "llama"})", "has no place for", kUnsupported},
    {"stablelm", R"({"use_parallel_residual": true})", "has no place for", kUnsupported},
    {"phi", R"({"qk_layernorm": true})", "q_layernorm.weight: missing"},
    // Experts.
    {"mixtral", R"({"num_local_experts": 0})", "num_local_experts is 0"},
    {"mixtral", R"({"num_local_experts": 5})", "block_sparse_moe.gate.weight: shape [4, 32], expected [5, 32]"},
    {"mixtral", R"({"num_local_experts": 1000000000})", "num_local_experts"},
    {"mixtral", R"({"num_experts_per_tok": 5})", "num_experts_per_tok is 5"},
    {"mixtral", R"({"num_experts_per_tok": 0})", "num_experts_per_tok is 0"},
    {"deepseek_v3", R"({"n_group": 3})", "8 experts in 3 groups"},
    {"deepseek_v3", R"({"topk_group": 5})", "topk_group is 5"},
    {"deepseek_v3", R"({"n_group": 8, "topk_group": 2})", "3 experts from 2 groups of 1"},
    {"deepseek_v3", R"({"kv_lora_rank": 21})", "kv_a_proj_with_mqa.weight"},
    {"deepseek_v3", R"({"v_head_dim": 13})", "kv_b_proj.weight"},
    {"deepseek_v3", R"({"n_shared_experts": 300})", "n_shared_experts"},
    {"gpt_oss_mxfp4", R"({"intermediate_size": 31})", "gate_up_proj_bias: shape [3, 64], expected 186 values"},
    {"gpt_oss_mxfp4", R"({"num_local_experts": 2})", "expected [2"},
    {"gpt_oss", R"({"swiglu_limit": -1})", "swiglu_limit"},
    // Recurrent layers.
    {"mamba2", R"({"num_heads": 0})", "num_heads is 0"},
    {"mamba2", R"({"n_groups": 3})", "4 heads and 3 groups"},
    {"mamba2", R"({"head_dim": 15})", "expand says 64"},
    {"mamba2", R"({"conv_kernel": 1000})", "conv_kernel is 1000"},
    {"mamba2", R"({"time_step_limit": [2.0, 1.0]})", "time_step_limit"},
    {"qwen3_next", R"({"linear_num_value_heads": 3})", "2 key heads of 8 and 3 value heads"},
    {"qwen3_next", R"({"linear_num_key_heads": 0})", "linear_num_key_heads is 0"},
    {"qwen3_next", R"({"linear_value_head_dim": 9})", "in_proj_qkvz.weight"},
    {"qwen3_next", R"({"full_attention_interval": 0})", "full_attention_interval is 0"},
    {"lfm2", R"({"conv_L_cache": 4})", "conv.conv.weight"},
    {"lfm2", R"({"block_auto_adjust_ff_dim": true, "block_multiple_of": 0})", "block_multiple_of is 0"},
    {"lfm2", R"({"full_attn_idxs": ["one"]})", "full_attn_idxs"},
    // Nested configs.
    {"llama", R"({"text_config": 3})", "text_config"},
    {"llama", R"({"text_config": {}})", "model_type"},
};

class HostileConfig : public ::testing::TestWithParam<Lie> {};

TEST_P(HostileConfig, IsAnErrorThatNamesTheCause) {
  formats::HfFolder model = folder(GetParam().architecture);
  const json::Value changes = json::parse(GetParam().changes, "test").value();
  for (const auto& change : changes.as_object()) {
    if (change.value() == "-")
      model.config.erase(change.key());
    else
      model.config[change.key()] = change.value();
  }
  const auto parts = load_folder(model);
  ASSERT_FALSE(parts);
  EXPECT_THAT(parts.error().message, HasSubstr(GetParam().message));
  EXPECT_EQ(parts.error().code, GetParam().code) << parts.error().message;
}

INSTANTIATE_TEST_SUITE_P(Lies, HostileConfig, ::testing::ValuesIn(kLies));

// Every key of every config, replaced by values of every kind: loading ends with a model or an error.
TEST(HostileConfigSweep, AnyValueUnderAnyKeyIsHandled) {
  const char* values[] = {"null", "0", "-1", "1", "3", "1e308", "4294967296", "\"text\"", "[]", "[0, 0, 0]", "{}", "true", "false", "0.5"};
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(weir::testing::data_path("arch"))) {
    if (!entry.is_directory()) continue;
    formats::HfFolder model = folder(entry.path().filename().c_str());
    const json::Object original = model.config;
    for (const auto& member : original)
      for (const char* value : values) {
        model.config = original;
        model.config[member.key()] = json::parse(value, "test").value();
        const auto parts = load_folder(model);
        if (parts) continue;
        ++refused;
        EXPECT_FALSE(parts.error().message.empty());
        EXPECT_NE(parts.error().code, ErrorCode::kInternal) << parts.error().message;
      }
  }
  EXPECT_GT(refused, 4000);
}

formats::GgufValue value_of(formats::GgufType type, std::int64_t number) {
  switch (type) {
    case formats::GgufType::kF32:
    case formats::GgufType::kF64: return static_cast<double>(number);
    case formats::GgufType::kBool: return number != 0;
    case formats::GgufType::kI64: return number;
    default: return static_cast<std::uint64_t>(number);
  }
}

// The file with one entry replaced, or without it.
Result<std::string> rewritten(const formats::GgufFile& file, const std::string& key, std::optional<std::int64_t> number,
                              formats::GgufType type) {
  formats::GgufWriter writer;
  for (formats::GgufEntry entry : file.metadata()) {
    if (entry.key.starts_with("tokenizer.")) continue;
    if (entry.key == key) {
      if (!number) continue;
      entry.type = type;
      entry.value = value_of(type, *number);
    }
    WEIR_TRY(writer.add(std::move(entry)));
  }
  for (const formats::NamedTensor& tensor : file.index().tensors()) WEIR_TRY(writer.add(tensor));
  return writer.to_bytes();
}

// The same for the metadata of GGUF files: each key of the architecture left out, and replaced by numbers of several types.
TEST(HostileGguf, AnyValueUnderAnyKeyIsHandled) {
  using formats::GgufType;
  const std::pair<GgufType, std::int64_t> values[] = {{GgufType::kU32, 0},          {GgufType::kU32, 1},  {GgufType::kU32, 3},
                                                      {GgufType::kU32, 4294967295}, {GgufType::kI64, -1}, {GgufType::kF32, 7}};
  int refused = 0;
  for (const char* name :
       {"llama3_rope", "qwen3_next", "mamba2", "lfm2", "deepseek_v3", "bert", "phi3", "gemma3_text", "glm4_moe", "gpt2"}) {
    const auto file = formats::GgufFile::open(weir::testing::data_path(fmt::format("arch/{}/model-f32.gguf", name)));
    ASSERT_TRUE(file) << file.error().message;
    const auto try_it = [&](const std::string& key, std::optional<std::int64_t> number, GgufType type) {
      const auto bytes = rewritten(*file, key, number, type);
      ASSERT_TRUE(bytes) << bytes.error().message;
      const auto changed = formats::GgufFile::parse(std::as_bytes(std::span(*bytes)), name);
      ASSERT_TRUE(changed) << changed.error().message;
      const auto parts = load_gguf(*changed);
      if (parts) return;
      ++refused;
      EXPECT_NE(parts.error().code, ErrorCode::kInternal) << key << ": " << parts.error().message;
    };
    const std::string architecture = file->get_string("general.architecture").value();
    for (const formats::GgufEntry& entry : file->metadata()) {
      if (!entry.key.starts_with(architecture + ".")) continue;
      try_it(entry.key, std::nullopt, GgufType::kU32);
      for (const auto& [type, number] : values) try_it(entry.key, number, type);
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(HostileGguf, AnUnknownArchitectureIsNamed) {
  formats::GgufWriter writer;
  formats::GgufEntry entry;
  entry.key = "general.architecture";
  entry.type = formats::GgufType::kString;
  entry.value = std::string("rwkv7");
  ASSERT_TRUE(writer.add(std::move(entry)));
  const std::string bytes = writer.to_bytes().value();
  const auto file = formats::GgufFile::parse(std::as_bytes(std::span(bytes)), "test");
  ASSERT_TRUE(file) << file.error().message;
  const auto parts = load_gguf(*file);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, kUnsupported);
  EXPECT_THAT(parts.error().message, ::testing::AllOf(HasSubstr("rwkv7"), HasSubstr("llama"), HasSubstr("qwen3moe")));
}

TEST(HostileFolder, ATensorThatIsMissingIsNamed) {
  const formats::HfFolder whole = folder("llama");
  for (const formats::NamedTensor& gone : whole.index.tensors()) {
    formats::HfFolder part = whole;
    part.index = {};
    for (const formats::NamedTensor& tensor : whole.index.tensors()) {
      if (tensor.name == gone.name) continue;
      ASSERT_TRUE(part.index.add(tensor));
    }
    const auto parts = load_folder(part);
    ASSERT_FALSE(parts) << gone.name;
    EXPECT_EQ(parts.error().message, fmt::format("tensor {}: missing", gone.name));
  }
}

TEST(HostileFolder, ATensorOfAnotherTypeIsNamed) {
  const formats::HfFolder whole = folder("llama");
  for (const formats::NamedTensor& changed : whole.index.tensors()) {
    formats::HfFolder other = whole;
    other.index = {};
    for (formats::NamedTensor tensor : whole.index.tensors()) {
      if (tensor.name == changed.name) tensor.view.type = DType::kI16;  // as wide as BF16
      ASSERT_TRUE(other.index.add(tensor));
    }
    const auto parts = load_folder(other);
    ASSERT_FALSE(parts) << changed.name;
    EXPECT_EQ(parts.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(parts.error().message, ::testing::AllOf(HasSubstr(changed.name), HasSubstr("I16")));
  }
}

}  // namespace
}  // namespace weir::model
