// Ops that must be refused, and what the Error must say.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "tests/harness/error_text.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {

struct RefusedOp {
  std::string type;
  // slot -> float32 shape
  std::vector<std::pair<std::string, Shape>> inputs;
  std::vector<std::string> outputs;
  AttributeMap attrs;
  std::string message;  // part of it
};

// Returns the message of the Error that preparing the op throws; fails the test if it throws none.
inline std::string ErrorOf(const OpRegistry& registry, const RefusedOp& refused) {
  Op op(refused.type);
  op.attrs = refused.attrs;
  NamedTensors inputs;
  for (const auto& [slot, shape] : refused.inputs) {
    op.SetInput(slot, {slot});
    const std::vector<float> ones(static_cast<size_t>(shape.element_count()), 1.0f);
    inputs[slot] = Tensor::FromValues<float>(shape, ones);
  }
  for (const std::string& slot : refused.outputs) op.SetOutput(slot, {"out_" + slot});
  return ErrorText([&] {
    CheckOp(registry.Get(op.type), op);
    PreparedOp prepared(registry, op, inputs);
  });
}

inline void ExpectRefused(const OpRegistry& registry, const std::vector<RefusedOp>& all) {
  for (const RefusedOp& refused : all) {
    const std::string found = ErrorOf(registry, refused);
    EXPECT_NE(found.find(refused.message), std::string::npos)
        << refused.type << ": found \"" << found << "\", expected \"" << refused.message << '"';
    EXPECT_NE(found.find(refused.type.substr(0, refused.type.find("_grad"))), std::string::npos)
        << "\"" << found << "\" does not name " << refused.type;
  }
}

}  // namespace skiff::harness
