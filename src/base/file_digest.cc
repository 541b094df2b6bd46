// SPDX-License-Identifier: Apache-2.0
#include "base/file_digest.h"

#include <algorithm>
#include <vector>

#include "base/file_io.h"
#include "base/sha256.h"

namespace weir {
namespace {

constexpr std::size_t kPiece = 4 << 20;
constexpr std::size_t kDigits = 64, kLine = 2 * kDigits + 2;  // "IDENTITY DIGEST\n", both SHA-256
constexpr std::size_t kMostLines = 1000;

// The lines of the index that have its form.
std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  const std::string text = read_file(path, 2 * kMostLines * kLine).value_or("");
  for (std::size_t at = 0; at + kLine <= text.size(); at += kLine) {
    const std::string line = text.substr(at, kLine);
    if (!is_sha256(line.substr(0, kDigits)) || line[kDigits] != ' ' || !is_sha256(line.substr(kDigits + 1, kDigits)) || line.back() != '\n')
      break;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string digest_of(const MappedFile& file, ThreadPool& pool) {
  const auto all = file.bytes();
  std::vector<std::string> pieces((all.size() + kPiece - 1) / kPiece);
  pool.parallel_for(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::size_t at = i * kPiece, size = std::min(kPiece, all.size() - at);
      file.prefetch(at + kPiece, kPiece);
      Sha256 sha;
      sha.update(all.subspan(at, size));
      pieces[i] = sha.hex();
      file.release(at, size);
    }
  });
  std::string joined = fmt::format("{}\n", all.size());
  for (const std::string& piece : pieces) joined += piece;
  return sha256_of(joined);
}

std::optional<std::string> DigestIndex::find(std::string_view identity) const {
  const std::string key = sha256_of(identity);
  for (const std::string& line : read_lines(file_))
    if (line.starts_with(key)) return line.substr(kDigits + 1, kDigits);
  return std::nullopt;
}

Status DigestIndex::remember(std::string_view identity, std::string_view digest) const {
  const std::string key = sha256_of(identity);
  std::vector<std::string> lines = read_lines(file_);
  std::erase_if(lines, [&](const std::string& line) { return line.starts_with(key); });
  if (lines.size() >= kMostLines) lines.erase(lines.begin(), lines.end() - (kMostLines - 1));
  std::string text;
  for (const std::string& line : lines) text += line;
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  return write_file_atomically(file_, fmt::format("{}{} {}\n", text, key, digest));
}

Result<std::string> remembered_digest(const MappedFile& file, const DigestIndex& index, ThreadPool& pool) {
  if (auto known = index.find(file.identity())) return *known;
  const std::string digest = digest_of(file, pool);
  if (!file.unchanged()) return fail(ErrorCode::kCorrupt, "{} changes while it is read", file.path().string());
  if (!file.just_changed()) static_cast<void>(index.remember(file.identity(), digest));
  return digest;
}

}  // namespace weir
