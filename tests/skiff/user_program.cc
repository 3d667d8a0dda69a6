// What a user's file may look like: it includes nothing but skiff.h, and has names of its own that
// Skiff also uses inside.
#include "skiff/skiff.h"

using namespace skiff;

struct Block {};
struct Buffer {};
struct Kernel {};
struct Op {};
struct Plan {};
struct Var {};
void ReadFile(const char* path);
void Throw(const char* what);
int SizeOf(const Tensor& tensor);

void Train(training::Reader& reader) {
  [[maybe_unused]] Block block;
  [[maybe_unused]] Buffer buffer;
  [[maybe_unused]] Kernel kernel;
  [[maybe_unused]] Op op;
  [[maybe_unused]] Plan plan;
  [[maybe_unused]] Var var;
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable image = layers::Data("image", {-1, 1, 28, 28});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable hidden = layers::Conv2d(
      image, {.filters = 32, .kernel = 3, .param_attr = {.name = "w"}, .bias_attr = false});
  hidden = layers::Relu(layers::LayerNorm(hidden, {.param_attr = false}) * 0.5f + hidden);
  const Variable loss = layers::Mean(
      layers::SoftmaxWithCrossEntropy(layers::Fc(hidden, 10, {.num_flatten_dims = 1}), label));
  optimizer::AdamW({.learning_rate = 1e-3, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);

  Executor executor;
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, {.passes = ParsePasses("-layout")});
  training::Batch batch;
  while (reader.Next(&batch)) {
    const Tensor value = step.Run(batch.feeds, {loss})[0];
    if (SizeOf(value) != 1) Throw("not one number");
    if (value.Item<float>() > 100.0f) ReadFile("help.txt");
  }
  SaveInferenceModel("model", {image}, {hidden}, main, executor.scope());
  WriteSafetensors("w.safetensors", {{"w", CopyToCpu(executor.scope().Get("w"))}});
}
