// The contractions of einsum and einsum_grad, and the kernel that computes them, on any place.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/math/kernels/contraction.h"

namespace skiff {

// An argument of an op.
struct EinsumArgument {
  StaticText slot;
  size_t index = 0;
};

struct EinsumContraction {
  std::vector<EinsumArgument> operands;
  EinsumArgument result;
  ContractionPlan plan;
};

// Returns a contraction for each output of einsum or einsum_grad that the op has and that has
// elements: Out, or the gradients of operands. Every dim must be known.
std::vector<EinsumContraction> EinsumContractions(const OpContext& context);

// Returns whether kernels of half take the op: it rounds once, and all arguments are plain.
bool AcceptsEinsumInHalf(const OpContext& context);

// The tensors of one run of a contraction, by number in the plan.
template <typename T>
class ContractionTensors {
 public:
  explicit ContractionTensors(const ContractionPlan& plan, size_t operands)
      : operands_(operands), others_(1 + plan.temporaries.size()) {}

  void SetOperand(size_t i, const T* data) { operands_[i] = data; }
  void SetResult(T* data) { others_[0] = data; }
  void SetTemporary(size_t i, T* data) { others_[1 + i] = data; }

  // Returns nullptr for -1.
  const T* operator[](int tensor) const {
    if (tensor < 0) return nullptr;
    const auto i = static_cast<size_t>(tensor);
    return i < operands_.size() ? operands_[i] : others_[i - operands_.size()];
  }
  T* Out(int tensor) const { return others_[static_cast<size_t>(tensor) - operands_.size()]; }

 private:
  std::vector<const T*> operands_;
  std::vector<T*> others_;
};

template <typename T>
using PreparedStep = std::function<void(const KernelContext&, const ContractionTensors<T>&)>;

// One contraction with prepared steps. `Device` has static functions
//   PreparedStep<T> Prepare<T>(const Step&, PrepareContext&)   for each kind of step
//   void Zero(const KernelContext&, void* to, int64_t bytes)
//   void Copy(const KernelContext&, const void* from, void* to, int64_t bytes), none if from == to
template <typename T, class Device>
class PreparedContraction {
 public:
  PreparedContraction(const EinsumContraction& contraction, PrepareContext& context)
      : result_(context, contraction.result.slot, contraction.result.index),
        tensors_(contraction.plan, contraction.operands.size()) {
    const ContractionPlan& plan = contraction.plan;
    for (const EinsumArgument& operand : contraction.operands) {
      operands_.emplace_back(context, operand.slot, operand.index);
    }
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    for (const int64_t count : plan.temporaries) {
      temporaries_.push_back(context.RequestWorkspace(count * kBytes));
    }
    for (const ContractionStep& step : plan.steps) {
      steps_.push_back(std::visit(
          [&](const auto& each) { return Device::template Prepare<T>(each, context); }, step));
    }
    if (plan.zeroes_result) zeroed_bytes_ = plan.result_count * kBytes;
  }

  void Run(const KernelContext& run) {
    for (size_t i = 0; i < operands_.size(); ++i) tensors_.SetOperand(i, operands_[i](run));
    for (size_t i = 0; i < temporaries_.size(); ++i) {
      tensors_.SetTemporary(i, static_cast<T*>(run.workspace(temporaries_[i])));
    }
    tensors_.SetResult(result_(run));
    if (zeroed_bytes_ > 0) Device::Zero(run, result_(run), zeroed_bytes_);
    for (const PreparedStep<T>& step : steps_) step(run, tensors_);
  }

 private:
  std::vector<In<T>> operands_;
  Out<T> result_;
  std::vector<int> temporaries_;  // workspaces
  std::vector<PreparedStep<T>> steps_;
  int64_t zeroed_bytes_ = 0;
  ContractionTensors<T> tensors_;
};

// The kernel of einsum and einsum_grad. It also copies the operands of einsum to InnerCache, where
// the plan gives InnerCache storage of its own.
template <typename T, class Device>
class EinsumKernel final : public Kernel {
 public:
  explicit EinsumKernel(PrepareContext& context) {
    for (const EinsumContraction& contraction : EinsumContractions(context)) {
      contractions_.emplace_back(contraction, context);
    }
    if (context.def().FindOutput("InnerCache") == nullptr) return;
    for (size_t i = 0; i < context.OutputCount("InnerCache"); ++i) {
      const Out<T> cache(context, "InnerCache", i);
      if (cache.is_there()) caches_.emplace_back(In<T>(context, "Operands", i), cache);
    }
  }

  void Run(const KernelContext& run) override {
    for (auto& contraction : contractions_) contraction.Run(run);
    for (const auto& [operand, cache] : caches_) {
      Device::Copy(run, operand(run), cache(run),
                   operand.count(run) * static_cast<int64_t>(sizeof(T)));
    }
  }

 private:
  std::vector<PreparedContraction<T, Device>> contractions_;
  std::vector<std::pair<In<T>, Out<T>>> caches_;
};

// Adds the kernels of einsum and einsum_grad for T on the place of `Device`, under this name.
// `needs`: the least instruction set with which they run.
template <typename T, class Device>
void AddEinsumKernels(OpRegistry& registry, PlaceKind place, StaticText name,
                      InstructionSet needs = InstructionSet::kBaseline) {
  for (const StaticText type : {StaticText("einsum"), StaticText("einsum_grad")}) {
    KernelDef kernel;
    kernel.name = name;
    kernel.place = place;
    kernel.dtype = kDTypeOf<T>;
    kernel.prepare = [](PrepareContext& context) {
      return std::make_unique<EinsumKernel<T, Device>>(context);
    };
    if (sizeof(T) == sizeof(BFloat16)) kernel.accepts = AcceptsEinsumInHalf;
    kernel.needs = needs;
    kernel.is_reference = place == PlaceKind::kCpu && sizeof(T) > sizeof(BFloat16);
    registry.AddKernel(type, std::move(kernel));
  }
}

}  // namespace skiff
