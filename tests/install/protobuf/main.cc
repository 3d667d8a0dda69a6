// Saves a model with Skiff, and reads its program with Skiff and with Google's protobuf.
#include <framework.pb.h>
#include <skiff/skiff.h>

#include <fstream>
#include <iostream>

using namespace skiff;

int main() {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 4});
  const Variable y = layers::Fc(x, 3, {.act = "relu"});
  Executor executor;
  executor.Run(startup);
  SaveInferenceModel("model", {x}, {y}, main, executor.scope());

  Executor other;
  const InferenceModel model = LoadInferenceModel("model", &other.scope());
  const Tensor ones = Tensor::FromValues<float>({1, 4}, {1, 1, 1, 1});
  const auto outputs = other.Run(*model.program, {{model.feed_names[0], ones}}, model.fetch_names);
  std::cout << "Skiff computes " << outputs[0].element_count() << " numbers\n";

  std::ifstream file("model/__model__", std::ios::binary);
  paddle::framework::proto::ProgramDesc program;
  if (!program.ParsePartialFromIstream(&file)) return 1;
  std::cout << "protobuf reads";
  for (const auto& op : program.blocks(0).ops()) std::cout << " " << op.type();
  std::cout << "\n";
}
