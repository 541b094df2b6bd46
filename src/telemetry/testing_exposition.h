// SPDX-License-Identifier: Apache-2.0
// For tests: reads Prometheus' text format (0.0.4) as strictly as its own parsers do, and says what is wrong.
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::telemetry::testing {

struct Exposition {
  std::map<std::string, double> series = {};      // `name{a="b",c="d"}` as written → value
  std::map<std::string, std::string> types = {};  // family → type
  std::map<std::string, std::string> helps = {};  // family → help
  std::vector<std::string> problems = {};

  double at(const std::string& name) const {
    const auto found = series.find(name);
    return found == series.end() ? std::nan("") : found->second;
  }
};

inline std::string family_of(const Exposition& e, const std::string& name) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    if (!name.ends_with(suffix)) continue;
    const std::string base = name.substr(0, name.size() - std::string_view(suffix).size());
    if (const auto type = e.types.find(base); type != e.types.end() && type->second == "histogram") return base;
  }
  return name;
}

inline bool is_name(std::string_view name, bool colons) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (colons && c == ':'))) return false;
  return true;
}

// The end of `{…}` at the start of `text`, or nothing when it is malformed.
inline std::optional<std::size_t> labels_end(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] != '}') {
    const std::size_t equals = text.find('=', at);
    if (equals == std::string_view::npos || !is_name(text.substr(at, equals - at), false)) return std::nullopt;
    if (equals + 1 >= text.size() || text[equals + 1] != '"') return std::nullopt;
    at = equals + 2;
    while (at < text.size() && text[at] != '"') {
      if (text[at] == '\\') {
        ++at;
        if (at >= text.size() || std::string_view("\\\"n").find(text[at]) == std::string_view::npos) return std::nullopt;
      }
      ++at;
    }
    if (at >= text.size()) return std::nullopt;
    ++at;
    if (at < text.size() && text[at] == ',') ++at;
  }
  return at < text.size() ? std::optional(at + 1) : std::nullopt;
}

inline void check_histograms(Exposition& e) {
  // By the series without its le: the buckets in the order of their bounds.
  std::map<std::string, std::map<double, double>> buckets;
  for (const auto& [name, value] : e.series) {
    const std::size_t le = name.find("le=\"");
    if (le == std::string::npos || name.find("_bucket{") == std::string::npos) continue;
    const std::size_t end = name.find('"', le + 4);
    std::string rest = name.substr(0, le) + name.substr(end + 1);
    const std::string bound = name.substr(le + 4, end - le - 4);
    buckets[rest][bound == "+Inf" ? HUGE_VAL : std::strtod(bound.c_str(), nullptr)] = value;
  }
  for (const auto& [name, counts] : buckets) {
    double before = 0;
    for (const auto& [bound, count] : counts) {
      if (count < before) e.problems.push_back(name + ": buckets fall");
      before = count;
    }
    if (counts.empty() || counts.rbegin()->first != HUGE_VAL) e.problems.push_back(name + ": no bucket +Inf");
    std::string total = name;
    total.replace(total.find("_bucket{"), 8, "_count{");
    const std::size_t comma = total.find(",}");
    if (comma != std::string::npos) total.erase(comma, 1);
    if (e.at(total) != before) e.problems.push_back(name + ": +Inf is not the count");
  }
}

inline Exposition read_exposition(std::string_view text) {
  Exposition e;
  std::set<std::string> ended;
  std::string current;
  if (!text.empty() && text.back() != '\n') e.problems.emplace_back("no line feed at the end");
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::size_t space = line.find(' ', 7);
      const std::string name = line.substr(7, space - 7), rest = line.substr(space + 1);
      if (!is_name(name, true)) e.problems.push_back("bad name: " + line);
      auto& of = line[2] == 'H' ? e.helps : e.types;
      if (!of.emplace(name, rest).second) e.problems.push_back("twice: " + line);
      if (name != current && !current.empty()) ended.insert(current);
      if (ended.count(name)) e.problems.push_back("family in pieces: " + name);
      current = name;
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    std::size_t end = line.find_first_of("{ ");
    const std::string name = line.substr(0, end);
    if (end != std::string::npos && line[end] == '{') {
      const auto after = labels_end(std::string_view(line).substr(end));
      end = after ? end + *after : std::string::npos;
    }
    if (!is_name(name, true) || end == std::string::npos || end >= line.size() || line[end] != ' ') {
      e.problems.push_back("malformed: " + line);
      continue;
    }
    if (family_of(e, name) != current) e.problems.push_back("outside of its family: " + line);
    char* stop = nullptr;
    const double value = std::strtod(line.c_str() + end + 1, &stop);
    if (*stop != 0) e.problems.push_back("no number: " + line);
    if (!e.series.emplace(line.substr(0, end), value).second) e.problems.push_back("series twice: " + line);
  }
  for (const auto& [name, type] : e.types)
    if (!e.helps.count(name)) e.problems.push_back("no help: " + name);
  check_histograms(e);
  return e;
}

}  // namespace weir::telemetry::testing
