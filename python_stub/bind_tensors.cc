// Tensors and arrays: NumPy and DLPack, without a copy where the memory's layout allows.
#include <dlpack/dlpack.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "python_stub/binding.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {
namespace {

constexpr const char* kFreshCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";
// DLPack's code for bool, which older headers lack.
constexpr uint8_t kDlBool = 6;

// ---- memory that Python owns

// A buffer in the memory of a Python object, which lives as long as the buffer.
struct BorrowedFromPython {
  BorrowedFromPython(void* data, int64_t bytes, py::object object)
      : buffer(data, bytes, Place::Cpu()), owner(std::move(object)) {}
  ~BorrowedFromPython() {
    // Tensors may die in any thread, and after the interpreter.
    if (Py_IsInitialized() == 0) {
      owner.release();
      return;
    }
    ScopeLock::Release(std::move(owner));
  }

  Buffer buffer;
  py::object owner;
};

Tensor Borrow(void* data, const Shape& shape, DType dtype, py::object owner) {
  const int64_t bytes = shape.element_count() * SizeOf(dtype);
  auto borrowed = std::make_shared<BorrowedFromPython>(data, bytes, std::move(owner));
  return {shape, dtype, std::shared_ptr<Buffer>(borrowed, &borrowed->buffer)};
}

// ---- NumPy

std::optional<DType> DTypeOfArray(const py::array& array) {
  const auto size = array.itemsize();
  switch (array.dtype().kind()) {
    case 'b':
      return DType::kBool;
    case 'u':
      if (size == 1) return DType::kUint8;
      return std::nullopt;
    case 'i':
      if (size == 1) return DType::kInt8;
      if (size == 2) return DType::kInt16;
      return size == 4 ? DType::kInt32 : DType::kInt64;
    case 'f':
      if (size == 2) return DType::kFloat16;
      if (size == 4) return DType::kFloat32;
      if (size == 8) return DType::kFloat64;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string DTypeText(const py::array& array) { return py::str(array.dtype()); }

bool IsPlain(const py::array& array) {
  constexpr int kNeeded =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  return (array.flags() & kNeeded) == kNeeded && array.dtype().attr("isnative").cast<bool>();
}

// Returns an array of the same values that IsPlain.
py::array PlainCopy(const py::array& array) {
  const py::object dtype = array.dtype().attr("newbyteorder")("=");
  return py::module_::import("numpy").attr("require")(array, dtype, py::make_tuple("C", "A"));
}

void RefuseMask(const py::array& array, const std::string& what) {
  // Most arrays are of NumPy's own class, and this is in every run.
  if (Py_TYPE(array.ptr()) == py::detail::npy_api::get().PyArray_Type_) return;
  if (!py::isinstance(array, py::module_::import("numpy.ma").attr("MaskedArray"))) return;
  throw py::type_error(what +
                       ": found a masked array, expected one without a mask, such as its "
                       "filled(value)");
}

PythonTensor TensorOfArray(py::array array, const std::string& what, MayCopy may_copy,
                           std::optional<DType> dtype = std::nullopt) {
  RefuseMask(array, what);
  if (!dtype) dtype = DTypeOfArray(array);
  SKIFF_ENFORCE(dtype.has_value(), kInvalidArgument, what, ": an array of dtype ", DTypeText(array),
                ", expected bool, int8, int16, int32, int64, uint8, float16, "
                "float32 or float64 (bfloat16: skiff.Tensor(bits, \"bfloat16\"))");
  if (!IsPlain(array)) {
    SKIFF_ENFORCE(may_copy == MayCopy::kYes, kInvalidArgument, what,
                  ": an array that isn't contiguous, aligned and of the native byte order, so that "
                  "it can't be read in place: expected numpy.ascontiguousarray of it");
    array = PlainCopy(array);
  }
  const Shape shape(std::span<const int64_t>(array.shape(), static_cast<size_t>(array.ndim())));
  void* data = const_cast<void*>(array.data());
  const bool is_writable = array.writeable();
  return {.tensor = Borrow(data, shape, *dtype, std::move(array)), .is_writable = is_writable};
}

py::dtype ArrayDType(DType dtype) {
  const std::string name = dtype == DType::kBFloat16 ? "uint16" : TextOf(dtype);
  return py::dtype::from_args(py::str(name));
}

// ---- DLPack

std::optional<DType> DTypeOfDlPack(const DLDataType& type) {
  if (type.lanes != 1) return std::nullopt;
  switch (type.code) {
    case kDlBool:
      if (type.bits == 8) return DType::kBool;
      return std::nullopt;
    case kDLUInt:
      if (type.bits == 8) return DType::kUint8;
      return std::nullopt;
    case kDLBfloat:
      if (type.bits == 16) return DType::kBFloat16;
      return std::nullopt;
    case kDLInt:
      if (type.bits == 8) return DType::kInt8;
      if (type.bits == 16) return DType::kInt16;
      if (type.bits == 32) return DType::kInt32;
      if (type.bits == 64) return DType::kInt64;
      return std::nullopt;
    case kDLFloat:
      if (type.bits == 16) return DType::kFloat16;
      if (type.bits == 32) return DType::kFloat32;
      if (type.bits == 64) return DType::kFloat64;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

DLDataType DlPackType(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * SizeOf(dtype));
  if (dtype == DType::kBool) return {kDlBool, bits, 1};
  if (dtype == DType::kUint8) return {kDLUInt, bits, 1};
  if (dtype == DType::kBFloat16) return {kDLBfloat, bits, 1};
  return {static_cast<uint8_t>(IsFloat(dtype) ? kDLFloat : kDLInt), bits, 1};
}

bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t stride = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// Copies the elements below `axis`, from a strided tensor to contiguous memory.
char* CopyStrided(const DLTensor& tensor, int axis, const char* from, int64_t size, char* to) {
  if (axis == tensor.ndim) {
    std::memcpy(to, from, static_cast<size_t>(size));
    return to + size;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i) {
    to = CopyStrided(tensor, axis + 1, from + i * tensor.strides[axis] * size, size, to);
  }
  return to;
}

// Returns a capsule that owns what the producer handed over.
py::capsule TakeOver(const py::capsule& capsule) {
  auto* managed = static_cast<DLManagedTensor*>(capsule.get_pointer());
  py::capsule owner(managed, [](void* pointer) {
    auto* taken = static_cast<DLManagedTensor*>(pointer);
    if (taken->deleter != nullptr) taken->deleter(taken);
  });
  PyCapsule_SetName(capsule.ptr(), kUsedCapsule);
  return owner;
}

Tensor TensorOfDlPack(py::handle object, const std::string& what, MayCopy may_copy) {
  const py::object produced = object.attr("__dlpack__")();
  SKIFF_ENFORCE(PyCapsule_IsValid(produced.ptr(), kFreshCapsule) != 0, kInvalidArgument, what,
                ": __dlpack__ gave something else than a capsule \"", kFreshCapsule, "\"");
  const py::capsule owner = TakeOver(py::reinterpret_borrow<py::capsule>(produced));
  const DLTensor& tensor = owner.get_pointer<DLManagedTensor>()->dl_tensor;
  SKIFF_ENFORCE(tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost,
                kInvalidArgument, what, ": memory of a device (DLPack type ",
                static_cast<int>(tensor.device.device_type), "), expected the CPU's");
  const std::optional<DType> dtype = DTypeOfDlPack(tensor.dtype);
  SKIFF_ENFORCE(dtype.has_value(), kInvalidArgument, what, ": a DLPack tensor of type code ",
                static_cast<int>(tensor.dtype.code), ", ", static_cast<int>(tensor.dtype.bits),
                " bits and ", tensor.dtype.lanes, " lanes, which Skiff lacks");
  const Shape shape(std::span<const int64_t>(tensor.shape, static_cast<size_t>(tensor.ndim)));
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  if (shape.element_count() == 0 || IsContiguous(tensor)) return Borrow(data, shape, *dtype, owner);
  SKIFF_ENFORCE(may_copy == MayCopy::kYes, kInvalidArgument, what,
                ": a DLPack tensor that isn't contiguous, so that it can't be read in place");
  Tensor copy(shape, *dtype);
  CopyStrided(tensor, 0, data, SizeOf(*dtype), static_cast<char*>(copy.raw_data()));
  return copy;
}

// What a capsule holds on to.
struct Exported {
  Tensor tensor;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  DLManagedTensor managed;
};

void DeleteExported(DLManagedTensor* managed) {
  delete static_cast<Exported*>(managed->manager_ctx);
}

DLDevice DlPackDevice(Place place) {
  return {.device_type = place.is_cpu() ? kDLCPU : kDLCUDA, .device_id = place.index};
}

py::object DlPackOf(const PythonTensor& self, const py::object& /*stream*/) {
  SKIFF_ENFORCE(self.is_writable, kFailedPrecondition,
                "__dlpack__ of a read-only tensor: expected a copy of it, since who takes over a "
                "DLPack tensor may write to it");
  SKIFF_ENFORCE(self.tensor.place().is_cpu(), kUnimplemented, "__dlpack__ of a tensor on ",
                self.tensor.place(), ": expected one on the CPU");
  auto* exported = new Exported{.tensor = self.tensor,
                                .dims = self.tensor.shape().ToVector(),
                                .strides = std::vector<int64_t>(self.tensor.shape().dims().size()),
                                .managed = {}};
  int64_t stride = 1;
  for (size_t i = exported->dims.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= exported->dims[i];
  }
  exported->managed.dl_tensor = {.data = exported->tensor.raw_data(),
                                 .device = DlPackDevice(exported->tensor.place()),
                                 .ndim = static_cast<int>(exported->dims.size()),
                                 .dtype = DlPackType(exported->tensor.dtype()),
                                 .shape = exported->dims.data(),
                                 .strides = exported->strides.data(),
                                 .byte_offset = 0};
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = DeleteExported;
  return py::reinterpret_steal<py::object>(
      PyCapsule_New(&exported->managed, kFreshCapsule, [](PyObject* capsule) {
        if (PyCapsule_IsValid(capsule, kFreshCapsule) == 0) return;
        auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFreshCapsule));
        managed->deleter(managed);
      }));
}

// ---- the class Tensor

std::unique_ptr<PythonTensor> MakeTensor(const py::object& value,
                                         const std::optional<std::string>& dtype, LoD lod) {
  auto made = std::make_unique<PythonTensor>();
  if (dtype == "bfloat16") {
    // The conversion would drop a mask.
    const auto array = py::isinstance<py::array>(value) ? py::reinterpret_borrow<py::array>(value)
                                                        : py::array::ensure(value);
    SKIFF_ENFORCE(array && array.dtype().kind() == 'u' && array.itemsize() == 2, kInvalidArgument,
                  "Tensor of bfloat16: expected an array of dtype uint16, its bits");
    *made = TensorOfArray(array, "Tensor", MayCopy::kYes, DType::kBFloat16);
  } else {
    *made = TensorOf(value, "Tensor");
    SKIFF_ENFORCE(!dtype || made->tensor.dtype() == DTypeFromName(*dtype), kInvalidArgument,
                  "Tensor: an array of dtype ", made->tensor.dtype(), ", expected ", *dtype);
  }
  if (!lod.empty()) made->tensor.set_lod(std::move(lod));
  return made;
}

std::string Repr(const PythonTensor& self) {
  return StrCat("Tensor(", self.tensor.dtype(), ", ", self.tensor.shape(), ", ",
                self.tensor.place(), ")");
}

// What NumPy calls to make an array of a tensor. With copy = None it shares the memory if it can;
// since NumPy 2, numpy.array passes True and makes no copy itself.
py::object NumpyArray(const PythonTensor& self, const py::object& dtype, const py::object& copy) {
  py::object array = ArrayOf(self.tensor, self.is_writable);
  const bool is_same =
      dtype.is_none() || py::object(array.attr("dtype")).equal(py::dtype::from_args(dtype));
  const bool may_share = self.tensor.place().is_cpu() && is_same;
  const bool wants_copy = !copy.is_none() && copy.cast<bool>();
  if (!may_share && !copy.is_none() && !wants_copy) {
    throw py::value_error(Repr(self) + ": found copy=False, but this array takes a copy");
  }
  if (!is_same) {
    // The array has bits, which a cast would take for numbers.
    if (self.tensor.dtype() == DType::kBFloat16) {
      throw py::type_error(Repr(self) + ": NumPy has no bfloat16, expected dtype uint16, its bits");
    }
    return array.attr("astype")(dtype);
  }
  return may_share && wants_copy ? array.attr("copy")() : array;
}

}  // namespace

PythonTensor TensorOf(py::handle object, const std::string& what, MayCopy may_copy) {
  if (py::isinstance<PythonTensor>(object)) {
    const auto& given = object.cast<const PythonTensor&>();
    SKIFF_ENFORCE(given.tensor.place().is_cpu(), kInvalidArgument, what, ": a tensor on ",
                  given.tensor.place(), ", expected one on the CPU");
    return given;
  }
  if (py::isinstance<py::array>(object)) {
    return TensorOfArray(py::reinterpret_borrow<py::array>(object), what, may_copy);
  }
  // Producers refuse to hand over memory that isn't to be written.
  if (py::hasattr(object, "__dlpack__")) return {TensorOfDlPack(object, what, may_copy)};
  SKIFF_ENFORCE(may_copy == MayCopy::kYes, kInvalidArgument, what, ": ",
                std::string(py::str(py::type::of(object).attr("__name__"))),
                ", expected an array, which can be read in place");
  return TensorOfArray(py::module_::import("numpy").attr("asarray")(object), what, may_copy);
}

Tensor UnselectedTensorOf(py::handle object, const std::string& what) {
  Tensor tensor = TensorOf(object, what).tensor;
  SKIFF_ENFORCE(!tensor.is_selected_rows(), kInvalidArgument, what,
                ": selected rows, whose numbers would be lost: expected a dense tensor");
  return tensor;
}

Tensor DenseTensorOf(py::handle object, const std::string& what) {
  Tensor tensor = UnselectedTensorOf(object, what);
  SKIFF_ENFORCE(tensor.lod().empty(), kInvalidArgument, what,
                ": a tensor with LoD, which would be lost: expected one without");
  return tensor;
}

py::object ArrayOf(const Tensor& tensor, bool is_writable) {
  if (!tensor.place().is_cpu()) return ArrayOf(CopyToCpu(tensor));
  auto owner = std::make_unique<Tensor>(tensor);
  const py::capsule base(owner.get(), [](void* held) { delete static_cast<Tensor*>(held); });
  void* data = owner.release()->raw_data();
  const std::span<const int64_t> dims = tensor.shape().dims();
  // NumPy takes no null pointer for a view, not even of nothing.
  static char nothing = 0;
  py::array array(ArrayDType(tensor.dtype()), std::vector<py::ssize_t>(dims.begin(), dims.end()),
                  data == nullptr ? &nothing : data, base);
  if (!is_writable) array.attr("flags").attr("writeable") = false;
  return array;
}

bool IsAnArray(const Tensor& tensor) {
  return tensor.lod().empty() && !tensor.is_selected_rows() && tensor.dtype() != DType::kBFloat16;
}

void BindTensors(py::module_& module) {
  py::class_<PythonTensor>(
      module, "Tensor",
      "A typed and shaped view of memory, with the offsets of ragged sequences (LoD).\n\n"
      "For what NumPy has no array: bfloat16, LoD, selected rows. Everything else may be an array.")
      .def(py::init(&MakeTensor), py::arg("value"), py::arg("dtype") = py::none(),
           py::arg("lod") = LoD(),
           "Shares the memory of an array, of anything with __dlpack__ or of another Tensor, if it "
           "is contiguous; otherwise copies it. With dtype \"bfloat16\", `value` holds the bits, "
           "uint16.")
      .def_property_readonly("shape",
                             [](const PythonTensor& self) {
                               return py::tuple(py::cast(self.tensor.shape().ToVector()));
                             })
      .def_property_readonly("dtype",
                             [](const PythonTensor& self) { return TextOf(self.tensor.dtype()); })
      .def_property_readonly(
          "place", [](const PythonTensor& self) { return PlaceName(self.tensor.place()); })
      .def_property_readonly(
          "lod", [](const PythonTensor& self) { return self.tensor.lod(); },
          "Offsets per level, outermost first.")
      .def_property_readonly(
          "is_selected_rows",
          [](const PythonTensor& self) { return self.tensor.is_selected_rows(); })
      .def_property_readonly(
          "rows",
          [](const PythonTensor& self) {
            return std::vector<int64_t>(self.tensor.rows().begin(), self.tensor.rows().end());
          },
          "Of selected rows: their numbers in the dense tensor, -1 for an unused row.")
      .def_property_readonly(
          "height", [](const PythonTensor& self) { return self.tensor.height(); },
          "Of selected rows: the rows of the dense tensor.")
      .def(
          "numpy", [](const PythonTensor& self) { return ArrayOf(self.tensor, self.is_writable); },
          "Returns an array that shares the memory; of bfloat16, its bits as uint16; of a tensor "
          "on a device, a copy.")
      .def("__array__", &NumpyArray, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack__", &DlPackOf, py::arg("stream") = py::none())
      .def("__dlpack_device__",
           [](const PythonTensor& self) {
             const DLDevice device = DlPackDevice(self.tensor.place());
             return py::make_tuple(static_cast<int>(device.device_type), device.device_id);
           })
      .def("__repr__", &Repr);
}

}  // namespace skiff::python
