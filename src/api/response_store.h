// SPDX-License-Identifier: Apache-2.0
// Answers of /v1/responses that a later request may go on from or ask for. Bounded in number, bytes and age; each tenant sees its own
// only, and one that stores much loses its own answers before those of others.
//
// An answer holds its whole conversation as items that it shares with those before it, but each is counted in full: so an answer can be
// dropped without breaking those that came of it, and the bytes counted are never fewer than those used.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace weir::api {

// One item of a conversation (a message, a call, …): its JSON text.
using StoredItem = std::shared_ptr<const std::string>;

struct StoredResponse {
  std::string document;                                           // the response as the client got it
  std::vector<StoredItem> context = {}, input = {}, output = {};  // of earlier responses; this request's own; the answer
  std::size_t bytes() const;
};

struct ResponseStoreLimits {
  std::size_t max_responses = 4096;
  std::size_t max_bytes = 64u << 20;
  std::size_t max_response_bytes = 8u << 20;  // a larger one is not kept
  Duration max_age = std::chrono::hours(24);  // since it was stored
};

// Any thread may use it.
class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreLimits limits = {}, const Clock& clock = steady_clock());

  // False when it is too large to be kept. An id that is there already is replaced.
  bool put(std::string_view tenant, std::string_view id, std::shared_ptr<const StoredResponse> response);
  // nullptr when there is none such (any more). The one found is the tenant's last to go.
  std::shared_ptr<const StoredResponse> get(std::string_view tenant, std::string_view id);
  bool remove(std::string_view tenant, std::string_view id);

  std::size_t size() const;
  std::size_t bytes() const;

 private:
  struct Entry;
  using Entries = std::list<Entry>;
  struct Tenant {
    std::unordered_map<std::string, Entries::iterator> by_id;
    std::list<Entries::iterator> by_use;  // the one used last is the last
    std::size_t bytes = 0;
  };
  struct Entry {
    std::string tenant, id;
    std::shared_ptr<const StoredResponse> response;
    std::size_t bytes = 0;
    TimePoint stored{};
    std::list<Entries::iterator>::iterator use{};
  };

  Entries::iterator* find(std::string_view tenant, std::string_view id);
  void drop(Entries::iterator entry);
  void drop_expired();
  void make_room();

  ResponseStoreLimits limits_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  Entries entries_;  // the oldest first
  std::map<std::string, Tenant, std::less<>> tenants_;
  std::size_t bytes_ = 0;
};

}  // namespace weir::api
