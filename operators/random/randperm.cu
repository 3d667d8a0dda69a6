// CUDA kernels of randperm, which give the CPU's order.
//
// randperm.cc chooses a place for each element i: the element there moves to place i, and i takes
// its place. One thread per place finds out what it has in the end, without the steps before. Let
// place(i) be the choice of element i, at most i. The last element that chose place p has it. If
// none did after step p, the place has what was at place(p) before step p: the last element before
// p that chose place(p) or, if there is none, what step place(p) has moved there, and so on. Such a
// chain is short: each link halves the place on average.
//
// So the elements are sorted by the place that they chose (cuda_row_sort.h), and the last one
// before a step is found by bisection.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

// places[i] = to_sort[i] = place(i); each thread takes the two elements of a block of four words.
struct ChoosePlaces {
  __device__ void operator()(int64_t pair) const {
    const DevicePhilox::Block block = philox.At(static_cast<uint64_t>(pair));
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t i = 2 * pair + k;
      if (i >= count) return;
      // NumberBelow of random_tensor.h.
      const auto bound = static_cast<uint64_t>(i + 1);
      const uint64_t high = block.words[2 * k] * bound;
      const uint64_t low = block.words[2 * k + 1] * bound;
      places[i] = to_sort[i] = static_cast<int32_t>((high + (low >> 32)) >> 32);
    }
  }

  DevicePhilox philox;
  int64_t count;
  int32_t* places;
  int32_t* to_sort;  // which the sort overwrites
};

template <typename T>
struct FindElements {
  // Returns the last element before `step` that chose the place, -1 if there is none.
  __device__ int64_t LastBefore(int64_t step, uint32_t place) const {
    int64_t before = -1;
    int64_t behind = sorted.count;
    while (behind - before > 1) {
      const int64_t middle = (before + behind) / 2;
      const uint32_t other = sorted.rows[middle];
      const bool is_before = other < place || (other == place && sorted.positions[middle] < step);
      (is_before ? before : behind) = middle;
    }
    return before >= 0 && sorted.rows[before] == place ? int64_t{sorted.positions[before]} : -1;
  }

  __device__ void operator()(int64_t p) const {
    int64_t place = p;
    int64_t step = sorted.count;
    int64_t element = LastBefore(step, static_cast<uint32_t>(place));
    while (element < 0) {
      step = place;
      place = places[step];
      element = LastBefore(step, static_cast<uint32_t>(place));
    }
    out[p] = static_cast<T>(element);
  }

  SortedRows sorted;
  const int32_t* places;
  T* out;
};

template <typename T>
std::unique_ptr<Kernel> PrepareRandperm(PrepareContext& context) {
  const int64_t count = context.Output("Out").shape.element_count();
  const int places_workspace =
      context.RequestWorkspace(count * static_cast<int64_t>(sizeof(int32_t)));
  return MakeKernel([=, sort = RowSort(context, count),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    auto* const places = static_cast<int32_t*>(run.workspace(places_workspace));
    ForEachOnDevice(run, "randperm", (count + 1) / 2,
                    ChoosePlaces{DevicePhilox(run.random_key()), count, places, sort.rows(run)});
    ForEachOnDevice(run, "randperm", count,
                    FindElements<T>{sort.Sort(run, count, count), places, out(run)});
  });
}

}  // namespace

void RegisterRandpermCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "randperm",
      [=]<typename T>(PrepareContext& context) { return PrepareRandperm<T>(context); });
}

}  // namespace skiff
