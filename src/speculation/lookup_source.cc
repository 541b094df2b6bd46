// SPDX-License-Identifier: Apache-2.0
#include "speculation/lookup_source.h"

#include <algorithm>
#include <limits>

namespace weir::speculation {

void LookupSource::offer(std::span<const SequenceView> views, std::span<Offer> offers) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const SequenceView& view = views[i];
    offers[i] = {};
    if (view.most < 1) continue;  // and catches up when it may be of use
    Index& index = indexes_[view.sequence];
    const auto size = static_cast<std::int64_t>(view.tokens.size());
    if (size < index.lookup.size()) index.lookup.truncate(size);
    index.lookup.append(view.tokens.subspan(static_cast<std::size_t>(index.lookup.size())));
    index.match = index.lookup.find();
    const bool any = index.match.strength > 0;
    offers[i] = {index.match.strength, any ? std::numeric_limits<std::int32_t>::max() : 0};
  }
}

Status LookupSource::draft(std::span<const SequenceView> views, std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) {
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const Index& index = indexes_.at(views[wishes[i].view].sequence);
    guesses[i].resize(index.match.strength > 0 ? static_cast<std::size_t>(wishes[i].length) : 0);
    if (index.match.strength > 0) index.lookup.read(index.match, guesses[i]);
  }
  return {};
}

}  // namespace weir::speculation
