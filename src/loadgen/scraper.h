// SPDX-License-Identifier: Apache-2.0
// Reads metrics endpoints, all of them at once, with a deadline. What fails is counted and told, and is no error.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/client.h"
#include "loadgen/observed_names.h"
#include "loadgen/observed_series.h"

namespace weir::loadgen {

struct MetricsSource {
  std::string url;
  http::Headers headers;  // sent with each scrape
};

// "localhost:8002/metrics", "http://a:9400", …: a whole URL; where no path is named, /metrics.
Result<std::string> metrics_url(const std::string& text);

struct SourceState {
  std::string url;
  std::size_t scrapes = 0, failures = 0;
  std::string last_failure;
  double slowest_s = 0;   // of the scrapes that were answered
  bool answering = true;  // the latest scrape was
  std::size_t cut = 0;    // series of the latest scrape beyond what one may hold
  SeriesStore series;
};

class Scraper {
 public:
  struct Options {
    std::vector<MetricsSource> sources;
    SeriesFilter filter;
    http::ClientTls tls;
    ExpositionLimits limits;
  };
  static Result<std::unique_ptr<Scraper>> make(Options options);

  // One scrape of every source; returns when all have ended, at the deadline at the latest. From one thread at a time.
  void round(Duration deadline, bool only_answering = false);
  // Ends the round that runs, and those that come, at once; from any thread. Scrapes that this ends do not count.
  void cancel();
  void begin_anew();  // empties all states, and undoes cancel()
  void go_on();       // undoes cancel()

  const std::vector<SourceState>& sources() const { return states_; }

 private:
  struct Round;
  Scraper(Options options, std::unique_ptr<http::Client> client);
  void take(SourceState& state, const Status& status, const http::ClientResponse& response);
  Status read(SourceState& state, const http::ClientResponse& response);

  Options options_;
  std::vector<SourceState> states_;
  std::mutex mutex_;
  bool cancelled_ = false;
  std::vector<http::Client::Call> calls_;
  std::unique_ptr<http::Client> client_;  // last: ends before what its handlers touch
};

}  // namespace weir::loadgen
