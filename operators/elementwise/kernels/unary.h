// Common code of unary element-wise ops: the definitions of an op and its gradient op, and kernels.
//
// The file of an op (unary/*-inl.h) has the formula and the facts, from which everything else
// follows. A plan makes each formula once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/formula.h"
#include "operators/elementwise/kernels/accepted_layouts.h"
#include "operators/elementwise/kernels/unary_facts.h"

namespace skiff {

// The float32 loops of an op for one instruction set.
struct UnaryFloatLoops {
  std::function<void(const float* x, float* out, int64_t count)> forward;
  std::function<void(const float* saved, const float* dout, float* dx, int64_t count)> grad;
};

// Returns the definition of X -> Out of the same shape and dtype, without a gradient rule.
OpDef UnaryOpDef(const UnaryFacts& facts);
// Returns the numbers of an op's formula: the values of the attributes.
UnaryNumbers NumbersOf(const OpContext& context, const UnaryFacts& facts);
// Adds the op and <type>_grad.
void AddUnaryOps(OpRegistry& registry, const UnaryFacts& facts);

// Adds a kernel of T that accepts any layout, if it is the same for all `slots`.
template <typename T>
void AddElementwiseKernel(OpRegistry& registry, std::string_view type,
                          std::vector<StaticText> slots, KernelFactory prepare) {
  registry.AddKernel(type, KernelDef{.dtype = kDTypeOf<T>,
                                     .prepare = std::move(prepare),
                                     .accepts = [slots = std::move(slots)](const OpContext& c) {
                                       return SlotsArePlain(c, slots) ||
                                              SameShapeAndLayout(c, slots);
                                     }});
}

// The number of elements below which another thread costs more than it saves, for loops at memory
// speed and for loops that call a mathematical function for each element.
inline constexpr int64_t kVectorGrain = 16384;
inline constexpr int64_t kScalarGrain = 2048;

// Adds a kernel that calls loop(x, out, count). A plan calls make_loop(context) once, which returns
// the loop.
template <typename T, typename LoopMaker>
void AddUnaryKernel(OpRegistry& registry, std::string_view type, LoopMaker make_loop,
                    int64_t grain) {
  AddElementwiseKernel<T>(registry, type, {"X", "Out"}, [=](PrepareContext& context) {
    const auto loop = make_loop(context);
    const In<T> x(context, "X");
    const Out<T> out(context, "Out");
    return MakeRowsKernel([=](const KernelContext& run) {
      const T* from = x(run);
      T* to = out(run);
      ParallelFor(StorageElements(x.tensor(run)), grain,
                  [&](int64_t begin, int64_t end) { loop(from + begin, to + begin, end - begin); });
    });
  });
}

// Adds a kernel of the gradient op, which calls loop(saved, dout, dx, count).
template <typename T, typename LoopMaker>
void AddUnaryGradKernel(OpRegistry& registry, std::string_view type, StaticText saved,
                        LoopMaker make_loop, int64_t grain) {
  const StaticText saved_slot = saved.empty() ? StaticText("Out@GRAD") : saved;
  AddElementwiseKernel<T>(registry, type, {saved_slot, "Out@GRAD", "X@GRAD"},
                          [=](PrepareContext& context) {
                            const auto loop = make_loop(context);
                            const In<T> saved_values(context, saved_slot);
                            const In<T> dout(context, "Out@GRAD");
                            const Out<T> dx(context, "X@GRAD");
                            return MakeRowsKernel([=](const KernelContext& run) {
                              const T* values = saved_values(run);
                              const T* from = dout(run);
                              T* to = dx(run);
                              const int64_t count = StorageElements(dout.tensor(run));
                              ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
                                loop(values + begin, from + begin, to + begin, end - begin);
                              });
                            });
                          });
}

// Add the kernel of T of a formula's op, and of its gradient op, with loops over numbers.
template <class Formula, typename T>
void AddScalarUnaryKernel(OpRegistry& registry) {
  AddUnaryKernel<T>(
      registry, Formula::kFacts.type,
      [](const OpContext& context) {
        return [f = MakeFormula<Formula>(NumbersOf(context, Formula::kFacts))](const T* x, T* out,
                                                                               int64_t count) {
          for (int64_t i = 0; i < count; ++i) out[i] = f.Value(x[i]);
        };
      },
      kScalarGrain);
}
template <class Formula, typename T>
void AddScalarUnaryGradKernel(OpRegistry& registry) {
  AddUnaryGradKernel<T>(
      registry, StrCat(Formula::kFacts.type, "_grad"), Formula::kFacts.grad_reads,
      [](const OpContext& context) {
        return [f = MakeFormula<Formula>(NumbersOf(context, Formula::kFacts))](
                   const T* saved, const T* dout, T* dx, int64_t count) {
          for (int64_t i = 0; i < count; ++i) dx[i] = f.Gradient(saved[i], dout[i]);
        };
      },
      kScalarGrain);
}

// Registers the op of a formula and its gradient op. A kernel that is prepared calls `make_loops`,
// which returns the float32 loops for the instruction set in use if the formula has vectors.
template <class Formula>
void RegisterUnary(OpRegistry& registry, UnaryFloatLoops (*make_loops)(const OpContext& context)) {
  constexpr const UnaryFacts& kFacts = Formula::kFacts;
  AddUnaryOps(registry, kFacts);
  if constexpr (kFacts.has_vectors) {
    AddUnaryKernel<float>(
        registry, kFacts.type,
        [make_loops](const OpContext& context) { return make_loops(context).forward; },
        kVectorGrain);
    AddUnaryGradKernel<float>(
        registry, StrCat(kFacts.type, "_grad"), kFacts.grad_reads,
        [make_loops](const OpContext& context) { return make_loops(context).grad; }, kVectorGrain);
  } else {
    AddScalarUnaryKernel<Formula, float>(registry);
    AddScalarUnaryGradKernel<Formula, float>(registry);
  }
  AddScalarUnaryKernel<Formula, double>(registry);
  AddScalarUnaryGradKernel<Formula, double>(registry);
  if constexpr (kFacts.takes_integers) {
    AddScalarUnaryKernel<Formula, int32_t>(registry);
    AddScalarUnaryKernel<Formula, int64_t>(registry);
  }
}

}  // namespace skiff
