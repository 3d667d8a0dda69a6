#include "tests/harness/ragged_training.h"

#include <numeric>

#include "framework/analysis/ops_on_host.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "tests/harness/sgd_training.h"

namespace skiff::harness {
namespace {

constexpr int64_t kWidth = 3;
constexpr int64_t kHidden = 5;

// Returns the loss.
Variable Build() {
  const Variable x = layers::Data("x", {-1, kWidth}, DType::kFloat32, {.lod_level = 1});
  const Variable notes = layers::Data("notes", {-1, kHidden}, DType::kFloat32, {.lod_level = 1});
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable part = rnn.StepInput(x);
    const Variable before = rnn.Memory({kHidden}, 0.5f);
    const Variable seen = rnn.StaticInput(notes);
    const Variable score = layers::ReduceSum(seen * layers::SequenceExpandAs(before, seen),
                                             {.dims = {1}, .keep_dim = true});
    const Variable context = layers::SequencePool(layers::SequenceSoftmax(score) * seen, "SUM");
    const Variable joined = layers::Concat({part, before, context}, 1);
    const Variable state = layers::Dropout(layers::Fc(joined, kHidden, {.act = "tanh"}), 0.25);
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  return layers::Mean(layers::Square(rnn.Outputs()[0]));
}

Tensor Ragged(const Lengths& lengths, int64_t width) {
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  Tensor tensor = SmallNumbers({rows, width}, 1, DType::kFloat32);
  tensor.set_lod({OffsetsOf(lengths)});
  return tensor;
}

}  // namespace

RaggedTraining TrainRagged(Place place, const OpRegistry* registry, const CompileOptions& options,
                           const std::vector<Lengths>& batches, bool waits) {
  Program main;
  Program startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = Build();
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  Executor executor(place, nullptr, registry);
  executor.Run(startup);
  CompiledProgram compiled = executor.Compile(main, options);
  RaggedTraining training;
  for (const Lengths& lengths : batches) {
    const Lengths of_notes(lengths.rbegin(), lengths.rend());
    BoundProgram bound = compiled.Bind(
        {{"x", Ragged(lengths, kWidth)}, {"notes", Ragged(of_notes, kHidden)}}, {loss.name()});
    training.on_host = OpsOnHost(bound.plan());
    for (int i = 0; i < 2; ++i) {
      bound.Step();
      const bool is_last = &lengths == &batches.back() && i == 1;
      if (waits || is_last) training.losses.push_back(bound.fetch(0).Item<float>());
    }
  }
  return training;
}

}  // namespace skiff::harness
