// SPDX-License-Identifier: Apache-2.0
// For loop.cc, stream.cc, tls.cc and resolver.cc only: Asio, compiled once (asio_impl.cc). No other file of this folder sees it.
#pragma once

#ifndef BOOST_ASIO_SEPARATE_COMPILATION
#error "CMakeLists.txt defines it for the whole folder: files that disagree about how Asio is compiled crash at run time"
#endif

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/loop.h"

namespace weir::http {

namespace asio = boost::asio;
using boost::system::error_code;

struct Loop::Context {
  asio::io_context io{1};  // one thread runs it: no locks beneath
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  std::vector<char> scratch = std::vector<char>(64u << 10);  // what the socket at hand reads into
};

}  // namespace weir::http
