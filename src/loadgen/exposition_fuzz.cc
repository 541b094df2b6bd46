// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a metrics endpoint answers, twice into a store, and what comes of it as JSON, text and figures.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "loadgen/observed_names.h"
#include "loadgen/observed_series.h"
#include "loadgen/observer.h"

namespace {

using namespace weir::loadgen;

void use(const Exposition& exposition, const ExpositionLimits& limits) {
  WEIR_CHECK(exposition.readings.size() <= limits.max_kept && exposition.readings.size() <= exposition.samples);
  SeriesStore store;
  weir::TimePoint at{};
  weir::json::Array series;
  for (int i = 0; i < 3; ++i) store.add(at += std::chrono::seconds(1), exposition.readings);
  for (const SeriesFigures& f : store.figures(weir::TimePoint{}, at)) {
    // The same three times: nothing that counts has moved.
    WEIR_CHECK(!f.increase || !(*f.increase > 0));
    if (f.min && f.max) WEIR_CHECK(*f.min <= *f.max);
    series.push_back(to_json(f));
  }
  const weir::json::Object seen{{"observations", weir::json::Object{{"series", std::move(series)}}}};
  WEIR_CHECK(weir::json::parse(boost::json::serialize(seen), "the JSON").has_value());
  WEIR_CHECK(observations_text(seen).find('\x1b') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ExpositionLimits limits;
  limits.max_series = 2000, limits.max_kept = 100, limits.max_buckets = 50, limits.max_line = 4096;
  static const SeriesFilter known = *SeriesFilter::make("");
  if (const auto all = parse_exposition(text, [](std::string_view) { return true; }, limits)) use(*all, limits);
  if (const auto some = parse_exposition(text, known, limits)) use(*some, limits);
  return 0;
}
