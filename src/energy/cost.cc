// SPDX-License-Identifier: Apache-2.0
#include "energy/cost.h"

#include <charconv>
#include <cmath>

namespace weir::energy {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

double per(double what, double count) { return count > 0 ? what / count : 0; }

// What the facility takes for so many joules of the machine over so many seconds.
struct Toll {
  double kwh = 0;
  std::optional<double> litres_site, litres_source, grams, money;

  Toll(double joules, double seconds, const Facility& f) : kwh(joules / kJoulesPerKwh * f.pue.value_or(1)) {
    const double machine_kwh = joules / kJoulesPerKwh;
    if (f.wue_site) litres_site = machine_kwh * *f.wue_site;
    if (f.wue_source) litres_source = kwh * *f.wue_source;
    if (f.cif) grams = kwh * *f.cif;
    if (f.price_per_kwh || f.price_per_hour) money = kwh * f.price_per_kwh.value_or(0) + seconds / 3600 * f.price_per_hour.value_or(0);
  }
};

json::Object toll_json(const Toll& toll, double count) {
  const auto value = [&](const std::optional<double>& of) { return of && count > 0 ? json::Value(*of / count) : json::Value(nullptr); };
  return {{"kwh", per(toll.kwh, count)},
          {"litres_site", value(toll.litres_site)},
          {"litres_source", value(toll.litres_source)},
          {"grams_co2e", value(toll.grams)},
          {"money", value(toll.money)}};
}

json::Value maybe(const std::optional<double>& value) { return value ? json::Value(*value) : json::Value(nullptr); }

json::Object facility_json(const Draw& draw, const Service& service, const Facility& f) {
  const Toll toll(draw.joules, draw.seconds, f);
  json::Object out = toll_json(toll, 1);
  out["pue"] = maybe(f.pue);
  out["wue_site"] = maybe(f.wue_site);
  out["wue_source"] = maybe(f.wue_source);
  out["cif"] = maybe(f.cif);
  out["price_per_kwh"] = maybe(f.price_per_kwh);
  out["price_per_hour"] = maybe(f.price_per_hour);
  out["per_request"] = toll_json(toll, service.requests);
  out["per_1000_tokens"] = toll_json(toll, service.output_tokens / 1000);
  return out;
}

// Joules above idle, shared by the time that requests spent in either phase.
struct Phases {
  double prefill = 0, decode = 0;
};
std::optional<Phases> phases(const Draw& draw, const Service& s) {
  const double busy = s.prefill_s + s.decode_s;
  if (busy <= 0) return std::nullopt;
  const double active = std::max(0.0, draw.joules - draw.idle_watts.value_or(0) * draw.seconds);
  return Phases{active * s.prefill_s / busy, active * s.decode_s / busy};
}

json::Value phases_json(const Draw& draw, const Service& s) {
  const auto split = phases(draw, s);
  if (!split) return nullptr;
  return json::Object{{"estimate", true},
                      {"prefill_joules", split->prefill},
                      {"decode_joules", split->decode},
                      {"prefill_joules_per_prompt_token", s.prompt_known ? json::Value(per(split->prefill, s.prompt_tokens)) : nullptr},
                      {"decode_joules_per_output_token", per(split->decode, s.output_tokens)}};
}

std::string toll_line(const char* title, const Toll& toll, double count) {
  if (count <= 0) return {};
  std::string out = fmt::format("  {:<18}{:.6g} Wh of the facility", title, toll.kwh * 1e3 / count);
  if (toll.litres_site) out += fmt::format(", {:.4g} ml of water on site", *toll.litres_site * 1e3 / count);
  if (toll.litres_source) out += fmt::format(", {:.4g} ml at the source", *toll.litres_source * 1e3 / count);
  if (toll.grams) out += fmt::format(", {:.4g} g CO2e", *toll.grams / count);
  if (toll.money) out += fmt::format(", {:.4g} of money", *toll.money / count);
  return out + "\n";
}

}  // namespace

Status check(const Facility& f) {
  const auto within = [](const std::optional<double>& value, double low, double high) {
    return !value || (*value >= low && *value <= high);
  };
  if (!within(f.pue, 1, 10)) return fail(ErrorCode::kInvalidArgument, "--pue is the facility's energy over the machine's: 1 to 10");
  if (!within(f.wue_site, 0, 1e3) || !within(f.wue_source, 0, 1e3))
    return fail(ErrorCode::kInvalidArgument, "--wue is in litres per kWh: 0 to 1000");
  if (!within(f.cif, 0, 1e5)) return fail(ErrorCode::kInvalidArgument, "--cif is in grams of CO2e per kWh: 0 to 100000");
  if (!within(f.price_per_kwh, 0, 1e6) || !within(f.price_per_hour, 0, 1e9))
    return fail(ErrorCode::kInvalidArgument, "prices are at least 0");
  return {};
}

Result<std::pair<double, double>> parse_wue(std::string_view text) {
  const std::size_t comma = text.find(',');
  const auto site = number(text.substr(0, comma));
  const auto source = comma == std::string_view::npos ? std::optional(-1.0) : number(text.substr(comma + 1));
  if (!site || *site < 0 || !source || (comma != std::string_view::npos && *source < 0))
    return fail(ErrorCode::kInvalidArgument, "'{}': --wue is SITE or SITE,SOURCE in litres per kWh, say 1.8,3.1", text);
  return std::pair(*site, *source);
}

json::Object energy_json(const Draw& draw, const Service& s, const Facility& facility) {
  json::Array domains, notes;
  for (const Domain& d : draw.domains)
    domains.push_back(json::Object{{"name", d.name},
                                   {"part", part_name(d.part)},
                                   {"counted", d.counted},
                                   {"joules", d.joules},
                                   {"mean_watts", per(d.joules, draw.seconds)}});
  for (const std::string& note : draw.notes) notes.emplace_back(note);
  const double watts = per(draw.joules, draw.seconds);
  const double idle = draw.idle_watts.value_or(0) * draw.seconds;
  json::Object out{{"source", draw.source},
                   {"estimate", draw.estimate},
                   {"joules", draw.joules},
                   {"seconds", draw.seconds},
                   {"mean_watts", watts},
                   {"idle_watts", maybe(draw.idle_watts)},
                   {"idle_source", draw.idle_source},
                   {"idle_share", draw.idle_watts && draw.joules > 0 ? json::Value(std::min(1.0, idle / draw.joules)) : nullptr},
                   {"joules_per_request", per(draw.joules, s.requests)},
                   {"joules_per_1000_tokens", per(draw.joules, s.output_tokens / 1000)},
                   {"tokens_per_joule", per(s.output_tokens, draw.joules)}};
  out["joules_per_1000_tokens_in_all"] =
      s.prompt_known ? json::Value(per(draw.joules, (s.output_tokens + s.prompt_tokens) / 1000)) : json::Value(nullptr);
  out["active_joules_per_request"] = draw.idle_watts ? json::Value(per(std::max(0.0, draw.joules - idle), s.requests)) : nullptr;
  out["energy_delay_product"] = per(draw.joules, s.requests) * s.mean_latency_s;
  out["goodput_per_watt"] = per(per(s.good_requests, draw.seconds), watts);
  out["output_tokens_per_s_per_watt"] = per(per(s.output_tokens, draw.seconds), watts);
  out["phases"] = phases_json(draw, s);
  out["facility"] = facility_json(draw, s, facility);
  out["domains"] = std::move(domains);
  out["notes"] = std::move(notes);
  return out;
}

std::string energy_text(const Draw& draw, const Service& s, const Facility& facility) {
  const double watts = per(draw.joules, draw.seconds);
  std::string out = fmt::format("\nEnergy ({}{}): {:.1f} J in {:.2f} s, {:.2f} W", draw.source,
                                draw.estimate ? ", an ESTIMATE, not measured" : "", draw.joules, draw.seconds, watts);
  if (draw.idle_watts && watts > 0)
    out += fmt::format("; idle takes {:.2f} W ({}), {:.0f} % of it", *draw.idle_watts, draw.idle_source,
                       std::min(100.0, 100 * *draw.idle_watts / watts));
  out += "\n";
  if (s.requests > 0)
    out += fmt::format(
        "  {:.4g} J per request, {:.4g} J per 1,000 output tokens, {:.4g} output tokens per J, EDP {:.4g} Js, goodput {:.4g}/s "
        "per W\n",
        per(draw.joules, s.requests), per(draw.joules, s.output_tokens / 1000), per(s.output_tokens, draw.joules),
        per(draw.joules, s.requests) * s.mean_latency_s, per(per(s.good_requests, draw.seconds), watts));
  if (const auto split = phases(draw, s))
    out += fmt::format("  above idle, by the server's own times (an estimate): prefill {:.4g} J, decode {:.4g} J\n", split->prefill,
                       split->decode);
  for (const Domain& d : draw.domains)
    out += fmt::format("  {:<18}{:.1f} J{}\n", d.name, d.joules,
                       d.counted ? "" : " (not in the sum: it lies within another, or is not known)");
  if (facility.any()) {
    const Toll toll(draw.joules, draw.seconds, facility);
    out += toll_line("the run", toll, 1);
    out += toll_line("a request", toll, s.requests);
    out += toll_line("1,000 tokens", toll, s.output_tokens / 1000);
  }
  for (const std::string& note : draw.notes) out += fmt::format("  Note: {}.\n", note);
  return out;
}

}  // namespace weir::energy
