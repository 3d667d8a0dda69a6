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

class LayerCall {
 public:
  // `name`: of this layer; empty: <type>_<n>. Appends to the default programs of the moment.
  LayerCall(std::string_view type, std::string_view name, const std::source_location& site);

  const std::string& name() const { return name_; }

  // Throws an Error that starts with file, line and the layer's type unless `condition` holds.
  template <typename... Args>
  void Enforce(bool condition, const Args&... args) const {
    if (!condition) Fail(StrCat(args...));
  }
  [[noreturn]] void Fail(const std::string& message) const;

  // The names of inputs. Error if one is undefined or not visible in the current block.
  std::string Use(const Variable& x) const;
  std::vector<std::string> Use(const std::vector<Variable>& xs) const;

  // A new variable <layer>.tmp_<n> for an op's output.
  Variable NewOutput() const;
  // A parameter <layer>.<suffix>_<n>, or attr.name, in the root of both programs, with its
  // initializer in the startup program; or attr.shared. One that exists is shared. Error if it
  // exists with other dims or dtype, and for dims below 1.
  Variable CreateParameter(const ParamAttr& attr, std::string_view suffix,
                           std::vector<int64_t> dims, DType dtype,
                           const Initializer& default_initializer) const;

  // Appends the op with creation site, name scope and role, and infers the shapes of its outputs.
  // Integer attributes get the width that the op declares; Error for one that doesn't fit. If it
  // throws, the op and the outputs that this call made for it are gone again.
  Op* Append(Op op) const;
  // The same for an op with one output in `slot`, which is made.
  Variable AppendFor(Op op, std::string_view slot = "Out") const;

  // x + bias, with a parameter of dims x.dims[begin, end).
  Variable AddBias(const Variable& x, const BiasAttr& bias, size_t begin, size_t end) const;
  // The activation op of that type; x itself if `act` is empty.
  Variable Activate(const Variable& x, const std::string& act) const;

 private:
  Variable SharedParameter(const ParamAttr& attr, const std::vector<int64_t>& dims,
                           DType dtype) const;

  std::string type_;
  std::source_location site_;
  std::string name_;
};

// A persistable variable of both programs that isn't a parameter (counters, accumulators, learning
// rates), filled with `value` by the startup program, or by what `first` makes. One that exists is
// shared; Error if its dims or dtype differ.
Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           double value, const std::source_location& site);
Variable CreatePersistable(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
                           const Initializer& first, const std::source_location& site);

// cast: `out` = `x` in the dtype of `out`.
Op CastOp(const Var& x, const Var& out);

}  // namespace skiff
