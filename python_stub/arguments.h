// The arguments of a call from Python, as C++ values; and the parts of a function that the
// generator binds.
//
// Generated sources see nothing else of Python, so that they compile in little time: no header of
// pybind11, and an overload of Read for each type that layers take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/gradient_clip.h"
#include "framework/builder/initializer.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer.h"
#include "framework/builder/optimizer/parameter_average.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/regularizer.h"
#include "framework/builder/update_condition.h"
#include "framework/builder/variable.h"

struct _object;

namespace skiff::python {

using PythonObject = _object;  // PyObject

class Arguments;

struct Parameter {
  const char* name;
  bool required = false;
};

// One C++ function behind a Python name.
struct Overload {
  std::span<const Parameter> parameters;
  size_t positional;  // so many may be given without a name
  // Returns a new reference, or throws. For structs: nullptr, and `fill` in its place.
  PythonObject* (*call)(const Arguments&) = nullptr;
  void (*fill)(const Arguments&, void* value) = nullptr;
};

struct BoundFunction {
  const char* module;  // "layers"; empty: the package itself
  const char* owner;   // the class of the method, or nullptr
  const char* name;
  const char* doc;
  std::span<const Overload> overloads;
};

// An argument that a function doesn't take, or of another type than it takes. Becomes a TypeError.
class ArgumentMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  // `args` is a tuple, `kwargs` a dict; both outlive the object. `exact`: takes no array or list
  // of numbers for another element type, to choose among overloads. Throws ArgumentMismatch for
  // too many arguments, for an unknown argument, for an argument given twice and for a missing
  // argument.
  Arguments(const char* function, const Overload& overload, PythonObject* args,
            PythonObject* kwargs, bool exact);

  // Store argument i, if it was given. Throw ArgumentMismatch, with the argument, the value found
  // and the expectation, if the value has another type or doesn't fit.
  void Read(size_t i, bool* value) const;
  void Read(size_t i, int32_t* value) const;
  void Read(size_t i, int64_t* value) const;
  void Read(size_t i, float* value) const;
  void Read(size_t i, double* value) const;
  // A text or a Variable, which stands for its name.
  void Read(size_t i, std::string* value) const;
  // "float32", or a dtype of NumPy.
  void Read(size_t i, DType* value) const;
  // None is an undefined one.
  void Read(size_t i, Variable* value) const;
  void Read(size_t i, Initializer* value) const;
  void Read(size_t i, Regularizer* value) const;
  void Read(size_t i, GradientClip* value) const;
  void Read(size_t i, LearningRate* value) const;
  void Read(size_t i, ParamAttr* value) const;
  void Read(size_t i, GradientMerge* value) const;
  void Read(size_t i, optimizer::AveragedVariables* value) const;
  // One, or the dtype alone.
  void Read(size_t i, PrecisionOptions* value) const;
  void Read(size_t i, LossScaling* value) const;
  // A single number, or one for each dim.
  void Read(size_t i, layers::Extent2d* value) const;
  void Read(size_t i, layers::Extent3d* value) const;
  void Read(size_t i, std::vector<int32_t>* value) const;
  void Read(size_t i, std::vector<int64_t>* value) const;
  void Read(size_t i, std::vector<float>* value) const;
  void Read(size_t i, std::vector<double>* value) const;
  void Read(size_t i, std::vector<std::string>* value) const;
  void Read(size_t i, std::vector<Variable>* value) const;
  void Read(size_t i, std::vector<std::pair<Variable, Variable>>* value) const;
  void Read(size_t i, std::map<std::string, double>* value) const;
  void Read(size_t i, std::function<bool(const std::string&)>* value) const;
  void Read(size_t i, std::function<float(const std::string&)>* value) const;
  void Read(size_t i, const optimizer::Optimizer** value) const;
  // None is no parameter.
  void Read(size_t i, OptionalParamAttr* value) const;
  template <class T>
  void Read(size_t i, std::optional<T>* value) const;
  // The name of an enumerator.
  template <class Enum>
  void ReadName(size_t i, std::initializer_list<std::pair<const char*, Enum>> names,
                Enum* value) const;

 private:
  bool Has(size_t i) const { return values_[i] != nullptr; }
  bool IsNone(size_t i) const;
  [[noreturn]] void Refuse(size_t i, const std::string& expected) const;
  template <class Integer>
  void ReadInteger(size_t i, Integer* value) const;
  template <class Number>
  void ReadNumbers(size_t i, const char* expected, std::vector<Number>* value) const;
  template <class Class>
  void ReadObject(size_t i, const char* expected, Class* value) const;
  template <class Class>
  void ReadObjectOrNone(size_t i, const char* expected, Class* value) const;

  const char* function_;
  std::span<const Parameter> parameters_;
  bool exact_;
  std::vector<PythonObject*> values_;  // by parameter; nullptr: not given
};

template <class T>
void Arguments::Read(size_t i, std::optional<T>* value) const {
  if (!Has(i)) return;
  value->reset();
  if (IsNone(i)) return;
  // Made of a value of the kind, since an extent has no default.
  T read = T(1);
  Read(i, &read);
  *value = std::move(read);
}
template <class Enum>
void Arguments::ReadName(size_t i, std::initializer_list<std::pair<const char*, Enum>> names,
                         Enum* value) const {
  if (!Has(i)) return;
  std::string found;
  Read(i, &found);
  std::string expected;
  for (const auto& [name, enumerator] : names) {
    if (found == name) {
      *value = enumerator;
      return;
    }
    expected += std::string(expected.empty() ? "one of \"" : ", \"") + name + "\"";
  }
  Refuse(i, expected);
}

// Return a new reference to the Python object of a result.
PythonObject* ToPython();  // None
PythonObject* ToPython(const Variable& variable);
PythonObject* ToPython(const std::vector<Variable>& variables);
PythonObject* ToPython(const std::vector<std::string>& texts);
PythonObject* ToPython(const Initializer& initializer);
PythonObject* ToPython(const Regularizer& regularizer);
PythonObject* ToPython(const GradientClip& clip);
PythonObject* ToPython(const optimizer::Minimized& minimized);
PythonObject* ToPython(std::unique_ptr<optimizer::Optimizer> optimizer);
PythonObject* ToPython(std::unique_ptr<optimizer::ParameterAverage> average);
// A named tuple of the class `name`.
PythonObject* ToPython(const char* name, const std::vector<Variable>& values);

}  // namespace skiff::python
