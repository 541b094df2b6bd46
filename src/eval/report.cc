// SPDX-License-Identifier: Apache-2.0
#include "eval/report.h"

#include <fmt/core.h>

namespace weir::eval {
namespace {

std::string figures_text(const json::Object& figures) {
  std::string text;
  for (const auto& [key, value] : figures) {
    if (!text.empty()) text += ", ";
    const std::string number = value.is_double() ? fmt::format("{:.6g}", value.get_double()) : boost::json::serialize(value);
    text += fmt::format("{} {}", std::string_view(key), number);
  }
  return text;
}

}  // namespace

json::Object to_json(const FileReport& report) {
  json::Array cases;
  for (const CaseResult& c : report.cases) {
    json::Object entry{{"name", c.name}, {"ok", c.ok}};
    if (!c.detail.empty()) entry["detail"] = c.detail;
    for (const auto& [key, value] : c.figures) entry[key] = value;
    cases.push_back(std::move(entry));
  }
  json::Array problems;
  for (const std::string& p : report.problems) problems.emplace_back(p);
  json::Object out{{"file", report.file}, {"format", report.format}, {"ok", report.ok}};
  for (const auto& [key, value] : report.summary) out[key] = value;
  out["problems"] = std::move(problems);
  out["cases"] = std::move(cases);
  return out;
}

std::string to_text(const FileReport& report) {
  std::size_t held = 0;
  for (const CaseResult& c : report.cases) held += c.ok;
  std::string text = fmt::format("{} ({}): {} of {} cases hold; {}\n", report.file, report.format, held, report.cases.size(),
                                 figures_text(report.summary));
  for (const CaseResult& c : report.cases)
    if (!c.ok) text += fmt::format("  FAILED {}: {} ({})\n", c.name, c.detail, figures_text(c.figures));
  for (const std::string& p : report.problems) text += fmt::format("  FAILED {}\n", p);
  return text;
}

}  // namespace weir::eval
