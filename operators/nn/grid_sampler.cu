// CUDA kernels of grid_sampler; sampling/grid_sampling.h has the formula.
//
// A thread takes a place for some channels. Places add to elements of X@GRAD that they share: their
// taps are sorted by element (cuda_row_sort.h), so that one thread adds up an element, in the order
// of the places, as the CPU does.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/common/memory_mover.h"
#include "operators/nn/sampling/grid_sampling.h"

namespace skiff {
namespace {

// The channels that a thread samples with the taps that it has found.
constexpr int64_t kChannelsOfThread = 8;

template <typename T, SamplingMode kMode, int kAxes>
struct PlacesOnDevice {
  static constexpr int kTaps = TapsOf(kMode, kAxes);
  using Tap = PlaceTap<T, kAxes>;

  PlacesOnDevice(const OpContext& context, const GridSampling& sampling)
      : axes(sampling),
        batch(sampling.input.batch),
        channels(sampling.input.channels),
        elements(sampling.input.points()),
        places(sampling.output.points()) {
    CheckSampled(context, sampling);
  }

  // Of place i of all images.
  __device__ void Locate(const T* grid, int64_t i, Tap (&taps)[kTaps]) const {
    axes.template Locate<kMode>(grid + i * kAxes, taps);
  }
  int64_t all_places() const { return batch * places; }

  SampledAxes<kAxes> axes;
  int64_t batch;
  int64_t channels;
  int64_t elements;  // of a channel
  int64_t places;    // of an image
};

template <typename T, SamplingMode kMode, int kAxes>
struct SamplePlace {
  __device__ void operator()(int64_t i) const {
    const CudaDivision by_places = Divide(i, of.places);
    const CudaDivision by_groups = Divide(by_places.quotient, groups);
    const int64_t n = by_groups.quotient;
    const int64_t p = by_places.rest;
    PlaceTap<T, kAxes> taps[TapsOf(kMode, kAxes)];
    of.Locate(grid, n * of.places + p, taps);
    const int64_t begin = by_groups.rest * kChannelsOfThread;
    for (int64_t c = begin; c < begin + kChannelsOfThread && c < of.channels; ++c) {
      const T* channel = x + (n * of.channels + c) * of.elements;
      T sum = 0;
      for (const PlaceTap<T, kAxes>& tap : taps) {
        if (tap.offset >= 0) sum += tap.weight * channel[tap.offset];
      }
      output[(n * of.channels + c) * of.places + p] = sum;
    }
  }

  PlacesOnDevice<T, kMode, kAxes> of;
  int64_t groups;  // of channels
  const T* x;
  const T* grid;
  T* output;
};

template <typename T, SamplingMode kMode, int kAxes>
struct SampleGridGrad {
  __device__ void operator()(int64_t i) const {
    const CudaDivision by_places = Divide(i, of.places);
    const int64_t n = by_places.quotient;
    PlaceTap<T, kAxes> taps[TapsOf(kMode, kAxes)];
    of.Locate(grid, i, taps);
    T sums[kAxes] = {};
    for (int64_t c = 0; c < of.channels; ++c) {
      const T* channel = x + (n * of.channels + c) * of.elements;
      const T given = gradient[(n * of.channels + c) * of.places + by_places.rest];
      for (const PlaceTap<T, kAxes>& tap : taps) {
        if (tap.offset < 0) continue;
        const T value = given * channel[tap.offset];
        for (int k = 0; k < kAxes; ++k) sums[k] += tap.slopes[k] * value;
      }
    }
    for (int k = 0; k < kAxes; ++k) grid_gradient[i * kAxes + k] = sums[k];
  }

  PlacesOnDevice<T, kMode, kAxes> of;
  const T* x;
  const T* grid;
  const T* gradient;
  T* grid_gradient;
};

// Sets the element that each tap of place i is on, -1 if it is absent, and its weight.
template <typename T, SamplingMode kMode, int kAxes>
struct ListTaps {
  __device__ void operator()(int64_t i) const {
    constexpr int kTaps = TapsOf(kMode, kAxes);
    PlaceTap<T, kAxes> taps[kTaps];
    of.Locate(grid, i, taps);
    const int64_t first = Divide(i, of.places).quotient * of.elements;
    for (int k = 0; k < kTaps; ++k) {
      const int64_t offset = taps[k].offset;
      elements[i * kTaps + k] = offset < 0 ? -1 : static_cast<int32_t>(first + offset);
      weights[i * kTaps + k] = taps[k].weight;
    }
  }

  PlacesOnDevice<T, kMode, kAxes> of;
  const T* grid;
  int32_t* elements;  // of one channel of all images
  T* weights;
};

// The sum of an element of a channel, by the thread that has the first of its taps.
template <typename T, int kTaps>
struct SumTaps {
  __device__ void operator()(int64_t i) const {
    const CudaDivision by_taps = Divide(i, sorted.count);
    const int64_t c = by_taps.quotient;
    if (!IsFirstOfRow(sorted, by_taps.rest)) return;
    const uint32_t element = sorted.rows[by_taps.rest];
    const CudaDivision by_images = Divide(element, elements);
    const int64_t channel = by_images.quotient * channels + c;
    const T* from = gradient + channel * places;
    const int64_t first_place = by_images.quotient * places;
    T sum = 0;
    for (int64_t k = by_taps.rest; k < sorted.count && sorted.rows[k] == element; ++k) {
      const int64_t tap = sorted.positions[k];
      sum += weights[tap] * from[tap / kTaps - first_place];
    }
    x_gradient[channel * elements + by_images.rest] = sum;
  }

  SortedRows sorted;
  int64_t channels;
  int64_t elements;
  int64_t places;
  const T* weights;
  const T* gradient;
  T* x_gradient;
};

template <typename T>
std::unique_ptr<Kernel> PrepareGridSampler(PrepareContext& context) {
  const GridSampling sampling = ParseGridSampling(context);
  return VisitSampling(sampling, [&]<SamplingMode kMode, int kAxes>() {
    return MakeKernel([of = PlacesOnDevice<T, kMode, kAxes>(context, sampling),
                       x = In<T>(context, "X"), grid = In<T>(context, "Grid"),
                       out = Out<T>(context, "Output")](const KernelContext& run) {
      const int64_t groups = (of.channels + kChannelsOfThread - 1) / kChannelsOfThread;
      ForEachOnDevice(run, "grid_sampler", of.all_places() * groups,
                      SamplePlace<T, kMode, kAxes>{of, groups, x(run), grid(run), out(run)});
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGridSamplerGrad(PrepareContext& context) {
  const GridSampling sampling = ParseGridSampling(context);
  CheckDeviceRows(context, sampling.input.batch * sampling.input.points());
  return VisitSampling(sampling, [&]<SamplingMode kMode, int kAxes>() {
    constexpr int kTaps = TapsOf(kMode, kAxes);
    const PlacesOnDevice<T, kMode, kAxes> of(context, sampling);
    const Out<T> dx(context, "X@GRAD");
    const int64_t count = dx.is_there() ? of.all_places() * kTaps : 0;
    return MakeKernel([=, sort = RowSort(context, count),
                       weights = context.RequestWorkspace(count * int64_t{sizeof(T)}),
                       x = In<T>(context, "X"), grid = In<T>(context, "Grid"),
                       gradient = In<T>(context, "Output@GRAD"),
                       dgrid = Out<T>(context, "Grid@GRAD")](const KernelContext& run) {
      if (dgrid.is_there()) {
        ForEachOnDevice(
            run, "gradient of the grid", of.all_places(),
            SampleGridGrad<T, kMode, kAxes>{of, x(run), grid(run), gradient(run), dgrid(run)});
      }
      if (!dx.is_there()) return;
      T* const of_taps = static_cast<T*>(run.workspace(weights));
      MemoryMoverOf(run).ZeroBytes(run, dx(run), dx.tensor(run).byte_count());
      if (count == 0) return;
      ForEachOnDevice(run, "places of a grid", of.all_places(),
                      ListTaps<T, kMode, kAxes>{of, grid(run), sort.rows(run), of_taps});
      const SortedRows sorted = sort.Sort(run, count, of.batch * of.elements);
      ForEachOnDevice(run, "gradient of grid_sampler", count * of.channels,
                      SumTaps<T, kTaps>{sorted, of.channels, of.elements, of.places, of_taps,
                                        gradient(run), dx(run)});
    });
  });
}

}  // namespace

void RegisterGridSamplerCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "grid_sampler", [=]<typename T>(PrepareContext& context) {
    return PrepareGridSampler<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "grid_sampler_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareGridSamplerGrad<T>(context); });
}

}  // namespace skiff
