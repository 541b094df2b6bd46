// SPDX-License-Identifier: Apache-2.0
// Hyperparameters from config.json or from GGUF metadata through one set of getters. A Key names the value in both
// sources, so that a family says once what it needs.
//
// Errors are sticky: a getter that finds a missing, mistyped or out-of-range value keeps the first error and returns a
// value in range, so that families read straight down; the loader asks status() once. Whatever comes out is bounded.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::formats {
class GgufFile;
}

namespace weir::model {

// Alternatives are separated by '|', the first one present counts. nullptr: this source never has the value. GGUF keys are
// without the architecture's prefix.
struct Key {
  const char* hf = nullptr;
  const char* gguf = nullptr;
};

inline constexpr std::int32_t kMaxSize = 1 << 24;  // no dimension of a model comes near

class Config {
 public:
  // `defaults`: members that count where config.json is silent (an explicit null is not silence).
  explicit Config(json::Object hf, const json::Object& defaults = {});
  Config(const formats::GgufFile& gguf, std::string architecture) : gguf_(&gguf), architecture_(std::move(architecture)) {}

  bool gguf() const { return gguf_ != nullptr; }
  const formats::GgufFile* gguf_file() const { return gguf_; }
  bool has(Key key) const { return name_of(key).has_value(); }

  // Required and optional integers in [low, high].
  std::int32_t size(Key key, std::int32_t low = 1, std::int32_t high = kMaxSize);
  std::int32_t size_or(Key key, std::int32_t fallback, std::int32_t low = 0, std::int32_t high = kMaxSize);
  // Finite numbers in [low, high].
  double real(Key key, double low, double high);
  double real_or(Key key, double fallback, double low = -1e30, double high = 1e30);
  bool flag_or(Key key, bool fallback);
  std::string text(Key key);
  std::string text_or(Key key, std::string fallback);
  // Arrays; empty when absent; never NaN, but perhaps infinite. More than `max_count` entries is an error.
  std::vector<std::int64_t> integers(Key key, std::size_t max_count = 4096);
  std::vector<double> reals(Key key, std::size_t max_count = 65536);
  std::vector<std::string> texts(Key key, std::size_t max_count = 4096);
  // A number for each layer: an array of `count`, or one number for all.
  std::vector<std::int64_t> per_layer(Key key, std::size_t count, std::int64_t fallback);

  // Values that this program cannot honour: an error when the value is there and differs from the one expected.
  void expect_flag(Key key, bool expected, std::string_view why);
  void expect_text(Key key, std::string_view expected);

  // A nested object of config.json, or nullptr when absent. Never present in GGUF.
  const json::Object* object(const char* key) const;

  template <class... Args>
  void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    keep(Error{code, fmt::vformat(format, fmt::make_format_args(args...))});
  }
  void keep(Error error) {
    if (status_) status_ = std::unexpected(std::move(error));
  }
  void keep(const Status& status) {
    if (!status) keep(status.error());
  }
  const Status& status() const { return status_; }

 private:
  std::optional<std::string> name_of(Key key) const;  // the first alternative that is present
  std::string describe(Key key) const;
  template <class T, class HfGetter, class GgufGetter>
  std::optional<T> read(Key key, HfGetter from_hf, GgufGetter from_gguf);
  std::optional<std::int64_t> read_int(Key key);
  std::optional<double> read_real(Key key);
  void missing(Key key);

  json::Object hf_;
  const formats::GgufFile* gguf_ = nullptr;
  std::string architecture_;
  Status status_;
};

}  // namespace weir::model
