// SPDX-License-Identifier: Apache-2.0
#include "engine/completion_channel.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"

namespace weir::engine {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

class ChannelStream final : public CompletionStream {
 public:
  explicit ChannelStream(std::shared_ptr<CompletionChannel> channel) : channel_(std::move(channel)) {}
  ~ChannelStream() override {
    if (!ended_) channel_->cancel();
  }
  std::optional<CompletionEvent> next() override { return note(channel_->next()); }
  std::optional<CompletionEvent> wait(Duration most) override {
    if (ended_) return std::nullopt;
    return note(channel_->wait(most));
  }
  void cancel() override { channel_->cancel(); }

 private:
  std::optional<CompletionEvent> note(std::optional<CompletionEvent> event) {
    if (event && event->last) ended_ = true;
    return event;
  }

  std::shared_ptr<CompletionChannel> channel_;
  bool ended_ = false;
};

}  // namespace

CompletionChannel::CompletionChannel(std::shared_ptr<Notice> engine, std::function<void()> on_event)
    : engine_(std::move(engine)), on_event_(std::move(on_event)) {}

void append_event(CompletionEvent& event, CompletionEvent&& more) {
  append(event.tokens, std::move(more.tokens));
  event.text += more.text;
  append(event.logprobs, std::move(more.logprobs));
  append(event.prompt_logprobs, std::move(more.prompt_logprobs));
  if (more.finish) event.finish = std::move(more.finish);
  event.last = event.last || more.last;
}

void CompletionChannel::send(CompletionEvent event) {
  if (late_.empty() && ring_.push(event)) return announce();
  // The last event of all stays behind those of other answers that wait.
  const auto same = std::ranges::find(late_, event.answer, &CompletionEvent::answer);
  if (same == late_.end()) {
    late_.push_back(std::move(event));
  } else {
    append_event(*same, std::move(event));
    if (same->last) std::rotate(same, same + 1, late_.end());
  }
  flush();
}

void CompletionChannel::flush() {
  std::size_t sent = 0;
  while (sent < late_.size() && ring_.push(late_[sent])) ++sent;
  if (sent == 0) return;
  late_.erase(late_.begin(), late_.begin() + static_cast<std::ptrdiff_t>(sent));
  announce();
}

void CompletionChannel::close() {
  closed_.store(true, std::memory_order_release);
  reader_.give();
}

std::optional<CompletionEvent> CompletionChannel::next() {
  if (auto event = ring_.pop()) return event;
  if (!closed_.load(std::memory_order_acquire)) return std::nullopt;
  if (auto event = ring_.pop()) return event;  // came between the two looks
  if (late_.empty()) return std::nullopt;
  std::optional<CompletionEvent> event(std::move(late_.front()));
  late_.erase(late_.begin());
  return event;
}

void CompletionChannel::announce() {
  reader_.give();
  if (on_event_) on_event_();
}

std::optional<CompletionEvent> CompletionChannel::wait(Duration most) {
  const TimePoint now = steady_clock().now(), end = now + std::min(most, TimePoint::max() - now);
  while (true) {
    if (auto event = next()) return event;
    const Duration left = end - steady_clock().now();
    if (left <= Duration::zero()) return std::nullopt;
    reader_.wait(left);
  }
}

void CompletionChannel::cancel() {
  cancelled_.store(true, std::memory_order_release);
  engine_->give();
}

std::unique_ptr<CompletionStream> make_stream(std::shared_ptr<CompletionChannel> channel) {
  return std::make_unique<ChannelStream>(std::move(channel));
}

Result<Completion> collect(CompletionStream& stream, Duration patience) {
  Completion all;
  while (true) {
    auto event = stream.wait(patience);
    if (!event) return fail(ErrorCode::kDeadline, "no event within {:.1f} s", to_seconds(patience));
    const auto index = static_cast<std::size_t>(event->answer);
    const bool last = event->last;
    while (all.answers.size() <= index) all.answers.push_back({.answer = static_cast<std::int32_t>(all.answers.size())});
    append_event(all.answers[index], std::move(*event));
    if (last) return all;
  }
}

}  // namespace weir::engine
