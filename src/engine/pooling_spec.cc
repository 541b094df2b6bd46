// SPDX-License-Identifier: Apache-2.0
// Where a PoolingSpec comes from.
#include <algorithm>

#include "base/file_io.h"
#include "engine/pooling.h"
#include "formats/safetensors.h"
#include "formats/sentence_transformers.h"
#include "model/tensor_source.h"

namespace weir::engine {
namespace {

using formats::SentenceModule;
using formats::SentenceTransformers;

constexpr std::int64_t kMaxDimensions = 1 << 20;

Result<json::Object> read_object(const std::filesystem::path& path) {
  WEIR_ASSIGN(const std::string text, read_file(path, 64u << 20));
  WEIR_ASSIGN(const json::Value value, json::parse(text, path.string(), {.allow_non_finite = true}));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, path.string()));
  return *object;
}

Result<DenseStep> read_dense(const std::filesystem::path& folder, std::int64_t in) {
  WEIR_ASSIGN(const json::Object config, read_object(folder / "config.json"));
  DenseStep step;
  WEIR_ASSIGN(step.in, json::get_int(config, "in_features"));
  WEIR_ASSIGN(step.out, json::get_int(config, "out_features"));
  WEIR_ASSIGN(const bool bias, json::get_bool_or(config, "bias", true));
  WEIR_ASSIGN(const std::string activation, json::get_string_or(config, "activation_function", "torch.nn.modules.activation.Tanh"));
  step.tanh = activation.ends_with(".Tanh");
  if (!step.tanh && !activation.ends_with(".Identity"))
    return fail(ErrorCode::kUnsupported, "{}: the activation_function {} is not supported", folder.string(), activation);
  if (step.in != in || step.out < 1 || step.out > kMaxDimensions)
    return fail(ErrorCode::kCorrupt, "{}: {} features in and {} out, after vectors of {}", folder.string(), step.in, step.out, in);
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "model.safetensors", ignored))
    return fail(ErrorCode::kUnsupported, "{}: there is no model.safetensors", folder.string());
  WEIR_ASSIGN(const formats::SafetensorsFile file, formats::SafetensorsFile::open(folder / "model.safetensors"));
  model::TensorSource tensors(file.index());
  WEIR_ASSIGN(const TensorView weight, tensors.raw("linear.weight", {step.out, step.in}));
  WEIR_ASSIGN(step.weight, model::to_floats(weight, "linear.weight"));
  if (bias) {
    WEIR_ASSIGN(step.bias, tensors.vector("linear.bias", step.out));
  }
  return step;
}

// Transformer, Pooling, any number of Dense, perhaps Normalize: nothing else, and in this order.
Status read_modules(const SentenceTransformers& files, PoolingSpec& spec) {
  if (files.modules.empty()) return {};  // 1_Pooling alone
  int stage = 0;
  for (const SentenceModule& module : files.modules) {
    const int place = module.type == "Transformer" ? 1
                      : module.type == "Pooling"   ? 2
                      : module.type == "Dense"     ? 3
                      : module.type == "Normalize" ? 4
                                                   : 0;
    if (place == 0) return fail(ErrorCode::kUnsupported, "modules.json: a module {} is not supported", module.type);
    if (place < stage || (place == stage && place < 3))
      return fail(ErrorCode::kUnsupported, "modules.json: {} at this place is not supported", module.type);
    stage = place;
    if (place != 3) continue;
    WEIR_ASSIGN(DenseStep step, read_dense(module.folder, spec.size));
    spec.size = step.out;
    spec.dense.push_back(std::move(step));
  }
  return {};
}

Status read_files(const SentenceTransformers& files, PoolingSpec& spec) {
  if (files.pooling_modes.size() != 1)
    return fail(ErrorCode::kUnsupported, "the pooling of this model joins {} vectors; one is supported", files.pooling_modes.size());
  const auto mode = model::pooling_by_name(files.pooling_modes.front());
  if (!mode) return fail(ErrorCode::kUnsupported, "pooling \"{}\" is not supported", files.pooling_modes.front());
  spec.mode = *mode;
  spec.source = "1_Pooling/config.json";
  if (!files.modules.empty()) spec.normalize = files.has("Normalize");
  spec.include_prompt = files.include_prompt;
  spec.max_tokens = files.max_tokens.value_or(0);
  spec.prompts = files.prompts;
  spec.default_prompt = files.default_prompt;
  spec.dimensions = files.dimensions;
  spec.cut_dimension = files.cut_dimension.value_or(0);
  return read_modules(files, spec);
}

// "is_matryoshka" and "matryoshka_dims", as vLLM reads them.
Status read_matryoshka(const json::Object& config, PoolingSpec& spec) {
  WEIR_ASSIGN(const bool any, json::get_bool_or(config, "is_matryoshka", false));
  if (const json::Value* list = json::find(config, "matryoshka_dims")) {
    if (!list->is_array() || list->get_array().size() > 1024)
      return fail(ErrorCode::kCorrupt, "config.json: matryoshka_dims is not a short list");
    for (const json::Value& item : list->get_array()) {
      WEIR_ASSIGN(const std::int64_t size, json::to_int(item, "matryoshka_dims"));
      spec.dimensions.push_back(size);
    }
  }
  spec.any_dimension = any && spec.dimensions.empty();
  return {};
}

Status check_spec(PoolingSpec& spec) {
  std::erase_if(spec.dimensions, [&](std::int64_t d) { return d < 1 || d >= spec.size; });
  std::ranges::sort(spec.dimensions);
  const auto repeated = std::ranges::unique(spec.dimensions);
  spec.dimensions.erase(repeated.begin(), repeated.end());
  if (spec.cut_dimension < 0 || spec.cut_dimension > spec.size)
    return fail(ErrorCode::kCorrupt, "truncate_dim is {}, the vectors have {} dimensions", spec.cut_dimension, spec.size);
  if (spec.max_tokens < 0) return fail(ErrorCode::kCorrupt, "max_seq_length is {}", spec.max_tokens);
  return {};
}

}  // namespace

Result<json::Object> read_model_config(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return json::Object{};
  return read_object(path / "config.json");
}

Result<PoolingSpec> read_pooling_spec(const LoadedModel& loaded) {
  const model::Traits& traits = loaded.model->traits();
  PoolingSpec spec;
  spec.size = traits.hidden;
  spec.mode = traits.encoder ? model::Pooling::kMean : model::Pooling::kLast;
  spec.source = traits.encoder ? "default for encoders" : "default for decoders";
  std::error_code ignored;
  if (!std::filesystem::is_directory(loaded.path, ignored)) {
    if (traits.pooling == model::Pooling::kNone) return spec;
    spec.mode = traits.pooling;
    spec.source = "pooling_type";
    return spec;
  }
  WEIR_ASSIGN(const json::Object config, read_model_config(loaded.path));
  WEIR_ASSIGN(const auto files, SentenceTransformers::read(loaded.path));
  if (files) WEIR_TRY(read_files(*files, spec));
  WEIR_TRY(read_matryoshka(config, spec));
  WEIR_TRY(check_spec(spec));
  return spec;
}

}  // namespace weir::engine
