// The networks of models/, small, for checks of their export to ONNX.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/executor/executor.h"
#include "framework/io/api/tensor_map.h"
#include "framework/ir/program.h"

namespace skiff::onnx_tests {

// A network: builds its output in the default main program and sets its feeds.
struct Network {
  std::string name;
  std::function<Variable(TensorMap* feeds)> build;
};

std::vector<Network> Networks();

// A network with random weights, its feeds and the results.
struct BuiltNetwork {
  std::unique_ptr<Program> program;
  std::unique_ptr<Executor> executor;  // whose scope has the weights
  TensorMap feeds;
  std::vector<std::string> feed_names;
  std::string fetch;
  Tensor output;
};

BuiltNetwork Build(const Network& network);

}  // namespace skiff::onnx_tests
