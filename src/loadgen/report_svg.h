// SPDX-License-Identifier: Apache-2.0
// Plots as SVG text, to stand in an HTML page: colours are the page's (classes s0 … s7), so that one picture serves light, dark and paper.
// All text is escaped here; a plot needs no script and no font of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::loadgen {

std::string escaped(std::string_view text);  // for HTML text and attributes; what is not UTF-8 or a control character becomes '?'
std::string short_number(double value);      // "1.5k", "0.02", "3.4M"

struct PlotSeries {
  std::string name;
  std::vector<double> x, y;  // a y that is not finite breaks the line
  int colour = 0;            // 0..7
  bool dots = false, dashed = false, area = false;
  bool scatter = false;  // small dots only: neither lines nor texts at them
};

struct Plot {
  std::string title, x_title, y_title;
  bool log_x = false, log_y = false;
  std::vector<PlotSeries> series;
  struct Band {
    double from = 0, to = 0;
    std::string name;
  };
  std::vector<Band> bands;  // shaded spans of x
  struct Line {
    double at = 0;
    std::string name;
  };
  std::vector<Line> across, down;  // dashed lines at a y, and at an x
  double width = 540, height = 280;
};
std::string to_svg(const Plot& plot);

// A part of a bar with its text.
struct BarPart {
  std::string name, text;
  double value = 0;
  int colour = 0;
};
std::string bar_svg(std::string_view title, const std::vector<BarPart>& parts, double whole);

// Places for marks on an axis from low to high, about `count` of them, at 1, 2 or 5 times a power of ten; for a logarithmic one at powers.
std::vector<double> axis_ticks(double low, double high, int count);
std::vector<double> log_ticks(double low, double high);

}  // namespace weir::loadgen
