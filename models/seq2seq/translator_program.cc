#include "models/seq2seq/translator_program.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/text/marks.h"
#include "framework/text/pair_reader.h"
#include "models/common/network_sizes.h"

namespace skiff::models {
namespace {

Variable Int64(int64_t value) {
  return layers::FillConstant({1}, DType::kInt64, static_cast<double>(value));
}

// What both programs begin with.
struct Decoder {
  explicit Decoder(const Seq2SeqOptions& options)
      : network(WithoutDropout(options)),
        source(layers::Data(text::PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1})),
        most(MostTokens()),
        encoded(network.Encode(source)),
        first_state(network.FirstState(encoded)) {}

  static Seq2SeqOptions WithoutDropout(Seq2SeqOptions options) {
    options.dropout = 0;
    return options;
  }
  static Variable MostTokens() {
    const Variable room = layers::Data(kTranslationRoom, {-1}, DType::kInt64);
    const Variable extent =
        layers::Slice(layers::ShapeOf(room), {.axes = {0}, .starts = {0}, .ends = {1}});
    return layers::Cast(extent, DType::kInt64);
  }
  // Returns [sentences, columns] of one value.
  Variable ForEachSentence(int64_t columns, DType dtype, double value) const {
    return layers::FillConstantBatchSizeLike(first_state[0], {-1, columns}, dtype, value);
  }

  const Seq2SeqNetwork network;
  const Variable source;
  const Variable most;
  const Encoded encoded;
  const Variables first_state;
};

// Returns whether there is room for a token, and an element of `open` is 1.
Variable GoesOn(const Variable& step, const Variable& most, const Variable& open) {
  const Variable one_is_open = layers::Cast(layers::ReduceMax(open), DType::kBool);
  return layers::LogicalAnd(layers::LessThan(step, most), layers::Reshape(one_is_open, {1}));
}

Variable Next(const Variable& step) { return layers::Increment(layers::Assign(step)); }

// Returns the elements of an array side by side along a new first dim.
std::string Stacked(const Variable& array) {
  return layers::ArrayToTensor(array, {.axis = 0, .stack = true}).name();
}

}  // namespace

std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options,
                                         TranslatorOutputs* outputs) {
  auto program = std::make_unique<Program>();
  Program startup;  // the parameters are those of a training
  const ProgramGuard guard(program.get(), &startup);
  const Decoder decoder(options);
  const Variable begin =
      decoder.ForEachSentence(1, DType::kInt64, static_cast<double>(text::kBeginId));
  const Variable all_open = decoder.ForEachSentence(1, DType::kInt64, 1.0);
  const Variable end = Int64(text::kEndId);
  const Variable tokens = layers::CreateArray(DType::kInt64);
  const Variable weights = layers::CreateArray(DType::kFloat32);
  Variables initial = {Int64(0), begin, all_open};
  initial.insert(initial.end(), decoder.first_state.begin(), decoder.first_state.end());
  layers::WhileLoop([&](const Variables& v) { return GoesOn(v[0], decoder.most, v[2]); },
                    [&](const Variables& v) {
                      const Variable word = decoder.network.Embed(layers::Reshape(v[1], {-1}));
                      const Decoded decoded =
                          decoder.network.Step(word, {v.begin() + 3, v.end()}, decoder.encoded);
                      const Variable scores = decoder.network.Scores(decoded.outputs, word);
                      const Variable token = layers::TopK(scores, 1).indices;
                      layers::ArrayWrite(layers::Reshape(token, {-1}), v[0], tokens);
                      layers::ArrayWrite(layers::Reshape(decoded.weights, {-1}), v[0], weights);
                      const Variable goes_on =
                          layers::Cast(layers::NotEqual(token, end), DType::kInt64);
                      Variables next = {Next(v[0]), token, layers::ElementwiseMin(v[2], goes_on)};
                      next.insert(next.end(), decoded.state.begin(), decoded.state.end());
                      return next;
                    },
                    initial);
  outputs->tokens = Stacked(tokens);
  outputs->weights = Stacked(weights);
  return program;
}

namespace {

// The score of a hypothesis that doesn't exist. Ended hypotheses continue with what has it, too.
constexpr float kNever = -1e30f;

// What the steps of a search share. Hypothesis i of sentence s is row s · width + i.
class Beam {
 public:
  Beam(const Decoder& decoder, const BeamOptions& options)
      : options_(options),
        hypotheses_(HypothesesOf(decoder, options.width)),
        encoded_{.states = Repeat(decoder.encoded.states), .keys = Repeat(decoder.encoded.keys)},
        first_rows_(layers::Cumsum(decoder.ForEachSentence(1, DType::kInt64, 1.0),
                                   {.axis = 0, .exclusive = true}) *
                    Int64(options.width)) {}

  int64_t width() const { return options_.width; }
  float length_penalty() const { return options_.length_penalty; }
  // Returns what each hypothesis looks at: that of its sentence.
  const Encoded& encoded() const { return encoded_; }
  // Returns the first row of each sentence, int64 [sentences, 1].
  const Variable& first_rows() const { return first_rows_; }
  // Returns the numbers of all rows, int64 [rows].
  Variable Rows() const {
    std::vector<int64_t> places(static_cast<size_t>(width()));
    std::iota(places.begin(), places.end(), 0);
    return layers::Reshape(first_rows_ + layers::AssignValue({1, width()}, places), {-1});
  }
  // Returns x, with a row or a sequence for each sentence, with one for each hypothesis.
  Variable Repeat(const Variable& x) const { return layers::SequenceExpand(x, hypotheses_); }

 private:
  // Returns [rows, 1], whose sequences are the sentences. Nothing is fed that has such a LoD; that
  // of the windows of images, here of one number each, follows from their number.
  static Variable HypothesesOf(const Decoder& decoder, int64_t width) {
    const Variable image =
        layers::Reshape(decoder.ForEachSentence(width, DType::kFloat32, 0.0), {-1, 1, 1, width});
    return layers::Im2Sequence(image, {.kernels = {1, 1}});
  }

  const BeamOptions options_;
  const Variable hypotheses_;
  const Encoded encoded_;
  const Variable first_rows_;
};

// What a step knows of the hypotheses before it, a row for each.
struct Hypotheses {
  Variable token;   // the last one, int64
  Variable score;   // log(probability)
  Variable open;    // 1; 0 after the end
  Variable length;  // tokens, the end included
  Variables state;

  // Return what goes from step to step, and the opposite.
  Variables WithStep(const Variable& step) const {
    Variables all = {step, token, score, open, length};
    all.insert(all.end(), state.begin(), state.end());
    return all;
  }
  static Hypotheses Of(const Variables& all) {
    return {all[1], all[2], all[3], all[4], {all.begin() + 5, all.end()}};
  }
};

// Returns {first, others, others, …} as a row of `count` numbers.
Variable FirstAndOthers(int64_t count, float first, float others) {
  std::vector<float> row(static_cast<size_t>(count), others);
  row[0] = first;
  return layers::AssignValue({1, count}, row);
}

// Hypothesis 0 of a sentence is empty, and the others don't exist. They aren't open, so nothing but
// they themselves continues them.
Hypotheses FirstHypotheses(const Decoder& decoder, const Beam& beam) {
  const auto column = [](const Variable& x) { return layers::Reshape(x, {-1, 1}); };
  const auto rows = [&](float first, float others) {
    return column(decoder.ForEachSentence(beam.width(), DType::kFloat32, 0.0) +
                  FirstAndOthers(beam.width(), first, others));
  };
  Hypotheses first = {.token = column(decoder.ForEachSentence(beam.width(), DType::kInt64,
                                                              static_cast<double>(text::kBeginId))),
                      .score = rows(0, kNever),
                      .open = rows(1, 0),
                      .length = rows(0, 0),
                      .state = {}};
  for (const Variable& state : decoder.first_state) first.state.push_back(beam.Repeat(state));
  return first;
}

// Returns what ranks hypotheses.
Variable Ranked(const Beam& beam, const Variable& score, const Variable& length) {
  if (beam.length_penalty() == 0) return score;
  const Variable penalty = layers::Pow(layers::Scale(length, {.scale = 1.0f / 6, .bias = 5.0f / 6}),
                                       beam.length_penalty());
  // What doesn't exist stays behind all others, whatever the penalty.
  const Variable exists =
      layers::GreaterThan(score, layers::FillConstant({1}, DType::kFloat32, kNoHypothesis));
  return layers::Where(exists, score / penalty, score);
}

// Returns, for each hypothesis, 1 if it may become the best one of its sentence, or stay it: if it
// is open, and would be the best one with the most tokens, all of them certain.
Variable MayWin(const Beam& beam, const Hypotheses& hypotheses, const Variable& most) {
  const auto by_sentence = [&](const Variable& x) {
    return layers::Reshape(x, {-1, beam.width()});
  };
  const Variable now = by_sentence(Ranked(beam, hypotheses.score, hypotheses.length));
  const Variable best = layers::Slice(now, {.axes = {1}, .starts = {0}, .ends = {1}});
  const Variable in_the_end =
      by_sentence(Ranked(beam, hypotheses.score, layers::Cast(most, DType::kFloat32)));
  return layers::Cast(layers::GreaterEqual(in_the_end, best), DType::kFloat32) *
         by_sentence(hypotheses.open);
}

struct Selection {
  Hypotheses hypotheses;
  Variable parents;  // [rows], int64: the row that each continues
};

// Keeps the best continuations of each sentence, given the states after a step and
// log(probability) of each next token [rows, tokens].
Selection Select(const Beam& beam, const Hypotheses& before, const Variables& states,
                 const Variable& next) {
  // No others can be among the best.
  const int64_t count = std::min(beam.width(), next.dims()[1]);
  const layers::TopKResult best = layers::TopK(next, count);
  // After its end a hypothesis continues with kEndId alone, which is certain.
  const Variable ended = layers::Scale(before.open, {.scale = -1, .bias = 1});
  const Variable score =
      before.score + (best.values * before.open + ended * FirstAndOthers(count, 0, kNever));
  const Variable end = Int64(text::kEndId);
  const Variable token = (best.indices - end) * layers::Cast(before.open, DType::kInt64) + end;
  const Variable length = before.length + before.open;

  const Variable ranked = layers::Reshape(Ranked(beam, score, length), {-1, beam.width() * count});
  const Variable chosen = layers::TopK(ranked, beam.width()).indices;
  // Of all candidates, of which each row has `count`.
  const Variable candidates = layers::Reshape(chosen + beam.first_rows() * Int64(count), {-1});
  const Variable parents = layers::ElementwiseFloordiv(candidates, Int64(count));
  const auto of_candidates = [&](const Variable& x) {
    return layers::Gather(layers::Reshape(x, {-1, 1}), candidates);
  };
  Hypotheses after = {.token = of_candidates(token),
                      .score = of_candidates(score),
                      .open = {},
                      .length = layers::Gather(length, parents),
                      .state = {}};
  after.open = layers::Gather(before.open, parents) *
               layers::Cast(layers::NotEqual(after.token, end), DType::kFloat32);
  for (const Variable& state : states) after.state.push_back(layers::Gather(state, parents));
  return {.hypotheses = after, .parents = parents};
}

// Arrays with an element [rows] for each step.
struct Path {
  Variable tokens = layers::CreateArray(DType::kInt64);
  Variable parents = layers::CreateArray(DType::kInt64);  // rows of the step before

  void Write(const Variable& step, const Variable& token, const Variable& parent) const {
    layers::ArrayWrite(layers::Reshape(token, {-1}), step, tokens);
    layers::ArrayWrite(parent, step, parents);
  }
};

// Returns the paths that lead to these rows of the last step.
Path FollowBack(const Path& steps, const Variable& last_rows) {
  const Path followed;
  const Variable zero = Int64(0);
  layers::WhileLoop(
      [&](const Variables& v) { return layers::GreaterThan(v[0], zero); },
      [&](const Variables& v) {
        const Variable step = layers::Increment(layers::Assign(v[0]), -1.0f);
        const Variable token = layers::Gather(layers::ArrayRead(steps.tokens, step), v[1]);
        const Variable parent = layers::Gather(layers::ArrayRead(steps.parents, step), v[1]);
        followed.Write(step, token, parent);
        return Variables{step, parent};
      },
      {layers::ArrayLength(steps.tokens), last_rows});
  return followed;
}

}  // namespace

void CheckBeam(const BeamOptions& options) {
  CheckSizes("beam search", {{"width", options.width, 1, kWidestBeam}});
  SKIFF_ENFORCE(options.length_penalty >= 0 && options.length_penalty <= kLargestLengthPenalty,
                kInvalidArgument, "beam search: length_penalty = ", options.length_penalty,
                ", expected a number from 0 to ", kLargestLengthPenalty);
}

std::unique_ptr<Program> BuildBeamTranslator(const Seq2SeqOptions& options,
                                             const BeamOptions& beam_options,
                                             BeamTranslatorOutputs* outputs) {
  CheckBeam(beam_options);
  auto program = std::make_unique<Program>();
  Program startup;  // the parameters are those of a training
  const ProgramGuard guard(program.get(), &startup);
  const Decoder decoder(options);
  const Beam beam(decoder, beam_options);
  const Path steps;
  const Variable weights = layers::CreateArray(DType::kFloat32);
  const Hypotheses found = Hypotheses::Of(layers::WhileLoop(
      [&](const Variables& v) {
        return GoesOn(v[0], decoder.most, MayWin(beam, Hypotheses::Of(v), decoder.most));
      },
      [&](const Variables& v) {
        const Hypotheses before = Hypotheses::Of(v);
        const Variable word = decoder.network.Embed(layers::Reshape(before.token, {-1}));
        const Decoded decoded = decoder.network.Step(word, before.state, beam.encoded());
        const Variable next = layers::LogSoftmax(decoder.network.Scores(decoded.outputs, word));
        const Selection selection = Select(beam, before, decoded.state, next);
        steps.Write(v[0], selection.hypotheses.token, selection.parents);
        layers::ArrayWrite(layers::Reshape(decoded.weights, {-1}), v[0], weights);
        return selection.hypotheses.WithStep(Next(v[0]));
      },
      FirstHypotheses(decoder, beam).WithStep(Int64(0))));
  const Path followed = FollowBack(steps, beam.Rows());
  outputs->tokens = Stacked(followed.tokens);
  outputs->scores = layers::Reshape(Ranked(beam, found.score, found.length), {-1}).name();
  outputs->parents = Stacked(followed.parents);
  outputs->weights = Stacked(weights);
  return program;
}

}  // namespace skiff::models
