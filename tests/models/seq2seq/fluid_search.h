// The beam search of Fluid's translation programs, for a translation network.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/beam_search.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/ragged.h"
#include "framework/text/marks.h"
#include "framework/text/pair_reader.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

// A program with the ops beam_search and beam_search_decode: hypotheses are rows of ragged
// variables, as many as there are.
class FluidSearch {
 public:
  struct Hypothesis {
    std::vector<int64_t> tokens;  // up to the end, if there is one
    float score;                  // log(probability)
  };

  // Of at most `steps` steps, with the network's parameters, as the programs of trainings name
  // them.
  FluidSearch(const Seq2SeqOptions& options, int64_t width, int64_t steps) {
    Program startup;
    const ProgramGuard guard(&program_, &startup);
    const layers::BeamSearchOptions search = {.beam_size = width, .end_id = text::kEndId};
    const Seq2SeqNetwork layers_of(options);
    const Encoded encoded = layers_of.Encode(
        layers::Data(text::PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1}));
    const Variable step = layers::FillConstant({1}, DType::kInt64, 0);
    const Variable most = layers::FillConstant({1}, DType::kInt64, static_cast<double>(steps));
    const Variable ids = layers::CreateArray(DType::kInt64);
    const Variable scores = layers::CreateArray(DType::kFloat32);
    layers::ArrayWrite(layers::Data("ids", {-1, 1}, DType::kInt64, {.lod_level = 2}), step, ids);
    layers::ArrayWrite(layers::Data("scores", {-1, 1}, DType::kFloat32, {.lod_level = 2}), step,
                       scores);
    // What a hypothesis looks at goes with its state.
    Variables first = layers_of.FirstState(encoded);
    first.push_back(encoded.states);
    first.push_back(encoded.keys);
    Variables arrays;
    for (const Variable& x : first) {
      arrays.push_back(layers::CreateArray(DType::kFloat32));
      layers::ArrayWrite(x, step, arrays.back());
    }
    const Variable goes_on = layers::LessThan(step, most);
    layers::While loop(goes_on);
    loop.Body([&] {
      const Variable last = layers::ArrayRead(ids, step);
      const Variable score = layers::ArrayRead(scores, step);
      Variables before;
      for (const Variable& array : arrays) {
        before.push_back(layers::SequenceExpand(layers::ArrayRead(array, step), score));
      }
      const Encoded looked_at = {.states = before[before.size() - 2], .keys = before.back()};
      before.resize(before.size() - 2);
      const Variable word = layers_of.Embed(layers::Reshape(last, {-1}));
      const Decoded decoded = layers_of.Step(word, before, looked_at);
      const Variable next = layers::LogSoftmax(layers_of.Scores(decoded.outputs, word));
      const Variable total = layers::ElementwiseAdd(layers::LoDReset(next, score),
                                                    layers::Reshape(score, {-1}), {.axis = 0});
      const layers::BeamSelection selected = layers::BeamSearch(last, score, {}, total, search);
      layers::Increment(step);
      Variables after = decoded.state;
      after.push_back(looked_at.states);
      after.push_back(looked_at.keys);
      for (size_t i = 0; i < after.size(); ++i) layers::ArrayWrite(after[i], step, arrays[i]);
      layers::ArrayWrite(selected.ids, step, ids);
      layers::ArrayWrite(selected.scores, step, scores);
      layers::AssignTo(layers::LogicalAnd(layers::LessThan(step, most),
                                          layers::LogicalNot(layers::IsEmpty(selected.ids))),
                       goes_on);
    });
    const layers::BeamSentences found = layers::BeamSearchDecode(ids, scores, search);
    fetches_ = {found.ids, found.scores};
  }

  const Program& program() const { return program_; }
  // The names of the hypotheses' tokens and of their scores, ragged: hypotheses of sentences.
  const FetchList& fetches() const { return fetches_; }

  static FeedList Feeds(const std::vector<std::vector<int64_t>>& sources) {
    std::vector<uint64_t> one_each(sources.size() + 1);
    std::iota(one_each.begin(), one_each.end(), 0);
    const int64_t count = std::ssize(sources);
    Tensor ids =
        Tensor::FromValues({count, 1}, std::vector<int64_t>(sources.size(), text::kBeginId));
    Tensor scores = Tensor::FromValues({count, 1}, std::vector(sources.size(), 0.0f));
    ids.set_lod({one_each, one_each});
    scores.set_lod({one_each, one_each});
    return {{text::PairReader::kSource, RaggedTensor<int64_t>(sources)},
            {"ids", ids},
            {"scores", scores}};
  }

  // Returns the hypotheses of each sentence, the best first, of the fetches.
  static std::vector<std::vector<Hypothesis>> Hypotheses(const Tensor& ids, const Tensor& scores) {
    const LoD& lod = ids.lod();
    std::vector<std::vector<Hypothesis>> translations(lod[0].size() - 1);
    for (size_t s = 0; s < translations.size(); ++s) {
      for (uint64_t i = lod[0][s]; i < lod[0][s + 1]; ++i) {
        Hypothesis& hypothesis = translations[s].emplace_back();
        const auto tokens = ids.values<int64_t>();
        // The first one is kBeginId.
        hypothesis.tokens.assign(tokens.begin() + static_cast<int64_t>(lod[1][i]) + 1,
                                 tokens.begin() + static_cast<int64_t>(lod[1][i + 1]));
        hypothesis.score = scores.values<float>()[lod[1][i + 1] - 1];
      }
    }
    return translations;
  }

 private:
  Program program_;
  FetchList fetches_;
};

}  // namespace skiff::models
