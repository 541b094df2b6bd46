// SPDX-License-Identifier: Apache-2.0
// What an evaluation of cases found: one line per case and totals, as JSON and for people.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace weir::eval {

struct CaseResult {
  std::string name = {};
  bool ok = true;
  std::string detail = {};    // why it does not hold
  json::Object figures = {};  // what was measured
};

struct FileReport {
  std::string file = {};
  std::string format = {};  // "logits", "greedy", "architecture", "embedding", …
  std::vector<CaseResult> cases = {};
  json::Object summary = {};               // totals over the cases
  bool ok = true;                          // all cases and the totals hold
  std::vector<std::string> problems = {};  // totals that do not hold

  void add(CaseResult result) {
    ok = ok && result.ok;
    cases.push_back(std::move(result));
  }
  void fail_total(std::string why) {
    ok = false;
    problems.push_back(std::move(why));
  }
};

json::Object to_json(const FileReport& report);
std::string to_text(const FileReport& report);  // a few lines; failing cases one line each

}  // namespace weir::eval
