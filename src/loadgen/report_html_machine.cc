// SPDX-License-Identifier: Apache-2.0
// The report's sections on where time went and what of the machine was used: breakdown, limits, observed series.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {
namespace {

constexpr std::size_t kMostSeries = 24, kMostPoints = 2000;

double mean_of(const Run& run, const char* latency) {
  const double count = number_at(*run.json, {"latency", latency, "count"});
  return count > 0 ? number_at(*run.json, {"latency", latency, "mean"}) : std::nan("");
}

// A mean answer as the server took it apart, or as the client sees it.
std::vector<BarPart> parts_of(const Run& run, double whole) {
  std::vector<BarPart> parts;
  double rest = whole;
  const auto add = [&](const char* name, double seconds, int colour) {
    if (!(seconds > 0)) return;
    parts.push_back({name, fmt::format("{} ({:.0f} %)", time_text(seconds), 100 * seconds / whole), seconds, colour});
    rest -= seconds;
  };
  const double ttft = mean_of(run, "ttft_s"), prefill = mean_of(run, "prefill_s");
  if (std::isfinite(prefill)) {
    add("queue", mean_of(run, "queue_s"), 1);
    add("prefill", prefill, 0);
    add("decode", mean_of(run, "decode_s"), 2);
    if (rest > 0.001 * whole) add("network, server's front, waiting to send", rest, 7);
    return parts;
  }
  if (!std::isfinite(ttft)) return parts;
  add("to the first token (waiting, queue, prefill)", ttft, 0);
  add("decode", rest, 2);
  return parts;
}

Table table_of(const std::vector<BarPart>& parts) {
  Table table{.header = {"Part", "mean"}, .rows = {}};
  for (const BarPart& part : parts) table.rows.push_back({part.name, part.text});
  return table;
}

struct Limit {
  const char* key;
  const char* title;
  int colour;
};
constexpr Limit kLimits[] = {{"mfu", "Multiply-adds (MFU)", 0}, {"bandwidth_utilisation", "Memory bandwidth", 2}};

// Operations a second against operations a byte, under the roofs of memory and of arithmetic.
std::string roofline(const Run& run) {
  const double flops = number_at(*run.json, {"work", "flops_per_request"}), bytes = number_at(*run.json, {"work", "bytes_per_request"});
  const double mfu = number_at(*run.json, {"work", "mfu"}), used = number_at(*run.json, {"work", "bandwidth_utilisation"}),
               rate = number_at(*run.json, {"request_rate"});
  if (!(flops > 0) || !(bytes > 0) || !(mfu > 0) || !(used > 0) || !(rate > 0)) return {};
  // The limits follow from what was used of them.
  const double done = flops * rate, peak = done / mfu, bandwidth = bytes * rate / used, intensity = flops / bytes;
  const double low = std::min(intensity, peak / bandwidth) / 10, high = std::max(intensity, peak / bandwidth) * 10;
  Plot plot{.title = "Roofline",
            .x_title = "operations per byte read",
            .y_title = "Gop/s",
            .log_x = true,
            .log_y = true,
            .series = {},
            .bands = {},
            .across = {},
            .down = {}};
  PlotSeries roof{.name = "limit of the machine", .x = {}, .y = {}, .colour = 7};
  for (const double x : {low, peak / bandwidth, high}) {
    roof.x.push_back(x);
    roof.y.push_back(std::min(peak, x * bandwidth) * 1e-9);
  }
  plot.series = {roof, {.name = "this run", .x = {intensity}, .y = {done * 1e-9}, .colour = 1, .dots = true}};
  const Table table{.header = {"", "Gop/s", "operations per byte"},
                    .rows = {{"this run", number_text(done * 1e-9), number_text(intensity)},
                             {"the machine", number_text(peak * 1e-9), number_text(peak / bandwidth)}}};
  return figure(plot, table);
}

std::string labels_text(const json::Object& series) {
  const json::Value* labels = value_at(series, {"labels"});
  if (!labels) return {};
  if (labels->is_string()) return cut(labels->get_string(), 80);
  std::string out;
  if (const json::Object* object = labels->if_object())
    for (const auto& [key, value] : *object)
      if (value.is_string() && out.size() < 80)
        out += fmt::format("{}{}={}", out.empty() ? "" : ", ", cut(key, 30), cut(value.get_string(), 30));
  return out;
}

}  // namespace

std::string breakdown_of(const std::vector<Run>& runs) {
  std::string out;
  for (const Run& run : runs) {
    const double whole = mean_of(run, "e2e_s");
    if (!(whole > 0)) continue;
    const std::vector<BarPart> parts = parts_of(run, whole);
    if (parts.empty()) continue;
    const std::string title = fmt::format("{}: a mean answer of {}", run.name, time_text(whole));
    out += fmt::format("<figure><figcaption>{}</figcaption>{}<details><summary>Figures</summary>{}</details></figure>", escaped(title),
                       bar_svg(title, parts, whole), to_html(table_of(parts)));
  }
  return out.empty() ? out : "<div class=\"plots wide\">" + out + "</div>";
}

std::string limits_of(const std::vector<Run>& runs) {
  std::string out;
  Table table{.header = {"Run", "operations per request", "bytes per request", "MFU", "memory bandwidth used"}, .rows = {}};
  for (const Run& run : runs) {
    if (!value_at(*run.json, {"work"})) continue;
    std::string bars;
    for (const Limit& limit : kLimits) {
      const double share = number_at(*run.json, {"work", limit.key});
      if (share > 0) bars += bar_svg(limit.title, {{limit.title, share_text(share), share, limit.colour}}, 1);
    }
    if (!bars.empty())
      out += fmt::format("<figure><figcaption>{}: share of the machine's limits</figcaption>{}</figure>", escaped(run.name), bars);
    out += roofline(run);
    table.rows.push_back({run.name, number_text(number_at(*run.json, {"work", "flops_per_request"})),
                          number_text(number_at(*run.json, {"work", "bytes_per_request"})),
                          share_text(number_at(*run.json, {"work", "mfu"})),
                          share_text(number_at(*run.json, {"work", "bandwidth_utilisation"}))});
  }
  if (table.rows.empty()) return {};
  return "<div class=\"plots\">" + out + "</div>" + to_html(table);
}

std::string observations_of(const Run& run) {
  std::string out;
  std::size_t shown = 0, left_out = 0;
  for (const json::Value& item : array_at(*run.json, {"observations", "series"})) {
    const json::Object* series = item.if_object();
    if (!series) continue;
    std::vector<double> t = numbers_at(*series, {"t"}), v = numbers_at(*series, {"v"});
    if (t.empty() || t.size() != v.size()) continue;
    if (shown == kMostSeries) {
      ++left_out;
      continue;
    }
    ++shown;
    t.resize(std::min(t.size(), kMostPoints));
    v.resize(t.size());
    const std::string name = text_at(*series, {"name"}), labels = labels_text(*series), unit = text_at(*series, {"unit"});
    Plot plot{.title = labels.empty() ? name : name + " (" + labels + ")",
              .x_title = "s from the start",
              .y_title = cut(unit, 30),
              .log_x = false,
              .log_y = false,
              .series = {{.name = name, .x = t, .y = v, .colour = static_cast<int>(shown - 1)}},
              .bands = {},
              .across = {},
              .down = {},
              .width = 540,
              .height = 190};
    Table table{.header = {"s", unit.empty() ? "value" : unit}, .rows = {}};
    for (std::size_t i = 0; i < t.size(); ++i) table.rows.push_back({number_text(t[i]), number_text(v[i])});
    out += figure(plot, table);
  }
  if (out.empty()) return {};
  out = "<div class=\"plots\">" + out + "</div>";
  return left_out > 0 ? out + paragraph(fmt::format("{} series more are in the JSON.", left_out)) : out;
}

}  // namespace weir::loadgen::html
