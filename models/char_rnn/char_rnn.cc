#include "models/char_rnn/char_rnn.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "models/char_rnn/stream_reader.h"
#include "models/common/network_sizes.h"
#include "models/common/training_programs.h"

namespace skiff::models {
namespace {

using training::TrainingProgram;

void Check(const CharRnnOptions& options) {
  SKIFF_ENFORCE(options.cell == "lstm" || options.cell == "gru", kInvalidArgument,
                "char_rnn: cell = \"", options.cell, "\", expected lstm or gru");
  SKIFF_ENFORCE(options.loop == "static" || options.loop == "while", kInvalidArgument,
                "char_rnn: loop = \"", options.loop, "\", expected static or while");
  CheckSizes("char_rnn", {{"characters", options.characters},
                          {"embedding", options.embedding},
                          {"hidden", options.hidden},
                          {"layers", options.layers, 1, kMostLayers}});
}

bool IsLstm(const CharRnnOptions& options) { return options.cell == "lstm"; }

// The steps of the recurrence, on parameters that all of them share by name. A layer has a hidden
// state, which is its output, and with lstm a cell state, [batch, hidden] each.
class Network {
 public:
  explicit Network(const CharRnnOptions& options) : options_(options) {}

  size_t states_of_layer() const { return IsLstm(options_) ? 2 : 1; }
  size_t layers() const { return static_cast<size_t>(options_.layers); }

  // ids [...] to [..., embedding].
  Variable Embed(const Variable& ids) const {
    return layers::Embedding(ids, {.rows = options_.characters,
                                   .width = options_.embedding,
                                   .param_attr = {.name = kEmbeddingTable}});
  }

  // What x [..., width] adds to the gates of a layer.
  Variable FromInput(const Variable& x, size_t layer) const {
    const std::string name = StrCat("layer_", layer, ".input");
    return layers::Fc(
        x, gates() * options_.hidden,
        {.param_attr = {.name = name + ".w"}, .bias_attr = ParamAttr{.name = name + ".b"}});
  }

  // One step of a layer. Returns its states.
  Variables Step(const Variable& from_input, const Variables& before, size_t layer) const {
    const Variable from_state = layers::Fc(
        before[0], gates() * options_.hidden,
        {.param_attr = {.name = StrCat("layer_", layer, ".state.w")}, .bias_attr = false});
    return IsLstm(options_) ? LstmStep(from_input + from_state, before[1])
                            : GruStep(from_input, from_state, before[0]);
  }

  // [..., hidden] to [..., characters].
  Variable Scores(const Variable& x) const {
    return layers::Fc(
        x, options_.characters,
        {.param_attr = {.name = "output.w"}, .bias_attr = ParamAttr{.name = "output.b"}});
  }

  // One step of all layers: advances the states [layer · states_of_layer()] and returns the scores
  // of the next character.
  Variable StepOfAll(const Variable& ids, Variables* states) const {
    Variable x = Embed(ids);
    for (size_t layer = 0; layer < layers(); ++layer) {
      const auto first = states->begin() + static_cast<std::ptrdiff_t>(layer * states_of_layer());
      const Variables before(first, first + static_cast<std::ptrdiff_t>(states_of_layer()));
      const Variables after = Step(FromInput(x, layer), before, layer);
      std::copy(after.begin(), after.end(), first);
      x = after[0];
    }
    return Scores(x);
  }

 private:
  int64_t gates() const { return IsLstm(options_) ? 4 : 3; }

  Variables LstmStep(const Variable& sums, const Variable& cell) const {
    const int64_t n = options_.hidden;
    const std::vector<Variable> parts = layers::SplitSections(sums, {3 * n, n}, -1);
    const std::vector<Variable> gates = layers::Split(layers::Sigmoid(parts[0]), 3, -1);
    const Variable next = gates[0] * layers::Tanh(parts[1]) + gates[1] * cell;
    return {gates[2] * layers::Tanh(next), next};
  }

  Variables GruStep(const Variable& from_input, const Variable& from_state,
                    const Variable& before) const {
    const int64_t n = options_.hidden;
    const std::vector<Variable> x = layers::SplitSections(from_input, {2 * n, n}, -1);
    const std::vector<Variable> h = layers::SplitSections(from_state, {2 * n, n}, -1);
    const std::vector<Variable> gates = layers::Split(layers::Sigmoid(x[0] + h[0]), 2, -1);
    const Variable candidate = layers::Tanh(x[1] + gates[0] * h[1]);
    return {candidate + gates[1] * (before - candidate)};
  }

  CharRnnOptions options_;
};

// [T, batch, characters] of ids [T, batch]; makes `states` what they are after the last step.
Variable ScoresWithStaticRnn(const Variable& ids, const Network& network, Variables* states) {
  Variable x = network.Embed(ids);
  const size_t count = network.states_of_layer();
  for (size_t layer = 0; layer < network.layers(); ++layer) {
    const Variable from_input = network.FromInput(x, layer);
    Variable* first = states->data() + layer * count;
    layers::StaticRnn rnn;
    rnn.Body([&] {
      Variables before;
      const Variable step = rnn.StepInput(from_input);
      for (size_t i = 0; i < count; ++i) before.push_back(rnn.Memory(first[i]));
      const Variables after = network.Step(step, before, layer);
      for (size_t i = 0; i < count; ++i) {
        rnn.UpdateMemory(before[i], after[i]);
        rnn.StepOutput(after[i]);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      first[i] = layers::Slice(rnn.Outputs()[i], {.axes = {0},
                                                  .starts = {-1},
                                                  .ends = {std::numeric_limits<int32_t>::max()},
                                                  .decrease_axis = {0}});
    }
    x = rnn.Outputs()[0];
  }
  return network.Scores(x);
}

Variable LossWithStaticRnn(const Variable& ids, const Variable& label, const Network& network,
                           Variables* states) {
  const Variable scores = ScoresWithStaticRnn(ids, network, states);
  return layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label));
}

Variable Zero(DType dtype = DType::kInt64) { return layers::FillConstant({1}, dtype, 0); }

// A copy, since Increment works in place.
Variable Next(const Variable& counter) { return layers::Increment(layers::Assign(counter)); }

// The extent of dim 0, [1] int64.
Variable Extent(const Variable& x) {
  const Variable dims = layers::ShapeOf(x);
  return layers::Cast(layers::Slice(dims, {.axes = {0}, .starts = {0}, .ends = {1}}),
                      DType::kInt64);
}

// The same in one loop over the steps, which adds up their losses: no op inside needs more than the
// step's part of the inputs.
Variable LossWithWhile(const Variable& ids, const Variable& label, const Network& network,
                       Variables* states) {
  const int64_t batch = ids.dims()[1];
  const Variable steps = Extent(ids);
  Variables first = {Zero(), Zero(DType::kFloat32)};
  first.insert(first.end(), states->begin(), states->end());
  Variables last = layers::WhileLoop(
      [&](const Variables& v) { return layers::LessThan(v[0], steps); },
      [&](const Variables& v) {
        const Variable id = layers::Reshape(layers::Gather(ids, v[0]), {batch});
        const Variable next = layers::Reshape(layers::Gather(label, v[0]), {batch, 1});
        Variables now(v.begin() + 2, v.end());
        const Variable scores = network.StepOfAll(id, &now);
        const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, next));
        Variables result = {Next(v[0]), v[1] + layers::Reshape(loss, {1})};
        result.insert(result.end(), now.begin(), now.end());
        return result;
      },
      first);
  states->assign(last.begin() + 2, last.end());
  return last[1] / layers::Cast(steps, DType::kFloat32);
}

// Draws a character by its scores [1, characters]; returns its id, [1].
Variable Draw(const Variable& scores, const Variable& temperature, const Variable& top_k,
              int64_t characters) {
  // All of them in order, so that a rank says whether one is among the top_k.
  const layers::TopKResult sorted = layers::TopK(scores, characters);
  const Variable is_drawn = layers::LessThan(layers::Range(0, characters), top_k);
  const Variable weights =
      layers::Softmax(sorted.values / temperature) * layers::Cast(is_drawn, scores.dtype());
  const Variable rank = layers::Multinomial(weights, 1, /*replacement=*/true);
  return layers::Gather(layers::Reshape(sorted.indices, {characters}), layers::Reshape(rank, {1}));
}

}  // namespace

std::vector<std::string> CharRnnStates(const CharRnnOptions& options) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    names.push_back(StrCat("layer_", layer, ".hidden"));
    if (IsLstm(options)) names.push_back(StrCat("layer_", layer, ".cell"));
  }
  return names;
}

Variable CharRnnLoss(const Variable& ids, const Variable& label, const Variable& carried,
                     const CharRnnOptions& options) {
  Check(options);
  Variables kept, states;
  for (const std::string& name : CharRnnStates(options)) {
    if (!options.carries_states) {
      states.push_back(layers::FillConstant({ids.dims()[1], options.hidden}, DType::kFloat32, 0));
      continue;
    }
    kept.push_back(CreatePersistable(name, {ids.dims()[1], options.hidden}, DType::kFloat32, 0.0,
                                     std::source_location::current()));
    states.push_back(kept.back() * carried);
  }
  const Network network(options);
  const Variable loss = options.loop == "static" ? LossWithStaticRnn(ids, label, network, &states)
                                                 : LossWithWhile(ids, label, network, &states);
  for (size_t i = 0; i < kept.size(); ++i) layers::AssignTo(states[i], kept[i]);
  return loss;
}

std::unique_ptr<Program> BuildCharRnnWriter(const CharRnnOptions& options, std::string* written) {
  Check(options);
  auto program = std::make_unique<Program>();
  Program startup;  // the parameters are those of a training
  const ProgramGuard guard(program.get(), &startup);
  const Variable prompt = layers::Data(kPrompt, {-1}, DType::kInt64);
  const Variable room = layers::Data(kRoom, {-1}, DType::kInt64);
  const Variable temperature = layers::Data(kTemperature, {1});
  const Variable top_k = layers::Data(kTopK, {1}, DType::kInt64);
  const Network network(options);

  // All of the prompt but its last character, which is the first one that the second loop reads.
  const Variable one = layers::FillConstant({1}, DType::kInt64, 1);
  const Variable before_last = Extent(prompt) - one;
  Variables read = {Zero()};
  for (size_t i = 0; i < CharRnnStates(options).size(); ++i)
    read.push_back(layers::FillConstant({1, options.hidden}, DType::kFloat32, 0));
  read = layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], before_last); },
                           [&](const Variables& v) {
                             Variables states(v.begin() + 1, v.end());
                             network.StepOfAll(layers::Gather(prompt, v[0]), &states);
                             states.insert(states.begin(), Next(v[0]));
                             return states;
                           },
                           read);

  const Variable length = Extent(room);
  Variables state = {Zero(), layers::Gather(prompt, before_last), room};
  state.insert(state.end(), read.begin() + 1, read.end());
  state = layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], length); },
                            [&](const Variables& v) {
                              Variables states(v.begin() + 3, v.end());
                              const Variable scores = network.StepOfAll(v[1], &states);
                              const Variable id =
                                  Draw(scores, temperature, top_k, options.characters);
                              Variables result = {Next(v[0]), id, layers::Scatter(v[2], v[0], id)};
                              result.insert(result.end(), states.begin(), states.end());
                              return result;
                            },
                            state);
  *written = state[2].name();
  return program;
}

TrainingProgram BuildCharRnn(const CharRnnOptions& options, int64_t batch_size,
                             const training::OptimizationOptions& optimization, uint64_t seed) {
  SKIFF_ENFORCE(batch_size >= 1, kInvalidArgument, "char_rnn: batch_size = ", batch_size,
                ", expected at least 1");
  TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable ids = layers::Data(StreamReader::kIds, {-1, batch_size}, DType::kInt64);
  const Variable label = layers::Data(StreamReader::kLabel, {-1, batch_size, 1}, DType::kInt64);
  const Variable carried = layers::Data(StreamReader::kCarried, {1});
  const Variable loss = CharRnnLoss(ids, label, carried, options);
  program.loss = loss.name();
  program.test = program.main->CloneForTest();
  program.model_inputs = {kPrompt, kRoom, kTemperature, kTopK};
  program.model_outputs.resize(1);
  program.model = BuildCharRnnWriter(options, &program.model_outputs[0]);
  AddOptimization(loss, optimization, &program);
  return program;
}

}  // namespace skiff::models
