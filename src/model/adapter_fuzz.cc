// SPDX-License-Identifier: Apache-2.0
// Any bytes as an adapter for a small model: a GGUF file, an adapter_config.json, or a safetensors file beside a good config. They are
// refused with a reason, or what comes out belongs to the model.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/safetensors.h"
#include "kernels/cpu_backend.h"
#include "model/adapter.h"
#include "model/adapter_file.h"
#include "model/load.h"
#include "model/model.h"

namespace {

using namespace weir;

constexpr std::uint32_t kHidden = 8, kInner = 12, kVocabulary = 10;

struct SmallModel {
  std::string bytes;
  std::unique_ptr<model::Model> model;
};

// One layer of the llama class.
SmallModel make_model() {
  formats::GgufWriter writer;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    static const std::vector<float> zeros(kHidden * kInner + kHidden * kVocabulary);
    std::int64_t count = 1;
    for (const std::int64_t d : shape) count *= d;
    const auto values = std::as_bytes(std::span(zeros).first(static_cast<std::size_t>(count)));
    WEIR_CHECK(writer.add(formats::NamedTensor{name, {DType::kF32, std::move(shape), values}, 0}).has_value());
  };
  for (auto entry : {formats::gguf_string("general.architecture", "llama"), formats::gguf_u32("llama.block_count", 1),
                     formats::gguf_u32("llama.embedding_length", kHidden), formats::gguf_u32("llama.feed_forward_length", kInner),
                     formats::gguf_u32("llama.context_length", 32), formats::gguf_u32("llama.attention.head_count", 2),
                     formats::gguf_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)})
    WEIR_CHECK(writer.add(std::move(entry)).has_value());
  add("token_embd.weight", {kVocabulary, kHidden});
  for (const char* norm : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) add(norm, {kHidden});
  for (const char* square : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight"})
    add(square, {kHidden, kHidden});
  for (const char* up : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}) add(up, {kInner, kHidden});
  add("blk.0.ffn_down.weight", {kHidden, kInner});

  SmallModel out;
  out.bytes = writer.to_bytes().value();
  const auto file = formats::GgufFile::parse(std::as_bytes(std::span(out.bytes)), "small");
  auto parts = model::load_gguf(*file);
  WEIR_CHECK(parts.has_value(), "{}", parts.error().message);
  auto backend = kernels::make_cpu_backend({.threads = 1});
  out.model = std::make_unique<model::Model>(std::move(parts->traits), std::move(parts->weights), std::move(*backend));
  return out;
}

template <class T>
void check_refusal(const Result<T>& result) {
  if (!result) WEIR_CHECK(!result.error().message.empty() && result.error().code != ErrorCode::kInternal, "{}", result.error().message);
}

const json::Value& good_config() {
  static const json::Value config = json::parse(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})", "config").value();
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SmallModel small = make_model();
  log::set_level(log::Level::kOff);
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("GGUF")) {
    const auto file = formats::GgufFile::parse(bytes, "fuzz");
    if (!file) return 0;
    const auto adapter = model::load_adapter(*file, *small.model);
    check_refusal(adapter);
    WEIR_CHECK(!adapter || (*adapter)->made_for(*small.model));
    return 0;
  }
  const auto config = json::parse(text, "config", {.max_bytes = 1 << 20, .max_depth = 32});
  if (config && config->is_object()) {
    check_refusal(model::read_peft_adapter(config->get_object(), {}));
  } else if (const auto file = formats::SafetensorsFile::parse(bytes, "fuzz"); file) {
    check_refusal(model::read_peft_adapter(good_config().get_object(), file->index()));
  }
  return 0;
}
