#include "python_stub/arguments.h"

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <limits>
#include <type_traits>

#include "framework/base/str_cat.h"
#include "python_stub/binding.h"

namespace skiff::python {
namespace {

// "str 'adam'", "list [1, 2]": what a message says of a wrong argument.
std::string Found(PyObject* object) {
  // In characters: a piece of one would make the message no text.
  const py::str text = py::repr(object);
  constexpr py::ssize_t kLongest = 60;
  const bool is_long = PyUnicode_GetLength(text.ptr()) > kLongest;
  const auto begin = py::reinterpret_steal<py::str>(PyUnicode_Substring(text.ptr(), 0, kLongest));
  return StrCat(Py_TYPE(object)->tp_name, " ", std::string(begin), is_long ? "…" : "");
}

bool IsBool(PyObject* object) {
  const std::string_view type = Py_TYPE(object)->tp_name;
  return PyBool_Check(object) || type == "numpy.bool_" || type == "numpy.bool";
}

// Returns nothing unless the object is a whole number that fits.
template <class Integer>
std::optional<Integer> IntegerOf(PyObject* object) {
  if (IsBool(object) || !PyIndex_Check(object)) return std::nullopt;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object));
  if (!index) {
    PyErr_Clear();
    return std::nullopt;
  }
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || !std::in_range<Integer>(value)) return std::nullopt;
  return static_cast<Integer>(value);
}

std::optional<double> NumberOf(PyObject* object) {
  if (IsBool(object) || PySequence_Check(object) || !PyNumber_Check(object)) return std::nullopt;
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return value;
}

template <class Number>
std::optional<Number> ElementOf(PyObject* object) {
  if constexpr (std::is_integral_v<Number>) {
    return IntegerOf<Number>(object);
  } else {
    const std::optional<double> number = NumberOf(object);
    if (!number) return std::nullopt;
    return static_cast<Number>(*number);
  }
}

// Whether a list of Python's numbers says that it is of this element type: whole numbers are int64,
// others float32, as in the builder.
template <class Number>
bool IsExactly(PyObject* list) {
  if (!std::is_same_v<Number, int64_t> && !std::is_same_v<Number, float>) return false;
  bool is_whole = true;
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(list)) {
    is_whole = is_whole && IntegerOf<int64_t>(element.ptr());
  }
  return is_whole == std::is_integral_v<Number>;
}

// Sequences whose elements are read one by one; a text is none.
bool IsList(PyObject* object) {
  return PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object);
}

std::string Signature(const char* function, std::span<const Parameter> parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    text += StrCat(text.empty() ? "" : ", ", parameter.name);
  }
  return StrCat(function, "(", text, ")");
}

}  // namespace

Arguments::Arguments(const char* function, const Overload& overload, PythonObject* args,
                     PythonObject* kwargs, bool exact)
    : function_(function),
      parameters_(overload.parameters),
      exact_(exact),
      values_(overload.parameters.size(), nullptr) {
  const auto fail = [&](const auto&... parts) {
    throw ArgumentMismatch(StrCat(Signature(function_, parameters_), ": ", parts...));
  };
  const auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  if (given > overload.positional) {
    fail("found ", given, " arguments without a name, expected at most ", overload.positional);
  }
  for (size_t i = 0; i < given; ++i) {
    values_[i] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  }
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(kwargs)) {
    const std::string name = py::str(key);
    size_t i = 0;
    while (i < parameters_.size() && name != parameters_[i].name) ++i;
    if (i == parameters_.size()) fail("there is no argument \"", name, "\"");
    if (Has(i)) fail("the argument \"", name, "\" is given twice");
    values_[i] = value.ptr();
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].required && !Has(i)) {
      fail("the argument \"", parameters_[i].name, "\" is missing");
    }
  }
}

bool Arguments::IsNone(size_t i) const { return values_[i] == Py_None; }

void Arguments::Refuse(size_t i, const std::string& expected) const {
  throw ArgumentMismatch(StrCat(function_, ": ", parameters_[i].name, " is ", Found(values_[i]),
                                ", expected ", expected));
}

template <class Integer>
void Arguments::ReadInteger(size_t i, Integer* value) const {
  if (!Has(i)) return;
  const std::optional<Integer> read = IntegerOf<Integer>(values_[i]);
  if (!read) Refuse(i, StrCat("a whole number of ", 8 * sizeof(Integer), " bits"));
  *value = *read;
}

template <class Number>
void Arguments::ReadNumbers(size_t i, const char* expected, std::vector<Number>* value) const {
  if (!Has(i)) return;
  PyObject* object = values_[i];
  if (!IsList(object)) Refuse(i, expected);
  py::object list = py::reinterpret_borrow<py::object>(object);
  if (py::isinstance<py::array>(list)) {
    if (exact_ && !py::isinstance<py::array_t<Number>>(list)) Refuse(i, expected);
    list = list.attr("ravel")().attr("tolist")();
  } else if (exact_ && !IsExactly<Number>(object)) {
    Refuse(i, expected);
  }
  value->clear();
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(list)) {
    const std::optional<Number> number = ElementOf<Number>(element.ptr());
    if (!number) Refuse(i, expected);
    value->push_back(*number);
  }
}

template <class Class>
void Arguments::ReadObject(size_t i, const char* expected, Class* value) const {
  if (!Has(i)) return;
  if (!py::isinstance<Class>(values_[i])) Refuse(i, expected);
  *value = py::handle(values_[i]).cast<const Class&>();
}

template <class Class>
void Arguments::ReadObjectOrNone(size_t i, const char* expected, Class* value) const {
  if (Has(i) && IsNone(i)) {
    *value = Class();
  } else {
    ReadObject(i, expected, value);
  }
}

void Arguments::Read(size_t i, bool* value) const {
  if (!Has(i)) return;
  if (!IsBool(values_[i])) Refuse(i, "True or False");
  *value = PyObject_IsTrue(values_[i]) == 1;
}

void Arguments::Read(size_t i, int32_t* value) const { ReadInteger(i, value); }
void Arguments::Read(size_t i, int64_t* value) const { ReadInteger(i, value); }

void Arguments::Read(size_t i, double* value) const {
  if (!Has(i)) return;
  const std::optional<double> read = NumberOf(values_[i]);
  if (!read) Refuse(i, "a number");
  *value = *read;
}

void Arguments::Read(size_t i, float* value) const {
  double read = *value;
  Read(i, &read);
  *value = static_cast<float>(read);
}

void Arguments::Read(size_t i, std::string* value) const {
  if (!Has(i)) return;
  if (PyUnicode_Check(values_[i])) {
    *value = py::cast<std::string>(values_[i]);
  } else if (py::isinstance<Variable>(values_[i])) {
    *value = py::handle(values_[i]).cast<const Variable&>().name();
  } else {
    Refuse(i, "a text");
  }
}

void Arguments::Read(size_t i, DType* value) const {
  if (!Has(i)) return;
  std::string name;
  if (PyUnicode_Check(values_[i])) {
    name = py::cast<std::string>(values_[i]);
  } else {
    try {
      name = py::str(
          py::dtype::from_args(py::reinterpret_borrow<py::object>(values_[i])).attr("name"));
    } catch (const py::error_already_set&) {
      Refuse(i, "a dtype");
    }
  }
  *value = DTypeFromName(name);
}

void Arguments::Read(size_t i, Variable* value) const { ReadObjectOrNone(i, "a Variable", value); }
void Arguments::Read(size_t i, Initializer* value) const {
  ReadObjectOrNone(i, "an Initializer", value);
}
void Arguments::Read(size_t i, Regularizer* value) const {
  ReadObjectOrNone(i, "a Regularizer", value);
}
void Arguments::Read(size_t i, GradientClip* value) const {
  ReadObjectOrNone(i, "a GradientClip", value);
}

void Arguments::Read(size_t i, LearningRate* value) const {
  if (!Has(i)) return;
  if (py::isinstance<Variable>(values_[i])) {
    *value = py::handle(values_[i]).cast<const Variable&>();
    return;
  }
  const std::optional<double> number = NumberOf(values_[i]);
  if (!number) Refuse(i, "a number or a Variable");
  *value = *number;
}

void Arguments::Read(size_t i, ParamAttr* value) const { ReadObject(i, "a ParamAttr", value); }
void Arguments::Read(size_t i, GradientMerge* value) const {
  ReadObject(i, "a GradientMerge", value);
}
void Arguments::Read(size_t i, optimizer::AveragedVariables* value) const {
  ReadObject(i, "an AveragedVariables", value);
}

void Arguments::Read(size_t i, PrecisionOptions* value) const {
  if (!Has(i)) return;
  if (py::isinstance<PrecisionOptions>(values_[i])) {
    ReadObject(i, "a PrecisionOptions", value);
    return;
  }
  *value = {};
  Read(i, &value->dtype);
}
void Arguments::Read(size_t i, LossScaling* value) const { ReadObject(i, "a LossScaling", value); }

void Arguments::Read(size_t i, OptionalParamAttr* value) const {
  if (!Has(i)) return;
  *value = false;
  if (IsNone(i)) return;
  if (PyBool_Check(values_[i])) {
    *value = values_[i] == Py_True;
    return;
  }
  ParamAttr read;
  ReadObject(i, "a ParamAttr, a bool or None", &read);
  *value = std::move(read);
}

void Arguments::Read(size_t i, layers::Extent2d* value) const {
  if (!Has(i)) return;
  if (const std::optional<int64_t> both = IntegerOf<int64_t>(values_[i])) {
    *value = *both;
    return;
  }
  std::vector<int64_t> extents;
  ReadNumbers(i, "a whole number or two of them", &extents);
  if (extents.size() != 2) Refuse(i, "a whole number or two of them");
  *value = {extents[0], extents[1]};
}

void Arguments::Read(size_t i, layers::Extent3d* value) const {
  if (!Has(i)) return;
  if (const std::optional<int64_t> all = IntegerOf<int64_t>(values_[i])) {
    *value = *all;
    return;
  }
  std::vector<int64_t> extents;
  ReadNumbers(i, "a whole number or three of them", &extents);
  if (extents.size() != 3) Refuse(i, "a whole number or three of them");
  *value = {extents[0], extents[1], extents[2]};
}

void Arguments::Read(size_t i, std::vector<int32_t>* value) const {
  ReadNumbers(i, "a list of whole numbers of 32 bits", value);
}
void Arguments::Read(size_t i, std::vector<int64_t>* value) const {
  ReadNumbers(i, "a list of whole numbers of 64 bits", value);
}
void Arguments::Read(size_t i, std::vector<float>* value) const {
  ReadNumbers(i, "a list of numbers", value);
}
void Arguments::Read(size_t i, std::vector<double>* value) const {
  ReadNumbers(i, "a list of numbers", value);
}

void Arguments::Read(size_t i, std::vector<std::string>* value) const {
  if (!Has(i)) return;
  if (!IsList(values_[i])) Refuse(i, "a list of texts");
  value->clear();
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(values_[i])) {
    if (!PyUnicode_Check(element.ptr()) && !py::isinstance<Variable>(element)) {
      Refuse(i, "a list of texts");
    }
    value->push_back(NameOf(element));
  }
}

void Arguments::Read(size_t i, std::vector<Variable>* value) const {
  if (!Has(i)) return;
  if (!IsList(values_[i])) Refuse(i, "a list of Variables");
  value->clear();
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(values_[i])) {
    if (!py::isinstance<Variable>(element)) Refuse(i, "a list of Variables");
    value->push_back(element.cast<const Variable&>());
  }
}

void Arguments::Read(size_t i, std::vector<std::pair<Variable, Variable>>* value) const {
  if (!Has(i)) return;
  constexpr const char* kExpected = "a list of pairs of Variables";
  if (!IsList(values_[i])) Refuse(i, kExpected);
  value->clear();
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(values_[i])) {
    if (!py::isinstance<py::tuple>(element) || py::len(element) != 2) Refuse(i, kExpected);
    const auto pair = py::reinterpret_borrow<py::tuple>(element);
    for (const py::handle one : pair) {
      if (!py::isinstance<Variable>(one)) Refuse(i, kExpected);
    }
    value->emplace_back(pair[0].cast<const Variable&>(), pair[1].cast<const Variable&>());
  }
}

void Arguments::Read(size_t i, std::map<std::string, double>* value) const {
  if (!Has(i)) return;
  if (!PyDict_Check(values_[i])) Refuse(i, "a dict of numbers");
  value->clear();
  for (const auto& [key, element] : py::reinterpret_borrow<py::dict>(values_[i])) {
    std::optional<double> number = NumberOf(element.ptr());
    if (IsBool(element.ptr())) number = PyObject_IsTrue(element.ptr());
    if (!PyUnicode_Check(key.ptr()) || !number) Refuse(i, "a dict of numbers");
    value->emplace(py::cast<std::string>(key), *number);
  }
}

namespace {

// Returns false if the object isn't callable.
template <class Result>
bool ReadFunction(PyObject* object, std::function<Result(const std::string&)>* value) {
  if (object == Py_None) {
    *value = nullptr;
    return true;
  }
  if (PyCallable_Check(object) == 0) return false;
  *value = py::cast<std::function<Result(const std::string&)>>(py::handle(object));
  return true;
}

}  // namespace

void Arguments::Read(size_t i, std::function<bool(const std::string&)>* value) const {
  if (Has(i) && !ReadFunction(values_[i], value)) Refuse(i, "a function");
}
void Arguments::Read(size_t i, std::function<float(const std::string&)>* value) const {
  if (Has(i) && !ReadFunction(values_[i], value)) Refuse(i, "a function");
}

void Arguments::Read(size_t i, const optimizer::Optimizer** value) const {
  if (!py::isinstance<optimizer::Optimizer>(values_[i])) Refuse(i, "an Optimizer");
  *value = py::handle(values_[i]).cast<const optimizer::Optimizer*>();
}

}  // namespace skiff::python
