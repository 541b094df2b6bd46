// SPDX-License-Identifier: Apache-2.0
// The report's plots of what was observed at the server and its machine meanwhile: what is known by meaning below the run's own timeline,
// on the same axis of time; everything else in a section of its own.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {
namespace {

constexpr std::size_t kMostSeries = 24, kMostPoints = 2000, kMostLines = 8;

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

struct Curve {
  std::string name;
  std::vector<double> t, v;
  std::string meaning, unit;
};

// How fast a counter rose between its points, at the later one.
void to_rates(Curve& curve) {
  std::vector<double> t, v;
  for (std::size_t i = 1; i < curve.t.size(); ++i) {
    const double seconds = curve.t[i] - curve.t[i - 1], more = curve.v[i] - curve.v[i - 1];
    if (!(seconds > 0)) continue;
    t.push_back(curve.t[i]);
    v.push_back(more >= 0 ? more / seconds : std::nan(""));  // the server began anew
  }
  curve.t = std::move(t), curve.v = std::move(v);
  curve.unit += "/s";
}

// Readings before the run's begin and after its end are for counters, not for the eye.
void keep_run(Curve& curve, double end) {
  std::vector<double> t, v;
  for (std::size_t i = 0; i < curve.t.size(); ++i)
    if (curve.t[i] >= 0 && (!(end > 0) || curve.t[i] <= end)) t.push_back(curve.t[i]), v.push_back(curve.v[i]);
  if (!t.empty()) curve.t = std::move(t), curve.v = std::move(v);
}

bool read_curve(const json::Value& item, double end, Curve& curve) {
  const json::Object* series = item.if_object();
  if (!series) return false;
  curve.t = numbers_at(*series, {"t"}), curve.v = numbers_at(*series, {"v"});
  if (curve.t.empty() || curve.t.size() != curve.v.size()) return false;
  curve.t.resize(std::min(curve.t.size(), kMostPoints));
  curve.v.resize(curve.t.size());
  const std::string labels = labels_text(*series);
  curve.name = text_at(*series, {"name"}) + (labels.empty() ? "" : " (" + labels + ")");
  curve.meaning = text_at(*series, {"meaning"});
  curve.unit = cut(text_at(*series, {"unit"}), 30);
  if (text_at(*series, {"kind"}) == "counter") to_rates(curve);
  keep_run(curve, end);
  return !curve.t.empty();
}

std::vector<Curve> curves_observed(const Run& run) {
  std::vector<Curve> out;
  const double end = number_at(*run.json, {"observations", "to_s"});
  for (const json::Value& item : array_at(*run.json, {"observations", "series"}))
    if (Curve curve; read_curve(item, end, curve)) out.push_back(std::move(curve));
  return out;
}

struct TimelineFigure {
  const char* title;
  const char* y_title;
  std::initializer_list<std::string_view> meanings;
  double scale;
};
const TimelineFigure kFigures[] = {
    {"At the server: requests", "requests", {"running", "waiting"}, 1},
    {"At the server: KV cache in use", "%", {"kv_use"}, 100},
    {"Processors in use", "processors", {"server_cpu", "generator_cpu"}, 1},
    {"Processors of the machine in use", "%", {"cpu_use"}, 100},
    {"GPUs in use", "%", {"gpu_use"}, 100},
    {"Power of the GPUs", "W", {"gpu_power"}, 1},
};

bool shown_in_timeline(const Curve& curve) {
  return std::any_of(std::begin(kFigures), std::end(kFigures), [&](const TimelineFigure& figure) {
    return std::find(figure.meanings.begin(), figure.meanings.end(), curve.meaning) != figure.meanings.end();
  });
}

std::string timeline_figure(const Run& run, const TimelineFigure& what, const std::vector<Curve>& curves) {
  Plot plot = time_plot(what.title, what.y_title, 1080, 200);
  Table table{.header = {"series", "s", what.y_title}, .rows = {}};
  for (const std::string_view meaning : what.meanings)
    for (const Curve& curve : curves) {
      if (curve.meaning != meaning || plot.series.size() == kMostLines) continue;
      PlotSeries line{.name = curve.name, .x = curve.t, .y = curve.v, .colour = static_cast<int>(plot.series.size())};
      for (double& value : line.y) value *= what.scale;
      for (std::size_t i = 0; i < line.x.size(); ++i) table.rows.push_back({curve.name, number_text(line.x[i]), number_text(line.y[i])});
      plot.series.push_back(std::move(line));
    }
  if (plot.series.empty()) return {};
  add_bands(run, plot);
  return figure(plot, table);
}

}  // namespace

std::string observed_timeline_of(const Run& run) {
  const std::vector<Curve> curves = curves_observed(run);
  std::string out;
  for (const TimelineFigure& what : kFigures) out += timeline_figure(run, what, curves);
  return out.empty() ? out : "<div class=\"plots wide\">" + out + "</div>";
}

std::string observations_of(const Run& run) {
  std::string out;
  std::size_t shown = 0, left_out = 0;
  for (const Curve& curve : curves_observed(run)) {
    if (shown_in_timeline(curve)) continue;
    if (shown == kMostSeries) {
      ++left_out;
      continue;
    }
    ++shown;
    Plot plot = time_plot(curve.name, curve.unit, 540, 190);
    plot.series = {{.name = curve.name, .x = curve.t, .y = curve.v, .colour = static_cast<int>((shown - 1) % 8)}};
    Table table{.header = {"s", curve.unit.empty() ? "value" : curve.unit}, .rows = {}};
    for (std::size_t i = 0; i < curve.t.size(); ++i) table.rows.push_back({number_text(curve.t[i]), number_text(curve.v[i])});
    out += figure(plot, table);
  }
  std::string notes;
  for (const json::Value& note : array_at(*run.json, {"observations", "notes"}))
    if (note.is_string()) notes += paragraph(cut(note.get_string()));
  if (!out.empty()) out = "<div class=\"plots\">" + out + "</div>";
  return out + (left_out > 0 ? paragraph(fmt::format("{} series more are in the JSON.", left_out)) : "") + notes;
}

}  // namespace weir::loadgen::html
