// SPDX-License-Identifier: Apache-2.0
// Host names to addresses without blocking the loop; answers are kept for a few seconds, since a load generator asks thousands of times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/stream.h"

namespace weir::http {

class Resolver {
 public:
  using OnResolved = std::function<void(const Result<std::vector<SocketAddress>>&)>;

  explicit Resolver(Loop& loop);
  ~Resolver();

  // All on the loop's thread. Literal addresses and kept answers are told at once, within the call.
  void resolve(const std::string& host, const std::string& port, OnResolved on_resolved);

 private:
  struct Native;
  struct Kept {
    std::vector<SocketAddress> addresses;
    TimePoint until;
  };
  std::unique_ptr<Native> native_;
  std::map<std::string, Kept> kept_;
};

}  // namespace weir::http
