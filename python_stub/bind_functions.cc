// Binds the generated functions: layers, initializers, schedules, optimizers, and the structs that
// they take.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/builder/program_guard.h"
#include "framework/transpiler/memory_options.h"
#include "python_stub/arguments.h"
#include "python_stub/binding.h"
#include "python_stub/bound_functions.h"

namespace skiff::python {
namespace {

// By name. They live as long as the process.
std::map<std::string, py::object>& TupleClasses() {
  static auto& classes = *new std::map<std::string, py::object>;
  return classes;
}

// Calls `call(arguments)` of the first overload that takes the arguments as they are, or else of
// the first that takes them converted. Throws ArgumentMismatch if none does.
template <class Call>
void CallOverload(const BoundFunction& function, const py::args& args, const py::kwargs& kwargs,
                  const Call& call) {
  std::vector<std::string> refusals;
  for (const bool exact : {true, false}) {
    if (exact && function.overloads.size() == 1) continue;
    refusals.clear();
    for (const Overload& overload : function.overloads) {
      try {
        return call(overload, Arguments(function.name, overload, args.ptr(), kwargs.ptr(), exact));
      } catch (const ArgumentMismatch& mismatch) {
        refusals.emplace_back(mismatch.what());
      }
    }
  }
  throw ArgumentMismatch(Join(refusals, "; or "));
}

// A C++ object may hold Variables of its arguments, whose programs must outlive it.
void KeepArguments(py::handle object, const py::args& args, const py::kwargs& kwargs) {
  py::detail::keep_alive_impl(object, args);
  py::detail::keep_alive_impl(object, kwargs);
}

py::object Call(const BoundFunction& function, const py::args& args, const py::kwargs& kwargs) {
  OwnDefaultPrograms();
  const CallSiteGuard site = GuardCaller();
  py::object result;
  CallOverload(function, args, kwargs, [&](const Overload& overload, const Arguments& arguments) {
    result = py::reinterpret_steal<py::object>(overload.call(arguments));
  });
  if (py::isinstance<optimizer::Optimizer>(result) ||
      py::isinstance<optimizer::ParameterAverage>(result)) {
    KeepArguments(result, args, kwargs);
  }
  return result;
}

void DefineFunction(py::handle scope, const BoundFunction& function) {
  const auto call = [&function](const py::args& args, const py::kwargs& kwargs) {
    return Call(function, args, kwargs);
  };
  if (function.owner != nullptr) {
    scope.attr(function.name) = py::cpp_function(call, py::name(function.name),
                                                 py::is_method(scope), py::doc(function.doc));
  } else {
    scope.attr(function.name) =
        py::cpp_function(call, py::name(function.name), py::scope(scope), py::doc(function.doc));
  }
}

template <class Struct>
void DefineStruct(py::handle scope, const BoundFunction& function) {
  py::class_<Struct>(scope, function.name, function.doc)
      .def(
          "__init__",
          [&function](py::detail::value_and_holder& self, const py::args& args,
                      const py::kwargs& kwargs) {
            auto made = std::make_unique<Struct>();
            CallOverload(function, args, kwargs,
                         [&](const Overload& overload, const Arguments& arguments) {
                           overload.fill(arguments, made.get());
                         });
            self.value_ptr() = made.release();
            KeepArguments(py::handle(reinterpret_cast<PyObject*>(self.inst)), args, kwargs);
          },
          py::detail::is_new_style_constructor());
}

using Define = void (*)(py::handle scope, const BoundFunction& function);

// Structs that Python sees as classes (STRUCT_CLASSES of generate.py).
const std::map<std::string, Define>& StructDefinitions() {
  static const auto& definitions = *new std::map<std::string, Define>{
      {"AveragedVariables", DefineStruct<optimizer::AveragedVariables>},
      {"GradientMerge", DefineStruct<GradientMerge>},
      {"LossScaling", DefineStruct<LossScaling>},
      {"MemoryOptions", DefineStruct<MemoryOptions>},
      {"ParamAttr", DefineStruct<ParamAttr>},
      {"PrecisionOptions", DefineStruct<PrecisionOptions>},
  };
  return definitions;
}

void DefineBound(py::module_& package, const BoundFunction& function) {
  py::object scope = package;
  if (function.owner != nullptr) {
    scope = package.attr(function.owner);
  } else if (*function.module != '\0') {
    scope = package.attr(function.module);
  }
  if (function.overloads.front().fill == nullptr) {
    DefineFunction(scope, function);
    return;
  }
  const auto definition = StructDefinitions().find(function.name);
  SKIFF_ENFORCE(definition != StructDefinitions().end(), kUnimplemented, "struct ", function.name,
                " has no class in bind_functions.cc");
  definition->second(scope, function);
}

}  // namespace

py::object NamedTupleClass(py::module_& module, const char* name,
                           const std::vector<std::string>& fields) {
  py::object made =
      py::module_::import("collections")
          .attr("namedtuple")(name, fields, py::arg("module") = module.attr("__name__"));
  module.attr(name) = made;
  return made;
}

void BindFunctions(py::module_& module) {
  for (const char* name : {"layers", "initializer", "learning_rate", "optimizer"}) {
    module.def_submodule(name);
  }
  py::class_<Initializer>(module, "Initializer", "How a parameter gets its first value.");
  py::class_<Regularizer>(module, "Regularizer", "Weight decay that is added to gradients.");
  py::class_<GradientClip>(module, "GradientClip", "How gradients are clipped.");
  py::class_<optimizer::Optimizer>(module, "Optimizer",
                                   "From a loss to the ops that train its parameters.");
  py::class_<optimizer::ParameterAverage>(module, "ParameterAverage",
                                          "Averages of parameters, to evaluate and save with.")
      .def("variables", &optimizer::ParameterAverage::variables,
           "Returns the names of the variables that take part, in ascending order.");
  py::class_<HalfReport>(module, "HalfReport",
                         "What a rewriting to half has done. str() says it in one line.")
      .def("__str__", &HalfReport::Text)
      .def(
          "details", &HalfReport::Details,
          "Returns that line, then a line for each operator and parameter in float32, and for each "
          "cast, that says why it is there.");
  TupleClasses()["ParameterGradient"] =
      NamedTupleClass(module, "ParameterGradient", {"parameter", "gradient"});
  TupleClasses()["Minimized"] = NamedTupleClass(module, "Minimized", {"trained", "left", "half"});

  for (const BoundTuple& tuple : BoundTuples()) {
    auto scope = module.attr(tuple.module.c_str()).cast<py::module_>();
    TupleClasses()[tuple.name] = NamedTupleClass(scope, tuple.name.c_str(), tuple.fields);
  }
  // The table has them in a form that inspect.signature reads.
  py::options options;
  options.disable_function_signatures();
  for (const std::span<const BoundFunction> functions : BoundFunctions()) {
    for (const BoundFunction& function : functions) DefineBound(module, function);
  }
}

PythonObject* ToPython() { return py::none().release().ptr(); }

PythonObject* ToPython(const Variable& variable) {
  return VariableObject(variable).release().ptr();
}

PythonObject* ToPython(const std::vector<Variable>& variables) {
  py::list list;
  for (const Variable& variable : variables) list.append(VariableObject(variable));
  return list.release().ptr();
}

PythonObject* ToPython(const std::vector<std::string>& texts) {
  return py::cast(texts).release().ptr();
}

PythonObject* ToPython(const Initializer& initializer) {
  return py::cast(initializer).release().ptr();
}
PythonObject* ToPython(const Regularizer& regularizer) {
  return py::cast(regularizer).release().ptr();
}
PythonObject* ToPython(const GradientClip& clip) { return py::cast(clip).release().ptr(); }

PythonObject* ToPython(const optimizer::Minimized& minimized) {
  py::list trained;
  Block* root = DefaultMainProgram().root();
  for (const ParameterGradient& pair : minimized.trained) {
    trained.append(TupleClasses().at("ParameterGradient")(
        VariableObject({root, pair.parameter->name}), VariableObject({root, pair.gradient->name})));
  }
  const py::object half = minimized.half ? py::cast(*minimized.half) : py::none();
  return TupleClasses().at("Minimized")(trained, minimized.left, half).release().ptr();
}

PythonObject* ToPython(std::unique_ptr<optimizer::Optimizer> optimizer) {
  return py::cast(std::move(optimizer)).release().ptr();
}
PythonObject* ToPython(std::unique_ptr<optimizer::ParameterAverage> average) {
  return py::cast(std::move(average)).release().ptr();
}

PythonObject* ToPython(const char* name, const std::vector<Variable>& values) {
  py::list list;
  for (const Variable& value : values) list.append(VariableObject(value));
  return TupleClasses().at(name)(*list).release().ptr();
}

}  // namespace skiff::python
