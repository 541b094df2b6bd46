// SPDX-License-Identifier: Apache-2.0
// Any bytes as what reports and reruns read: samples in both forms, run records, and results that are made into a page. No script gets onto
// the page, whatever they say.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "loadgen/bottleneck.h"
#include "loadgen/metrics.h"
#include "loadgen/profile.h"
#include "loadgen/report_curves.h"
#include "loadgen/report_html.h"
#include "loadgen/report_record.h"
#include "loadgen/report_samples.h"

namespace {

using namespace weir;
using namespace weir::loadgen;

void read_samples(std::string_view bytes, SampleFormat format) {
  const auto levels = parse_samples(bytes, format);
  if (!levels) return;
  for (const RunResult& level : *levels) {
    (void)curves_json(level);
    (void)timeline_json(level);
    const Summary summary = summarize(level, {});
    (void)find_bottleneck(summary, {});
    (void)judge(Profile::kEmbedded, {}, summary, facts_of(level, {}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_samples(bytes, SampleFormat::kCsv);
  read_samples(bytes, SampleFormat::kJsonl);
  (void)parse_requirements(bytes);
  const auto value = json::parse(bytes, "fuzz");
  if (!value) return 0;
  if (const auto record = parse_record(*value)) {
    WEIR_CHECK(record->command.size() >= 2 && record->command[0] == "bench");
    (void)to_text(compare_records(*record, *record, 0.1));
    (void)without_secrets(record->command);
  }
  if (!value->is_object()) return 0;
  (void)find_bottleneck({}, bottleneck_input(value->get_object()));
  (void)facts_of({}, value->get_object());
  const ReportFile files[] = {{"a", value->get_object()}, {"<b>", value->get_object()}};
  for (const std::size_t count : {1, 2})
    if (const auto page = html_report(std::span(files).first(count))) WEIR_CHECK(page->find("<script") == std::string::npos);
  return 0;
}
