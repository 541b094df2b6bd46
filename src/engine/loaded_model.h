// SPDX-License-Identifier: Apache-2.0
// A model ready to answer: weights, tokenizer, chat template and the defaults that its files bring.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/metered_backend.h"
#include "kernels/cpu_backend.h"
#include "model/model.h"
#include "sampling/sampling_params.h"
#include "text/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace weir::engine {

struct LoadedModel {
  std::filesystem::path path;
  std::shared_ptr<kernels::Backend> backend;
  std::shared_ptr<MeteredBackend> meter;  // the same one: what a step costs, by kind of operation
  std::unique_ptr<model::Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // null when `tokenizer_error` says why
  std::string tokenizer_error;
  std::optional<text::ChatTemplate> chat_template;  // the model's own, or a named fallback
  std::string template_note;                        // says when a fallback is used; "" for the model's own
  sampling::SamplingParams defaults;                // from generation_config.json, else greedy

  // The tokenizer, or the reason why there is none.
  Result<const tokenizer::Tokenizer*> require_tokenizer() const;
};

// PATH: a GGUF file or a Hugging Face folder.
Result<LoadedModel> load_model(const std::filesystem::path& path, const kernels::CpuOptions& options);

// Only the tokenizer of PATH; a GGUF file that holds a vocabulary and no weights will do.
Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path);

}  // namespace weir::engine
