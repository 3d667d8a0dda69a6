// CUDA kernels of cumsum and cumsum_grad; cumsum.cc has the formulas. Sums of floats are float64.
//
// A line is the work of a group of threads (cuda_lines.cuh). It goes through the line by tiles, of
// which each thread has a few neighbouring elements. If there are few lines, each is cut into
// parts, which are groups' work as if they were lines: a first launch adds up the parts, and a
// second one starts each part's sums with those of the parts before it. How lines are cut and
// shared depends on sizes alone, and so does the order of sums.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/math/kernels/cumsum_axis.h"

namespace skiff {
namespace {

// How the lines of [outer, length, inner] are cut: into `parts` parts of `part` elements, of which
// the last ones may be shorter or empty.
struct Cut {
  explicit Cut(const AxisExtents& extents) {
    const int64_t lines = std::max<int64_t>(extents.lines(), 1);
    if (extents.inner == 1) {
      // Parts are the work of blocks: enough for all multiprocessors, each worth another pass.
      constexpr int64_t kBlocks = 1024;
      constexpr int64_t kLeast = 4096;
      parts = std::min(kBlocks / lines, extents.length / kLeast);
    } else {
      // They are the work of threads, which also add up those before: at most as many as there are
      // elements in a part.
      constexpr int64_t kThreads = kMostParts;
      const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(extents.length)));
      parts = std::min({kThreads / lines, extents.length / kLeastElements, root});
    }
    parts = std::max<int64_t>(parts, 1);
    part = (extents.length + parts - 1) / parts;
    if (parts > 1) part = (part + 3) / 4 * 4;  // whole vectors
  }

  // Of lines that are cut, in a tensor of so many elements or fewer: at most so many parts.
  static int64_t MostParts(int64_t elements) {
    return std::min(elements / kLeastElements, kMostParts);
  }

  static constexpr int64_t kMostParts = 65536;
  static constexpr int64_t kLeastElements = 64;

  int64_t parts;
  int64_t part;
};

// What is summed. `out` may be `x`.
template <typename T>
struct SumsOfLines {
  const T* x;
  T* out;
  SumOf<T>* sums;  // of parts
  AxisExtents extents;
  int64_t parts;
  int64_t part;
  bool exclusive;
  bool reverse;
};

// Goes through the parts. kWrites: writes the running sums, else the sum of each part, which isn't
// needed where a line has only one.
template <typename T, bool kWrites>
struct RunningSums : SumsOfLines<T> {
  using Sum = SumOf<T>;
  using Base = SumsOfLines<T>;
  using Base::exclusive;
  using Base::extents;
  using Base::part;
  using Base::parts;
  using Base::reverse;
  static constexpr int kSize = kVectorSize<T>;

  // Part p of a line is at (outer * parts + p) * inner + its place in `inner`.
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& of_part) const {
    const CudaDivision at = Divide(of_part.index, extents.inner);
    const CudaDivision in_line = Divide(at.quotient, parts);
    const int64_t start = in_line.quotient * extents.length * extents.inner + at.rest;
    const int64_t begin = in_line.rest * part;
    const int64_t end = begin + part < extents.length ? begin + part : extents.length;
    Sum sum = 0;
    if (kWrites && parts > 1) {
      const int64_t first = of_part.index - in_line.rest * extents.inner;
      const int64_t before = of_part.exists ? in_line.rest : 0;
      for (int64_t p = group.lane; p < before; p += group.size) {
        sum += this->sums[first + p * extents.inner];
      }
      sum = group.Reduce(sum, JoinBySum{});
    }
    // As far for all lanes of a warp: shuffles need them.
    for (int64_t tile = 0; tile < part; tile += group.size * kSize) {
      const int64_t i = begin + tile + group.lane * kSize;
      const int64_t rest = of_part.exists ? end - i : 0;
      const int count = rest <= 0 ? 0 : rest < kSize ? static_cast<int>(rest) : kSize;
      CudaVector<T, kSize> values = Load(start, i, count);
      Sum of_thread = 0;
#pragma unroll
      for (int j = 0; j < kSize; ++j) of_thread += static_cast<Sum>(values.values[j]);
      if constexpr (!kWrites) {
        sum += of_thread;
      } else {
        const CudaSums<Sum> of_tile = group.Scan(of_thread);
        Sum running = sum + of_tile.before;
        sum += of_tile.all;
#pragma unroll
        for (int j = 0; j < kSize; ++j) {
          const Sum before = running;
          running += static_cast<Sum>(values.values[j]);
          values.values[j] = static_cast<T>(exclusive ? before : running);
        }
        Store(values, start, i, count);
      }
    }
    if constexpr (!kWrites) {
      sum = group.Reduce(sum, JoinBySum{});
      if (group.lane == 0 && of_part.exists) this->sums[of_part.index] = sum;
    }
  }

  // Returns the place of the i-th element that is added.
  __device__ int64_t PlaceOf(int64_t start, int64_t i) const {
    return start + (reverse ? extents.length - 1 - i : i) * extents.inner;
  }

  // Returns where element i and those after it are one vector in memory, or nullptr.
  template <typename Element>
  __device__ Element* WholeVector(Element* array, int64_t start, int64_t i, int count) const {
    if (extents.inner != 1 || count != kSize) return nullptr;
    Element* vector = array + PlaceOf(start, reverse ? i + kSize - 1 : i);
    return reinterpret_cast<uintptr_t>(vector) % sizeof(CudaVector<T, kSize>) == 0 ? vector
                                                                                   : nullptr;
  }

  // Returns elements [i, i + count), and zeros after them.
  __device__ CudaVector<T, kSize> Load(int64_t start, int64_t i, int count) const {
    CudaVector<T, kSize> values{};
    if (const T* vector = WholeVector(this->x, start, i, count)) {
      const auto loaded = LoadVector<kSize>(vector, kSize, true);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        values.values[j] = reverse ? loaded.values[kSize - 1 - j] : loaded.values[j];
      }
      return values;
    }
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      if (j < count) values.values[j] = this->x[PlaceOf(start, i + j)];
    }
    return values;
  }

  __device__ void Store(const CudaVector<T, kSize>& values, int64_t start, int64_t i,
                        int count) const {
    if (T* vector = WholeVector(this->out, start, i, count)) {
      CudaVector<T, kSize> stored;
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        stored.values[j] = reverse ? values.values[kSize - 1 - j] : values.values[j];
      }
      StoreVector(stored, kSize, true, vector);
      return;
    }
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      if (j < count) this->out[PlaceOf(start, i + j)] = values.values[j];
    }
  }
};

// ---- the kernels

// `backwards`: against the direction of the attribute. `type` is a string literal.
template <typename T>
std::unique_ptr<Kernel> PrepareCumsum(PrepareContext& context, const char* type, const char* input,
                                      const char* output, bool backwards) {
  using Sum = SumOf<T>;
  const std::optional<int> axis = CumsumAxis(context);
  const bool exclusive = context.Attr<bool>("exclusive");
  const bool reverse = context.Attr<bool>("reverse") != backwards;
  const In<T> from(context, input);
  const Out<T> to(context, output);
  const int64_t most_parts = Cut::MostParts(context.Input(input).shape.element_count());
  const int sums = context.RequestWorkspace(most_parts * static_cast<int64_t>(sizeof(Sum)));
  return MakeRowsKernel([=](const KernelContext& run) {
    if (!to.is_there()) return;
    const AxisExtents extents = CumsumExtents(from.shape(run), axis);
    if (extents.lines() == 0 || extents.length == 0) return;
    const Cut cut(extents);
    const SumsOfLines<T> lines{from(run), to(run),   static_cast<Sum*>(run.workspace(sums)),
                               extents,   cut.parts, cut.part,
                               exclusive, reverse};
    // Parts as lines, of whole vectors: how many threads share a line depends on its length.
    const AxisExtents of_parts{.outer = extents.outer * cut.parts,
                               .length = (cut.part + 3) / 4 * 4,
                               .inner = extents.inner};
    if (cut.parts > 1) {
      ForEachLineOnDevice<T>(run, type, of_parts, RunningSums<T, false>{lines});
    }
    ForEachLineOnDevice<T>(run, type, of_parts, RunningSums<T, true>{lines});
  });
}

}  // namespace

void RegisterCumsumCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "cumsum", [=]<typename T>(PrepareContext& context) {
        return PrepareCumsum<T>(context, "cumsum", "X", "Out", /*backwards=*/false);
      });
  AddCudaKernels<float, double>(registry, "cumsum_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareCumsum<T>(context, "cumsum_grad", "Out@GRAD", "X@GRAD", /*backwards=*/true);
  });
}

}  // namespace skiff
