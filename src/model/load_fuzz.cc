// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model: a GGUF file with its tensors, or a config.json whose folder has no weights, which ends at the first
// tensor but after all the numbers were looked at. They are refused, or what comes out can be described.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "formats/gguf_reader.h"
#include "formats/hf_folder.h"
#include "model/describe.h"
#include "model/load.h"

namespace {

using namespace weir;

void look_at(const Result<model::ModelParts>& parts) {
  if (!parts) {
    WEIR_CHECK(!parts.error().message.empty() && parts.error().code != ErrorCode::kInternal, "{}", parts.error().message);
    return;
  }
  WEIR_CHECK(parts->weights.layers.size() == parts->traits.layers.size());
  WEIR_CHECK(!model::describe(parts->traits).empty());
}

void load_config(std::string_view text) {
  auto config = json::parse(text, "config.json", {.max_bytes = 1 << 20, .max_depth = 32, .allow_non_finite = true});
  if (!config || !config->is_object()) return;
  formats::HfFolder folder;
  folder.config = std::move(config->get_object());
  const auto parts = model::load_folder(folder);
  WEIR_CHECK(!parts, "a model without weights");
  look_at(parts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  log::set_level(log::Level::kOff);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with("GGUF")) {
    load_config(text);
    return 0;
  }
  const auto file = formats::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (file) look_at(model::load_gguf(*file));
  return 0;
}
