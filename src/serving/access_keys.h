// SPDX-License-Identifier: Apache-2.0
// Access by the keys of a file. The file can be read again at any time: what its keys have used so far stays with their names, and a file
// with an error changes nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "serving/access.h"
#include "serving/keys.h"
#include "serving/limits.h"

namespace weir::serving {

class KeyedAccess final : public Access {
 public:
  using UnixClock = std::function<std::int64_t()>;  // seconds since 1970, for keys that expire

  static Result<std::shared_ptr<KeyedAccess>> open(const std::filesystem::path& file, const KeyLimits& defaults = {},
                                                   const Clock& clock = steady_clock(), UnixClock unix_clock = {});
  // For tests: a table from elsewhere.
  KeyedAccess(KeyTable table, const Clock& clock, UnixClock unix_clock);

  // The file as it is now. On an error the keys from before stay.
  Status reload();
  void replace(KeyTable table);

  api::ApiResult<Caller> identify(const http::Request& head) const override;
  api::ApiResult<void> may_use(const Caller& caller, std::string_view model) const override;
  api::ApiResult<std::unique_ptr<Ticket>> admit(const Caller& caller, std::int64_t prompt_tokens, std::int64_t max_tokens) override;
  std::vector<std::pair<std::string, std::string>> limit_headers(const Caller& caller) override;

 private:
  // The keys of one reading of the file, and what each has used; the latter is handed on to the next reading.
  struct Books {
    KeyTable table;
    std::unordered_map<std::string, std::pair<const KeyRecord*, std::shared_ptr<KeyUsage>>> by_name;
  };
  std::shared_ptr<const Books> books() const;

  std::filesystem::path file_;
  KeyLimits defaults_;
  const Clock& clock_;
  UnixClock unix_clock_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Books> books_;
};

// The key that a request shows: Authorization: Bearer, x-api-key or api-key. Empty: none.
std::string_view presented_key(const http::Headers& headers);

}  // namespace weir::serving
