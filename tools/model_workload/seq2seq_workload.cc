#include "tools/model_workload/seq2seq_workload.h"

#include <optional>
#include <span>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/philox.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

constexpr int64_t kWidth = 512;  // of embeddings and states
constexpr int64_t kTokens = 8000;

Variable Words(const Variable& ids, const std::string& name) {
  return layers::Embedding(ids, {.rows = kTokens, .width = kWidth, .param_attr = {.name = name}});
}

Variable Product(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(x, size, {.param_attr = {.name = name}, .bias_attr = false});
}

Variable Encode(const Variable& ids, bool is_lstm) {
  const Variable words = Words(ids, "source.table");
  const Variable product = Product(words, (is_lstm ? 4 : 3) * kWidth, "encoder.in.w");
  if (!is_lstm) return layers::DynamicGru(product, {.size = kWidth});
  return layers::DynamicLstm(product, {.size = kWidth, .use_peepholes = false}).hidden;
}

// The names of the parameters of both builds.
const ParamAttr kInput = {.name = "decoder.in.w"};
const ParamAttr kHidden = {.name = "decoder.w"};
const ParamAttr kBias = {.name = "decoder.b"};
const ParamAttr kQuery = {.name = "query.w"};
const ParamAttr kQueryBias = {.name = "query.b"};
const ParamAttr kScore = {.name = "score.w"};

Variable DecodeByOp(const Seq2SeqWorkload& workload, const Variable& words, const Variable& encoded,
                    const Variable& keys, const Variable& first) {
  return layers::AttentionDecoder(words, encoded, keys,
                                  {.size = kWidth,
                                   .cell = workload.cell,
                                   .score = workload.score,
                                   .initial_hidden = first,
                                   .param_attr = kInput,
                                   .hidden_attr = kHidden,
                                   .bias_attr = kBias,
                                   .query_attr = kQuery,
                                   .query_bias_attr = kQueryBias,
                                   .score_attr = kScore})
      .hidden;
}

Variable Attend(const std::string& score, const Variable& state, const Variable& encoded,
                const Variable& keys) {
  const Variable query = layers::Fc(state, kWidth, {.param_attr = kQuery, .bias_attr = kQueryBias});
  return layers::SequenceAttention(query, keys, encoded, {.score = score, .score_attr = kScore})
      .context;
}

Variable DecodeByLayers(const Seq2SeqWorkload& workload, const Variable& words,
                        const Variable& encoded, const Variable& keys, const Variable& first) {
  const bool is_lstm = workload.cell == "lstm";
  layers::DynamicRnn decoder;
  decoder.Body([&] {
    const Variable word = decoder.StepInput(words);
    const Variable before = decoder.Memory(first);
    const Variable context =
        Attend(workload.score, before, decoder.StaticInput(encoded), decoder.StaticInput(keys));
    const Variable input = layers::Concat({word, context}, 1);
    Variable state;
    if (is_lstm) {
      const Variable cell_before = decoder.Memory({.shape = {kWidth}});
      const layers::LstmStates next =
          layers::LstmUnit(input, before, cell_before, {.param_attr = kInput, .bias_attr = kBias});
      decoder.UpdateMemory(cell_before, next.cell);
      state = next.hidden;
    } else {
      state = layers::GruUnit(Product(input, 3 * kWidth, kInput.name), before,
                              {.param_attr = kHidden, .bias_attr = kBias});
    }
    decoder.UpdateMemory(before, state);
    decoder.StepOutput(state);
  });
  return decoder.Outputs()[0];
}

Tensor RandomTokens(const std::vector<int64_t>& lengths, uint64_t seed) {
  const LoD lod = {OffsetsOf(lengths)};
  Tensor ids({static_cast<int64_t>(lod[0].back())}, DType::kInt64);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < ids.element_count(); ++i)
    ids.data<int64_t>()[i] = philox.At(static_cast<uint64_t>(i))[0] % kTokens;
  ids.set_lod(lod);
  return ids;
}

FeedList Batch(std::span<const PairLengths> pairs, uint64_t seed) {
  std::vector<int64_t> sources, targets;
  for (const PairLengths& pair : pairs) {
    SKIFF_ENFORCE(pair.source > 0 && pair.target > 0, kInvalidArgument, "a pair of ", pair.source,
                  " and ", pair.target, " tokens, expected at least 1 on each side");
    sources.push_back(pair.source);
    targets.push_back(pair.target);
  }
  const Tensor next = RandomTokens(targets, seed + 2);
  return {{"source", RandomTokens(sources, seed)},
          {"given", RandomTokens(targets, seed + 1)},
          {"label", next.Reshaped({next.element_count(), 1})}};
}

}  // namespace

const std::vector<Seq2SeqWorkload>& Seq2SeqWorkloads() {
  static const std::vector<Seq2SeqWorkload> kWorkloads = {
      {.name = "seq2seq_gru_bahdanau", .cell = "gru", .score = "additive"},
      {.name = "seq2seq_lstm_luong", .cell = "lstm", .score = "dot"}};
  return kWorkloads;
}

BuiltSeq2Seq BuildSeq2SeqWorkload(const Seq2SeqWorkload& workload, const std::string& decoder,
                                  int64_t batch_size, const std::vector<PairLengths>& pairs,
                                  uint64_t seed) {
  SKIFF_ENFORCE(decoder == "attention_decoder" || decoder == "dynamic_rnn", kInvalidArgument,
                "decoder = \"", decoder, "\", expected attention_decoder or dynamic_rnn");
  const auto size = static_cast<size_t>(batch_size);
  SKIFF_ENFORCE(pairs.size() >= size, kInvalidArgument, pairs.size(),
                " pairs of sentences, expected at least a batch of ", batch_size);
  const Variable source = layers::Data("source", {-1}, DType::kInt64, {.lod_level = 1});
  const Variable given = layers::Data("given", {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable encoded = Encode(source, workload.cell == "lstm");
  const Variable keys = Product(encoded, kWidth, "keys.w");
  const Variable first = layers::SequencePool(encoded, "LAST");
  const Variable words = Words(given, "target.table");
  const Variable states = decoder == "dynamic_rnn"
                              ? DecodeByLayers(workload, words, encoded, keys, first)
                              : DecodeByOp(workload, words, encoded, keys, first);
  std::vector<FeedList> batches;
  for (size_t i = 0; i + size <= pairs.size(); i += size)
    batches.push_back(Batch(std::span(pairs).subspan(i, size), seed));
  const Variable scores =
      layers::Fc(states, kTokens,
                 {.param_attr = {.name = "scores.w"}, .bias_attr = ParamAttr{.name = "scores.b"}});
  return {.loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label)),
          .batches = std::move(batches)};
}

}  // namespace skiff
