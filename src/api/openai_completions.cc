// SPDX-License-Identifier: Apache-2.0
#include "api/openai_completions.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/text_fields.h"

namespace weir::api {
namespace {

using json::Value;
using Draft = TextDraft;

constexpr std::int64_t kDefaultMaxTokens = 16;

void add_completion_fields(Fields<Draft>& f) {
  f.value("prompt", prompts_schema(), [](const Value& value, const Path& path, Draft& d) -> ApiStatus {
     WEIR_ASSIGN(d.request.prompts, read_prompts(value, path));
     return {};
   }).required();
  f.integer("max_tokens", {0, kMaxTokens}, [](Draft& d, std::int64_t v) {
     d.max_tokens = v;
   }).note("16 by default; 0 generates nothing, for the prompt's log probabilities.");
  f.integer("best_of", {1, engine::kMaxAnswers}, [](Draft& d, std::int64_t v) {
     d.best_of = v;
   }).note("So many are made for each prompt, and the n likeliest returned.");
  f.integer("logprobs", {0, kMaxLogprobs}, [](Draft& d, std::int64_t v) { d.logprobs = v; });
  f.boolean("echo", [](Draft& d, bool v) { d.request.echo = v; });
  f.boolean("add_special_tokens", [](Draft& d, bool v) { d.request.add_special = v; }).note("To prompts that are text; true by default.");
  f.only("suffix", nullptr, "is not supported: the text is continued at its end only");
}

const Fields<Draft>& completion_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_completion_fields(f);
    add_serving_fields(f);
    add_sampling_fields(f);
    add_length_fields(f);
    add_constraint_fields(f);
    add_stream_fields(f);
    return f;
  }();
  return fields;
}

ApiStatus finish_counts(Draft& draft) {
  GenerationRequest& request = draft.request;
  const Path root;
  const std::int64_t n = request.options.answers;
  if (draft.best_of && *draft.best_of < n)
    return refuse(Path(root, "best_of"), fmt::format("is {}, below the {} of n", *draft.best_of, n), "conflicting_parameters");
  if (draft.best_of && *draft.best_of > n) {
    if (request.stream)
      return refuse(Path(root, "best_of"), "above n cannot be streamed: the best are known at the end", "conflicting_parameters");
    request.best_of = static_cast<std::int32_t>(*draft.best_of);
  }
  const std::int64_t choices = static_cast<std::int64_t>(request.prompts.size()) * std::max<std::int64_t>(n, request.best_of);
  if (choices > kMaxChoices)
    return refuse(Path(root, "n"), fmt::format("for each prompt makes {} answers; {} are allowed", choices, kMaxChoices), "too_many");
  return {};
}

// What the engine is asked of the prompt: the most that echo's logprobs or prompt_logprobs want.
ApiStatus finish_logprobs(Draft& draft) {
  GenerationRequest& request = draft.request;
  engine::CompletionRequest& options = request.options;
  if (!draft.logprobs) return {};
  options.sampling.logprobs = static_cast<std::int32_t>(*draft.logprobs);
  if (!request.echo) return {};
  if (request.stream && options.answers > 1)
    return refuse(Path(Path(), "echo"), "with logprobs and n above 1 cannot be streamed", "conflicting_parameters");
  options.prompt_logprobs = std::max(options.prompt_logprobs, options.sampling.logprobs);
  return {};
}

}  // namespace

ApiResult<GenerationRequest> parse_completion(std::string_view body) {
  Draft draft;
  WEIR_TRY(read_body(body, completion_fields(), draft));
  GenerationRequest& request = draft.request;
  const bool given = draft.max_tokens.has_value();
  if (!given) draft.max_tokens = std::max(kDefaultMaxTokens, request.options.min_tokens);
  WEIR_TRY(finish_text(draft));
  request.max_tokens_given = given;
  WEIR_TRY(finish_counts(draft));
  WEIR_TRY(finish_logprobs(draft));
  return std::move(request);
}

json::Object completion_request_schema() { return completion_fields().schema(); }

}  // namespace weir::api
