// SPDX-License-Identifier: Apache-2.0
// One vector for a text: hidden states of an encoder, pooled and normalised as the model's files ask.
#pragma once

#include <span>
#include <vector>

#include "engine/loaded_model.h"

namespace weir::engine {

// All hidden states of the ids, row by row: [ids, hidden]. Encoders only.
Result<std::vector<float>> encode_hidden(LoadedModel& loaded, std::span<const TokenId> ids);

std::vector<float> mean_rows(std::span<const float> hidden, std::size_t columns);
void normalize_l2(std::span<float> vector);

// BERT's pooler: tanh(W · first row + b). kUnsupported when the model has none.
Result<std::vector<float>> pooler_output(LoadedModel& loaded, std::span<const float> first_row);

}  // namespace weir::engine
