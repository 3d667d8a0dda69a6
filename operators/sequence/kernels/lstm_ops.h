// lstm and lstmp, which are one op but for the projection.
#pragma once

#include <string>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"

namespace skiff {

// What lstm and lstmp differ in, but for what the projection adds.
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

// Adds the op, its gradient, and their kernels on the CPU.
void AddLstmOps(OpRegistry& registry, const LstmOp& op);
// Adds the CUDA kernels of an op and of its gradient.
void AddLstmCudaKernels(OpRegistry& registry, const std::string& type);

}  // namespace skiff
