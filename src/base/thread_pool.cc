// SPDX-License-Identifier: Apache-2.0
// A run has one part for each thread index. Worker i waits for the run's number to change, claims part i and does it; the caller
// does part 0 and then any part that its worker has not begun, so a worker that the system has descheduled delays nobody.
//
// What a hand-over costs is cache lines that travel between cores, so each line has one purpose: the call line is written by the
// caller alone; a claim line stays with its worker unless the caller steals; a done line goes to the caller once a run. Workers
// find the same index in each run and so meet their own data again.
#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"

namespace weir {
namespace {

// Chosen with thread_pool_bench and decoding of a 135M model: longer than what the caller does between a token's steps.
constexpr std::chrono::microseconds kSpin{200};
constexpr int kStealAfter = 100;  // looks at a worker's done line before its part is taken over: a hand-over is usually done by then

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until `ready()` for as long as spinning may take; false when it is not.
template <class Ready>
bool spin_until(bool may_spin, Ready ready) {
  if (ready()) return true;
  if (!may_spin) return false;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

struct alignas(64) Line {
  std::atomic<std::uint64_t> run{0};  // the last run that was claimed or done
};

}  // namespace

struct ThreadPool::State {
  using Body = FunctionRef<void(int)>;

  explicit State(int threads)
      : size(threads),
        may_spin(threads <= usable_processors()),  // else a spinning thread takes the processor from one with work
        claimed(static_cast<std::size_t>(threads)),
        done(static_cast<std::size_t>(threads)) {
    workers.reserve(static_cast<std::size_t>(threads - 1));
    try {
      for (int i = 1; i < threads; ++i) workers.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      // The system grants no more threads: the caller does the parts of those that are missing.
    }
  }

  ~State() {
    stopping.store(true);
    epoch.fetch_add(1);
    epoch.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  // Takes part `i` of run `run` unless it is taken.
  bool claim(int i, std::uint64_t run) {
    std::uint64_t before = run - 1;
    return claimed[static_cast<std::size_t>(i)].run.compare_exchange_strong(before, run, std::memory_order_acq_rel);
  }

  void work(int i) {
    Line& mine = done[static_cast<std::size_t>(i)];
    std::uint64_t last = 0;
    while (!stopping.load(std::memory_order_relaxed)) {
      if (!spin_until(may_spin, [&] { return current.load(std::memory_order_acquire) != last; })) {
        park(last);
        continue;
      }
      last = current.load(std::memory_order_acquire);
      if (!claim(i, last)) continue;
      (*body)(i);            // the run cannot end before this part is done, so the body is this run's
      mine.run.store(last);  // ordered with the flag: either this thread sees that the caller sleeps, or the caller sees this
      if (caller_parked.load()) mine.run.notify_one();
    }
  }

  // Sleeps until the next run. Either the caller sees the sleeper, or the sleeper sees the run.
  void park(std::uint64_t last) {
    sleepers.fetch_add(1);
    const int seen = epoch.load();
    if (current.load() == last && !stopping.load()) epoch.wait(seen);
    sleepers.fetch_sub(1);
  }

  void run(Body new_body) {
    body.emplace(new_body);
    const std::uint64_t now = current.load(std::memory_order_relaxed) + 1;
    current.store(now);
    if (sleepers.load() > 0) {
      epoch.fetch_add(1);
      epoch.notify_all();
    }
    new_body(0);
    for (int i = 1; i < size; ++i) finish(i, now);
  }

  // Does part `i` unless its worker has begun it; else waits for it.
  void finish(int i, std::uint64_t run) {
    Line& other = done[static_cast<std::size_t>(i)];
    const auto is_done = [&] { return other.run.load(std::memory_order_acquire) == run; };
    for (int look = 0; look < (may_spin ? kStealAfter : 1); ++look) {
      if (is_done()) return;
      pause();
    }
    if (claim(i, run)) {
      (*body)(i);
      return other.run.store(run, std::memory_order_relaxed);
    }
    if (spin_until(may_spin, is_done)) return;
    caller_parked.store(true);
    for (std::uint64_t seen = other.run.load(); seen != run; seen = other.run.load()) other.run.wait(seen);
    caller_parked.store(false);
  }

  const int size;
  const bool may_spin;
  alignas(64) std::atomic<std::uint64_t> current{0};  // number of the run; with its body, the call line
  std::optional<Body> body;
  alignas(64) std::atomic<int> epoch{0};  // workers park on it
  std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false}, caller_parked{false};
  std::vector<Line> claimed, done;  // by index
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
  alignas(64) std::atomic<std::int64_t> next{0};
  run([&](int) {
    for (std::int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;) {
      body(begin, begin + grain < count ? begin + grain : count);
    }
  });
}

}  // namespace weir
