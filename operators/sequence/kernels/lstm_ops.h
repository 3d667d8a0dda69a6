// lstm and lstmp, which are the same op except for the projection.
#pragma once

#include <string>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"

namespace skiff {

// The differences between lstm and lstmp, without the additions of the projection.
struct LstmOp {
  StaticText type;
  StaticText doc;
  StaticText gradient_doc;
  StaticText states_doc;   // of the output with the states of all rows
  StaticText initial_doc;  // of H0
  StaticText weight_doc;
  bool has_projection = false;
  // Of the gradient.
  std::vector<GradientRead> reads;
  std::vector<StaticText> writes;
};

// Adds the op, the gradient op, and the kernels of both on the CPU.
void AddLstmOps(OpRegistry& registry, const LstmOp& op);
// Adds the CUDA kernels of an op and of its gradient.
void AddLstmCudaKernels(OpRegistry& registry, const std::string& type);

}  // namespace skiff
