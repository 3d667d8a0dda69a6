// The CUDA kernel of the ops that keep averages of parameters: AverageKernel's counterpart. An op's
// .cu says how a step advances the scalars of a parameter, and a chunk of its arrays.
//
// A run is two launches for any number of parameters. The first launch advances the scalars and
// writes the resulting numbers of the step to a workspace; the second launch advances the arrays.
// The device reads scalars, SkipUpdate and other inputs, so the CPU waits for nothing. Bind gathers
// the addresses of the tensors; the next run copies them to a table on the device.
//
// An element is rounded as on the CPU with AVX2 or better.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/host_slots.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/host_state_kernel.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {

inline constexpr int kMaxAverageArrays = 3;
inline constexpr int kMaxAverageScalars = 3;

// One parameter, in the table. Arrays and scalars are in the order of the op's definition.
template <typename T, typename Scalar>
struct CudaAveraged {
  friend bool operator==(const CudaAveraged&, const CudaAveraged&) = default;

  const T* param = nullptr;
  const T* arrays[kMaxAverageArrays] = {};
  T* arrays_out[kMaxAverageArrays] = {};
  const Scalar* scalars[kMaxAverageScalars] = {};
  Scalar* scalars_out[kMaxAverageScalars] = {};
  bool is_aligned = false;  // parameter and arrays: see cuda_chunks.cuh
  int64_t count = 0;
};

// All parameters of a run, as kernels get them.
template <class Rule, typename T>
struct CudaAverages {
  using Parameter = CudaAveraged<T, typename Rule::Scalar>;

  const Parameter* parameters = nullptr;
  CudaChunks chunks;
  const bool* skip = nullptr;            // nullptr: never
  typename Rule::Step* steps = nullptr;  // workspace: of each parameter
};

template <class Rule, typename T>
__device__ bool Skips(const CudaAverages<Rule, T>& averages) {
  return averages.skip != nullptr && *averages.skip;
}

template <class Rule, typename T>
__global__ void AdvanceScalars(CudaAverages<Rule, T> averages, Rule rule) {
  const bool skips = Skips(averages);
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < averages.chunks.array_count; i += stride) {
    const auto& parameter = averages.parameters[i];
    typename Rule::Scalar scalars[Rule::kScalars];
    for (int k = 0; k < Rule::kScalars; ++k) scalars[k] = *parameter.scalars[k];
    if (!skips) averages.steps[i] = rule.Advance(scalars);
    for (int k = 0; k < Rule::kScalars; ++k) *parameter.scalars_out[k] = scalars[k];
  }
}

template <class Rule, typename T>
__global__ void __launch_bounds__(kCudaThreads) AccumulateArrays(CudaAverages<Rule, T> averages) {
  const bool skips = Skips(averages);
  for (int64_t i = blockIdx.x; i < averages.chunks.count; i += gridDim.x) {
    const CudaChunk chunk = ChunkOf(
        averages.chunks, i, [&](int64_t array) { return averages.parameters[array].count; });
    const auto& parameter = averages.parameters[chunk.array];
    if (!skips) {
      Rule::Accumulate(averages.steps[chunk.array], parameter, chunk);
      continue;
    }
    for (int k = 0; k < Rule::kArrays; ++k) {
      KeepChunk(parameter.arrays[k], chunk, parameter.arrays_out[k]);
    }
  }
}

// Rule, which is copied to the device:
//   Scalar, Step                            types; Step: what scalars say about the arrays' step
//   kArrays, kScalars                       how many of the definition's states are which
//   Rule(context)                           from attributes
//   Bind(run)                               finds inputs of its own
//   Advance(scalars) -> Step                on the device: moves those of a parameter on
//   Accumulate(step, parameter, chunk)      on the device, static: by all threads of a block
template <class Rule, typename T>
class CudaAverageKernel final : public Kernel {
 public:
  explicit CudaAverageKernel(PrepareContext& context)
      : type_(context.op().type),
        rule_(context),
        params_(InputIndices(context, context.def().update->lists.front())),
        skip_(context, "SkipUpdate"),
        parameters_(params_.size()),
        parameter_table_(context.place(), params_.size()),
        chunk_table_(context.place(), params_.size() + 1),
        step_workspace_(context.RequestWorkspace(
            static_cast<int64_t>(params_.size() * sizeof(typename Rule::Step)))) {
    static_assert(Rule::kArrays <= kMaxAverageArrays && Rule::kScalars <= kMaxAverageScalars);
    for (const auto& [input, output] : context.def().in_place) {
      states_.push_back(PairsOf(context, input, output));
    }
    SKIFF_ENFORCE(states_.size() == Rule::kArrays + Rule::kScalars, kFailedPrecondition, type_,
                  " has ", states_.size(), " states, expected ", Rule::kArrays, " arrays and ",
                  Rule::kScalars, " scalars, as its kernel");
    std::vector<int64_t> counts;
    for (size_t i = 0; i < params_.size(); ++i) {
      const TensorMeta& param = context.inputs()[static_cast<size_t>(params_[i])];
      parameters_[i].count = param.shape.element_count();
      counts.push_back(parameters_[i].count);
    }
    first_chunks_ = FirstChunks(counts);
  }

  void Bind(const KernelContext& run) override {
    for (size_t i = 0; i < parameters_.size(); ++i) Locate(run, i, &parameters_[i]);
    skip_data_ = skip_(run);
    steps_ = static_cast<typename Rule::Step*>(run.workspace(step_workspace_));
    rule_.Bind(run);
  }

  void Run(const KernelContext& run) override {
    const cudaStream_t stream = StreamOf(run);
    const CudaAverages<Rule, T> averages = {
        .parameters = parameter_table_.Store(parameters_, stream),
        .chunks = {.first = chunk_table_.Store(first_chunks_, stream),
                   .array_count = static_cast<int64_t>(parameters_.size()),
                   .count = first_chunks_.back()},
        .skip = skip_data_,
        .steps = steps_};
    const int blocks_of_parameters = CudaBlocksOfThreads(averages.chunks.array_count);
    AdvanceScalars<<<blocks_of_parameters, kCudaThreads, 0, stream>>>(averages, rule_);
    const int blocks = CudaBlocks(averages.chunks.count);
    if (blocks > 0) AccumulateArrays<<<blocks, kCudaThreads, 0, stream>>>(averages);
    CheckLaunch(type_.c_str());
  }

 private:
  using Parameter = typename CudaAverages<Rule, T>::Parameter;
  using Scalar = typename Rule::Scalar;

  void Locate(const KernelContext& run, size_t i, Parameter* parameter) const {
    parameter->param = run.input(params_[i]).template data<T>();
    bool is_aligned = IsPackAligned(parameter->param);
    for (int k = 0; k < Rule::kArrays; ++k) {
      const UpdateArguments::Pair array = states_[k][i];
      parameter->arrays[k] = run.input(array.in).template data<T>();
      parameter->arrays_out[k] = run.output(array.out).template data<T>();
      is_aligned = is_aligned && IsPackAligned(parameter->arrays[k]) &&
                   IsPackAligned(parameter->arrays_out[k]);
    }
    parameter->is_aligned = is_aligned;
    for (int k = 0; k < Rule::kScalars; ++k) {
      const UpdateArguments::Pair scalar = states_[Rule::kArrays + k][i];
      parameter->scalars[k] = run.input(scalar.in).template data<Scalar>();
      parameter->scalars_out[k] = run.output(scalar.out).template data<Scalar>();
    }
  }

  std::string type_;
  Rule rule_;
  std::vector<int> params_;
  std::vector<std::vector<UpdateArguments::Pair>> states_;  // by state, by parameter
  In<bool> skip_;
  std::vector<int64_t> first_chunks_;
  std::vector<Parameter> parameters_;
  CudaTable<Parameter> parameter_table_;
  CudaTable<int64_t> chunk_table_;
  int step_workspace_;
  // Pointers into the tensors that were bound last.
  const bool* skip_data_ = nullptr;
  typename Rule::Step* steps_ = nullptr;
};

// With kOnHostAttr, the kernel is that of the CPU, which runs on copies of the parameters.
template <class Rule, typename T>
void AddCudaAverageKernel(OpRegistry& registry, std::string_view type) {
  registry.AddCudaKernel(type, kDTypeOf<T>,
                         [&registry](PrepareContext& context) -> std::unique_ptr<Kernel> {
                           if (context.Attr<bool>(kOnHostAttr)) {
                             return PrepareHostStateKernel(context, registry);
                           }
                           return std::make_unique<CudaAverageKernel<Rule, T>>(context);
                         });
}

}  // namespace skiff
