// Properties that hold for every op, whatever it computes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

struct OpCheck {
  const OpRegistry& registry;
  const Op& op;
  // Plain, by variable.
  const NamedTensors& inputs;
  // By variable. An output that isn't listed is produced but not compared.
  std::map<std::string, Array> expected;
  // The dtype of expected arrays without a fixed one.
  DType dtype = DType::kFloat32;
  double tolerance = 0;
  // Starts every failure: "relu/odd_size float32".
  std::string label;
};

// Checks, on every kernel candidate, layout, instruction set and number of threads:
// - shapes and values are as expected;
// - the bits are equal for all numbers of threads (except with oneDNN and Winograd), in a second
//   run over other leftovers in memory, in place (each pair of OpDef::in_place, and all together),
//   from OpDef::replayed_by, with default attributes written out, and with any data in shape-only
//   inputs, and without them; outputs in OpDef::views have the bytes of their inputs;
// - without one of the outputs the others are the same, or an Error names the missing slot;
// - a kernel that takes fewer rows, prepared for more, whichever inputs have more, gives the same
//   bits (or, with oneDNN, the same numbers), and touches no row after the rows in use;
// - zeros give zeros if the definition declares so;
// - nothing is written out of bounds, into an input or into padding;
// - the shape rule accepts unknown dims.
//
// On a place other than the CPU, checks the kernels of that place (if there are any) on every
// layout against the values of the CPU. There, a run in float64 checks only the values, in place
// too, and a second run: float32, which a device's kernel shares its template with, is checked in
// all ways.
void CheckOpEverywhere(const OpCheck& check, const RunnerOptions& options, CaseReport* report);

// Returns the inputs of an op, with float32 in place of half where the op keeps float32.
NamedTensors KeepFloat32(const OpDef& def, const Op& op, NamedTensors inputs);

// Returns the two-byte dtypes in which float32 cases of the op run, too: where the op has a kernel
// kNativeHalfKernel on the place, and this processor has the instructions for the kernel. (Other
// kernels for half have the bits of float32's, rounded: ops_in_half_test.)
std::vector<DType> CheckedHalves(const OpRegistry& registry, const std::string& type, Place place);

// Returns the tolerance of a case in either dtype of half.
double NativeTolerance(const OpCase& op_case, DType half);

// Returns whether one of the slots that keep float32 has the variable.
bool KeepsFloat32(const std::vector<SlotDef>& slots, const Slots& arguments,
                  const std::string& variable);

}  // namespace skiff::harness
