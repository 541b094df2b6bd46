// SPDX-License-Identifier: Apache-2.0
// One persistent pool of threads. Work is split by index ranges that depend on the problem's shape; no result may
// depend on which thread ran a range (design invariant 1). Workers spin briefly after a job, then park.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace weir {

// A non-owning reference to a callable: what std::function_ref will be.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, Args... args) -> R { return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<Args&&>(args)...); }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args&&>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

class ThreadPool {
 public:
  // `threads` counts the caller, who takes part in each run; 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Runs body(thread) once for each thread in [0, size()) and returns when all are done. Not reentrant: one caller.
  void run(FunctionRef<void(int)> body);

  // Runs body(begin, end) over [0, count), cut at multiples of `grain`; threads take pieces as they become free.
  void parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Processors that this process may use: the affinity mask and the cgroup's CPU quota (rounded up), at least 1.
int usable_processors();

}  // namespace weir
