// SPDX-License-Identifier: Apache-2.0
// The report's sections that are words and tables.
#include <fmt/core.h>

#include <cmath>

#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {
namespace {

constexpr std::size_t kMostLines = 50, kMostDepth = 4;

const json::Value* member(const json::Object& object, std::string_view key) { return value_at(object, {key}); }

std::string seed_text(const json::Object& object) {
  const json::Value* seed = member(object, "seed");
  return seed && seed->is_number() ? boost::json::serialize(*seed) : "not known";
}

bool flag(const json::Object& object, std::string_view key) {
  const json::Value* value = member(object, key);
  return value && value->is_bool() && value->get_bool();
}

std::string tile(const std::string& figure, std::string_view what) {
  return figure == "–" ? std::string() : fmt::format("<div><b>{}</b><span>{}</span></div>", escaped(figure), escaped(what));
}

std::string list(const json::Array& lines) {
  std::string out;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    if (lines[i].is_string()) out += "<li>" + escaped(cut(lines[i].get_string(), 500)) + "</li>";
  return out.empty() ? out : "<ul>" + out + "</ul>";
}

std::string badge(std::string_view text, const char* style) {
  return fmt::format("<span class=\"badge {}\">{}</span>", style, escaped(text));
}

// Numbers and texts of an object, and of those in it, as rows.
void flatten(const json::Object& object, const std::string& prefix, std::size_t depth, Table& table) {
  for (const auto& [key, value] : object) {
    if (table.rows.size() > 200) return;
    const std::string name = prefix + cut(key, 60);
    if (value.is_number())
      table.rows.push_back({name, fmt::format("{:.6g}", value.to_number<double>())});
    else if (value.is_string())
      table.rows.push_back({name, cut(value.get_string(), 200)});
    else if (value.is_bool())
      table.rows.push_back({name, value.get_bool() ? "yes" : "no"});
    else if (value.is_object() && depth < kMostDepth)
      flatten(value.get_object(), name + " · ", depth + 1, table);
  }
}

struct LatencyRow {
  const char* key;
  const char* title;
  bool seconds;
};
constexpr LatencyRow kLatencies[] = {{"ttft_s", "Time to first token (TTFT)", true},
                                     {"itl_s", "Between tokens (ITL)", true},
                                     {"tpot_s", "Per output token (TPOT)", true},
                                     {"e2e_s", "Whole answer (E2E)", true},
                                     {"queue_s", "Server: queue", true},
                                     {"prefill_s", "Server: prefill", true},
                                     {"decode_s", "Server: decode", true},
                                     {"tokens_per_s_per_user", "Tokens/s per user", false}};

}  // namespace

std::string head_of(const Run& run) {
  const json::Object& j = *run.json;
  std::string out = fmt::format("<h1>{} {}</h1>", escaped(text_at(j, {"model"}).empty() ? "Load report" : text_at(j, {"model"})),
                                flag(j, "valid") ? badge("VALID", "good") : badge("INVALID", "bad"));
  out += paragraph(text_at(j, {"target"}));
  out += paragraph(fmt::format("{}; prompts: {}; seed {}", text_at(j, {"load"}), text_at(j, {"prompts"}), seed_text(j)));
  if (!flag(j, "valid")) out += "<div class=\"bad\">" + list(array_at(j, {"reasons"})) + "</div>";
  return out + list(array_at(j, {"notes"}));
}

std::string tiles_of(const Run& run) {
  const json::Object& j = *run.json;
  const double requests = number_at(j, {"requests"}), answered = number_at(j, {"answered"});
  std::string out = tile(number_text(number_at(j, {"request_rate"})), "requests/s answered") +
                    tile(number_text(number_at(j, {"output_tokens_per_s"})), "output tokens/s") +
                    tile(time_text(number_at(j, {"latency", "ttft_s", "percentiles", "p50"})), "TTFT, median") +
                    tile(time_text(number_at(j, {"latency", "ttft_s", "percentiles", "p99"})), "TTFT, p99") +
                    tile(time_text(number_at(j, {"latency", "tpot_s", "percentiles", "p50"})), "TPOT, median") +
                    tile(time_text(number_at(j, {"latency", "e2e_s", "percentiles", "p99"})), "E2E, p99");
  if (!text_at(j, {"slo"}).empty())
    out += tile(share_text(number_at(j, {"good_requests"}) / requests), "good: " + text_at(j, {"slo"})) +
           tile(number_text(number_at(j, {"goodput"})), "good requests/s");
  out += tile(fmt::format("{} / {}", number_text(answered), number_text(requests)), "answered / due");
  return "<div class=\"tiles\">" + out + "</div>";
}

std::string verdict_of(const Run& run) {
  const json::Array& criteria = array_at(*run.json, {"verdict", "criteria"});
  if (criteria.empty()) return {};
  Table table{.header = {"Criterion", "Figure", "Bound", "Result", "What it is"}, .rows = {}, .words = true};
  for (const json::Value& item : criteria) {
    const json::Object* c = item.if_object();
    if (!c) continue;
    const double bound = number_at(*c, {"bound"});
    const char* sign = text_at(*c, {"direction"}) == "at_least" ? "≥ " : "≤ ";
    table.rows.push_back({text_at(*c, {"name"}), number_text(number_at(*c, {"figure"})),
                          std::isnan(bound) ? "none" : sign + number_text(bound), text_at(*c, {"state"}), text_at(*c, {"title"})});
  }
  const std::string outcome = text_at(*run.json, {"verdict", "outcome"}), profile = text_at(*run.json, {"verdict", "profile"});
  const char* style = outcome == "pass" ? "good" : outcome == "fail" ? "bad" : "warn";
  return fmt::format("<p>{}{}</p>", badge(outcome, style), profile.empty() ? "" : " as profile " + escaped(profile)) + to_html(table);
}

std::string bottleneck_of(const Run& run) {
  const std::string text = text_at(*run.json, {"bottleneck", "text"});
  if (text.empty()) return {};
  const json::Value* measured = value_at(*run.json, {"bottleneck", "measured"});
  const bool known = text_at(*run.json, {"bottleneck", "bound"}) != "not_known";
  const bool is_measured = measured && measured->is_bool() && measured->get_bool();
  std::string out = fmt::format("<p>{} {}</p>",
                                !known        ? badge("not known", "warn")
                                : is_measured ? badge("measured", "good")
                                              : badge("likely", "warn"),
                                escaped(text));
  std::string findings;
  for (const json::Value& item : array_at(*run.json, {"bottleneck", "findings"}))
    if (const json::Object* finding = item.if_object()) findings += "<li>" + escaped(text_at(*finding, {"text"})) + "</li>";
  return out + (findings.empty() ? "" : "<ul class=\"soft\">" + findings + "</ul>");
}

std::string latencies_of(const std::vector<Run>& runs) {
  Table table{.header = {"", "mean", "p50", "p90", "p95", "p99", "p99.9", "max", "samples"}, .rows = {}};
  for (const LatencyRow& row : kLatencies)
    for (const Run& run : runs) {
      const double count = number_at(*run.json, {"latency", row.key, "count"});
      if (!(count > 0)) continue;
      const auto text = [&](double value) { return row.seconds ? time_text(value) : number_text(value); };
      std::vector<std::string> cells{runs.size() > 1 ? fmt::format("{}, {}", row.title, run.name) : row.title,
                                     text(number_at(*run.json, {"latency", row.key, "mean"}))};
      for (const char* p : {"p50", "p90", "p95", "p99", "p99.9"})
        cells.push_back(text(number_at(*run.json, {"latency", row.key, "percentiles", p})));
      cells.push_back(text(number_at(*run.json, {"latency", row.key, "max"})));
      cells.push_back(fmt::format("{:.0f}", count));
      table.rows.push_back(std::move(cells));
    }
  return table.rows.empty() ? std::string() : to_html(table);
}

std::string energy_of(const std::vector<Run>& runs) {
  std::string out;
  for (const Run& run : runs) {
    const json::Value* energy = member(*run.json, "energy");
    if (!energy || !energy->is_object()) continue;
    Table table{.header = {"", "value"}, .rows = {}};
    flatten(energy->get_object(), "", 0, table);
    if (runs.size() > 1) out += "<h3>" + escaped(run.name) + "</h3>";
    if (flag(energy->get_object(), "estimate"))
      out += "<p>" + badge("estimate", "warn") + " Power was declared or inferred, not measured.</p>";
    out += to_html(table);
  }
  return out;
}

std::string generator_of(const std::vector<Run>& runs) {
  Table table{.header = {"", "sent late, p50", "p99", "max", "read late, p99", "busy", "waited for a processor", "connections"},
              .rows = {}};
  for (const Run& run : runs) {
    const auto at = [&](Path path) { return number_at(*run.json, path); };
    if (std::isnan(at({"generator", "busy_share"}))) continue;
    table.rows.push_back({runs.size() > 1 ? run.name : "generator", time_text(at({"generator", "late_s", "percentiles", "p50"})),
                          time_text(at({"generator", "late_s", "percentiles", "p99"})), time_text(at({"generator", "late_s", "max"})),
                          time_text(at({"generator", "read_lag_s", "p99"})), share_text(at({"generator", "busy_share"})),
                          share_text(at({"generator", "run_queue_share"})), number_text(at({"generator", "connections_opened"}))});
  }
  if (table.rows.empty()) return {};
  Table errors{.header = {"Run", "What went wrong", "Requests"}, .rows = {}};
  for (const Run& run : runs)
    if (const json::Value* value = member(*run.json, "errors"); value && value->is_object())
      for (const auto& [name, count] : value->get_object())
        if (count.is_number() && count.to_number<double>() > 0)
          errors.rows.push_back({run.name, cut(name, 40), number_text(count.to_number<double>())});
  std::string out = to_html(table);
  if (!errors.rows.empty()) out += "<h3>Errors</h3>" + to_html(errors);
  for (const Run& run : runs)
    if (const std::string first = text_at(*run.json, {"first_error"}); !first.empty()) out += paragraph("The first error: " + first);
  return out;
}

std::string compare_of(const Run& run) {
  Table table{.header = {"", "A", "B", "B/A", "interval", "verdict"}, .rows = {}};
  for (const json::Value& item : array_at(*run.json, {"metrics"})) {
    const json::Object* m = item.if_object();
    if (!m) continue;
    const std::vector<double> interval = numbers_at(*m, {"interval"});
    table.rows.push_back({text_at(*m, {"metric"}), number_text(number_at(*m, {"a"})), number_text(number_at(*m, {"b"})),
                          number_text(number_at(*m, {"ratio"})),
                          interval.size() == 2 ? fmt::format("{} … {}", number_text(interval[0]), number_text(interval[1])) : "–",
                          text_at(*m, {"verdict"})});
  }
  if (table.rows.empty()) return {};
  return paragraph("A: " + text_at(*run.json, {"a"})) + paragraph("B: " + text_at(*run.json, {"b"})) +
         (flag(*run.json, "regression") ? badge("B is a regression", "bad") : badge("no regression", "good")) + to_html(table);
}

}  // namespace weir::loadgen::html
