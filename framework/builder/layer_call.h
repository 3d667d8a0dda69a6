// One call of a layer function: names, parameters and ops on behalf of the caller's source line.
// For authors of layers.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"
#include "framework/ir/program.h"

namespace skiff {

namespace internal {

class LayerCall {
 public:
  // `name`: of this layer; empty: <type>_<n>. Appends to the current default programs.
  LayerCall(std::string_view type, std::string_view name, const std::source_location& site);

  const std::string& name() const { return name_; }

  // Throws an Error (kInvalidArgument) that starts with file, line and the layer's type if
  // `condition` doesn't hold.
  template <typename... Args>
  void Enforce(bool condition, const Args&... args) const {
    if (!condition) Fail(StrCat(args...));
  }
  [[noreturn]] void Fail(const std::string& message) const;

  // Returns the names of inputs. Throws an Error (kInvalidArgument) if one is undefined, belongs to
  // another program or isn't visible in the current block.
  std::string CheckedName(const Variable& x) const;
  std::vector<std::string> CheckedNames(const std::vector<Variable>& xs) const;

  // Returns a new variable <layer>.tmp_<n> for an op's output.
  Variable NewOutput() const;
  // Returns the name of a new variable for an output that only the gradient op reads.
  std::string NewSavedOutput() const;
  // Returns a parameter <layer>.<suffix>_<n>, or attr.name, in the root of both programs, with its
  // initializer in the startup program; or attr.shared. An existing parameter is shared. Throws an
  // Error: kInvalidArgument if the parameter exists with other dims or another dtype, if a dim is
  // below 1, or if attr.shared isn't a parameter of the program or comes with other settings.
  Variable CreateParameter(const ParamAttr& attr, std::string_view suffix,
                           std::vector<int64_t> dims, DType dtype,
                           const Initializer& default_initializer) const;

  // Appends the op with creation site, name scope and role, and infers the shapes of its outputs.
  // Integer attributes get the width that the op declares. Throws an Error (kInvalidArgument) if an
  // attribute doesn't fit, and the Errors of InferOp; the op and the outputs made by this call are
  // then gone again.
  Op* Append(Op op) const;
  // Does the same for an op with one output in `slot`, makes that output and returns it.
  Variable AppendFor(Op op, std::string_view slot = "Out") const;

  // Returns x + bias, with a parameter of dims x.dims[begin, end); x itself without a bias.
  Variable AddBias(const Variable& x, const BiasAttr& bias, size_t begin, size_t end) const;
  // Returns the output of the op of type `act` ("silu" is "swish", "gelu_tanh" the approximate
  // "gelu") for x, with the attributes that activation.h gives it by default; x itself if `act` is
  // empty.
  Variable Activate(const Variable& x, const std::string& act) const;

 private:
  Variable SharedParameter(const ParamAttr& attr, const std::vector<int64_t>& dims,
                           DType dtype) const;

  std::string type_;
  std::source_location site_;
  std::string name_;
};

}  // namespace internal
using internal::LayerCall;

// Returns a persistable variable of both programs that isn't a parameter (counters, accumulators,
// learning rates), filled by the startup program with `value` or as `first` says. An existing
// variable is shared. Throws an Error (kInvalidArgument) if it has other dims or another dtype.
Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           double value, const std::source_location& site);
Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           const Initializer& first, const std::source_location& site);

// Return a name for a persistable of the default main program alone: no variable of this program
// has the name, and no variable of the startup program, which other main programs may share. The
// first returns <prefix>_<n>; the second returns `name` itself if it is free.
std::string UniquePersistableName(std::string_view prefix);
std::string OwnPersistableName(std::string_view name);

// Returns a new variable of the current block, made by a layer of this type, with the values that
// the initializer would give a parameter. No gradient flows through it.
Variable FilledVariable(std::string_view type, const std::vector<int64_t>& dims, DType dtype,
                        const Initializer& initializer, const std::source_location& site);

// Returns the op cast, which writes x to `out` in the dtype of `out`.
Op CastOp(const Var& x, const Var& out);

}  // namespace skiff
