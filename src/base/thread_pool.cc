// SPDX-License-Identifier: Apache-2.0
// A run hands out one ticket per thread index. Whoever is free takes the next ticket, the caller too, so a worker that
// the system has descheduled delays nobody: its ticket is taken by another. One 64-bit word holds (run, next ticket), so
// a worker that wakes late cannot take a ticket of a run that is over.
#include "base/thread_pool.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"

namespace weir {
namespace {

constexpr int kWorkerSpins = 4'000;  // about 0.1 ms of pauses: longer than the gaps between the steps of a layer
constexpr int kCallerSpins = 20'000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct ThreadPool::State {
  using Body = FunctionRef<void(int)>;

  explicit State(int threads) : size(threads), tickets(static_cast<std::uint32_t>(threads)) {
    workers.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) workers.emplace_back([this] { work(); });
  }

  ~State() {
    stopping.store(true);
    wake_workers();
    for (std::thread& worker : workers) worker.join();
  }

  // Takes and runs one ticket of the current run; false when none is left.
  bool run_one() {
    std::uint64_t seen = tickets.load(std::memory_order_acquire);
    do {
      if (static_cast<std::uint32_t>(seen) >= static_cast<std::uint32_t>(size)) return false;
    } while (!tickets.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    (*body)(static_cast<int>(static_cast<std::uint32_t>(seen)));  // the run cannot end before this ticket is done
    if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == size) done.notify_all();
    return true;
  }

  void work() {
    while (!stopping.load()) {
      const int seen = epoch.load();
      if (run_one()) continue;
      for (int spin = 0; spin < kWorkerSpins && epoch.load(std::memory_order_relaxed) == seen; ++spin) pause();
      sleepers.fetch_add(1);
      if (epoch.load() == seen && !stopping.load()) epoch.wait(seen);
      sleepers.fetch_sub(1);
    }
  }

  void wake_workers() {
    epoch.fetch_add(1);
    if (sleepers.load() > 0) epoch.notify_all();
  }

  void run(Body new_body) {
    body.emplace(new_body);
    done.store(0, std::memory_order_relaxed);
    const std::uint64_t run_number = (tickets.load(std::memory_order_relaxed) >> 32) + 1;
    tickets.store(run_number << 32, std::memory_order_release);
    wake_workers();
    while (run_one()) {
    }
    for (int spin = 0; spin < kCallerSpins && done.load(std::memory_order_acquire) != size; ++spin) pause();
    for (int seen = done.load(std::memory_order_acquire); seen != size; seen = done.load(std::memory_order_acquire)) done.wait(seen);
  }

  const int size;
  std::optional<Body> body;
  std::atomic<std::uint64_t> tickets;  // run number << 32 | next ticket; `size` or more: none left
  alignas(64) std::atomic<int> done{0};
  alignas(64) std::atomic<int> epoch{0};  // grows with each run; workers park on it
  std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int threads) {
  WEIR_CHECK(threads >= 1, "threads {}", threads);
  state_ = std::make_unique<State>(threads);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return state_->size; }

void ThreadPool::run(FunctionRef<void(int)> body) {
  if (state_->size == 1) return body(0);
  state_->run(body);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body) {
  WEIR_CHECK(grain >= 1, "grain {}", grain);
  if (count <= 0) return;
  if (count <= grain || size() == 1) return body(0, count);
  std::atomic<std::int64_t> next{0};
  run([&](int) {
    for (std::int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;) {
      body(begin, begin + grain < count ? begin + grain : count);
    }
  });
}

}  // namespace weir
