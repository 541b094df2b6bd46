// SPDX-License-Identifier: Apache-2.0
// The seam between those who serve and those who compute: submit a request, read its events, cancel it, look at the state of the
// whole. In process it is the Engine; a worker in another process answers behind the same interface.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/completion.h"
#include "engine/service_stats.h"

namespace weir::engine {

// The reader's end of one request. One thread at a time reads; dropping it cancels.
class CompletionStream {
 public:
  virtual ~CompletionStream() = default;
  // What has happened and was not read yet, without waiting; after the last event nothing.
  virtual std::optional<CompletionEvent> next() = 0;
  // The same, waiting up to `most` for it.
  virtual std::optional<CompletionEvent> wait(Duration most) = 0;
  // Takes effect before the next step begins; a last event with kCancelled follows. From any thread.
  virtual void cancel() = 0;
};

class CompletionService {
 public:
  virtual ~CompletionService() = default;

  // Refuses at once what is wrong in itself (kInvalidArgument, kUnsupported), and when the service stops (kCancelled) or the
  // hand-over is full (kExhausted). What the scheduler refuses (a full queue, with the estimated wait) comes as a last event with
  // kFailed. `on_event` is called, from a thread of the service, whenever events came: it must return at once and not throw,
  // and it may be called once more while or after the stream is dropped: what it uses must live as long as itself.
  virtual Result<std::unique_ptr<CompletionStream>> submit(CompletionRequest request, std::function<void()> on_event = {}) = 0;
  virtual ServiceStats stats() const = 0;
};

// All events of a request put together: answer by answer, in order of their numbers.
struct Completion {
  std::vector<CompletionEvent> answers;
};
// Waits for the last event. kDeadline when nothing comes for `patience`.
Result<Completion> collect(CompletionStream& stream, Duration patience);

}  // namespace weir::engine
