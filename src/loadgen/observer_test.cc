// SPDX-License-Identifier: Apache-2.0
// The observer against servers whose metrics are programmed: what each scrape answers is known, so the figures are too, however fast or
// slow the machine is. At the end the null server under load: its own counts are those of the generator's records.
#include "loadgen/observer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>

#include "http/server.h"
#include "loadgen/null_server.h"
#include "loadgen/report_html.h"
#include "loadgen/report_run.h"
#include "loadgen/scenario.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNoTick = 1h;    // between the reading before the run and the one after it there is none
constexpr Duration kPatient = 30s;  // for what must be answered, on the slowest machine

// Answers the n-th scrape (from 1) with what `answer` says.
class Endpoint {
 public:
  using Answer = std::function<void(int, const http::Request&, const http::Responder&)>;
  explicit Endpoint(Answer answer) {
    http::ServerOptions options;
    options.listen = {{.address = "127.0.0.1:0"}};
    auto started = http::Server::start(
        std::move(options),
        {{.method = "GET",
          .pattern = "/metrics",
          .handler = [this, answer](http::Request request, http::Responder responder) { answer(++scrapes, request, responder); },
          .max_body_bytes = 0}});
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    server_ = std::move(*started);
  }
  std::string url() const { return "http://" + server_->addresses().at(0) + "/metrics"; }
  std::atomic<int> scrapes{0};

 private:
  std::unique_ptr<http::Server> server_;
};

http::Response text(std::string body, int status = 200, const char* type = "text/plain; version=0.0.4") {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", type);
  response.body = std::move(body);
  return response;
}

std::unique_ptr<Scraper> scraper_of(std::vector<std::string> urls, const std::string& filter = "", ExpositionLimits limits = {}) {
  Scraper::Options options{.sources = {}, .filter = *SeriesFilter::make(filter), .tls = {}, .limits = limits};
  for (std::string& url : urls) options.sources.push_back({std::move(url), {}});
  return std::move(*Scraper::make(std::move(options)));
}

std::unique_ptr<Observer> observer_of(std::vector<std::string> urls, Duration interval = kNoTick, const std::string& filter = "") {
  ObserverOptions options;
  for (std::string& url : urls) options.sources.push_back({std::move(url), {}});
  options.interval = interval;
  options.filter = filter;
  options.machine.gpus = false;
  auto made = Observer::make(std::move(options));
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return std::move(*made);
}

const json::Object* series_named(const json::Object& observations, std::string_view name, std::string_view label = {}) {
  for (const json::Value& item : observations.at("series").as_array()) {
    const json::Object& series = item.as_object();
    if (series.at("name").as_string() != name) continue;
    if (label.empty() || boost::json::serialize(series.at("labels")).find(label) != std::string::npos) return &series;
  }
  return nullptr;
}

double number(const json::Object& series, std::string_view key) { return series.at(key).to_number<double>(); }

std::string notes_of(const json::Object& observations) { return boost::json::serialize(observations.at("notes")); }

// As a server would tell them: 10 requests and 3 observations of 0.5 s more at each scrape.
std::string programmed(int n) {
  return fmt::format(
      "# TYPE weir_requests_total counter\nweir_requests_total{{outcome=\"ok\"}} {}\n"
      "# TYPE weir_kv_cache_use_ratio gauge\nweir_kv_cache_use_ratio {}\n"
      "# TYPE weir_ttft_seconds histogram\nweir_ttft_seconds_bucket{{le=\"0.4\"}} 7\nweir_ttft_seconds_bucket{{le=\"0.6\"}} {}\n"
      "weir_ttft_seconds_bucket{{le=\"+Inf\"}} {}\nweir_ttft_seconds_sum {}\nweir_ttft_seconds_count {}\n"
      "# TYPE unknown_thing gauge\nunknown_thing 1\n",
      100 + 10 * n, 0.1 * n, 7 + 3 * n, 7 + 3 * n, 1.0 + 1.5 * n, 7 + 3 * n);
}

TEST(Scraper, KeepsWhatIsKnownAndCountsItsScrapes) {
  const Endpoint endpoint([](int n, const http::Request& request, const http::Responder& responder) {
    EXPECT_NE(request.header("Accept").find("version=0.0.4"), std::string::npos);
    responder.respond(text(programmed(n)));
  });
  const auto scraper = scraper_of({endpoint.url()});
  for (int i = 0; i < 4; ++i) scraper->round(kPatient);
  const SourceState& state = scraper->sources().at(0);
  EXPECT_EQ(state.scrapes, 4u);
  EXPECT_EQ(state.failures, 0u) << state.last_failure;
  const auto figures = state.series.figures(TimePoint{}, TimePoint::max());
  ASSERT_EQ(figures.size(), 3u);  // not the unknown thing
  EXPECT_EQ(figures[0].name, "weir_kv_cache_use_ratio");
  EXPECT_DOUBLE_EQ(*figures[0].first, 0.1);
  EXPECT_DOUBLE_EQ(*figures[0].mean, 0.25);
  EXPECT_DOUBLE_EQ(*figures[0].max, 0.4);
  EXPECT_DOUBLE_EQ(*figures[1].increase, 30);
  EXPECT_DOUBLE_EQ(*figures[2].increase, 9);
  EXPECT_DOUBLE_EQ(*figures[2].mean, 0.5);
  EXPECT_DOUBLE_EQ(figures[2].quantiles.at(0).second, 0.5);
  scraper->begin_anew();
  EXPECT_EQ(scraper->sources().at(0).scrapes, 0u);
  EXPECT_EQ(scraper->sources().at(0).series.size(), 0u);
}

TEST(Scraper, WhatIsNoMetricsIsAFailureThatSaysWhy) {
  const std::pair<std::string, http::Response> cases[] = {
      {"status 404", text("x 1\n", 404)},
      {"status 301", text("", 301)},
      {"line 1", text("<html>\n")},
      {"line feed", text("x 1\ny")},
      {"no metrics", text("")},
      {"# EOF", text("x 1\n", 200, "application/openmetrics-text; version=1.0.0")},
      {"more than 100 bytes", text(std::string(5000, '#') + "\n")},
  };
  for (const auto& [why, response] : cases) {
    const Endpoint endpoint([&](int, const http::Request&, const http::Responder& responder) { responder.respond(response); });
    ExpositionLimits limits;
    limits.max_bytes = 100;
    const auto scraper = scraper_of({endpoint.url()}, "", limits);
    scraper->round(kPatient);
    EXPECT_EQ(scraper->sources().at(0).failures, 1u) << why;
    EXPECT_FALSE(scraper->sources().at(0).answering);
    EXPECT_NE(scraper->sources().at(0).last_failure.find(why), std::string::npos) << scraper->sources().at(0).last_failure;
    scraper->round(kPatient, true);  // those that answered only
    EXPECT_EQ(scraper->sources().at(0).scrapes, 1u);
  }
}

TEST(Scraper, AServerThatNeverAnswersCostsTheDeadlineAndNoMore) {
  std::atomic<bool> held{false};
  std::vector<http::Responder> kept;
  std::mutex mutex;
  const Endpoint silent([&](int, const http::Request&, const http::Responder& responder) {
    const std::scoped_lock lock(mutex);
    kept.push_back(responder);
    held = true;
  });
  const Endpoint good([](int n, const http::Request&, const http::Responder& responder) { responder.respond(text(programmed(n))); });
  const auto scraper = scraper_of({silent.url(), good.url()});
  scraper->round(5s);
  EXPECT_EQ(scraper->sources().at(0).failures, 1u);
  EXPECT_EQ(scraper->sources().at(1).scrapes, 1u);
  // And whoever cancels ends it at once: the deadline of this round is beyond any test's.
  held = false;
  std::thread round([&] { scraper->round(10h); });
  while (!held) std::this_thread::sleep_for(1ms);
  scraper->cancel();
  round.join();
  EXPECT_EQ(scraper->sources().at(0).failures, 1u);  // what was cancelled did not fail
  scraper->round(10h);                               // nor does anything begin after that
  scraper->go_on();
  scraper->round(kPatient, true);
  EXPECT_GE(scraper->sources().at(1).scrapes, 2u);
}

TEST(Observer, ReadsBeforeTheRunAndAfterIt) {
  const Endpoint endpoint([](int n, const http::Request&, const http::Responder& responder) { responder.respond(text(programmed(n))); });
  const auto observer = observer_of({endpoint.url()});
  for (int run = 0; run < 2; ++run) {  // it can be used again, and begins anew
    observer->before_start();
    observer->started(steady_clock().now());
    observer->ended();
    const json::Object seen = observer->take();
    ASSERT_EQ(endpoint.scrapes, 2 * (run + 1));
    EXPECT_EQ(seen.at("sources").as_array().at(0).at("scrapes").as_uint64(), 2u);
    EXPECT_EQ(seen.at("sources").as_array().at(0).at("failures").as_uint64(), 0u);
    const json::Object* requests = series_named(seen, "weir_requests_total");
    ASSERT_TRUE(requests);
    EXPECT_DOUBLE_EQ(number(*requests, "increase"), 10);
    EXPECT_DOUBLE_EQ(number(*requests, "first"), 100 + 10 * (2 * run + 1));
    EXPECT_EQ(requests->at("meaning").as_string(), "requests");
    EXPECT_EQ(requests->at("source").as_string(), endpoint.url());
    EXPECT_DOUBLE_EQ(number(*series_named(seen, "weir_ttft_seconds"), "mean"), 0.5);
    EXPECT_TRUE(series_named(seen, "weir_kv_cache_use_ratio")->at("mean").is_null());  // no reading lies within the run
    EXPECT_TRUE(series_named(seen, "machine_memory_available_bytes"));
    EXPECT_NE(observations_text({{"observations", seen}}).find("10 more"), std::string::npos);
  }
}

TEST(Observer, ReadsMeanwhile) {
  std::atomic<bool> enough{false};
  const Endpoint endpoint([&](int n, const http::Request&, const http::Responder& responder) {
    responder.respond(text(programmed(n)));
    if (n >= 5) enough = true;
  });
  const auto observer = observer_of({endpoint.url()}, 100ms);
  observer->before_start();
  observer->started(steady_clock().now());
  while (!enough) std::this_thread::sleep_for(1ms);
  observer->ended();
  const json::Object seen = observer->take();
  const auto scrapes = static_cast<double>(seen.at("sources").as_array().at(0).at("scrapes").as_uint64());
  EXPECT_GE(scrapes, 5);
  const double failures = number(seen.at("sources").as_array().at(0).as_object(), "failures");
  ASSERT_TRUE(series_named(seen, "weir_requests_total"));
  const double increase = number(*series_named(seen, "weir_requests_total"), "increase");
  EXPECT_DOUBLE_EQ(std::fmod(increase, 10), 0);
  // On a slow machine some miss their deadline, and the end cuts one off that the server has counted.
  EXPECT_GE(increase, 10 * (scrapes - failures - 1));
}

TEST(Observer, ADeadEndpointIsANoteThatSaysWhatToDo) {
  std::string gone;
  {
    const Endpoint closed([](int, const http::Request&, const http::Responder&) {});
    gone = closed.url();
  }
  const auto observer = observer_of({gone});
  observer->before_start();
  observer->started(steady_clock().now());
  observer->ended();
  const json::Object seen = observer->take();
  EXPECT_NE(notes_of(seen).find("no metrics from " + std::string("http:")), std::string::npos) << notes_of(seen);
  EXPECT_NE(notes_of(seen).find("--metrics-url"), std::string::npos);
  EXPECT_NE(observations_text({{"observations", seen}}).find("note: no metrics"), std::string::npos);
}

TEST(Observer, ARunThatNeverEndsDoesNotHoldIt) {
  const Endpoint endpoint([](int n, const http::Request&, const http::Responder& responder) { responder.respond(text(programmed(n))); });
  auto observer = observer_of({endpoint.url()});
  observer->before_start();
  observer.reset();  // as when the run failed
}

TEST(Observer, HostileTextsStayText) {
  const std::string evil = "</title><script>alert(1)</script>\\\"\\\\";
  const Endpoint endpoint([&](int, const http::Request&, const http::Responder& responder) {
    responder.respond(text("# TYPE weir_requests_running gauge\nweir_requests_running{model=\"" + evil + "\x1b[2J\"} 3\n"));
  });
  const auto observer = observer_of({endpoint.url()}, kNoTick, "weir_");
  observer->before_start();
  observer->started(steady_clock().now() - 1h);
  observer->ended();
  json::Object seen{{"observations", observer->take()}};
  EXPECT_EQ(observations_text(seen).find('\x1b'), std::string::npos);
  Measured run;
  run.seen = seen;
  const auto page = html_report(std::vector<ReportFile>{{"r", run_json(run, {})}});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->find("<script"), std::string::npos);
  EXPECT_NE(page->find("At the server: requests"), std::string::npos);
  EXPECT_NE(page->find("&lt;script&gt;"), std::string::npos);
}

TEST(Observer, TheNullServersCountsAreThoseOfTheRecords) {
  NullServerOptions null_options;
  null_options.ttft = Distribution::constant(0.002);
  null_options.itl = Distribution::constant(0.001);
  null_options.tokens = Distribution::constant(7);
  null_options.error_every = 5;
  const auto server = NullServer::start(std::move(null_options));
  ASSERT_TRUE(server);
  const auto observer = observer_of({"http://" + (*server)->address() + "/metrics"});
  LoadSpec spec;
  spec.target.url = (*server)->address();
  spec.users = 3;
  spec.size.requests = 40;
  spec.prompts.input_tokens = Distribution::constant(9);
  spec.prompts.output_tokens = Distribution::constant(7);
  spec.prompts.turns = Distribution::constant(1);
  spec.run.watcher = observer.get();
  const auto scenario = Scenario::prepare(std::move(spec));
  ASSERT_TRUE(scenario) << scenario.error().message;
  for (int level = 0; level < 2; ++level) {
    Progress progress;
    auto measured = scenario->measure({}, progress);
    ASSERT_TRUE(measured) << measured.error().message;
    measured->seen["observations"] = observer->take();
    std::size_t ok = 0, failed = 0;
    std::int64_t tokens = 0, prompt = 0;
    for (const RequestRecord& r : measured->result.records) {
      ok += r.outcome == Outcome::kOk, failed += r.outcome == Outcome::kHttpError;
      if (r.outcome == Outcome::kOk) tokens += r.output_tokens, prompt += r.prompt_tokens;
    }
    ASSERT_EQ(ok + failed, 40u);
    const json::Object out = run_json(*measured, {});
    const json::Object& seen = out.at("observations").as_object();
    EXPECT_DOUBLE_EQ(number(*series_named(seen, "weir_requests_total", "ok"), "increase"), static_cast<double>(ok));
    EXPECT_DOUBLE_EQ(number(*series_named(seen, "weir_requests_total", "failed"), "increase"), static_cast<double>(failed));
    EXPECT_DOUBLE_EQ(number(*series_named(seen, "weir_generated_tokens_total"), "increase"), static_cast<double>(tokens));
    EXPECT_DOUBLE_EQ(number(*series_named(seen, "weir_prompt_tokens_total"), "increase"), static_cast<double>(prompt));
    EXPECT_GT(number(*series_named(seen, "weir_requests_total", "ok"), "rate_per_s"), 0);
    EXPECT_NE(run_text(*measured, {}).find("Server ("), std::string::npos);
  }
}

TEST(Observer, FindsWhereMetricsAre) {
  const Endpoint endpoint([](int n, const http::Request&, const http::Responder& responder) { responder.respond(text(programmed(n))); });
  const FoundMetrics own = find_metrics({endpoint.url(), {}}, {}, kPatient);
  EXPECT_EQ(own.url, endpoint.url());
  EXPECT_EQ(own.note, "");
  const Endpoint other([](int, const http::Request&, const http::Responder& responder) { responder.respond(text("no", 404)); });
  const FoundMetrics fallback = find_metrics({other.url(), {}}, {}, kPatient);
  EXPECT_EQ(fallback.url, kPerfAnalyzerMetricsUrl);
  EXPECT_NE(fallback.note, "");
  EXPECT_EQ(*metrics_url("localhost:8002/metrics"), "http://localhost:8002/metrics");
  EXPECT_EQ(*metrics_url("https://a:9/"), "https://a:9/metrics");
  EXPECT_EQ(*metrics_url("a/b?c=d"), "http://a/b?c=d");
  EXPECT_FALSE(metrics_url("ftp://a"));
  EXPECT_FALSE(metrics_url(""));
  EXPECT_FALSE(find_server_pid("http://192.0.2.1:80"));
  EXPECT_EQ(find_server_pid(endpoint.url()).value_or(::getpid()), ::getpid());
}

}  // namespace
}  // namespace weir::loadgen
