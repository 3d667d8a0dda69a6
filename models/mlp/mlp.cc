#include "models/mlp/mlp.h"

#include "framework/base/error.h"
#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"

namespace skiff::models {

Variable Mlp(const Variable& input, const MlpOptions& options) {
  SKIFF_ENFORCE(options.hidden_layers >= 0, kInvalidArgument, "a perceptron of ",
                options.hidden_layers, " hidden layers: expected no negative number");
  SKIFF_ENFORCE(options.hidden_units >= 1, kInvalidArgument, "hidden layers of ",
                options.hidden_units, " units: expected at least 1");
  Variable x = input;
  for (int32_t layer = 0; layer < options.hidden_layers; ++layer) {
    x = layers::Fc(
        x, options.hidden_units,
        {.param_attr = {.initializer = initializer::Msra({.uniform = false})}, .act = "relu"});
    // upscale_in_train: training divides by the share that is kept, so inference needs no scaling.
    if (options.dropout != 0) {
      x = layers::Dropout(x, options.dropout, {.implementation = "upscale_in_train"});
    }
  }
  return layers::Fc(x, options.classes);
}

}  // namespace skiff::models
