// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "loadgen/report_gpus.h"

namespace weir::loadgen {
namespace {

// RFC 4180, and nothing that a spreadsheet would take for a formula.
std::string cell(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

struct GpuColumn {
  std::string_view meaning;  // as observed_names.cc tells it
  const char* key;           // the figure over the run
  std::string GpuColumns::* text;
};
constexpr GpuColumn kGpuColumns[] = {{"gpu_use", "mean", &GpuColumns::mean_use},
                                     {"gpu_power", "mean", &GpuColumns::mean_watts},
                                     {"gpu_memory_used", "max", &GpuColumns::most_memory},
                                     {"gpu_memory_total", "max", &GpuColumns::total_memory}};

std::string gpu_entry(const json::Object& series, const char* key) {
  const json::Value* value = json::find(series, key);
  const json::Value* labels = json::find(series, "labels");
  if (!value || !value->is_number()) return {};
  std::string gpu;
  for (const char* label : {"gpu_uuid", "UUID", "gpu"})
    if (gpu.empty() && labels && labels->is_object()) gpu = json::get_string_or(labels->get_object(), label, "").value_or("");
  return fmt::format("{}:{:g};", gpu, value->to_number<double>());
}

long microseconds(double seconds) { return std::lround(seconds * 1e6); }

}  // namespace

std::string to_csv(std::span<const std::pair<RunLabel, Summary>> runs) {
  std::string out =
      "target,load,rate,concurrency,seed,valid,requests,answered,length_s,request_rate,goodput,output_tokens_per_s,total_tokens_per_s";
  for (const char* name : {"ttft", "itl", "tpot", "e2e"})
    for (const char* column : {"mean", "p50", "p90", "p95", "p99", "p99.9", "max"}) out += fmt::format(",{}_{}_s", name, column);
  out += ",late_p50_s,late_p99_s,late_max_s,busy_share\n";
  for (const auto& [label, s] : runs) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", cell(label.target), cell(label.load), label.rate, label.concurrency,
                       label.seed, s.valid, s.requests, s.ok, s.length_s, s.request_rate, s.goodput, s.output_tokens_per_s,
                       s.total_tokens_per_s);
    for (const Stat* stat : {&s.ttft, &s.itl, &s.tpot, &s.e2e}) {
      out += fmt::format(",{}", stat->mean);
      for (const double p : {50.0, 90.0, 95.0, 99.0, 99.9}) out += fmt::format(",{}", stat->at(p));
      out += fmt::format(",{}", stat->max);
    }
    out += fmt::format(",{},{},{},{}\n", s.late.at(50), s.late.at(99), s.late.max, s.cpu_share);
  }
  return out;
}

GpuColumns gpu_columns(const json::Object& seen) {
  GpuColumns server, machine;
  const json::Value* observations = json::find(seen, "observations");
  const json::Value* series = observations && observations->is_object() ? json::find(observations->get_object(), "series") : nullptr;
  if (!series || !series->is_array()) return server;
  for (const json::Value& item : series->get_array()) {
    if (!item.is_object()) continue;
    const json::Object& object = item.get_object();
    GpuColumns& columns = json::get_string_or(object, "source", "").value_or("") == "machine" ? machine : server;
    const std::string meaning = json::get_string_or(object, "meaning", "").value_or("");
    for (const GpuColumn& column : kGpuColumns)
      if (meaning == column.meaning) columns.*column.text += gpu_entry(object, column.key);
  }
  return server.any() ? server : machine;
}

std::string perf_analyzer_csv(std::span<const std::pair<RunLabel, Summary>> runs, bool verbose, std::span<const GpuColumns> gpus) {
  const bool rates = !runs.empty() && runs.front().first.rate > 0;
  std::string out = rates ? "Request Rate" : "Concurrency";
  out +=
      ",Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,Server Compute "
      "Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency";
  const bool with_gpus = verbose && gpus.size() == runs.size() && !gpus.empty();
  if (verbose) out += ",Avg latency,request/response,response wait";
  out += with_gpus ? ",Avg GPU Utilization,Avg GPU Power Usage,Max GPU Memory Usage,Total GPU Memory\n" : "\n";
  std::vector<const std::pair<RunLabel, Summary>*> sorted;
  for (const auto& run : runs) sorted.push_back(&run);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->second.request_rate < b->second.request_rate; });
  for (const auto* run : sorted) {
    const Summary& s = run->second;
    const double server = s.queue.mean + s.prefill.mean + s.decode.mean;
    out += rates ? fmt::format("{:g}", run->first.rate) : fmt::format("{}", run->first.concurrency);
    out += fmt::format(",{:.6g},{},{},{},{},{},0,0,{},{},{},{}", s.request_rate, microseconds(s.late.mean),
                       microseconds(std::max(0.0, s.e2e.mean - server)), microseconds(s.queue.mean), microseconds(s.prefill.mean),
                       microseconds(s.decode.mean), microseconds(s.e2e.at(50)), microseconds(s.e2e.at(90)), microseconds(s.e2e.at(95)),
                       microseconds(s.e2e.at(99)));
    if (verbose) out += fmt::format(",{},{},{}", microseconds(s.e2e.mean), microseconds(s.late.mean), microseconds(s.e2e.mean));
    if (with_gpus) {
      const GpuColumns& g = gpus[static_cast<std::size_t>(run - runs.data())];
      out += fmt::format(",{},{},{},{}", cell(g.mean_use), cell(g.mean_watts), cell(g.most_memory), cell(g.total_memory));
    }
    out += '\n';
  }
  return out;
}

std::string perf_analyzer_csv(std::span<const std::pair<RunLabel, Summary>> runs, bool verbose) {
  return perf_analyzer_csv(runs, verbose, {});
}

std::string records_csv(const RunResult& result) {
  std::string out =
      "conversation,turn,outcome,status,scheduled_s,sent_s,late_s,ttft_s,tpot_s,e2e_s,longest_gap_s,prompt_tokens,output_tokens,cached_"
      "tokens,"
      "events\n";
  const auto moment = [](Duration at) { return at == kNever ? std::string() : fmt::format("{:.9f}", to_seconds(at)); };
  const auto value = [](double seconds) { return seconds < 0 ? std::string() : fmt::format("{:.9f}", seconds); };
  for (const RequestRecord& r : result.records) {
    const Duration longest = r.gaps.empty() ? kNever : *std::max_element(r.gaps.begin(), r.gaps.end());
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.conversation, r.turn, outcome_name(r.outcome), r.status,
                       moment(r.scheduled), moment(r.sent), value(std::max(0.0, to_seconds(r.late()))), value(ttft_s(r)), value(tpot_s(r)),
                       value(e2e_s(r)), moment(longest), r.prompt_tokens, r.output_tokens, r.cached_tokens, r.events);
  }
  return out;
}

}  // namespace weir::loadgen
