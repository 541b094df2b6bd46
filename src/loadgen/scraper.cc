// SPDX-License-Identifier: Apache-2.0
#include "loadgen/scraper.h"

#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>

#include "http/url.h"

namespace weir::loadgen {
namespace {

constexpr int kNiceness = 10;  // below the load's own threads
constexpr auto kGrace = std::chrono::seconds(1);

bool has_word(const http::ClientResponse& response, std::string_view word) {
  return response.headers.get("Content-Type").find(word) != std::string_view::npos;
}

}  // namespace

Result<std::string> metrics_url(const std::string& text) {
  WEIR_ASSIGN(const http::Url url, http::parse_typed_url(text));
  return http::origin_of(url) + (url.target == "/" ? "/metrics" : url.target);
}

// What a round waits for. Handlers keep it alive, should the round give up first.
struct Scraper::Round {
  struct Answer {
    std::size_t source = 0;
    Status status;
    http::ClientResponse response;
  };
  std::mutex mutex;
  std::condition_variable done;
  std::vector<Answer> answers;
};

Scraper::Scraper(Options options, std::unique_ptr<http::Client> client) : options_(std::move(options)), client_(std::move(client)) {
  begin_anew();
}

Result<std::unique_ptr<Scraper>> Scraper::make(Options options) {
  http::ClientOptions client_options;
  client_options.tls = options.tls;
  client_options.on_thread_start = [] { ::setpriority(PRIO_PROCESS, 0, kNiceness); };  // of this thread, on Linux
  WEIR_ASSIGN(auto client, http::Client::make(std::move(client_options)));
  return std::unique_ptr<Scraper>(new Scraper(std::move(options), std::move(client)));
}

void Scraper::begin_anew() {
  states_.clear();
  for (const MetricsSource& source : options_.sources) {
    states_.emplace_back();
    states_.back().url = source.url;
  }
  go_on();
}

void Scraper::go_on() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = false;
}

void Scraper::cancel() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  for (const http::Client::Call& call : calls_) call.cancel();
}

void Scraper::round(Duration deadline, bool only_answering) {
  const auto round = std::make_shared<Round>();
  std::size_t asked = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (cancelled_) return;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (only_answering && !states_[i].answering) continue;
      http::ClientRequest request{.url = states_[i].url, .unix_socket = {}, .headers = options_.sources[i].headers, .body = {}};
      request.headers.add("Accept", "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5");
      request.connect_timeout = request.total_timeout = deadline;
      request.max_body_bytes = options_.limits.max_bytes;
      http::ClientHandlers handlers;
      handlers.on_done = [round, i](Status status, http::ClientResponse& response) {
        const std::scoped_lock done_lock(round->mutex);
        round->answers.push_back({i, std::move(status), std::move(response)});
        round->done.notify_one();
      };
      calls_.push_back(client_->start(std::move(request), std::move(handlers)));
      ++asked;
    }
  }
  std::vector<Round::Answer> answers;
  {
    std::unique_lock lock(round->mutex);
    round->done.wait_for(lock, deadline + kGrace, [&] { return round->answers.size() == asked; });
    answers = std::move(round->answers);
  }
  bool cancelled = false;
  {
    const std::scoped_lock lock(mutex_);
    calls_.clear();
    cancelled = cancelled_;
  }
  for (const Round::Answer& answer : answers)
    if (answer.status || !cancelled || answer.status.error().code != ErrorCode::kCancelled)
      take(states_[answer.source], answer.status, answer.response);
}

void Scraper::take(SourceState& state, const Status& status, const http::ClientResponse& response) {
  ++state.scrapes;
  const Status read_status = status ? read(state, response) : status;
  state.answering = read_status.has_value();
  if (read_status) return;
  ++state.failures;
  state.last_failure = read_status.error().message.substr(0, 500);
}

Status Scraper::read(SourceState& state, const http::ClientResponse& response) {
  if (response.status != 200) return fail(ErrorCode::kNetwork, "{} answered with status {}", state.url, response.status);
  const bool open_metrics = has_word(response, "openmetrics");
  auto exposition = parse_exposition(response.body, options_.filter, options_.limits);
  if (!exposition) return std::unexpected(std::move(exposition).error().with_context(state.url));
  if (open_metrics && !response.body.ends_with("# EOF\n")) return fail(ErrorCode::kCorrupt, "{} does not end with # EOF", state.url);
  if (exposition->samples == 0) return fail(ErrorCode::kCorrupt, "{} holds no metrics", state.url);
  state.slowest_s = std::max(state.slowest_s, to_seconds(response.times.last_byte - response.times.started));
  state.cut = exposition->left_out;
  state.series.add(response.times.first_byte, exposition->readings);
  return {};
}

}  // namespace weir::loadgen
