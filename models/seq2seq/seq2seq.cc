#include "models/seq2seq/seq2seq.h"

#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor.h"
#include "framework/builder/tensor_array.h"
#include "models/seq2seq/pair_reader.h"
#include "models/seq2seq/token_vocabulary.h"

namespace skiff::models {
namespace {

void Check(const Seq2SeqOptions& options) {
  for (const auto& [name, size] : {std::pair("source_tokens", options.source_tokens),
                                   {"target_tokens", options.target_tokens},
                                   {"embedding", options.embedding},
                                   {"hidden", options.hidden}}) {
    SKIFF_ENFORCE(size >= 1, kInvalidArgument, "seq2seq: ", name, " = ", size,
                  ", expected at least 1");
  }
}

// What the decoder looks at, a row for each source token.
struct Encoded {
  Variable states;  // [tokens, 2 * hidden], ragged
  Variable keys;    // [tokens, hidden], ragged: the states' part of the attention scores
};

struct Attended {
  Variable context;  // [n, 2 * hidden]
  Variable weights;  // [tokens], ragged
};

// The network. All parameters have names, so that the programs that use it share them.
class Network {
 public:
  explicit Network(const Seq2SeqOptions& options) : options_(options) { Check(options); }

  Encoded Encode(const Variable& ids) const {
    const Variable words = Dropped(Table(ids, options_.source_tokens, kSourceTable));
    std::vector<Variable> directions;
    for (const bool is_reverse : {false, true}) {
      const std::string name = is_reverse ? "encoder.backward" : "encoder.forward";
      directions.push_back(layers::DynamicGru(Product(words, 3 * options_.hidden, name + ".in"),
                                              {.size = options_.hidden,
                                               .is_reverse = is_reverse,
                                               .param_attr = {.name = name + ".w"},
                                               .bias_attr = ParamAttr{.name = name + ".b"}}));
    }
    const Variable states = layers::Concat(directions, 1);
    return {.states = states, .keys = Product(states, options_.hidden, "attention.keys")};
  }

  // The state before the first step, [sentences, hidden]: from the backward direction at the first
  // token, which has read all.
  Variable FirstState(const Encoded& encoded) const {
    const Variable first = layers::SequencePool(encoded.states, "FIRST");
    const Variable backward = layers::Slice(
        first, {.axes = {1}, .starts = {options_.hidden}, .ends = {2 * options_.hidden}});
    return layers::Tanh(Linear(backward, options_.hidden, "decoder.first"));
  }

  Variable Embed(const Variable& ids) const {
    return Dropped(Table(ids, options_.target_tokens, kTargetTable));
  }

  // The additive attention of Bahdanau et al., section A.1.2: a softmax, over the tokens of each
  // sentence, of v · tanh(query + key).
  Attended Attend(const Variable& state, const Encoded& encoded) const {
    const Variable query = Linear(state, options_.hidden, "attention.query");
    const Variable mixed =
        layers::Tanh(layers::SequenceExpandAs(query, encoded.keys) + encoded.keys);
    const Variable weights = layers::SequenceSoftmax(Product(mixed, 1, "attention.v"));
    return {.context = layers::SequencePool(
                layers::ElementwiseMul(encoded.states, weights, {.axis = 0}), "SUM"),
            .weights = weights};
  }

  Variable Step(const Variable& word, const Variable& context, const Variable& before) const {
    const Variable gates =
        Product(layers::Concat({word, context}, 1), 3 * options_.hidden, "decoder.in");
    return layers::GruUnit(
        gates, before,
        {.param_attr = {.name = "decoder.w"}, .bias_attr = ParamAttr{.name = "decoder.b"}});
  }

  // The scores of all tokens, [n, target_tokens].
  Variable Scores(const Variable& state, const Variable& context, const Variable& word) const {
    const Variable readout = layers::Tanh(
        Linear(layers::Concat({state, context, word}, 1), options_.embedding, "readout"));
    return Linear(Dropped(readout), options_.target_tokens, "scores");
  }

 private:
  Variable Table(const Variable& ids, int64_t rows, const char* name) const {
    return layers::Embedding(
        ids, {.rows = rows, .width = options_.embedding, .param_attr = {.name = name}});
  }
  Variable Dropped(const Variable& x) const {
    if (options_.dropout == 0) return x;
    return layers::Dropout(x, options_.dropout, {.implementation = "upscale_in_train"});
  }
  static Variable Product(const Variable& x, int64_t size, const std::string& name) {
    return layers::Fc(x, size, {.param_attr = {.name = name + ".w"}, .bias_attr = std::nullopt});
  }
  static Variable Linear(const Variable& x, int64_t size, const std::string& name) {
    return layers::Fc(
        x, size,
        {.param_attr = {.name = name + ".w"}, .bias_attr = ParamAttr{.name = name + ".b"}});
  }

  const Seq2SeqOptions options_;
};

Variable Zero(DType dtype = DType::kInt64) { return layers::FillConstant({1}, dtype, 0); }

// The scores of each token of the targets, given those before.
Variable TeacherForced(const Network& network, const Variable& source, const Variable& given) {
  const Encoded encoded = network.Encode(source);
  const Variable first = network.FirstState(encoded);
  const Variable words = network.Embed(given);
  layers::DynamicRnn decoder;
  decoder.Body([&] {
    const Variable word = decoder.StepInput(words);
    const Variable before = decoder.Memory(first);
    const Encoded seen = {.states = decoder.StaticInput(encoded.states),
                          .keys = decoder.StaticInput(encoded.keys)};
    const Attended attended = network.Attend(before, seen);
    const Variable state = network.Step(word, attended.context, before);
    decoder.UpdateMemory(before, state);
    decoder.StepOutput(state);
    decoder.StepOutput(attended.context);
  });
  // Nothing waits for the scores, so one product makes those of all steps.
  return network.Scores(decoder.Outputs()[0], decoder.Outputs()[1], words);
}

}  // namespace

Variable Seq2SeqLoss(const Variable& source, const Variable& given, const Variable& label,
                     const Seq2SeqOptions& options) {
  return layers::Mean(
      layers::SoftmaxWithCrossEntropy(TeacherForced(Network(options), source, given), label));
}

std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options,
                                         TranslatorOutputs* outputs) {
  auto program = std::make_unique<Program>();
  Program startup;  // the parameters are those of a training
  const ProgramGuard guard(program.get(), &startup);
  Seq2SeqOptions without_dropout = options;
  without_dropout.dropout = 0;
  const Network network(without_dropout);
  const Variable source = layers::Data(PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable room = layers::Data(kTranslationRoom, {-1}, DType::kInt64);
  const Variable most =
      layers::Cast(layers::Slice(layers::ShapeOf(room), {.axes = {0}, .starts = {0}, .ends = {1}}),
                   DType::kInt64);
  const Encoded encoded = network.Encode(source);
  const Variable first = network.FirstState(encoded);
  const Variable begin = layers::FillConstantBatchSizeLike(
      first, {-1, 1}, DType::kInt64, static_cast<double>(TokenVocabulary::kBegin));
  const Variable end =
      layers::FillConstant({1}, DType::kInt64, static_cast<double>(TokenVocabulary::kEnd));
  const Variable none_ended = layers::FillConstantBatchSizeLike(first, {-1, 1}, DType::kInt64, 0.0);
  const Variable tokens = layers::CreateArray(DType::kInt64);
  const Variable weights = layers::CreateArray(DType::kFloat32);
  layers::WhileLoop(
      [&](const Variables& v) {
        const Variable all_ended =
            layers::Cast(layers::ReduceMin(v[3], {.keep_dim = true}), DType::kBool);
        return layers::LogicalAnd(layers::LessThan(v[0], most),
                                  layers::LogicalNot(layers::Reshape(all_ended, {1})));
      },
      [&](const Variables& v) {
        const Variable word = network.Embed(layers::Reshape(v[1], {-1}));
        const Attended attended = network.Attend(v[2], encoded);
        const Variable state = network.Step(word, attended.context, v[2]);
        const Variable scores = network.Scores(state, attended.context, word);
        const Variable token = layers::TopK(scores, 1).indices;
        layers::ArrayWrite(layers::Reshape(token, {-1}), v[0], tokens);
        layers::ArrayWrite(layers::Reshape(attended.weights, {-1}), v[0], weights);
        const Variable ends = layers::Cast(layers::Equal(token, end), DType::kInt64);
        return Variables{layers::Increment(layers::Assign(v[0])), token, state,
                         layers::ElementwiseMax(v[3], ends)};
      },
      {Zero(), begin, first, none_ended});
  outputs->tokens = layers::ArrayToTensor(tokens, {.axis = 0, .stack = true}).name();
  outputs->weights = layers::ArrayToTensor(weights, {.axis = 0, .stack = true}).name();
  return program;
}

training::TrainingProgram BuildSeq2Seq(const Seq2SeqOptions& options,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed) {
  training::CheckOptimizationOptions(optimization);
  training::TrainingProgram program;
  program.main = std::make_unique<Program>();
  program.startup = std::make_unique<Program>();
  program.main->seed = program.startup->seed = seed;
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable source = layers::Data(PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable given = layers::Data(PairReader::kGiven, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data(PairReader::kLabel, {-1, 1}, DType::kInt64);
  const Variable scores = TeacherForced(Network(options), source, given);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label));
  const Variable accuracy = layers::Accuracy(layers::Softmax(scores), label);
  program.loss = loss.name();
  program.metrics = {{.name = "token accuracy",
                      .variable = accuracy.name(),
                      .percent = true,
                      .larger_is_better = true}};
  program.test = program.main->CloneForTest();
  program.model_inputs = {PairReader::kSource, kTranslationRoom};
  TranslatorOutputs outputs;
  program.model = BuildTranslator(options, &outputs);
  program.model_outputs = {outputs.tokens, outputs.weights};
  training::Optimization trained = training::Optimize(loss, optimization);
  program.learning_rate = trained.learning_rate.name();
  program.average = std::move(trained.average);
  return program;
}

}  // namespace skiff::models
