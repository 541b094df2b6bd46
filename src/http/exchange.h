// SPDX-License-Identifier: Apache-2.0
// What a Responder and its connection share: the answer on its way. Responders push from any thread; the connection takes ready
// pieces on its io thread. One mutex, held for moves of strings only; no callback runs under it.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "http/loop.h"
#include "http/responder.h"

namespace weir::http {

// The connection as the exchange sees it; on the io thread only.
class ExchangeOwner {
 public:
  virtual ~ExchangeOwner() = default;
  virtual void on_exchange_changed() = 0;
};

class Exchange final : public Wakeable, public std::enable_shared_from_this<Exchange> {
 public:
  struct Framing {
    bool chunked = true;     // else the connection's end is the stream's
    bool head_only = false;  // HEAD
  };
  // What the connection is to send next, in this order.
  struct Piece {
    std::optional<Response> head;  // its body is the whole body unless streamed
    bool streamed = false;
    std::string bytes;
    bool last = false;       // the answer is over behind this
    bool aborted = false;    // cut instead
    bool abandoned = false;  // the handler is gone without an answer
    bool empty() const { return !head && bytes.empty() && !last && !aborted && !abandoned; }
  };

  Exchange(std::shared_ptr<Inbox> inbox, ExchangeOwner& owner, std::uint64_t request_id, Framing framing)
      : inbox_(std::move(inbox)), owner_(&owner), request_id_(request_id), framing_(framing) {}

  // Responders, any thread.
  void hold() { handles_.fetch_add(1, std::memory_order_relaxed); }
  void release();
  bool respond(Response response);
  bool start(int status, Headers headers, const StreamOptions& options);
  Push push(std::string bytes, bool alone);
  bool finish();
  bool abort();
  void on_gone(std::function<void(Gone)> callback);
  void on_writable(std::function<void()> callback);
  void set_deadline(TimePoint when);
  Gone gone() const { return gone_.load(std::memory_order_acquire); }
  std::size_t queued_bytes();
  std::uint64_t request_id() const { return request_id_; }

  // The connection, io thread.
  Piece take();
  void written(std::size_t queued_bytes);
  void tell_gone(Gone reason);
  TimePoint deadline();
  Duration comment_after();
  bool unanswered();
  void detach();  // the connection has done with it: nothing is called from here on
  void woken() override;

 private:
  enum class Phase { kUnanswered, kStreaming, kFinished, kAborted, kDetached };
  struct Block {
    std::string bytes;
    bool alone;  // in a write of its own
  };
  void wake() {
    if (!waking_.exchange(true, std::memory_order_acq_rel)) inbox_->wake(shared_from_this());
  }
  std::string framed(std::string bytes) const;
  void append_blocks(Piece& piece);

  const std::shared_ptr<Inbox> inbox_;
  ExchangeOwner* owner_;  // io thread only
  const std::uint64_t request_id_;
  const Framing framing_;
  std::atomic<int> handles_{0};
  std::atomic<Gone> gone_{Gone::kNo};
  std::atomic<bool> waking_{false};  // in the inbox already

  std::mutex mutex_;
  Phase phase_ = Phase::kUnanswered;
  bool streamed_ = false, abandoned_ = false, told_ = false, end_taken_ = false, wants_room_ = false;
  std::optional<Response> head_;
  StreamOptions options_;
  std::deque<Block> blocks_;
  std::size_t queued_ = 0;  // bytes in blocks_ or being written
  TimePoint deadline_ = TimePoint::max();
  std::function<void(Gone)> on_gone_;
  std::function<void()> on_writable_;
};

}  // namespace weir::http
