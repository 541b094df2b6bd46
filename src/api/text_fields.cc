// SPDX-License-Identifier: Apache-2.0
#include "api/text_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::api {
namespace {

using json::Value;
using Draft = TextDraft;

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max();
constexpr std::size_t kMaxStops = 64;             // as sampling::validate
constexpr std::size_t kMaxStopCharacters = 1024;  // at most 4096 bytes
constexpr std::size_t kMaxStopIds = 1024;
constexpr std::size_t kMaxBiases = 1 << 16;

sampling::SamplingParams& sampling_of(Draft& draft) { return draft.request.options.sampling; }

ApiStatus read_logit_bias(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  if (object->size() > kMaxBiases)
    return refuse(path, fmt::format("has {} entries; {} are allowed", object->size(), kMaxBiases), "too_many");
  for (const auto& [key, bias] : *object) {
    TokenId id = 0;
    const char* end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || stop != end || id < 0 || key.size() > 9)
      return refuse(Path(path, key), "should be named by a token's id: digits only");
    WEIR_ASSIGN(const double number, read_number(bias, Path(path, key), {-100, 100}));
    sampling_of(draft).logit_bias.emplace_back(id, static_cast<float>(number));
  }
  return {};
}

// Any 64 bits, signed or not: clients send what their languages have.
ApiStatus read_seed(const Value& value, const Path& path, Draft& draft) {
  std::uint64_t seed = 0;
  if (value.is_int64()) {
    seed = static_cast<std::uint64_t>(value.get_int64());
  } else if (value.is_uint64()) {
    seed = value.get_uint64();
  } else {
    WEIR_ASSIGN(const std::int64_t number, read_integer(value, path));
    seed = static_cast<std::uint64_t>(number);
  }
  sampling_of(draft).seed = seed;
  draft.request.seed_given = true;
  return {};
}

ApiStatus add_stop(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(std::string text, read_text(value, path));
  if (text.empty()) return refuse(path, "is empty, which would end every answer at once");
  if (count_characters(text) > kMaxStopCharacters)
    return refuse(path, fmt::format("has more than {} characters", kMaxStopCharacters), "too_long");
  sampling_of(draft).stop.push_back(std::move(text));
  return {};
}

ApiStatus read_stop(const Value& value, const Path& path, Draft& draft) {
  if (value.is_string()) return add_stop(value, path, draft);
  if (!value.is_array()) return wrong_type(path, "a string or a list of strings", value);
  const json::Array& array = value.get_array();
  if (array.size() > kMaxStops) return refuse(path, fmt::format("has {} entries; {} are allowed", array.size(), kMaxStops), "too_many");
  for (std::size_t i = 0; i < array.size(); ++i) WEIR_TRY(add_stop(array[i], Path(path, i), draft));
  return {};
}

ApiStatus read_stop_ids(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(sampling_of(draft).stop_tokens, read_ids(value, path));
  if (sampling_of(draft).stop_tokens.size() > kMaxStopIds)
    return refuse(path, fmt::format("has more than {} entries", kMaxStopIds), "too_many");
  return {};
}

struct StreamOptions {
  bool usage = false, continuous = false;
};

ApiStatus read_stream_options(const Value& value, const Path& path, Draft& draft);

const Fields<StreamOptions>& stream_option_fields() {
  static const Fields<StreamOptions> fields = [] {
    Fields<StreamOptions> f;
    f.boolean("include_usage", [](StreamOptions& o, bool v) { o.usage = v; }).note("A last event with the usage, before [DONE].");
    f.boolean("continuous_usage_stats", [](StreamOptions& o, bool v) { o.continuous = v; }).note("Usage so far in every event.");
    f.ignore({"include_obfuscation"});
    return f;
  }();
  return fields;
}

ApiStatus read_stream_options(const Value& value, const Path& path, Draft& draft) {
  StreamOptions options;
  WEIR_TRY(stream_option_fields().read(value, path, options));
  draft.request.stream_usage = options.usage || options.continuous;
  draft.request.continuous_usage = options.continuous;
  return {};
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void add_sampling_fields(Fields<Draft>& f) {
  f.number("temperature", {0, 100}, [](Draft& d, double v) {
     sampling_of(d).temperature = static_cast<float>(v);
     d.request.given.temperature = true;
   }).note("0 takes the likeliest token. Absent: the model's own default, else 1.");
  f.number("top_p", {0, 1, true}, [](Draft& d, double v) {
    // Above 0 as a double may be 0 as a float.
    sampling_of(d).top_p = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    d.request.given.top_p = true;
  });
  f.integer("top_k", {-1, 1 << 30}, [](Draft& d, std::int64_t v) {
     sampling_of(d).top_k = static_cast<std::int32_t>(std::max<std::int64_t>(v, 0));
     d.request.given.top_k = true;
   }).note("0 or -1: all tokens.");
  f.number("min_p", {0, 1}, [](Draft& d, double v) {
    sampling_of(d).min_p = static_cast<float>(v);
    d.request.given.min_p = true;
  });
  f.number("typical_p", {0, 1, true}, [](Draft& d, double v) {
    sampling_of(d).typical_p = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    d.request.given.typical_p = true;
  });
  f.number("repetition_penalty", {0, 100, true}, [](Draft& d, double v) {
    sampling_of(d).repetition_penalty = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    d.request.given.repetition_penalty = true;
  });
  f.number("frequency_penalty", {-2, 2}, [](Draft& d, double v) { sampling_of(d).frequency_penalty = static_cast<float>(v); });
  f.number("presence_penalty", {-2, 2}, [](Draft& d, double v) { sampling_of(d).presence_penalty = static_cast<float>(v); });
  f.value("logit_bias", schema(R"({"type": "object", "propertyNames": {"pattern": "^[0-9]{1,9}$"}, "maxProperties": 65536,
                     "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}})"),
          read_logit_bias);
  f.value("seed", schema(R"({"type": "integer", "minimum": -9000000000000000, "maximum": 18446744073709551615})"), read_seed)
      .note("The same seed gives the same text, whatever else the server does.");
  f.value("stop", schema(R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024},
                    {"type": "array", "maxItems": 64, "items": {"type": "string", "minLength": 1, "maxLength": 1024}}]})"),
          read_stop);
  json::Value stop_ids = ids_schema();
  stop_ids.as_object()["maxItems"] = kMaxStopIds;
  f.value("stop_token_ids", std::move(stop_ids), read_stop_ids);
  f.boolean("ignore_eos", [](Draft& d, bool v) { d.request.options.ignore_end = v; });
}

void add_length_fields(Fields<Draft>& f) {
  f.integer("min_tokens", {0, kMaxTokens}, [](Draft& d, std::int64_t v) { d.request.options.min_tokens = v; });
  f.integer("n", {1, engine::kMaxAnswers}, [](Draft& d, std::int64_t v) { d.request.options.answers = static_cast<std::int32_t>(v); });
  f.integer("truncate_prompt_tokens", {-1, kMaxTokens}, [](Draft& d, std::int64_t v) {
     d.request.truncate_prompt = std::max<std::int64_t>(v, 0);
   }).note("Keep only the prompt's last tokens; -1: as many as fit. Without it a prompt that is too long is an error.");
  f.integer("prompt_logprobs", {0, kMaxLogprobs},
            [](Draft& d, std::int64_t v) { d.request.options.prompt_logprobs = static_cast<std::int32_t>(v); });
}

void add_stream_fields(Fields<Draft>& f) {
  f.boolean("stream", [](Draft& d, bool v) { d.request.stream = v; });
  f.value("stream_options", stream_option_fields().schema(), read_stream_options);
  f.boolean("timings", [](Draft& d, bool v) {
     d.request.timings = v;
   }).note("The response carries queue, prefill and decode times, cached tokens and an estimate of the energy.");
  f.boolean("return_token_ids", [](Draft& d, bool v) { d.request.return_token_ids = v; });
  f.boolean("return_tokens_as_token_ids", [](Draft& d, bool v) { d.request.tokens_as_ids = v; });
  f.boolean("skip_special_tokens", [](Draft& d, bool v) { d.request.show_special = !v; });
}

void add_serving_fields(Fields<Draft>& f) {
  f.text("model", [](Draft& d, std::string v) { d.request.model = std::move(v); }).note("Absent: the server's first model.");
  f.integer("priority", {-1'000'000, 1'000'000}, [](Draft& d, std::int64_t v) {
     d.request.options.priority = static_cast<std::int32_t>(-v);
   }).note("The lower goes first, as with vLLM; 0 by default.");
  f.text("cache_salt", [](Draft& d, std::string v) {
     d.request.options.cache_salt = std::move(v);
   }).note("Cached prefixes are shared only with requests of the same salt.");
  f.text("lora", [](Draft& d, std::string v) { d.request.options.adapter = std::move(v); }).note("An adapter's name.");
  f.ignore({"user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier", "request_id",
            "prediction", "guided_decoding_backend", "spaces_between_special_tokens"});
  f.only("include_stop_str_in_output", false, "is not supported: stop strings are never part of the text");
  f.only("detokenize", true, "is not supported: text is always made");
  f.only("use_beam_search", false, "is not supported: answers are sampled");
  f.only("early_stopping", false, "is not supported: there is no beam search");
}

ApiStatus finish_text(Draft& draft) {
  GenerationRequest& request = draft.request;
  engine::CompletionRequest& options = request.options;
  if (!request.given.temperature) options.sampling.temperature = 1;
  const Path root;
  if (draft.max_tokens && draft.max_completion_tokens && *draft.max_tokens != *draft.max_completion_tokens)
    return refuse(Path(root, "max_tokens"), "and 'max_completion_tokens' are the same limit, but differ", "conflicting_parameters");
  const auto limit = draft.max_completion_tokens ? draft.max_completion_tokens : draft.max_tokens;
  request.max_tokens_given = limit.has_value();
  if (limit) options.max_tokens = *limit;
  if (limit && *limit == 0) options.prompt_only = true;
  if (limit && options.min_tokens > *limit)
    return refuse(Path(root, "min_tokens"), fmt::format("is {}, above the {} of max_tokens", options.min_tokens, *limit),
                  "conflicting_parameters");
  if (request.stream && options.prompt_logprobs >= 0)
    return refuse(Path(root, "prompt_logprobs"), "cannot be streamed", "conflicting_parameters");
  request.prompt_logprobs_shown = options.prompt_logprobs;
  return {};
}

void apply_reasoning_effort(GenerationRequest& request, std::string_view effort) {
  json::Object& arguments = request.template_arguments;
  const bool off = effort == "none" || effort == "minimal";
  // gpt-oss's template knows low, medium and high; Qwen's and others whether to think at all.
  const std::string_view known = effort == "minimal" ? "low" : effort == "xhigh" || effort == "max" ? "high" : effort;
  if (effort != "none" && !arguments.contains("reasoning_effort")) arguments["reasoning_effort"] = known;
  if (!arguments.contains("enable_thinking")) arguments["enable_thinking"] = !off;
}

ApiResult<std::vector<TokenId>> read_ids(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    WEIR_ASSIGN(const std::int64_t id, read_integer((*array)[i], Path(path, i), {0, kMaxId}));
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

json::Value ids_schema() { return json::Object{{"type", "array"}, {"items", integer_schema({0, kMaxId})}}; }

ApiResult<std::vector<PromptInput>> read_prompts(const Value& value, const Path& path) {
  if (value.is_string()) return std::vector<PromptInput>{std::string(value.get_string())};
  if (!value.is_array()) return wrong_type(path, "a text, a list of token ids, or a list of either", value);
  const json::Array& array = value.get_array();
  if (array.empty()) return refuse(path, "is an empty list", "empty");
  std::vector<PromptInput> prompts;
  if (array[0].is_number()) {
    WEIR_ASSIGN(std::vector<TokenId> ids, read_ids(value, path));
    prompts.emplace_back(std::move(ids));
    return prompts;
  }
  if (array.size() > static_cast<std::size_t>(kMaxPrompts))
    return refuse(path, fmt::format("has {} entries; {} are allowed", array.size(), kMaxPrompts), "too_many");
  for (std::size_t i = 0; i < array.size(); ++i) {
    const Path place(path, i);
    if (array[i].is_string()) {
      prompts.emplace_back(std::string(array[i].get_string()));
      continue;
    }
    if (!array[i].is_array()) return wrong_type(place, "a text or a list of token ids", array[i]);
    WEIR_ASSIGN(std::vector<TokenId> ids, read_ids(array[i], place));
    if (ids.empty()) return refuse(place, "is an empty list", "empty");
    prompts.emplace_back(std::move(ids));
  }
  return prompts;
}

json::Value prompts_schema() {
  json::Object ids = ids_schema().as_object();
  ids["minItems"] = 1;
  const json::Object either{{"anyOf", {json::Object{{"type", "string"}}, ids}}};
  return json::Object{{"anyOf",
                       {json::Object{{"type", "string"}}, ids,
                        json::Object{{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxPrompts}, {"items", either}}}}};
}

}  // namespace weir::api
