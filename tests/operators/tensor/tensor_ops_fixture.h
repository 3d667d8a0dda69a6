// What the tests of the tensor ops need: a registry of these ops, inference in a program, and runs
// of a kernel. They test what cases can't express: errors, gradients of ops that are another op,
// and shapes with unknown dims.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/tensor/tensor_ops.h"

namespace skiff {

class TensorOps : public ::testing::Test {
 protected:
  TensorOps() { RegisterTensorOps(registry_); }

  void Declare(const std::string& name, std::vector<int64_t> dims, DType dtype = DType::kFloat32,
               int32_t lod_level = 0) {
    program_.root()->CreateVar(
        {.name = name, .dtype = dtype, .dims = std::move(dims), .lod_level = lod_level});
  }
  // The dims of `output` after inference.
  std::vector<int64_t> Infer(Op op, const std::string& output = "out") {
    InferOp(registry_, program_.root(), &op);
    return program_.root()->GetVar(output)->dims;
  }
  // The message of the Error that inference throws; empty if it throws none.
  std::string InferenceError(Op op) {
    try {
      InferOp(registry_, program_.root(), &op);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void ExpectInferenceError(const Op& op, const std::string& part) {
    const std::string error = InferenceError(op);
    EXPECT_NE(error.find(part), std::string::npos)
        << op.type << ": \"" << error << "\" should contain \"" << part << "\"";
  }
  // The LoD level of the op's output "out" after inference.
  int32_t LodLevel(const Op& op) {
    Infer(op);
    return program_.root()->GetVar("out")->lod_level;
  }
  static Op Unary(const std::string& type, AttributeMap attrs) {
    Op op(type);
    op.attrs = std::move(attrs);
    op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
    return op;
  }

  OpRegistry registry_;
  Program program_;
};

using Dims = std::vector<int64_t>;
using Ints = std::vector<int32_t>;

// Runs the kernel of `op`; the tensors are in the order of its definition's slots.
void Run(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
         std::vector<Tensor*> outputs, int times = 1);

// Returns the message of the Error that running it throws; empty if it throws none.
std::string RunError(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
                     std::vector<Tensor*> outputs);

// Returns an op whose inputs are variables named like their slots.
Op OpOf(const std::string& type, const std::vector<std::string>& inputs, AttributeMap attrs = {},
        const std::string& output = "Out");

}  // namespace skiff
