// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_run.h"

#include "loadgen/observer.h"
#include "loadgen/report_curves.h"

namespace weir::loadgen {
namespace {

json::Object slo_json(const Slo& slo) {
  json::Object out;
  for (const auto& [name, bound] :
       {std::pair{"ttft", slo.ttft_s}, std::pair{"tpot", slo.tpot_s}, std::pair{"itl", slo.itl_s}, std::pair{"e2e", slo.e2e_s}})
    if (bound) out[name] = *bound;
  return out;
}

}  // namespace

Verdict verdict_of(const Measured& run, const Judging& judging) {
  return judge(judging.profile, judging.requirements, run.summary, facts_of(run.result, run.seen));
}

std::string run_text(const Measured& run, const Judging& judging) {
  return to_text(run.summary, run.label, judging.slo) + observations_text(run.seen) +
         to_text(find_bottleneck(run.summary, bottleneck_input(run.seen))) + to_text(verdict_of(run, judging));
}

json::Object run_json(const Measured& run, const Judging& judging) {
  json::Object out = to_json(run.summary, run.label, judging.slo);
  out["slo_s"] = slo_json(judging.slo);
  out["curves"] = curves_json(run.result);
  out["timeline"] = timeline_json(run.result);
  for (const auto& [key, value] : run.seen) out[key] = value;
  out["bottleneck"] = to_json(find_bottleneck(run.summary, bottleneck_input(run.seen)));
  if (const Verdict verdict = verdict_of(run, judging); verdict.any()) out["verdict"] = to_json(verdict);
  return out;
}

}  // namespace weir::loadgen
