// Writes a layer as a model of ONNX, reads the file again, and prints what both compute.
#include <skiff/onnx.h>
#include <skiff/skiff.h>

#include <iostream>

using namespace skiff;

int main() {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 4});
  const Variable y = layers::Fc(x, 1);
  Executor executor;
  executor.Run(startup);
  executor.scope().Set("fc_0.b_0", Tensor::FromValues<float>({1}, {0.5f}));
  ExportOnnx("model.onnx", {x.name()}, {y.name()}, main, executor.scope());

  Executor other;
  const InferenceModel model = ImportOnnx("model.onnx", &other.scope());
  const FeedList zeros = {{"x", Tensor::FromValues<float>({1, 4}, {0, 0, 0, 0})}};
  std::cout << executor.Run(main, zeros, {y})[0].data<float>()[0] << " "
            << other.Run(*model.program, zeros, model.fetch_names)[0].data<float>()[0] << "\n";
  try {
    ExportOnnx("model.onnx", {x.name()}, {y.name()}, main, executor.scope(), {.opset = 5});
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}
