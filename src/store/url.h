// SPDX-License-Identifier: Apache-2.0
// URLs as far as the store needs them: which scheme and host, may we go there, and a form fit to be shown. Signed URLs
// carry secrets in their query, so messages and manifests only ever hold shown().
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::store {

class Url {
 public:
  // http and https only, a host, no user:password inside.
  static Result<Url> parse(std::string_view text);

  const std::string& text() const { return text_; }
  const std::string& host() const { return host_; }  // lower case, without the port
  bool is_https() const { return scheme_ == "https"; }
  bool is_loopback() const;       // localhost, 127.0.0.0/8, ::1
  std::string shown() const;      // without query and fragment
  std::string file_name() const;  // last component of the path, decoded
  bool same_origin(const Url& other) const { return scheme_ == other.scheme_ && host_ == other.host_ && port_ == other.port_; }

 private:
  std::string text_, scheme_, host_, port_, path_;
};

// Plain http is for this machine only, unless the user says otherwise: what it brings could have been changed on the way.
Status check_transport(const Url& url, bool allow_http);

// May a transfer from `from` go on at `to`? Never from https down to http.
Status check_redirect(const Url& from, const Url& to, bool allow_http);

}  // namespace weir::store
