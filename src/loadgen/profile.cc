// SPDX-License-Identifier: Apache-2.0
#include "loadgen/profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/units.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // no bound, or a figure that is not known
constexpr std::string_view kLoads = "--concurrency,--trace,--request-rate-range,--concurrency-range", kSizes = "--requests,--trace";

constexpr ProfileDefault kHyperscaleLoad[] = {{"--rate", "20", kLoads},
                                              {"--duration", "120s", kSizes},
                                              {"--input-tokens", "lognormal:512,512", ""},
                                              {"--output-tokens", "lognormal:128,128", ""},
                                              {"--slo", "ttft=1s,tpot=100ms", ""}};
constexpr ProfileDefault kOnPremLoad[] = {{"--rate", "4", kLoads},        {"--duration", "240s", kSizes},
                                          {"--drain", "45s", ""},         {"--input-tokens", "normal:512,128", ""},
                                          {"--output-tokens", "128", ""}, {"--slo", "ttft=2s,tpot=150ms", ""}};
constexpr ProfileDefault kEdgeLoad[] = {{"--concurrency", "1", "--rate,--trace,--request-rate-range,--concurrency-range"},
                                        {"--requests", "100", "--duration,--trace"},
                                        {"--input-tokens", "128", ""},
                                        {"--output-tokens", "64", ""},
                                        {"--slo", "ttft=1s,tpot=200ms", ""}};
constexpr ProfileDefault kEmbeddedLoad[] = {{"--concurrency", "1", "--rate,--trace,--request-rate-range,--concurrency-range"},
                                            {"--duration", "10m", kSizes},
                                            {"--input-tokens", "64", ""},
                                            {"--output-tokens", "32", ""},
                                            {"--different-prompts", "1", ""},
                                            {"--extra", R"({"temperature":0,"seed":1})", ""},
                                            {"--hash-answers", "true", ""}};

double known(const std::optional<double>& value) { return value.value_or(kNone); }
double ratio(const Stat& stat, double over, double under) {
  return stat.count > 0 && stat.at(under) > 0 ? stat.at(over) / stat.at(under) : kNone;
}
double share(std::size_t part, std::size_t of) { return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : kNone; }
double at(const Stat& stat, double p) { return stat.count > 0 ? stat.at(p) : kNone; }

struct Criterion {
  std::string_view name, title, unit;
  bool at_most;
  double (*figure)(const Summary& s, const ProfileFacts& facts);
};

constexpr Criterion kCriteria[] = {
    {"good_share", "requests that hold the objectives", "share", false,
     [](const Summary& s, const ProfileFacts&) { return share(s.good, s.requests); }},
    {"error_share", "requests that failed", "share", true,
     [](const Summary& s, const ProfileFacts&) { return share(s.requests - s.ok, s.requests); }},
    {"ttft_p99_over_p50", "consistency: p99 of TTFT by its median", "", true,
     [](const Summary& s, const ProfileFacts&) { return ratio(s.ttft, 99, 50); }},
    {"tpot_p99_over_p50", "consistency: p99 of TPOT by its median", "", true,
     [](const Summary& s, const ProfileFacts&) { return ratio(s.tpot, 99, 50); }},
    {"goodput_per_watt", "good requests a second, by watts", "1/(s·W)", false,
     [](const Summary& s, const ProfileFacts& f) { return f.mean_watts && *f.mean_watts > 0 ? s.goodput / *f.mean_watts : kNone; }},
    {"good_requests_per_price", "good requests by what they cost", "1/price", false,
     [](const Summary& s, const ProfileFacts& f) {
       return f.price_per_request && *f.price_per_request > 0 ? share(s.good, s.ok) / *f.price_per_request : kNone;
     }},
    {"run_s", "the run, with its last answer", "s", true, [](const Summary&, const ProfileFacts& f) { return f.wall_s; }},
    {"answers", "answers, of which a p99 needs 662 to be sure (MLPerf's rule)", "", false,
     [](const Summary& s, const ProfileFacts&) { return static_cast<double>(s.ok); }},
    {"stable", "three windows agree (Perf Analyzer's rule): 1 or 0", "", false,
     [](const Summary& s, const ProfileFacts&) {
       return s.stability.state == Stability::State::kTooShort ? kNone : s.stability.state == Stability::State::kStable ? 1.0 : 0.0;
     }},
    {"ttft_p90_s", "p90 of the time to first token", "s", true, [](const Summary& s, const ProfileFacts&) { return at(s.ttft, 90); }},
    {"tpot_p99_s", "p99 of the time per output token", "s", true, [](const Summary& s, const ProfileFacts&) { return at(s.tpot, 99); }},
    {"e2e_p90_s", "p90 of the whole answer", "s", true, [](const Summary& s, const ProfileFacts&) { return at(s.e2e, 90); }},
    {"mean_watts", "mean power", "W", true, [](const Summary&, const ProfileFacts& f) { return known(f.mean_watts); }},
    {"joules_per_request", "energy of an answer", "J", true,
     [](const Summary&, const ProfileFacts& f) { return known(f.joules_per_request); }},
    {"answers_per_prompt", "different answers to the same prompt, at most", "", true,
     [](const Summary&, const ProfileFacts& f) { return known(f.answers_per_prompt); }},
    {"itl_jitter", "jitter: p99.9 of the gaps by their median", "", true,
     [](const Summary& s, const ProfileFacts&) { return ratio(s.itl, 99.9, 50); }},
    {"worst_over_p50", "the longest answer by the median one", "", true,
     [](const Summary& s, const ProfileFacts&) { return s.e2e.count > 0 && s.e2e.at(50) > 0 ? s.e2e.max / s.e2e.at(50) : kNone; }},
    {"drift", "change of the median answer from the first to the last quarter", "share", true,
     [](const Summary&, const ProfileFacts& f) { return known(f.drift); }},
};

struct Wanted {
  std::string_view criterion;
  double bound;
};
constexpr Wanted kHyperscale[] = {{"good_share", 0.99},     {"error_share", 0.001},      {"ttft_p99_over_p50", 5},
                                  {"tpot_p99_over_p50", 2}, {"goodput_per_watt", kNone}, {"good_requests_per_price", kNone}};
constexpr Wanted kOnPrem[] = {{"run_s", 300}, {"answers", 662}, {"stable", 1}, {"good_share", 0.95}, {"error_share", 0.01}};
constexpr Wanted kEdge[] = {{"ttft_p90_s", 1},  {"tpot_p99_s", 0.2},           {"e2e_p90_s", 10},
                            {"mean_watts", 15}, {"joules_per_request", kNone}, {"error_share", 0.01}};
constexpr Wanted kEmbedded[] = {
    {"answers_per_prompt", 1}, {"itl_jitter", 1.5}, {"worst_over_p50", 1.5}, {"drift", 0.05}, {"error_share", 0}};

struct ProfileTable {
  std::string_view name;
  std::span<const ProfileDefault> load;
  std::span<const Wanted> wanted;
};
constexpr ProfileTable kProfiles[] = {{"hyperscale", kHyperscaleLoad, kHyperscale},
                                      {"on-prem", kOnPremLoad, kOnPrem},
                                      {"edge", kEdgeLoad, kEdge},
                                      {"embedded", kEmbeddedLoad, kEmbedded}};

const ProfileTable& table(Profile profile) { return kProfiles[static_cast<int>(profile)]; }

const Criterion* criterion_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCriteria), std::end(kCriteria), [&](const Criterion& c) { return c.name == name; });
  return found == std::end(kCriteria) ? nullptr : found;
}

Judged judged(const Criterion& criterion, double bound, const Summary& summary, const ProfileFacts& facts) {
  Judged out{.name = std::string(criterion.name),
             .title = std::string(criterion.title),
             .unit = std::string(criterion.unit),
             .at_most = criterion.at_most,
             .bound = {},
             .figure = {}};
  const double figure = criterion.figure(summary, facts);
  if (!std::isnan(figure)) out.figure = figure;
  if (std::isnan(bound)) return out;
  out.bound = bound;
  using State = Judged::State;
  out.state = !out.figure ? State::kNotKnown : (criterion.at_most ? figure <= bound : figure >= bound) ? State::kPass : State::kFail;
  return out;
}

const char* state_name(Judged::State state) {
  constexpr const char* kNames[] = {"pass", "fail", "not_known", "reported"};
  return kNames[static_cast<int>(state)];
}
const char* outcome_word(Verdict::Outcome outcome) {
  constexpr const char* kNames[] = {"pass", "fail", "incomplete"};
  return kNames[static_cast<int>(outcome)];
}

json::Value number(const std::optional<double>& value) { return value ? json::Value(*value) : json::Value(nullptr); }

std::optional<double> member(const json::Object& seen, std::string_view object, std::string_view key) {
  const json::Value* found = json::find(seen, object);
  if (!found || !found->is_object()) return std::nullopt;
  const json::Value* value = json::find(found->get_object(), key);
  return value && value->is_number() ? std::optional<double>(value->to_number<double>()) : std::nullopt;
}

}  // namespace

std::optional<Profile> profile_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kProfiles); ++i)
    if (kProfiles[i].name == name) return static_cast<Profile>(i);
  return std::nullopt;
}

std::string_view profile_name(Profile profile) { return table(profile).name; }
std::span<const ProfileDefault> profile_defaults(Profile profile) { return table(profile).load; }

Result<std::vector<Requirement>> parse_requirements(std::string_view text) {
  std::vector<Requirement> out;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || !criterion_named(part.substr(0, equals)))
      return fail(ErrorCode::kInvalidArgument, "'{}': a criterion and its bound are written as ttft_p90_s=0.5; there are\n{}", part,
                  criteria_help());
    WEIR_ASSIGN(const double bound, parse_number(part.substr(equals + 1), part.substr(0, equals)));
    out.push_back({std::string(part.substr(0, equals)), bound});
  }
  return out;
}

std::string criteria_help() {
  std::string out;
  for (const Criterion& c : kCriteria) out += fmt::format("  {:<26}{} {}\n", c.name, c.at_most ? "at most: " : "at least:", c.title);
  return out;
}

ProfileFacts facts_of(const RunResult& result, const json::Object& seen) {
  ProfileFacts facts;
  facts.wall_s = to_seconds(result.length);
  std::map<std::pair<std::size_t, std::uint16_t>, std::set<std::uint64_t>> answers;
  std::vector<double> latencies;
  for (const RequestRecord& r : result.records) {
    if (r.outcome != Outcome::kOk) continue;
    latencies.push_back(e2e_s(r));
    if (r.answer_hash == 0) continue;
    std::set<std::uint64_t>& hashes = answers[{r.conversation % std::max<std::size_t>(result.prompts, 1), r.turn}];
    hashes.insert(r.answer_hash);
    facts.answers_per_prompt = std::max(facts.answers_per_prompt.value_or(0), static_cast<double>(hashes.size()));
  }
  if (const std::size_t quarter = latencies.size() / 4; quarter >= 10) {
    const double first = Stat::of({latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(quarter)}).at(50);
    const double last = Stat::of({latencies.end() - static_cast<std::ptrdiff_t>(quarter), latencies.end()}).at(50);
    if (first > 0 && last > 0) facts.drift = std::max(last / first, first / last) - 1;
  }
  facts.mean_watts = member(seen, "energy", "mean_watts");
  facts.joules_per_request = member(seen, "energy", "joules_per_request");
  const json::Value* energy = json::find(seen, "energy");
  const json::Value* facility = energy && energy->is_object() ? json::find(energy->get_object(), "facility") : nullptr;
  if (facility && facility->is_object()) facts.price_per_request = member(facility->get_object(), "per_request", "money");
  return facts;
}

Verdict judge(std::optional<Profile> profile, std::span<const Requirement> requirements, const Summary& summary,
              const ProfileFacts& facts) {
  Verdict verdict;
  std::vector<Wanted> wanted;
  if (profile) {
    verdict.profile = profile_name(*profile);
    wanted.assign(table(*profile).wanted.begin(), table(*profile).wanted.end());
  }
  for (const Requirement& required : requirements) {
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const Wanted& w) { return w.criterion == required.criterion; });
    if (found != wanted.end())
      found->bound = required.bound;
    else
      wanted.push_back({required.criterion, required.bound});
  }
  for (const Wanted& want : wanted) {
    verdict.criteria.push_back(judged(*criterion_named(want.criterion), want.bound, summary, facts));
    const Judged::State state = verdict.criteria.back().state;
    if (state == Judged::State::kFail) verdict.outcome = Verdict::Outcome::kFail;
    if (state == Judged::State::kNotKnown && verdict.outcome == Verdict::Outcome::kPass) verdict.outcome = Verdict::Outcome::kIncomplete;
  }
  return verdict;
}

std::string to_text(const Verdict& verdict) {
  if (!verdict.any()) return {};
  std::string out =
      fmt::format("\nVerdict{}: {}\n", verdict.profile.empty() ? "" : " for " + verdict.profile, outcome_word(verdict.outcome));
  for (const Judged& j : verdict.criteria) {
    const std::string bound = j.bound ? fmt::format("{} {:g}", j.at_most ? "≤" : "≥", *j.bound) : std::string("no bound");
    out += fmt::format("  {:<26}{:>12} {:<12}{:<10} {}\n", j.name, j.figure ? fmt::format("{:.4g}", *j.figure) : "?", bound,
                       state_name(j.state), j.title);
  }
  return out;
}

json::Object to_json(const Verdict& verdict) {
  json::Array criteria;
  for (const Judged& j : verdict.criteria)
    criteria.push_back(json::Object{{"name", j.name},
                                    {"title", j.title},
                                    {"unit", j.unit},
                                    {"direction", j.at_most ? "at_most" : "at_least"},
                                    {"bound", number(j.bound)},
                                    {"figure", number(j.figure)},
                                    {"state", state_name(j.state)}});
  return {{"profile", verdict.profile.empty() ? json::Value(nullptr) : json::Value(verdict.profile)},
          {"outcome", outcome_word(verdict.outcome)},
          {"criteria", std::move(criteria)}};
}

}  // namespace weir::loadgen
