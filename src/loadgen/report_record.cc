// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_record.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace weir::loadgen {
namespace {

constexpr std::size_t kMostArguments = 1000, kLongestArgument = 64u << 10, kMostFigures = 10000, kLongestName = 200;

bool known_verb(std::string_view verb) {
  return std::find(std::begin(kRecordedVerbs), std::end(kRecordedVerbs), verb) != std::end(kRecordedVerbs);
}

bool is_secret_header(std::string_view header) {
  std::string name(header.substr(0, header.find(':')));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* part : {"auth", "key", "token", "cookie", "secret", "password"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

struct Option {
  bool secret = false, takes_next = false;
};

// Whether this argument, with the one behind it, gives a secret; all spellings that the command line takes.
Option secret_option(std::string_view argument, std::string_view next) {
  if (argument == "--api-key") return {.secret = true, .takes_next = true};
  if (argument.starts_with("--api-key=")) return {.secret = true};
  if (argument == "-H" || argument == "--header") return {.secret = is_secret_header(next), .takes_next = true};
  if (argument.starts_with("--header=")) return {.secret = is_secret_header(argument.substr(9))};
  if (argument.starts_with("-H")) return {.secret = is_secret_header(argument.substr(argument.starts_with("-H=") ? 3 : 2))};
  return {};
}

Result<std::vector<std::string>> parse_command(const json::Object& object, std::string_view verb) {
  const json::Value* value = json::find(object, "command");
  if (!value || !value->is_array()) return fail(ErrorCode::kCorrupt, "'command' should be an array of strings");
  std::vector<std::string> command;
  for (const json::Value& argument : value->get_array()) {
    if (!argument.is_string()) return fail(ErrorCode::kCorrupt, "'command' should be an array of strings");
    const std::string_view text = argument.get_string();
    if (command.size() >= kMostArguments || text.size() > kLongestArgument || text.find('\0') != std::string_view::npos)
      return fail(ErrorCode::kCorrupt, "'command' has an argument that none would write");
    command.emplace_back(text);
  }
  if (command.size() < 2 || command[0] != "bench" || command[1] != verb)
    return fail(ErrorCode::kCorrupt, "'command' is not 'bench {} …'", verb);
  return command;
}

Result<std::vector<Figure>> parse_figures(const json::Object& object) {
  std::vector<Figure> figures;
  const json::Value* value = json::find(object, "figures");
  if (!value) return figures;
  if (!value->is_array() || value->get_array().size() > kMostFigures) return fail(ErrorCode::kCorrupt, "'figures' should be an array");
  for (const json::Value& item : value->get_array()) {
    WEIR_ASSIGN(const json::Object* figure, json::as_object(item, "figures"));
    Figure out;
    WEIR_ASSIGN(out.name, json::get_string(*figure, "name"));
    WEIR_ASSIGN(out.unit, json::get_string_or(*figure, "unit", ""));
    WEIR_ASSIGN(out.value, json::get_double(*figure, "value"));
    WEIR_ASSIGN(out.higher_is_better, json::get_bool(*figure, "higher_is_better"));
    if (out.name.size() > kLongestName || out.unit.size() > kLongestName) return fail(ErrorCode::kCorrupt, "a figure's name is too long");
    figures.push_back(std::move(out));
  }
  return figures;
}

ChangedFigure change_of(const Figure& before, const Figure& after, double threshold) {
  ChangedFigure out{.before = before, .after = after};
  if (before.value > 0) out.ratio = after.value / before.value;
  if (before.value > 0 && after.value >= 0)
    out.worse = before.higher_is_better ? out.ratio < 1 / (1 + threshold) : out.ratio > 1 + threshold;
  return out;
}

}  // namespace

json::Object to_json(const RunRecord& record) {
  json::Array command, figures;
  for (const std::string& argument : record.command) command.emplace_back(argument);
  for (const Figure& f : record.figures)
    figures.push_back(json::Object{{"name", f.name}, {"unit", f.unit}, {"value", f.value}, {"higher_is_better", f.higher_is_better}});
  return {{"schema", kRecordSchema}, {"verb", record.verb},           {"command", std::move(command)},     {"weir", record.weir},
          {"date", record.date},     {"machine", record.machine},     {"environment", record.environment}, {"seed", record.seed},
          {"valid", record.valid},   {"figures", std::move(figures)}, {"results", record.results}};
}

Result<RunRecord> parse_record(const json::Value& value) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "the record"));
  RunRecord record;
  WEIR_ASSIGN(const std::string schema, json::get_string(*object, "schema"));
  if (schema != kRecordSchema)
    return fail(ErrorCode::kUnsupported, "its schema is '{}', and this weir knows {}", schema.substr(0, kLongestName), kRecordSchema);
  WEIR_ASSIGN(record.verb, json::get_string(*object, "verb"));
  if (!known_verb(record.verb))
    return fail(ErrorCode::kUnsupported, "'{}' is no verb that a record is run again with", record.verb.substr(0, kLongestName));
  WEIR_ASSIGN(record.command, parse_command(*object, record.verb));
  WEIR_ASSIGN(record.weir, json::get_string_or(*object, "weir", ""));
  WEIR_ASSIGN(record.date, json::get_string_or(*object, "date", ""));
  for (const auto& [name, member] : {std::pair{"machine", &record.machine}, std::pair{"environment", &record.environment}})
    if (const json::Value* found = json::find(*object, name); found && found->is_object()) *member = found->get_object();
  if (const json::Value* seed = json::find(*object, "seed")) {
    if (seed->is_uint64())
      record.seed = seed->get_uint64();
    else if (seed->is_int64() && seed->get_int64() >= 0)
      record.seed = static_cast<std::uint64_t>(seed->get_int64());
    else
      return fail(ErrorCode::kCorrupt, "'seed' should be a whole number");
  }
  WEIR_ASSIGN(record.valid, json::get_bool_or(*object, "valid", true));
  WEIR_ASSIGN(record.figures, parse_figures(*object));
  if (const json::Value* results = json::find(*object, "results")) record.results = *results;
  return record;
}

std::vector<std::string> without_secrets(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const Option option = secret_option(command[i], i + 1 < command.size() ? command[i + 1] : std::string_view());
    const bool both = option.takes_next && i + 1 < command.size();
    if (!option.secret) {
      out.push_back(command[i]);
      if (both) out.push_back(command[i + 1]);
    }
    i += both;
  }
  return out;
}

std::vector<Figure> figures_of(const Summary& s, const std::string& prefix) {
  std::vector<Figure> out;
  const auto rate = [&](const char* name, const char* unit, double value) { out.push_back({prefix + name, unit, value, true}); };
  const auto latency = [&](const char* name, const Stat& stat) {
    if (stat.count == 0) return;
    for (const double p : {50.0, 99.0}) out.push_back({fmt::format("{}{}_p{:g}", prefix, name, p), "s", stat.at(p), false});
  };
  rate("request_rate", "1/s", s.request_rate);
  rate("output_tokens_per_s", "1/s", s.output_tokens_per_s);
  if (s.good != s.ok) rate("goodput", "1/s", s.goodput);
  latency("ttft", s.ttft);
  latency("itl", s.itl);
  latency("tpot", s.tpot);
  latency("e2e", s.e2e);
  return out;
}

RecordChange compare_records(const RunRecord& before, const RunRecord& after, double threshold) {
  RecordChange change;
  for (const Figure& old : before.figures) {
    const auto now = std::find_if(after.figures.begin(), after.figures.end(), [&](const Figure& f) { return f.name == old.name; });
    if (now == after.figures.end()) {
      change.missing.push_back(old.name);
      continue;
    }
    change.figures.push_back(change_of(old, *now, threshold));
    change.regression |= change.figures.back().worse;
  }
  change.regression |= !change.missing.empty() || (before.valid && !after.valid);
  return change;
}

std::string to_text(const RecordChange& change) {
  std::string out = fmt::format("{:<32}{:>14}{:>14}{:>10}\n", "", "before", "now", "ratio");
  for (const ChangedFigure& f : change.figures) {
    const bool seconds = f.before.unit == "s";
    const std::string name = seconds                 ? f.before.name + ", ms"
                             : f.before.unit.empty() ? f.before.name
                                                     : f.before.name + ", " + f.before.unit;
    const double unit = seconds ? 1e3 : 1;
    const std::string ratio = f.ratio > 0 ? fmt::format("{:.3f}", f.ratio) : "-";
    out += fmt::format("{:<32}{:>14.3f}{:>14.3f}{:>10}{}\n", name, f.before.value * unit, f.after.value * unit, ratio,
                       f.worse ? "  WORSE" : "");
  }
  for (const std::string& name : change.missing) out += fmt::format("{:<32} is missing now\n", name);
  return out;
}

}  // namespace weir::loadgen
