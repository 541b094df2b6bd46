// SPDX-License-Identifier: Apache-2.0
// CPUID says what the processor has, XCR0 what the system saves on a context switch; both are needed.
#include "kernels/cpu_features.h"

#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weir::kernels {
namespace {

#if defined(__x86_64__)
std::uint64_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

bool vendor_is(std::string_view name) {
  unsigned a = 0, words[3] = {};
  if (!__get_cpuid(0, &a, &words[0], &words[2], &words[1])) return false;
  return std::string_view(reinterpret_cast<const char*>(words), sizeof words) == name;
}

// Tiles are large, so Linux saves them only for a process that has asked for them; the answer holds for all of its threads.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, the component of the tiles' contents
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuFeatures detect() {
  CpuFeatures features;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool osxsave = c >> 27 & 1, avx = c >> 28 & 1, fma = c >> 12 & 1, f16c = c >> 29 & 1;
  if (!osxsave || !avx) return features;
  const std::uint64_t saved = read_xcr0();
  const bool saves_ymm = (saved & 0x6) == 0x6, saves_zmm = (saved & 0xe6) == 0xe6;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  const bool avx2 = b >> 5 & 1;
  const bool vbmi = c >> 1 & 1, f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1, vnni = c >> 11 & 1;
  const bool amx_bf16 = d >> 22 & 1, fp16 = d >> 23 & 1, amx_tile = d >> 24 & 1, amx_int8 = d >> 25 & 1;
  const bool amd = vendor_is("AuthenticAMD");
  features.row_ahead_bytes = amd ? 0 : 6144;
  features.avx2 = saves_ymm && avx2 && fma && f16c;
  features.avx512_vnni = features.avx2 && saves_zmm && f && dq && bw && vl && vnni;
  features.avx512_fp16 = features.avx512_vnni && fp16;
  if (a < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return features;
  features.avx_vnni = features.avx2 && (a >> 4 & 1);
  features.avx512_bf16 = features.avx512_vnni && (a >> 5 & 1);
  features.fast_bf16_dots = features.avx512_bf16 && amd;
  const bool saves_tiles = (saved & 0x60000) == 0x60000;
  features.avx512_vbmi = features.avx512_vnni && vbmi;
  features.amx = features.avx512_bf16 && vbmi && saves_tiles && amx_tile && amx_int8 && amx_bf16 && may_use_tiles();
  return features;
}
#else
CpuFeatures detect() { return {}; }
#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures kFeatures = detect();
  return kFeatures;
}

Result<const KernelTable*> choose_kernel_table(std::string_view isa) {
  std::string name(isa);
  if (name.empty()) {
    if (const char* forced = std::getenv("WEIR_ISA")) name = forced;
  }
  const CpuFeatures& cpu = cpu_features();
  const struct {
    const char* name;
    const KernelTable* table;
    bool runs, fast;
  } tables[] = {{"amx", amx_table(), cpu.amx, true},
                {"avx512_bf16", avx512_bf16_table(), cpu.avx512_bf16, cpu.fast_bf16_dots},
                {"avx512", avx512_table(), cpu.avx512_vnni, true},
                {"avx2_vnni", avx2_vnni_table(), cpu.avx_vnni, true},
                {"avx2", avx2_table(), cpu.avx2, true},
                {"reference", &reference_table(), true, true}};
  for (const auto& entry : tables) {
    const bool usable = entry.table && entry.runs;
    if (name.empty() && usable && entry.fast) return entry.table;
    if (name != entry.name) continue;
    if (usable) return entry.table;
    return fail(ErrorCode::kUnsupported, "this machine cannot run {} kernels; leave WEIR_ISA unset to use the best it can run", name);
  }
  return fail(ErrorCode::kInvalidArgument,
              "unknown instruction set '{}' (WEIR_ISA): use reference, avx2, avx2_vnni, avx512, avx512_bf16 or amx", name);
}

}  // namespace weir::kernels
