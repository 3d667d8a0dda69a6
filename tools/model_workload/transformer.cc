#include "tools/model_workload/transformer.h"

#include <cmath>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layer_call.h"

namespace skiff {
namespace {

Variable Rows(const Variable& x, int64_t width) { return layers::Reshape(x, {-1, width}); }

// [N, L, W] -> [N, heads, L, W / heads]
Variable SplitHeads(const Variable& x, const TransformerOptions& options) {
  const int64_t head_width = options.width / options.heads;
  const Variable heads = layers::Reshape(x, {0, options.length, options.heads, head_width});
  return layers::Transpose(heads, {0, 2, 1, 3});
}

Variable Dense(const Variable& x, int64_t size, const std::string& act = "") {
  return layers::Fc(x, size, {.num_flatten_dims = 2, .act = act});
}

Variable Norm(const Variable& x) { return layers::LayerNorm(x, {.begin_norm_axis = 2}); }

Variable Attention(const Variable& x, const TransformerOptions& options) {
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(options.width / options.heads)));
  const Variable query = SplitHeads(Dense(x, options.width), options);
  const Variable key = SplitHeads(Dense(x, options.width), options);
  const Variable value = SplitHeads(Dense(x, options.width), options);
  // Scaling the query is cheaper than scaling the scores: [L, W] instead of [L, L] per head.
  const Variable scores =
      layers::MatMul(layers::Scale(query, {.scale = scale}), key, {.transpose_y = true});
  const Variable mixed =
      layers::Transpose(layers::MatMul(layers::Softmax(scores), value), {0, 2, 1, 3});
  const Variable joined = layers::Reshape(
      mixed, {0, static_cast<int32_t>(options.length), static_cast<int32_t>(options.width)});
  return Dense(joined, options.width);
}

// The normalisation comes after each addition (post-norm), as in the paper. 16 parameter tensors:
// four dense layers of attention and two of the feed-forward part with a weight and a bias each,
// and two normalisations with a scale and a bias.
Variable EncoderLayer(const Variable& x, const TransformerOptions& options) {
  const Variable attended = Norm(x + Attention(x, options));
  const Variable hidden = Dense(attended, 4 * options.width, "gelu");
  return Norm(attended + Dense(hidden, options.width));
}

Tensor RandomIds(const Shape& shape, int64_t limit, uint64_t seed) {
  Tensor ids(shape, DType::kInt64);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.data<int64_t>()[i] = philox.At(static_cast<uint64_t>(i))[0] % limit;
  }
  return ids;
}

}  // namespace

BuiltTransformer BuildTransformer(const TransformerOptions& options) {
  constexpr int64_t kSentences = 4;
  const int64_t length = options.length;
  const auto input = [&](const char* name) {
    return layers::Data(name, {-1, length}, DType::kInt64);
  };
  const auto embed = [&](const Variable& ids, int64_t rows, const char* name) {
    return layers::Embedding(ids,
                             {.rows = rows, .width = options.width, .param_attr = {.name = name}});
  };
  const Variable words = input("words");
  Variable x = embed(words, options.words, "word_embedding") +
               embed(input("positions"), length, "position_embedding") +
               embed(input("sentences"), kSentences, "sentence_embedding");
  x = Norm(x);
  for (int64_t i = 0; i < options.layers; ++i) x = EncoderLayer(x, options);

  const Variable masked = layers::Data("masked_words", {-1, 1}, DType::kInt64);
  Variable head = layers::Fc(Rows(x, options.width), options.width, {.act = "gelu"});
  head = layers::LayerNorm(head);
  // The output layer shares the table of the word embeddings, so it has no weight of its own, only
  // a bias.
  const Variable table(DefaultMainProgram().root(), "word_embedding");
  const LayerCall call("word_head", "", std::source_location::current());
  const Variable word_logits = call.AddBias(layers::MatMul(head, table, {.transpose_y = true}),
                                            ParamAttr{}, /*begin=*/1, /*end=*/2);
  const Variable word_loss = layers::Mean(layers::SoftmaxWithCrossEntropy(word_logits, masked));

  const Variable follows = layers::Data("follows", {-1, 1}, DType::kInt64);
  const Variable first =
      Rows(layers::Slice(x, {.axes = {1}, .starts = {0}, .ends = {1}}), options.width);
  const Variable pooled = layers::Fc(first, options.width, {.act = "tanh"});
  const Variable sentence_loss =
      layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(pooled, 2), follows));

  const Shape ids{options.batch_size, length};
  return {.loss = word_loss + sentence_loss,
          .feeds = {{"words", RandomIds(ids, options.words, options.seed)},
                    {"positions", RandomIds(ids, length, options.seed + 1)},
                    {"sentences", RandomIds(ids, kSentences, options.seed + 2)},
                    {"masked_words",
                     RandomIds({options.batch_size * length, 1}, options.words, options.seed + 3)},
                    {"follows", RandomIds({options.batch_size, 1}, 2, options.seed + 4)}}};
}

}  // namespace skiff
