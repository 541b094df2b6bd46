// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_model.h"

#include <algorithm>
#include <future>

#include "base/log.h"
#include "base/units.h"
#include "engine/chat.h"
#include "formats/gguf_reader.h"
#include "formats/hf_folder.h"
#include "kernels/thread_choice.h"
#include "model/load.h"
#include "model/weight_cache.h"

namespace weir::engine {
namespace {

// What a model's files say beside its weights.
struct Extras {
  Result<std::shared_ptr<const tokenizer::Tokenizer>> tokenizer = fail(ErrorCode::kNotFound, "no tokenizer");
  std::optional<std::string> chat_template;
  sampling::SamplingParams defaults;
};

Result<std::shared_ptr<const tokenizer::Tokenizer>> folder_tokenizer(const formats::HfFolder& folder) {
  if (!folder.tokenizer_json) return fail(ErrorCode::kNotFound, "{} has no tokenizer.json", folder.path.string());
  return tokenizer::Tokenizer::from_json(*folder.tokenizer_json, folder.tokenizer_config ? &*folder.tokenizer_config : nullptr,
                                         &folder.config);
}

// generation_config.json: what the model's authors sample with.
Result<sampling::SamplingParams> folder_defaults(const formats::HfFolder& folder) {
  sampling::SamplingParams params;
  if (!folder.generation_config) return params;
  const json::Object& config = *folder.generation_config;
  WEIR_ASSIGN(const bool sample, json::get_bool_or(config, "do_sample", false));
  if (!sample) return params;
  WEIR_ASSIGN(const double temperature, json::get_double_or(config, "temperature", 1.0));
  WEIR_ASSIGN(const double top_p, json::get_double_or(config, "top_p", 1.0));
  WEIR_ASSIGN(const double min_p, json::get_double_or(config, "min_p", 0.0));
  WEIR_ASSIGN(const std::int64_t top_k, json::get_int_or(config, "top_k", 50));  // transformers' default when sampling
  WEIR_ASSIGN(const double repetition, json::get_double_or(config, "repetition_penalty", 1.0));
  params.temperature = static_cast<float>(temperature);
  params.top_p = static_cast<float>(top_p);
  params.min_p = static_cast<float>(min_p);
  params.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(top_k, 0, 1 << 30));
  params.repetition_penalty = static_cast<float>(repetition);
  if (auto valid = sampling::validate(params); !valid)
    return std::unexpected(std::move(valid.error()).with_context("generation_config.json"));
  return params;
}

// What was opened at a path, once for the weights and for all else.
struct Source {
  std::optional<formats::GgufFile> gguf;  // else
  std::optional<formats::HfFolder> folder;
};

Result<Source> open_source(const std::filesystem::path& path, bool weights) {
  Source source;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (weights && !formats::HfFolder::looks_like(path))
      return fail(ErrorCode::kNotFound, "{}: a folder without config.json; expected a Hugging Face folder or a GGUF file", path.string());
    WEIR_ASSIGN(source.folder, weights ? formats::HfFolder::open(path) : formats::HfFolder::open_without_weights(path));
  } else {
    WEIR_ASSIGN(source.gguf, formats::GgufFile::open(path));
  }
  return source;
}

Result<Extras> read_extras(const Source& source) {
  Extras extras;
  if (source.folder) {
    extras.tokenizer = folder_tokenizer(*source.folder);
    extras.chat_template = source.folder->chat_template;
    WEIR_ASSIGN(extras.defaults, folder_defaults(*source.folder));
    return extras;
  }
  extras.tokenizer = tokenizer::Tokenizer::from_gguf(*source.gguf);
  if (source.gguf->has("tokenizer.chat_template")) {
    WEIR_ASSIGN(extras.chat_template, source.gguf->get_string("tokenizer.chat_template"));
  }
  return extras;
}

Result<std::unique_ptr<model::Model>> make_model(const Source& source, const std::filesystem::path& path,
                                                 std::shared_ptr<kernels::Backend> backend) {
  auto parts = source.folder ? model::load_folder(*source.folder, model::Deferral::kUntilPacked) : model::load_gguf(*source.gguf);
  if (!parts) return std::unexpected(std::move(parts).error().with_context(path.string()));
  return std::make_unique<model::Model>(std::move(parts->traits), std::move(parts->weights), std::move(backend));
}

void attach_weights(model::Model& model, const model::WeightCacheOptions& options) {
  const model::WeightCacheReport packed = model::attach_packed_weights(model, options);
  if (!packed.note.empty()) log::warn("{}", packed.note);
  if (packed.made) log::info("packed {} of weights in {}", format_bytes(packed.bytes), format_duration(packed.seconds));
}

Status attach_template(LoadedModel& loaded, const std::optional<std::string>& source) {
  if (source) {
    WEIR_ASSIGN(loaded.chat_template, text::ChatTemplate::compile(*source, loaded.path.filename().string()));
    return {};
  }
  if (!loaded.tokenizer) return {};
  const std::string name = fallback_template_name(*loaded.tokenizer);
  WEIR_ASSIGN(loaded.chat_template, text::ChatTemplate::named(name));
  loaded.template_note = fmt::format("{} brings no chat template; using the built-in '{}'", loaded.path.filename().string(), name);
  return {};
}

}  // namespace

Result<const tokenizer::Tokenizer*> LoadedModel::require_tokenizer() const {
  if (!tokenizer) return fail(ErrorCode::kUnsupported, "{}", tokenizer_error);
  return tokenizer.get();
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path) {
  WEIR_ASSIGN(const Source source, open_source(path, false));
  WEIR_ASSIGN(Extras extras, read_extras(source));
  return std::move(extras.tokenizer);
}

Result<LoadedModel> load_model(const std::filesystem::path& path, const kernels::CpuOptions& options) {
  LoadedModel loaded;
  loaded.path = path;
  WEIR_ASSIGN(const model::WeightCacheOptions cache, model::weight_cache_from_environment());
  const kernels::ThreadChoice choice = kernels::choose_threads(options.threads);
  if (!choice.note.empty()) log::warn("{}", choice.note);
  kernels::CpuOptions chosen = options;
  chosen.threads = choice.threads;
  WEIR_ASSIGN(auto backend, kernels::make_cpu_backend(chosen));
  loaded.backend = loaded.meter = std::make_shared<MeteredBackend>(std::move(backend));
  WEIR_ASSIGN(const Source source, open_source(path, true));
  WEIR_ASSIGN(loaded.model, make_model(source, path, loaded.backend));
  loaded.meter->learn_roles(*loaded.model);
  // The vocabulary is read while the weights are brought in: one waits for memory, the other computes.
  auto reading = std::async(std::launch::async | std::launch::deferred, [&] { return read_extras(source); });
  attach_weights(*loaded.model, cache);
  WEIR_ASSIGN(Extras extras, reading.get());
  if (extras.tokenizer) {
    loaded.tokenizer = std::move(*extras.tokenizer);
  } else {
    loaded.tokenizer_error = fmt::format("{}: {}", path.string(), extras.tokenizer.error().message);
  }
  loaded.defaults = extras.defaults;
  WEIR_TRY(attach_template(loaded, extras.chat_template));
  return loaded;
}

}  // namespace weir::engine
