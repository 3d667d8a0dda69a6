// Common code of binary element-wise ops: the definitions of an op and its gradient op, kernels
// that broadcast (operators/common/broadcast.h), and gradients that sum over repeated elements.
//
// The file of an op (binary/*-inl.h) has the formulas and facts, from which everything else
// follows.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/broadcast.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/binary_facts.h"
#include "operators/elementwise/kernels/integer_division.h"
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

// Returns the definition of X, Y -> Out with `axis`, without a gradient rule. `out_dtype` is the
// dtype of Out; null means X's.
OpDef BinaryOpDef(StaticText type, StaticText doc, const DType* out_dtype = nullptr);
// Adds the op <type> and, if it has a gradient, <type>_grad.
void AddBinaryOps(OpRegistry& registry, const BinaryFacts& facts);

// Makes the loops over X, Y and Out for the rows of a run: a single flat loop over the storage if X
// and Y have the same shape.
class RunBroadcast {
 public:
  explicit RunBroadcast(const OpContext& context);
  Broadcast Of(const Tensor& x, const Tensor& y) const;

 private:
  int64_t axis_;
  StaticText type_;
};

// The loop of a formula over numbers.
template <class Formula, typename T, typename Out = T>
void ScalarBinaryLoop(const T* x, int64_t x_step, const T* y, int64_t y_step, Out* out,
                      int64_t count) {
  const Formula f;
  if (x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = f.Value(x[i], y[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i] = f.Value(x[i * x_step], y[i * y_step]);
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

// Throws Error if a divisor is refused. Called only if the result has elements.
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

// The loops of a gradient. Null means that the gradient is Out@GRAD itself. Half has no others.
template <typename T>
struct BinaryGradLoops {
  BinaryGradKernelLoop<T> x = nullptr;
  BinaryGradKernelLoop<T> y = nullptr;
};

// The indices of the inputs that a gradient's loops read; -1: not read.
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
// Returns the slots of the gradient op whose data the op reads or writes, and whose layouts matter.
std::vector<StaticText> GradLayoutSlots(const BinaryFacts& facts);

// Computes the gradient of one operand. Run takes the loops of the run, with at most the rows of
// the preparation.
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
            [&](const BroadcastOffsets& at, int64_t length,
                WideType<T>* buffer) -> const WideType<T>* {
              if (loop_ == nullptr) return ReadRow(arrays.dout, at.out, length, buffer);
              if constexpr (!kIsHalf<T>) Compute(arrays, broadcast.run(), at, length, buffer);
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

// Returns the loops of a formula's gradients over numbers.
template <class Formula, typename T>
BinaryGradLoops<T> ScalarBinaryGradLoops() {
  BinaryGradLoops<T> loops;
  if constexpr (!Formula::kFacts.x_gradient.is_passed) {
    loops.x = [](const T* x, int64_t x_step, const T* y, int64_t y_step, const T* out,
                 const T* dout, T* grad, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        grad[i] = Formula().XGradient(x[i * x_step], y[i * y_step], out[i], dout[i]);
      }
    };
  }
  if constexpr (!Formula::kFacts.y_gradient.is_passed) {
    loops.y = [](const T* x, int64_t x_step, const T* y, int64_t y_step, const T* out,
                 const T* dout, T* grad, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        grad[i] = Formula().YGradient(x[i * x_step], y[i * y_step], out[i], dout[i]);
      }
    };
  }
  return loops;
}

// Adds the kernel of T of a formula's op, with a loop over numbers.
template <class Formula, typename T>
void AddScalarBinaryKernel(OpRegistry& registry) {
  constexpr const BinaryFacts& kFacts = Formula::kFacts;
  DivisorCheck<T> check = nullptr;
  if constexpr (kFacts.divides && std::is_integral_v<T>) {
    check = [](const T* y, int64_t count) { CheckDivisors(kFacts.type, y, count); };
  }
  AddBinaryKernel<T>(registry, kFacts.type, ScalarBinaryLoop<Formula, T>, kScalarGrain, check);
}

// Adds the kernels of floats of a formula's op and of its gradient op. `loops` is that of
// RegisterBinary.
template <class Formula>
void AddFloatBinaryKernels(OpRegistry& registry, BinaryFloatLoops (*loops)()) {
  constexpr const BinaryFacts& kFacts = Formula::kFacts;
  const KernelFactory prepare_float = [loops](PrepareContext& context) {
    return PrepareBinary<float, float>(context, loops().forward, kVectorGrain, nullptr);
  };
  if constexpr (kFacts.has_vectors) {
    AddElementwiseKernel<float>(registry, kFacts.type, {"X", "Y", "Out"}, prepare_float);
  } else {
    AddScalarBinaryKernel<Formula, float>(registry);
  }
  AddScalarBinaryKernel<Formula, double>(registry);
  if constexpr (kFacts.takes_selected_rows) {
    // Only their values are computed. Zeros stay zeros, so the other rows may be missing.
    AddValuesKernel<float>(registry, kFacts.type, prepare_float);
    AddValuesKernel<double>(registry, kFacts.type, [](PrepareContext& context) {
      return PrepareBinary<double, double>(context, ScalarBinaryLoop<Formula, double>, kScalarGrain,
                                           nullptr);
    });
  }
  if constexpr (kFacts.has_gradient()) {
    if constexpr (kFacts.has_vectors) {
      AddElementwiseKernel<float>(registry, StrCat(kFacts.type, "_grad"), GradLayoutSlots(kFacts),
                                  [loops](PrepareContext& context) {
                                    return PrepareBinaryGrad(context, loops().grad, kVectorGrain);
                                  });
    } else {
      AddBinaryGradKernel<float>(registry, kFacts, ScalarBinaryGradLoops<Formula, float>(),
                                 kScalarGrain);
    }
    AddBinaryGradKernel<double>(registry, kFacts, ScalarBinaryGradLoops<Formula, double>(),
                                kScalarGrain);
    if constexpr (kFacts.x_gradient.is_passed && kFacts.y_gradient.is_passed) {
      AddBinaryGradKernel<Float16>(registry, kFacts, {}, kVectorGrain);
      AddBinaryGradKernel<BFloat16>(registry, kFacts, {}, kVectorGrain);
    }
  }
}

// Registers the op of a formula and its gradient op. A kernel that is prepared calls loops(), which
// returns the float32 loops for the instruction set in use if the formula has vectors.
template <class Formula>
void RegisterBinary(OpRegistry& registry, BinaryFloatLoops (*loops)()) {
  constexpr const BinaryFacts& kFacts = Formula::kFacts;
  AddBinaryOps(registry, kFacts);
  AddScalarBinaryKernel<Formula, int32_t>(registry);
  AddScalarBinaryKernel<Formula, int64_t>(registry);
  if constexpr (kFacts.is_bitwise) {
    AddScalarBinaryKernel<Formula, bool>(registry);
  } else {
    AddFloatBinaryKernels<Formula>(registry, loops);
  }
}

}  // namespace skiff
