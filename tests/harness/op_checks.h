// What must hold for one op, whatever it computes.
#pragma once

#include <map>
#include <string>

#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_report.h"

namespace skiff::harness {

struct OpCheck {
  const OpRegistry& registry;
  const Op& op;
  // Plain, by variable.
  const NamedTensors& inputs;
  // By variable; an output that is not listed is produced, but its values are not compared.
  std::map<std::string, Array> expected;
  // What expected arrays without a dtype of their own have.
  DType dtype = DType::kFloat32;
  double tolerance = 0;
  // In front of every failure: "relu/odd_size float32".
  std::string label;
};

// On every kernel candidate, layout, instruction set and number of threads: the shapes and values
// expected; equal bits on all numbers of threads (but of oneDNN and Winograd), in a second run over
// other leftovers in memory, in place (each pair of OpDef::in_place, and all together), with
// the bytes of their inputs in OpDef::views, the same from OpDef::replayed_by, with default
// attributes written out, and whatever the data of shape-only inputs; the same without one of the
// outputs, or an Error that names its slot; zeros of zeros where the definition says so; no write
// out of bounds, into an input or into padding. And the shape rule accepts unknown dims. On another
// place than the CPU, the kernels of that place (if there are any) on every layout, with the values
// of the CPU expected.
void CheckOpEverywhere(const OpCheck& check, const RunnerOptions& options, CaseReport* report);

}  // namespace skiff::harness
