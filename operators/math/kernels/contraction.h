// Sums of products of tensors whose axes have letters, planned as steps that each place has kernels
// for: the computation of einsum and of its gradient.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/tensor/shape.h"
#include "operators/common/cpu/gemm.h"
#include "operators/common/cpu/reduce.h"

namespace skiff {

// The axes of a tensor with the same letter, and so with the same index: a step of the index moves
// along all of these axes.
struct LetteredAxis {
  char letter = ' ';
  int64_t extent = 1;
  int64_t stride = 0;  // in elements
};

// The elements of a tensor that a term of an einsum names, outermost axes first. Axes of extent 1
// are left out: they broadcast.
using LetteredTensor = std::vector<LetteredAxis>;

// Returns the elements of a contiguous tensor with the given shape and a letter for each axis. Axes
// of the same letter must have the same extent.
LetteredTensor WithLetters(const Shape& shape, std::string_view letters);

// Steps name tensors by numbers: the operands from 0 on, then the result, then the temporaries of
// the plan, which are contiguous.

// out[…] = a[…] * b[…], or a[…]; strides of 0 repeat elements.
struct ElementStep {
  struct Loop {
    int64_t extent = 1;
    int64_t stride_a = 0;
    int64_t stride_b = 0;
    int64_t stride_out = 0;
  };
  static constexpr size_t kMaxLoops = 9;  // CudaLoops'

  int a = 0;
  int b = -1;  // -1: none
  int out = 0;
  std::vector<Loop> loops;  // outermost first

  int64_t count() const;
};

// out = the sums of a contiguous tensor over some axes.
struct SumStep {
  int a = 0;
  int out = 0;
  Shape shape;
  AxisFlags is_summed{};
};

// out = products of the matrices in a and b.
struct MatrixStep {
  int a = 0;
  int b = 0;
  int out = 0;
  GemmSpec spec;
};

using ContractionStep = std::variant<ElementStep, SumStep, MatrixStep>;

struct ContractionPlan {
  // Whether the result is set to zero before the steps, which leave elements out.
  bool zeroes_result = false;
  int64_t result_count = 0;          // the elements of the result's tensor
  std::vector<int64_t> temporaries;  // the elements of each
  std::vector<ContractionStep> steps;
};

// Returns a plan that sets the result to the products of the operands, summed over the letters that
// the result lacks, and its other elements to zero. The result may have letters that no operand
// has: elements repeat along them. `result_count` is the number of elements of the result's tensor.
// Operands are multiplied two at a time, from the left: as matrices where both have a letter that
// is summed, else element by element.
//
// Throws Error (kUnimplemented) if a step needs more loops than ElementStep::kMaxLoops.
ContractionPlan PlanContraction(const std::vector<LetteredTensor>& operands,
                                const LetteredTensor& result, int64_t result_count);

// Returns the FLOP of the products of matrices.
double FlopOf(const ContractionPlan& plan);

// Returns whether the plan has the same results in half as in float32, rounded once: it rounds
// once, as temporaries have the dtype of the operands.
bool RoundsOnce(const ContractionPlan& plan);

}  // namespace skiff
