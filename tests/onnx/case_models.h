// Programs of one op, made of the cases of the operator tests, for the export.
#pragma once

#include <string>
#include <vector>

#include "framework/io/npz.h"
#include "framework/ir/program.h"
#include "framework/onnx/export.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::onnx_tests {

struct CaseModel {
  Program program;
  harness::NamedTensors feeds;
  std::vector<std::string> feed_names;
  // What the op computes in evaluation.
  harness::NamedTensors outputs;
};

// Returns whether a file of ONNX can have the case's inputs: none is selected rows.
bool HasPlainInputs(const harness::OpCase& op_case);

// Returns a program of the case's op in a dtype, in evaluation, with its inputs and outputs. With
// `unknown_dims`, the program knows no dim of the inputs. Throws Error if the op doesn't run.
CaseModel MakeCaseModel(const harness::OpCase& op_case, DType dtype, bool unknown_dims);

// The part of a case that the export can write.
struct ExportedCase {
  std::string bytes;  // of the file; empty if no output can be exported
  std::vector<std::string> fetches;
  std::string refusal;  // the Error of the first output that can't
};
ExportedCase ExportCase(const CaseModel& model, const OnnxExportOptions& options);

}  // namespace skiff::onnx_tests
