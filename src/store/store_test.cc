// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/file_io.h"
#include "base/testing.h"
#include "store/resolve.h"
#include "store/test_server.h"

namespace weir::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct StoreTest : ::testing::Test {
  testing::TemporaryFolder home;
  Store store{home.path() / "weir"};
  const ScopedVariable config{"XDG_CONFIG_HOME", (home.path() / "config").c_str()};  // no catalogue of the user's own

  void put(const std::string& name, const std::string& content = "GGUF", bool complete = true) {
    fs::create_directories(store.folder(name));
    ASSERT_TRUE(write_file_atomically(store.folder(name) / "m.gguf", content));
    Manifest manifest{.name = name,
                      .description = "a model",
                      .licence = "MIT",
                      .parameters = 7,
                      .source = "hf:o/r/" + name + ".gguf",
                      .entry_point = "m.gguf",
                      .installed = "2026-01-02T03:04:05Z",
                      .complete = complete,
                      .files = {{.name = "m.gguf",
                                 .source = "https://x.org/m.gguf",
                                 .size = content.size(),
                                 .sha256 = std::string(64, 'a'),
                                 .verified_by = VerifiedBy::kServer}}};
    ASSERT_TRUE(write_manifest(store.folder(name), manifest));
  }
};

TEST_F(StoreTest, ListsWhatIsThereByName) {
  EXPECT_TRUE(store.list().empty());
  put("b");
  put("a");
  const auto models = store.list();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[1].problem, "");
  EXPECT_EQ(models[1].manifest.total_size(), 4u);
}

TEST_F(StoreTest, ManifestKeepsEverything) {
  put("a");
  const Manifest manifest = *read_manifest(store.folder("a"));
  EXPECT_EQ(manifest.description, "a model");
  EXPECT_EQ(manifest.parameters, 7u);
  EXPECT_EQ(manifest.installed, "2026-01-02T03:04:05Z");
  ASSERT_TRUE(manifest.find("m.gguf"));
  EXPECT_EQ(manifest.find("m.gguf")->verified_by, VerifiedBy::kServer);
  EXPECT_EQ(boost::json::serialize(to_json(manifest)) + "\n", *read_file(store.folder("a") / kManifestName));
}

TEST_F(StoreTest, SaysWhatIsWrongWithAModel) {
  put("unfinished", "GGUF", false);
  put("shortened");
  put("emptied");
  put("renamed");
  put("scribbled");
  fs::create_directories(store.folder("begun"));
  fs::resize_file(store.folder("shortened") / "m.gguf", 2);
  fs::remove(store.folder("emptied") / "m.gguf");
  fs::rename(store.folder("renamed"), store.folder("other"));
  ASSERT_TRUE(write_file_atomically(store.folder("scribbled") / kManifestName, "{\"format\":1,\"name\":\"../x\"}"));
  EXPECT_EQ(store.find("unfinished")->problem, "not completely downloaded");
  EXPECT_EQ(store.find("begun")->problem, "not completely downloaded");
  EXPECT_EQ(store.find("shortened")->problem, "m.gguf has 2 bytes instead of 4");
  EXPECT_EQ(store.find("emptied")->problem, "m.gguf is missing");
  EXPECT_THAT(store.find("other")->problem, HasSubstr("another model"));
  EXPECT_THAT(store.find("scribbled")->problem, HasSubstr("cannot name a model"));
}

TEST_F(StoreTest, ManifestsThatPointOutsideAreRefused) {
  for (const char* text : {R"({"format":1,"name":"a","source":"s","complete":true,"entry_point":"../../etc/passwd","files":[]})",
                           R"({"format":1,"name":"a","source":"s","complete":true,"entry_point":".","files":[{"name":"/etc/passwd"}]})",
                           R"({"format":2,"name":"a"})", R"([])", R"({"format":1)"})
    EXPECT_FALSE(manifest_from_json(text, "test")) << text;
}

TEST_F(StoreTest, RemovesFinishedAndUnfinishedModels) {
  put("a", "GGUF....");
  fs::create_directories(store.folder("begun"));
  EXPECT_GE(store.remove("A").value_or(0), 8u);
  EXPECT_TRUE(store.remove("begun"));
  EXPECT_FALSE(fs::exists(store.folder("a")));
  EXPECT_TRUE(store.list().empty());
  EXPECT_FALSE(store.remove("a"));
  EXPECT_FALSE(store.remove("../weir"));
}

TEST_F(StoreTest, WhatIsBeingPulledIsNotRemoved) {
  put("a");
  auto lock = store.lock("a", {});
  ASSERT_TRUE(lock);
  EXPECT_THAT(store.remove("a").error().message, HasSubstr("another process"));
  EXPECT_TRUE(fs::exists(store.folder("a")));
  EXPECT_TRUE(store.lock("b", {}));
}

TEST_F(StoreTest, LockWaitsAndCanBeStopped) {
  auto lock = store.lock("a", {});
  ASSERT_TRUE(lock);
  std::vector<std::string> notes;
  Watcher watcher;
  watcher.on_note = [&](std::string_view note) { notes.emplace_back(note); };
  watcher.should_stop = [&] { return !notes.empty(); };
  const auto second = store.lock("A", watcher);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(notes.size(), 1u);
  std::thread releaser([held = std::move(*lock)]() mutable { const ModelLock gone = std::move(held); });
  EXPECT_TRUE(store.lock("a", {}));
  releaser.join();
}

TEST_F(StoreTest, StandardPlaceFollowsTheEnvironment) {
  const ScopedVariable home_variable("HOME", "/home/u");
  {
    const ScopedVariable weir("WEIR_HOME", "/data/weir"), xdg("XDG_DATA_HOME", "/xdg");
    EXPECT_EQ(Store::standard()->root(), "/data/weir");
  }
  const ScopedVariable weir("WEIR_HOME", nullptr);
  {
    const ScopedVariable xdg("XDG_DATA_HOME", "/xdg");
    EXPECT_EQ(Store::standard()->root(), "/xdg/weir");
  }
  const ScopedVariable xdg("XDG_DATA_HOME", nullptr);
  EXPECT_EQ(Store::standard()->root(), "/home/u/.local/share/weir");
}

using ResolveTest = StoreTest;

TEST_F(ResolveTest, TakesFilesFoldersAndInstalledNames) {
  const fs::path file = home.path() / "x.gguf", folder = home.path() / "hf", gguf_folder = home.path() / "repo";
  fs::create_directories(folder);
  fs::create_directories(gguf_folder);
  ASSERT_TRUE(write_file_atomically(file, "GGUF...."));
  ASSERT_TRUE(write_file_atomically(folder / "config.json", "{}"));
  for (const char* part : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"})
    ASSERT_TRUE(write_file_atomically(gguf_folder / part, "GGUF"));
  put("a");
  EXPECT_EQ(resolve(file.string(), store), file);
  EXPECT_EQ(resolve(folder.string(), store), folder);
  EXPECT_EQ(resolve(gguf_folder.string(), store), gguf_folder / "m-00001-of-00002.gguf");
  EXPECT_EQ(resolve("a", store), store.folder("a") / "m.gguf");
  EXPECT_EQ(resolve("hf:o/r/a.gguf", store), store.folder("a") / "m.gguf");
}

TEST_F(ResolveTest, ErrorsSayWhatToDo) {
  const auto message = [&](std::string_view model) {
    const auto path = resolve(model, store);
    return path ? "" : path.error().message;
  };
  ASSERT_TRUE(write_file_atomically(home.path() / "x.txt", "hello"));
  put("half", "GGUF", false);
  EXPECT_THAT(message("smollm2"), HasSubstr("weir pull smollm2"));
  EXPECT_THAT(message("smolm2"), HasSubstr("did you mean smollm2"));
  EXPECT_THAT(message("half"), AllOf(HasSubstr("not completely downloaded"), HasSubstr("weir pull hf:o/r/half.gguf")));
  EXPECT_THAT(message("hf:a/b/c.gguf"), HasSubstr("weir pull hf:a/b/c.gguf"));
  EXPECT_THAT(message("dir/none.gguf"), HasSubstr("no file or folder"));
  EXPECT_THAT(message((home.path() / "x.txt").string()), HasSubstr("not a GGUF file"));
  EXPECT_THAT(message(home.path().string()), HasSubstr("holds no model"));
  EXPECT_THAT(message(""), HasSubstr("name a model"));
  EXPECT_THAT(message(".."), HasSubstr("holds no model"));
}

}  // namespace
}  // namespace weir::store
