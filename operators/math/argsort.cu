// CUDA kernels of argsort and argsort_grad; argsort.cc has the definition.
//
// A bitonic sort: lines are padded to a power of two, with elements that stand behind all others,
// and a block sorts as many neighbouring elements as its shared memory holds. Only for longer lines
// do steps of the network run through global memory. Elements are ordered by value and place, so
// the result doesn't depend on how they are compared.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {
namespace {

constexpr int kTile = 1024;  // elements that a block sorts

AxisExtents ExtentsOf(const OpContext& context, const char* slot) {
  const Shape& x = context.Input(slot).shape;
  return ExtentsOfAxis(x, AxisIndex(context, x, context.IntAttr("axis")));
}

// The lines of a tensor, each with 2^length_bits places, of which the last ones may be padding.
struct PaddedLines {
  int64_t length;
  int64_t inner;
  int length_bits;
  int64_t count;  // elements, with padding
  bool is_descending;

  __device__ int64_t PlaceOf(int64_t i) const { return i & ((int64_t{1} << length_bits) - 1); }
  // Returns where the tensor has element i, which isn't padding.
  __device__ int64_t Offset(int64_t i) const {
    const int64_t line = i >> length_bits;
    return (line / inner * length + PlaceOf(i)) * inner + line % inner;
  }
};

template <typename T>
struct Element {
  T value;
  int32_t place;
};

// Returns whether a comes before b. NaN counts as the largest number; padding is the last.
template <typename T>
__device__ bool StandsBefore(const PaddedLines& lines, const Element<T>& a, const Element<T>& b) {
  const bool a_exists = a.place < lines.length;
  const bool b_exists = b.place < lines.length;
  if (!a_exists || !b_exists) return a_exists == b_exists ? a.place < b.place : a_exists;
  if constexpr (std::is_floating_point_v<T>) {
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    if (a_is_nan || b_is_nan) {
      return a_is_nan && b_is_nan ? a.place < b.place : a_is_nan == lines.is_descending;
    }
  }
  if (a.value == b.value) return a.place < b.place;
  return (a.value > b.value) == lines.is_descending;
}

// Of two elements, the first of which is element i, returns whether a merge of 2^k_bits elements
// exchanges them.
template <typename T>
__device__ bool AreExchanged(const PaddedLines& lines, int64_t i, int k_bits,
                             const Element<T>& first, const Element<T>& second) {
  // The last merge of a line is upwards, the others alternate.
  const bool is_upwards = (lines.PlaceOf(i) >> k_bits & 1) == 0 || k_bits == lines.length_bits;
  return is_upwards ? StandsBefore(lines, second, first) : StandsBefore(lines, first, second);
}

// Returns the first element of pair t of a step that compares elements 2^j_bits apart.
__device__ int64_t FirstOfPair(int64_t t, int j_bits) {
  const int64_t low = t & ((int64_t{1} << j_bits) - 1);
  return (t - low) * 2 + low;
}

// What a launch reads and writes. Element i of the workspace is values[i], places[i].
template <typename T>
struct SortData {
  const T* x;  // nullptr: the workspace
  T* values;
  int32_t* places;
  bool stores_outputs;  // else into the workspace
  T* out;               // may be nullptr, as may indices
  int64_t* indices;
};

// Does the steps of merges of 2^first_bits to 2^last_bits elements that stay within a tile.
template <typename T>
__global__ void SortTiles(PaddedLines lines, SortData<T> data, int first_bits, int last_bits) {
  __shared__ T values[kTile];
  __shared__ int32_t places[kTile];
  const int64_t begin = int64_t{blockIdx.x} * kTile;
  for (int i = threadIdx.x; i < kTile && begin + i < lines.count; i += kCudaThreads) {
    if (data.x == nullptr) {
      values[i] = data.values[begin + i];
      places[i] = data.places[begin + i];
    } else {
      const int64_t place = lines.PlaceOf(begin + i);
      values[i] = place < lines.length ? data.x[lines.Offset(begin + i)] : T(0);
      places[i] = static_cast<int32_t>(place);
    }
  }
  __syncthreads();
  for (int k_bits = first_bits; k_bits <= last_bits; ++k_bits) {
    constexpr int kMostBits = 9;
    static_assert(1 << (kMostBits + 1) == kTile);
    for (int j_bits = k_bits - 1 < kMostBits ? k_bits - 1 : kMostBits; j_bits >= 0; --j_bits) {
      for (int t = threadIdx.x; t < kTile / 2; t += kCudaThreads) {
        const int i = static_cast<int>(FirstOfPair(t, j_bits));
        const int j = i + (1 << j_bits);
        if (begin + j >= lines.count) continue;
        const Element<T> first{values[i], places[i]};
        const Element<T> second{values[j], places[j]};
        if (!AreExchanged(lines, begin + i, k_bits, first, second)) continue;
        values[i] = second.value;
        places[i] = second.place;
        values[j] = first.value;
        places[j] = first.place;
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < kTile && begin + i < lines.count; i += kCudaThreads) {
    if (!data.stores_outputs) {
      data.values[begin + i] = values[i];
      data.places[begin + i] = places[i];
    } else if (lines.PlaceOf(begin + i) < lines.length) {
      const int64_t to = lines.Offset(begin + i);
      if (data.out != nullptr) data.out[to] = values[i];
      if (data.indices != nullptr) data.indices[to] = places[i];
    }
  }
}

// One step, in the workspace.
template <typename T>
__global__ void MergeStep(PaddedLines lines, T* values, int32_t* places, int k_bits, int j_bits) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; t < lines.count / 2;
       t += stride) {
    const int64_t i = FirstOfPair(t, j_bits);
    const int64_t j = i + (int64_t{1} << j_bits);
    const Element<T> first{values[i], places[i]};
    const Element<T> second{values[j], places[j]};
    if (!AreExchanged(lines, i, k_bits, first, second)) continue;
    values[i] = second.value;
    places[i] = second.place;
    values[j] = first.value;
    places[j] = first.place;
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareArgsort(PrepareContext& context) {
  constexpr int kTileBits = 10;
  static_assert(1 << kTileBits == kTile);
  const AxisExtents extents = ExtentsOf(context, "X");
  SKIFF_ENFORCE(extents.length <= int64_t{1} << 30, kUnimplemented, "argsort: there are ",
                extents.length, " elements along the axis, on a device expected at most 2^30");
  int bits = 0;
  while (int64_t{1} << bits < extents.length) ++bits;
  const PaddedLines lines{.length = extents.length,
                          .inner = extents.inner,
                          .length_bits = bits,
                          .count = MultiplyCounts(extents.lines(), int64_t{1} << bits),
                          .is_descending = context.Attr<bool>("descending")};
  const int64_t tiles = (lines.count + kTile - 1) / kTile;
  SKIFF_ENFORCE(tiles <= std::numeric_limits<int32_t>::max(), kUnimplemented,
                "argsort: there are more elements than a device sorts");
  const bool is_long = bits > kTileBits;
  const int values =
      is_long ? context.RequestWorkspace(MultiplyCounts(lines.count, int64_t{sizeof(T)})) : -1;
  const int places =
      is_long ? context.RequestWorkspace(MultiplyCounts(lines.count, int64_t{sizeof(int32_t)}))
              : -1;
  return MakeKernel([=, x = In<T>(context, "X"), out = Out<T>(context, "Out"),
                     indices = Out<int64_t>(context, "Indices")](const KernelContext& run) {
    SortData<T> data{.x = x(run),
                     .values = is_long ? static_cast<T*>(run.workspace(values)) : nullptr,
                     .places = is_long ? static_cast<int32_t*>(run.workspace(places)) : nullptr,
                     .stores_outputs = !is_long,
                     .out = out(run),
                     .indices = indices(run)};
    const auto sort_tiles = [&](int first_bits, int last_bits) {
      SortTiles<T><<<static_cast<unsigned>(tiles), kCudaThreads, 0, StreamOf(run)>>>(
          lines, data, first_bits, last_bits);
    };
    sort_tiles(1, std::min(bits, kTileBits));
    data.x = nullptr;
    for (int k_bits = kTileBits + 1; k_bits <= bits; ++k_bits) {
      for (int j_bits = k_bits - 1; j_bits >= kTileBits; --j_bits) {
        MergeStep<T><<<CudaBlocksOfThreads(lines.count / 2), kCudaThreads, 0, StreamOf(run)>>>(
            lines, data.values, data.places, k_bits, j_bits);
      }
      data.stores_outputs = k_bits == bits;
      sort_tiles(k_bits, k_bits);
    }
    CheckLaunch("argsort");
  });
}

// Notes in `sources`, which is -1 everywhere, which gradient each place gets: the last one that
// names it.
__global__ void FindSources(const int64_t* indices, int64_t count, int64_t length, int64_t inner,
                            int32_t* sources, uint64_t* fault) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t place = indices[i];
    if (place < 0 || place >= length) {
      NoteFault(fault, i, place);
      continue;
    }
    const int64_t own = i / inner % length;
    atomicMax(sources + i + (place - own) * inner, static_cast<int32_t>(own));
  }
}

template <typename T>
__global__ void TakeSources(const int32_t* sources, const T* gradient, int64_t count,
                            int64_t length, int64_t inner, T* dx) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t own = i / inner % length;
    dx[i] = sources[i] < 0 ? T(0) : gradient[i + (sources[i] - own) * inner];
  }
}

template <typename T>
class ArgsortGradKernel final : public Kernel {
 public:
  explicit ArgsortGradKernel(PrepareContext& context)
      : extents_(ExtentsOf(context, "X")),
        sources_(context.RequestWorkspace(
            MultiplyCounts(context.Input("X").shape.element_count(), int64_t{sizeof(int32_t)}))),
        indices_(context, "Indices"),
        gradient_(context, "Out@GRAD"),
        dx_(context, "X@GRAD") {}

  void Run(const KernelContext& run) override {
    const int64_t count = dx_.count(run);
    if (count == 0) return;
    auto* const sources = static_cast<int32_t*>(run.workspace(sources_));
    FillBytesOnDevice(run, sources, 0xFF, count * int64_t{sizeof(int32_t)});
    const int blocks = CudaBlocksOfThreads(count);
    FindSources<<<blocks, kCudaThreads, 0, StreamOf(run)>>>(indices_(run), count, extents_.length,
                                                            extents_.inner, sources, run.fault);
    TakeSources<T><<<blocks, kCudaThreads, 0, StreamOf(run)>>>(
        sources, gradient_(run), count, extents_.length, extents_.inner, dx_(run));
    CheckLaunch("argsort_grad");
  }
  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, "argsort_grad: Indices[", fault.position, "] = ", fault.value,
          " is outside [0, ", extents_.length, "), the places along the axis");
  }

 private:
  AxisExtents extents_;
  int sources_;
  In<int64_t> indices_;
  In<T> gradient_;
  Out<T> dx_;
};

template <typename T>
void AddArgsort(OpRegistry& registry) {
  registry.AddCudaKernel("argsort", kDTypeOf<T>, PrepareArgsort<T>);
  if constexpr (std::is_floating_point_v<T>) {
    registry.AddCudaKernel("argsort_grad", kDTypeOf<T>, [](PrepareContext& context) {
      return std::make_unique<ArgsortGradKernel<T>>(context);
    });
  }
}

}  // namespace

void RegisterArgsortCuda(OpRegistry& registry) {
  AddArgsort<float>(registry);
  AddArgsort<double>(registry);
  AddArgsort<int32_t>(registry);
  AddArgsort<int64_t>(registry);
}

}  // namespace skiff
