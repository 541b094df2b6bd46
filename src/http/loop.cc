// SPDX-License-Identifier: Apache-2.0
#include "http/loop.h"

#include <pthread.h>

#include <condition_variable>
#include <exception>

#include "base/log.h"
#include "http/net.h"

namespace weir::http {
namespace {

// Nothing that runs on a loop may end it: the fault stays with what it belongs to.
template <class Work>
void contained(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log::error("http: contained a fault on an io thread: {}", error.what());
  } catch (...) {
    log::error("http: contained an unknown fault on an io thread");
  }
}

}  // namespace

Loop::Loop(const std::string& name, const std::function<void()>& on_thread_start)
    : context_(std::make_unique<Context>()), inbox_(std::make_shared<Inbox>()) {
  inbox_->loop_ = this;
  thread_ = std::thread([this, on_thread_start] { serve(on_thread_start); });
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

Loop::~Loop() { stop(); }

void Loop::serve(const std::function<void()>& on_thread_start) {
  if (on_thread_start) contained(on_thread_start);
  while (!context_->io.stopped()) {
    contained([this] { context_->io.run(); });
  }
}

void Loop::post(std::function<void()> work) {
  const std::lock_guard lock(inbox_->mutex_);
  if (!inbox_->loop_) return;
  asio::post(context_->io, [work = std::move(work)] { contained(work); });
}

void Loop::run(const std::function<void()>& work) {
  struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    ~Done() = default;
  };
  // Tells the waiting thread whether the work ran or was dropped with the loop.
  struct Tell {
    std::shared_ptr<Done> done;
    explicit Tell(std::shared_ptr<Done> d) : done(std::move(d)) {}
    ~Tell() {
      const std::lock_guard lock(done->mutex);
      done->done = true;
      done->changed.notify_all();
    }
  };
  const auto done = std::make_shared<Done>();
  post([tell = std::make_shared<Tell>(done), &work] { work(); });
  std::unique_lock lock(done->mutex);
  done->changed.wait(lock, [&] { return done->done; });
}

void Inbox::wake(std::shared_ptr<Wakeable> target) {
  const std::lock_guard lock(mutex_);
  if (!loop_) return;
  woken_.push_back(std::move(target));
  if (woken_.size() == 1) asio::post(loop_->context_->io, [loop = loop_] { loop->serve_woken(); });
}

void Loop::serve_woken() {
  std::vector<std::shared_ptr<Wakeable>> now;
  {
    const std::lock_guard lock(inbox_->mutex_);
    now.swap(inbox_->woken_);
  }
  for (const auto& target : now) contained([&] { target->woken(); });
}

void Loop::stop() {
  std::vector<std::shared_ptr<Wakeable>> dropped;
  {
    const std::lock_guard lock(inbox_->mutex_);
    inbox_->loop_ = nullptr;
    dropped.swap(inbox_->woken_);
  }
  context_->io.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace weir::http
