// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_html_parts.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/units.h"

namespace weir::loadgen::html {
namespace {

constexpr std::size_t kMostNumbers = 20000, kMostRows = 500;
constexpr double kLargest = 1e15;  // beyond, no figure of a measurement lies; bounded so that differences stay finite

double finite(const json::Value& value) {
  if (!value.is_number()) return std::numeric_limits<double>::quiet_NaN();
  const double number = value.to_number<double>();
  return std::abs(number) <= kLargest ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

const json::Value* value_at(const json::Object& object, Path path) {
  const json::Object* at = &object;
  const json::Value* value = nullptr;
  for (const std::string_view key : path) {
    if (!at) return nullptr;
    value = json::find(*at, key);
    if (!value) return nullptr;
    at = value->if_object();
  }
  return value;
}

double number_at(const json::Object& object, Path path) {
  const json::Value* value = value_at(object, path);
  return value ? finite(*value) : std::numeric_limits<double>::quiet_NaN();
}

std::string text_at(const json::Object& object, Path path) {
  const json::Value* value = value_at(object, path);
  return value && value->is_string() ? cut(value->get_string()) : std::string();
}

const json::Array& array_at(const json::Object& object, Path path) {
  static const json::Array kEmpty;
  const json::Value* value = value_at(object, path);
  return value && value->is_array() ? value->get_array() : kEmpty;
}

std::vector<double> numbers_at(const json::Object& object, Path path) {
  std::vector<double> out;
  for (const json::Value& value : array_at(object, path)) {
    if (out.size() >= kMostNumbers) break;
    out.push_back(finite(value));
  }
  return out;
}

std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most)) + " …";
}

std::string time_text(double seconds) { return std::isfinite(seconds) ? format_duration(seconds) : "–"; }
std::string number_text(double value) { return std::isfinite(value) ? short_number(value) : "–"; }
std::string share_text(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "–"; }

std::string to_html(const Table& table) {
  std::string out = fmt::format("<div class=\"scroll\"><table{}>", table.words ? " class=\"words\"" : "");
  if (!table.header.empty()) {
    out += "<thead><tr>";
    for (const std::string& cell : table.header) out += "<th scope=\"col\">" + escaped(cell) + "</th>";
    out += "</tr></thead>";
  }
  out += "<tbody>";
  for (std::size_t i = 0; i < std::min(table.rows.size(), kMostRows); ++i) {
    out += "<tr>";
    for (std::size_t column = 0; column < table.rows[i].size(); ++column)
      out += fmt::format("{}{}{}", column ? "<td>" : "<th scope=\"row\">", escaped(table.rows[i][column]), column ? "</td>" : "</th>");
    out += "</tr>";
  }
  out += "</tbody></table></div>";
  if (table.rows.size() > kMostRows) out += paragraph(fmt::format("{} rows more are not shown.", table.rows.size() - kMostRows));
  return out;
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? std::string() : fmt::format("<section><h2>{}</h2>{}</section>\n", escaped(title), body);
}

std::string figure(const Plot& plot, const Table& data) {
  return fmt::format("<figure><figcaption>{}</figcaption>{}<details><summary>Figures</summary>{}</details></figure>", escaped(plot.title),
                     to_svg(plot), to_html(data));
}

std::string paragraph(std::string_view text) { return fmt::format("<p>{}</p>", escaped(text)); }

}  // namespace weir::loadgen::html
