// The extension module of the package.
#include <pybind11/pybind11.h>

#include "python_stub/binding.h"

PYBIND11_MODULE(_skiff, module) {
  module.doc() = "The C++ part of the package skiff.";
  skiff::python::BindErrors(module);
  skiff::python::BindTensors(module);
  skiff::python::BindPrograms(module);
  skiff::python::BindFunctions(module);
  skiff::python::BindExecutor(module);
  skiff::python::BindFiles(module);
  skiff::python::BindTraining(module);
}
