// SPDX-License-Identifier: Apache-2.0
// Watches the server and this machine while a load runs: a thread of low priority that reads metrics endpoints at an interval, and what of
// it came over exactly the run's time. The load never waits for it: one reading before the start, one after the end while figures are
// computed anyway, each with a deadline; what does not answer is told and is no error.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "loadgen/machine_sampler.h"
#include "loadgen/run_watcher.h"
#include "loadgen/scraper.h"

namespace weir::loadgen {

struct ObserverOptions {
  std::vector<MetricsSource> sources;
  Duration interval = std::chrono::seconds(1);  // 10 ms at least
  std::string filter;                           // see SeriesFilter
  http::ClientTls tls;
  MachineSampler::Options machine;
  std::vector<std::string> notes;  // of how the sources were found
};

class Observer final : public RunWatcher {
 public:
  static Result<std::unique_ptr<Observer>> make(ObserverOptions options);
  ~Observer() override;

  void before_start() override;
  void started(TimePoint begin) override;
  void ended() override;

  // What was seen of the run that ended; waits for its last reading.
  json::Object take();

 private:
  Observer(ObserverOptions options, std::unique_ptr<Scraper> scraper);
  void loop();
  void look(Duration deadline, bool only_answering);
  void stop();
  Duration deadline() const;

  const ObserverOptions options_;
  std::unique_ptr<Scraper> scraper_;
  MachineSampler machine_;
  SeriesStore machine_series_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  TimePoint begin_{}, end_{};
  std::thread thread_;
};

// "Server" for people: what a run's "observations" hold that is known by meaning, and what failed. Empty without any.
std::string observations_text(const json::Object& seen);

// Where the metrics of a server are, when nobody says: its own /metrics if that answers as metrics do, else Perf Analyzer's default.
struct FoundMetrics {
  std::string url, note;
};
FoundMetrics find_metrics(const MetricsSource& own, const http::ClientTls& tls, Duration patience = std::chrono::seconds(2));
inline constexpr const char* kPerfAnalyzerMetricsUrl = "http://localhost:8002/metrics";

// Who listens at the port of this URL, where it is on this machine and this process may know.
std::optional<int> find_server_pid(const std::string& url);

}  // namespace weir::loadgen
