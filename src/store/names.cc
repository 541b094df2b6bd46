// SPDX-License-Identifier: Apache-2.0
#include "store/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace weir::store {
namespace {

bool plain_character(unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; }

// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

Status check_model_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 100 && std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
                    std::ranges::all_of(name, plain_character) && name.back() != '.';
  if (good) return {};
  return fail(ErrorCode::kInvalidArgument,
              "'{}' cannot name a model: use at most 100 letters, digits, '.', '_' and '-', beginning with a letter or a digit",
              printable(name));
}

Status check_file_name(std::string_view name) {
  const auto bad = [&](const char* why) {
    return fail(ErrorCode::kInvalidArgument, "'{}' cannot name a file of a model: {}", printable(name), why);
  };
  if (name.empty() || name.size() > 250) return bad("it must have 1 to 250 characters");
  if (name == "manifest.json") return bad("the store keeps its own file of that name");
  if (name.ends_with(".part") || name.ends_with(".part.json")) return bad("that ending marks unfinished downloads");
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty()) return bad("it must be relative, without empty parts");
    if (component.front() == '.') return bad("no part may begin with '.'");
    if (!std::ranges::all_of(component, plain_character)) return bad("only letters, digits, '.', '_' and '-' are allowed");
    begin = end + 1;
  }
  return {};
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool starts_character = (c & 0xc0) != 0x80;
    if (out.size() >= limit && starts_character) return out + "…";
    const bool c1 = c == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else if (c1)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    else
      out += text[i];
  }
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::vector<std::string> similar_names(std::string_view wanted, const std::vector<std::string>& known) {
  const std::string target = lower_case(wanted.substr(0, 100));
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : known) {
    const std::string candidate = lower_case(name);
    std::size_t distance = edit_distance(target, candidate);
    if (!target.empty() && candidate.find(target) != std::string::npos) distance = std::min<std::size_t>(distance, 1);
    if (distance <= 1 + target.size() / 3) ranked.emplace_back(distance, name);
  }
  std::ranges::sort(ranked);
  std::vector<std::string> best;
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) best.push_back(ranked[i].second);
  return best;
}

}  // namespace weir::store
