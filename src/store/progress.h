// SPDX-License-Identifier: Apache-2.0
// How a long transfer is watched and stopped from outside, and the printer that shows it to a person: one line that is
// redrawn on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace weir::store {

struct Progress {
  std::string_view label;              // the file
  std::uint64_t done = 0;              // bytes, those of earlier tries included
  std::optional<std::uint64_t> total;  // when known
  bool finished = false;
};

// What a pull tells and asks while it runs. Empty members are allowed.
struct Watcher {
  std::function<void(const Progress&)> on_progress;
  std::function<void(std::string_view)> on_note;  // a step begun, a retry, a warning: one line of text
  std::function<bool()> should_stop;              // asked often; what was loaded stays for the next time

  bool stop() const { return should_stop && should_stop(); }
  void note(std::string_view line) const {
    if (on_note) on_note(line);
  }
  void report(const Progress& progress) const {
    if (on_progress) on_progress(progress);
  }
};

class ProgressPrinter {
 public:
  explicit ProgressPrinter(std::FILE* out = stderr, const Clock& clock = steady_clock());
  ProgressPrinter(std::FILE* out, const Clock& clock, bool terminal, int columns);

  void show(const Progress& progress);
  void note(std::string_view line);
  Watcher watcher(std::function<bool()> should_stop);  // one that prints here; this printer must outlive it

 private:
  void draw(const Progress& progress, double bytes_per_second);

  std::FILE* out_;
  const Clock& clock_;
  bool terminal_;
  int columns_;
  std::string label_;
  TimePoint started_, last_;
  std::uint64_t first_done_ = 0;
  bool open_line_ = false;
};

}  // namespace weir::store
