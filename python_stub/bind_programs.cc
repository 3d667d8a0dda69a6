// Programs, what is in them, and where layers append.
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "framework/analysis/model_summary.h"
#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "framework/tensor/shape.h"
#include "python_stub/binding.h"

namespace skiff::python {
namespace {

// ---- attributes

py::object AttributeObject(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> py::object {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, BlockIndex> || std::is_same_v<Value, VarName>) {
          return py::cast(value.value);
        } else if constexpr (std::is_same_v<Value, std::vector<BlockIndex>> ||
                             std::is_same_v<Value, std::vector<VarName>>) {
          py::list list;
          for (const auto& element : value) list.append(element.value);
          return list;
        } else {
          return py::cast(value);
        }
      },
      static_cast<const AttributeVariant&>(attribute));
}

py::dict AttributeObjects(const AttributeMap& attributes) {
  py::dict objects;
  for (const auto& [name, value] : attributes) objects[py::str(name)] = AttributeObject(value);
  return objects;
}

py::dict SlotObjects(const Slots& slots) {
  py::dict objects;
  for (const SlotArguments& slot : slots) objects[py::str(slot.slot)] = py::cast(slot.arguments);
  return objects;
}

py::object SiteObject(const Op& op) {
  if (op.site.file.empty()) return py::none();
  return py::make_tuple(op.site.file, op.site.line);
}

// ---- context managers

// The open ones of this thread, innermost last: references to the Python objects, which so outlive
// their block. Never destroyed, since the interpreter may end first.
std::vector<PyObject*>& OpenContexts() {
  thread_local auto& contexts = *new std::vector<PyObject*>;
  return contexts;
}

// A guard of C++ as a context manager. Guards restore what they found, so they must be closed in
// the reverse order and by the thread that opened them.
template <class Guard>
class Context {
 public:
  template <class Open>
  void Enter(const py::object& self, const Open& open) {
    OwnDefaultPrograms();
    SKIFF_ENFORCE(!guard_.has_value(), kFailedPrecondition, "this context is open already");
    open(&guard_);
    OpenContexts().push_back(py::object(self).release().ptr());
  }

  void Exit(const py::object& self) {
    std::vector<PyObject*>& contexts = OpenContexts();
    SKIFF_ENFORCE(
        !contexts.empty() && contexts.back() == self.ptr(), kFailedPrecondition,
        "contexts are closed in another order or by another thread than they were opened");
    guard_.reset();
    contexts.pop_back();
    Py_DECREF(self.ptr());
  }

 private:
  std::optional<Guard> guard_;
};

struct ProgramContext : Context<ProgramGuard> {
  Program* main;
  Program* startup;
};

struct NameContext : Context<NameScope> {
  std::string name;
};

void BindContexts(py::module_& module) {
  py::class_<ProgramContext>(
      module, "program_guard",
      "Makes two programs the default ones of this thread, to which layers append:\n\n"
      "    with skiff.program_guard(main, startup):\n        ...")
      .def(py::init([](Program& main, Program& startup) {
             auto made = std::make_unique<ProgramContext>();
             made->main = &main;
             made->startup = &startup;
             return made;
           }),
           py::arg("main"), py::arg("startup"), py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("__enter__",
           [](const py::object& self) {
             auto& context = self.cast<ProgramContext&>();
             context.Enter(self,
                           [&](auto* guard) { guard->emplace(context.main, context.startup); });
           })
      .def("__exit__", [](const py::object& self, const py::args& /*failure*/) {
        self.cast<ProgramContext&>().Exit(self);
      });
  py::class_<NameContext>(module, "name_scope",
                          "Ops made inside carry the name, which messages and dumps show:\n\n"
                          "    with skiff.name_scope(\"encoder\"):\n        ...")
      .def(py::init([](const std::string& name) {
             auto made = std::make_unique<NameContext>();
             made->name = name;
             return made;
           }),
           py::arg("name"))
      .def("__enter__",
           [](const py::object& self) {
             auto& context = self.cast<NameContext&>();
             context.Enter(self, [&](auto* guard) { guard->emplace(context.name); });
           })
      .def("__exit__", [](const py::object& self, const py::args& /*failure*/) {
        self.cast<NameContext&>().Exit(self);
      });
}

// ---- variables of the builder

std::string Repr(const Variable& variable) {
  if (!variable.defined()) return "Variable()";
  const Var& var = variable.var();
  return StrCat("Variable(\"", var.name, "\", ", var.dtype, ", ", Shape(var.dims), ")");
}

bool IsSame(const Variable& a, const Variable& b) {
  return a.block() == b.block() && a.name() == b.name();
}

template <class Result>
py::object Located(const Result& result) {
  OwnDefaultPrograms();
  const CallSiteGuard site = GuardCaller();
  return VariableObject(result());
}

void BindVariable(py::module_& module) {
  py::class_<Variable>(module, "Variable",
                       "A variable of a program, as layers take and return it: a handle that keeps "
                       "the program alive.")
      .def_property_readonly("name", &Variable::name)
      .def_property_readonly(
          "shape", [](const Variable& self) { return py::tuple(py::cast(self.dims())); },
          "The dims; -1: unknown until a run.")
      .def_property_readonly("dtype", [](const Variable& self) { return TextOf(self.dtype()); })
      .def_property(
          "stop_gradient", [](const Variable& self) { return self.var().stop_gradient; },
          [](const Variable& self, bool stop) { self.StopGradient(stop); },
          "Whether no gradient flows through the variable.")
      .def(
          "__add__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x + y; }); },
          py::is_operator())
      .def(
          "__sub__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x - y; }); },
          py::is_operator())
      .def(
          "__mul__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x * y; }); },
          py::is_operator())
      .def(
          "__truediv__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x / y; }); },
          py::is_operator())
      .def(
          "__add__", [](const Variable& x, double y) { return Located([&] { return x + y; }); },
          py::is_operator())
      .def(
          "__sub__", [](const Variable& x, double y) { return Located([&] { return x - y; }); },
          py::is_operator())
      .def(
          "__mul__", [](const Variable& x, double y) { return Located([&] { return x * y; }); },
          py::is_operator())
      .def(
          "__truediv__", [](const Variable& x, double y) { return Located([&] { return x / y; }); },
          py::is_operator())
      .def(
          "__radd__", [](const Variable& x, double y) { return Located([&] { return y + x; }); },
          py::is_operator())
      .def(
          "__rsub__", [](const Variable& x, double y) { return Located([&] { return y - x; }); },
          py::is_operator())
      .def(
          "__rmul__", [](const Variable& x, double y) { return Located([&] { return y * x; }); },
          py::is_operator())
      .def(
          "__rtruediv__",
          [](const Variable& x, double y) { return Located([&] { return y / x; }); },
          py::is_operator())
      .def(
          "__lt__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x < y; }); },
          py::is_operator())
      .def(
          "__lt__", [](const Variable& x, double y) { return Located([&] { return x < y; }); },
          py::is_operator())
      .def(
          "__le__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x <= y; }); },
          py::is_operator())
      .def(
          "__le__", [](const Variable& x, double y) { return Located([&] { return x <= y; }); },
          py::is_operator())
      .def(
          "__gt__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x > y; }); },
          py::is_operator())
      .def(
          "__gt__", [](const Variable& x, double y) { return Located([&] { return x > y; }); },
          py::is_operator())
      .def(
          "__ge__",
          [](const Variable& x, const Variable& y) { return Located([&] { return x >= y; }); },
          py::is_operator())
      .def(
          "__ge__", [](const Variable& x, double y) { return Located([&] { return x >= y; }); },
          py::is_operator())
      .def("__neg__", [](const Variable& x) { return Located([&] { return -x; }); })
      // Else `if x < y:` would hold, whatever x and y are.
      .def("__bool__",
           [](const Variable& self) -> bool {
             throw py::type_error("Variable \"" + self.name() +
                                  "\" has no truth value: a run computes it");
           })
      .def("__eq__", &IsSame, py::is_operator())
      .def("__hash__",
           [](const Variable& self) {
             return std::hash<const void*>()(self.block()) ^ std::hash<std::string>()(self.name());
           })
      .def("__repr__", &Repr);
}

// ---- descriptions

void BindDescriptions(py::module_& module) {
  py::class_<Var>(module, "Var", "A copy of the description of a variable in a block.")
      .def_readonly("name", &Var::name)
      .def_property_readonly("kind",
                             [](const Var& self) { return std::string(VarKindName(self.kind)); })
      .def_property_readonly("dtype", [](const Var& self) { return TextOf(self.dtype); })
      .def_property_readonly("shape",
                             [](const Var& self) { return py::tuple(py::cast(self.dims)); })
      .def_readonly("lod_level", &Var::lod_level)
      .def_readonly("persistable", &Var::persistable)
      .def_readonly("is_parameter", &Var::is_parameter)
      .def_readonly("trainable", &Var::trainable)
      .def_readonly("stop_gradient", &Var::stop_gradient)
      .def_property_readonly("attrs", [](const Var& self) { return AttributeObjects(self.attrs); })
      .def("__repr__", [](const Var& self) {
        return StrCat("Var(\"", self.name, "\", ", self.dtype, ", ", Shape(self.dims), ")");
      });
  py::class_<Op>(module, "Op", "A copy of an op of a block. str() is its line of the text format.")
      .def_readonly("type", &Op::type)
      .def_readonly("id", &Op::id)
      .def_property_readonly("role", &Op::role)
      .def_property_readonly(
          "inputs", [](const Op& self) { return SlotObjects(self.inputs); },
          "The names of variables by slot.")
      .def_property_readonly(
          "outputs", [](const Op& self) { return SlotObjects(self.outputs); },
          "The names of variables by slot.")
      .def_property_readonly("attrs", [](const Op& self) { return AttributeObjects(self.attrs); })
      .def_property_readonly("site", &SiteObject, "(file, line) of the call that made it, or None.")
      .def("__str__", &PrintOp)
      .def("__repr__", [](const Op& self) { return StrCat("Op(", PrintOp(self), ")"); });
  // Programs own blocks, and never drop one.
  py::class_<Block, std::unique_ptr<Block, py::nodelete>>(module, "Block", "A block of a program.")
      .def_property_readonly("index", &Block::index)
      .def_property_readonly("parent_index", &Block::parent_index)
      .def_property_readonly("ops",
                             [](const Block& self) {
                               py::list ops;
                               for (const auto& op : self.ops()) ops.append(Op(*op));
                               return ops;
                             })
      .def_property_readonly("vars",
                             [](const Block& self) {
                               py::list vars;
                               for (const auto& var : self.vars()) vars.append(Var(*var));
                               return vars;
                             })
      .def(
          "var", [](const Block& self, const std::string& name) { return Var(*self.GetVar(name)); },
          py::arg("name"),
          "Returns the variable of that name in the block or its ancestors. Raises NotFoundError.")
      .def(
          "variable",
          [](Block& self, const std::string& name) {
            self.GetVar(name);
            return VariableObject({&self, name});
          },
          py::arg("name"), "Returns the same as a Variable, for layers.");
}

// ---- programs

void BindSummary(py::module_& module) {
  py::class_<LayerSummary>(module, "LayerSummary",
                           "A layer of a model. flop is None if a shape isn't known.")
      .def_readonly("name", &LayerSummary::name)
      .def_readonly("ops", &LayerSummary::ops)
      .def_property_readonly(
          "output",
          [](const LayerSummary& self) { return py::tuple(py::cast(self.output.ToVector())); })
      .def_readonly("parameters", &LayerSummary::parameters)
      .def_readonly("trainable_parameters", &LayerSummary::trainable_parameters)
      .def_readonly("flop", &LayerSummary::flop);
  py::class_<ModelSummary>(module, "ModelSummary",
                           "The layers of a model and their sums. str() is a table.")
      .def_readonly("layers", &ModelSummary::layers)
      .def_readonly("parameters", &ModelSummary::parameters)
      .def_readonly("trainable_parameters", &ModelSummary::trainable_parameters)
      .def_readonly("parameter_bytes", &ModelSummary::parameter_bytes)
      .def_readonly("flop", &ModelSummary::flop)
      .def("__str__", &ModelSummary::Text);
}

void BindProgram(py::module_& module) {
  BindSummary(module);
  py::class_<Program>(module, "Program",
                      "Blocks of op descriptors over variable descriptors. str() is its text.")
      .def(py::init<>())
      .def_readwrite("seed", &Program::seed, "Of random ops without one of their own. 0: not set.")
      .def_property_readonly("block_count", &Program::block_count)
      .def("block", &Program::block, py::arg("index") = 0,
           py::return_value_policy::reference_internal,
           "Returns a block; the first is the root. Raises OutOfRangeError.")
      .def_property_readonly(
          "parameters",
          [](const Program& self) {
            std::vector<std::string> names;
            for (const auto& var : self.root()->vars()) {
              if (var->is_parameter) names.push_back(var->name);
            }
            std::ranges::sort(names);
            return names;
          },
          "The names of all parameters, in ascending order.")
      .def("clone", &Program::Clone, "Returns a deep copy.")
      .def(
          "clone_for_test", [](const Program& self) { return self.CloneForTest(); },
          "Returns a deep copy for evaluation: without backward and optimizer ops, with is_test "
          "set.")
      .def(
          "prune",
          [](const Program& self, const py::iterable& feeds, const py::iterable& targets) {
            return self.Prune(NamesOf(feeds), NamesOf(targets));
          },
          py::arg("feeds"), py::arg("targets"),
          "Returns a deep copy with those ops only that the targets need, given the feeds.")
      .def(
          "to_bytes", [](const Program& self) { return py::bytes(SerializeProgram(self)); },
          "Returns the bytes of a program file (Fluid's ProgramDesc).")
      .def_static(
          "from_bytes", [](const py::bytes& bytes) { return ParseProgram(std::string(bytes)); },
          py::arg("bytes"), "Returns the program of such bytes. Raises DataLossError.")
      .def_static("from_text", &ParseProgramText, py::arg("text"),
                  "Returns the program of a text such as str(program).")
      .def(
          "summary",
          [](const Program& self, int64_t batch_size, const py::dict& feeds) {
            SummaryOptions options = {.batch_size = batch_size};
            for (const auto& [variable, shape] : feeds) {
              const auto dims = shape.cast<std::vector<int64_t>>();
              options.feeds.emplace(NameOf(variable), Shape(std::span<const int64_t>(dims)));
            }
            return Summarize(self, options);
          },
          py::kw_only(), py::arg("batch_size") = 0, py::arg("feeds") = py::dict(),
          "Returns the layers of the forward pass with outputs, parameters and FLOP; str() is a "
          "table. batch_size takes the place of an unknown first dim of the feeds, and feeds, "
          "from names to shapes, that of the declared shapes.")
      .def("dot", &PrintDot, "Returns a graph for Graphviz.")
      .def("__str__", &PrintProgram)
      .def(py::self == py::self);
  module.def(
      "default_main_program",
      [] {
        OwnDefaultPrograms();
        return &DefaultMainProgram();
      },
      py::return_value_policy::reference, "Returns the program to which layers append.");
  module.def(
      "default_startup_program",
      [] {
        OwnDefaultPrograms();
        return &DefaultStartupProgram();
      },
      py::return_value_policy::reference,
      "Returns the program to which layers append the initialization of parameters.");
}

}  // namespace

CallSiteGuard GuardCaller() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return {"<python>", 0};
  const auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  // The name may have bytes that are no UTF-8.
  const auto file = py::reinterpret_steal<py::bytes>(
      PyUnicode_AsEncodedString(py::object(code.attr("co_filename")).ptr(), "utf-8", "replace"));
  if (!file) throw py::error_already_set();
  return {std::string(file), PyFrame_GetLineNumber(frame)};
}

void OwnDefaultPrograms() {
  thread_local bool is_done = false;
  if (is_done) return;
  // The programs that C++ has for a thread die with it, but Variables may outlive the thread. These
  // are never freed.
  const auto make = [] {
    const py::object object = py::cast(std::make_unique<Program>());
    return object.inc_ref().cast<Program*>();
  };
  Program* main = make();
  new ProgramGuard(main, make());
  is_done = true;
}

py::object VariableObject(const Variable& variable) {
  py::object object = py::cast(variable);
  const py::object program =
      py::cast(variable.block()->program(), py::return_value_policy::reference);
  py::detail::keep_alive_impl(object, program);
  return object;
}

std::string NameOf(py::handle variable) {
  if (py::isinstance<Variable>(variable)) return variable.cast<const Variable&>().name();
  if (!PyUnicode_Check(variable.ptr())) {
    throw py::type_error(StrCat("found ", std::string(py::str(py::repr(variable))),
                                ", expected a Variable or the name of one"));
  }
  return variable.cast<std::string>();
}

std::vector<std::string> NamesOf(const py::iterable& variables) {
  if (PyUnicode_Check(variables.ptr())) {
    throw py::type_error("found a text, expected a list of names or Variables");
  }
  std::vector<std::string> names;
  for (const py::handle variable : variables) names.push_back(NameOf(variable));
  return names;
}

void BindPrograms(py::module_& module) {
  BindProgram(module);
  BindDescriptions(module);
  BindVariable(module);
  BindContexts(module);
}

}  // namespace skiff::python
