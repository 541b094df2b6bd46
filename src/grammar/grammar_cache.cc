// SPDX-License-Identifier: Apache-2.0
// Compiling happens outside the lock; two threads that miss together compile twice, and the first result stays.
#include "grammar/grammar_cache.h"

#include <fmt/core.h>

#include <utility>

namespace weir::grammar {
namespace {

std::string key_of(const GrammarSpec& spec) {
  std::string key = fmt::format("{}.{}.{}.", static_cast<int>(spec.kind), static_cast<int>(spec.whitespace), spec.text.size());
  key += spec.text;
  for (const std::string& choice : spec.choices) {
    key += fmt::format("{}.", choice.size());
    key += choice;
  }
  return key;
}

}  // namespace

GrammarCache::GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t most)
    : vocabulary_(std::move(vocabulary)), most_(most) {}

std::list<GrammarCache::Entry>::iterator GrammarCache::find(const std::string& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? entries_.end() : found->second;
}

Result<std::shared_ptr<const Grammar>> GrammarCache::get(const GrammarSpec& spec) {
  std::string key = key_of(spec);
  {
    const std::lock_guard lock(mutex_);
    const auto entry = find(key);
    if (entry != entries_.end() && !(entry->grammar && (*entry->grammar)->failed())) {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->grammar;
    }
  }
  auto grammar = compile(spec, vocabulary_);
  const std::lock_guard lock(mutex_);
  insert(std::move(key), grammar);
  return grammar;
}

void GrammarCache::insert(std::string key, Result<std::shared_ptr<const Grammar>> grammar) {
  if (const auto old = find(key); old != entries_.end()) {
    by_key_.erase(old->key);
    entries_.erase(old);
  }
  entries_.push_front({std::move(key), std::move(grammar)});
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > most_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::size_t GrammarCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace weir::grammar
