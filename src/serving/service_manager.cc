// SPDX-License-Identifier: Apache-2.0
#include "serving/service_manager.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace weir::serving {
namespace {

long long monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

// The interval that systemd waits for at most; 0 = it does not watch this process.
long long watchdog_us() {
  static const long long interval = [] {
    const char* usec = std::getenv("WATCHDOG_USEC");
    const char* pid = std::getenv("WATCHDOG_PID");
    if (pid != nullptr && std::atol(pid) != static_cast<long>(::getpid())) return 0ll;
    return usec != nullptr ? std::atoll(usec) : 0ll;
  }();
  return interval;
}

}  // namespace

bool notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  const ssize_t sent =
      ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address), size);
  ::close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

void notify_ready() { notify_service_manager("READY=1\nSTATUS=serving"); }
void notify_reloading() { notify_service_manager(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us())); }
void notify_stopping() { notify_service_manager("STOPPING=1\nSTATUS=finishing streams"); }

void notify_alive() {
  static std::atomic<long long> last{0};
  if (watchdog_us() <= 0) return;
  const long long now = monotonic_us();
  if (now - last.load() < watchdog_us() / 3) return;
  last.store(now);
  notify_service_manager("WATCHDOG=1");
}

}  // namespace weir::serving
