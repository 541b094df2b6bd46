// SPDX-License-Identifier: Apache-2.0
// The report's sections on where time went and what of the machine was used: breakdown, limits.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {
namespace {

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
  std::string shares, roofs;
  Table table{.header = {"Run", "operations per request", "bytes per request", "MFU", "memory bandwidth used"}, .rows = {}};
  for (const Run& run : runs) {
    if (!value_at(*run.json, {"work"})) continue;
    std::string bars;
    for (const Limit& limit : kLimits) {
      const double share = number_at(*run.json, {"work", limit.key});
      if (share > 0) bars += bar_svg(limit.title, {{limit.title, share_text(share), share, limit.colour}}, 1);
    }
    if (!bars.empty())
      shares += fmt::format("<figure><figcaption>{}: share of the machine's limits</figcaption>{}</figure>", escaped(run.name), bars);
    roofs += roofline(run);
    table.rows.push_back({run.name, number_text(number_at(*run.json, {"work", "flops_per_request"})),
                          number_text(number_at(*run.json, {"work", "bytes_per_request"})),
                          share_text(number_at(*run.json, {"work", "mfu"})),
                          share_text(number_at(*run.json, {"work", "bandwidth_utilisation"}))});
  }
  if (table.rows.empty()) return {};
  return "<div class=\"plots wide\">" + shares + "</div><div class=\"plots\">" + roofs + "</div>" + to_html(table);
}

}  // namespace weir::loadgen::html
