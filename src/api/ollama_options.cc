// SPDX-License-Identifier: Apache-2.0
#include "api/ollama_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "api/text_fields.h"
#include "api/translation.h"

namespace weir::api {
namespace {

using json::Value;
using Draft = OllamaDraft;

constexpr std::int64_t kMaxTopLogprobs = 20;
constexpr double kMaxKeepAlive = 1e9;  // seconds

sampling::SamplingParams& sampling_of(Draft& draft) { return draft.out.generation.options.sampling; }
SamplingGiven& given_of(Draft& draft) { return draft.out.generation.given; }

void add_sampling(Fields<Draft>& f) {
  f.number("temperature", {0, 100}, [](Draft& d, double v) {
    sampling_of(d).temperature = static_cast<float>(v);
    given_of(d).temperature = true;
  });
  f.integer("top_k", {-1, 1 << 30}, [](Draft& d, std::int64_t v) {
     sampling_of(d).top_k = static_cast<std::int32_t>(std::max<std::int64_t>(v, 0));
     given_of(d).top_k = true;
   }).note("0 or less: all tokens.");
  f.number("top_p", {0, 1}, [](Draft& d, double v) {
    sampling_of(d).top_p = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    given_of(d).top_p = true;
  });
  f.number("min_p", {0, 1}, [](Draft& d, double v) {
    sampling_of(d).min_p = static_cast<float>(v);
    given_of(d).min_p = true;
  });
  f.number("typical_p", {0, 1, true}, [](Draft& d, double v) {
    sampling_of(d).typical_p = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    given_of(d).typical_p = true;
  });
  f.number("repeat_penalty", {0, 100, true}, [](Draft& d, double v) {
     sampling_of(d).repetition_penalty = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
     given_of(d).repetition_penalty = true;
   }).note("Of all tokens of the prompt and the answer; 1 by default.");
  f.integer("repeat_last_n", {-1, 1 << 30}, [](Draft& d, std::int64_t v) {
     d.repeat_window = v;
   }).note("-1: repeat_penalty looks at all tokens; 0: at none. Another window is refused beside a repeat_penalty.");
  f.number("presence_penalty", {-2, 2}, [](Draft& d, double v) { sampling_of(d).presence_penalty = static_cast<float>(v); });
  f.number("frequency_penalty", {-2, 2}, [](Draft& d, double v) { sampling_of(d).frequency_penalty = static_cast<float>(v); });
  f.integer("seed", {}, [](Draft& d, std::int64_t v) {
     if (v == -1) return;  // as Ollama: another one each time
     sampling_of(d).seed = static_cast<std::uint64_t>(v);
     d.out.generation.seed_given = true;
   }).note("The same seed gives the same text; -1: another text each time.");
}

const Fields<Draft>& option_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_sampling(f);
    f.integer("num_predict", {-2, kMaxTokens}, [](Draft& d, std::int64_t v) {
       d.out.generation.options.max_tokens = std::max<std::int64_t>(v, 0);
       d.out.generation.max_tokens_given = v > 0;
     }).note("0 or less: as many as the context has room for.");
    f.value("stop", stop_texts_schema(),
            [](const Value& value, const Path& path, Draft& d) { return read_stop_texts(value, path, sampling_of(d).stop); });
    // How Ollama should use its machine: the answer is the same.
    f.ignore({"num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "use_mmap", "use_mlock", "num_thread",
              "numa", "vocab_only", "logits_all", "embedding_only", "mirostat_tau", "mirostat_eta", "draft_num_predict"});
    f.integer("mirostat", {0, 0}, [](Draft&, std::int64_t) {}).note("Is not supported: 0 is off.");
    f.number("tfs_z", {1, 1}, [](Draft&, double) {}).note("Is not supported: 1 is off.");
    f.only("penalize_newline", true, "is not supported: line breaks are tokens like others");
    return f;
  }();
  return fields;
}

ApiStatus read_format(const Value& value, const Path& path, Draft& draft) {
  auto& grammar = draft.out.generation.options.grammar;
  if (value.is_object()) {
    WEIR_ASSIGN(grammar, json_schema_grammar(value, path));
    return {};
  }
  if (!value.is_string()) return wrong_type(path, "'json' or a JSON schema", value);
  WEIR_ASSIGN(const std::string_view word, read_name(value, path, {"", "json"}));
  if (word == "json") grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kJsonObject};
  return {};
}

ApiStatus read_think(const Value& value, const Path& path, Draft& draft) {
  GenerationRequest& request = draft.out.generation;
  if (value.is_bool()) {
    request.template_arguments["enable_thinking"] = value.get_bool();
    return {};
  }
  if (!value.is_string()) return wrong_type(path, "a boolean, or 'low', 'medium' or 'high'", value);
  WEIR_ASSIGN(const std::string_view effort, read_name(value, path, {"low", "medium", "high", "max"}));
  apply_reasoning_effort(request, effort);
  return {};
}

}  // namespace

ApiStatus read_ollama_options(const Value& value, const Path& path, Draft& draft) { return option_fields().read(value, path, draft); }
Value ollama_options_schema() { return option_fields().schema(); }

void add_ollama_fields(Fields<Draft>& f) {
  f.text("model", [](Draft& d, std::string v) {
     d.out.generation.model = ollama_model_name(v);
     d.out.model_as_given = std::move(v);
   }).required();
  f.value("options", ollama_options_schema(), read_ollama_options);
  f.value("format", schema(R"({"anyOf": [{"enum": ["", "json"]}, {"type": "object"}]})"), read_format)
      .note("'json', or a JSON schema; a keyword that cannot be enforced is an error.");
  f.value("think", schema(R"({"anyOf": [{"type": "boolean"}, {"enum": ["low", "medium", "high", "max"]}]})"), read_think);
  f.boolean("stream", [](Draft& d, bool v) { d.out.generation.stream = v; }).note("true by default.");
  f.value("keep_alive", keep_alive_schema(), [](const Value& value, const Path& path, Draft& d) -> ApiStatus {
     WEIR_ASSIGN(d.out.keep_alive, read_keep_alive(value, path));
     return {};
   }).note("How long the model should stay in memory; 0 without a prompt unloads it.");
  f.boolean("truncate", [](Draft& d, bool v) {
     if (v) d.out.generation.truncate_prompt = 0;
   }).note("true: a prompt that is too long loses its beginning; else it is an error.");
  f.ignore({"shift"});  // an answer that fills the context ends there, and says so
  f.boolean("logprobs", [](Draft& d, bool v) { d.logprobs = v; });
  f.integer("top_logprobs", {0, kMaxTopLogprobs}, [](Draft& d, std::int64_t v) { d.top_logprobs = v; }).note("Only with 'logprobs'.");
}

ApiStatus finish_ollama(Draft& draft) {
  const Path root, options(root, "options");
  sampling::SamplingParams& sampling = sampling_of(draft);
  // Where neither the request nor the model says: what Ollama's own defaults are.
  if (!given_of(draft).temperature) sampling.temperature = 0.8F;
  if (!given_of(draft).top_k) sampling.top_k = 40;
  if (!given_of(draft).top_p) sampling.top_p = 0.9F;
  if (draft.repeat_window == 0) {
    sampling.repetition_penalty = 1;
    given_of(draft).repetition_penalty = true;
  }
  if (draft.repeat_window.value_or(-1) > 0 && sampling.repetition_penalty != 1)
    return refuse(Path(options, "repeat_last_n"), "is not supported beside a repeat_penalty: the penalty is of all tokens (-1) or none (0)",
                  "unsupported_parameter");
  if (draft.top_logprobs && !draft.logprobs)
    return refuse(Path(root, "top_logprobs"), "needs 'logprobs' to be true", "conflicting_parameters");
  if (draft.logprobs) sampling.logprobs = static_cast<std::int32_t>(draft.top_logprobs.value_or(0));
  return {};
}

Value keep_alive_schema() {
  return schema(R"({"anyOf": [{"type": "number"},
    {"type": "string", "pattern": "^-?([0-9]+(\\.[0-9]+)?|([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+)$"}]})");
}

ApiResult<Duration> read_keep_alive(const Value& value, const Path& path) {
  const auto from_seconds = [&](double seconds) -> ApiResult<Duration> {
    if (seconds < 0 || seconds > kMaxKeepAlive) return Duration::max();
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  };
  if (value.is_number()) {
    WEIR_ASSIGN(const double seconds, read_number(value, path));
    return from_seconds(seconds);
  }
  if (!value.is_string()) return wrong_type(path, "seconds, or a text like '5m'", value);
  const std::string_view text = value.get_string();
  const auto bad = [&] { return refuse(path, "should be seconds, or a text like '300ms', '5m', '1h30m' or '-1'"); };
  if (text.empty()) return bad();
  const bool negative = text.front() == '-';
  const char *at = text.data() + negative, *end = text.data() + text.size();
  double sum = 0;
  while (at != end) {
    double number = 0;
    const auto [stop, error] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || number < 0) return bad();
    const std::string_view rest(stop, end);
    const std::string_view unit = rest.substr(0, rest.find_first_of("0123456789."));
    static constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3},
                                                                     {"s", 1},     {"m", 60},    {"h", 3600}};
    const auto known = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return u.first == unit; });
    const bool bare = unit.empty() && stop == end && at == text.data() + negative;  // "-1", "300": seconds
    if (known == std::end(kUnits) && !bare) return bad();
    sum += number * (bare ? 1 : known->second);
    at = stop + unit.size();
  }
  if (text.size() == static_cast<std::size_t>(negative)) return bad();
  return from_seconds(negative && sum > 0 ? -1 : sum);
}

}  // namespace weir::api
