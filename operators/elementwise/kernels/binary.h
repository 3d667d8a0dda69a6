// Common code of binary element-wise ops: the definitions of an op and its gradient op, kernels
// that broadcast (operators/common/broadcast.h), and gradients that sum over repeated elements.
//
// The file of an op provides the facts, functors for scalars of any type and, for a fast float32,
// loops on Highway's vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/broadcast.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {

// Sets out[i] = f(x[i * x_step], y[i * y_step]). A step is 0 or 1; at most one is 0. `out` may be
// an operand.
template <typename T, typename Out = T>
using BinaryKernelLoop = void (*)(const T* x, int64_t x_step, const T* y, int64_t y_step, Out* out,
                                  int64_t count);

// Sets grad[i] = f(x[i * x_step], y[i * y_step], out[i], dout[i]). `dout` replaces each array that
// the gradient op doesn't read. `grad` may be `dout`.
template <typename T>
using BinaryGradKernelLoop = void (*)(const T* x, int64_t x_step, const T* y, int64_t y_step,
                                      const T* out, const T* dout, T* grad, int64_t count);

struct BinaryFacts {
  StaticText type;
  StaticText doc;
  bool zero_preserving = false;
  // The documentation of the gradient op. Empty: there is none, and no_gradient_reason says why.
  StaticText grad_doc;
  StaticText no_gradient_reason;
  // Whether the gradient op reads the data of X, Y and Out. It always reads the shapes of X and Y.
  // Out is an input only if it is read.
  bool grad_reads_x = false;
  bool grad_reads_y = false;
  bool grad_reads_out = false;
  bool grad_zero_preserving = false;
  bool checks_y = false;  // whether the op refuses some data of Y: SlotDef::checks_data
  // Whether X may be selected rows if Y is one number: the op is then linear and maps zeros to
  // zeros. AddBinaryOps doesn't add the kernel for them.
  bool takes_selected_rows = false;
};

// Returns the definition of X, Y -> Out with `axis`, without a gradient rule. `out_dtype` is the
// dtype of Out; null means X's.
OpDef BinaryOpDef(StaticText type, StaticText doc, const DType* out_dtype = nullptr);
// Adds the op <type> and, if it has a gradient, <type>_grad.
void AddBinaryOps(OpRegistry& registry, const BinaryFacts& facts);

// Makes the loops over X, Y and Out for the rows of a run: one flat loop over their storage if X
// and Y have the same shape.
class RunBroadcast {
 public:
  explicit RunBroadcast(const OpContext& context);
  Broadcast Of(const Tensor& x, const Tensor& y) const;

 private:
  int64_t axis_;
  StaticText type_;
};

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

// Throws Error if it refuses one of the divisors. Called only if the result has elements.
template <typename T>
using DivisorCheck = void (*)(const T* y, int64_t count);

template <typename T, typename Out>
std::unique_ptr<Kernel> PrepareBinary(PrepareContext& context, BinaryKernelLoop<T, Out> loop,
                                      int64_t grain, DivisorCheck<T> check) {
  const RunBroadcast loops(context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Broadcast broadcast = loops.Of(run.input(x), run.input(y));
    const T* divisors = run.input(y).data<T>();
    if (check != nullptr && broadcast.count() > 0) check(divisors, broadcast.y_count());
    RunBinary(broadcast, loop, grain, run.input(x).data<T>(), divisors,
              run.output(out).data<Out>());
  });
}

template <typename T, typename Out = T>
void AddBinaryKernel(OpRegistry& registry, std::string_view type, BinaryKernelLoop<T, Out> loop,
                     int64_t grain, DivisorCheck<T> check = nullptr) {
  AddElementwiseKernel<T>(registry, type, {"X", "Y", "Out"},
                          [loop, grain, check](PrepareContext& context) {
                            return PrepareBinary(context, loop, grain, check);
                          });
}

// The loops of a gradient. Null means that the gradient is Out@GRAD itself.
template <typename T>
struct BinaryGradLoops {
  BinaryGradKernelLoop<T> x = nullptr;
  BinaryGradKernelLoop<T> y = nullptr;
};

// The indices of the inputs that a gradient's loops read; -1: they don't read it.
struct BinaryGradInputs {
  int x = -1;
  int y = -1;
  int out = -1;
  int dout = -1;
};
BinaryGradInputs FindBinaryGradInputs(const OpContext& context);

// Makes the loops over X, Y and Out@GRAD of a gradient op for the rows of a run: one flat loop over
// the storage of Out@GRAD if X and Y have the same shape.
class RunGradBroadcast {
 public:
  explicit RunGradBroadcast(const OpContext& context);
  // X and Y aren't asked for their rows: where only their shapes count, a run may be without them.
  Broadcast Of(const Shape& out_gradient, Layout layout) const;

 private:
  Shape x_;
  Shape y_;
  // Whether dim 0 of an operand is dim 0 of Out.
  bool x_has_rows_;
  bool y_has_rows_;
  int64_t axis_;
  StaticText type_;
};
// Returns the slots of the gradient op whose data it reads or writes, and whose layouts matter.
std::vector<StaticText> GradLayoutSlots(const BinaryFacts& facts);

// Computes the gradient of one operand. Run takes the loops of the run, with fewer rows than those
// that it was prepared for, or as many.
template <typename T>
class OperandGradient {
 public:
  OperandGradient(PrepareContext& context, const Broadcast& broadcast, BroadcastOperand operand,
                  BinaryGradKernelLoop<T> loop, int64_t grain)
      : OperandGradient(context, broadcast, operand, FindBinaryGradInputs(context),
                        context.OutputIndex(operand == BroadcastOperand::kX ? "X@GRAD" : "Y@GRAD"),
                        loop, grain) {}

  // For an op with slots of other names. `output` is the index of the gradient; -1: it has none.
  OperandGradient(PrepareContext& context, const Broadcast& broadcast, BroadcastOperand operand,
                  const BinaryGradInputs& inputs, int output, BinaryGradKernelLoop<T> loop,
                  int64_t grain)
      : operand_(operand), inputs_(inputs), output_(output), loop_(loop), grain_(grain) {
    if (output_ < 0 || !IsRepeated(broadcast)) return;
    const int64_t bytes = BroadcastReduction(broadcast, operand).template ScratchBytes<T>();
    if (bytes > 0) scratch_ = context.RequestWorkspace(bytes);
  }

  void Run(const KernelContext& run, const Broadcast& broadcast) const {
    if (output_ < 0) return;
    const Arrays arrays(run, inputs_);
    T* grad = run.output(output_).data<T>();
    if (IsRepeated(broadcast)) {
      SumInto(arrays, broadcast, grad, scratch_ < 0 ? nullptr : run.workspace(scratch_));
      return;
    }
    ParallelFor(broadcast.count(), grain_, [&](int64_t begin, int64_t end) {
      if (loop_ == nullptr) {
        if (grad != arrays.dout) std::copy(arrays.dout + begin, arrays.dout + end, grad + begin);
        return;
      }
      broadcast.ForEachRun(begin, end, [&](const BroadcastOffsets& at, int64_t length) {
        Compute(arrays, broadcast.run(), at, length, grad + at.out);
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

  bool IsRepeated(const Broadcast& broadcast) const {
    const bool is_x = operand_ == BroadcastOperand::kX;
    return (is_x ? broadcast.x_count() : broadcast.y_count()) != broadcast.count();
  }

  void Compute(const Arrays& arrays, const BroadcastDim& run, const BroadcastOffsets& at,
               int64_t length, T* grad) const {
    const T* dout = arrays.dout + at.out;
    loop_(arrays.x == nullptr ? dout : arrays.x + at.x, arrays.x == nullptr ? 1 : run.x_stride,
          arrays.y == nullptr ? dout : arrays.y + at.y, arrays.y == nullptr ? 1 : run.y_stride,
          arrays.out == nullptr ? dout : arrays.out + at.out, dout, grad, length);
  }

  void SumInto(const Arrays& arrays, const Broadcast& broadcast, T* grad, void* scratch) const {
    BroadcastReduction(broadcast, operand_)
        .Run(
            [&](const BroadcastOffsets& at, int64_t length, T* buffer) -> const T* {
              if (loop_ == nullptr) return arrays.dout + at.out;
              Compute(arrays, broadcast.run(), at, length, buffer);
              return buffer;
            },
            grad, scratch);
  }

  BroadcastOperand operand_;
  BinaryGradInputs inputs_;
  int output_;
  BinaryGradKernelLoop<T> loop_;
  int64_t grain_;
  int scratch_ = -1;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBinaryGrad(PrepareContext& context, const BinaryGradLoops<T>& loops,
                                          int64_t grain) {
  const RunGradBroadcast broadcast_of(context);
  const TensorMeta& dout = context.Input("Out@GRAD");
  const Broadcast broadcast = broadcast_of.Of(dout.shape, dout.layout);
  const OperandGradient<T> x(context, broadcast, BroadcastOperand::kX, loops.x, grain);
  const OperandGradient<T> y(context, broadcast, BroadcastOperand::kY, loops.y, grain);
  // X@GRAD comes last, since it may share the storage of Out@GRAD.
  return MakeRowsKernel(
      [=, out_gradient = context.InputIndex("Out@GRAD")](const KernelContext& run) {
        const Tensor& gradient = run.input(out_gradient);
        const Broadcast loops_of_run = broadcast_of.Of(gradient.shape(), gradient.layout());
        y.Run(run, loops_of_run);
        x.Run(run, loops_of_run);
      });
}

template <typename T>
void AddBinaryGradKernel(OpRegistry& registry, const BinaryFacts& facts,
                         const BinaryGradLoops<T>& loops, int64_t grain) {
  AddElementwiseKernel<T>(
      registry, StrCat(facts.type, "_grad"), GradLayoutSlots(facts),
      [loops, grain](PrepareContext& context) { return PrepareBinaryGrad(context, loops, grain); });
}

// The float32 loops of an op for one instruction set.
struct BinaryFloatLoops {
  BinaryKernelLoop<float> forward = nullptr;
  BinaryGradLoops<float> grad;
};

// The gradient functor of an operand whose gradient is Out@GRAD itself.
struct PassGradient {};

template <typename Functor, typename T>
constexpr BinaryGradKernelLoop<T> ScalarGradLoop() {
  if constexpr (std::is_same_v<Functor, PassGradient>) {
    return nullptr;
  } else {
    return ScalarBinaryGradLoop<Functor, T>;
  }
}

// Add kernels for the types Ts from functors for scalars.
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

// Registers an op without loops of its own: float32, float64 and `Integers` from functors for
// scalars.
template <typename Functor, typename XGrad, typename YGrad, typename... Integers>
void RegisterBinary(OpRegistry& registry, const BinaryFacts& facts) {
  AddBinaryOps(registry, facts);
  AddScalarBinaryKernels<Functor, float, double, Integers...>(registry, facts);
  AddScalarBinaryGradKernels<XGrad, YGrad, float, double>(registry, facts);
}

// Registers an op whose float32 kernels run in loops(), called for the instruction set in use when
// a kernel is prepared.
template <typename Functor, typename XGrad, typename YGrad, typename... Integers>
void RegisterBinary(OpRegistry& registry, const BinaryFacts& facts, BinaryFloatLoops (*loops)()) {
  AddBinaryOps(registry, facts);
  AddElementwiseKernel<float>(
      registry, facts.type, {"X", "Y", "Out"}, [loops](PrepareContext& context) {
        return PrepareBinary<float, float>(context, loops().forward, kVectorGrain, nullptr);
      });
  AddElementwiseKernel<float>(registry, StrCat(facts.type, "_grad"), GradLayoutSlots(facts),
                              [loops](PrepareContext& context) {
                                return PrepareBinaryGrad(context, loops().grad, kVectorGrain);
                              });
  AddScalarBinaryKernels<Functor, double, Integers...>(registry, facts);
  AddScalarBinaryGradKernels<XGrad, YGrad, double>(registry, facts);
}

}  // namespace skiff
