// SPDX-License-Identifier: Apache-2.0
#include "model/rope_config.h"

#include <cmath>

#include "formats/gguf_reader.h"
#include "model/tensor_source.h"

namespace weir::model {
namespace {

constexpr double kTiny = 1e-9, kHuge = 1e12;

const json::Object* member_object(const json::Object* parent, const char* key) {
  const json::Value* value = parent ? json::find(*parent, key) : nullptr;
  return value ? value->if_object() : nullptr;
}

// The object that holds the scaling: rope_scaling, else rope_parameters or its part for the layer type.
const json::Object* scaling_object(const Config& config, const char* layer_type) {
  const json::Object* scaling = config.object("rope_scaling");
  if (scaling && !scaling->empty()) return scaling;
  const json::Object* parameters = config.object("rope_parameters");
  const json::Object* part = layer_type ? member_object(parameters, layer_type) : nullptr;
  return part ? part : parameters;
}

std::int32_t rotated(Config& config, std::int32_t head_dim, double share) {
  if (!(share > 0 && share <= 1)) config.fail(ErrorCode::kCorrupt, "partial rotary factor {}, expected above 0 and up to 1", share);
  return static_cast<std::int32_t>(head_dim * share);
}

void read_yarn(Config& scaling, RopeSpec& spec, std::int32_t context) {
  spec.scaling = RopeScaling::kYarn;
  if (!scaling.has({"factor"})) spec.factor = static_cast<double>(context) / spec.original_context;
  // transformers takes 0 for "not given"
  if (const double fast = scaling.real_or({"beta_fast"}, 0, 0, kHuge); fast > 0) spec.beta_fast = fast;
  if (const double slow = scaling.real_or({"beta_slow"}, 0, 0, kHuge); slow > 0) spec.beta_slow = slow;
  spec.mscale = scaling.real_or({"mscale"}, 0);
  spec.mscale_all_dim = scaling.real_or({"mscale_all_dim"}, 0);
  spec.truncate = scaling.flag_or({"truncate"}, true);
}

void read_long(Config& config, Config& scaling, RopeSpec& spec, std::int32_t context) {
  spec.scaling = RopeScaling::kLong;
  if (!scaling.has({"factor"})) spec.factor = static_cast<double>(context) / std::max(spec.original_context, 1);
  spec.short_factors = scaling.reals({"short_factor"});
  spec.long_factors = scaling.reals({"long_factor"});
  if (scaling.has({"short_mscale"}) || scaling.has({"long_mscale"}))
    config.fail(ErrorCode::kUnsupported, "rope_scaling.short_mscale and long_mscale are not supported");
}

void read_scaling(Config& config, Config& scaling, RopeSpec& spec, std::int32_t context) {
  const std::string type = scaling.text_or({"rope_type|type"}, "default");
  spec.factor = scaling.real_or({"factor"}, 1, kTiny, kHuge);
  spec.original_context = scaling.size_or({"original_max_position_embeddings"}, context, 1);
  if (config.has({"original_max_position_embeddings"}))  // Phi-3 keeps it outside, and there it counts
    spec.original_context = config.size_or({"original_max_position_embeddings"}, context, 1);
  if (scaling.has({"attention_factor"})) spec.attention_factor = scaling.real_or({"attention_factor"}, 1, kTiny, kHuge);

  if (type == "default" || type == "mrope") return;  // mrope: for text alone all sections hold the same position
  if (type == "linear") {
    spec.scaling = RopeScaling::kLinear;
  } else if (type == "dynamic") {  // the base grows with the length of a sequence, but only beyond the trained context
    spec.only_up_to = context;
  } else if (type == "llama3") {
    spec.scaling = RopeScaling::kLlama3;
    spec.low_freq_factor = scaling.real_or({"low_freq_factor"}, 1, kTiny, kHuge);
    spec.high_freq_factor = scaling.real_or({"high_freq_factor"}, 4, kTiny, kHuge);
  } else if (type == "yarn") {
    read_yarn(scaling, spec, context);
  } else if (type == "longrope" || type == "su") {
    read_long(config, scaling, spec, context);
  } else {
    config.fail(ErrorCode::kUnsupported,
                "rope scaling of type \"{}\" is not supported (known: default, linear, dynamic, llama3, yarn, longrope)", type);
  }
}

RopeSpec read_hf(Config& config, std::int32_t head_dim, std::int32_t context, const RopeDefaults& defaults) {
  RopeSpec spec;
  spec.theta = config.real_or({"rope_theta|rotary_emb_base"}, defaults.theta, kTiny, kHuge);
  double share = config.real_or({"partial_rotary_factor|rotary_pct|rope_pct"}, defaults.partial);
  if (const json::Object* object = scaling_object(config, defaults.layer_type)) {
    Config scaling(*object);
    spec.theta = scaling.real_or({"rope_theta"}, spec.theta, kTiny, kHuge);
    share = scaling.real_or({"partial_rotary_factor"}, share);
    read_scaling(config, scaling, spec, context);
    config.keep(scaling.status());
  }
  spec.rotary_dim = rotated(config, head_dim, share);
  return spec;
}

// Frequency divisors from a tensor of the file, empty when it has none.
std::vector<double> factor_tensor(Config& config, const char* name) {
  const formats::NamedTensor* tensor = config.gguf_file()->tensor(name);
  if (!tensor) return {};
  Result<Vector> values = to_floats(tensor->view, name);
  if (!values) {
    config.keep(std::move(values).error());
    return {};
  }
  return {values->begin(), values->end()};
}

void read_gguf_yarn(Config& config, RopeSpec& spec) {
  spec.scaling = RopeScaling::kYarn;
  spec.beta_fast = config.real_or({nullptr, "rope.scaling.yarn_beta_fast"}, 32, kTiny, kHuge);
  spec.beta_slow = config.real_or({nullptr, "rope.scaling.yarn_beta_slow"}, 1, kTiny, kHuge);
  if (config.has({nullptr, "rope.scaling.yarn_attn_factor"})) {
    spec.attention_factor = config.real_or({nullptr, "rope.scaling.yarn_attn_factor"}, 1, kTiny, kHuge);
  } else if (config.has({nullptr, "rope.scaling.attn_factor"})) {
    spec.attention_factor = config.real_or({nullptr, "rope.scaling.attn_factor"}, 1, kTiny, kHuge) * yarn_magnitude(spec.factor, 1);
  }
}

RopeSpec read_gguf(Config& config, std::int32_t head_dim, std::int32_t context, const RopeDefaults& defaults) {
  RopeSpec spec;
  spec.theta = config.real_or({nullptr, "rope.freq_base"}, defaults.theta, kTiny, kHuge);
  spec.rotary_dim = config.size_or({nullptr, "rope.dimension_count"}, rotated(config, head_dim, defaults.partial), 1);
  const std::string type = config.text_or({nullptr, "rope.scaling.type"}, "none");
  spec.factor = config.real_or({nullptr, "rope.scaling.factor|rope.scale_linear"}, 1, 0, kHuge);
  if (spec.factor == 0) spec.factor = 1;
  spec.original_context = config.size_or({nullptr, "rope.scaling.original_context_length"}, context, 1);
  spec.divisors = factor_tensor(config, "rope_freqs.weight");
  spec.short_factors = factor_tensor(config, "rope_factors_short.weight");
  spec.long_factors = factor_tensor(config, "rope_factors_long.weight");
  if (!spec.short_factors.empty() || !spec.long_factors.empty()) {  // converters leave the type out
    spec.scaling = RopeScaling::kLong;
    spec.attention_factor = config.real_or({nullptr, "rope.scaling.attn_factor"}, 1, kTiny, kHuge);
  } else if (type == "yarn") {
    read_gguf_yarn(config, spec);
  } else if (type == "linear" || (type == "none" && config.has({nullptr, "rope.scale_linear"}))) {
    spec.scaling = RopeScaling::kLinear;
  } else if (type != "none") {
    config.fail(ErrorCode::kUnsupported, "rope scaling of type \"{}\" is not supported (known: none, linear, yarn, and factor tensors)",
                type);
  }
  return spec;
}

}  // namespace

RopeSpec read_rope(Config& config, std::int32_t head_dim, std::int32_t context, const RopeDefaults& defaults) {
  return config.gguf() ? read_gguf(config, head_dim, context, defaults) : read_hf(config, head_dim, context, defaults);
}

std::int32_t add_rope(Config& config, Traits& traits, const RopeSpec& spec) {
  Result<RopeTraits> rope = resolve_rope(spec);
  if (!rope) {
    config.keep(std::move(rope).error());
    return -1;
  }
  if (spec.only_up_to > 0) traits.max_positions = spec.only_up_to;
  traits.ropes.push_back(std::move(*rope));
  return static_cast<std::int32_t>(traits.ropes.size()) - 1;
}

}  // namespace weir::model
