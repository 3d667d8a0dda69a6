#include "tests/onnx/saved_models.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/text/pair_reader.h"
#include "models/char_rnn/char_rnn.h"
#include "models/char_rnn/stream_reader.h"
#include "models/seq2seq/seq2seq.h"
#include "models/seq2seq/translator_program.h"
#include "models/text_classifier/text_classifier.h"
#include "tests/harness/array_tensor.h"

namespace skiff::onnx_tests {
namespace {

using harness::Integers;
using harness::ToTensor;
using training::TrainingProgram;

constexpr int64_t kTokens = 20;
constexpr uint64_t kSeed = 7;
// Lengths of the sequences of batches.
const std::vector<std::vector<int64_t>> kBatches = {{3, 1, 4}, {6}, {1, 2, 2, 5, 1}};

Tensor Ids(const Shape& shape, int64_t kinds = kTokens) {
  return ToTensor(Integers(shape, 3, 0, kinds), DType::kInt64);
}

Tensor RaggedIds(const std::vector<int64_t>& lengths) {
  std::vector<uint64_t> offsets = {0};
  for (const int64_t length : lengths) {
    offsets.push_back(offsets.back() + static_cast<uint64_t>(length));
  }
  Tensor ids = Ids({static_cast<int64_t>(offsets.back())});
  ids.set_lod({offsets});
  return ids;
}

// Makes the scores of a training's classes what is saved.
void SaveScores(TrainingProgram* programs, std::vector<std::string> inputs) {
  programs->model = nullptr;
  programs->model_inputs = std::move(inputs);
  for (const auto& op : programs->test->root()->ops()) {
    if (op->type != "softmax_with_cross_entropy") continue;
    programs->model_outputs = op->Input("Logits");
    return;
  }
  Throw(ErrorCode::kNotFound, "the program has no softmax_with_cross_entropy");
}

SavedModel Classifier(const std::string& network) {
  SavedModel model{.name = "text_classifier_" + network, .build = [=] {
                     models::TextClassifierOptions options;
                     options.network = network;
                     options.vocabulary = kTokens;
                     options.classes = 3;
                     options.embedding = 8;
                     options.hidden = 6;
                     return models::BuildTextClassifier(options, {}, kSeed);
                   }};
  for (const auto& lengths : kBatches) model.feeds.push_back({{"ids", RaggedIds(lengths)}});
  // A sequence without rows.
  model.feeds.push_back({{"ids", RaggedIds({2, 0, 3})}});
  return model;
}

models::CharRnnOptions CharRnnOptions(const std::string& cell, const std::string& loop) {
  models::CharRnnOptions options;
  options.cell = cell;
  options.loop = loop;
  options.characters = kTokens;
  options.embedding = 5;
  options.hidden = 6;
  options.layers = 2;
  return options;
}

// The network that is trained: the scores of a StaticRnn, or the loss of a while.
SavedModel CharRnn(const std::string& cell, const std::string& loop) {
  constexpr int64_t kBatch = 3;
  using models::StreamReader;
  SavedModel model{
      .name = "char_rnn_" + cell + "_" + loop, .build = [=] {
        TrainingProgram programs =
            models::BuildCharRnn(CharRnnOptions(cell, loop), kBatch, {}, kSeed);
        const std::vector<std::string> inputs = {StreamReader::kIds, StreamReader::kCarried};
        if (loop == "static") {
          SaveScores(&programs, inputs);
        } else {
          programs.model = nullptr;
          programs.model_inputs = {inputs[0], StreamReader::kLabel, inputs[1]};
          programs.model_outputs = {programs.loss};
        }
        return programs;
      }};
  for (const int64_t steps : {5, 1, 8}) {
    TensorMap feeds;
    feeds[StreamReader::kIds] = Ids({steps, kBatch});
    feeds[StreamReader::kCarried] = Tensor::FromValues<float>({1}, {1});
    if (loop == "while") feeds[StreamReader::kLabel] = Ids({steps, kBatch, 1});
    model.feeds.push_back(std::move(feeds));
  }
  return model;
}

// The program that writes. It draws from the one most probable character.
SavedModel CharRnnWriter(const std::string& cell) {
  SavedModel model{.name = "char_rnn_" + cell + "_writer", .build = [=] {
                     return models::BuildCharRnn(CharRnnOptions(cell, "static"), 3, {}, kSeed);
                   }};
  for (const int64_t length : {4, 1, 7}) {
    model.feeds.push_back({{models::kPrompt, Ids({length})},
                           {models::kRoom, Ids({2 * length})},
                           {models::kTemperature, Tensor::FromValues<float>({1}, {0.7f})},
                           {models::kTopK, Tensor::FromValues<int64_t>({1}, {1})}});
  }
  return model;
}

models::Seq2SeqOptions Seq2SeqOptions(const std::string& cell, const std::string& attention) {
  models::Seq2SeqOptions options;
  options.source_tokens = kTokens;
  options.target_tokens = kTokens;
  options.embedding = 6;
  options.hidden = 5;
  options.cell = cell;
  options.attention = attention;
  return options;
}

// The network that is trained: the scores of known translations.
SavedModel TeacherForced(const models::Seq2SeqOptions& options) {
  using text::PairReader;
  SavedModel model{
      .name = StrCat("seq2seq_", options.cell, "_", options.attention, "_", options.decoder),
      .build = [=] {
        TrainingProgram programs = models::BuildSeq2Seq(options, {}, kSeed);
        SaveScores(&programs, {PairReader::kSource, PairReader::kGiven});
        return programs;
      }};
  if (options.input_feeding) model.name += "_input_feeding";
  for (std::vector<int64_t> lengths : kBatches) {
    TensorMap feeds = {{PairReader::kSource, RaggedIds(lengths)}};
    std::ranges::reverse(lengths);
    lengths[0] += 2;
    feeds[PairReader::kGiven] = RaggedIds(lengths);
    model.feeds.push_back(std::move(feeds));
  }
  return model;
}

// Beam widths of 0 are the program that takes the most probable token.
SavedModel Translator(const models::Seq2SeqOptions& options, int64_t width) {
  const std::string kind = width > 0 ? "beam" : "translator";
  SavedModel model{
      .name = StrCat("seq2seq_", options.cell, "_", options.attention, "_", kind), .build = [=] {
        TrainingProgram programs = models::BuildSeq2Seq(options, {}, kSeed);
        if (width == 0) return programs;
        models::BeamTranslatorOutputs outputs;
        programs.model = models::BuildBeamTranslator(
            options, {.width = width, .length_penalty = 0.6f}, &outputs);
        programs.model_outputs = {outputs.tokens, outputs.scores, outputs.parents, outputs.weights};
        return programs;
      }};
  for (const auto& lengths : kBatches) {
    model.feeds.push_back(
        {{text::PairReader::kSource, RaggedIds(lengths)},
         {models::kTranslationRoom, Ids({static_cast<int64_t>(lengths.size()) + 3})}});
  }
  return model;
}

// Makes programs of a network whose feeds are `inputs`.
TrainingProgram ProgramsOf(const std::vector<std::string>& inputs,
                           const std::function<Variables()>& network) {
  TrainingProgram programs{.main = std::make_unique<Program>(),
                           .startup = std::make_unique<Program>()};
  const ProgramGuard guard(programs.main.get(), programs.startup.get());
  programs.startup->seed = kSeed;
  for (const Variable& output : network()) programs.model_outputs.push_back(output.name());
  programs.test = programs.main->CloneForTest();
  programs.model_inputs = inputs;
  return programs;
}

Variable Int64(int64_t value) {
  return layers::FillConstant({1}, DType::kInt64, static_cast<double>(value));
}

// A loop whose steps take branches: by the step's number, and by a feed.
Variable StepsInBranches(const Variable& x, const Variable& kind, const Variable& steps) {
  const Variables last =
      layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], steps); },
                        [&](const Variables& v) {
                          const Variable is_first = layers::Equal(v[0], Int64(0));
                          const Variables branch = layers::Cond(
                              is_first, [&] { return Variables{layers::Tanh(v[1])}; },
                              [&] { return Variables{v[1] * 0.5f}; });
                          const Variables chosen = layers::SwitchCase(
                              kind,
                              {{0, [&] { return Variables{branch[0] + x}; }},
                               {1, [&] { return Variables{layers::Fc(branch[0], 4)}; }}},
                              [&] { return Variables{branch[0] - x}; });
                          return Variables{layers::Increment(layers::Assign(v[0])), chosen[0]};
                        },
                        {Int64(0), x});
  return last[1];
}

// Rows in two blocks, and a variable that one of several blocks assigns to.
Variables RowsInBranches(const Variable& x, const Variable& kind) {
  const Variable first = layers::Slice(x, {.axes = {1}, .starts = {0}, .ends = {1}});
  layers::IfElse by_row(layers::GreaterThan(first, layers::FillConstant({1}, DType::kFloat32, 0)));
  by_row.IfTrue([&] { return Variables{layers::Tanh(by_row.Input(x))}; });
  by_row.IfFalse([&] { return Variables{by_row.Input(x) * 0.5f}; });
  const Variable rate = layers::FillConstant({1}, DType::kFloat32, 1);
  layers::Switch choose;
  choose.Case(layers::LessThan(kind, Int64(1)), [&] { layers::AssignTo(rate * 3.0f, rate); });
  choose.Default([&] { layers::AssignTo(rate * 5.0f, rate); });
  return {by_row.Outputs()[0], layers::Assign(rate)};
}

SavedModel Branches() {
  SavedModel model{.name = "branches", .build = [] {
                     return ProgramsOf({"x", "kind", "steps"}, [] {
                       const Variable x = layers::Data("x", {-1, 4});
                       const Variable kind = layers::Data("kind", {1}, DType::kInt64);
                       const Variable steps = layers::Data("steps", {1}, DType::kInt64);
                       Variables outputs = RowsInBranches(x, kind);
                       outputs.push_back(StepsInBranches(x, kind, steps));
                       return outputs;
                     });
                   }};
  for (int64_t run = 0; run < 3; ++run) {
    const Tensor x = ToTensor(harness::Uniform({2 + run, 4}, 5), DType::kFloat32);
    model.feeds.push_back({{"x", x},
                           {"kind", Tensor::FromValues<int64_t>({1}, {run})},
                           {"steps", Tensor::FromValues<int64_t>({1}, {2 * run})}});
  }
  return model;
}

// A StaticRnn from the last step to the first, with running statistics and a loop in each step.
SavedModel NestedLoops() {
  SavedModel model{.name = "nested_loops", .build = [] {
                     return ProgramsOf({"x"}, [] {
                       const Variable x = layers::Data("x", {-1, 2, 3});
                       const Variable first = layers::FillConstant({2, 3}, DType::kFloat32, 0.5);
                       layers::StaticRnn rnn({.reverse = true});
                       rnn.Body([&] {
                         const Variable step = layers::BatchNorm(rnn.StepInput(x));
                         const Variable before = rnn.Memory(first);
                         const Variables after = layers::WhileLoop(
                             [&](const Variables& v) { return layers::LessThan(v[0], Int64(2)); },
                             [&](const Variables& v) {
                               return Variables{layers::Increment(layers::Assign(v[0])),
                                                layers::Tanh(v[1] * step + before)};
                             },
                             {Int64(0), before});
                         rnn.UpdateMemory(before, after[1]);
                         rnn.StepOutput(after[1]);
                       });
                       return Variables{rnn.Outputs()[0]};
                     });
                   }};
  for (const int64_t steps : {4, 1, 6}) {
    model.feeds.push_back({{"x", ToTensor(harness::Uniform({steps, 2, 3}, 6), DType::kFloat32)}});
  }
  return model;
}

}  // namespace

std::vector<SavedModel> SavedModels() {
  std::vector<SavedModel> models = {Classifier("cnn"), Classifier("gru"), Classifier("lstm"),
                                    Branches(), NestedLoops()};
  for (const char* cell : {"lstm", "gru"}) {
    models.push_back(CharRnn(cell, "static"));
    models.push_back(CharRnn(cell, "while"));
    models.push_back(CharRnnWriter(cell));
  }
  for (const auto& [cell, attention] :
       {std::pair{"gru", "bahdanau"}, std::pair{"lstm", "bahdanau"}, std::pair{"gru", "luong"}}) {
    models::Seq2SeqOptions options = Seq2SeqOptions(cell, attention);
    models.push_back(TeacherForced(options));
    models.push_back(Translator(options, 0));
    models.push_back(Translator(options, 3));
    options.decoder = "dynamic_rnn";
    models.push_back(TeacherForced(options));
  }
  models::Seq2SeqOptions options = Seq2SeqOptions("lstm", "luong");
  options.input_feeding = true;
  options.decoder = "dynamic_rnn";
  options.layers = 2;
  models.push_back(TeacherForced(options));
  return models;
}

BuiltModel Build(const SavedModel& model) {
  BuiltModel built{.programs = model.build(),
                   .executor = std::make_unique<Executor>(Place::Cpu()),
                   .outputs = {}};
  built.executor->Run(*built.programs.startup);
  const std::vector<std::string>& names = built.programs.model_outputs;
  const std::unique_ptr<Program> program =
      built.program().Prune(built.programs.model_inputs, names);
  for (const TensorMap& feeds : model.feeds) {
    const FeedList given(feeds.begin(), feeds.end());
    const std::vector<Tensor> outputs = built.executor->Run(*program, given, names);
    TensorMap by_name;
    for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = outputs[i];
    built.outputs.push_back(std::move(by_name));
  }
  return built;
}

}  // namespace skiff::onnx_tests
