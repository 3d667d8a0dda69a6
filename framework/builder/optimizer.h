// Optimizers: from a loss to the ops that train its parameters.
//
// Minimize appends the gradient ops (framework/autodiff), then, with the role Optimize and the
// parameters in the order of their names: gradient clipping, regularization, and one update op a
// parameter. What an optimizer remembers about a parameter is a persistable of both programs under
// Fluid's name, <parameter>_velocity_0 for example.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/gradient_clip.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"

namespace skiff::optimizer {

struct MinimizeOptions {
  std::vector<std::string> parameters = {};  // empty: all trainable ones
  std::vector<std::string> no_grad = {};     // variables that get no gradient
};

// The settings that every optimizer has.
struct CommonOptions {
  LearningRate learning_rate = 0.001;
  GradientClip clip = {};
  Regularizer regularization = {};  // of parameters without one of their own
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // `loss` is a variable of the default main program with one element. Returns parameters and
  // gradients, before clipping. Errors of AppendBackward; Error if no parameter influences the
  // loss.
  std::vector<ParameterGradient> Minimize(
      const Variable& loss, const MinimizeOptions& options = {},
      std::source_location site = std::source_location::current()) const;

 protected:
  explicit Optimizer(CommonOptions options) : options_(std::move(options)) {}

  struct Update {
    const Var& parameter;
    std::string gradient;       // clipped and regularized
    std::string learning_rate;  // with the parameter's factor
    std::source_location site;
  };
  // The update op of one parameter, without its role. Called in the order of the names.
  virtual Op MakeUpdate(const Update& update) const = 0;

  // <parameter>_<kind>_<n> with the parameter's dtype; its name.
  static std::string Accumulator(const Update& update, std::string_view kind,
                                 const std::vector<int64_t>& dims, double value);

 private:
  CommonOptions options_;
};

struct SgdOptions {
  LearningRate learning_rate = 0.001;
  GradientClip clip = {};
  Regularizer regularization = {};
};
// p ← p - rate · g
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options = {});

 private:
  Op MakeUpdate(const Update& update) const override;
};

struct MomentumOptions {
  LearningRate learning_rate = 0.001;
  float momentum = 0.9f;
  bool use_nesterov = false;
  GradientClip clip = {};
  Regularizer regularization = {};
};
// v ← momentum · v + g, p ← p - rate · v; Nesterov: p ← p - rate · (g + momentum · v)
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const MomentumOptions& options = {});

 private:
  Op MakeUpdate(const Update& update) const override;
  float momentum_;
  bool use_nesterov_;
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  bool lazy_mode = false;  // a sparse gradient updates its own rows only
  GradientClip clip = {};
  Regularizer regularization = {};
};
// Kingma and Ba 2015; the formula stands at the op. Error unless both betas are in [0, 1).
class Adam final : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});

 private:
  Op MakeUpdate(const Update& update) const override;
  float beta1_;
  float beta2_;
  float epsilon_;
  bool lazy_mode_;
};

}  // namespace skiff::optimizer
