// Optimizers: from a loss to the ops that train its parameters.
//
// Minimize appends the gradient ops (framework/autodiff), then, with the role Optimize and the
// parameters in the order of their names: gradient clipping, regularization, and one update op per
// parameter. The state that an optimizer keeps for a parameter is a persistable of both programs
// under Fluid's name, <parameter>_velocity_0 for example. Each optimizer has a header of its own in
// framework/builder/optimizer; they share no state, and one may minimize several losses.
//
// With multi_precision, a parameter of float16 or bfloat16 has float32 master weights, a
// persistable <parameter>_fp32_master_0. The optimizer updates these, with clipped and decayed
// gradients, and rounds them to the parameter. Its states are float32,
// <parameter>_fp32_master_0_moment1_0 for example. For other parameters nothing changes.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/gradient_clip.h"
#include "framework/builder/gradient_merge.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"
#include "framework/precision/half_report.h"
#include "framework/precision/precision_options.h"

namespace skiff::internal {
struct LossScale;
}  // namespace skiff::internal

namespace skiff::optimizer {

struct MinimizeOptions {
  std::vector<std::string> parameters = {};  // empty: all trainable ones
  std::vector<std::string> no_grad = {};     // variables that get no gradient
  // Gradients of several runs make one update: update_condition.h. So does one step of
  // learning-rate schedules, which all go by one counter: optimizers with schedules need rounds of
  // one length.
  GradientMerge gradient_merge = {};
  // Leaves everything as it is if a gradient isn't finite, and counts that in kSkippedUpdates.
  // Schedules advance nevertheless.
  bool skip_non_finite = false;
  // Has the program compute in bfloat16 or float16: rewrites it
  // (framework/precision/half_rewrite.h) before it appends the gradients. Parameters that become
  // half have master weights, whatever multi_precision says. One loss of a program can be minimized
  // so.
  PrecisionOptions precision = {};
};

// As in MinimizeOptions.
struct ApplyGradientsOptions {
  GradientMerge gradient_merge = {};
  bool skip_non_finite = false;
};

struct Minimized {
  // The parameters and their gradients before clipping.
  std::vector<ParameterGradient> trained = {};
  // Variables that the loss depends on as on parameters, but that aren't marked as such: floats
  // that outlive a run, that no op writes and nobody froze (by stop_gradient, trainable, no_grad or
  // a list of parameters). In the order of the names.
  std::vector<std::string> left = {};
  // The changes for MinimizeOptions::precision; nothing for float32.
  std::optional<HalfReport> half = {};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Appends gradients and updates for `loss`, a variable of the default main program with one
  // element. Warns (warning.h) of variables that are left. Throws the Errors of AppendBackward, and
  // an Error if no parameter influences the loss; if one of options.parameters doesn't; if an op of
  // the program already updates a parameter; if a parameter is float16 or bfloat16 without
  // multi_precision; if there is a clip from which all parameters are exempt; if the learning rate
  // is a schedule that another optimizer uses with another gradient_merge.steps; or for a precision
  // that RewriteToHalf refuses. The programs are then as they were before, except for blocks that
  // differentiating sub-blocks leaves.
  Minimized Minimize(const Variable& loss, const MinimizeOptions& options = {},
                     std::source_location site = std::source_location::current()) const;

  // Appends updates of parameters by gradients that other ops compute, for example from the results
  // of skiff::Gradients: `pairs` of a parameter and its gradient, both in the root block of the
  // default main program. Clips, regularizes, merges and updates as Minimize does. A gradient has
  // the shape and the dtype of its parameter, or is float32 for a parameter in half; it may be
  // selected rows. If the program has a loss scale (GradientsOptions::precision), skip_non_finite
  // holds. Throws an Error (kInvalidArgument) if there are no pairs, if a pair isn't as said, if a
  // parameter is there twice or is updated by an op of the program already, and as Minimize for
  // parameters in half, clips and schedules. The programs are then as they were before.
  void ApplyGradients(const std::vector<std::pair<Variable, Variable>>& pairs,
                      const ApplyGradientsOptions& options = {},
                      std::source_location site = std::source_location::current()) const;

 protected:
  // `op`: the type of the update op. `options` has the members of all optimizers' options:
  // learning_rate, clip, regularization, which is for parameters without a regularizer of their
  // own, and multi_precision. `site`: where the optimizer is made.
  template <class Options>
  Optimizer(std::string op, const Options& options, const std::source_location& site)
      : op_(std::move(op)),
        site_(site),
        learning_rate_(options.learning_rate),
        clip_(options.clip),
        regularization_(options.regularization),
        multi_precision_(options.multi_precision) {}

  struct Update {
    const ir::Var& parameter;
    const ir::Var& weights;  // the updated variable: the parameter, or its master weights
    const std::source_location& site;
  };
  // Gives `op`, which has parameter, gradient and learning rate, its states and attributes. Called
  // for each parameter, in the order of the names.
  virtual void Complete(const Update& update, ir::Op* op) const = 0;
  // Returns the op for this update that has to follow the updates of all parameters; nothing if
  // there is no such op.
  virtual std::optional<ir::Op> Finish(const ir::Op& update) const;

  // Connects <weights>_<kind>_<n>, of their shape and dtype, as input `slot` of the op and as the
  // output that is its next value: `slot` + "Out" where none is named.
  static void AddState(const Update& update, ir::Op* op, const std::string& slot,
                       std::string_view kind, double value = 0.0, std::string output = {});
  // Does the same for one number, which is input `slot` alone, and returns its name.
  static std::string AddNumber(const Update& update, ir::Op* op, std::string_view slot,
                               std::string_view kind, double value);

  // Throw an Error (kInvalidArgument) that names the optimizer and where it is made, the option,
  // its value and the expected one.
  void CheckFraction(const char* option, float value) const;  // in [0, 1)
  void CheckPositive(const char* option, float value) const;
  void CheckNotNegative(const char* option, float value) const;
  void CheckOption(bool holds, const char* option, float value, const char* expected) const;
  // `parts`: of names, none of them empty.
  void CheckNameParts(const char* option, const std::vector<std::string>& parts) const;
  static bool HasAnyPart(const std::string& name, const std::vector<std::string>& parts);

 private:
  // `scaling`: of the gradients, by `scale`; both or neither.
  void AppendUpdates(const std::vector<ParameterGradient>& pairs,
                     const ApplyGradientsOptions& options,
                     const std::optional<LossScaling>& scaling, const internal::LossScale* scale,
                     const std::source_location& site) const;

  std::string op_;
  std::source_location site_;
  LearningRate learning_rate_;
  GradientClip clip_;
  Regularizer regularization_;
  bool multi_precision_;
};

}  // namespace skiff::optimizer
