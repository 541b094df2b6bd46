// SPDX-License-Identifier: Apache-2.0
// One self-contained page from saved results: inline style and SVG, no script, nothing loaded from anywhere, light, dark and printable,
// with the figures of every plot in a table below it. Whatever the results say is text to the page: it is escaped, bounded, and never
// trusted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/records.h"

namespace weir::loadgen {

struct ReportFile {
  std::string name;  // of the file, for its title
  json::Object json;
};

// Of one or more results of `weir bench load` (single or of several levels) or `compare`, or run records that hold such.
Result<std::string> html_report(std::span<const ReportFile> files);

// Puts what raw samples tell into a result that lacks it (curves, timeline), and a dot per request.
Status add_samples(json::Object& result, std::span<const RunResult> levels);

}  // namespace weir::loadgen
