#include "models/ernie/ernie.h"

#include <source_location>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/transformer_encoder.h"
#include "framework/builder/variable_operators.h"

namespace skiff::models {
namespace {

constexpr const char* kWordEmbedding = "word_embedding";

// The layers' name of the activation that published configurations call options.act.
std::string ActLayer(const ErnieOptions& options) {
  return options.act == "gelu_new" ? "gelu_tanh" : options.act;
}

class Builder {
 public:
  explicit Builder(const ErnieOptions& options) : options_(options) {}

  ParamAttr Weight(const std::string& name) const {
    return {.name = name,
            .initializer = initializer::TruncatedNormal({.stddev = options_.initializer_range})};
  }

  Variable Embed(const Variable& ids, int64_t rows, const std::string& name) const {
    return layers::Embedding(ids, {.rows = rows,
                                   .width = options_.hidden,
                                   .param_attr = Weight(name),
                                   .dtype = options_.dtype});
  }

  // x · W + b over the last dim.
  Variable Dense(const Variable& x, int64_t size, const std::string& name,
                 const std::string& act = "") const {
    return layers::Fc(x, size,
                      {.param_attr = Weight(name + ".w_0"),
                       .bias_attr = ParamAttr{.name = name + ".b_0"},
                       .act = act});
  }

  Variable Norm(const Variable& x, const std::string& name) const {
    return layers::LayerNorm(x, {.epsilon = options_.layer_norm_eps,
                                 .param_attr = ParamAttr{.name = name + "_layer_norm_scale"},
                                 .bias_attr = ParamAttr{.name = name + "_layer_norm_bias"}});
  }

  static Variable Drop(const Variable& x, float probability) {
    if (probability == 0) return x;
    return layers::Dropout(x, probability);
  }

 private:
  const ErnieOptions& options_;
};

}  // namespace

ErnieInputs ErnieFeeds(const ErnieOptions& options, int64_t length) {
  CheckErnieOptions(options);
  SKIFF_ENFORCE(length >= 1 && length <= options.positions, kInvalidArgument,
                "ERNIE: sequences of length ", length, ": expected 1 to the ", options.positions,
                " positions that the network has");
  const auto ids = [&](const char* name) {
    return layers::Data(name, {-1, length}, DType::kInt64);
  };
  return {.token_ids = ids("token_ids"),
          .sentence_ids = ids("sentence_ids"),
          .position_ids = ids("position_ids"),
          .task_ids = ids("task_ids"),
          .input_mask = layers::Data("input_mask", {-1, length}, options.dtype)};
}

std::vector<std::string> InputNames(const ErnieInputs& inputs, const ErnieOptions& options) {
  std::vector<std::string> names = {inputs.token_ids.name(), inputs.sentence_ids.name(),
                                    inputs.position_ids.name(), inputs.input_mask.name()};
  if (options.tasks > 0) names.push_back(inputs.task_ids.name());
  return names;
}

Variable ErnieEncoder(const ErnieInputs& inputs, const ErnieOptions& options) {
  CheckErnieOptions(options);
  const Builder build(options);
  Variable x = build.Embed(inputs.token_ids, options.vocabulary, kWordEmbedding) +
               build.Embed(inputs.position_ids, options.positions, "pos_embedding") +
               build.Embed(inputs.sentence_ids, options.sentences, "sent_embedding");
  if (options.tasks > 0) x = x + build.Embed(inputs.task_ids, options.tasks, "task_embedding");
  x = Builder::Drop(build.Norm(x, "pre_encoder"), options.dropout);
  return layers::TransformerEncoder(x, {.layers = options.layers,
                                        .heads = options.heads,
                                        .feed_forward = options.feed_forward,
                                        .act = ActLayer(options),
                                        .dropout = options.dropout,
                                        .attention_dropout = options.attention_dropout,
                                        .mask = layers::PaddingMask(inputs.input_mask),
                                        .epsilon = options.layer_norm_eps,
                                        .param_attr = build.Weight(""),
                                        .name = "encoder"});
}

Variable ErniePool(const Variable& encoded, const ErnieOptions& options) {
  const Variable first = layers::Slice(encoded, {.axes = {1}, .starts = {0}, .ends = {1}});
  return Builder(options).Dense(layers::Reshape(first, {-1, options.hidden}), options.hidden,
                                kErniePooler, "tanh");
}

Variable ErnieWordScores(const Variable& encoded, const Variable& places,
                         const ErnieOptions& options) {
  const Builder build(options);
  const Variable rows = layers::Reshape(encoded, {-1, options.hidden});
  const Variable chosen = layers::Gather(rows, places);
  const Variable hidden = build.Norm(
      build.Dense(chosen, options.hidden, "mask_lm_trans_fc", ActLayer(options)), "mask_lm_trans");
  const Variable table(DefaultMainProgram().root(), kWordEmbedding);
  const LayerCall call("mask_lm_out_fc", "mask_lm_out_fc", std::source_location::current());
  return call.AddBias(layers::MatMul(hidden, table, {.transpose_y = true}),
                      ParamAttr{.name = "mask_lm_out_fc.b_0"}, /*begin=*/1, /*end=*/2);
}

Variable ErnieSequenceScores(const Variable& pooled, int64_t classes, const std::string& name,
                             const ErnieOptions& options) {
  SKIFF_ENFORCE(classes >= 2, kInvalidArgument, "ERNIE: ", classes,
                " classes of sequences: expected at least 2");
  return Builder(options).Dense(Builder::Drop(pooled, options.dropout), classes, name);
}

}  // namespace skiff::models
