// SPDX-License-Identifier: Apache-2.0
// A batch is a span and the next index to take; worker and caller take jobs from it until none is left.
#include "grammar/mask_worker.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace weir::grammar {

struct MaskWorker::State {
  std::mutex mutex;
  std::condition_variable work, done;
  std::span<MaskJob> jobs;
  std::size_t next = 0, finished = 0;
  bool stop = false;
  std::thread thread;

  // Takes jobs until none is left. The lock is held but for the computing.
  void drain(std::unique_lock<std::mutex>& lock) {
    while (next < jobs.size()) {
      MaskJob& job = jobs[next++];
      lock.unlock();
      job.status = job.matcher->compute_masks(job.guesses);
      lock.lock();
      ++finished;
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || next < jobs.size(); });
      drain(lock);
      if (finished == jobs.size()) done.notify_one();
      if (stop) return;
    }
  }
};

MaskWorker::MaskWorker() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_one();
  state_->thread.join();
}

void MaskWorker::start(std::span<MaskJob> jobs) {
  {
    const std::lock_guard lock(state_->mutex);
    WEIR_CHECK(state_->finished == state_->jobs.size(), "the last batch was not waited for");
    state_->jobs = jobs;
    state_->next = state_->finished = 0;
  }
  if (!jobs.empty()) state_->work.notify_one();
}

void MaskWorker::wait() {
  std::unique_lock lock(state_->mutex);
  state_->drain(lock);
  state_->done.wait(lock, [&] { return state_->finished == state_->jobs.size(); });
  state_->jobs = {};
  state_->next = state_->finished = 0;
}

}  // namespace weir::grammar
