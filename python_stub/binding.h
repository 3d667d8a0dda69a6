// Shared code of the parts of the extension module. Only sources that include pybind11 read it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "framework/builder/call_site.h"
#include "framework/builder/variable.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/tensor.h"

namespace skiff::python {

namespace py = pybind11;

// Each binds one part of the package. Parts come in this order, since later parts use the classes
// of earlier parts.
void BindTensors(py::module_& module);
void BindPrograms(py::module_& module);
void BindFunctions(py::module_& module);
void BindDistributed(py::module_& module);
void BindExecutor(py::module_& module);
void BindFiles(py::module_& module);
void BindReaders(py::module_& module);
void BindMetrics(py::module_& module);
void BindCallbacks(py::module_& module);
void BindTrainer(py::module_& module);

// ---- programs

// Layers called while it exists name the line of Python that is running.
CallSiteGuard GuardCaller();
// Makes this thread's default programs objects of Python, which outlive every Variable in them.
void OwnDefaultPrograms();
// Returns the Python object of a variable, which keeps its program alive.
py::object VariableObject(const Variable& variable);
// Returns the name of a variable that is given as a text or as a Variable. Throws a TypeError.
std::string NameOf(py::handle variable);
std::vector<std::string> NamesOf(const py::iterable& variables);

// ---- tensors

// A tensor in Python. Read-only if it shares memory with something that isn't to be written.
struct PythonTensor {
  Tensor tensor;
  bool is_writable = true;
};

enum class MayCopy { kYes, kNo };

// Returns the tensor of an object: a Tensor, an array, anything with __dlpack__, or what
// numpy.asarray takes. It shares the memory if that is contiguous, aligned and of the native byte
// order, and keeps the object alive. Otherwise it is a copy; with kNo throws an Error
// (kInvalidArgument). It is writable if the memory is. `what` begins messages. Throws an Error
// (kInvalidArgument) for a dtype that Skiff lacks and for memory that isn't the CPU's, and a
// TypeError for a masked array.
PythonTensor TensorOf(py::handle object, const std::string& what, MayCopy may_copy = MayCopy::kYes);
// Returns the tensor of an object of which only the elements will be kept. Throws what TensorOf
// throws, and an Error (kInvalidArgument) for selected rows and for a tensor with LoD.
Tensor DenseTensorOf(py::handle object, const std::string& what);
// The same of a tensor that may be ragged.
Tensor UnselectedTensorOf(py::handle object, const std::string& what);
// Returns an array that shares the tensor's memory and keeps it alive; of a tensor on a device, a
// copy. The elements of bfloat16 are its bits, uint16.
py::object ArrayOf(const Tensor& tensor, bool is_writable = true);
// Returns whether such an array tells all of the tensor: it doesn't tell of a LoD, of row numbers,
// and that bits are bfloat16.
bool IsAnArray(const Tensor& tensor);

// ---- files

// Returns the path that a text, bytes or an os.PathLike names, as the system has it. Throws a
// TypeError for anything else, and a ValueError for a path with a NUL, which would end it.
std::string PathText(py::handle path);

// Returns a Python namedtuple class called `name`, and makes it an attribute of the module.
py::object NamedTupleClass(py::module_& module, const char* name,
                           const std::vector<std::string>& fields);

}  // namespace skiff::python
