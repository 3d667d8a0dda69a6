// The settings of a layer's parameter.
//
// A layer makes its parameters. To share a parameter between layers, make the parameter first:
//
//   const Variable w = layers::CreateParameter({256, 256});
//   x = layers::Fc(x, 256, {.param_attr = {.shared = w}});
//   x = layers::Fc(x, 256, {.param_attr = {.shared = w}});
//
// Layers that give the same name share the parameter as well.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include "framework/builder/initializer.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"

namespace skiff {

struct ParamAttr {
  // The parameter to use instead of a new one. Its own settings hold: the layer throws an Error
  // (kInvalidArgument) if other settings are set here, or if the layer needs other dims or another
  // dtype.
  Variable shared = {};
  std::string name = {};         // empty: <layer>.w_<n> or <layer>.b_<n>
  Initializer initializer = {};  // undefined: the layer's default
  float learning_rate = 1.0f;    // multiplies the optimizer's
  Regularizer regularizer = {};  // instead of the optimizer's
  bool trainable = true;         // false: no gradient, no update
  bool need_clip = true;         // false: gradient clipping leaves it alone, and doesn't count it
  bool do_model_average = true;  // false: averages of parameters leave it out
};

// The settings of a parameter that a layer can do without, such as a bias: `{}` is the parameter
// with default settings, `false` is no parameter. std::nullopt means the same as `false`.
//
//   layers::Fc(x, 256, {.bias_attr = ParamAttr{.learning_rate = 2.0f}});
//   layers::Fc(x, 256, {.bias_attr = false});
class OptionalParamAttr {
 public:
  // NOLINTBEGIN(google-explicit-constructor): they make the initializers above work.
  OptionalParamAttr() = default;
  OptionalParamAttr(ParamAttr attr) : attr_(std::move(attr)) {}
  OptionalParamAttr(std::nullopt_t) : has_value_(false) {}
  // Exactly a bool: pointers convert to one.
  template <std::same_as<bool> Bool>
  OptionalParamAttr(Bool has_value) : has_value_(has_value) {}
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }
  // The settings; only if there is a parameter.
  ParamAttr& operator*() { return attr_; }
  const ParamAttr& operator*() const { return attr_; }
  ParamAttr* operator->() { return &attr_; }
  const ParamAttr* operator->() const { return &attr_; }

 private:
  ParamAttr attr_;
  bool has_value_ = true;
};

using BiasAttr = OptionalParamAttr;

}  // namespace skiff
