// SPDX-License-Identifier: Apache-2.0
// The engine's end of one request: events out through a bounded ring, a flag that says the reader has gone. When the reader is
// slow, what comes meanwhile is put together into one event, so that nothing is lost and nothing waits; its size is bounded by the
// request's own limit of tokens.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/completion_service.h"
#include "engine/hand_over.h"

namespace weir::engine {

class CompletionChannel {
 public:
  // `engine` is told when the reader cancels.
  CompletionChannel(std::shared_ptr<Notice> engine, std::function<void()> on_event);

  // The engine's side.
  void send(CompletionEvent event);
  // Pushes what had to wait, as far as there is room.
  void flush();
  // Nothing will be sent any more: what still waits is the reader's now, so that the engine need not stay for it.
  void close();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // The reader's side.
  std::optional<CompletionEvent> next();
  std::optional<CompletionEvent> wait(Duration most);
  void cancel();

 private:
  static constexpr std::size_t kEvents = 16;
  void announce();

  OneToOne<CompletionEvent> ring_{kEvents};
  std::vector<CompletionEvent> late_;  // one for each answer at most; the reader's once it is closed
  std::atomic<bool> cancelled_{false}, closed_{false};
  std::shared_ptr<Notice> engine_;
  Notice reader_;
  std::function<void()> on_event_;
};

// `more` follows `event`, of the same answer.
void append_event(CompletionEvent& event, CompletionEvent&& more);

std::unique_ptr<CompletionStream> make_stream(std::shared_ptr<CompletionChannel> channel);

}  // namespace weir::engine
