// SPDX-License-Identifier: Apache-2.0
// TLS settings of one side, made from files: TLS 1.2 or newer, no renegotiation. A context is immutable; a reload makes a new
// one, and connections keep the one they began with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace weir::http {

struct TlsFiles;

struct ClientTls {
  std::filesystem::path ca;           // PEM to verify servers with; empty: the system's
  std::filesystem::path certificate;  // PEM, when the server asks for one
  std::filesystem::path key;
  bool verify = true;
};

class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> for_server(const TlsFiles& files);
  static Result<std::shared_ptr<TlsContext>> for_client(const ClientTls& settings);
  ~TlsContext();

  struct Native;
  Native& native() { return *native_; }

 private:
  TlsContext();
  std::unique_ptr<Native> native_;
};

}  // namespace weir::http
