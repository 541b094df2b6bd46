// SPDX-License-Identifier: Apache-2.0
// Web pages of strangers: a browser sends a page's requests to servers of this machine too, and says by Origin whose page it is. Where no
// key keeps them out, only pages of this machine and those that the operator named (CORS) may send any.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::serving {

// `origin`: the header, empty when there was none, as from all that is not a browser.
bool origin_may_send(std::string_view origin, std::span<const std::string> allowed);

}  // namespace weir::serving
