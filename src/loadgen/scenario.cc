// SPDX-License-Identifier: Apache-2.0
#include "loadgen/scenario.h"

#include <algorithm>
#include <cmath>

#include "base/file_io.h"
#include "http/client.h"

namespace weir::loadgen {
namespace {

constexpr std::uint64_t kMaxPromptFile = 2ull << 30;

// The first model that the server names, for users who do not care.
Result<std::string> ask_for_model(const TargetOptions& options, const Target& target) {
  const std::size_t v1 = target.url.rfind("/v1/");
  const std::string url = (v1 == std::string::npos ? target.url : target.url.substr(0, v1)) + "/v1/models";
  http::ClientOptions client_options;
  client_options.tls = options.tls;
  WEIR_ASSIGN(const auto client, http::Client::make(client_options));
  http::ClientRequest request{.url = url, .unix_socket = {}, .headers = {}, .body = {}};
  if (!options.api_key.empty()) request.headers.add("Authorization", "Bearer " + http::header_safe(options.api_key));
  request.total_timeout = std::chrono::seconds(10);
  WEIR_ASSIGN(const http::ClientResponse response, client->fetch(std::move(request)));
  const auto value = json::parse(response.body, url);
  const json::Value* data = value && value->is_object() ? json::find(value->get_object(), "data") : nullptr;
  if (response.status != 200 || !data || !data->is_array() || data->get_array().empty() || !data->get_array()[0].is_object())
    return fail(ErrorCode::kNotFound, "{} names no model: say which with --model", url);
  return json::get_string(data->get_array()[0].get_object(), "id");
}

}  // namespace

std::optional<PromptSource> prompt_source(std::string_view name) {
  constexpr std::pair<std::string_view, PromptSource> kNames[] = {{"synthetic", PromptSource::kSynthetic},
                                                                  {"text", PromptSource::kText},
                                                                  {"jsonl", PromptSource::kJsonl},
                                                                  {"sharegpt", PromptSource::kShareGpt}};
  for (const auto& [text, source] : kNames)
    if (text == name) return source;
  return std::nullopt;
}

Result<Scenario> Scenario::prepare(LoadSpec spec) {
  Scenario scenario;
  spec.target.chat = spec.prompts.chat = spec.shape.chat;
  spec.prompts.seed = spec.metrics.seed = spec.seed;
  if (spec.users < 0 || spec.trace_speed <= 0) return fail(ErrorCode::kInvalidArgument, "users and the trace's speed are above zero");
  scenario.spec_ = std::move(spec);
  LoadSpec& s = scenario.spec_;
  WEIR_ASSIGN(scenario.target_, Target::resolve(s.target));
  if (s.shape.model.empty()) {
    WEIR_ASSIGN(s.shape.model, ask_for_model(s.target, scenario.target_));
  }
  TokenizerPtr tokenizer;
  if (!s.tokenizer.empty()) {
    WEIR_ASSIGN(tokenizer, load_tokenizer(s.tokenizer));
  }
  scenario.vocabulary_ = std::make_shared<Vocabulary>(std::move(tokenizer));
  if (!s.trace.empty()) {
    WEIR_ASSIGN(const Trace whole, read_trace(s.trace));
    scenario.trace_ =
        scaled(whole, s.trace_speed, s.size.length.value_or(Duration::zero()), static_cast<std::size_t>(s.size.requests.value_or(0)));
    if (scenario.trace_.entries.empty()) return fail(ErrorCode::kInvalidArgument, "nothing of the trace is left");
  }
  WEIR_TRY(scenario.make_prompts());
  return scenario;
}

std::int64_t Scenario::expected_requests(const Variation& variation) const {
  if (!trace_.entries.empty()) return static_cast<std::int64_t>(trace_.entries.size());
  const double rate = variation.rate.value_or(spec_.arrivals.mean_rate());
  const double by_time = spec_.size.length ? to_seconds(*spec_.size.length) * rate : 1e18;
  if (spec_.size.requests) return static_cast<std::int64_t>(std::min(by_time, static_cast<double>(*spec_.size.requests)));
  if (spec_.users > 0 || variation.users) return spec_.most_prompts;
  return static_cast<std::int64_t>(std::min(by_time, 5e7));
}

Status Scenario::make_prompts() {
  PromptOptions options = spec_.prompts;
  if (!trace_.entries.empty() && spec_.source == PromptSource::kSynthetic) {
    conversations_ = trace_prompts(trace_, options, *vocabulary_);
    return {};
  }
  const double expected = static_cast<double>(expected_requests({}));
  const bool exact = spec_.size.requests.has_value() || !trace_.entries.empty();
  // By chance more requests may come within a time than its rate says; four deviations cover it.
  const double enough = exact ? expected : expected + 4 * std::sqrt(expected) + 1;
  options.count = static_cast<std::int64_t>(std::clamp(enough, 1.0, static_cast<double>(spec_.most_prompts)));
  if (spec_.source == PromptSource::kSynthetic) {
    WEIR_ASSIGN(conversations_, synthetic_prompts(options, *vocabulary_));
    return {};
  }
  if (spec_.prompt_file.empty()) return fail(ErrorCode::kInvalidArgument, "name the file that the prompts come from");
  WEIR_ASSIGN(const std::string text, read_file(spec_.prompt_file, kMaxPromptFile));
  auto made = spec_.source == PromptSource::kText    ? text_prompts(text, options, *vocabulary_)
              : spec_.source == PromptSource::kJsonl ? jsonl_prompts(text, options)
                                                     : sharegpt_prompts(text, options, *vocabulary_);
  if (!made) return std::unexpected(std::move(made).error().with_context(spec_.prompt_file.string()));
  conversations_ = std::move(*made);
  return {};
}

std::string Scenario::prompts_description() const {
  const auto lengths = fmt::format("{} in, {} out, tokens {}", spec_.prompts.input_tokens.description(),
                                   spec_.prompts.output_tokens.description(), vocabulary_->tokenizer() ? "exact" : "counted as words");
  if (!trace_.entries.empty() && spec_.source == PromptSource::kSynthetic)
    return fmt::format("lengths of the trace, {} prompts", conversations_.size());
  const std::string count = fmt::format("{} different", conversations_.size());
  switch (spec_.source) {
    case PromptSource::kSynthetic: return fmt::format("synthetic, {}, {}, common prefix {:g}", count, lengths, spec_.prompts.shared_prefix);
    case PromptSource::kText: return fmt::format("pieces of {}, {}, {}", spec_.prompt_file.string(), count, lengths);
    case PromptSource::kJsonl:
    case PromptSource::kShareGpt: break;
  }
  return fmt::format("{}, {}", spec_.prompt_file.string(), count);
}

Result<LoadPlan> Scenario::plan(const Variation& variation) const {
  LoadPlan plan{.shape = spec_.shape,
                .conversations = conversations_,
                .arrivals = {},
                .think = spec_.think,
                .seed = variation.seed.value_or(spec_.seed)};
  if (!trace_.entries.empty()) {
    const double faster = variation.rate ? *variation.rate : 1;  // sweeps of a trace scale its time
    for (const TraceEntry& entry : trace_.entries) plan.arrivals.push_back(to_duration(to_seconds(entry.at) / faster));
    return plan;
  }
  if (const std::int64_t users = variation.users.value_or(variation.rate ? 0 : spec_.users); users > 0) {
    plan.users = users;
    plan.closed_requests = spec_.size.requests.value_or(0);
    plan.closed_length = spec_.size.length.value_or(Duration::zero());
    return plan;
  }
  const ArrivalProcess process = variation.rate ? spec_.arrivals.at_rate(*variation.rate) : spec_.arrivals;
  WEIR_ASSIGN(plan.arrivals, schedule(process, spec_.size, plan.seed));
  if (plan.arrivals.empty()) return fail(ErrorCode::kInvalidArgument, "no request is due within that time at that rate");
  return plan;
}

Result<Measured> Scenario::measure(const Variation& variation, Progress& progress) const {
  return measure_at(target_, variation, progress);
}

Result<Measured> Scenario::measure_at(const Target& target, const Variation& variation, Progress& progress) const {
  WEIR_ASSIGN(const LoadPlan plan, this->plan(variation));
  Measured measured;
  WEIR_ASSIGN(measured.result, run(plan, target, spec_.run, progress));
  MetricOptions metrics = spec_.metrics;
  metrics.streaming = spec_.shape.stream;
  measured.summary = summarize(measured.result, metrics);
  if (plan.conversations.size() < static_cast<std::size_t>(measured.summary.requests) && spec_.source == PromptSource::kSynthetic &&
      plan.users == 0)
    measured.summary.notes.push_back(
        fmt::format("{} different prompts were repeated: a server that keeps prefixes may have known them", plan.conversations.size()));
  RunLabel& label = measured.label;
  label.target = target.url;
  label.model = spec_.shape.model;
  label.seed = plan.seed;
  label.prompts = prompts_description();
  label.concurrency = plan.users > 0 ? plan.users : spec_.run.max_concurrency;
  if (plan.users > 0) {
    label.load = fmt::format("closed loop of {} users, think time {}", plan.users, spec_.think.description());
  } else if (!trace_.entries.empty()) {
    label.load = fmt::format("trace {} at {:g} × its speed", spec_.trace.string(), spec_.trace_speed * variation.rate.value_or(1));
    label.rate = measured.summary.offered_rate;
  } else {
    const ArrivalProcess process = variation.rate ? spec_.arrivals.at_rate(*variation.rate) : spec_.arrivals;
    label.load = process.description();
    label.rate = process.mean_rate();
  }
  if (plan.users == 0 && spec_.run.max_concurrency > 0) label.load += fmt::format(", at most {} at a time", spec_.run.max_concurrency);
  return measured;
}

}  // namespace weir::loadgen
