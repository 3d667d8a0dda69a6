// Common code of unary element-wise ops: the definitions of an op and its gradient op, and kernels.
//
// The file of an op provides the facts, a functor for scalars of any type and, for a fast float32,
// loops on Highway's vectors. relu.cc is such an op; cos.cc has no loops of its own. A functor that
// depends on attributes has a constructor from an OpContext, as in leaky_relu.cc. A plan makes each
// functor once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/elementwise/kernels/accepted_layouts.h"

namespace skiff {

// Sets out[i] = f(x[i]). `out` may be `x`.
template <typename Functor, typename T>
using UnaryFunctorLoop = void (*)(const Functor& f, const T* x, T* out, int64_t count);
// Sets dx[i] = f(saved[i], dout[i]), where `saved` is X or Out. `dx` may be `dout`.
template <typename Functor, typename T>
using UnaryGradFunctorLoop = void (*)(const Functor& f, const T* saved, const T* dout, T* dx,
                                      int64_t count);

// The float32 loops of an op for one instruction set.
struct UnaryFloatLoops {
  std::function<void(const float* x, float* out, int64_t count)> forward;
  std::function<void(const float* saved, const float* dout, float* dx, int64_t count)> grad;
};

struct UnaryFacts {
  StaticText type;
  StaticText doc;
  StaticText grad_doc;
  // The slot that the gradient op reads besides Out@GRAD: "X", "Out" or "" for none.
  StaticText grad_reads;
  bool zero_preserving = false;
  bool grad_zero_preserving = false;
  // A slot that Fluid's gradient op has as well and whose data this one doesn't read: "Out" or "".
  StaticText grad_ignores = {};
  // The attributes of the op and of its gradient op.
  std::vector<AttrDef> attrs = {};
};

// Returns the definition of X -> Out of the same shape and dtype, without a gradient rule.
OpDef UnaryOpDef(const UnaryFacts& facts);
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

template <typename Functor, typename T>
void ScalarUnaryLoop(const Functor& f, const T* x, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = f(x[i]);
}

template <typename Functor, typename T>
void ScalarUnaryGradLoop(const Functor& f, const T* saved, const T* dout, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = f(saved[i], dout[i]);
}

template <typename Functor>
Functor MakeFunctor([[maybe_unused]] const OpContext& context) {
  if constexpr (std::is_constructible_v<Functor, const OpContext&>) {
    return Functor(context);
  } else {
    return Functor();
  }
}

// Adds a kernel that calls loop(x, out, count). A plan calls make_loop(context) once, which returns
// the loop.
template <typename T, typename LoopMaker>
void AddUnaryKernel(OpRegistry& registry, std::string_view type, LoopMaker make_loop,
                    int64_t grain) {
  AddElementwiseKernel<T>(registry, type, {"X", "Out"}, [=](PrepareContext& context) {
    const auto loop = make_loop(context);
    const int x = context.InputIndex("X");
    const int out = context.OutputIndex("Out");
    return MakeRowsKernel([=](const KernelContext& run) {
      const T* from = run.input(x).data<T>();
      T* to = run.output(out).data<T>();
      ParallelFor(StorageElements(run.input(x)), grain,
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
                            const int saved_index = context.InputIndex(saved_slot);
                            const int dout = context.InputIndex("Out@GRAD");
                            const int dx = context.OutputIndex("X@GRAD");
                            return MakeRowsKernel([=](const KernelContext& run) {
                              const T* saved_data = run.input(saved_index).data<T>();
                              const T* from = run.input(dout).data<T>();
                              T* to = run.output(dx).data<T>();
                              const int64_t count = StorageElements(run.input(dout));
                              ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
                                loop(saved_data + begin, from + begin, to + begin, end - begin);
                              });
                            });
                          });
}

// Return the `make_loop` for a loop over a functor.
template <typename Functor, typename T>
auto UnaryLoopMaker(UnaryFunctorLoop<Functor, T> loop) {
  return [loop](const OpContext& context) {
    return [loop, f = MakeFunctor<Functor>(context)](const T* x, T* out, int64_t count) {
      loop(f, x, out, count);
    };
  };
}

template <typename Functor, typename T>
auto UnaryGradLoopMaker(UnaryGradFunctorLoop<Functor, T> loop) {
  return [loop](const OpContext& context) {
    return [loop, f = MakeFunctor<Functor>(context)](const T* saved, const T* dout, T* dx,
                                                     int64_t count) {
      loop(f, saved, dout, dx, count);
    };
  };
}

// Add kernels for the types Ts from functors for scalars.
template <typename Functor, typename... Ts>
void AddScalarUnaryKernels(OpRegistry& registry, const UnaryFacts& facts) {
  (AddUnaryKernel<Ts>(registry, facts.type,
                      UnaryLoopMaker<Functor, Ts>(ScalarUnaryLoop<Functor, Ts>), kScalarGrain),
   ...);
}

template <typename Functor, typename... Ts>
void AddScalarUnaryGradKernels(OpRegistry& registry, const UnaryFacts& facts) {
  (AddUnaryGradKernel<Ts>(registry, StrCat(facts.type, "_grad"), facts.grad_reads,
                          UnaryGradLoopMaker<Functor, Ts>(ScalarUnaryGradLoop<Functor, Ts>),
                          kScalarGrain),
   ...);
}

// Registers an op without loops of its own: float32, float64 and `Integers` from functors for
// scalars.
template <typename Functor, typename GradFunctor, typename... Integers>
void RegisterUnary(OpRegistry& registry, const UnaryFacts& facts) {
  AddUnaryOps(registry, facts);
  AddScalarUnaryKernels<Functor, float, double, Integers...>(registry, facts);
  AddScalarUnaryGradKernels<GradFunctor, float, double>(registry, facts);
}

// Registers an op whose float32 kernels run in the loops that make_loops(context) returns for the
// instruction set in use.
template <typename Functor, typename GradFunctor, typename... Integers>
void RegisterUnary(OpRegistry& registry, const UnaryFacts& facts,
                   UnaryFloatLoops (*make_loops)(const OpContext& context)) {
  AddUnaryOps(registry, facts);
  AddUnaryKernel<float>(
      registry, facts.type,
      [make_loops](const OpContext& context) { return make_loops(context).forward; }, kVectorGrain);
  AddUnaryGradKernel<float>(
      registry, StrCat(facts.type, "_grad"), facts.grad_reads,
      [make_loops](const OpContext& context) { return make_loops(context).grad; }, kVectorGrain);
  AddScalarUnaryKernels<Functor, double, Integers...>(registry, facts);
  AddScalarUnaryGradKernels<GradFunctor, double>(registry, facts);
}

}  // namespace skiff
