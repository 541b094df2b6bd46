// SPDX-License-Identifier: Apache-2.0
// From samples to Prometheus' text: each row of the table takes the samples of its quantity under its own name, labels and buckets.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>

#include "base/check.h"
#include "telemetry/metric_books.h"

namespace weir::telemetry {
namespace {

prometheus::MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter: return prometheus::MetricType::Counter;
    case MetricKind::kGauge: return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram: break;
  }
  return prometheus::MetricType::Histogram;
}

// The row's label names in order, with the sample's values; "engine" is not among those.
std::vector<prometheus::ClientMetric::Label> labels_of(const MetricRow& row, const std::vector<std::string>& values) {
  std::vector<prometheus::ClientMetric::Label> labels;
  std::string_view rest = row.labels;
  std::size_t used = 0;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name == "engine") {
      labels.push_back({std::string(name), "0"});
    } else {
      WEIR_CHECK(used < values.size());
      labels.push_back({std::string(name), values[used++]});
    }
  }
  WEIR_CHECK(used == values.size());
  return labels;
}

prometheus::ClientMetric::Histogram histogram_of(const MetricRow& row, const HistogramReading& reading) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_count = reading.total();
  histogram.sample_sum = reading.sum;
  for (const double bound : row.buckets) histogram.bucket.push_back({reading.at_most(bound), bound});
  histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  return histogram;
}

prometheus::ClientMetric metric_of(const MetricRow& row, const Sample& sample) {
  prometheus::ClientMetric metric;
  metric.label = labels_of(row, sample.labels);
  switch (row.kind) {
    case MetricKind::kCounter: metric.counter.value = sample.value; break;
    case MetricKind::kGauge: metric.gauge.value = sample.value; break;
    case MetricKind::kHistogram: WEIR_CHECK(sample.histogram.has_value()); metric.histogram = histogram_of(row, *sample.histogram);
  }
  return metric;
}

}  // namespace

std::string exposition(const Samples& samples) {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricRow& row : metric_table()) {
    const auto& of_row = samples.of(row.quantity);
    if (of_row.empty()) continue;
    prometheus::MetricFamily family{.name = std::string(row.name), .help = std::string(row.help), .type = type_of(row.kind), .metric = {}};
    for (const Sample& sample : of_row) family.metric.push_back(metric_of(row, sample));
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace weir::telemetry
