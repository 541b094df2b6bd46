// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in text that arrives in pieces. Text that may be the start of a stop string is held back until it is
// decided. The match is the one that is complete first, and of those the one that starts first: the outcome does not depend
// on where the pieces are cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::sampling {

class StopMatcher {
 public:
  // Empty strings are not allowed (validate() refuses them).
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that is settled by this piece; after a match, what stood before it and from then on nothing.
  std::string push(std::string_view piece);
  // The end of the answer: what was held back after all.
  std::string finish();

  bool stopped() const { return stopped_; }
  const std::string& matched() const { return matched_; }  // the stop string that ended the text

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
  bool stopped_ = false;
};

}  // namespace weir::sampling
