// CUDA kernels of multinomial; multinomial.cc says how words make samples. They are the CPU's, but
// where logarithms that differ in the last bit put two waiting times in another order.
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_selection.cuh"
#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

// Returns the uniform number of one element or sample.
__device__ double UniformAt(const DevicePhilox& philox, int64_t number) {
  const DevicePhilox::Block block = philox.At(static_cast<uint64_t>(number / 2));
  return number % 2 == 0 ? DeviceUnitDouble(block.words[0], block.words[1])
                         : DeviceUnitDouble(block.words[2], block.words[3]);
}

template <typename T>
struct Rows {
  // Faults are those of elements, and after each row's that of the row. The value of an element's
  // has the bits of the weight as a float, and that of a row's the number of positive weights, or
  // kEndlessSum.
  static constexpr int64_t kEndlessSum = -1;

  __device__ void NoteElement(int64_t row, int64_t i, T weight) const {
    NoteFault(fault, row * (width + 1) + i, std::bit_cast<int32_t>(static_cast<float>(weight)));
  }
  __device__ void NoteRow(int64_t row, int64_t value) const {
    NoteFault(fault, row * (width + 1) + width, value);
  }

  const T* x;
  int64_t count;
  int64_t width;
  int64_t samples;
  uint64_t* fault;
};

// A warp takes a row: it checks the weights and writes what the samples are drawn from: their
// running sums, added one after the other as on the CPU, or, without replacement, waiting times,
// which are NaN where the weight is 0.
template <bool kReplacement, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    PrepareRows(Rows<T> rows, DevicePhilox philox, double* made) {
  constexpr uint32_t kAll = 0xFFFFFFFF;
  const int lane = static_cast<int>(threadIdx.x) % kCudaWarp;
  const int64_t warps = int64_t{gridDim.x} * (kCudaThreads / kCudaWarp);
  const int64_t first_row =
      int64_t{blockIdx.x} * (kCudaThreads / kCudaWarp) + threadIdx.x / kCudaWarp;
  for (int64_t row = first_row; row < rows.count; row += warps) {
    double sum = 0;
    int64_t positive = 0;
    for (int64_t first = 0; first < rows.width; first += kCudaWarp) {
      const int64_t i = first + lane;
      const int64_t element = row * rows.width + i;
      const bool exists = i < rows.width;
      const T weight = exists ? rows.x[element] : T{0};
      if (!(weight >= T{0} && std::isfinite(weight))) rows.NoteElement(row, i, weight);
      positive += weight > T{0} ? 1 : 0;
      double of_lane = std::numeric_limits<double>::quiet_NaN();
      if constexpr (kReplacement) {
        const int64_t rest = rows.width - first;
        const int count = rest < kCudaWarp ? static_cast<int>(rest) : kCudaWarp;
        for (int j = 0; j < count; ++j) {
          sum += static_cast<double>(__shfl_sync(kAll, weight, j));
          if (j == lane) of_lane = sum;
        }
      } else {
        sum += static_cast<double>(weight);
        if (weight > T{0}) {
          of_lane = -std::log1p(-UniformAt(philox, element)) / static_cast<double>(weight);
        }
      }
      if (exists) made[element] = of_lane;
    }
    positive = CombineWarp(positive, JoinBySum{});
    if constexpr (!kReplacement) sum = CombineWarp(sum, JoinBySum{});
    if (lane != 0) continue;
    if (!std::isfinite(sum)) {
      rows.NoteRow(row, Rows<T>::kEndlessSum);
    } else if (positive == 0 || (!kReplacement && positive < rows.samples)) {
      rows.NoteRow(row, positive);
    }
  }
}

// Returns the first of `count` ascending numbers for which `is_beyond` holds, or count.
template <class IsBeyond>
__device__ int64_t FirstBeyond(const double* sums, int64_t count, const IsBeyond& is_beyond) {
  int64_t begin = 0;
  int64_t end = count;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (is_beyond(sums[middle])) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

template <typename T>
struct DrawSamples {
  __device__ void operator()(int64_t sample) const {
    if (rows.width == 0) return;  // the row has been noted
    const double* of_row = sums + Divide(sample, rows.samples).quotient * rows.width;
    const double sum = of_row[rows.width - 1];
    // The last index with a positive weight: rounding may bring `at` up to the sum itself.
    const int64_t last = FirstBeyond(of_row, rows.width, [=](double to) { return to >= sum; });
    const double at = UniformAt(philox, sample) * sum;
    const int64_t index = FirstBeyond(of_row, rows.width, [=](double to) { return to > at; });
    out[sample] = index < last ? index : last;
  }

  Rows<T> rows;
  DevicePhilox philox;
  const double* sums;
  int64_t* out;
};

template <typename T>
class Multinomial final : public Kernel {
 public:
  explicit Multinomial(PrepareContext& context)
      : x_(context, "X"),
        out_(context, "Out"),
        replacement_(context.Attr<bool>("replacement")),
        made_(context.RequestWorkspace(context.Input("X").shape.element_count() *
                                       static_cast<int64_t>(sizeof(double)))) {
    const Shape& x = context.Input("X").shape;
    rows_.count = x.rank() == 2 ? x[0] : 1;
    rows_.width = x.dim(-1);
    rows_.samples = context.IntAttr("num_samples");
  }

  void Run(const KernelContext& run) override {
    if (rows_.count == 0) return;
    rows_.x = x_(run);
    rows_.fault = run.fault;
    auto* made = static_cast<double*>(run.workspace(made_));
    auto* out = out_(run);
    const DevicePhilox philox(run.random_key());
    constexpr int64_t kWarps = kCudaThreads / kCudaWarp;
    const int blocks = CudaBlocks((rows_.count + kWarps - 1) / kWarps);
    const cudaStream_t stream = StreamOf(run);
    if (replacement_) {
      PrepareRows<true><<<blocks, kCudaThreads, 0, stream>>>(rows_, philox, made);
      CheckLaunch(kType);
      ForEachOnDevice(run, kType, rows_.count * rows_.samples,
                      DrawSamples<T>{rows_, philox, made, out});
      return;
    }
    PrepareRows<false><<<blocks, kCudaThreads, 0, stream>>>(rows_, philox, made);
    CheckLaunch(kType);
    SelectOnDevice(run, kType, AxisExtents{.outer = rows_.count, .length = rows_.width},
                   CudaSelection<double>{.x = made,
                                         .k = rows_.samples,
                                         .is_descending = false,
                                         .nan_is_first = false,
                                         .values = nullptr,
                                         .places = out,
                                         .narrow_places = nullptr});
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    const int64_t row = fault.position / (rows_.width + 1);
    const int64_t i = fault.position % (rows_.width + 1);
    if (i < rows_.width) {
      Throw(ErrorCode::kOutOfRange, "multinomial: element ", i, " of row ", row, " of X is ",
            std::bit_cast<float>(static_cast<int32_t>(fault.value)),
            ", expected a finite number of 0 or more");
    }
    if (fault.value <= 0) {
      Throw(ErrorCode::kOutOfRange, "multinomial: row ", row, " of X adds up to ",
            fault.value == 0 ? 0.0 : std::numeric_limits<double>::infinity(),
            ", expected a positive number");
    }
    Throw(ErrorCode::kOutOfRange, "multinomial: row ", row, " of X has ", fault.value,
          " positive elements, too few to draw ", rows_.samples, " without replacement");
  }

 private:
  static constexpr const char* kType = "multinomial";

  In<T> x_;
  Out<int64_t> out_;
  bool replacement_;
  int made_;  // float64, for each element of X
  Rows<T> rows_{};
};

template <typename T>
std::unique_ptr<Kernel> PrepareMultinomial(PrepareContext& context) {
  return std::make_unique<Multinomial<T>>(context);
}

}  // namespace

void RegisterMultinomialCuda(OpRegistry& registry) {
  AddCudaRandomKernel<float>(registry, "multinomial", PrepareMultinomial<float>);
  AddCudaRandomKernel<double>(registry, "multinomial", PrepareMultinomial<double>);
}

}  // namespace skiff
