// SPDX-License-Identifier: Apache-2.0
#include "loadgen/observed_series.h"

#include <algorithm>
#include <cmath>

#include "loadgen/observed_names.h"
#include "loadgen/report_curves.h"

namespace weir::loadgen {
namespace {

constexpr int kQuantiles[] = {50, 90, 99};
constexpr std::size_t kMostLeftOut = 10'000;  // beyond, they are no longer counted apart

bool rises(MetricKind kind) { return kind == MetricKind::kCounter || kind == MetricKind::kHistogram || kind == MetricKind::kSummary; }

std::string key_of(const MetricReading& reading) {
  std::string key = reading.name;
  for (const auto& [name, value] : reading.labels) key += fmt::format("\n{}={}:{}", name, value.size(), value);
  return key;
}

bool same_bounds(const std::vector<HistogramBucket>& a, const std::vector<HistogramBucket>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return x.at_most == y.at_most; });
}

// What came between two readings of a histogram; all of the later one where the earlier does not fit it.
std::vector<HistogramBucket> difference(const MetricReading& before, const MetricReading& after) {
  std::vector<HistogramBucket> out = after.buckets;
  if (!same_bounds(before.buckets, after.buckets)) return out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i].count = std::max(0.0, out[i].count - before.buckets[i].count);
  return out;
}

json::Value number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json::Value(*value) : json::Value(nullptr);
}

}  // namespace

std::optional<double> bucket_quantile(const std::vector<HistogramBucket>& buckets, double q) {
  if (buckets.empty() || !(buckets.back().count > 0)) return std::nullopt;
  const double rank = q * buckets.back().count;
  double below = 0, begin = std::min(0.0, buckets.front().at_most);
  for (const HistogramBucket& bucket : buckets) {
    if (bucket.count >= rank && bucket.count > below) {
      if (std::isinf(bucket.at_most)) return begin;  // beyond the last bound nothing is known
      return begin + (bucket.at_most - begin) * std::clamp((rank - below) / (bucket.count - below), 0.0, 1.0);
    }
    below = bucket.count;
    if (std::isfinite(bucket.at_most)) begin = bucket.at_most;
  }
  return begin;
}

void SeriesStore::add(TimePoint at, const std::vector<MetricReading>& readings) {
  for (const MetricReading& reading : readings) {
    const std::string key = key_of(reading);
    auto found = series_.find(key);
    if (found == series_.end()) {
      if (series_.size() == kMostSeries) {
        if (left_out_.size() < kMostLeftOut) left_out_.insert(key);
        continue;
      }
      found = series_.emplace(key, Track{}).first;
      Track& track = found->second;
      track.first = track.latest = reading;
      track.begun = track.latest_at = at;
      // A series that was not there at an earlier reading began meanwhile, at zero.
      if (first_at_ && rises(reading.kind)) {
        track.first.value = track.first.sum = track.latest.value = track.latest.sum = 0;
        for (auto* buckets : {&track.first.buckets, &track.latest.buckets})
          for (HistogramBucket& bucket : *buckets) bucket.count = 0;
        track.begun = *first_at_;
      }
    }
    add_to(found->second, at, reading);
  }
  if (!first_at_) first_at_ = at;
}

void SeriesStore::add_to(Track& track, TimePoint at, const MetricReading& reading) {
  if (reading.kind == MetricKind::kHistogram && !same_bounds(track.first.buckets, reading.buckets)) {
    track.first = reading;  // other buckets: only what comes from here on can be told
    for (HistogramBucket& bucket : track.first.buckets) bucket.count = 0;
  }
  if (reading.value < track.latest.value) {
    ++track.resets;
    track.increase += reading.value;
    track.sum_increase += reading.sum;
    for (HistogramBucket& bucket : track.first.buckets) bucket.count = 0;
  } else {
    track.increase += reading.value - track.latest.value;
    track.sum_increase += reading.sum - track.latest.sum;
  }
  track.latest = reading;
  track.latest_at = at;
  const double scale = reading.kind == MetricKind::kHistogram ? 1.0 : meaning_of(reading.name).scale;
  const double value = reading.value * scale;
  // The first point stays as it is: what counters are told from.
  if (track.points.size() > 1 && track.points.back().count < track.stride) {
    Point& point = track.points.back();
    point.at = at;
    point.last = value;
    point.min = std::fmin(point.min, value);
    point.max = std::fmax(point.max, value);
    point.sum += value;
    ++point.count;
    return;
  }
  if (track.points.size() >= kMostPoints) {
    std::size_t kept = 1;
    for (std::size_t i = 1; i < track.points.size(); i += 2) {
      Point merged = track.points[i];
      if (i + 1 < track.points.size()) {
        const Point& next = track.points[i + 1];
        merged = {next.at,
                  next.last,
                  std::fmin(merged.min, next.min),
                  std::fmax(merged.max, next.max),
                  merged.sum + next.sum,
                  merged.count + next.count};
      }
      track.points[kept++] = merged;
    }
    track.points.resize(kept);
    track.stride *= 2;
  }
  track.points.push_back({at, value, value, value, value, 1});
}

SeriesFigures SeriesStore::figures_of(const Track& track, TimePoint from, TimePoint to) {
  const MetricKind kind = track.latest.kind;
  SeriesFigures out;
  out.name = track.latest.name, out.labels = track.latest.labels, out.kind = kind;
  const ObservedMeaning meaning = meaning_of(out.name);
  out.meaning = meaning.word, out.unit = meaning.unit, out.resets = track.resets;
  if (!rises(kind)) out.resets = 0;
  double sum = 0, count = 0;
  for (const Point& point : track.points) {
    if (point.at < from || point.at > to) continue;
    out.samples += point.count;
    if (!std::isfinite(point.sum)) continue;
    if (!out.first)
      out.first = point.count == 1 ? point.last : point.sum / static_cast<double>(point.count), out.min = out.max = point.last;
    out.min = std::min(*out.min, point.min), out.max = std::max(*out.max, point.max), out.last = point.last;
    sum += point.sum, count += static_cast<double>(point.count);
  }
  if (count > 0) out.mean = sum / count;
  if (rises(kind)) {
    const double scale = kind == MetricKind::kCounter ? meaning.scale : 1.0;
    out.first = track.first.value * scale, out.last = track.latest.value * scale, out.min = out.mean = out.max = std::nullopt;
    out.increase = track.increase * scale;
    const double seconds = to_seconds(track.latest_at - track.begun);
    if (seconds > 0) out.rate_per_s = *out.increase / seconds;
    if (kind != MetricKind::kCounter && track.increase > 0) out.mean = track.sum_increase / track.increase;
    if (kind == MetricKind::kHistogram) {
      const std::vector<HistogramBucket> between = difference(track.first, track.latest);
      for (const int per_cent : kQuantiles)
        if (const auto quantile = bucket_quantile(between, per_cent * 0.01)) out.quantiles.emplace_back(per_cent, *quantile);
    }
  }
  if (kind == MetricKind::kHistogram || kind == MetricKind::kSummary) return out;
  const std::size_t group = (track.points.size() + kMostTold - 1) / kMostTold;
  for (std::size_t begin = 0; begin < track.points.size(); begin += group) {
    const std::size_t end = std::min(begin + group, track.points.size());
    double of_group = 0, readings = 0;
    for (std::size_t i = begin; i < end; ++i) of_group += track.points[i].sum, readings += static_cast<double>(track.points[i].count);
    const Point& latest = track.points[end - 1];
    out.points.emplace_back(to_seconds(latest.at - from), rises(kind) ? latest.last : of_group / readings);
  }
  return out;
}

std::vector<SeriesFigures> SeriesStore::figures(TimePoint from, TimePoint to) const {
  std::vector<SeriesFigures> out;
  for (const auto& [key, track] : series_) out.push_back(figures_of(track, from, to));
  return out;
}

json::Object to_json(const SeriesFigures& f) {
  json::Object labels;
  for (const auto& [name, value] : f.labels) labels[name] = value;
  json::Object out{{"name", f.name}, {"labels", std::move(labels)}, {"kind", kind_name(f.kind)}, {"meaning", f.meaning}, {"unit", f.unit}};
  if (f.kind == MetricKind::kHistogram || f.kind == MetricKind::kSummary) {
    out["count"] = number(f.increase);
    out["rate_per_s"] = number(f.rate_per_s);
    out["mean"] = number(f.mean);
    out["resets"] = f.resets;
    json::Object quantiles;
    for (const auto& [per_cent, value] : f.quantiles) quantiles[fmt::format("p{}", per_cent)] = number(value);
    if (f.kind == MetricKind::kHistogram) out["estimated_quantiles"] = std::move(quantiles);
    return out;
  }
  out["samples"] = f.samples;
  out["first"] = number(f.first);
  if (f.kind == MetricKind::kCounter) {
    out["last"] = number(f.last);
    out["increase"] = number(f.increase);
    out["rate_per_s"] = number(f.rate_per_s);
    out["resets"] = f.resets;
  } else {
    for (const auto& [key, value] : {std::pair{"min", f.min}, {"mean", f.mean}, {"max", f.max}, {"last", f.last}}) out[key] = number(value);
  }
  json::Array times, values;
  for (const auto& [at, value] : f.points) {
    times.emplace_back(six_digits(at));
    values.push_back(std::isfinite(value) ? json::Value(f.kind == MetricKind::kCounter ? value : six_digits(value)) : json::Value(nullptr));
  }
  out["t"] = std::move(times);
  out["v"] = std::move(values);
  return out;
}

}  // namespace weir::loadgen
