// SPDX-License-Identifier: Apache-2.0
// Conversations with tools for models whose template knows none: a system message says what there is, and earlier calls stand in the text
// as the model was told to write them.
#pragma once

#include "api/generation_request.h"

namespace weir::serving {

// Changes request.messages. Nothing happens without tools and earlier calls.
void write_tools_as_text(api::GenerationRequest& request);

}  // namespace weir::serving
