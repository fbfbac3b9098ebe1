#include "tests/hub/self_signed.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace slip {

SelfSigned::SelfSigned(const std::filesystem::path& folder)
    : certificate((folder / "cert.pem").string()), key((folder / "key.pem").string()) {
  EVP_PKEY* secret = EVP_EC_gen("P-256");
  X509* paper = X509_new();
  X509_set_version(paper, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(paper), 1);
  X509_gmtime_adj(X509_getm_notBefore(paper), -60);
  X509_gmtime_adj(X509_getm_notAfter(paper), 3600);
  X509_set_pubkey(paper, secret);
  X509_NAME* subject = X509_get_subject_name(paper);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("stand-in"), -1, -1, 0);
  X509_set_issuer_name(paper, subject);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(paper, names, -1);
  X509_sign(paper, secret, EVP_sha256());
  FILE* file = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(file, secret, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(file, paper);
  std::fclose(file);
  X509_EXTENSION_free(names);
  X509_free(paper);
  EVP_PKEY_free(secret);
}

}  // namespace slip
