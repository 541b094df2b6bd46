// SPDX-License-Identifier: Apache-2.0
#include "store/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.h"

namespace weir::store {
namespace {

constexpr Duration kRedraw = std::chrono::milliseconds(100);
constexpr Duration kPlainLine = std::chrono::seconds(5);

constexpr int kRoomForFigures = 58;  // "100 % ", the bar's brackets, "999 MB of 999 MB, 999 MB/s, 99 min 59 s left"

int columns_of(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double share, int width) {
  const int filled = static_cast<int>(share * width);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(width - filled), ' ') + "]";
}

}  // namespace

ProgressPrinter::ProgressPrinter(std::FILE* out, const Clock& clock)
    : ProgressPrinter(out, clock, ::isatty(::fileno(out)) == 1, columns_of(out)) {}

ProgressPrinter::ProgressPrinter(std::FILE* out, const Clock& clock, bool terminal, int columns)
    : out_(out), clock_(clock), terminal_(terminal), columns_(columns) {}

void ProgressPrinter::show(const Progress& progress) {
  const TimePoint now = clock_.now();
  if (label_ != progress.label) {
    label_ = progress.label;
    started_ = last_ = now;
    first_done_ = progress.done;
    if (!progress.finished && !terminal_) return;  // the first plain line comes after its interval
  } else if (!progress.finished && now - last_ < (terminal_ ? kRedraw : kPlainLine)) {
    return;
  }
  last_ = now;
  const double seconds = to_seconds(now - started_);
  draw(progress, seconds > 0 ? static_cast<double>(progress.done - std::min(progress.done, first_done_)) / seconds : 0);
  if (progress.finished) label_.clear();
}

void ProgressPrinter::draw(const Progress& progress, double speed) {
  std::string figures = format_bytes(progress.done);
  if (progress.total) figures += " of " + format_bytes(*progress.total);
  if (speed > 0) figures += fmt::format(", {}/s", format_bytes(static_cast<std::uint64_t>(speed)));
  if (progress.total && speed > 0 && !progress.finished && *progress.total > progress.done)
    figures += fmt::format(", {} left", format_duration(static_cast<double>(*progress.total - progress.done) / speed));
  if (!terminal_) {
    fmt::print(out_, "{}: {}{}\n", progress.label, figures, progress.finished ? ", done" : "");
    std::fflush(out_);
    return;
  }
  std::string line = fmt::format("{}  ", progress.label);
  const double share =
      progress.total && *progress.total > 0 ? std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(*progress.total)) : 0;
  const int room = columns_ - static_cast<int>(line.size()) - kRoomForFigures;  // not the figures' own length: the bar would tremble
  if (progress.total && room >= 10) line += fmt::format("{} {:3.0f} %  ", bar(share, std::min(room, 30)), share * 100);
  line += figures;
  if (static_cast<int>(line.size()) >= columns_) line.resize(static_cast<std::size_t>(std::max(1, columns_ - 1)));
  fmt::print(out_, "\r{}\x1b[K{}", line, progress.finished ? "\n" : "");
  std::fflush(out_);
  open_line_ = !progress.finished;
}

void ProgressPrinter::note(std::string_view line) {
  fmt::print(out_, "{}{}\n", open_line_ ? "\n" : "", line);
  std::fflush(out_);
  open_line_ = false;
}

Watcher ProgressPrinter::watcher(std::function<bool()> should_stop) {
  return {[this](const Progress& progress) { show(progress); }, [this](std::string_view line) { note(line); }, std::move(should_stop)};
}

}  // namespace weir::store
