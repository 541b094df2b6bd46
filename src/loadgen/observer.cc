// SPDX-License-Identifier: Apache-2.0
#include "loadgen/observer.h"

#include <sys/resource.h>

#include <algorithm>

#include "http/url.h"
#include "loadgen/report_curves.h"

namespace weir::loadgen {
namespace {

constexpr int kNiceness = 10;
constexpr Duration kLeastInterval = std::chrono::milliseconds(10), kPatience = std::chrono::seconds(3),
                   kMostPatience = std::chrono::seconds(5);
constexpr double kSlow = 0.25;  // of an interval: a scrape that takes longer may itself be a load

json::Object source_json(const std::string& url, std::size_t scrapes, std::size_t failures, const SeriesStore& series) {
  return {{"url", url}, {"scrapes", scrapes}, {"failures", failures}, {"series", series.size()}, {"series_left_out", series.left_out()}};
}

void add_series(json::Array& out, const std::string& url, const std::vector<SeriesFigures>& figures) {
  for (const SeriesFigures& f : figures) {
    json::Object series{{"source", url}};
    for (auto& [key, value] : to_json(f)) series[key] = std::move(value);
    out.push_back(std::move(series));
  }
}

void add_notes(const SourceState& state, Duration interval, json::Array& notes) {
  if (state.scrapes > 0 && state.failures == state.scrapes) {
    notes.emplace_back(fmt::format("no metrics from {}: {}. Name the endpoint with --metrics-url", state.url, state.last_failure));
  } else if (state.failures > 0) {
    notes.emplace_back(
        fmt::format("{} of {} scrapes of {} failed, the last with: {}", state.failures, state.scrapes, state.url, state.last_failure));
  }
  if (state.series.size() == 0 && state.failures < state.scrapes)
    notes.emplace_back(fmt::format("{} tells none of the series that are looked for: choose some with --metrics-filter", state.url));
  if (state.slowest_s > kSlow * to_seconds(interval))
    notes.emplace_back(fmt::format("a scrape of {} took {:.3g} s: that is a load of its own; take a longer --metrics-interval", state.url,
                                   state.slowest_s));
  if (state.cut + state.series.left_out() > 0)
    notes.emplace_back(
        fmt::format("{} series of {} are left out: narrow them with --metrics-filter", state.cut + state.series.left_out(), state.url));
}

}  // namespace

Observer::Observer(ObserverOptions options, std::unique_ptr<Scraper> scraper)
    : options_(std::move(options)), scraper_(std::move(scraper)), machine_(options_.machine) {}

Observer::~Observer() { stop(); }

Result<std::unique_ptr<Observer>> Observer::make(ObserverOptions options) {
  if (options.interval < kLeastInterval || options.interval > std::chrono::hours(1))
    return fail(ErrorCode::kInvalidArgument, "metrics are read every 10 ms to 1 h");
  WEIR_ASSIGN(const SeriesFilter filter, SeriesFilter::make(options.filter));
  WEIR_ASSIGN(auto scraper, Scraper::make({.sources = options.sources, .filter = filter, .tls = options.tls, .limits = {}}));
  return std::unique_ptr<Observer>(new Observer(std::move(options), std::move(scraper)));
}

// Of a scrape between others: less than the interval.
Duration Observer::deadline() const { return std::min<Duration>(options_.interval * 4 / 5, kMostPatience); }

void Observer::look(Duration deadline, bool only_answering) {
  const TimePoint now = steady_clock().now();
  machine_series_.add(now, machine_.sample(now));
  scraper_->round(deadline, only_answering);
}

void Observer::before_start() {
  stop();
  scraper_->begin_anew();
  machine_.begin_anew();
  machine_series_ = {};
  over_ = false;
  begin_ = end_ = {};
  look(kPatience, false);
  thread_ = std::thread([this] { loop(); });
}

void Observer::started(TimePoint begin) {
  const std::scoped_lock lock(mutex_);
  begin_ = end_ = begin;
}

void Observer::ended() {
  {
    const std::scoped_lock lock(mutex_);
    end_ = steady_clock().now();
    over_ = true;
    scraper_->cancel();
  }
  wake_.notify_one();
}

void Observer::loop() {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread, on Linux
  std::unique_lock lock(mutex_);
  TimePoint next = steady_clock().now() + options_.interval;
  while (!wake_.wait_until(lock, next, [this] { return over_; })) {
    lock.unlock();
    look(deadline(), false);
    lock.lock();
    const TimePoint now = steady_clock().now();
    while (next <= now) next += options_.interval * std::max<std::int64_t>(1, (now - next) / options_.interval);
  }
  const TimePoint end = end_;
  lock.unlock();
  // What the machine did up to now it did in the run; a server that did not answer just before is not waited for again.
  machine_series_.add(end, machine_.sample(steady_clock().now()));
  scraper_->go_on();
  scraper_->round(kPatience, true);
}

void Observer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    scraper_->cancel();
  }
  wake_.notify_one();
  thread_.join();
}

json::Object Observer::take() {
  if (thread_.joinable()) {
    if (!over_) ended();
    thread_.join();
  }
  json::Array sources, notes, series;
  for (const std::string& note : options_.notes) notes.emplace_back(note);
  for (const SourceState& state : scraper_->sources()) {
    json::Object source = source_json(state.url, state.scrapes, state.failures, state.series);
    source["slowest_scrape_s"] = state.slowest_s;
    source["last_failure"] = state.last_failure.empty() ? json::Value(nullptr) : json::Value(state.last_failure);
    sources.push_back(std::move(source));
    add_notes(state, options_.interval, notes);
    add_series(series, state.url, state.series.figures(begin_, end_));
  }
  add_series(series, "machine", machine_series_.figures(begin_, end_));
  return {{"interval_s", to_seconds(options_.interval)},
          {"to_s", six_digits(to_seconds(end_ - begin_))},
          {"sources", std::move(sources)},
          {"notes", std::move(notes)},
          {"series", std::move(series)}};
}

FoundMetrics find_metrics(const MetricsSource& own, const http::ClientTls& tls, Duration patience) {
  auto scraper = Scraper::make({.sources = {own}, .filter = {}, .tls = tls, .limits = {}});
  if (scraper) {
    (*scraper)->round(patience);
    if ((*scraper)->sources().front().answering && (*scraper)->sources().front().failures == 0) return {own.url, {}};
  }
  return {kPerfAnalyzerMetricsUrl, fmt::format("{} is no metrics endpoint, so {} was read", own.url, kPerfAnalyzerMetricsUrl)};
}

std::optional<int> find_server_pid(const std::string& url) {
  const auto parsed = http::parse_url(url);
  if (!parsed || (parsed->host != "localhost" && parsed->host != "::1" && !parsed->host.starts_with("127."))) return std::nullopt;
  return energy::find_listener(static_cast<std::uint16_t>(std::stoi(parsed->port)));
}

}  // namespace weir::loadgen
