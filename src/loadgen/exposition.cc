// SPDX-License-Identifier: Apache-2.0
// Lines to series: TYPE lines say what a name is, and the parts of a histogram come together.
#include "loadgen/exposition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "loadgen/exposition_line.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMostFamilies = 20'000;

// What OpenMetrics adds beyond the five is as good as a gauge (info, stateset) or nothing that is measured here (gaugehistogram).
std::optional<MetricKind> kind_of(std::string_view word) {
  constexpr std::pair<std::string_view, MetricKind> kWords[] = {
      {"counter", MetricKind::kCounter}, {"gauge", MetricKind::kGauge},     {"histogram", MetricKind::kHistogram},
      {"summary", MetricKind::kSummary}, {"untyped", MetricKind::kUntyped}, {"unknown", MetricKind::kUntyped},
      {"info", MetricKind::kGauge},      {"stateset", MetricKind::kGauge},  {"gaugehistogram", MetricKind::kUntyped}};
  for (const auto& [text, kind] : kWords)
    if (text == word) return kind;
  return std::nullopt;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

std::string without_suffix(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) && name.size() > suffix.size() ? std::string(name.substr(0, name.size() - suffix.size())) : std::string();
}

enum class Part { kValue, kBucket, kSum, kCount, kQuantile, kCreated };

struct Role {
  std::string name;  // of the series that the sample belongs to
  MetricKind kind = MetricKind::kUntyped;
  Part part = Part::kValue;
};

class Reader {
 public:
  Reader(const std::function<bool(std::string_view)>& wanted, const ExpositionLimits& limits) : wanted_(wanted), limits_(limits) {}

  Status line(std::string_view text) {
    if (ended_) return fail(ErrorCode::kCorrupt, "something follows # EOF");
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    if (text[begin] == '#') return comment(text.substr(begin + 1));
    return sample(text);
  }

  Result<Exposition> finish() {
    for (MetricReading& reading : out_.readings) {
      std::sort(reading.buckets.begin(), reading.buckets.end(), [](const auto& a, const auto& b) { return a.at_most < b.at_most; });
      for (std::size_t i = 1; i < reading.buckets.size(); ++i)
        if (reading.buckets[i].at_most == reading.buckets[i - 1].at_most || reading.buckets[i].count < reading.buckets[i - 1].count)
          return fail(ErrorCode::kCorrupt, "the buckets of {} do not rise", reading.name);
      // Some leave the number out, which the last bucket tells as well.
      if (reading.value == 0 && !reading.buckets.empty() && std::isinf(reading.buckets.back().at_most))
        reading.value = reading.buckets.back().count;
    }
    return std::move(out_);
  }

 private:
  Status comment(std::string_view text) {
    if (text == " EOF") {
      ended_ = true;
      return {};
    }
    if (take_word(text) != "TYPE") return {};  // HELP, UNIT, and whatever people write
    const std::string_view name = take_word(text), word = take_word(text);
    const auto kind = kind_of(word);
    if (!is_metric_name(name) || name.size() > limits_.max_name || !kind || !take_word(text).empty())
      return fail(ErrorCode::kCorrupt, "a TYPE line is not '# TYPE name type'");
    if (kinds_.size() == kMostFamilies) return fail(ErrorCode::kExhausted, "it has more than {} metrics", kMostFamilies);
    if (untyped_.contains(std::string(name))) return fail(ErrorCode::kCorrupt, "the TYPE line of {} comes after its samples", name);
    if (!kinds_.emplace(name, *kind).second) return fail(ErrorCode::kCorrupt, "{} has two TYPE lines", name);
    return {};
  }

  std::optional<MetricKind> kind_named(const std::string& name) const {
    const auto found = kinds_.find(name);
    return found == kinds_.end() ? std::nullopt : std::optional(found->second);
  }

  Role role_of(std::string_view name) const {
    if (const auto kind = kind_named(std::string(name))) {
      const bool parts = *kind == MetricKind::kHistogram || *kind == MetricKind::kSummary;
      return {std::string(name), *kind, parts ? Part::kQuantile : Part::kValue};
    }
    constexpr std::pair<std::string_view, Part> kSuffixes[] = {
        {"_bucket", Part::kBucket}, {"_sum", Part::kSum}, {"_count", Part::kCount}, {"_created", Part::kCreated}};
    for (const auto& [suffix, part] : kSuffixes) {
      const std::string family = without_suffix(name, suffix);
      const auto kind = family.empty() ? std::nullopt : kind_named(family);
      const bool parts = kind == MetricKind::kHistogram || kind == MetricKind::kSummary;
      if (parts || (kind == MetricKind::kCounter && part == Part::kCreated)) return {family, *kind, part};
    }
    // OpenMetrics: the family foo has the samples foo_total or foo_info.
    for (const std::string_view suffix : {"_total", "_info"})
      if (const auto kind = kind_named(without_suffix(name, suffix))) return {std::string(name), *kind, Part::kValue};
    return {std::string(name), MetricKind::kUntyped, Part::kValue};
  }

  Status sample(std::string_view text) {
    WEIR_ASSIGN(SampleLine line, parse_sample_line(text, limits_));
    if (++out_.samples > limits_.max_series) return fail(ErrorCode::kExhausted, "it has more than {} samples", limits_.max_series);
    const Role role = role_of(line.name);
    if (role.kind == MetricKind::kUntyped) untyped_.insert(role.name);
    if (role.part == Part::kCreated || !wanted_(role.name)) return {};
    std::optional<std::string> bound;
    if (role.part == Part::kBucket) bound = take_label(line.labels, "le");
    if (role.part == Part::kQuantile) bound = take_label(line.labels, "quantile");
    if ((role.part == Part::kBucket || role.part == Part::kQuantile) && !bound)
      return fail(ErrorCode::kCorrupt, "a part of {} has no bound", role.name);
    // Each line once: a second value for the same labels would make the reading a matter of order.
    const std::string key = std::string(line.name) + '\n' + key_of(line.labels) + '\n' + bound.value_or("");
    if (!seen_.insert(key).second) return fail(ErrorCode::kCorrupt, "{} comes twice with the same labels", line.name);
    MetricReading* reading = reading_of(role, std::move(line.labels));
    return reading ? set(*reading, role.part, line.value, bound.value_or("")) : Status();
  }

  static std::optional<std::string> take_label(MetricLabels& labels, std::string_view name) {
    const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
    if (found == labels.end()) return std::nullopt;
    std::string value = std::move(found->second);
    labels.erase(found);
    return value;
  }

  // Lengths before the texts: no two sets of labels make the same key.
  static std::string key_of(const MetricLabels& labels) {
    std::string key;
    for (const auto& [name, value] : labels) key += fmt::format("{}={}:{},", name, value.size(), value);
    return key;
  }

  MetricReading* reading_of(const Role& role, MetricLabels labels) {
    const auto [found, is_new] = index_.emplace(role.name + '\n' + key_of(labels), out_.readings.size());
    if (!is_new) return found->second < out_.readings.size() ? &out_.readings[found->second] : nullptr;
    if (out_.readings.size() >= limits_.max_kept) {
      found->second = limits_.max_series;
      ++out_.left_out;
      return nullptr;
    }
    out_.readings.push_back({.name = role.name, .labels = std::move(labels), .kind = role.kind, .buckets = {}});
    return &out_.readings.back();
  }

  Status set(MetricReading& reading, Part part, double value, const std::string& bound) const {
    if (part == Part::kBucket) {
      const auto at_most = parse_metric_value(bound);
      if (!at_most || std::isnan(*at_most) || !(value >= 0)) return fail(ErrorCode::kCorrupt, "a bucket of {} is no bucket", reading.name);
      if (reading.buckets.size() == limits_.max_buckets) return fail(ErrorCode::kExhausted, "{} has too many buckets", reading.name);
      reading.buckets.push_back({*at_most, value});
    } else if (part == Part::kSum) {
      reading.sum = value;
    } else if (part != Part::kQuantile) {  // quantiles over a server's own time tell nothing of a run
      reading.value = value;
    }
    return {};
  }

  const std::function<bool(std::string_view)>& wanted_;
  const ExpositionLimits& limits_;
  Exposition out_;
  std::unordered_map<std::string, MetricKind> kinds_;
  std::unordered_map<std::string, std::size_t> index_;
  std::set<std::string> seen_, untyped_;
  bool ended_ = false;
};

}  // namespace

std::string_view kind_name(MetricKind kind) {
  constexpr std::string_view kNames[] = {"untyped", "gauge", "counter", "histogram", "summary"};
  return kNames[static_cast<int>(kind)];
}

std::string labels_text(const MetricLabels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

Result<Exposition> parse_exposition(std::string_view text, const std::function<bool(std::string_view)>& wanted,
                                    const ExpositionLimits& limits) {
  if (text.size() > limits.max_bytes) return fail(ErrorCode::kExhausted, "it has more than {} bytes", limits.max_bytes);
  if (!text.empty() && text.back() != '\n') return fail(ErrorCode::kCorrupt, "it does not end with a line feed: it may have been cut");
  Reader reader(wanted, limits);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    ++number;
    if (end - begin > limits.max_line) return fail(ErrorCode::kExhausted, "line {} is too long", number);
    if (auto status = reader.line(text.substr(begin, end - begin)); !status)
      return std::unexpected(std::move(status).error().with_context(fmt::format("line {}", number)));
    begin = end + 1;
  }
  return reader.finish();
}

}  // namespace weir::loadgen
