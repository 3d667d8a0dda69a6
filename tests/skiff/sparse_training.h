// Training of a small table of words whose gradients are selected rows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff::sparse_training {

inline constexpr int64_t kWords = 23;

struct Spec {
  std::string name;
  std::function<std::unique_ptr<optimizer::Optimizer>()> make;
};

template <class Made, class Options>
Spec SpecOf(const std::string& name, Options options) {
  return {name, [options] { return std::make_unique<Made>(options); }};
}

// Every optimizer, and ways to clip.
inline std::vector<Spec> Specs() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of them
  // Large epsilons: rows without a gradient have states of 0, which rounding must not decide about.
  return {
      SpecOf<Sgd>("sgd", SgdOptions{.learning_rate = 0.1}),
      SpecOf<Sgd>("decayed_sgd",
                  SgdOptions{.learning_rate = 0.1, .regularization = L2Decay(0.01f)}),
      SpecOf<Sgd>("clipped_sgd", SgdOptions{.learning_rate = 0.1, .clip = ClipByGlobalNorm(0.1f)}),
      SpecOf<Sgd>("sgd_by_norm", SgdOptions{.learning_rate = 0.1, .clip = ClipByNorm(0.1f)}),
      SpecOf<Sgd>("sgd_by_value", SgdOptions{.learning_rate = 0.1, .clip = ClipByValue(0.01f)}),
      SpecOf<Momentum>("momentum", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true}),
      SpecOf<LarsMomentum>("lars", LarsMomentumOptions{.learning_rate = 0.1}),
      SpecOf<Adam>("adam", AdamOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<AdamW>("adamw", AdamWOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Adamax>("adamax", AdamaxOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Adagrad>("adagrad", AdagradOptions{.learning_rate = 0.1, .epsilon = 1e-2f}),
      SpecOf<DecayedAdagrad>("decayed_adagrad",
                             DecayedAdagradOptions{.learning_rate = 0.1, .epsilon = 1e-2f}),
      SpecOf<Adadelta>("adadelta", AdadeltaOptions{.learning_rate = 1.0, .epsilon = 1e-2f}),
      SpecOf<RmsProp>("rmsprop", RmsPropOptions{.learning_rate = 0.01, .epsilon = 1e-2f}),
      SpecOf<Lamb>("lamb", LambOptions{.learning_rate = 0.01, .epsilon = 1e-2f})};
}

// A table of words is looked up twice, so gradients add up, and words repeat.
inline Variable Loss(bool is_sparse) {
  const auto embed = [&](const Variable& ids) {
    return layers::Embedding(
        ids, {.rows = kWords, .width = 5, .is_sparse = is_sparse, .param_attr = {.name = "table"}});
  };
  const Variable left = layers::Data("left", {-1}, DType::kInt64);
  const Variable right = layers::Data("right", {-1}, DType::kInt64);
  const Variable x = layers::Concat({embed(left), embed(right)}, 1);
  return layers::Mean(layers::Square(layers::Fc(x, 3, {.act = "tanh"})));
}

inline FeedList Batch(int64_t i) {
  return {{"left", Tensor::FromValues<int64_t>({4}, {i, 2, 2, 7})},
          {"right", Tensor::FromValues<int64_t>({4}, {2, 19, i + 3, 7})}};
}

}  // namespace skiff::sparse_training
