// Trains a model of ONNX on one batch: MODEL, the files of the inputs in the order of the graph,
// TARGET, STEPS, RATE. The loss is the mean squared distance between the first output and TARGET,
// the optimizer is SGD. Prints the loss of each step, before its update.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/onnx/import.h"
#include "framework/onnx/onnx.pb.h"
#include "framework/onnx/tensor_proto.h"

namespace {

skiff::Tensor TensorIn(const std::string& path) {
  skiff::onnx::TensorProto proto;
  if (!proto.ParseFromString(skiff::ReadFile(path))) {
    skiff::Throw(skiff::ErrorCode::kDataLoss, path, ": is no tensor");
  }
  return skiff::TensorFromOnnx(proto, ".");
}

void Train(const std::vector<std::string>& arguments) {
  skiff::Executor exe;
  const skiff::InferenceModel model = skiff::ImportOnnx(arguments.at(0), &exe.scope());
  const size_t end = arguments.size() - 3;
  skiff::FeedList feeds;
  for (size_t i = 1; i < end; ++i) {
    feeds.emplace_back(model.feed_names.at(i - 1), TensorIn(arguments[i]));
  }
  feeds.emplace_back("wanted", TensorIn(arguments[end]));
  skiff::Program startup;
  skiff::Variable loss;
  {
    const skiff::ProgramGuard guard(model.program.get(), &startup);
    const skiff::Variable out(model.program->root(), model.fetch_names.at(0));
    const skiff::Variable wanted =
        skiff::layers::Data("wanted", feeds.back().second.shape().ToVector());
    loss = skiff::layers::Mean(skiff::layers::Square(out - wanted));
    skiff::optimizer::Sgd({.learning_rate = std::stod(arguments[end + 2])}).Minimize(loss);
  }
  exe.Run(startup);
  skiff::CompiledProgram step = exe.Compile(*model.program);
  for (int i = 0; i < std::stoi(arguments[end + 1]); ++i) {
    std::printf("%.8g\n", step.Run(feeds, {loss})[0].Item<float>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::cerr << "usage: onnx_train_runner MODEL INPUT... TARGET STEPS RATE\n";
    return 2;
  }
  try {
    Train({argv + 1, argv + argc});
  } catch (const skiff::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
