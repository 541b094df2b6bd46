// SPDX-License-Identifier: Apache-2.0
// Pieces of the HTML report, for its own files only: reading results that may hold anything, tables, figures, and each section.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "loadgen/report_svg.h"

namespace weir::loadgen::html {

using Path = std::initializer_list<std::string_view>;

// What lies at a path of members; nullptr, NaN, "" or nothing when it is not there or of another kind. Sizes are bounded.
const json::Value* value_at(const json::Object& object, Path path);
double number_at(const json::Object& object, Path path);
std::string text_at(const json::Object& object, Path path);
std::vector<double> numbers_at(const json::Object& object, Path path);  // null: NaN
const json::Array& array_at(const json::Object& object, Path path);
std::string cut(std::string_view text, std::size_t most = 300);

std::string time_text(double seconds);  // "12.3 ms"; "–" when not known
std::string number_text(double value);  // likewise
std::string share_text(double share);   // "12.3 %"

struct Table {
  std::vector<std::string> header;  // all text, not yet escaped
  std::vector<std::vector<std::string>> rows;
  bool words = false;  // to the left
};
std::string to_html(const Table& table);
std::string section(std::string_view title, const std::string& body);
std::string figure(const Plot& plot, const Table& data);  // the picture, and its figures to open below it
std::string paragraph(std::string_view text);

// A level of a result.
struct Run {
  std::string name;
  const json::Object* json = nullptr;
};

// report_html_tables.cc
std::string head_of(const Run& run);
std::string tiles_of(const Run& run);
std::string verdict_of(const Run& run);
std::string bottleneck_of(const Run& run);
std::string latencies_of(const std::vector<Run>& runs);
std::string energy_of(const std::vector<Run>& runs);
std::string generator_of(const std::vector<Run>& runs);
std::string compare_of(const Run& run);

// report_html_plots.cc
std::string curves_of(const std::vector<Run>& runs);
const Run* highest_that_holds(const std::vector<Run>& runs, double attainment,
                              double highest);  // highest: as a search found; NaN: none did
std::string levels_of(const std::vector<Run>& runs, const Run* held);
Plot time_plot(std::string title, std::string y_title, double width, double height);  // over seconds from a run's start
void add_bands(const Run& run, Plot& plot);                                           // its warm-up and drain
std::string timeline_of(const Run& run);

// report_html_machine.cc
std::string breakdown_of(const std::vector<Run>& runs);
std::string limits_of(const std::vector<Run>& runs);

// report_html_observed.cc
std::string observed_timeline_of(const Run& run);
std::string observations_of(const Run& run);

extern const char* const kStyle;

}  // namespace weir::loadgen::html
