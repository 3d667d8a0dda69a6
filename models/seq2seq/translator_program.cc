#include "models/seq2seq/translator_program.h"

#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor.h"
#include "framework/builder/tensor_array.h"
#include "models/seq2seq/pair_reader.h"
#include "models/seq2seq/token_vocabulary.h"

namespace skiff::models {

std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options,
                                         TranslatorOutputs* outputs) {
  auto program = std::make_unique<Program>();
  Program startup;  // the parameters are those of a training
  const ProgramGuard guard(program.get(), &startup);
  Seq2SeqOptions without_dropout = options;
  without_dropout.dropout = 0;
  const Seq2SeqNetwork network(without_dropout);
  const Variable source = layers::Data(PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable room = layers::Data(kTranslationRoom, {-1}, DType::kInt64);
  const Variable most =
      layers::Cast(layers::Slice(layers::ShapeOf(room), {.axes = {0}, .starts = {0}, .ends = {1}}),
                   DType::kInt64);
  const Encoded encoded = network.Encode(source);
  const Variables first_state = network.FirstState(encoded);
  const Variable& first = first_state[0];
  const Variable begin = layers::FillConstantBatchSizeLike(
      first, {-1, 1}, DType::kInt64, static_cast<double>(TokenVocabulary::kBegin));
  const Variable end =
      layers::FillConstant({1}, DType::kInt64, static_cast<double>(TokenVocabulary::kEnd));
  const Variable none_ended = layers::FillConstantBatchSizeLike(first, {-1, 1}, DType::kInt64, 0.0);
  const Variable tokens = layers::CreateArray(DType::kInt64);
  const Variable weights = layers::CreateArray(DType::kFloat32);
  Variables initial = {layers::FillConstant({1}, DType::kInt64, 0), begin, none_ended};
  initial.insert(initial.end(), first_state.begin(), first_state.end());
  layers::WhileLoop(
      [&](const Variables& v) {
        const Variable all_ended =
            layers::Cast(layers::ReduceMin(v[2], {.keep_dim = true}), DType::kBool);
        return layers::LogicalAnd(layers::LessThan(v[0], most),
                                  layers::LogicalNot(layers::Reshape(all_ended, {1})));
      },
      [&](const Variables& v) {
        const Variable word = network.Embed(layers::Reshape(v[1], {-1}));
        const Decoded decoded = network.Step(word, {v.begin() + 3, v.end()}, encoded);
        const Variable scores = network.Scores(decoded.outputs, word);
        const Variable token = layers::TopK(scores, 1).indices;
        layers::ArrayWrite(layers::Reshape(token, {-1}), v[0], tokens);
        layers::ArrayWrite(layers::Reshape(decoded.weights, {-1}), v[0], weights);
        const Variable ends = layers::Cast(layers::Equal(token, end), DType::kInt64);
        Variables next = {layers::Increment(layers::Assign(v[0])), token,
                          layers::ElementwiseMax(v[2], ends)};
        next.insert(next.end(), decoded.state.begin(), decoded.state.end());
        return next;
      },
      initial);
  outputs->tokens = layers::ArrayToTensor(tokens, {.axis = 0, .stack = true}).name();
  outputs->weights = layers::ArrayToTensor(weights, {.axis = 0, .stack = true}).name();
  return program;
}

}  // namespace skiff::models
