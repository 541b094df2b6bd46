// SPDX-License-Identifier: Apache-2.0
// What this machine draws while a load runs, and what that costs: options of verbs that put load on a server, and the thread that reads
// the meters. Right only where the server runs on this machine; the report says which source it was.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "energy/cost.h"
#include "energy/declared.h"
#include "loadgen/scenario.h"

namespace CLI {
class App;
}

namespace weir::cli {

class EnergyOptions {
 public:
  void add_to(CLI::App& app);
  // Checks what was typed and measures the idle machine if that was asked for; before any load.
  Status prepare();

  // Runs `measure` and adds "energy" to what it saw; without --energy, --power or a cost, `measure` alone. The text is for people.
  Result<loadgen::Measured> around(const std::function<Result<loadgen::Measured>()>& measure, std::string& text) const;

 private:
  Status measure_idle();

  bool on_ = false;
  std::string power_, wue_;
  std::optional<double> idle_watts_;
  double idle_s_ = 0;  // to measure it for
  std::string idle_source_ = "declared";
  std::optional<energy::DeclaredPower> declared_;
  energy::Facility facility_;
};

}  // namespace weir::cli
