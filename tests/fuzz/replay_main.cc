// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer, so that every compiler's test run covers it: first each file of the seed corpus as it
// is, then plain mutations of these files for a while. The generator's seed is fixed, so a finding can be repeated; the input that
// was running is kept in a file, since a crash ends the process.
//   NAME_fuzz_replay [--seconds N] [--keep FILE] CORPUS…      (files or folders)
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

struct Options {
  double seconds = 2;
  fs::path keep;  // where the running input is written, empty for nowhere
  std::vector<fs::path> corpus;
};

Options parse_arguments(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (argument == "--keep" && i + 1 < argc) {
      options.keep = argv[++i];
    } else {
      options.corpus.emplace_back(argument);
    }
  }
  return options;
}

Bytes read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Bytes> load_corpus(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());  // a folder's own order differs between machines
  std::vector<Bytes> inputs;
  for (const fs::path& file : files) inputs.push_back(read_all(file));
  return inputs;
}

class Mutator {
 public:
  // One to eight small changes, each of a kind that breaks parsers: flipped bits, extreme integers, cut, repeated or spliced parts.
  Bytes mutate(Bytes bytes, const Bytes& other) {
    const std::size_t changes = 1 + below(8);
    for (std::size_t i = 0; i < changes; ++i) change(bytes, other);
    return bytes;
  }
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void change(Bytes& bytes, const Bytes& other) {
    const std::size_t at = below(bytes.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random_());
        break;
      case 2: write_integer(bytes, at); break;
      case 3: bytes.resize(at); break;
      case 4: insert(bytes, at, bytes); break;
      default: insert(bytes, at, other); break;
    }
  }

  // A little-endian integer near a border of its width: where size computations overflow.
  void write_integer(Bytes& bytes, std::size_t at) {
    const std::size_t width = std::size_t{1} << below(4);
    const std::uint64_t borders[] = {0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
    std::uint64_t value = borders[below(std::size(borders))] - below(3);
    for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i, value >>= 8) bytes[at + i] = static_cast<std::uint8_t>(value);
  }

  void insert(Bytes& bytes, std::size_t at, const Bytes& from) {
    constexpr std::size_t kLongest = 64, kLargestInput = 1u << 20;
    if (from.empty() || bytes.size() > kLargestInput) return;
    const std::size_t begin = below(from.size());
    const std::size_t length = std::min(1 + below(kLongest), from.size() - begin);
    const Bytes part(from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(begin + length));
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
  }

  std::mt19937_64 random_{1};
};

void run_one(const Options& options, const Bytes& input) {
  if (!options.keep.empty()) {
    std::ofstream out(options.keep, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  }
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_arguments(argc, argv);
  std::vector<Bytes> corpus = load_corpus(options.corpus);
  const std::size_t seeds = corpus.size();
  for (const Bytes& input : corpus) run_one(options, input);
  run_one(options, {});
  if (corpus.empty()) corpus.emplace_back();

  Mutator mutator;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  std::size_t mutated = 0;
  for (; std::chrono::steady_clock::now() < end; ++mutated) {
    run_one(options, mutator.mutate(corpus[mutator.below(corpus.size())], corpus[mutator.below(corpus.size())]));
  }
  if (!options.keep.empty()) fs::remove(options.keep);
  fmt::print("{} seeds and {} mutations without a finding\n", seeds, mutated);
}
