// SPDX-License-Identifier: Apache-2.0
// The report's plots of latencies: their distributions, how they grow with the load, and how the run went over time.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {
namespace {

constexpr std::size_t kMostOverlaid = 8;

}  // namespace

Plot time_plot(std::string title, std::string y_title, double width, double height) {
  return {.title = std::move(title),
          .x_title = "s from the start",
          .y_title = std::move(y_title),
          .log_x = false,
          .log_y = false,
          .series = {},
          .bands = {},
          .across = {},
          .down = {},
          .width = width,
          .height = height};
}

void add_bands(const Run& run, Plot& plot) {
  const double from = number_at(*run.json, {"steady", "from_s"}), to = number_at(*run.json, {"steady", "to_s"});
  double end = 0;
  for (const PlotSeries& series : plot.series)
    for (const double x : series.x) end = std::max(end, std::isfinite(x) ? x : 0);
  if (from > 0 && from < end) plot.bands.push_back({0, from, "warm-up"});
  if (to > 0 && to < end) plot.bands.push_back({to, end, "drain"});
}

namespace {

struct CurveTitle {
  const char* key;
  const char* title;
};
constexpr CurveTitle kCurves[] = {{"ttft_s", "Time to first token (TTFT)"},
                                  {"itl_s", "Between tokens (ITL)"},
                                  {"tpot_s", "Per output token (TPOT)"},
                                  {"e2e_s", "Whole answer (E2E)"}};

std::vector<double> times(std::vector<double> values, double unit) {
  for (double& value : values) value *= unit;
  return values;
}

// Milliseconds, or seconds where all is longer.
double unit_of(double largest_s) { return largest_s >= 10 ? 1 : 1e3; }
const char* unit_name(double unit) { return unit == 1 ? "s" : "ms"; }

double largest(const std::vector<double>& values) {
  double out = 0;
  for (const double value : values)
    if (std::isfinite(value)) out = std::max(out, value);
  return out;
}

double least_above_zero(const std::vector<double>& values) {
  double out = 1e300;
  for (const double value : values)
    if (value > 0) out = std::min(out, value);
  return out;
}

std::string curve_figure(const std::vector<Run>& runs, const CurveTitle& what) {
  Plot plot{.title = what.title,
            .x_title = "",
            .y_title = "% of samples at most",
            .log_x = false,
            .log_y = false,
            .series = {},
            .bands = {},
            .across = {},
            .down = {}};
  Table table{.header = {"Run"}, .rows = {}};
  double most = 0, least = 1e300;
  for (const Run& run : runs) {
    const std::vector<double> values = numbers_at(*run.json, {"curves", what.key});
    if (values.empty()) continue;
    most = std::max(most, largest(values));
    least = std::min(least, least_above_zero(values));
  }
  if (most <= 0) return {};
  const double unit = unit_of(most);
  for (const Run& run : runs) {
    const std::vector<double> values = numbers_at(*run.json, {"curves", what.key}),
                              quantiles = numbers_at(*run.json, {"curves", "quantiles"});
    if (values.empty() || quantiles.size() != values.size()) continue;
    plot.series.push_back({.name = run.name, .x = times(values, unit), .y = quantiles, .colour = static_cast<int>(plot.series.size())});
    std::vector<std::string> cells{run.name};
    table.header = {"Run"};
    for (const double wanted : {1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0}) {
      const auto found = std::find(quantiles.begin(), quantiles.end(), wanted);
      if (found == quantiles.end()) continue;
      table.header.push_back(fmt::format("p{:g}", wanted));
      cells.push_back(time_text(values[static_cast<std::size_t>(found - quantiles.begin())]));
    }
    table.rows.push_back(std::move(cells));
  }
  if (plot.series.empty()) return {};
  plot.log_x = most > 30 * least;
  plot.x_title = unit_name(unit);
  return figure(plot, table);
}

double p_of(const Run& run, const char* latency, const char* percentile) {
  return number_at(*run.json, {"latency", latency, "percentiles", percentile});
}

bool holds(const Run& run, double attainment) {
  const json::Value* valid = value_at(*run.json, {"valid"});
  return valid && valid->is_bool() && valid->get_bool() &&
         number_at(*run.json, {"good_requests"}) >= attainment * number_at(*run.json, {"requests"});
}

// A latency against what the server did at each level, in the order of the load.
std::string level_figure(const std::vector<Run>& runs, const char* latency, const char* title, const char* slo, double knee) {
  Plot plot{.title = title,
            .x_title = "requests/s answered",
            .y_title = "",
            .log_x = false,
            .log_y = false,
            .series = {},
            .bands = {},
            .across = {},
            .down = {}};
  PlotSeries p50{.name = "median", .x = {}, .y = {}, .colour = 0, .dots = true},
      p99{.name = "p99", .x = {}, .y = {}, .colour = 1, .dots = true};
  Table table{.header = {"Load", "requests/s", "output tokens/s", "median", "p99", "good", ""}, .rows = {}};
  double most = 0, least = 1e300;
  for (const Run& run : runs) most = std::max(most, std::max(0.0, p_of(run, latency, "p99")));
  if (!(most > 0)) return {};
  const double unit = unit_of(most);
  for (const Run& run : runs) {
    const double rate = number_at(*run.json, {"request_rate"});
    p50.x.push_back(rate), p99.x.push_back(rate);
    p50.y.push_back(p_of(run, latency, "p50") * unit), p99.y.push_back(p_of(run, latency, "p99") * unit);
    if (p50.y.back() > 0) least = std::min(least, p50.y.back());
    const double good = number_at(*run.json, {"good_requests"}) / number_at(*run.json, {"requests"});
    const json::Value* valid = value_at(*run.json, {"valid"});
    table.rows.push_back({run.name, number_text(rate), number_text(number_at(*run.json, {"output_tokens_per_s"})),
                          time_text(p50.y.back() / unit), time_text(p99.y.back() / unit), share_text(good),
                          valid && valid->is_bool() && !valid->get_bool() ? "INVALID" : ""});
  }
  plot.series = {p50, p99};
  plot.log_y = most * unit > 20 * least;
  plot.y_title = unit_name(unit);
  const double objective = number_at(*runs.front().json, {"slo_s", slo});
  if (objective > 0) plot.across.push_back({objective * unit, "objective " + time_text(objective)});
  if (std::isfinite(knee)) plot.down.push_back({knee, "highest that holds"});
  return figure(plot, table);
}

std::vector<double> middles(std::size_t count, double window) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back((static_cast<double>(i) + 0.5) * window);
  return out;
}

struct LineTitle {
  const char* key;
  const char* name;
  int colour;
  bool dashed, area;
};

std::string time_figure(const Run& run, const char* title, const char* y_title, std::initializer_list<LineTitle> lines, bool latency) {
  const double window = number_at(*run.json, {"timeline", "window_s"});
  if (!(window > 0)) return {};
  Plot plot = time_plot(title, y_title, 1080, 230);
  Table table{.header = {"s"}, .rows = {}};
  double most = 0, least = 1e300;
  for (const LineTitle& line : lines) {
    std::vector<double> values = numbers_at(*run.json, {"timeline", line.key});
    if (values.empty() || largest(values) <= 0) continue;
    most = std::max(most, largest(values));
    least = std::min(least, least_above_zero(values));
    table.header.emplace_back(line.name);
    const std::vector<double> x = middles(values.size(), window);
    plot.series.push_back({.name = line.name,
                           .x = x,
                           .y = std::move(values),
                           .colour = line.colour,
                           .dots = false,
                           .dashed = line.dashed,
                           .area = line.area});
  }
  if (plot.series.empty()) return {};
  const double unit = latency ? unit_of(most) : 1;
  if (latency) {
    plot.y_title = unit_name(unit);
    plot.log_y = most > 20 * least;
    for (PlotSeries& series : plot.series) series.y = times(std::move(series.y), unit);
  }
  for (std::size_t i = 0; i < plot.series[0].x.size(); ++i) {
    table.rows.push_back({number_text(plot.series[0].x[i])});
    for (const PlotSeries& series : plot.series) table.rows.back().push_back(i < series.y.size() ? number_text(series.y[i]) : "–");
  }
  add_bands(run, plot);
  return figure(plot, table);
}

// A dot per request, from raw samples.
std::string dots_figure(const Run& run) {
  const std::vector<double> at = numbers_at(*run.json, {"dots", "scheduled_s"}), ttft = numbers_at(*run.json, {"dots", "ttft_s"}),
                            e2e = numbers_at(*run.json, {"dots", "e2e_s"});
  if (at.empty()) return {};
  const double most = std::max(largest(ttft), largest(e2e)), unit = unit_of(most);
  Plot plot{.title = "Each request",
            .x_title = "s from the start, when it was due",
            .y_title = unit_name(unit),
            .log_x = false,
            .log_y = most > 20 * std::min(least_above_zero(ttft), least_above_zero(e2e)),
            .series = {},
            .bands = {},
            .across = {},
            .down = {},
            .width = 1080,
            .height = 260};
  const auto add = [&](const char* name, const std::vector<double>& values, int colour) {
    if (largest(values) > 0) plot.series.push_back({.name = name, .x = at, .y = times(values, unit), .colour = colour, .scatter = true});
  };
  add("E2E", e2e, 3);
  add("TTFT", ttft, 0);
  return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>", escaped(plot.title), to_svg(plot));
}

}  // namespace

std::string curves_of(const std::vector<Run>& runs) {
  const std::vector<Run> shown(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(std::min(runs.size(), kMostOverlaid)));
  std::string out;
  for (const CurveTitle& what : kCurves) out += curve_figure(shown, what);
  if (out.empty()) return {};
  out = "<div class=\"plots\">" + out + "</div>";
  if (runs.size() > shown.size()) out += paragraph(fmt::format("The first {} of {} runs.", shown.size(), runs.size()));
  return out;
}

double load_of(const Run& run) {
  const double rate = number_at(*run.json, {"rate"});
  return rate > 0 ? rate : std::max(0.0, number_at(*run.json, {"concurrency"}));
}

const Run* highest_that_holds(const std::vector<Run>& runs, double attainment, double highest) {
  const Run* found = nullptr;
  for (const Run& run : runs) {
    const bool passes = std::isfinite(highest) ? load_of(run) == highest : !text_at(*run.json, {"slo"}).empty() && holds(run, attainment);
    if (passes && (!found || load_of(run) > load_of(*found))) found = &run;
  }
  return found;
}

std::string levels_of(const std::vector<Run>& runs, const Run* held) {
  if (runs.size() < 2) return {};
  std::vector<Run> sorted = runs;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Run& a, const Run& b) { return load_of(a) < load_of(b); });
  const double knee = held ? number_at(*held->json, {"request_rate"}) : std::nan("");
  std::string out = level_figure(sorted, "ttft_s", "Time to first token (TTFT) by load", "ttft", knee) +
                    level_figure(sorted, "tpot_s", "Per output token (TPOT) by load", "tpot", knee) +
                    level_figure(sorted, "e2e_s", "Whole answer (E2E) by load", "e2e", knee);
  if (out.empty()) return {};
  out = "<div class=\"plots\">" + out + "</div>";
  const std::string objective = text_at(*sorted.front().json, {"slo"});
  if (held)
    out += paragraph(fmt::format("The highest load of these that holds the objective ({}): {}.", objective, held->name));
  else if (!objective.empty())
    out += paragraph(fmt::format("None of these loads holds the objective ({}).", objective));
  return out;
}

std::string timeline_of(const Run& run) {
  std::string out =
      time_figure(run, "Requests per second", "requests/s",
                  {{"scheduled_per_s", "due", 7, true, false},
                   {"completed_per_s", "answered", 0, false, false},
                   {"failed_per_s", "failed", 1, false, false}},
                  false) +
      time_figure(run, "Output tokens per second", "tokens/s", {{"output_tokens_per_s", "output tokens/s", 2, false, true}}, false) +
      time_figure(run, "Requests in flight", "requests", {{"in_flight", "in flight", 3, false, true}}, false) +
      time_figure(run, "Latencies by the moment at which requests were due", "ms",
                  {{"ttft_p50_s", "TTFT median", 0, false, false},
                   {"ttft_p99_s", "TTFT p99", 0, true, false},
                   {"e2e_p50_s", "E2E median", 3, false, false},
                   {"e2e_p99_s", "E2E p99", 3, true, false}},
                  true) +
      dots_figure(run);
  return out.empty() ? out : "<div class=\"plots wide\">" + out + "</div>";
}

}  // namespace weir::loadgen::html
