// Clipping and regularization of gradients as ops, before the updates of an optimizer.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/gradient_clip.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"
#include "framework/ir/program.h"

namespace skiff {

struct NamedGradient {
  const Var* parameter = nullptr;
  Variable gradient;
  // The updated variable: the parameter itself, or the float32 master weights of a two-byte one.
  const Var* weights = nullptr;
};

// Returns the sum of the squares of all elements of all gradients, of shape [1]: float64, since
// float32 may be unable to hold it. There must be at least one gradient.
Variable SquaredGlobalNorm(const std::vector<NamedGradient>& gradients,
                           const std::source_location& site);

// Replaces the two-byte gradients that clipping or regularization will read, or with `all` every
// two-byte gradient, by float32 gradients.
void AppendWidening(const GradientClip& clip, const Regularizer& fallback, bool all,
                    std::vector<NamedGradient>* gradients, const std::source_location& site);

// Appends the clipping ops and replaces the gradients by the clipped gradients, except for
// parameters whose ParamAttr says need_clip = false. Throws an Error (kInvalidArgument) if all
// parameters are exempt. `squared_norm` is the SquaredGlobalNorm of the gradients if it has been
// computed already. `unscale`, if defined, is a float32 [1] by which all gradients are multiplied
// first, clipped or not: one over a loss scale. `squared_norm` is the norm before the
// multiplication.
void AppendClip(const GradientClip& clip, std::vector<NamedGradient>* gradients,
                const std::source_location& site, const Variable& squared_norm = {},
                const Variable& unscale = {});

// Does the same for weight decay, computed from `weights`, by a parameter's own regularizer, else
// by `fallback`. A gradient that is selected rows becomes dense here; clipping leaves it selected
// rows.
void AppendRegularization(const Regularizer& fallback, std::vector<NamedGradient>* gradients,
                          const std::source_location& site);

// Marks the ops of the main program's root from `first` on as belonging to these parameters and
// gradients (op_role_var).
void MarkParameterOps(size_t first, const std::vector<std::string>& names);

}  // namespace skiff
