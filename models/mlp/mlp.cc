#include "models/mlp/mlp.h"

#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"
#include "models/common/network_sizes.h"

namespace skiff::models {

Variable Mlp(const Variable& input, const MlpOptions& options) {
  CheckSizes("perceptron", {{"hidden_layers", options.hidden_layers, 0, kMostLayers},
                            {"hidden_units", options.hidden_units}});
  Variable x = input;
  for (int32_t layer = 0; layer < options.hidden_layers; ++layer) {
    x = layers::Fc(x, options.hidden_units,
                   {.num_flatten_dims = 1,
                    .param_attr = {.initializer = initializer::Msra({.uniform = false})},
                    .act = "relu"});
    if (options.dropout != 0) x = layers::Dropout(x, options.dropout);
  }
  return layers::Fc(x, options.classes, {.num_flatten_dims = 1});
}

}  // namespace skiff::models
