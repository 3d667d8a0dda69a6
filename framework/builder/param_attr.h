// The settings of a layer's parameter.
//
// A layer makes its parameters. To share one between layers, make it first, and give it to each:
//
//   const Variable w = layers::CreateParameter({256, 256});
//   x = layers::Fc(x, 256, {.param_attr = {.shared = w}});
//   x = layers::Fc(x, 256, {.param_attr = {.shared = w}});
//
// Layers that give the same name share the parameter as well.
#pragma once

#include <optional>
#include <string>

#include "framework/builder/initializer.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"

namespace skiff {

struct ParamAttr {
  // The parameter to use instead of a new one. It keeps its own settings: the layer throws an Error
  // (kInvalidArgument) if others are set here, or if dims or dtype aren't those that it needs.
  Variable shared = {};
  std::string name;              // empty: <layer>.w_<n> or <layer>.b_<n>
  Initializer initializer;       // undefined: the layer's default
  float learning_rate = 1.0f;    // multiplies the optimizer's
  Regularizer regularizer;       // instead of the optimizer's
  bool trainable = true;         // false: no gradient, no update
  bool need_clip = true;         // false: gradient clipping leaves it alone, and doesn't count it
  bool do_model_average = true;  // false: averages of parameters leave it out
};

// The bias of a layer: an attribute, or std::nullopt for a layer without a bias.
using BiasAttr = std::optional<ParamAttr>;

// Keys of the settings in a parameter's Var::attrs; set only where they differ from the default.
inline constexpr const char* kRegularizerVarAttr = "regularizer";
inline constexpr const char* kNeedClipVarAttr = "need_clip";
inline constexpr const char* kDoModelAverageVarAttr = "do_model_average";

}  // namespace skiff
