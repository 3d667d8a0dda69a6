// What binary element-wise ops share: definitions of the op and of its gradient, kernels that
// broadcast (operators/common/broadcast.h), gradients that sum over what was repeated.
//
// An op's file gives the facts, functors for scalars of any type and, where float32 is to be fast,
// loops on Highway's vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/broadcast.h"
#include "operators/elementwise/unary_shared.h"

namespace skiff {

// out[i] = f(x[i * x_step], y[i * y_step]); steps are 0 or 1, at most one of them 0. out may be an
// operand.
template <typename T, typename Out = T>
using BinaryKernelLoop = void (*)(const T* x, int64_t x_step, const T* y, int64_t y_step, Out* out,
                                  int64_t count);

// grad[i] = f(x[i * x_step], y[i * y_step], out[i], dout[i]). An array that the gradient op doesn't
// read is replaced by dout. grad may be dout.
template <typename T>
using BinaryGradKernelLoop = void (*)(const T* x, int64_t x_step, const T* y, int64_t y_step,
                                      const T* out, const T* dout, T* grad, int64_t count);

struct BinaryFacts {
  std::string type;
  std::string doc;
  bool zero_preserving = false;
  // Of the gradient op; empty: there is none, and no_gradient_reason says why.
  std::string grad_doc;
  std::string no_gradient_reason;
  // Whether the gradient reads the data of X, Y and Out. The shapes of X and Y it always reads; Out
  // is no input of it unless read.
  bool grad_reads_x = false;
  bool grad_reads_y = false;
  bool grad_reads_out = false;
  bool grad_zero_preserving = false;
  bool checks_y = false;  // refuses some data of Y: SlotDef::checks_data
  // X may be selected rows where Y is one number: the op maps zeros to zeros then, and is linear.
  // The kernel for them is missing.
  bool takes_selected_rows = false;
};

// The definition of X, Y -> Out with `axis`; the gradient rule is missing. `out_dtype` is that of
// Out; X's if it is null.
OpDef BinaryOpDef(const std::string& type, const std::string& doc,
                  const DType* out_dtype = nullptr);
// Adds the ops <type> and, where there is a gradient, <type>_grad.
void AddBinaryOps(OpRegistry& registry, const BinaryFacts& facts);

// The loops over the result of X and Y: one flat loop over the storage where they lie alike.
Broadcast BroadcastOf(const OpContext& context);

template <typename Functor, typename T, typename Out = T>
void ScalarBinaryLoop(const T* x, int64_t x_step, const T* y, int64_t y_step, Out* out,
                      int64_t count) {
  const Functor f;
  if (x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = f(x[i], y[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i] = f(x[i * x_step], y[i * y_step]);
}

template <typename Functor, typename T>
void ScalarBinaryGradLoop(const T* x, int64_t x_step, const T* y, int64_t y_step, const T* out,
                          const T* dout, T* grad, int64_t count) {
  const Functor f;
  for (int64_t i = 0; i < count; ++i) {
    grad[i] = f(x[i * x_step], y[i * y_step], out[i], dout[i]);
  }
}

template <typename T, typename Out>
void RunBinary(const Broadcast& broadcast, BinaryKernelLoop<T, Out> loop, int64_t grain, const T* x,
               const T* y, Out* out) {
  const BroadcastDim run = broadcast.run();
  ParallelFor(broadcast.count(), grain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRun(begin, end, [&](const BroadcastOffsets& at, int64_t length) {
      loop(x + at.x, run.x_stride, y + at.y, run.y_stride, out + at.out, length);
    });
  });
}

// check(y, y_count) may throw; it is called where the result has elements.
template <typename T>
using DivisorCheck = void (*)(const T* y, int64_t count);

template <typename T, typename Out>
std::unique_ptr<Kernel> PrepareBinary(PrepareContext& context, BinaryKernelLoop<T, Out> loop,
                                      int64_t grain, DivisorCheck<T> check) {
  const Broadcast broadcast = BroadcastOf(context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  return MakeKernel([=](const KernelContext& run) {
    const T* divisors = run.input(y).data<T>();
    if (check != nullptr && broadcast.count() > 0) check(divisors, broadcast.y_count());
    RunBinary(broadcast, loop, grain, run.input(x).data<T>(), divisors,
              run.output(out).data<Out>());
  });
}

template <typename T, typename Out = T>
void AddBinaryKernel(OpRegistry& registry, const std::string& type, BinaryKernelLoop<T, Out> loop,
                     int64_t grain, DivisorCheck<T> check = nullptr) {
  AddElementwiseKernel<T>(registry, type, {"X", "Y", "Out"},
                          [loop, grain, check](PrepareContext& context) {
                            return PrepareBinary(context, loop, grain, check);
                          });
}

// The loops of a gradient. A null one means that the gradient is Out@GRAD itself.
template <typename T>
struct BinaryGradLoops {
  BinaryGradKernelLoop<T> x = nullptr;
  BinaryGradKernelLoop<T> y = nullptr;
};

// What the loops of a gradient read, with an index of -1 for what they don't.
struct BinaryGradInputs {
  int x = -1;
  int y = -1;
  int out = -1;
  int dout = -1;
};
BinaryGradInputs FindBinaryGradInputs(const OpContext& context);

// The loops over X and Y of a gradient op, by the layout of Out@GRAD.
Broadcast GradBroadcastOf(const OpContext& context);
// The slots whose layouts the gradient op cares about.
std::vector<std::string> GradLayoutSlots(const BinaryFacts& facts);

// The gradient of one operand.
template <typename T>
class OperandGradient {
 public:
  OperandGradient(PrepareContext& context, const Broadcast& broadcast, BroadcastOperand operand,
                  BinaryGradKernelLoop<T> loop, int64_t grain)
      : OperandGradient(context, broadcast, operand, FindBinaryGradInputs(context),
                        context.OutputIndex(operand == BroadcastOperand::kX ? "X@GRAD" : "Y@GRAD"),
                        loop, grain) {}

  // Of an op with slots of other names. `output` is the index of the gradient, -1 for none.
  OperandGradient(PrepareContext& context, const Broadcast& broadcast, BroadcastOperand operand,
                  const BinaryGradInputs& inputs, int output, BinaryGradKernelLoop<T> loop,
                  int64_t grain)
      : broadcast_(broadcast),
        reduction_(broadcast, operand),
        inputs_(inputs),
        output_(output),
        loop_(loop),
        grain_(grain) {
    const int64_t kept =
        operand == BroadcastOperand::kX ? broadcast.x_count() : broadcast.y_count();
    is_repeated_ = kept != broadcast.count();
    if (output_ < 0 || !is_repeated_) return;
    const int64_t bytes = reduction_.template ScratchBytes<T>();
    if (bytes > 0) scratch_ = context.RequestWorkspace(bytes);
  }

  void Run(const KernelContext& run) const {
    if (output_ < 0) return;
    const Arrays arrays(run, inputs_);
    T* grad = run.output(output_).data<T>();
    if (is_repeated_) {
      SumInto(arrays, grad, scratch_ < 0 ? nullptr : run.workspace(scratch_));
      return;
    }
    ParallelFor(broadcast_.count(), grain_, [&](int64_t begin, int64_t end) {
      if (loop_ == nullptr) {
        if (grad != arrays.dout) std::copy(arrays.dout + begin, arrays.dout + end, grad + begin);
        return;
      }
      broadcast_.ForEachRun(begin, end, [&](const BroadcastOffsets& at, int64_t length) {
        Compute(arrays, at, length, grad + at.out);
      });
    });
  }

 private:
  struct Arrays {
    Arrays(const KernelContext& run, const BinaryGradInputs& inputs)
        : x(inputs.x < 0 ? nullptr : run.input(inputs.x).data<T>()),
          y(inputs.y < 0 ? nullptr : run.input(inputs.y).data<T>()),
          out(inputs.out < 0 ? nullptr : run.input(inputs.out).data<T>()),
          dout(run.input(inputs.dout).data<T>()) {}
    const T* x;
    const T* y;
    const T* out;
    const T* dout;
  };

  void Compute(const Arrays& arrays, const BroadcastOffsets& at, int64_t length, T* grad) const {
    const T* dout = arrays.dout + at.out;
    const BroadcastDim& run = broadcast_.run();
    loop_(arrays.x == nullptr ? dout : arrays.x + at.x, arrays.x == nullptr ? 1 : run.x_stride,
          arrays.y == nullptr ? dout : arrays.y + at.y, arrays.y == nullptr ? 1 : run.y_stride,
          arrays.out == nullptr ? dout : arrays.out + at.out, dout, grad, length);
  }

  void SumInto(const Arrays& arrays, T* grad, void* scratch) const {
    reduction_.Run(
        [&](const BroadcastOffsets& at, int64_t length, T* buffer) -> const T* {
          if (loop_ == nullptr) return arrays.dout + at.out;
          Compute(arrays, at, length, buffer);
          return buffer;
        },
        grad, scratch);
  }

  Broadcast broadcast_;
  BroadcastReduction reduction_;
  BinaryGradInputs inputs_;
  int output_;
  BinaryGradKernelLoop<T> loop_;
  int64_t grain_;
  bool is_repeated_ = false;
  int scratch_ = -1;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBinaryGrad(PrepareContext& context, const BinaryGradLoops<T>& loops,
                                          int64_t grain) {
  const Broadcast broadcast = GradBroadcastOf(context);
  const OperandGradient<T> x(context, broadcast, BroadcastOperand::kX, loops.x, grain);
  const OperandGradient<T> y(context, broadcast, BroadcastOperand::kY, loops.y, grain);
  // X@GRAD comes last, since it may share the storage of Out@GRAD.
  return MakeKernel([x, y](const KernelContext& run) {
    y.Run(run);
    x.Run(run);
  });
}

template <typename T>
void AddBinaryGradKernel(OpRegistry& registry, const BinaryFacts& facts,
                         const BinaryGradLoops<T>& loops, int64_t grain) {
  AddElementwiseKernel<T>(
      registry, facts.type + "_grad", GradLayoutSlots(facts),
      [loops, grain](PrepareContext& context) { return PrepareBinaryGrad(context, loops, grain); });
}

// The float32 loops of an op for one instruction set: Highway's.
struct BinaryFloatLoops {
  BinaryKernelLoop<float> forward = nullptr;
  BinaryGradLoops<float> grad;
};

// A gradient functor that stands for Out@GRAD itself.
struct PassGradient {};

template <typename Functor, typename T>
constexpr BinaryGradKernelLoop<T> ScalarGradLoop() {
  if constexpr (std::is_same_v<Functor, PassGradient>) {
    return nullptr;
  } else {
    return ScalarBinaryGradLoop<Functor, T>;
  }
}

// Kernels of Ts from functors for scalars.
template <typename Functor, typename... Ts>
void AddScalarBinaryKernels(OpRegistry& registry, const BinaryFacts& facts) {
  (AddBinaryKernel<Ts>(registry, facts.type, ScalarBinaryLoop<Functor, Ts>, kScalarGrain), ...);
}

template <typename XGrad, typename YGrad, typename... Ts>
void AddScalarBinaryGradKernels(OpRegistry& registry, const BinaryFacts& facts) {
  (AddBinaryGradKernel<Ts>(
       registry, facts, {ScalarGradLoop<XGrad, Ts>(), ScalarGradLoop<YGrad, Ts>()}, kScalarGrain),
   ...);
}

// An op without loops of its own: float32, float64 and `Integers` from functors for scalars.
template <typename Functor, typename XGrad, typename YGrad, typename... Integers>
void RegisterBinary(OpRegistry& registry, const BinaryFacts& facts) {
  AddBinaryOps(registry, facts);
  AddScalarBinaryKernels<Functor, float, double, Integers...>(registry, facts);
  AddScalarBinaryGradKernels<XGrad, YGrad, float, double>(registry, facts);
}

// An op whose float32 runs in loops() of the instruction set that is in use when a kernel is
// prepared.
template <typename Functor, typename XGrad, typename YGrad, typename... Integers>
void RegisterBinary(OpRegistry& registry, const BinaryFacts& facts, BinaryFloatLoops (*loops)()) {
  AddBinaryOps(registry, facts);
  AddElementwiseKernel<float>(
      registry, facts.type, {"X", "Y", "Out"}, [loops](PrepareContext& context) {
        return PrepareBinary<float, float>(context, loops().forward, kVectorGrain, nullptr);
      });
  AddElementwiseKernel<float>(registry, facts.type + "_grad", GradLayoutSlots(facts),
                              [loops](PrepareContext& context) {
                                return PrepareBinaryGrad(context, loops().grad, kVectorGrain);
                              });
  AddScalarBinaryKernels<Functor, double, Integers...>(registry, facts);
  AddScalarBinaryGradKernels<XGrad, YGrad, double>(registry, facts);
}

}  // namespace skiff
