// SPDX-License-Identifier: Apache-2.0
#include "api/response_store.h"

#include <algorithm>

namespace weir::api {
namespace {

// What an item or an answer takes beside its text: pointers, control blocks, map nodes.
constexpr std::size_t kItemOverhead = 64, kEntryOverhead = 512;

std::size_t bytes_of(const std::vector<StoredItem>& items) {
  std::size_t sum = 0;
  for (const StoredItem& item : items) sum += item->size() + kItemOverhead;
  return sum;
}

}  // namespace

std::size_t StoredResponse::bytes() const {
  return document.size() + kEntryOverhead + bytes_of(context) + bytes_of(input) + bytes_of(output);
}

ResponseStore::ResponseStore(ResponseStoreLimits limits, const Clock& clock) : limits_(limits), clock_(clock) {}

bool ResponseStore::put(std::string_view tenant, std::string_view id, std::shared_ptr<const StoredResponse> response) {
  const std::size_t bytes = response->bytes() + tenant.size() + 2 * id.size();
  const std::lock_guard lock(mutex_);
  drop_expired();
  if (const auto* old = find(tenant, id)) drop(*old);
  if (bytes > limits_.max_response_bytes || bytes > limits_.max_bytes || limits_.max_responses == 0) return false;

  Tenant& owner = tenants_[std::string(tenant)];
  const auto entry = entries_.insert(
      entries_.end(),
      {.tenant = std::string(tenant), .id = std::string(id), .response = std::move(response), .bytes = bytes, .stored = clock_.now()});
  entry->use = owner.by_use.insert(owner.by_use.end(), entry);
  owner.by_id.emplace(entry->id, entry);
  owner.bytes += bytes;
  bytes_ += bytes;
  make_room();
  return find(tenant, id) != nullptr;
}

std::shared_ptr<const StoredResponse> ResponseStore::get(std::string_view tenant, std::string_view id) {
  const std::lock_guard lock(mutex_);
  drop_expired();
  const auto* entry = find(tenant, id);
  if (!entry) return nullptr;
  std::list<Entries::iterator>& by_use = tenants_.find(tenant)->second.by_use;
  by_use.splice(by_use.end(), by_use, (*entry)->use);
  return (*entry)->response;
}

bool ResponseStore::remove(std::string_view tenant, std::string_view id) {
  const std::lock_guard lock(mutex_);
  drop_expired();
  const auto* entry = find(tenant, id);
  if (entry) drop(*entry);
  return entry != nullptr;
}

std::size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

ResponseStore::Entries::iterator* ResponseStore::find(std::string_view tenant, std::string_view id) {
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return nullptr;
  const auto entry = owner->second.by_id.find(std::string(id));
  return entry == owner->second.by_id.end() ? nullptr : &entry->second;
}

// By value: what `find` points to goes away here.
void ResponseStore::drop(Entries::iterator entry) {
  const auto owner = tenants_.find(entry->tenant);
  owner->second.by_use.erase(entry->use);
  owner->second.by_id.erase(entry->id);
  owner->second.bytes -= entry->bytes;
  bytes_ -= entry->bytes;
  if (owner->second.by_id.empty()) tenants_.erase(owner);
  entries_.erase(entry);
}

void ResponseStore::drop_expired() {
  const TimePoint now = clock_.now();
  while (!entries_.empty() && now - entries_.front().stored > limits_.max_age) drop(entries_.begin());
}

void ResponseStore::make_room() {
  while (bytes_ > limits_.max_bytes || entries_.size() > limits_.max_responses) {
    const bool by_bytes = bytes_ > limits_.max_bytes;
    const auto most = std::max_element(tenants_.begin(), tenants_.end(), [by_bytes](const auto& a, const auto& b) {
      return by_bytes ? a.second.bytes < b.second.bytes : a.second.by_id.size() < b.second.by_id.size();
    });
    drop(most->second.by_use.front());
  }
}

}  // namespace weir::api
