// SPDX-License-Identifier: Apache-2.0
#include "loadgen/bottleneck.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr double kDominant = 0.4;    // of the mean whole answer: the largest part then names the bound
constexpr double kFullCache = 0.95;  // of the KV cache
constexpr double kAtLimit = 0.5;     // of a machine's limit: real kernels seldom get far beyond
constexpr double kBusy = 0.9, kLate = 1e-3;
constexpr double kEvenLengths = 0.2;  // deviation of prompt lengths by their mean, up to which TTFTs may be compared
constexpr std::size_t kMostPoints = 10'000'000;

// A mean whole answer, taken apart, in seconds; below 0: not known.
struct Parts {
  double whole = 0;
  double cap = -1;  // waiting for a connection that the user's cap allows
  double queue = -1, prefill = -1, decode = -1, network = -1;
  bool by_server = false;        // the server told prefill and decode
  bool queue_by_server = false;  // and its queue; otherwise that is what TTFTs have beyond the prefill, or above the least of them
};

Parts parts_of(const Summary& s) {
  Parts parts{.whole = s.e2e.mean};
  parts.cap = s.e2e_sent.count > 0 ? std::max(0.0, s.e2e.mean - s.e2e_sent.mean) : 0;
  if (s.waited_share == 0) parts.cap = 0;
  if (s.prefill.count > 0 || s.decode.count > 0) {
    parts.by_server = true;
    parts.prefill = s.prefill.mean;
    parts.decode = s.decode.mean;
    parts.queue_by_server = s.queue.count > 0;
    if (parts.queue_by_server) parts.queue = std::max(0.0, s.queue.mean);
    if (s.ttft_sent.count == 0) return parts;
    // The rest of the way to the first token: connecting, sending, the server's front, and the way back; a queue that it does not tell.
    const double rest = std::max(0.0, s.ttft_sent.mean - std::max(0.0, parts.queue) - parts.prefill);
    (parts.queue_by_server ? parts.network : parts.queue) = rest;
    return parts;
  }
  if (s.ttft.count == 0) return parts;
  parts.decode = std::max(0.0, s.e2e.mean - s.ttft.mean);
  const bool even = s.prompt_length.count == 0 || s.prompt_length.deviation <= kEvenLengths * s.prompt_length.mean;
  if (!even || s.ttft.count < 5) return parts;
  parts.prefill = s.ttft_sent.min;
  parts.queue = std::max(0.0, s.ttft_sent.mean - s.ttft_sent.min);
  return parts;
}

bool generator_in_the_way(const Summary& s) {
  if (s.valid) return false;
  const double limit = std::max(kLate, 0.01 * (s.ttft.count > 0 ? s.ttft.at(50) : s.e2e.at(50)));
  return s.cpu_share > kBusy || s.late.at(99) > limit || s.read_lag_p99 > limit ||
         s.outcomes[static_cast<std::size_t>(Outcome::kLocal)] > 0 || (s.offered_rate > 0 && s.sent_rate < 0.99 * s.offered_rate);
}

// A server may tell one for each of its models or engines: together they wait, and the fullest cache is what counts.
enum class Together { kSum, kFullest };
std::optional<Observed> observed(const BottleneckInput& input, std::initializer_list<std::string_view> names, Together together) {
  for (const std::string_view name : names) {
    std::optional<Observed> found;
    for (const Observed& series : input.observed) {
      if (series.name != name) continue;
      if (!found) {
        found = series;
      } else if (together == Together::kSum) {
        found->mean += series.mean, found->max += series.max;
        if (series.increase) found->increase = found->increase.value_or(0) + *series.increase;
      } else if (series.max > found->max || (series.max == found->max && series.mean > found->mean)) {
        found = series;
      }
    }
    if (found) return found;
  }
  return std::nullopt;
}

std::string part_text(double part, double whole) {
  return fmt::format("{} of a mean whole answer's {} ({:.0f} %)", format_duration(part), format_duration(whole), 100 * part / whole);
}

void find_queue(const Summary& s, const Parts& parts, const BottleneckInput& input, std::vector<Finding>& out) {
  if (parts.cap > 0)
    out.push_back({Bound::kQueue, parts.cap / parts.whole, true,
                   fmt::format("waiting for the cap on requests at a time took {}; {:.0f} % of the requests waited",
                               part_text(parts.cap, parts.whole), 100 * s.waited_share)});
  const auto waiting =
      observed(input,
               {"weir_requests_waiting", "vllm:num_requests_waiting", "nv_inference_pending_request_count", "llamacpp:requests_deferred",
                "sglang:num_queue_reqs", "tgi_queue_size", "dynamo_frontend_queued_requests"},
               Together::kSum);
  const std::string seen =
      waiting ? fmt::format("; {} was {:.1f} on average, {:.0f} at most", waiting->name, waiting->mean, waiting->max) : "";
  const bool measured = parts.queue_by_server || (waiting && waiting->mean >= 1);
  if (parts.queue < 0) {
    if (waiting && waiting->mean >= 1) out.push_back({Bound::kQueue, 0, true, "requests waited at the server" + seen});
    return;
  }
  const char* how = parts.queue_by_server ? "by the server's own times, queueing took"
                    : parts.by_server     ? "first tokens came later than its own prefill explains, as behind a queue, by"
                                          : "first tokens came later than the quickest of them, as behind a queue, by";
  out.push_back(
      {Bound::kQueue, parts.queue / parts.whole, measured, fmt::format("{} {}{}", how, part_text(parts.queue, parts.whole), seen)});
}

void find_cache(const BottleneckInput& input, std::vector<Finding>& out) {
  const auto use =
      observed(input,
               {"weir_kv_cache_use_ratio", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio",
                "sglang:token_usage", "dynamo_component_kvstats_gpu_cache_usage_percent", "dynamo_component_gpu_cache_usage_percent"},
               Together::kFullest);
  if (!use) return;
  const auto put_back = observed(input, {"weir_preemptions_total", "vllm:num_preemptions_total"}, Together::kSum);
  const std::string told = !put_back ? std::string()
                           : put_back->increase
                               ? fmt::format("; {:.0f} sequences were put back for want of room ({})", *put_back->increase, put_back->name)
                               : fmt::format("; {} reached {:.0f}", put_back->name, put_back->max);
  out.push_back({use->max >= kFullCache ? Bound::kKvCapacity : Bound::kNotKnown, 0, true,
                 fmt::format("the KV cache was {:.0f} % full on average, {:.0f} % at most ({}){}", 100 * use->mean, 100 * use->max,
                             use->name, told)});
}

void find_work(const Summary& s, const Parts& parts, const BottleneckInput& input, std::vector<Finding>& out) {
  if (parts.network >= 0)
    out.push_back(
        {Bound::kNetwork, parts.network / parts.whole, true,
         fmt::format("between client and server, beyond its own queue and prefill, passed {}", part_text(parts.network, parts.whole))});
  if (parts.prefill >= 0) {
    const bool measured = input.mfu && *input.mfu >= kAtLimit;
    out.push_back({Bound::kPrefillCompute, parts.prefill / parts.whole, measured,
                   fmt::format("{} took {}{}", parts.by_server ? "prefill" : "the quickest first token (prefill without a queue)",
                               part_text(parts.prefill, parts.whole),
                               input.mfu ? fmt::format("; multiply-adds ran at {:.0f} % of the machine's limit", 100 * *input.mfu) : "")});
  }
  if (parts.decode >= 0) {
    const bool measured = input.bandwidth_utilisation && *input.bandwidth_utilisation >= kAtLimit;
    std::string text = fmt::format("decoding took {}", part_text(parts.decode, parts.whole));
    if (s.tpot.count > 0) text += fmt::format(", {} a token", format_duration(s.tpot.at(50)));
    if (input.bandwidth_utilisation)
      text += fmt::format("; memory was read at {:.0f} % of the machine's limit", 100 * *input.bandwidth_utilisation);
    out.push_back({Bound::kDecodeBandwidth, parts.decode / parts.whole, measured, std::move(text)});
  }
}

const char* kWords[] = {
    "what bounds the system is not known",     "the client: the load generator itself was in the way",
    "the queue: requests wait for their turn", "the room in the KV cache",
    "prefill: the time to read the prompts",   "decoding: the time per output token, which memory bandwidth bounds as a rule",
    "the way between client and server"};

Bottleneck verdict(Bound bound, bool measured, std::string why, std::vector<Finding> findings) {
  const std::string words = kWords[static_cast<int>(bound)];
  return {.bound = bound, .measured = measured, .text = words + (why.empty() ? "" : ": " + why), .findings = std::move(findings)};
}

std::optional<double> finite_at(const json::Object& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  return value && value->is_number() ? std::optional(value->to_number<double>()) : std::nullopt;
}

// By the figures that the observer worked out over the run, or by the bare values of other results.
std::optional<Observed> observed_of(const json::Object& item) {
  Observed out{.name = json::get_string_or(item, "name", "").value_or(""), .increase = finite_at(item, "increase")};
  const auto mean = finite_at(item, "mean"), max = finite_at(item, "max");
  if (mean && max) {
    out.mean = *mean, out.max = *max;
    return out;
  }
  if (json::find(item, "kind") && !out.increase) return std::nullopt;  // nothing of it lies within the run
  const json::Value* values = json::find(item, "v");
  if (!values || !values->is_array() || values->get_array().empty() || values->get_array().size() > kMostPoints) return std::nullopt;
  double sum = 0, count = 0;
  for (const json::Value& value : values->get_array()) {
    if (!value.is_number()) continue;
    sum += value.to_number<double>();
    out.max = count == 0 ? value.to_number<double>() : std::max(out.max, value.to_number<double>());
    count += 1;
  }
  if (count == 0) return std::nullopt;
  out.mean = sum / count;
  return out;
}

}  // namespace

std::string_view bound_name(Bound bound) {
  constexpr std::string_view kNames[] = {"not_known", "client", "queue", "kv_capacity", "prefill_compute", "decode_bandwidth", "network"};
  return kNames[static_cast<int>(bound)];
}

BottleneckInput bottleneck_input(const json::Object& seen) {
  BottleneckInput input;
  const auto share = [&](const json::Object& work, std::string_view key) -> std::optional<double> {
    const auto value = json::get_double_or(work, key, -1);
    return value && *value > 0 ? std::optional<double>(*value) : std::nullopt;
  };
  if (const json::Value* work = json::find(seen, "work"); work && work->is_object()) {
    input.mfu = share(work->get_object(), "mfu");
    input.bandwidth_utilisation = share(work->get_object(), "bandwidth_utilisation");
  }
  const json::Value* observations = json::find(seen, "observations");
  const json::Value* series = observations && observations->is_object() ? json::find(observations->get_object(), "series") : nullptr;
  if (!series || !series->is_array()) return input;
  for (const json::Value& item : series->get_array())
    if (item.is_object())
      if (auto seen_series = observed_of(item.get_object())) input.observed.push_back(std::move(*seen_series));
  return input;
}

Bottleneck find_bottleneck(const Summary& s, const BottleneckInput& input) {
  if (generator_in_the_way(s)) return verdict(Bound::kClient, true, s.reasons.empty() ? std::string() : s.reasons.front(), {});
  if (s.ok == 0 || s.e2e.mean <= 0) return verdict(Bound::kNotKnown, false, "nothing was answered", {});
  const Parts parts = parts_of(s);
  std::vector<Finding> findings;
  find_queue(s, parts, input, findings);
  find_cache(input, findings);
  find_work(s, parts, input, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.share > b.share; });
  const auto full = std::find_if(findings.begin(), findings.end(), [](const Finding& f) { return f.bound == Bound::kKvCapacity; });
  if (full != findings.end()) return verdict(Bound::kKvCapacity, true, full->text, findings);
  if (parts.decode < 0 && parts.cap <= 0)
    return verdict(Bound::kNotKnown, false, "answers came whole and the server gave no times of its own (--timings asks for them)",
                   findings);
  const auto largest = std::find_if(findings.begin(), findings.end(), [](const Finding& f) { return f.bound != Bound::kNotKnown; });
  if (largest == findings.end() || largest->share < kDominant)
    return verdict(Bound::kNotKnown, false, "no single part of an answer's time stands out", findings);
  return verdict(largest->bound, largest->measured, largest->text, findings);
}

std::string to_text(const Bottleneck& b) {
  std::string out = fmt::format("\nBottleneck{}: {}\n", b.bound == Bound::kNotKnown ? "" : b.measured ? ", measured" : ", likely", b.text);
  for (const Finding& finding : b.findings)
    if (b.text.find(finding.text) == std::string::npos) out += fmt::format("  {}\n", finding.text);
  return out;
}

json::Object to_json(const Bottleneck& b) {
  json::Array findings;
  for (const Finding& f : b.findings)
    findings.push_back(json::Object{{"about", bound_name(f.bound)}, {"share", f.share}, {"measured", f.measured}, {"text", f.text}});
  return {{"bound", bound_name(b.bound)}, {"measured", b.measured}, {"text", b.text}, {"findings", std::move(findings)}};
}

}  // namespace weir::loadgen
