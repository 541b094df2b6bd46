// SPDX-License-Identifier: Apache-2.0
#include "serving/work_pool.h"

#include <algorithm>
#include <exception>

#include "base/log.h"

namespace weir::serving {

WorkPool::WorkPool(int threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { run(); });
}

WorkPool::~WorkPool() { stop(); }

bool WorkPool::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.size() >= most_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void WorkPool::post_again(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    waiting_.push_front(std::move(work));
  }
  wake_.notify_one();
}

void WorkPool::stop() {
  std::deque<Work> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void WorkPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& e) {
      log::error("a request could not be prepared: {}", e.what());
    }
    work = nullptr;  // what it holds ends here, not under the lock
    lock.lock();
  }
}

}  // namespace weir::serving
