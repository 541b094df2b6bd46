// SPDX-License-Identifier: Apache-2.0
#include "telemetry/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"

namespace weir::telemetry {

class AccessLog::Writer {
 public:
  Writer(AccessLogOptions options, int fd) : options_(std::move(options)), fd_(fd), thread_([this] { run(); }) {}
  ~Writer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
    close_file(fd_);
    close_file(next_fd_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  static Result<int> open_file(const AccessLogOptions& options) {
    if (options.file == "-") return STDOUT_FILENO;
    const int fd = ::open(options.file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) return fail(ErrorCode::kIo, "{}: cannot open the access log: {}", options.file.string(), std::strerror(errno));
    return fd;
  }

  const AccessLogOptions& options() const { return options_; }
  std::uint64_t dropped() const { return dropped_.load(); }

  void push(std::string line) {
    line += '\n';
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() + line.size() > options_.max_queued) {
        dropped_.fetch_add(1);
        return;
      }
      wake = waiting_.empty();
      waiting_ += line;
      ++lines_;
    }
    if (wake) wake_.notify_one();
  }

  Status reopen() {
    WEIR_ASSIGN(const int fd, open_file(options_));
    {
      const std::lock_guard lock(mutex_);
      close_file(std::exchange(next_fd_, fd));
    }
    wake_.notify_one();
    return {};
  }

  void flush() {
    std::unique_lock lock(mutex_);
    const std::uint64_t until = lines_;
    written_changed_.wait(lock, [&] { return written_ >= until; });
  }

 private:
  static void close_file(int fd) {
    if (fd > STDERR_FILENO) ::close(fd);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty() || next_fd_ >= 0; });
      if (next_fd_ >= 0) close_file(std::exchange(fd_, std::exchange(next_fd_, -1)));
      if (waiting_.empty()) {
        if (stopping_) return;
        continue;
      }
      const std::string batch = std::exchange(waiting_, {});
      const std::uint64_t lines = lines_;
      lock.unlock();
      write_out(batch, lines - written_);
      lock.lock();
      written_ = lines;
      written_changed_.notify_all();
    }
  }

  void write_out(std::string_view bytes, std::uint64_t lines) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
      } else if (errno != EINTR) {
        dropped_.fetch_add(lines);  // perhaps fewer: some of them may have been written
        if (!std::exchange(failing_, true)) log::error("the access log cannot be written, lines are lost: {}", std::strerror(errno));
        return;
      }
    }
    failing_ = false;
  }

  const AccessLogOptions options_;
  int fd_ = -1;           // the thread's
  bool failing_ = false;  // likewise
  std::mutex mutex_;
  std::condition_variable wake_, written_changed_;
  std::string waiting_;
  std::uint64_t lines_ = 0, written_ = 0;  // pushed, and done with; only the thread changes the latter
  int next_fd_ = -1;
  bool stopping_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  std::thread thread_;
};

AccessLog::AccessLog(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
AccessLog::~AccessLog() = default;

Result<std::unique_ptr<AccessLog>> AccessLog::open(AccessLogOptions options) {
  WEIR_ASSIGN(const int fd, Writer::open_file(options));
  return std::unique_ptr<AccessLog>(new AccessLog(std::make_unique<Writer>(std::move(options), fd)));
}

const AccessLogOptions& AccessLog::options() const { return writer_->options(); }
Status AccessLog::reopen() { return writer_->reopen(); }
void AccessLog::flush() { writer_->flush(); }
std::uint64_t AccessLog::dropped() const { return writer_->dropped(); }

void AccessLog::write(const AccessEntry& entry) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  writer_->push(access_line(entry, writer_->options(), now.count()));
}

}  // namespace weir::telemetry
