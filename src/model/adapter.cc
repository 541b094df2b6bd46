// SPDX-License-Identifier: Apache-2.0
#include "model/adapter.h"

#include "model/model.h"

namespace weir::model {

bool Adapter::made_for(const Model& model) const { return parts_.model == model.weights().naming; }

}  // namespace weir::model
