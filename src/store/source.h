// SPDX-License-Identifier: Apache-2.0
// From what follows `weir pull` (a catalogue name, hf:OWNER/REPO[@REVISION][/FILE], a URL) to the files that make the
// model. Hugging Face addresses follow HF_ENDPOINT, where a mirror is set, and carry HF_TOKEN.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/catalogue.h"

namespace weir::store {

// Where Hugging Face files come from: $HF_ENDPOINT or https://huggingface.co.
std::string hugging_face_endpoint();

struct HuggingFaceName {
  std::string repo;      // OWNER/REPO
  std::string revision;  // branch, tag or commit; "main" by default
  std::string file;      // inside the repository; empty = the whole model folder

  static Result<HuggingFaceName> parse(std::string_view text);  // with or without "hf:"
  std::string url_of(std::string_view file) const;
};

struct Recipe {
  CatalogueEntry entry;
  std::string source;  // for the manifest: fit to be typed after `weir pull` again
  bool from_catalogue = false;
  std::optional<HuggingFaceName> whole_folder;  // its files become known on the way; entry.files is empty then
};

// `name` overrides the name that the source suggests.
Result<Recipe> recipe_for(std::string_view what, std::string_view name, const Catalogue& catalogue);

// HF_TOKEN if the URL is of the Hugging Face endpoint, else empty.
std::string token_for(const std::string& url);

// With HF_ENDPOINT set, a huggingface.co address on that mirror; any other unchanged.
std::string mirrored(const std::string& url);

}  // namespace weir::store
