// SPDX-License-Identifier: Apache-2.0
// What Ollama's requests have in common: options, keep_alive, think, format, and the draft that they are read into.
#pragma once

#include <optional>
#include <string>

#include "api/fields.h"
#include "api/ollama_api.h"

namespace weir::api {

struct OllamaDraft {
  OllamaRequest out = {};
  const json::Value* messages = nullptr;  // these live as long as the request's JSON
  std::string prompt = {}, system = {};
  bool raw = false, logprobs = false;
  std::optional<std::int64_t> top_logprobs = {}, repeat_window = {};
};

// model, options, format, think, stream, keep_alive, …: of chat and generate.
void add_ollama_fields(Fields<OllamaDraft>& fields);
// What only makes sense once all fields are known.
ApiStatus finish_ollama(OllamaDraft& draft);

// Those of embeddings change nothing; they are checked all the same.
ApiStatus read_ollama_options(const json::Value& value, const Path& path, OllamaDraft& draft);
json::Value ollama_options_schema();

// Seconds, or a text as Go writes durations ("5m", "1h30m", "-1"); negative: for ever.
ApiResult<Duration> read_keep_alive(const json::Value& value, const Path& path);
json::Value keep_alive_schema();

}  // namespace weir::api
