// SPDX-License-Identifier: Apache-2.0
// PromptLookup as a source of drafts: one index for each sequence, kept up with its tokens.
#pragma once

#include <unordered_map>

#include "speculation/draft_source.h"
#include "speculation/prompt_lookup.h"

namespace weir::speculation {

class LookupSource final : public DraftSource {
 public:
  void offer(std::span<const SequenceView> views, std::span<Offer> offers) override;
  Status draft(std::span<const SequenceView> views, std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) override;
  double seconds(std::int64_t, std::int32_t) const override { return 0; }
  bool free() const override { return true; }
  void forget(SeqId sequence) override { indexes_.erase(sequence); }

 private:
  struct Index {
    PromptLookup lookup;
    PromptLookup::Match match;
  };
  std::unordered_map<SeqId, Index> indexes_;
};

}  // namespace weir::speculation
