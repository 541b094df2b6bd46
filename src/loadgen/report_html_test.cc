// SPDX-License-Identifier: Apache-2.0
// The page: what it holds, that it loads nothing, and that hostile results stay text.
#include "loadgen/report_html.h"

#include <gtest/gtest.h>

#include "loadgen/report_run.h"
#include "loadgen/report_svg.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

Measured measured(double rate) {
  Measured out;
  const auto gap = Duration(static_cast<std::int64_t>(1e9 / rate));
  for (int i = 0; i < 120; ++i) {
    RequestRecord r;
    r.scheduled = r.eligible = r.started = r.sent = gap * i;
    r.first_token = r.sent + 100ms + 1ms * (i % 50);
    r.gaps = {10ms, 12ms};
    r.last_token = r.done = r.first_token + 22ms;
    r.events = r.output_tokens = 3;
    r.outcome = Outcome::kOk;
    r.status = 200;
    out.result.records.push_back(r);
    out.result.length = r.done;
  }
  out.label = {.target = "http://a/", .load = "poisson", .prompts = "p", .model = "m", .seed = 18446744073709551615u, .rate = rate};
  MetricOptions options;
  options.slo = *Slo::parse("ttft=130ms");
  out.summary = summarize(out.result, options);
  return out;
}

json::Object levels(std::initializer_list<double> rates) {
  json::Array runs;
  for (const double rate : rates)
    runs.push_back(run_json(measured(rate), {.slo = *Slo::parse("ttft=130ms"), .profile = {}, .requirements = {}}));
  return {{"schema", "weir.bench.load_levels/1"}, {"levels", runs}, {"attainment", 0.5}, {"date", "2026-12-02"}};
}

bool has(const std::string& page, std::string_view text) { return page.find(text) != std::string::npos; }

std::size_t count(const std::string& page, std::string_view text) {
  std::size_t found = 0;
  for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
  return found;
}

TEST(Svg, TextIsEscapedAndMadeValid) {
  EXPECT_EQ(escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(escaped("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(escaped("a\xff\x01\x1b[0m\xc3"), "a???[0m?");
  EXPECT_EQ(escaped("\xc0\xbc\xed\xa0\x80"), "?????");  // '<' in too long a form, half a pair
}

TEST(Svg, AxesAreMarkedAtRoundNumbers) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(18, 88, 7), (std::vector<double>{20, 30, 40, 50, 60, 70, 80}));
  EXPECT_TRUE(axis_ticks(1, 1, 5).empty());
  EXPECT_EQ(log_ticks(1, 100), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(log_ticks(0.001, 1000).size(), 7u);
  EXPECT_EQ(short_number(1525), "1.525k");
  EXPECT_EQ(short_number(0.05), "0.05");
  EXPECT_EQ(short_number(3.4e9), "3.4G");
}

TEST(Svg, PointsLieWhereTheyShouldAndGapsBreakTheLine) {
  Plot plot;
  plot.series = {{.name = "s", .x = {0, 1, 2, 3}, .y = {0, 10, std::nan(""), 10}, .colour = 0}};
  const std::string svg = to_svg(plot);
  // 540 × 280 with margins 58, 14, 34 and 44; y from 0 to 10.5.
  EXPECT_TRUE(has(svg, "M58.0 236.0L214.0 43.6M526.0 43.6")) << svg;
  EXPECT_TRUE(has(svg, "role=\"img\""));
  plot.series[0].y = {1e308, -1e308, 5, 5};
  EXPECT_FALSE(has(to_svg(plot), "nan"));
}

TEST(HtmlReport, ASingleRunShowsItsSectionsAndLoadsNothing) {
  Measured run = measured(20);
  run.seen["observations"] = json::Object{
      {"series", json::Array{json::Object{
                     {"name", "vllm:num_requests_waiting"}, {"labels", "x=1"}, {"unit", ""}, {"t", {0, 1, 2}}, {"v", {0, 3, 1}}}}}};
  run.seen["energy"] =
      json::Object{{"source", "model"}, {"estimate", true}, {"joules", 120}, {"facility", json::Object{{"grams_co2e", 3.5}}}};
  run.seen["work"] = json::Object{{"flops_per_request", 1e9}, {"bytes_per_request", 1e8}, {"mfu", 0.1}, {"bandwidth_utilisation", 0.5}};
  json::Object result = run_json(run, {.slo = *Slo::parse("ttft=130ms"), .profile = Profile::kHyperscale, .requirements = {}});
  const auto page = html_report(std::vector<ReportFile>{{"r", result}});
  ASSERT_TRUE(page) << page.error().message;
  for (const char* text :
       {"<h2>Verdict</h2>", "<h2>What bounds it</h2>", "<h2>Distribution of latencies</h2>", "<h2>Latencies</h2>", "<h2>Over time</h2>",
        "<h2>Where the time went</h2>", "<h2>Limits of the machine</h2>", "Roofline", "<h2>Energy and cost</h2>", "facility · grams_co2e",
        "<h2>Observed meanwhile</h2>", "vllm:num_requests_waiting (x=1)", "VALID", "seed 18446744073709551615"})
    EXPECT_TRUE(has(*page, text)) << text;
  for (const char* text : {"<script", "http-equiv=\"refresh", "src=", "@import", "url(", " onload", "<link"})
    EXPECT_FALSE(has(*page, text)) << text;
  EXPECT_TRUE(has(*page, "default-src 'none'"));
  EXPECT_EQ(count(*page, "<svg "), count(*page, "</svg>"));
  EXPECT_EQ(count(*page, "<figure>"), count(*page, "</figure>"));
  // The roof follows from what was used of it: 1e9 × 1 / 0.1 operations a second at 20 requests/s.
  EXPECT_FALSE(has(*page, "nan"));
}

TEST(HtmlReport, WhatIsKnownByMeaningStandsBelowTheTimeline) {
  Measured run = measured(20);
  const auto series = [](const char* name, const char* kind, const char* meaning, const char* unit, json::Array v) {
    return json::Object{{"name", name},
                        {"kind", kind},
                        {"meaning", meaning},
                        {"unit", unit},
                        {"labels", json::Object{{"model", "m"}}},
                        {"t", {-0.5, 1, 2, 3, 9}},
                        {"v", std::move(v)}};
  };
  run.seen["observations"] = json::Object{
      {"to_s", 4.0},
      {"notes", json::Array{"one <b>note</b>"}},
      {"series", json::Array{series("vllm:num_requests_running", "gauge", "running", "", {7777, 1, 2, 3, 7777}),
                             series("vllm:num_requests_waiting", "gauge", "waiting", "", {0, 4, 5, 6, 0}),
                             series("vllm:kv_cache_usage_perc", "gauge", "kv_use", "ratio", {0, 0.25, 0.5, 0.75, 0}),
                             series("vllm:generation_tokens_total", "counter", "output_tokens", "tokens", {0, 15, 115, 115, 115})}}};
  const auto page = html_report(std::vector<ReportFile>{{"r", run_json(run, {})}});
  ASSERT_TRUE(page);
  const std::size_t over = page->find("<h2>Over time</h2>"), next = page->find("<h2>", over + 1);
  const std::string timeline = page->substr(over, next - over);
  EXPECT_TRUE(has(timeline, "At the server: requests"));
  EXPECT_TRUE(has(timeline, "vllm:num_requests_waiting (model=m)"));
  EXPECT_TRUE(has(timeline, "At the server: KV cache in use"));
  EXPECT_TRUE(has(timeline, "<td>75</td>"));  // per cent
  EXPECT_FALSE(has(timeline, "7.777k"));      // readings beside the run
  EXPECT_FALSE(has(timeline, "generation_tokens"));
  const std::string rest = page->substr(page->find("<h2>Observed meanwhile</h2>"));
  EXPECT_TRUE(has(rest, "generation_tokens_total"));
  EXPECT_TRUE(has(rest, "<td>100</td>"));  // a counter is shown as how fast it rose
  EXPECT_TRUE(has(rest, "tokens/s"));
  EXPECT_TRUE(has(rest, "one &lt;b&gt;note"));
}

TEST(HtmlReport, LevelsMarkTheHighestThatHolds) {
  const auto page = html_report(std::vector<ReportFile>{{"sweep", levels({10, 20, 40})}});
  ASSERT_TRUE(page);
  EXPECT_TRUE(has(*page, "Time to first token (TTFT) by load"));
  EXPECT_TRUE(has(*page, "highest that holds"));
  EXPECT_TRUE(has(*page, "holds the objective (ttft ≤ 130 ms): 40 requests/s."));
  EXPECT_TRUE(has(*page, "objective 130 ms"));
  json::Object searched = levels({10, 20, 40});
  searched["highest"] = 20;
  EXPECT_TRUE(has(*html_report(std::vector<ReportFile>{{"search", searched}}), "130 ms): 20 requests/s."));
  searched["attainment"] = 1;
  searched.erase("highest");
  EXPECT_TRUE(has(*html_report(std::vector<ReportFile>{{"search", searched}}), "None of these loads holds"));
}

TEST(HtmlReport, HostileTextsStayText) {
  const std::string evil = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'\xff";
  json::Object result = run_json(measured(20), {});
  for (const char* key : {"model", "target", "load", "prompts", "first_error", "slo", "date"}) result[key] = evil;
  result["valid"] = false;
  result["reasons"] = json::Array{evil, 5, nullptr};
  result["notes"] = json::Array{evil};
  result["errors"] = json::Object{{evil, 3}};
  result["machine"] = json::Object{{"cpu", evil}};
  result["bottleneck"] = json::Object{{"text", evil}, {"bound", evil}, {"findings", json::Array{json::Object{{"text", evil}}}}};
  result["verdict"] =
      json::Object{{"profile", evil}, {"outcome", evil}, {"criteria", json::Array{json::Object{{"name", evil}, {"state", evil}}}}};
  result["energy"] = json::Object{{evil, evil}};
  result["observations"] = json::Object{
      {"series",
       json::Array{json::Object{{"name", evil}, {"labels", json::Object{{evil, evil}}}, {"unit", evil}, {"t", {0, 1}}, {"v", {1, 2}}}}}};
  const auto page = html_report(std::vector<ReportFile>{{evil, result}, {evil, result}});
  ASSERT_TRUE(page);
  EXPECT_FALSE(has(*page, "<script"));
  EXPECT_FALSE(has(*page, "<img"));
  EXPECT_FALSE(has(*page, "\xff"));
  EXPECT_GT(count(*page, "&lt;script&gt;"), 10u);
}

TEST(HtmlReport, NumbersOfAnyKindAndMembersOfAnyTypeMakeAPage) {
  json::Object result = run_json(measured(20), {});
  result["curves"] = json::Object{{"quantiles", {0, 1, 2}}, {"ttft_s", {1e308, -1e308, "x"}}, {"e2e_s", {1, 2}}};
  result["timeline"] = json::Object{{"window_s", 1e-300}, {"scheduled_per_s", {1e300, 5}}, {"in_flight", "many"}};
  result["latency"] = json::Array{1, 2};
  result["requests"] = "all";
  result["work"] =
      json::Object{{"flops_per_request", 1e308}, {"bytes_per_request", 1e-308}, {"mfu", 1e-308}, {"bandwidth_utilisation", 1e308}};
  const auto page = html_report(std::vector<ReportFile>{{"odd", result}});
  ASSERT_TRUE(page);
  EXPECT_FALSE(has(*page, "nan"));
  EXPECT_FALSE(has(*page, "inf"));
  EXPECT_FALSE(html_report({}));
  EXPECT_FALSE(html_report(std::vector<ReportFile>{{"other", {{"schema", "weir.bench.other/1"}}}}));
  EXPECT_FALSE(html_report(std::vector<ReportFile>{{"record", {{"schema", "weir.bench.record/1"}, {"results", 5}}}}));
}

TEST(HtmlReport, SamplesGiveWhatAnOldResultLacks) {
  const Measured run = measured(20);
  json::Object result = to_json(run.summary, run.label, {});
  EXPECT_FALSE(has(*html_report(std::vector<ReportFile>{{"r", result}}), "Over time"));
  const RunResult samples[] = {run.result, run.result};
  ASSERT_TRUE(add_samples(result, std::span(samples).first(1)));
  const auto page = html_report(std::vector<ReportFile>{{"r", result}});
  EXPECT_TRUE(has(*page, "Over time"));
  EXPECT_TRUE(has(*page, "Each request"));
  EXPECT_FALSE(add_samples(result, samples));
}

TEST(HtmlReport, ComparisonsAreTables) {
  const json::Object compare{
      {"schema", "weir.bench.compare/1"},
      {"a", "http://a"},
      {"b", "http://b"},
      {"regression", true},
      {"metrics",
       json::Array{json::Object{
           {"metric", "ttft_p50"}, {"a", 1.0}, {"b", 1.25}, {"ratio", 1.25}, {"interval", {1.2, 1.3}}, {"verdict", "regression"}}}}};
  const auto page = html_report(std::vector<ReportFile>{{"c", compare}});
  ASSERT_TRUE(page);
  EXPECT_TRUE(has(*page, "B is a regression"));
  EXPECT_TRUE(has(*page, "<td>1.2 … 1.3</td>"));
}

}  // namespace
}  // namespace weir::loadgen
