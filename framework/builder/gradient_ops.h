// Clipping and regularization of gradients as ops: what an optimizer does before its updates.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/gradient_clip.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/variable.h"

namespace skiff {

struct NamedGradient {
  const Var* parameter = nullptr;
  Variable gradient;
  // The updated variable: the parameter itself, or the float32 master weights of a two-byte one.
  const Var* weights = nullptr;
};

// The sum of the squares of all elements of all gradients, of shape [1]. Of at least one gradient.
Variable SquaredGlobalNorm(const std::vector<NamedGradient>& gradients,
                           const std::source_location& site);

// Puts float32 gradients in the place of two-byte ones that clipping or regularization will read;
// all: of all two-byte ones.
void AppendWidening(const GradientClip& clip, const Regularizer& fallback, bool all,
                    std::vector<NamedGradient>* gradients, const std::source_location& site);

// Appends the ops and puts the clipped gradients in place of the given ones. Parameters whose
// attribute says need_clip = false are left alone; Error if all are. `squared_norm`:
// SquaredGlobalNorm of the gradients, where it has been computed already.
void AppendClip(const GradientClip& clip, std::vector<NamedGradient>* gradients,
                const std::source_location& site, const Variable& squared_norm = {});

// The same for weight decay, of `weights`: a parameter's own regularizer, else `fallback`. A
// gradient that is selected rows becomes dense; clipping leaves it selected rows.
void AppendRegularization(const Regularizer& fallback, std::vector<NamedGradient>* gradients,
                          const std::source_location& site);

// Marks the ops of the main program's root from `first` on as belonging to these parameters and
// gradients (op_role_var).
void MarkParameterOps(size_t first, const std::vector<std::string>& names);

}  // namespace skiff
