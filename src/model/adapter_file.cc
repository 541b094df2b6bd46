// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_file.h"

#include <cmath>
#include <string_view>
#include <unordered_map>

#include "base/file_io.h"
#include "formats/gguf_reader.h"
#include "formats/safetensors.h"
#include "model/peft_config.h"

namespace weir::model {
namespace {

// Ends of the names of A and B.
struct Ends {
  std::string_view a, b;
  bool embedding;
};

constexpr Ends kPeftEnds[] = {{".lora_A.weight", ".lora_B.weight", false}, {".lora_embedding_A", ".lora_embedding_B", true}};
constexpr Ends kGgufEnds[] = {{".weight.lora_a", ".weight.lora_b", false}};

// Pairs of A and B, in the order in which the file has them; all tensors must belong to one.
Result<std::vector<AdapterTensors>> pairs(const formats::TensorIndex& index, std::span<const Ends> known, std::string_view prefix) {
  std::vector<AdapterTensors> out;
  std::unordered_map<std::string, std::size_t> by_module;
  for (const formats::NamedTensor& tensor : index.tensors()) {
    const std::string_view name = tensor.name;
    const Ends* ends = nullptr;
    bool is_a = false;
    for (const Ends& e : known)
      if (name.ends_with(e.a) || name.ends_with(e.b)) ends = &e, is_a = name.ends_with(e.a);
    if (!ends)
      return fail(ErrorCode::kUnsupported, "tensor {}: not the A or B of a LoRA adapter; it would be left out of the result", name);
    std::string_view module = name.substr(0, name.size() - (is_a ? ends->a : ends->b).size());
    if (module.starts_with(prefix)) module.remove_prefix(prefix.size());
    const auto [at, fresh] = by_module.try_emplace(std::string(module), out.size());
    if (fresh) out.push_back({.module = std::string(module), .embedding = ends->embedding});
    AdapterTensors& pair = out[at->second];
    std::string& own_name = is_a ? pair.a_name : pair.b_name;
    if (!own_name.empty() || pair.embedding != ends->embedding)
      return fail(ErrorCode::kCorrupt, "tensor {}: one more for {}", name, module);
    own_name = tensor.name;
    (is_a ? pair.a : pair.b) = tensor.view;
  }
  for (const AdapterTensors& pair : out)
    if (pair.a_name.empty() || pair.b_name.empty())
      return fail(ErrorCode::kCorrupt, "tensor {}: its other half is missing", pair.a_name.empty() ? pair.b_name : pair.a_name);
  if (out.empty()) return fail(ErrorCode::kCorrupt, "no tensors");
  return out;
}

}  // namespace

Result<AdapterFile> read_peft_adapter(const json::Object& config, const formats::TensorIndex& index) {
  auto read = PeftConfig::read(config);
  if (!read) return std::unexpected(std::move(read).error().with_context("adapter_config.json"));
  AdapterFile out;
  out.files = index.files();
  WEIR_ASSIGN(out.tensors, pairs(index, kPeftEnds, "base_model.model."));
  for (AdapterTensors& pair : out.tensors) {
    pair.scale = read->scale(pair.module);
    const std::int64_t rank = read->rank(pair.module);
    if (pair.b.cols() != rank)
      return fail(ErrorCode::kCorrupt, "tensor {}: shape {}, but adapter_config.json says rank {}", pair.b_name, shape_string(pair.b.shape),
                  rank);
  }
  return out;
}

Result<AdapterFile> read_peft_adapter(const std::filesystem::path& folder) {
  const auto file = folder / "adapter_config.json", weights = folder / "adapter_model.safetensors";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return fail(ErrorCode::kNotFound, "{}: missing; expected an adapter as PEFT saves it, or a GGUF file", file.string());
  if (!std::filesystem::exists(weights, ignored))
    return fail(ErrorCode::kNotFound, "{}: missing; adapters are read from safetensors, not from pickled .bin files", weights.string());
  WEIR_ASSIGN(const std::string text, read_file(file, 1 << 20));
  WEIR_ASSIGN(const json::Value value, json::parse(text, file.string()));
  WEIR_ASSIGN(const json::Object* config, json::as_object(value, file.string()));
  WEIR_ASSIGN(const formats::SafetensorsFile tensors, formats::SafetensorsFile::open(weights));
  return read_peft_adapter(*config, tensors.index());
}

Result<AdapterFile> read_gguf_adapter(const formats::GgufFile& file, const char* architecture) {
  WEIR_ASSIGN(const std::string type, file.get_string_or("general.type", "model"));
  if (type != "adapter") return fail(ErrorCode::kInvalidArgument, "general.type is \"{}\": this GGUF file is no adapter", type);
  WEIR_ASSIGN(const std::string kind, file.get_string("adapter.type"));
  if (kind != "lora") return fail(ErrorCode::kUnsupported, "adapter.type \"{}\": only lora is supported", kind);
  WEIR_ASSIGN(const std::string made_for, file.get_string("general.architecture"));
  if (architecture && made_for != architecture)
    return fail(ErrorCode::kInvalidArgument, "the adapter is for models of architecture \"{}\", this one is \"{}\"", made_for,
                architecture);
  if (file.has("adapter.alora.invocation_tokens"))
    return fail(ErrorCode::kUnsupported, "adapter.alora.invocation_tokens: adapters that begin within a prompt are not supported");
  WEIR_ASSIGN(const double alpha, file.get_double_or("adapter.lora.alpha", 0));
  if (!std::isfinite(alpha)) return fail(ErrorCode::kCorrupt, "adapter.lora.alpha is {}", alpha);
  AdapterFile out;
  out.gguf = true;
  out.files = file.index().files();
  WEIR_ASSIGN(out.tensors, pairs(file.index(), kGgufEnds, ""));
  for (AdapterTensors& pair : out.tensors) {
    pair.embedding = pair.module == "token_embd";
    if (alpha != 0) pair.scale = alpha / static_cast<double>(std::max<std::int64_t>(1, pair.b.cols()));
  }
  return out;
}

}  // namespace weir::model
