// SPDX-License-Identifier: Apache-2.0
// Encrypted transfers, against a TLS server with a certificate made for the test. Python serves and openssl makes the
// certificate; both come with the packages that building needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/subprocess.h"
#include "store/test_downloads.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

constexpr const char* kServer = R"py(
import http.server, os, ssl, sys
folder, plain = sys.argv[1], sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/down':
            self.send_response(302); self.send_header('Location', plain); self.end_headers(); return
        body = ('token: ' + self.headers.get('Authorization', 'none')).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *arguments): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + '/cert.pem', folder + '/key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
open(folder + '/port.new', 'w').write(str(server.server_address[1]))
os.rename(folder + '/port.new', folder + '/port')
server.serve_forever()
)py";

struct TlsTest : ::testing::Test {
  testing::TemporaryFolder folder;
  TestServer plain{[](const ServedRequest& request, ServedConnection& connection) { connection.file(request, "from plain http"); }};
  std::atomic<bool> ending = false;
  std::thread server;
  std::string origin, said;

  void SetUp() override {
    const std::string certificate = folder.path() / "cert.pem", key = folder.path() / "key.pem";
    const auto made =
        run_process({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                     "-subj", "/CN=weir test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate});
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->exit_code, 0) << made->output;
    server = std::thread([this] {
      const auto ended = run_process({"python3", "-c", kServer, folder.path(), plain.url("/file")}, [this] { return !ending; });
      if (ended) said = ended->output;
      ending = true;
    });
    const auto port = folder.path() / "port";
    while (!std::filesystem::exists(port) && !ending) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_FALSE(ending) << said;
    origin = "https://127.0.0.1:" + *read_file(port);
  }
  void TearDown() override {
    ending = true;
    if (server.joinable()) server.join();
  }
};

TEST_F(TlsTest, UnknownCertificateIsRefused) {
  DownloadBench bench(origin + "/file");
  EXPECT_THAT(bench.failure(), HasSubstr("certificate"));
  EXPECT_TRUE(bench.waits.empty());  // it will not change by asking again
  EXPECT_EQ(bench.files_left(), 0u);
}

TEST_F(TlsTest, TrustedOnesWorkWithTheTokenAndLeaveEncryptionForNothing) {
  const ScopedVariable certificates("CURL_CA_BUNDLE", (folder.path() / "cert.pem").c_str());
  DownloadBench bench(origin + "/file");
  bench.request.token = "hf_secret";
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), "token: Bearer hf_secret");
  DownloadBench down(origin + "/down");
  down.request.allow_http = true;
  EXPECT_THAT(down.failure(), HasSubstr("unencrypted"));
  EXPECT_TRUE(plain.requests().empty());
}

}  // namespace
}  // namespace weir::store
