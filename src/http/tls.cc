// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/net.h"
#include "http/server.h"
//
#include "http/tls_native.h"

namespace weir::http {
namespace {

using asio::ssl::context;

// OpenSSL keeps errors of earlier calls of this thread; only the newest tells what happened.
std::string reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = code ? ERR_reason_error_string(code) : nullptr;
  return text ? text : "unknown reason";
}

Status use_certificate(SSL_CTX* ctx, const std::filesystem::path& certificate, const std::filesystem::path& key) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(ctx, certificate.c_str()) != 1) {
    return fail(ErrorCode::kInvalidArgument, "TLS certificate {}: {}", certificate.string(), reason());
  }
  if (SSL_CTX_use_PrivateKey_file(ctx, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(ErrorCode::kInvalidArgument, "TLS key {}: {}", key.string(), reason());
  }
  if (SSL_CTX_check_private_key(ctx) != 1) {
    return fail(ErrorCode::kInvalidArgument, "TLS key {} does not belong to the certificate {}", key.string(), certificate.string());
  }
  return {};
}

Status use_client_ca(SSL_CTX* ctx, const TlsFiles& files) {
  ERR_clear_error();
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(files.client_ca.c_str());
  if (!names || SSL_CTX_load_verify_locations(ctx, files.client_ca.c_str(), nullptr) != 1) {
    return fail(ErrorCode::kInvalidArgument, "TLS client authority {}: {}", files.client_ca.string(), reason());
  }
  SSL_CTX_set_client_CA_list(ctx, names);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | (files.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return {};
}

void harden(SSL_CTX* ctx) {
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_default_passwd_cb(
      ctx, [](char*, int, int, void*) { return 0; });  // an encrypted key is an error, never a question at the terminal
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);     // 2,000 idle connections keep no 32 KiB each
}

// ALPN: http/1.1 if the client names it; a client that only knows others goes on without and sees HTTP/1.1.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* length, const unsigned char* in, unsigned in_length, void*) {
  static const unsigned char ours[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, length, ours, sizeof(ours) - 1, in, in_length) != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

TlsContext::TlsContext() = default;
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::for_server(const TlsFiles& files) try {
  if (files.certificate.empty() || files.key.empty()) return fail(ErrorCode::kInvalidArgument, "TLS needs a certificate and a key");
  if (files.require_client_certificate && files.client_ca.empty()) {
    return fail(ErrorCode::kInvalidArgument, "TLS: client certificates are required, but no authority to verify them with is given");
  }
  std::shared_ptr<TlsContext> tls(new TlsContext);
  tls->native_ = std::make_unique<Native>(Native{context(context::tls_server)});
  SSL_CTX* ctx = tls->native_->context.native_handle();
  harden(ctx);
  static const unsigned char session_scope[] = "weir";
  SSL_CTX_set_session_id_context(ctx, session_scope, sizeof(session_scope) - 1);
  SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, nullptr);
  WEIR_TRY(use_certificate(ctx, files.certificate, files.key));
  if (!files.client_ca.empty()) WEIR_TRY(use_client_ca(ctx, files));
  return tls;
} catch (const std::exception& error) {
  return fail(ErrorCode::kInternal, "TLS: {}", error.what());
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_client(const ClientTls& settings) try {
  std::shared_ptr<TlsContext> tls(new TlsContext);
  tls->native_ = std::make_unique<Native>(Native{context(context::tls_client), settings.verify});
  SSL_CTX* ctx = tls->native_->context.native_handle();
  harden(ctx);
  ERR_clear_error();
  if (settings.verify) {
    const bool loaded = settings.ca.empty() ? SSL_CTX_set_default_verify_paths(ctx) == 1
                                            : SSL_CTX_load_verify_locations(ctx, settings.ca.c_str(), nullptr) == 1;
    if (!loaded) return fail(ErrorCode::kInvalidArgument, "TLS authority {}: {}", settings.ca.string(), reason());
  }
  SSL_CTX_set_verify(ctx, settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!settings.certificate.empty()) WEIR_TRY(use_certificate(ctx, settings.certificate, settings.key));
  return tls;
} catch (const std::exception& error) {
  return fail(ErrorCode::kInternal, "TLS: {}", error.what());
}

}  // namespace weir::http
