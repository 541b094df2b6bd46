// SPDX-License-Identifier: Apache-2.0
// From joules to what they cost: the facility around the machine, water, carbon dioxide, money, per request and per 1,000 tokens. Pure
// functions; docs/energy.md has the formulae and their sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "energy/meter.h"

namespace weir::energy {

struct Facility {
  std::optional<double> pue = {};         // facility's energy / the machine's
  std::optional<double> wue_site = {};    // litres on site per kWh of the machine
  std::optional<double> wue_source = {};  // litres at the power plant per kWh of the facility
  std::optional<double> cif = {};         // g CO2e per kWh
  std::optional<double> price_per_kwh = {}, price_per_hour = {};
  bool any() const { return pue || wue_site || wue_source || cif || price_per_kwh || price_per_hour; }
};
Status check(const Facility& facility);                              // in sensible ranges
Result<std::pair<double, double>> parse_wue(std::string_view text);  // "1.8" or "1.8,3.1": site, source (−1: not given)

// What a run drew.
struct Draw {
  std::string source;  // as Sources::name
  bool estimate = false;
  double joules = 0, seconds = 0;
  std::optional<double> idle_watts = {};
  std::string idle_source = {};  // "declared", "measured for 2.0 s before the run", "the model's"
  std::vector<Domain> domains = {};
  std::vector<std::string> notes = {};
};

// What it was drawn for.
struct Service {
  double requests = 0, good_requests = 0;  // answered; within their objectives
  double output_tokens = 0, prompt_tokens = 0;
  bool prompt_known = false;
  double mean_latency_s = 0;
  double prefill_s = 0, decode_s = 0;  // sums of the server's own times; 0: it gives none
};

// The members "source", "estimate", "joules", "mean_watts", "idle_watts", "joules_per_request", … of a report's "energy".
json::Object energy_json(const Draw& draw, const Service& service, const Facility& facility);
std::string energy_text(const Draw& draw, const Service& service, const Facility& facility);

}  // namespace weir::energy
