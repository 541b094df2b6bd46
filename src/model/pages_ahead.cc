// SPDX-License-Identifier: Apache-2.0
#include "model/pages_ahead.h"

#include <sys/mman.h>

#include <algorithm>

namespace weir::model {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14
#endif

void PagesAhead::used_up_to(std::uint64_t end) {
  used_ = std::max(used_, std::min(end, bytes_));
  ready_ = std::max(ready_, used_ / kPiece * kPiece);  // perhaps not all of the last piece
}

bool PagesAhead::touch() {
  if (ready_ >= bytes_ || ready_ >= used_ + ahead_) return false;
  const std::uint64_t piece = std::min(kPiece, bytes_ - ready_);
  if (::madvise(data_ + ready_, piece, MADV_POPULATE_WRITE) != 0) {  // an older system, or too little memory: as if this did not exist
    bytes_ = 0;
    return false;
  }
  ready_ += piece;
  return true;
}

}  // namespace weir::model
