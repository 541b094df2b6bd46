// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"

#include <algorithm>
#include <set>

namespace weir::model {
namespace {

constexpr const char* kGemma3Defaults = R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_size": 2304,
  "intermediate_size": 9216, "num_hidden_layers": 26, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
  "query_pre_attn_scalar": 256, "sliding_window": 4096})";

constexpr const char* kGemma2Defaults = R"({"head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096,
  "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0})";

constexpr const char* kNextDefaults = R"({"head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
  "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "moe_intermediate_size": 512,
  "shared_expert_intermediate_size": 512})";

constexpr const char* kDeepseek3Defaults = R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 8, "topk_group": 4, "norm_topk_prob": true, "n_shared_experts": 1,
  "routed_scaling_factor": 2.5, "first_k_dense_replace": 3, "moe_intermediate_size": 2048})";

constexpr const char* kGptOssDefaults = R"({"head_dim": 64, "num_key_value_heads": 8, "rope_parameters": {"rope_type": "yarn",
  "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096}})";

constexpr const char* kMamba2Defaults = R"({"conv_kernel": 4, "n_groups": 8, "state_size": 128, "num_heads": 128, "head_dim": 64,
  "expand": 2})";

constexpr Family kFamilies[] = {
    {"llama", "llama", plan_llama},
    {"mistral", nullptr, plan_mistral, R"({"sliding_window": 4096, "num_key_value_heads": 8})"},
    {"mixtral", nullptr, plan_mixtral},
    {"smollm3", "smollm3", plan_smollm3},
    {"granite", "granite", plan_granite},
    {"granitemoe", "granitemoe", plan_granite_moe},
    {"granitemoeshared", nullptr, plan_granite_moe},
    {"qwen2", "qwen2", plan_qwen2},
    {"qwen3", "qwen3", plan_qwen3, R"({"head_dim": 128})"},
    {"qwen2_moe", "qwen2moe", plan_qwen2_moe, R"({"shared_expert_intermediate_size": 5632, "moe_intermediate_size": 1408})"},
    {"qwen3_moe", "qwen3moe", plan_qwen3_moe, R"({"moe_intermediate_size": 768})"},
    {"qwen3_next", "qwen3next", plan_qwen3_next, kNextDefaults},
    {"qwen3_5_text", "qwen35", plan_qwen3_5, kNextDefaults},
    {"qwen3_5_moe_text", "qwen35moe", plan_qwen3_5, kNextDefaults},
    {"gemma", "gemma", plan_gemma, R"({"head_dim": 256})"},
    {"gemma2", "gemma2", plan_gemma2, kGemma2Defaults},
    {"gemma3_text", "gemma3", plan_gemma3, kGemma3Defaults},
    {"phi", "phi2", plan_phi},
    {"phi3", "phi3", plan_phi3},
    {"olmo2", "olmo2", plan_olmo2},
    {"olmo3", nullptr, plan_olmo2, R"({"sliding_window": 4096})"},
    {"olmoe", "olmoe", plan_olmoe},
    {"gpt_oss", "gpt-oss", plan_gpt_oss, kGptOssDefaults},
    {"deepseek_v2", "deepseek2", plan_deepseek,
     R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {"deepseek_v3", nullptr, plan_deepseek, kDeepseek3Defaults},
    {"kimi_k2", nullptr, plan_deepseek, kDeepseek3Defaults},
    {"gpt2", "gpt2", plan_gpt2, R"({"n_positions": 1024})"},
    {"gpt_neox", "gptneox", plan_gpt_neox},
    {"starcoder2", "starcoder2", plan_starcoder2, R"({"num_key_value_heads": 2})"},
    {"stablelm", "stablelm", plan_stablelm},
    {"nemotron", "nemotron", plan_nemotron},
    {"falcon", "falcon", plan_falcon, R"({"max_position_embeddings": 2048})"},
    {"bert", "bert", plan_bert},
    {"roberta", nullptr, plan_roberta},
    {"xlm-roberta", nullptr, plan_roberta},
    {"camembert", nullptr, plan_roberta},
    {"distilbert", nullptr, plan_distilbert},
    {"modernbert", "modern-bert", plan_modernbert},
    {"nomic_bert", "nomic-bert", plan_nomic_bert},
    {"new", nullptr, plan_gte},
    {"cohere", "command-r", plan_cohere},
    {"cohere2", "cohere2", plan_cohere2, R"({"sliding_window": 4096})"},
    {"glm", nullptr, plan_glm, R"({"head_dim": 128})"},
    {"glm4", "glm4", plan_glm4, R"({"head_dim": 128})"},
    {"glm4_moe", "glm4moe", plan_glm4_moe, R"({"n_shared_experts": 1, "moe_intermediate_size": 1408})"},
    {"mamba2", "mamba2", plan_mamba2, kMamba2Defaults},
    {"lfm2", "lfm2", plan_lfm2},
    {"lfm2_moe", "lfm2moe", plan_lfm2_moe, R"({"moe_intermediate_size": 1792})"},
    // The language models of multimodal ones: for text alone the sections of their rope hold the same position.
    {"qwen2_vl", "qwen2vl", plan_qwen2},
    {"qwen2_vl_text", nullptr, plan_qwen2},
    {"qwen2_5_vl", nullptr, plan_qwen2},
    {"qwen2_5_vl_text", nullptr, plan_qwen2},
    {"qwen3_vl_text", "qwen3vl", plan_qwen3, R"({"head_dim": 128})"},
    {"qwen3_vl_moe_text", "qwen3vlmoe", plan_qwen3_moe, R"({"moe_intermediate_size": 768, "norm_topk_prob": true})"},
};

template <const char* Family::* Member>
const Family* find(std::string_view name) {
  const auto* found = std::ranges::find_if(kFamilies, [&](const Family& f) { return f.*Member && name == f.*Member; });
  return found == std::end(kFamilies) ? nullptr : found;
}

template <const char* Family::* Member>
std::string names() {
  std::set<std::string_view> sorted;
  for (const Family& f : kFamilies)
    if (f.*Member) sorted.insert(f.*Member);
  std::string text;
  for (const std::string_view name : sorted) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace

std::span<const Family> families() { return kFamilies; }
const Family* find_family_by_type(std::string_view model_type) { return find<&Family::type>(model_type); }
const Family* find_family_by_architecture(std::string_view architecture) { return find<&Family::architecture>(architecture); }
std::string known_types() { return names<&Family::type>(); }
std::string known_architectures() { return names<&Family::architecture>(); }

}  // namespace weir::model
