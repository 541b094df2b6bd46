// SPDX-License-Identifier: Apache-2.0
#include "model/load.h"

#include "base/file_io.h"
#include "formats/gguf_reader.h"
#include "formats/hf_folder.h"
#include "formats/sentence_transformers.h"
#include "model/check_traits.h"
#include "model/families/families.h"
#include "model/model.h"
#include "model/weights_loader.h"

namespace weir::model {
namespace {

// GGUF keys that change the result whatever the family, for those who honour them nowhere.
void check_gguf_keys(Plan& plan) {
  Config& c = plan.config;
  if (!c.gguf()) return;
  if (!plan.traits.encoder)
    c.expect_flag({nullptr, "attention.causal"}, true, "a decoder that attends in both directions is not supported");
  for (const char* key : {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.temperature_scale", "attention.temperature_length"})
    if (c.real_or({nullptr, key}, 0) != 0) c.fail(ErrorCode::kUnsupported, "{} is not supported in this family", key);
}

// How vectors are made of the rows, where a GGUF file says it. 4, "rank", stands for a classification head.
void read_gguf_pooling(Plan& plan) {
  constexpr Pooling kByNumber[] = {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kNone};
  if (plan.config.gguf()) plan.traits.pooling = kByNumber[plan.config.size_or({nullptr, "pooling_type"}, 0, 0, 4)];
}

Result<ModelParts> carry_out(const Family& family, const char* name, Config& config, const formats::TensorIndex& index) {
  TensorSource tensors(index);
  Plan plan(config, tensors);
  plan.traits.family = name;
  family.fill(plan);
  find_classifier(plan);
  read_gguf_pooling(plan);
  check_gguf_keys(plan);
  WEIR_TRY(config.status());
  WEIR_TRY(check_traits(plan));
  ModelParts parts;
  WEIR_TRY(load_weights(plan, parts.weights));
  parts.traits = std::move(plan.traits);
  return parts;
}

// Weights in a quantised format of their own: only MXFP4, as gpt-oss has it, is read.
Status check_quantization(const json::Object& config) {
  const json::Value* value = json::find(config, "quantization_config");
  if (!value) return {};
  WEIR_ASSIGN(const json::Object* object, json::as_object(*value, "quantization_config"));
  WEIR_ASSIGN(const std::string method, json::get_string_or(*object, "quant_method", "unnamed"));
  if (method == "mxfp4") return {};
  return fail(
      ErrorCode::kUnsupported,
      "quantization_config: weights quantised with \"{}\" are not supported; use the original weights (F32, F16, BF16) or a GGUF file",
      method);
}

// Multimodal models keep their language model's config in a nested object; a few members beside it count where it is silent.
Result<json::Object> text_config(const json::Object& config) {
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    const json::Value* nested = json::find(config, name);
    if (!nested) continue;
    WEIR_ASSIGN(const json::Object* text, json::as_object(*nested, name));
    json::Object merged = *text;
    for (const char* key : {"tie_word_embeddings", "quantization_config"})
      if (!merged.contains(key) && config.contains(key)) merged[key] = config.at(key);
    return merged;
  }
  return config;
}

// What sentence-transformers puts beside a model: how to pool, and whether to normalise. Whoever makes vectors reads the rest of
// it; a file that this program cannot follow is no reason to refuse a model that may be wanted for something else.
Status read_pooling(const std::filesystem::path& folder, Traits& traits) {
  WEIR_ASSIGN(const auto sentence, formats::SentenceTransformers::read(folder));
  if (!sentence) return {};
  traits.normalize_pooled = sentence->has("Normalize");
  if (sentence->pooling_modes.size() != 1) return {};
  if (const auto pooling = pooling_by_name(sentence->pooling_modes.front())) traits.pooling = *pooling;
  return {};
}

}  // namespace

Result<ModelParts> load_gguf(const formats::GgufFile& file) {
  WEIR_ASSIGN(const std::string architecture, file.get_string("general.architecture"));
  const Family* family = find_family_by_architecture(architecture);
  if (!family)
    return fail(ErrorCode::kUnsupported, "general.architecture \"{}\" is not supported; known: {}", architecture, known_architectures());
  Config config(file, architecture);
  return carry_out(*family, family->architecture, config, file.index());
}

Result<ModelParts> load_folder(const formats::HfFolder& folder, Deferral deferral) {
  WEIR_ASSIGN(json::Object values, text_config(folder.config));
  WEIR_TRY(check_quantization(values));
  WEIR_ASSIGN(const std::string type, json::get_string(values, "model_type"));
  const Family* family = find_family_by_type(type);
  if (!family) return fail(ErrorCode::kUnsupported, "config.json: model_type \"{}\" is not supported; known: {}", type, known_types());
  WEIR_ASSIGN(const json::Value defaults, json::parse(family->defaults, "built-in defaults"));
  Config config(std::move(values), defaults.get_object());
  WEIR_ASSIGN(ModelParts parts, carry_out(*family, family->type, config, folder.index));
  WEIR_TRY(read_pooling(folder.path, parts.traits));
  if (deferral == Deferral::kNone) make_deferred(parts.weights);
  return parts;
}

Result<ModelParts> load_parts(const std::filesystem::path& path) {
  const std::string where = path.string();
  if (formats::HfFolder::looks_like(path)) {
    WEIR_ASSIGN(const formats::HfFolder folder, formats::HfFolder::open(path));
    auto parts = load_folder(folder);
    if (!parts) return std::unexpected(std::move(parts).error().with_context(where));
    return parts;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return fail(ErrorCode::kNotFound, "{}: a folder without config.json; expected a Hugging Face folder or a GGUF file", where);
  WEIR_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
  auto parts = load_gguf(file);
  if (!parts) return std::unexpected(std::move(parts).error().with_context(where));
  return parts;
}

Result<std::unique_ptr<Model>> Model::load(const std::filesystem::path& path, std::shared_ptr<kernels::Backend> backend) {
  WEIR_ASSIGN(ModelParts parts, load_parts(path));
  return std::make_unique<Model>(std::move(parts.traits), std::move(parts.weights), std::move(backend));
}

}  // namespace weir::model
