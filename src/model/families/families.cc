// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"

#include <algorithm>
#include <set>

namespace weir::model {
namespace {

constexpr const char* kGemma3Defaults = R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_size": 2304,
  "intermediate_size": 9216, "num_hidden_layers": 26, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
  "query_pre_attn_scalar": 256, "sliding_window": 4096})";

constexpr Family kFamilies[] = {
    {"llama", "llama", plan_llama},
    {"mistral", nullptr, plan_mistral, R"({"sliding_window": 4096, "num_key_value_heads": 8})"},
    {"mixtral", nullptr, plan_mixtral},
    {"smollm3", "smollm3", plan_smollm3},
    {"granite", "granite", plan_granite},
    {"granitemoe", "granitemoe", plan_granite_moe},
    {"granitemoeshared", nullptr, plan_granite_moe},
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
