// The extension module of the package: its parts, and errors of C++ as exceptions of Python.
#include <pybind11/pybind11.h>

#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/builder/warning.h"
#include "python_stub/arguments.h"
#include "python_stub/binding.h"

namespace skiff::python {
namespace {

// The exception classes of skiff/errors.py by the names of codes. They live as long as the process.
std::map<std::string, py::object>& Classes() {
  static auto& classes = *new std::map<std::string, py::object>;
  return classes;
}

// A message may quote bytes of a broken file.
py::object MessageText(std::string_view text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void Raise(PyObject* type, const char* what) { PyErr_SetObject(type, MessageText(what).ptr()); }

void Translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    Raise(Classes().at(std::string(ErrorCodeName(error.code()))).ptr(), error.what());
  } catch (const ArgumentMismatch& mismatch) {
    Raise(PyExc_TypeError, mismatch.what());
  }
}

void BindErrors() {
  const py::module_ errors = py::module_::import("skiff.errors");
  for (const py::handle error : errors.attr("BY_CODE")) {
    Classes()[py::str(error.attr("code"))] = py::reinterpret_borrow<py::object>(error);
  }
  py::register_exception_translator(&Translate);
}

// A filter of the module warnings can make an exception of one.
void WarnAsPython(const std::string& message) {
  const py::gil_scoped_acquire lock;
  const py::object text = MessageText(message);
  if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%U", text.ptr()) != 0) throw py::error_already_set();
}

}  // namespace
}  // namespace skiff::python

PYBIND11_MODULE(_skiff, module) {
  module.doc() = "The C++ part of the package skiff.";
  skiff::python::BindErrors();
  skiff::SetWarningSink(&skiff::python::WarnAsPython);
  skiff::python::BindTensors(module);
  skiff::python::BindPrograms(module);
  skiff::python::BindFunctions(module);
  skiff::python::BindDistributed(module);
  skiff::python::BindExecutor(module);
  skiff::python::BindFiles(module);
  skiff::python::BindReaders(module);
  skiff::python::BindMetrics(module);
  skiff::python::BindCallbacks(module);
  skiff::python::BindTrainer(module);
}
