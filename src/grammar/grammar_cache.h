// SPDX-License-Identifier: Apache-2.0
// Compiled grammars by content, the least recently used ones dropped: requests of one application share theirs, with all that its
// lexer has learnt. Refusals are kept too, so that a costly one is not paid for twice. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "grammar/grammar.h"

namespace weir::grammar {

class GrammarCache {
 public:
  explicit GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t most = 64);

  // As compile(). Grammars in use live on when they are dropped here; one that failed while matching is compiled anew.
  Result<std::shared_ptr<const Grammar>> get(const GrammarSpec& spec);
  std::size_t size() const;

 private:
  struct Entry {
    std::string key;
    Result<std::shared_ptr<const Grammar>> grammar;
  };
  std::list<Entry>::iterator find(const std::string& key);
  void insert(std::string key, Result<std::shared_ptr<const Grammar>> grammar);

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::size_t most_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
};

}  // namespace weir::grammar
