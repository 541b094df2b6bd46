// SPDX-License-Identifier: Apache-2.0
#include "serving/service.h"

namespace weir::serving {

std::span<const HandlerRow> vector_handlers() { return {}; }
std::span<const HandlerRow> token_handlers() { return {}; }
std::span<const HandlerRow> operation_handlers() { return {}; }

}  // namespace weir::serving
