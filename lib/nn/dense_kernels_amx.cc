// Products of packed weights on the matrix unit (AMX, bf16). A float is taken apart into two bf16,
// x = high + low + what is below 2^-17 of it, and of a product's four parts the three that matter
// are summed in f32, so that the result is that of f32 arithmetic to within 2^-15 of the sum of the
// products' absolute values (dense_kernels_test.cc), not that of bf16.
//
// This file alone is compiled for AMX and reached only through AmxDenseKernels, which asks the
// processor and the system first. What it shares with the AVX-512 table it takes from there.

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdint>

#include "lib/nn/dense_kernels.h"

namespace tetrion {

const DenseKernels& Avx512DenseKernels();  // dense_kernels_avx512.cc
const DenseKernels* AmxDenseKernels();     // null where this machine has no such unit

namespace {

constexpr std::int64_t kRows = 16, kColumns = 16;  // of a tile of results
constexpr std::int64_t kDepth = 32;                // bf16 of a row of a tile of x
constexpr std::int64_t kHalves = 512;              // bf16 of a tile, 1 KiB
constexpr std::int64_t kMostDepths = 32;           // k <= 1024
constexpr int kRowBytes = 64;

// Tiles 0-3 are results, 4 and 5 parts of two blocks of rows of x, 6 and 7 of two blocks of columns
// of w.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

std::int64_t DepthsOf(std::int64_t k) {
  return (k + kDepth - 1) / kDepth;
}

// The high and the low parts of 32 floats.
struct Parts {
  __m512bh high, low;
};

__m512 Widened(__m256i halves) {
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_cvtepu16_epi32(0xFFFF, halves), 16));
}

struct Halves {
  __m256i first, second;
};

Parts TakeApart(__m512 first, __m512 second) {
  const __m512bh high = _mm512_cvtne2ps_pbh(second, first);
  const auto halves = std::bit_cast<Halves>(high);
  const __m512bh low =
      _mm512_cvtne2ps_pbh(second - Widened(halves.second), first - Widened(halves.first));
  return {high, low};
}

// The first `count` floats of p, zeros behind; any count.
__m512 LoadSome(const float* p, std::int64_t count) {
  if (count >= 16) return _mm512_loadu_ps(p);
  if (count <= 0) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), p);
}

// Products of fewer numbers stay with the vector unit: taking them apart would cost more than it
// saves.
constexpr std::int64_t kLeastDepth = 64;

// Others that the unit's tiles do not fit go there, too.
bool IsForTheUnit(std::int64_t k, std::int64_t n) {
  return k >= kLeastDepth && k <= kMostDepths * kDepth && n % kColumns == 0;
}

std::int64_t PackedFloats(std::int64_t k, std::int64_t n) {
  if (!IsForTheUnit(k, n)) return 0;
  return DepthsOf(k) * (n / kColumns) * kHalves;  // two parts of half a float each
}

// For each 16 columns and each 32 rows of w a tile of high and one of low parts, whose row i has
// rows 2 i and 2 i + 1 of w in turns, as the unit multiplies pairs.
void Pack(const float* w, std::int64_t k, std::int64_t n, float* packed) {
  auto* out = reinterpret_cast<std::uint16_t*>(packed);
  alignas(64) std::uint16_t turns[32];
  for (std::uint16_t i = 0; i < 16; ++i) {
    turns[2 * i] = i;
    turns[2 * i + 1] = static_cast<std::uint16_t>(16 + i);
  }
  const __m512i in_turns = _mm512_load_si512(turns);
  for (std::int64_t column = 0; column < n; column += kColumns) {
    for (std::int64_t depth = 0; depth < DepthsOf(k); ++depth, out += 2 * kHalves) {
      for (std::int64_t pair = 0; pair < kRows; ++pair) {
        const std::int64_t row = depth * kDepth + 2 * pair;
        const float* from = w + row * n + column;
        const Parts parts =
            TakeApart(LoadSome(from, row < k ? 16 : 0), LoadSome(from + n, row + 1 < k ? 16 : 0));
        _mm512_storeu_si512(
            out + pair * 32,
            _mm512_maskz_permutexvar_epi16(~0U, in_turns, reinterpret_cast<__m512i>(parts.high)));
        _mm512_storeu_si512(
            out + kHalves + pair * 32,
            _mm512_maskz_permutexvar_epi16(~0U, in_turns, reinterpret_cast<__m512i>(parts.low)));
      }
    }
  }
}

// Tiles of 16 rows of x, high and low for each 32 columns; rows that are not there are zeros.
void TakeApartRows(const float* x, std::int64_t ldx, std::int64_t rows, std::int64_t k,
                   std::uint16_t* out) {
  for (std::int64_t depth = 0; depth < DepthsOf(k); ++depth, out += 2 * kHalves) {
    const std::int64_t left = k - depth * kDepth;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float* from = x + row * ldx + depth * kDepth;
      const bool there = row < rows;
      const Parts parts =
          TakeApart(LoadSome(from, there ? left : 0), LoadSome(from + 16, there ? left - 16 : 0));
      _mm512_store_si512(out + row * 32, reinterpret_cast<__m512i>(parts.high));
      _mm512_store_si512(out + kHalves + row * 32, reinterpret_cast<__m512i>(parts.low));
    }
  }
}

// Results of 32 rows and 16 kTiles columns: start + x w, where rows of start are `start_bytes`
// apart and those of y `y_bytes`; x are the parts of two blocks of rows, w those of kTiles columns.
// Four results are added to in turns, as each takes longer than the unit needs to begin the next.
template <int kTiles>
void MultiplyBlocks(const float* start, std::int64_t start_bytes, const std::uint16_t* x,
                    const std::uint16_t* w, std::int64_t depths, float* y, std::int64_t y_bytes) {
  // g++ 12's tile loads do not say that they read memory: what was stored must be there.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::int64_t next = depths * 2 * kHalves;  // to the other block of rows or columns
  const auto* second = reinterpret_cast<const char*>(start) + kRows * start_bytes;
  _tile_loadd(0, start, start_bytes);
  _tile_loadd(2, second, start_bytes);
  if constexpr (kTiles > 1) _tile_loadd(1, start + kColumns, start_bytes);
  if constexpr (kTiles > 1) _tile_loadd(3, second + kColumns * 4, start_bytes);
  for (std::int64_t depth = 0; depth < depths; ++depth, x += 2 * kHalves, w += 2 * kHalves) {
    // Low parts of x by high ones of w, high by high, high by low.
    _tile_loadd(6, w, kRowBytes);
    if constexpr (kTiles > 1) _tile_loadd(7, w + next, kRowBytes);
    _tile_loadd(4, x + kHalves, kRowBytes);
    _tile_loadd(5, x + next + kHalves, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, x, kRowBytes);
    _tile_loadd(5, x + next, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(6, w + kHalves, kRowBytes);
    if constexpr (kTiles > 1) _tile_loadd(7, w + next + kHalves, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTiles > 1) _tile_dpbf16ps(3, 5, 7);
  }
  auto* below = reinterpret_cast<char*>(y) + kRows * y_bytes;
  _tile_stored(0, y, y_bytes);
  _tile_stored(2, below, y_bytes);
  if constexpr (kTiles > 1) _tile_stored(1, y + kColumns, y_bytes);
  if constexpr (kTiles > 1) _tile_stored(3, below + kColumns * 4, y_bytes);
}

void MultiplyFrom(const float* start, const std::int32_t* of, const float* x, std::int64_t ldx,
                  std::int64_t m, std::int64_t k, const float* packed, std::int64_t n, float* y) {
  if (!IsForTheUnit(k, n)) {
    return Avx512DenseKernels().multiply_from(start, of, x, ldx, m, k, packed, n, y);
  }
  constexpr std::int64_t kBoth = 2 * kRows, kPanel = 2 * kColumns, kPanelBytes = kPanel * 4;
  alignas(64) std::uint16_t parts[2 * kMostDepths * 2 * kHalves];
  alignas(64) float rows_apart[kBoth * kPanel];  // of start or y, where the unit cannot reach them
  alignas(64) static constexpr float kZeros[kPanel] = {};
  static constexpr TileConfig kConfig;
  const auto* w = reinterpret_cast<const std::uint16_t*>(packed);
  const std::int64_t depths = DepthsOf(k), of_block = depths * 2 * kHalves;
  _tile_loadconfig(&kConfig);
  for (std::int64_t row = 0; row < m; row += kBoth) {
    const std::int64_t rows = m - row < kBoth ? m - row : kBoth;
    TakeApartRows(x + row * ldx, ldx, rows, k, parts);
    TakeApartRows(x + (row + kRows) * ldx, ldx, rows - kRows, k, parts + of_block);
    for (std::int64_t column = 0; column < n; column += kPanel) {
      const bool whole = n - column >= kPanel;
      const auto bytes = static_cast<std::size_t>(whole ? kPanelBytes : kPanelBytes / 2);
      const float* from = start == nullptr ? kZeros : start + column;
      std::int64_t from_bytes = 0;  // every row from the same
      if (of != nullptr) {
        for (std::int64_t r = 0; r < rows; ++r) {
          __builtin_memcpy(rows_apart + r * kPanel, start + of[row + r] * n + column, bytes);
        }
        from = rows_apart;
        from_bytes = kPanelBytes;
      }
      float* to = rows == kBoth ? y + row * n + column : rows_apart;
      const std::int64_t to_bytes = rows == kBoth ? n * 4 : kPanelBytes;
      const auto multiply = whole ? MultiplyBlocks<2> : MultiplyBlocks<1>;
      multiply(from, from_bytes, parts, w + column / kColumns * of_block, depths, to, to_bytes);
      if (rows == kBoth) continue;
      for (std::int64_t r = 0; r < rows; ++r) {
        __builtin_memcpy(y + (row + r) * n + column, rows_apart + r * kPanel, bytes);
      }
    }
  }
  _tile_release();  // or the kernel would save the tiles with every switch of threads
}

// The processor has the unit, and the system lets this process use its registers. Leaf 7 of cpuid,
// edx: not every compiler has names for these two.
bool MayUseTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 && (d & kTile) != 0 &&
         __builtin_cpu_supports("avx512bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

DenseKernels MakeTable() {
  DenseKernels table = Avx512DenseKernels();
  table.name = "avx512_amx";
  table.packed_floats = PackedFloats;
  table.pack = Pack;
  table.multiply_from = MultiplyFrom;
  return table;
}

}  // namespace

const DenseKernels* AmxDenseKernels() {
  static const DenseKernels table = MakeTable();
  static const bool may = MayUseTiles();
  return may ? &table : nullptr;
}

}  // namespace tetrion
