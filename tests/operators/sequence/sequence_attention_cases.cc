#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

// Context and AttentionWeights of one sequence.
struct AttentionOfSequence {
  Row context;
  Row weights;
};

AttentionOfSequence AttendToSequence(const Row& query, const Rows& encoded, const Rows& keys,
                                     const Row& v, size_t width) {
  AttentionOfSequence attention{.context = Row(width), .weights = {}};
  double sum = 0;
  for (const Row& key : keys) {
    double score = 0;
    for (size_t i = 0; i < key.size(); ++i)
      score += v.empty() ? query[i] * key[i] : v[i] * std::tanh(query[i] + key[i]);
    attention.weights.push_back(std::exp(score));
    sum += attention.weights.back();
  }
  for (size_t s = 0; s < encoded.size(); ++s) {
    attention.weights[s] /= sum;
    for (size_t i = 0; i < width; ++i) attention.context[i] += attention.weights[s] * encoded[s][i];
  }
  return attention;
}

Arrays SequenceAttentionReference(const Arrays& inputs) {
  const Array& encoded = inputs.at("Encoded")[0];
  const Rows queries = RowsOf(inputs.at("Query")[0]);
  const std::vector<Rows> sequences = SequencesOf(encoded);
  // The keys need not be ragged.
  Array ragged_keys = inputs.at("Keys")[0];
  ragged_keys.lod = encoded.lod;
  const std::vector<Rows> keys = SequencesOf(ragged_keys);
  Row v;
  if (inputs.contains("ScoreWeight")) v = inputs.at("ScoreWeight")[0].values;
  Rows contexts, weights;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const AttentionOfSequence attention = AttendToSequence(queries[i], sequences[i], keys[i], v,
                                                           static_cast<size_t>(encoded.shape[1]));
    contexts.push_back(attention.context);
    for (const double weight : attention.weights) weights.push_back({weight});
  }
  Array column = encoded;
  column.shape[1] = 1;
  Array of_tokens = Stacked(weights, column);
  of_tokens.lod = encoded.lod;
  return {{"Context", {Stacked(contexts, encoded)}}, {"AttentionWeights", {of_tokens}}};
}

OpCase SequenceAttentionCase(const std::string& score, const Lengths& lengths, int64_t width,
                             int64_t key_width) {
  const auto sequences = static_cast<int64_t>(lengths.each.size());
  OpCase op_case{
      .name = "",
      .type = "sequence_attention",
      .inputs = {{"Query", {Uniform({sequences, key_width}, 1)}},
                 {"Encoded", {Ragged(Uniform({lengths.rows(), width}, 2), lengths.each)}},
                 {"Keys", {Ragged(Uniform({lengths.rows(), key_width}, 3), lengths.each)}}},
      .attrs = {{"score", score}},
      .reference = SequenceAttentionReference,
      .outputs = {{"Context", 1}, {"AttentionWeights", 1}},
      .gradients = {"Query", "Encoded", "Keys"},
      .loss_outputs = {"Context", "AttentionWeights"}};
  if (score == "additive") {
    op_case.inputs["ScoreWeight"] = {Uniform({key_width, 1}, 4)};
    op_case.gradients.emplace_back("ScoreWeight");
  }
  return op_case;
}

}  // namespace

void AddSequenceAttentionCases(CaseList& cases) {
  for (const std::string score : {"additive", "dot"}) {
    const auto add = [&](const std::string& name, OpCase made) {
      cases.push_back(std::move(made));
      cases.back().name = score + "_" + name;
    };
    for (const Lengths& lengths : TestedLengths())
      add(lengths.name, SequenceAttentionCase(score, lengths, 4, 3));
    const Lengths unequal{.name = "", .each = {3, 0, 1, 5}};
    // Whole vectors and a rest, of every instruction set.
    add("wide", SequenceAttentionCase(score, unequal, 83, 101));
    // More columns than a block of threads takes at once, and more tokens than it has warps.
    add("wider", SequenceAttentionCase(score, {.name = "", .each = {9, 2}}, 300, 270));
    add("narrow", SequenceAttentionCase(score, unequal, 1, 1));
    // More sequences than the gradient of ScoreWeight adds up at a time.
    add("many",
        SequenceAttentionCase(score, {.name = "", .each = std::vector<int64_t>(150, 2)}, 2, 3));
    OpCase context_alone = SequenceAttentionCase(score, unequal, 2, 5);
    context_alone.loss_outputs = {"Context"};
    add("context_alone", std::move(context_alone));
    OpCase plain_keys = SequenceAttentionCase(score, unequal, 2, 5);
    plain_keys.inputs["Keys"][0].lod.clear();
    add("keys_without_lod", std::move(plain_keys));
    add("benchmark",
        SequenceAttentionCase(score, {.name = "", .each = std::vector<int64_t>(32, 30)}, 512, 512));
    cases.back().benchmark_only = true;
  }
}

}  // namespace skiff::harness
