// SPDX-License-Identifier: Apache-2.0
// Asio's own code, compiled here once.
#include "http/net.h"
//
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
