// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace weir::loadgen {
namespace {

constexpr double kLeft = 58, kRight = 14, kTop = 34, kBottom = 44, kLegendLine = 16;
constexpr int kColours = 8;

// The length of the valid UTF-8 sequence at the front, 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0)) return 0;  // too long a form; surrogates
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) return 0;
  return length;
}

// From data to one axis of the picture.
class Axis {
 public:
  Axis(bool log, double low, double high, double from, double to) : log_(log), low_(low), high_(high), from_(from), to_(to) {}
  double operator()(double value) const {
    const double share = log_ ? std::log(std::max(value, low_) / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
  }
  std::vector<double> ticks(int count) const { return log_ ? log_ticks(low_, high_) : axis_ticks(low_, high_, count); }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  bool log_;
  double low_, high_, from_, to_;
};

struct Extent {
  double low = 1e300, high = -1e300;
  void take(double value, bool log) {
    if (!std::isfinite(value) || (log && value <= 0)) return;
    value = std::clamp(value, -1e100, 1e100);  // so that differences stay finite
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Axis axis_of(Extent e, bool log, bool from_zero, double from, double to) {
  if (e.high < e.low) e = {log ? 1.0 : 0.0, log ? 10.0 : 1.0};
  if (log) {
    e.low = std::pow(10, std::floor(std::log10(e.low) * 2 + 1e-9) / 2);  // half powers, so that no plot is mostly empty
    e.high = std::pow(10, std::ceil(std::log10(e.high) * 2 - 1e-9) / 2);
    if (e.high <= e.low * 1.001) e.high = e.low * 10;
    return {true, e.low, e.high, from, to};
  }
  if (from_zero && e.low >= 0) e.low = 0;
  if (e.high <= e.low) e.high = e.low + std::max(1.0, std::abs(e.low) * 0.1);
  return {false, e.low, from_zero ? e.high + 0.05 * (e.high - e.low) : e.high, from, to};
}

std::string text_at(double x, double y, const char* anchor, const char* style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y, anchor, style, escaped(text));
}

std::string line_between(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>", x1, y1, x2, y2, style);
}

std::string frame(const Plot& plot, const Axis& x, const Axis& y, double bottom) {
  std::string out;
  for (const double tick : y.ticks(5))
    out += line_between(kLeft, y(tick), plot.width - kRight, y(tick), "grid") +
           text_at(kLeft - 6, y(tick) + 4, "end", "tick", short_number(tick));
  for (const double tick : x.ticks(7))
    out += line_between(x(tick), bottom, x(tick), bottom + 4, "axis") + text_at(x(tick), bottom + 16, "middle", "tick", short_number(tick));
  out += line_between(kLeft, bottom, plot.width - kRight, bottom, "axis");
  out += text_at((kLeft + plot.width - kRight) / 2, bottom + 34, "middle", "label", plot.x_title);
  return out + text_at(4, kTop - 20, "start", "label", plot.y_title);
}

std::string bands(const Plot& plot, const Axis& x, double bottom) {
  std::string out;
  for (const Plot::Band& band : plot.bands) {
    const double from = x(band.from), to = x(band.to);
    if (!(to - from > 0.5)) continue;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"band\"><title>{}</title></rect>", from,
                       kTop, to - from, bottom - kTop, escaped(band.name));
    if (to - from > 6.5 * static_cast<double>(band.name.size())) out += text_at((from + to) / 2, kTop + 12, "middle", "tick", band.name);
  }
  return out;
}

std::string guides(const Plot& plot, const Axis& x, const Axis& y, double bottom) {
  std::string out;
  for (const Plot::Line& line : plot.across) {
    if (line.at < y.low() || line.at > y.high()) continue;
    out += line_between(kLeft, y(line.at), plot.width - kRight, y(line.at), "guide") +
           text_at(kLeft + 6, y(line.at) - 4, "start", "note", line.name);
  }
  for (const Plot::Line& line : plot.down) {
    const double at = x(line.at);
    const bool right = at < (kLeft + plot.width) / 2;
    out += line_between(at, kTop, at, bottom, "guide") +
           text_at(right ? at + 5 : at - 5, bottom - 8, right ? "start" : "end", "note", line.name);
  }
  return out;
}

std::string path_of(const PlotSeries& series, const Axis& x, const Axis& y, bool log_y, double bottom) {
  std::string path, fill;
  std::optional<double> first;
  double last = 0;
  bool broken = true;
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    if (!std::isfinite(series.y[i]) || !std::isfinite(series.x[i]) || (log_y && series.y[i] <= 0)) {
      broken = true;
      continue;
    }
    last = x(series.x[i]);
    if (!first) first = last;
    path += fmt::format("{}{:.1f} {:.1f}", broken ? "M" : "L", last, y(series.y[i]));
    broken = false;
  }
  if (path.empty()) return {};
  if (series.area)
    fill = fmt::format("<path d=\"{}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" class=\"fill f{}\"/>", path, last, bottom, *first, bottom,
                       series.colour % kColours);
  return fill + fmt::format("<path d=\"{}\" class=\"line s{}{}\"><title>{}</title></path>", path, series.colour % kColours,
                            series.dashed ? " dashed" : "", escaped(series.name));
}

std::string dots_of(const PlotSeries& series, const Axis& x, const Axis& y, bool log_y) {
  std::string out;
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    if (!std::isfinite(series.y[i]) || !std::isfinite(series.x[i]) || (log_y && series.y[i] <= 0)) continue;
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" class=\"dot f{}\"><title>{}: {:.6g}, {:.6g}</title></circle>",
                       x(series.x[i]), y(series.y[i]), series.colour % kColours, escaped(series.name), series.x[i], series.y[i]);
  }
  return out;
}

// One path of points, which round line ends make visible.
std::string scatter_of(const PlotSeries& series, const Axis& x, const Axis& y, bool log_y) {
  std::string path;
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i)
    if (std::isfinite(series.y[i]) && std::isfinite(series.x[i]) && !(log_y && series.y[i] <= 0))
      path += fmt::format("M{:.1f} {:.1f}h0", x(series.x[i]), y(series.y[i]));
  return path.empty() ? path : fmt::format("<path d=\"{}\" class=\"line points s{}\"/>", path, series.colour % kColours);
}

// Below the plot, one line a row; names are cut where the picture ends.
std::string legend(const Plot& plot, double y) {
  std::string out;
  double x = kLeft;
  for (const PlotSeries& series : plot.series) {
    std::string name = series.name.substr(0, 60);
    const double width = 34 + 6.4 * static_cast<double>(name.size());
    if (x > kLeft && x + width > plot.width) x = kLeft, y += kLegendLine;
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"line s{}{}\"/>", x, y - 4, x + 18, y - 4,
                       series.colour % kColours, series.dashed ? " dashed" : "") +
           text_at(x + 23, y, "start", "tick", name);
    x += width;
  }
  return out;
}

double legend_height(const Plot& plot) {
  double x = kLeft, rows = 1;
  for (const PlotSeries& series : plot.series) {
    const double width = 34 + 6.4 * static_cast<double>(std::min<std::size_t>(series.name.size(), 60));
    if (x > kLeft && x + width > plot.width) x = kLeft, ++rows;
    x += width;
  }
  return plot.series.size() > 1 ? rows * kLegendLine + 4 : 0;
}

std::string opening(std::string_view title, double width, double height) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>", width, height, escaped(title),
                     escaped(title));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 0 || (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && c != '\n' && c != '\t'))
      out += '?';
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size != 0 && size < 1e-4) return fmt::format("{:.2g}", value);
  for (const auto& [unit, suffix] : {std::pair{1e12, "T"}, std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}})
    if (size >= unit * 0.99995) return fmt::format("{:.4g}{}", value / unit, suffix);
  return fmt::format("{:.4g}", value);
}

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {};
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  const double step = power * (raw <= 1.0001 * power ? 1 : raw <= 2.0001 * power ? 2 : raw <= 5.0001 * power ? 5 : 10);
  std::vector<double> out;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && out.size() < 50; ++i)
    out.push_back(i * step + 0.0);  // not -0
  return out;
}

std::vector<double> log_ticks(double low, double high) {
  if (!(low > 0) || !(high > low)) return {};
  const double decades = std::log10(high / low);
  std::vector<double> out;
  for (double power = std::floor(std::log10(low) + 1e-9); power <= std::log10(high) + 1e-9 && out.size() < 50;
       power += decades > 8 ? std::ceil(decades / 8) : 1)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades > 2.1) break;
      const double tick = factor * std::pow(10, power);
      if (tick >= low * 0.999 && tick <= high * 1.001) out.push_back(tick);
    }
  return out;
}

std::string to_svg(const Plot& plot) {
  Extent along, up;
  for (const PlotSeries& series : plot.series) {
    for (const double value : series.x) along.take(value, plot.log_x);
    for (const double value : series.y) up.take(value, plot.log_y);
  }
  const double bottom = plot.height - kBottom, height = plot.height + legend_height(plot);
  const Axis x = axis_of(along, plot.log_x, false, kLeft, plot.width - kRight), y = axis_of(up, plot.log_y, true, bottom, kTop);
  std::string out = opening(plot.title, plot.width, height) + bands(plot, x, bottom) + frame(plot, x, y, bottom);
  for (const PlotSeries& series : plot.series) {
    if (series.scatter) {
      out += scatter_of(series, x, y, plot.log_y);
      continue;
    }
    if (series.x.size() > 1) out += path_of(series, x, y, plot.log_y, bottom);
    if (series.dots || series.x.size() == 1) out += dots_of(series, x, y, plot.log_y);
  }
  out += guides(plot, x, y, bottom);
  if (plot.series.size() > 1) out += legend(plot, plot.height + 8);
  return out + "</svg>";
}

std::string bar_svg(std::string_view title, const std::vector<BarPart>& parts, double whole) {
  constexpr double kWidth = 1080, kHeight = 34;
  std::string out = opening(title, kWidth, kHeight + 26);
  double x = 0, text_x = 0;
  out += fmt::format("<rect x=\"0\" y=\"0\" width=\"{}\" height=\"{}\" class=\"track\"/>", kWidth, kHeight);
  for (const BarPart& part : parts) {
    const double width = whole > 0 && std::isfinite(part.value) ? std::clamp(part.value / whole, 0.0, 1.0) * kWidth : 0;
    const double shown = std::min(width, kWidth - x);
    if (shown > 0)
      out += fmt::format("<rect x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{}\" class=\"part f{}\"><title>{}: {}</title></rect>", x,
                         shown, kHeight, part.colour % kColours, escaped(part.name), escaped(part.text));
    x += shown;
    const std::string label = part.name + " " + part.text;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"11\" height=\"11\" class=\"part f{}\"/>", text_x, kHeight + 10,
                       part.colour % kColours) +
           text_at(text_x + 16, kHeight + 20, "start", "tick", label);
    text_x += 34 + 6.6 * static_cast<double>(label.size());
  }
  return out + "</svg>";
}

}  // namespace weir::loadgen
