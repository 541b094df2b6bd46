// SPDX-License-Identifier: Apache-2.0
// --record: what a bench verb leaves for `weir bench rerun`. The same options and the same file for every verb.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/report_record.h"

namespace CLI {
class App;
}

namespace weir::cli {

struct RecordOptions {
  std::string record;
  // What rerun passes: the record goes there and nowhere else. With `only` the verb writes no other file.
  std::string rerun, only;

  void add_to(CLI::App& app);
  bool wanted() const { return !record.empty() || !rerun.empty() || !only.empty(); }
  bool may_write_others() const { return only.empty(); }
  // The command is this process's own, without secrets.
  Status write(const std::string& verb, std::uint64_t seed, bool valid, std::vector<loadgen::Figure> figures, json::Value results) const;
};

}  // namespace weir::cli
