// SPDX-License-Identifier: Apache-2.0
// For tests: certificates made on the spot.
#pragma once

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace weir::http::testing {

struct Identity {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;

  void save(const std::filesystem::path& certificate_path, const std::filesystem::path& key_path) const {
    std::FILE* file = std::fopen(certificate_path.c_str(), "w");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
    file = std::fopen(key_path.c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
};

// For "localhost" and 127.0.0.1, signed by `issuer` or itself; the latter can sign others.
inline Identity make_identity(const std::string& name, const Identity* issuer = nullptr) {
  Identity identity;
  identity.key = {EVP_EC_gen("P-256"), &EVP_PKEY_free};
  identity.certificate = {X509_new(), &X509_free};
  X509* certificate = identity.certificate.get();
  static long serial = 1;
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, identity.key.get());
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer->certificate.get()) : subject);
  const auto extend = [&](int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  if (!issuer) extend(NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate, issuer ? issuer->key.get() : identity.key.get(), EVP_sha256());
  return identity;
}

}  // namespace weir::http::testing
