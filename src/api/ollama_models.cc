// SPDX-License-Identifier: Apache-2.0
// What Ollama tells about models and of vectors.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "api/json_text.h"
#include "api/ollama_api.h"
#include "api/ollama_time.h"

namespace weir::api {

std::string rfc3339(std::int64_t unix_seconds) {
  using namespace std::chrono;
  constexpr std::int64_t kFirst = -62'167'219'200, kLast = 253'402'300'799;
  const sys_seconds time{seconds(std::clamp(unix_seconds, kFirst, kLast))};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

namespace {

std::string tagged(const std::string& name) { return name.contains(':') ? name : name + ":latest"; }

std::string parameter_size(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", static_cast<double>(count) / 1e9);
  return fmt::format("{:.2f}M", static_cast<double>(count) / 1e6);
}

void write_details(JsonText& out, const OllamaModel& model) {
  out.open_object().member("parent_model", "").member("format", model.format).member("family", model.family);
  out.key("families").open_array().text(model.family).close_array();
  out.member("parameter_size", parameter_size(model.parameters)).member("quantization_level", model.quantization).close_object();
}

// Opens the object and leaves it open.
void write_head(JsonText& out, const OllamaModel& model, std::int64_t bytes) {
  const std::string name = tagged(model.name);
  out.open_object().member("name", name).member("model", name).member("size", bytes).member("digest", model.digest);
  out.key("details");
  write_details(out, model);
}

void write_numbers(JsonText& out, std::span<const float> vector) {
  out.open_array();
  for (const float value : vector) out.number(value);
  out.close_array();
}

}  // namespace

std::string ollama_tags_document(std::span<const OllamaModel> models) {
  JsonText out;
  out.open_object().key("models").open_array();
  for (const OllamaModel& model : models) {
    write_head(out, model, model.bytes);
    out.member("modified_at", rfc3339(model.modified)).close_object();
  }
  return out.close_array().close_object().take();
}

std::string ollama_ps_document(std::span<const OllamaModel> loaded) {
  JsonText out;
  out.open_object().key("models").open_array();
  for (const OllamaModel& model : loaded) {
    write_head(out, model, model.bytes_in_memory);
    out.member("expires_at", rfc3339(model.expires.value_or(std::numeric_limits<std::int64_t>::max())));
    out.member("size_vram", 0).member("context_length", model.context_length).close_object();
  }
  return out.close_array().close_object().take();
}

std::string ollama_show_document(const OllamaModel& model) {
  JsonText out;
  out.open_object().member("license", model.licence).member("modelfile", "").member("parameters", "");
  out.member("template", model.chat_template).key("details");
  write_details(out, model);
  out.key("model_info").open_object().member("general.architecture", model.family);
  out.member("general.parameter_count", model.parameters);
  out.member(model.family + ".context_length", model.context_length);
  out.member(model.family + ".embedding_length", model.embedding_length).close_object();
  out.key("capabilities").open_array();
  for (const std::string& capability : model.capabilities) out.text(capability);
  return out.close_array().member("modified_at", rfc3339(model.modified)).close_object().take();
}

std::string ollama_version_document(std::string_view version) {
  return JsonText().open_object().member("version", version).close_object().take();
}

std::string ollama_embed_document(const OllamaEmbedRequest& request, const EmbeddingAnswer& answer, Duration total) {
  JsonText out;
  out.open_object();
  if (request.one) {
    out.key("embedding");
    write_numbers(out, answer.vectors.empty() ? std::span<const float>() : std::span<const float>(answer.vectors.front()));
    return out.close_object().take();
  }
  out.member("model", request.model_as_given).key("embeddings").open_array();
  for (const std::vector<float>& vector : answer.vectors) write_numbers(out, vector);
  out.close_array().member("total_duration", static_cast<std::int64_t>(total.count())).member("load_duration", 0);
  return out.member("prompt_eval_count", answer.tokens).close_object().take();
}

}  // namespace weir::api
