// The CUDA kernel of all optimizers, around the same formulas as the CPU kernels (update_kernel.h).
// An op's .cu includes its formula and calls RegisterCudaUpdate.
//
// For dense gradients, a run is a constant number of launches, however many parameters there are:
// 2, or 3 for a formula that needs norms, or 4 if it needs the norm of its step. The first launch
// makes the coefficients of each parameter from its attributes and from scalars on the device
// (learning rates, powers of beta, GradScale), and advances the powers; the last one updates all
// elements. The device reads SkipUpdate as well, so the CPU waits for nothing. A table on the
// device has the addresses of the tensors; it changes when the tensors move.
//
// An element is rounded as on the CPU with AVX2 or better, except powers (ftrl): products and sums
// are fused only where the formula says so (the family is compiled without contraction). A norm is
// a sum in an order that depends only on the parameter's size.
//
// With multi_precision the kernels update the master weights (kHasHalves). A thread takes as many
// two-byte parameters and gradients as others, 8 bytes at once.
//
// A sparse gradient belongs to the only parameter. A few more launches sort its rows and add up the
// repeated ones. If the rows that it lacks are left alone, a launch updates the elements of the
// others; else a list says where the sum of each row is, and the gradient of the rest is zero.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/optimizer/kernels/cuda_sparse_gradient.cuh"
#include "operators/optimizer/kernels/update_arguments.h"
#include "operators/optimizer/kernels/update_numbers.h"
#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

// What formulas compute with: see VectorMath in update_loops-inl.h.
template <typename T>
class CudaMath {
 public:
  __host__ __device__ explicit CudaMath(const T* coefficients) {
    for (size_t i = 0; i < kMaxUpdateCoefficients; ++i) coefficients_[i] = coefficients[i];
  }

  __host__ __device__ T operator[](size_t i) const { return coefficients_[i]; }
  __host__ __device__ T Number(double value) const { return static_cast<T>(value); }
  __host__ __device__ T Add(T a, T b) const { return a + b; }
  __host__ __device__ T Sub(T a, T b) const { return a - b; }
  __host__ __device__ T Mul(T a, T b) const { return a * b; }
  __host__ __device__ T Div(T a, T b) const { return a / b; }
  __host__ __device__ T MulAdd(T a, T b, T c) const { return std::fma(a, b, c); }
  __host__ __device__ T NegMulAdd(T a, T b, T c) const { return std::fma(-a, b, c); }
  __host__ __device__ T Sqrt(T a) const { return std::sqrt(a); }
  __host__ __device__ T Abs(T a) const { return std::fabs(a); }
  // As on x86: b if either is NaN.
  __host__ __device__ T Max(T a, T b) const { return a > b ? a : b; }
  __host__ __device__ T CopySign(T a, T b) const { return std::copysign(a, b); }
  __host__ __device__ T WhereGreater(T a, T b, T x, T y) const { return a > b ? x : y; }
  __host__ __device__ T WhereEqual(T a, T b, T x, T y) const { return a == b ? x : y; }
  __host__ __device__ T Pow(T a, T b) const { return std::pow(a, b); }

 private:
  T coefficients_[kMaxUpdateCoefficients];
};

// A tensor of one element on the device, float32 or float64.
struct CudaScalar {
  friend bool operator==(const CudaScalar&, const CudaScalar&) = default;

  void* data = nullptr;  // nullptr: none
  bool is_double = false;
};

inline CudaScalar CudaScalarOf(const Tensor& tensor) {
  return {.data = const_cast<void*>(tensor.raw_data()),
          .is_double = tensor.dtype() == DType::kFloat64};
}

__device__ inline double Load(const CudaScalar& scalar) {
  return scalar.is_double ? *static_cast<const double*>(scalar.data)
                          : static_cast<double>(*static_cast<const float*>(scalar.data));
}

__device__ inline void Store(double value, const CudaScalar& scalar) {
  if (scalar.is_double) {
    *static_cast<double*>(scalar.data) = value;
  } else {
    *static_cast<float*>(scalar.data) = static_cast<float>(value);
  }
}

// One parameter, in the table.
template <typename T>
struct CudaParameter {
  friend bool operator==(const CudaParameter&, const CudaParameter&) = default;

  const T* param = nullptr;
  const T* grad = nullptr;
  T* param_out = nullptr;
  const T* states[kMaxUpdateStates] = {};
  T* states_out[kMaxUpdateStates] = {};
  // With multi_precision, where `param` are the master weights.
  const uint16_t* half_param = nullptr;
  const uint16_t* half_grad = nullptr;  // instead of `grad`; nullptr: none
  uint16_t* half_param_out = nullptr;
  bool is_aligned = false;  // all of them: see cuda_chunks.cuh
  int64_t count = 0;
  GradientForm<T> form;  // without `scale`
  CudaScalar learning_rate;
  double numbers[kMaxUpdateNumbers] = {};
  CudaScalar scalars[kMaxUpdateScalars];
  CudaScalar scalars_out[kMaxUpdateScalars];
};

// Sums of squares.
struct CudaSquares {
  double param = 0;
  double step = 0;
};

// All parameters of a run, as kernels get them.
template <typename T>
struct CudaUpdate {
  const CudaParameter<T>* parameters = nullptr;
  CudaChunks chunks;
  CudaRowsBySlot<T> sparse;    // instead of the gradient of the only parameter
  const bool* skip = nullptr;  // nullptr: never
  CudaScalar scale;
  CudaScalar overrides[kMaxUpdateNumbers];  // of the numbers
  int factors[kMaxUpdateScalars] = {};      // the number that moves a scalar on; -1: none
  size_t state_count = 0;
  bool is_float16 = false;  // the two-byte dtype; else bfloat16
  // Workspaces.
  std::array<T, kMaxUpdateCoefficients>* coefficients = nullptr;  // of each parameter
  CudaSquares* squares = nullptr;                                 // of each chunk
};

template <typename T>
__device__ bool Skips(const CudaUpdate<T>& update) {
  return update.skip != nullptr && *update.skip;
}

template <typename T>
__device__ CudaChunk ChunkOf(const CudaUpdate<T>& update, int64_t chunk) {
  return ChunkOf(update.chunks, chunk, [&](int64_t i) { return update.parameters[i].count; });
}

template <typename T>
__device__ GradientForm<T> FormOf(const CudaUpdate<T>& update, const CudaParameter<T>& parameter) {
  GradientForm<T> form = parameter.form;
  if (update.scale.data != nullptr) form.scale = static_cast<T>(Load(update.scale));
  return form;
}

// By one thread. `is_last`: the scalars move on as well.
template <class Formula, typename T>
__device__ void SetParameter(const CudaUpdate<T>& update, int64_t i, const CudaSquares& squares,
                             bool is_last) {
  const CudaParameter<T>& parameter = update.parameters[i];
  UpdateNumbers numbers;
  numbers.learning_rate = Load(parameter.learning_rate);
  numbers.param_norm = std::sqrt(squares.param);
  numbers.step_norm = std::sqrt(squares.step);
  constexpr int kNumbers = static_cast<int>(Formula::kNumbers.size());
  for (int k = 0; k < kNumbers; ++k) {
    const bool is_overridden = update.overrides[k].data != nullptr;
    numbers.values[k] = is_overridden ? Load(update.overrides[k]) : parameter.numbers[k];
  }
  for (size_t k = 0; k < kMaxUpdateScalars; ++k) {
    if (parameter.scalars[k].data != nullptr) numbers.scalars[k] = Load(parameter.scalars[k]);
  }
  double coefficients[kMaxUpdateCoefficients] = {};
  Formula::SetCoefficients(numbers, coefficients);
  for (size_t k = 0; k < kMaxUpdateCoefficients; ++k) {
    update.coefficients[i][k] = static_cast<T>(coefficients[k]);
  }
  if (!is_last) return;
  for (size_t k = 0; k < kMaxUpdateScalars; ++k) {
    if (parameter.scalars_out[k].data == nullptr) continue;
    const bool stays = Skips(update) || update.factors[k] < 0;
    const double factor = stays ? 1.0 : numbers[update.factors[k]];
    Store(numbers.scalars[k] * factor, parameter.scalars_out[k]);
  }
}

template <class Formula, typename T>
__global__ void SetCoefficients(CudaUpdate<T> update, bool is_last) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < update.chunks.array_count; i += stride) {
    SetParameter<Formula>(update, i, CudaSquares{}, is_last);
  }
}

// A block takes a parameter and adds up the sums of its chunks, too.
template <class Formula, typename T>
__global__ void __launch_bounds__(kCudaThreads) SetCoefficientsByNorms(CudaUpdate<T> update) {
  for (int64_t i = blockIdx.x; i < update.chunks.array_count; i += gridDim.x) {
    CudaSquares sums;
    const int64_t end = update.chunks.first[i + 1];
    for (int64_t chunk = update.chunks.first[i] + threadIdx.x; chunk < end; chunk += kCudaThreads) {
      sums.param += update.squares[chunk].param;
      sums.step += update.squares[chunk].step;
    }
    const CudaSquares total = {CombineBlock(sums.param, JoinBySum{}),
                               CombineBlock(sums.step, JoinBySum{})};
    if (threadIdx.x == 0) SetParameter<Formula>(update, i, total, true);
  }
}

// The step of a formula that needs the norms of its gradient.
struct GradientStep {
  static constexpr size_t kStates = 0;

  template <class Math, class V>
  static constexpr void Update(const Math&, V grad, V& param, V*) {
    param = grad;
  }
};

enum class UpdatePass {
  kWhole,  // from the states to their next values and the parameter's
  kSteps,  // from the states to their next values and the squares of parameters and steps
  kApply,  // from the next values of the states to the parameter's
};

namespace {

#include "operators/optimizer/kernels/gradient_formula-inl.h"

template <bool kIsWhole, bool kHasHalves, bool kIsSparse, typename T>
__device__ Pack<T> LoadGradient(const CudaUpdate<T>& update, const CudaParameter<T>& parameter,
                                int64_t at, int count) {
  if constexpr (kIsSparse) return LoadRows<kIsWhole>(update.sparse, at, count);
  if constexpr (kHasHalves) {
    if (parameter.half_grad != nullptr) {
      return LoadHalves<kIsWhole>(parameter.half_grad + at, update.is_float16, count);
    }
  }
  return LoadPack<kIsWhole>(parameter.grad + at, count);
}

// The update of packs of a parameter, of one pass.
template <class Formula, UpdatePass kPass, bool kHasHalves, typename T>
class PackUpdate {
 public:
  __device__ PackUpdate(const CudaUpdate<T>& update, int64_t array)
      : parameter_(update.parameters[array]),
        is_float16_(update.is_float16),
        math_(update.coefficients[array].data()),
        form_(FormOf(update, parameter_)),
        params_(parameter_.param),
        params_out_(parameter_.param_out) {
    for (int k = 0; k < kStates; ++k) {
      states_out_[k] = parameter_.states_out[k];
      states_[k] = kPass == UpdatePass::kApply ? states_out_[k] : parameter_.states[k];
    }
  }

  // Of `count` elements from `at` on. Adds the squares of parameters and steps in pass kSteps: in
  // float64, which holds them all. Memory limits this pass, arithmetic doesn't.
  template <bool kIsWhole>
  __device__ void Do(int64_t at, int count, const Pack<T>& grad, double* param_squares,
                     double* step_squares) const {
    Pack<T> param = LoadPack<kIsWhole>(params_ + at, count);
    Pack<T> moved[kStates + 1];
#pragma unroll
    for (int k = 0; k < kStates; ++k) moved[k] = LoadPack<kIsWhole>(states_[k] + at, count);
#pragma unroll
    for (int j = 0; j < kPackSize<T>; ++j) {
      const T old_param = param.values[j];
      T of_element[kStates + 1];
#pragma unroll
      for (int k = 0; k < kStates; ++k) of_element[k] = moved[k].values[j];
      const T formed = GradientFormula::Formed(math_, form_, grad.values[j], old_param);
      Formula::Update(math_, formed, param.values[j], of_element);
#pragma unroll
      for (int k = 0; k < kStates; ++k) moved[k].values[j] = of_element[k];
      if (kPass == UpdatePass::kSteps && j < count) {
        const auto before = static_cast<double>(old_param);
        const auto step = static_cast<double>(param.values[j]);
        *param_squares += before * before;
        *step_squares += step * step;
      }
    }
    if constexpr (kPass != UpdatePass::kSteps) {
      StorePack<kIsWhole>(param, count, params_out_ + at);
      if constexpr (kHasHalves) {
        StoreHalves<kIsWhole>(param, is_float16_, count, parameter_.half_param_out + at);
      }
    }
    if constexpr (kPass != UpdatePass::kApply && kMovesStates<Formula>) {
#pragma unroll
      for (int k = 0; k < kStates; ++k) {
        StorePack<kIsWhole>(moved[k], count, states_out_[k] + at);
      }
    }
  }

 private:
  static constexpr int kStates = static_cast<int>(Formula::kStates);

  const CudaParameter<T>& parameter_;
  bool is_float16_;
  CudaMath<T> math_;
  GradientForm<T> form_;
  const T* params_;
  T* params_out_;
  const T* states_[kStates + 1];
  T* states_out_[kStates + 1];
};

// Returns the thread's part of the sums, of pass kSteps.
template <class Formula, UpdatePass kPass, bool kHasHalves, bool kIsSparse, typename T>
__device__ CudaSquares UpdateChunk(const CudaUpdate<T>& update, const CudaChunk& chunk) {
  const CudaParameter<T>& parameter = update.parameters[chunk.array];
  const PackUpdate<Formula, kPass, kHasHalves, T> pack(update, chunk.array);
  double param_squares = 0;
  double step_squares = 0;
  ForEachPack<T>(chunk, parameter.is_aligned, [&]<bool kIsWhole>(int64_t at, int count) {
    const Pack<T> grad =
        LoadGradient<kIsWhole, kHasHalves, kIsSparse>(update, parameter, at, count);
    pack.template Do<kIsWhole>(at, count, grad, &param_squares, &step_squares);
  });
  return {param_squares, step_squares};
}

// Updates only the rows of the sparse gradient.
template <class Formula, bool kHasHalves, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    UpdateRows(CudaUpdate<T> update, CudaRowGradients<T> gradients) {
  if (Skips(update)) return;
  const PackUpdate<Formula, UpdatePass::kWhole, kHasHalves, T> pack(update, 0);
  const int64_t width = gradients.width;
  const bool is_aligned = update.parameters[0].is_aligned && width % kPackSize<T> == 0;
  const int64_t packs = (width + kPackSize<T> - 1) / kPackSize<T>;  // of a row
  const int64_t all = gradients.sorted.count * packs;
  double unused = 0;
  const int64_t stride = int64_t{gridDim.x} * kCudaThreads;
  for (int64_t i = int64_t{blockIdx.x} * kCudaThreads + threadIdx.x; i < all; i += stride) {
    const CudaDivision place = Divide(i, packs);
    const int64_t k = place.quotient;
    if (!IsFirstOfRow(gradients.sorted, k)) continue;
    const int64_t column = place.rest * kPackSize<T>;
    const int64_t at = gradients.sorted.rows[k] * width + column;
    const T* const sums = gradients.sums + gradients.sorted.positions[k] * width + column;
    if (is_aligned) {
      const Pack<T> grad = LoadPack<true>(sums, kPackSize<T>);
      pack.template Do<true>(at, kPackSize<T>, grad, &unused, &unused);
    } else {
      const int64_t rest = width - column;
      const int count = rest < kPackSize<T> ? static_cast<int>(rest) : kPackSize<T>;
      pack.template Do<false>(at, count, LoadPack<false>(sums, count), &unused, &unused);
    }
  }
}

// Makes steps and keeps only their squares. A formula with states also stores their next values.
template <class Step, bool kHasHalves, bool kIsSparse, typename T>
__global__ void __launch_bounds__(kCudaThreads) MakeSteps(CudaUpdate<T> update) {
  if (Skips(update)) return;
  for (int64_t i = blockIdx.x; i < update.chunks.count; i += gridDim.x) {
    const CudaSquares sums =
        UpdateChunk<Step, UpdatePass::kSteps, kHasHalves, kIsSparse>(update, ChunkOf(update, i));
    const CudaSquares total = {CombineBlock(sums.param, JoinBySum{}),
                               CombineBlock(sums.step, JoinBySum{})};
    if (threadIdx.x == 0) update.squares[i] = total;
  }
}

template <class Formula, UpdatePass kPass, bool kHasHalves, bool kIsSparse, typename T>
__global__ void __launch_bounds__(kCudaThreads) UpdateElements(CudaUpdate<T> update) {
  const bool skips = Skips(update);
  for (int64_t i = blockIdx.x; i < update.chunks.count; i += gridDim.x) {
    const CudaChunk chunk = ChunkOf(update, i);
    const CudaParameter<T>& parameter = update.parameters[chunk.array];
    if (skips) {
      KeepChunk(parameter.param, chunk, parameter.param_out);
      if constexpr (kHasHalves) {
        KeepChunk(parameter.half_param, chunk, parameter.half_param_out);
      }
    } else {
      UpdateChunk<Formula, kPass, kHasHalves, kIsSparse>(update, chunk);
    }
    for (size_t k = skips ? 0 : Formula::kStates; k < update.state_count; ++k) {
      KeepChunk(parameter.states[k], chunk, parameter.states_out[k]);
    }
  }
}

// The kernel of an op. Step makes the step of a formula that needs the step's norm. kHasHalves:
// with multi_precision; T is then float.
template <class Formula, class Step, bool kHasHalves, typename T>
class CudaUpdateKernel final : public Kernel {
 public:
  explicit CudaUpdateKernel(PrepareContext& context)
      : type_(context.op().type),
        arguments_(context, RuleOf<Formula>()),
        first_chunks_(FirstChunks(arguments_.counts)),
        parameters_(ParametersOf(context, arguments_)),
        parameter_table_(context.place(), parameters_.size()),
        chunk_table_(context.place(), first_chunks_.size()) {
    using Coefficients = std::array<T, kMaxUpdateCoefficients>;
    coefficient_workspace_ =
        context.RequestWorkspace(static_cast<int64_t>(parameters_.size() * sizeof(Coefficients)));
    square_workspace_ = kNeedsNorms<Formula>
                            ? context.RequestWorkspace(first_chunks_.back() *
                                                       static_cast<int64_t>(sizeof(CudaSquares)))
                            : -1;
    if (!context.Input("Grad").is_selected_rows()) return;
    only_touched_ = kMayLeaveRows && UpdatesOnlyTouchedRows(context, SparseRuleOf<Formula>());
    sparse_.emplace(context, arguments_, /*has_slots=*/!only_touched_);
  }

  // A sparse gradient has the rows of the run; the rows of parameters are fixed.
  bool AcceptsFewerRows() const override { return sparse_.has_value(); }

  void Run(const KernelContext& run) override {
    const cudaStream_t stream = StreamOf(run);
    CudaUpdate<T> update = Collect(run, stream);
    if (arguments_.has_part) CopyOtherElements(run);
    if (only_touched_) {
      UpdateTouchedRows(run, update, stream);
    } else if (sparse_) {
      if constexpr (kMayUpdateAllRows) {
        update.sparse = sparse_->BySlot(run);
        UpdateAll</*kIsSparse=*/true>(update, stream);
      }
    } else {
      UpdateAll</*kIsSparse=*/false>(update, stream);
    }
    CheckLaunch(type_.c_str());
  }

 private:
  // The formula's treatment of rows that a sparse gradient lacks: leave the rows alone, or update
  // them.
  static constexpr bool kMayLeaveRows =
      SparseRuleOf<Formula>() != SparseRule::kAllRows && !kNeedsNorms<Formula>;
  static constexpr bool kMayUpdateAllRows =
      SparseRuleOf<Formula>() != SparseRule::kTouchedRows || !kMayLeaveRows;

  template <bool kIsSparse>
  static void UpdateAll(const CudaUpdate<T>& update, cudaStream_t stream) {
    const int blocks = CudaBlocks(update.chunks.count);
    if constexpr (kNeedsNorms<Formula>) {
      if constexpr (Step::kStates > 0) SetAll(update, /*is_last=*/false, stream);
      if (blocks > 0) {
        MakeSteps<Step, kHasHalves, kIsSparse><<<blocks, kCudaThreads, 0, stream>>>(update);
      }
      const int blocks_of_parameters = CudaBlocks(update.chunks.array_count);
      SetCoefficientsByNorms<Formula><<<blocks_of_parameters, kCudaThreads, 0, stream>>>(update);
    } else {
      SetAll(update, /*is_last=*/true, stream);
    }
    constexpr UpdatePass kPass = kMovesStates<Formula> ? UpdatePass::kWhole : UpdatePass::kApply;
    if (blocks > 0) {
      UpdateElements<Formula, kPass, kHasHalves, kIsSparse>
          <<<blocks, kCudaThreads, 0, stream>>>(update);
    }
  }

  void UpdateTouchedRows(const KernelContext& run, const CudaUpdate<T>& update,
                         cudaStream_t stream) const {
    if constexpr (kMayLeaveRows) {
      // The outputs need the other rows, too.
      CopyPairs(run, arguments_.params);
      CopyPairs(run, arguments_.half_params);
      for (const std::vector<UpdateArguments::Pair>& state : arguments_.states) {
        CopyPairs(run, state);
      }
      SetAll(update, /*is_last=*/true, stream);
      const CudaRowGradients<T> rows = sparse_->Rows(run);
      const int64_t packs = (rows.width + kPackSize<T> - 1) / kPackSize<T> * rows.sorted.count;
      if (packs > 0) {
        UpdateRows<Formula, kHasHalves>
            <<<CudaBlocksOfThreads(packs), kCudaThreads, 0, stream>>>(update, rows);
      }
    }
  }

  // Copies arrays of which the op updates only a part.
  void CopyOtherElements(const KernelContext& run) const {
    CopyPairs(run, arguments_.half_params);
    if (!arguments_.has_sharded_params) CopyPairs(run, arguments_.params);
    for (size_t k = 0; k < arguments_.states.size(); ++k) {
      if (!arguments_.sharded_states[k]) CopyPairs(run, arguments_.states[k]);
    }
  }

  // CopyToOutputs on the device.
  static void CopyPairs(const KernelContext& run, const std::vector<UpdateArguments::Pair>& pairs) {
    for (const UpdateArguments::Pair& pair : pairs) {
      const Tensor& from = run.input(pair.in);
      CopyOnDevice(run, from.raw_data(), run.output(pair.out).raw_data(), from.byte_count());
    }
  }

  // Returns the part of the parameters that no run changes.
  static std::vector<CudaParameter<T>> ParametersOf(const OpContext& context,
                                                    const UpdateArguments& arguments) {
    const std::vector<GradientForm<T>> forms = GradientFormsOf<T>(context);
    std::vector<CudaParameter<T>> parameters(arguments.parameter_count());
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].count = arguments.counts[i];
      parameters[i].form = forms[i];
      for (size_t k = 0; k < arguments.numbers.size(); ++k) {
        const std::vector<double>& values = arguments.numbers[k].values;
        parameters[i].numbers[k] = values.size() == 1 ? values[0] : values[i];
      }
    }
    return parameters;
  }

  static void SetAll(const CudaUpdate<T>& update, bool is_last, cudaStream_t stream) {
    const int blocks = CudaBlocksOfThreads(update.chunks.array_count);
    SetCoefficients<Formula><<<blocks, kCudaThreads, 0, stream>>>(update, is_last);
  }

  void Locate(const KernelContext& run, size_t i, CudaParameter<T>* parameter) const {
    const UpdateArguments::Pair param = arguments_.params[i];
    const int64_t in_param = arguments_.BeginInParam(i);
    parameter->param = run.input(param.in).template data<T>() + in_param;
    parameter->param_out = run.output(param.out).template data<T>() + in_param;
    const Tensor& grad = run.input(arguments_.grads[i]);
    // A sparse one isn't read from here.
    if (!sparse_ && arguments_.has_half_grads) {
      parameter->half_grad = static_cast<const uint16_t*>(grad.raw_data()) + arguments_.Begin(i);
    } else if (!sparse_) {
      parameter->grad = grad.template data<T>() + arguments_.Begin(i);
    }
    bool is_aligned = IsPackAligned(parameter->param) && IsPackAligned(parameter->grad) &&
                      IsPackAligned(parameter->param_out) &&
                      IsHalfPackAligned(parameter->half_grad);
    if constexpr (kHasHalves) {
      const UpdateArguments::Pair half = arguments_.half_params[i];
      const int64_t begin = arguments_.Begin(i);
      parameter->half_param = static_cast<const uint16_t*>(run.input(half.in).raw_data()) + begin;
      parameter->half_param_out = static_cast<uint16_t*>(run.output(half.out).raw_data()) + begin;
      is_aligned = is_aligned && IsHalfPackAligned(parameter->half_param_out);
    }
    for (size_t k = 0; k < arguments_.states.size(); ++k) {
      const UpdateArguments::Pair state = arguments_.states[k][i];
      const int64_t in_state = arguments_.BeginInState(k, i);
      parameter->states[k] = run.input(state.in).template data<T>() + in_state;
      parameter->states_out[k] = run.output(state.out).template data<T>() + in_state;
      is_aligned = is_aligned && IsPackAligned(parameter->states[k]) &&
                   IsPackAligned(parameter->states_out[k]);
    }
    parameter->is_aligned = is_aligned;
    parameter->learning_rate = CudaScalarOf(run.input(arguments_.rate(i)));
    for (size_t k = 0; k < arguments_.scalars.size(); ++k) {
      const UpdateArguments::Pair scalar = arguments_.scalars[k].pairs[i];
      parameter->scalars[k] = CudaScalarOf(run.input(scalar.in));
      if (scalar.out >= 0) parameter->scalars_out[k] = CudaScalarOf(run.output(scalar.out));
    }
  }

  CudaUpdate<T> Collect(const KernelContext& run, cudaStream_t stream) {
    for (size_t i = 0; i < parameters_.size(); ++i) Locate(run, i, &parameters_[i]);
    CudaUpdate<T> update;
    update.parameters = parameter_table_.Store(parameters_, stream);
    update.chunks = {.first = chunk_table_.Store(first_chunks_, stream),
                     .array_count = static_cast<int64_t>(parameters_.size()),
                     .count = first_chunks_.back()};
    if (arguments_.skip >= 0) update.skip = run.input(arguments_.skip).template data<bool>();
    if (arguments_.scale >= 0) update.scale = CudaScalarOf(run.input(arguments_.scale));
    for (size_t k = 0; k < arguments_.numbers.size(); ++k) {
      const int input = arguments_.numbers[k].input;
      if (input >= 0) update.overrides[k] = CudaScalarOf(run.input(input));
    }
    for (size_t k = 0; k < arguments_.scalars.size(); ++k) {
      update.factors[k] = arguments_.scalars[k].factor;
    }
    update.state_count = arguments_.states.size();
    update.is_float16 = arguments_.half == DType::kFloat16;
    update.coefficients =
        static_cast<std::array<T, kMaxUpdateCoefficients>*>(run.workspace(coefficient_workspace_));
    if (square_workspace_ >= 0) {
      update.squares = static_cast<CudaSquares*>(run.workspace(square_workspace_));
    }
    return update;
  }

  std::string type_;
  UpdateArguments arguments_;
  std::vector<int64_t> first_chunks_;
  std::vector<CudaParameter<T>> parameters_;
  CudaTable<CudaParameter<T>> parameter_table_;
  CudaTable<int64_t> chunk_table_;
  int coefficient_workspace_ = -1;
  int square_workspace_ = -1;  // CudaSquares of each chunk
  std::optional<CudaSparseGradient<T>> sparse_;
  bool only_touched_ = false;  // by a sparse gradient
};

template <class Formula, class Step, typename T>
std::unique_ptr<Kernel> MakeCudaUpdateKernel(PrepareContext& context) {
  if constexpr (std::is_same_v<T, float>) {
    if (context.Attr<bool>("multi_precision")) {
      return std::make_unique<CudaUpdateKernel<Formula, Step, true, T>>(context);
    }
  }
  return std::make_unique<CudaUpdateKernel<Formula, Step, false, T>>(context);
}

// Adds the kernels of an op, whose definition is already registered, for dense and for sparse
// gradients. The kernel of floats also takes master weights.
inline void AddCudaUpdateKernels(OpRegistry& registry, std::string_view type,
                                 const KernelFactory& of_float, const KernelFactory& of_double) {
  const auto prepare = [=]<typename T>(PrepareContext& context) {
    return std::is_same_v<T, double> ? of_double(context) : of_float(context);
  };
  AddCudaKernels<float, double, Float16, BFloat16>(registry, type, prepare);
  registry.AddSelectedRowsKernels<float, double, Float16, BFloat16>(type, prepare,
                                                                    PlaceKind::kCuda);
}

// Registers the kernels of one formula. Step makes the formula's steps if the formula needs their
// norms.
template <class Formula, class Step = GradientStep>
void RegisterCudaUpdate(OpRegistry& registry, std::string_view type) {
  AddCudaUpdateKernels(registry, type, MakeCudaUpdateKernel<Formula, Step, float>,
                       MakeCudaUpdateKernel<Formula, Step, double>);
}

}  // namespace
}  // namespace skiff
