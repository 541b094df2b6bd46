// SPDX-License-Identifier: Apache-2.0
// A few threads for what must not run on an io thread: parsing, templates, tokenizers. Its queue is bounded: what does not fit is refused,
// never waited for. Work that was admitted once may come again (when its model has been loaded) beyond the bound.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::serving {

class WorkPool {
 public:
  using Work = std::function<void()>;

  WorkPool(int threads, std::size_t most_waiting);
  ~WorkPool();  // what waits is dropped, unrun
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // False when the queue is full or the pool ends. Work must not throw what it wants told: exceptions are logged.
  bool post(Work work);
  void post_again(Work work);  // goes first
  // No more work; waits for what runs. What waits is dropped.
  void stop();

 private:
  void run();

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weir::serving
