// SPDX-License-Identifier: Apache-2.0
// The table's section on what was observed at the server and the machine.
#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "loadgen/observer.h"
#include "loadgen/report_svg.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMostLines = 24, kMostText = 200;

std::string text_of(const json::Object& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  return value && value->is_string() ? std::string(value->get_string().subview(0, kMostText)) : std::string();
}

std::optional<double> number_of(const json::Object& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  return value && value->is_number() ? std::optional(value->to_number<double>()) : std::nullopt;
}

// A server's texts on a terminal: nothing that could be a command to it.
std::string plain(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string figure(double value, std::string_view unit) {
  if (unit == "ratio") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "s") return format_duration(value);
  if (unit == "bytes") return value >= 0 && value < 1e18 ? format_bytes(static_cast<std::uint64_t>(value)) : fmt::format("{:g} B", value);
  return short_number(value) + (unit.empty() || unit == "tokens" || unit == "processors" ? "" : fmt::format(" {}", unit));
}

std::string figures_of(const json::Object& series, std::string_view kind) {
  const std::string unit = text_of(series, "unit");
  const auto mean = number_of(series, "mean"), max = number_of(series, "max"), increase = number_of(series, "increase"),
             rate = number_of(series, "rate_per_s"), count = number_of(series, "count");
  if (kind == "counter") return increase && rate ? fmt::format("{} more, {}/s", figure(*increase, unit), figure(*rate, unit)) : "";
  if (kind == "histogram" || kind == "summary") {
    if (!count || !(*count > 0) || !mean) return "";
    std::string out = fmt::format("mean {} of {}", figure(*mean, unit), short_number(*count));
    const json::Value* quantiles = json::find(series, "estimated_quantiles");
    if (quantiles && quantiles->is_object())
      for (const auto& [name, value] : quantiles->get_object())
        if (value.is_number()) out += fmt::format(", {} ≈ {}", std::string_view(name), figure(value.to_number<double>(), unit));
    return out;
  }
  return mean && max ? fmt::format("mean {}, at most {}", figure(*mean, unit), figure(*max, unit)) : "";
}

std::string label_text(const json::Object& series) {
  std::string out;
  const json::Value* labels = json::find(series, "labels");
  if (!labels || !labels->is_object()) return out;
  for (const auto& [key, value] : labels->get_object())
    if (value.is_string() && out.size() < 60)
      out += fmt::format("{}{}={}", out.empty() ? "{" : ",", std::string_view(key), std::string_view(value.get_string().subview(0, 40)));
  return out.empty() ? out : out + "}";
}

std::string head_of(const json::Object& seen) {
  std::string out = "\nServer";
  const json::Value* sources = json::find(seen, "sources");
  if (sources && sources->is_array())
    for (const json::Value& item : sources->get_array())
      if (item.is_object())
        out += fmt::format("{}{}, {:g} scrapes", out.ends_with("Server") ? " (" : "; ", text_of(item.get_object(), "url"),
                           number_of(item.get_object(), "scrapes").value_or(0));
  return plain(out.substr(1)).insert(0, "\n") + (out.find('(') == std::string::npos ? "\n" : ")\n");
}

}  // namespace

std::string observations_text(const json::Object& seen) {
  const json::Value* value = json::find(seen, "observations");
  const json::Object* observations = value ? value->if_object() : nullptr;
  if (!observations) return {};
  std::string out = head_of(*observations);
  std::size_t lines = 0, more = 0;
  const json::Value* series = json::find(*observations, "series");
  if (series && series->is_array())
    for (const json::Value& item : series->get_array()) {
      const json::Object* object = item.if_object();
      const std::string meaning = object ? text_of(*object, "meaning") : "",
                        figures = object ? figures_of(*object, text_of(*object, "kind")) : "";
      if (figures.empty()) continue;
      if (lines == kMostLines) {
        ++more;
        continue;
      }
      ++lines;
      out += plain(fmt::format("  {:<18}{:<44} {}{}", meaning.empty() ? "other" : meaning, figures, text_of(*object, "name"),
                               label_text(*object))) +
             "\n";
    }
  if (more > 0) out += fmt::format("  {} series more are in the JSON (--json)\n", more);
  const json::Value* notes = json::find(*observations, "notes");
  if (notes && notes->is_array())
    for (const json::Value& note : notes->get_array())
      if (note.is_string()) out += plain(fmt::format("  note: {}", std::string_view(note.get_string()))) + "\n";
  return out;
}

}  // namespace weir::loadgen
