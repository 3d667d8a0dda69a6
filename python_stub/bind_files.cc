// Checkpoints, inference models, ONNX, archives of arrays, and the fingerprint of weights.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/io/checkpoint.h"
#include "framework/io/inference_model.h"
#include "framework/io/lod_entries.h"
#include "framework/io/npz.h"
#include "framework/io/safetensors.h"
#include "framework/io/weights_hash.h"
#include "framework/onnx/export.h"
#include "framework/onnx/import.h"
#include "python_stub/binding.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {
namespace {

// Named tuples of results. They live as long as the process.
struct TupleClasses {
  py::object saved_checkpoint;
  py::object loaded_checkpoint;
  py::object inference_model;
};
TupleClasses& Tuples() {
  static auto& classes = *new TupleClasses;
  return classes;
}

// Returns the text of a path, which may have bytes that aren't UTF-8.
py::object PathObject(const std::string& path) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

py::list PathObjects(const std::vector<std::string>& paths) {
  py::list objects;
  for (const std::string& path : paths) objects.append(PathObject(path));
  return objects;
}

// Returns the bytes of a text or of bytes. Throws a TypeError that begins with `what`.
std::string BytesOf(py::handle object, const std::string& what) {
  try {
    return object.cast<std::string>();
  } catch (const py::cast_error&) {
    throw py::type_error(StrCat(what, ": found ", std::string(py::str(py::repr(object))),
                                ", expected a text or bytes"));
  }
}

TrainerState StateOf(const py::object& state) {
  TrainerState texts;
  for (const auto& [key, value] : py::dict(state)) {
    std::string name = BytesOf(key, "a name in the state");
    std::string bytes = BytesOf(value, StrCat("state[\"", name, "\"]"));
    texts.emplace(std::move(name), std::move(bytes));
  }
  return texts;
}

// The state may be any bytes.
py::dict StateObject(const TrainerState& state) {
  py::dict object;
  for (const auto& [name, value] : state) object[py::str(name)] = py::bytes(value);
  return object;
}

py::object Save(const py::object& directory, const Program& program, SharedScope& scope,
                int64_t step, const py::object& state, int keep_last) {
  const std::string path = PathText(directory);
  const TrainerState texts = StateOf(state);
  const std::unique_ptr<Program> copy = program.Clone();
  SavedCheckpoint saved;
  {
    const ScopeLock lock(scope);
    saved = SaveCheckpoint(path, *copy, scope.scope, step, texts, {.keep_last = keep_last});
  }
  return Tuples().saved_checkpoint(PathObject(saved.path), PathObjects(saved.removed),
                                   PathObjects(saved.not_removed));
}

py::object Load(const py::object& directory, const Program& program, SharedScope& scope,
                bool ignore_extra_variables) {
  const std::string path = PathText(directory);
  const std::unique_ptr<Program> copy = program.Clone();
  LoadedCheckpoint loaded;
  {
    const ScopeLock lock(scope);
    loaded = LoadLatestCheckpoint(path, *copy, &scope.scope,
                                  {.ignore_extra_variables = ignore_extra_variables});
  }
  py::list refused;
  for (const RefusedCheckpoint& checkpoint : loaded.refused) {
    refused.append(py::make_tuple(PathObject(checkpoint.path), checkpoint.reason));
  }
  return Tuples().loaded_checkpoint(PathObject(loaded.path), loaded.step, StateObject(loaded.state),
                                    refused);
}

void SaveModel(const py::object& directory, const py::iterable& feeds, const py::iterable& fetches,
               const Program& program, SharedScope& scope, const std::string& params_filename) {
  const std::string path = PathText(directory);
  const std::vector<std::string> feed_names = NamesOf(feeds);
  const std::vector<std::string> fetch_names = NamesOf(fetches);
  const std::unique_ptr<Program> copy = program.Clone();
  const ScopeLock lock(scope);
  SaveInferenceModel(path, feed_names, fetch_names, *copy, scope.scope,
                     {.files = {.params_filename = params_filename}});
}

py::object LoadModel(const py::object& directory, SharedScope& scope,
                     const std::optional<std::string>& params_filename,
                     const std::optional<std::string>& model_filename) {
  const std::string path = PathText(directory);
  InferenceModel model;
  {
    const ScopeLock lock(scope);
    model = LoadInferenceModel(path, &scope.scope, model_filename, params_filename);
  }
  return Tuples().inference_model(std::move(model.program), model.feed_names, model.fetch_names);
}

py::object Import(const py::object& path, SharedScope& scope, bool widen_half,
                  const std::map<std::string, std::vector<int64_t>>& feed_dims) {
  const std::string text = PathText(path);
  InferenceModel model;
  {
    const ScopeLock lock(scope);
    model = ImportOnnx(text, &scope.scope, {.widen_half = widen_half, .feed_dims = feed_dims});
  }
  return Tuples().inference_model(std::move(model.program), model.feed_names, model.fetch_names);
}

void Export(const py::object& path, const py::iterable& feeds, const py::iterable& fetches,
            const Program& program, SharedScope& scope, int opset, const std::string& graph_name) {
  const std::string text = PathText(path);
  const std::vector<std::string> feed_names = NamesOf(feeds);
  const std::vector<std::string> fetch_names = NamesOf(fetches);
  const std::unique_ptr<Program> copy = program.Clone();
  const ScopeLock lock(scope);
  ExportOnnx(text, feed_names, fetch_names, *copy, scope.scope,
             {.opset = opset, .graph_name = graph_name});
}

std::string Hash(SharedScope& scope, const py::iterable& names) {
  const std::vector<std::string> texts = NamesOf(names);
  const ScopeLock lock(scope);
  return WeightsHash(scope.scope, texts);
}

// None: all arrays.
ArrayNames NamesOrAll(const py::object& names) {
  if (names.is_none()) return {};
  if (!py::isinstance<py::iterable>(names) || py::isinstance<py::str>(names)) {
    throw py::type_error(StrCat("names: found ", std::string(py::str(py::repr(names))),
                                ", expected several names, or None for all"));
  }
  return NamesOf(names.cast<py::iterable>());
}

py::dict ReadArchive(const py::object& path, const py::object& names) {
  const std::string text = PathText(path);
  const ReadNpzOptions options{.names = NamesOrAll(names)};
  TensorMap tensors;
  {
    const py::gil_scoped_release release;
    // Arrays have no LoD: the offsets are arrays again, as numpy.load has them.
    tensors = WithLoDEntries(ReadNpz(text, options));
  }
  py::dict arrays;
  for (const auto& [name, tensor] : tensors) arrays[py::str(name)] = ArrayOf(tensor);
  return arrays;
}

// `take` is one of the functions below TensorOf.
TensorMap TensorsOf(const py::object& arrays, Tensor (*take)(py::handle, const std::string&)) {
  TensorMap tensors;
  for (const auto& [key, value] : py::dict(arrays)) {
    std::string name = BytesOf(key, "a name of an array");
    Tensor tensor = take(value, StrCat("array \"", name, "\""));
    tensors.emplace(std::move(name), std::move(tensor));
  }
  return tensors;
}

void WriteArchive(const py::object& path, const py::object& arrays, bool compress) {
  TensorMap tensors = TensorsOf(arrays, &UnselectedTensorOf);
  const std::string text = PathText(path);
  const py::gil_scoped_release release;
  // Offsets may be arrays, as read_npz returns them.
  TakeLoDEntries(text, &tensors);
  WriteNpz(text, tensors, compress);
}

// Tensors, since the format has bfloat16.
py::dict ReadTensors(const py::object& path, bool mmap, const py::object& names) {
  const std::string text = PathText(path);
  const ArrayNames wanted = NamesOrAll(names);
  TensorMap tensors;
  {
    const py::gil_scoped_release release;
    tensors = mmap ? MapSafetensors(text, wanted) : ReadSafetensors(text, wanted);
  }
  py::dict objects;
  for (const auto& [name, tensor] : tensors) {
    objects[py::str(name)] = PythonTensor{.tensor = tensor};
  }
  return objects;
}

std::map<std::string, std::string> ReadMetadata(const py::object& path) {
  const std::string text = PathText(path);
  const py::gil_scoped_release release;
  return SafetensorsFile(text).metadata();
}

void WriteTensors(const py::object& path, const py::object& tensors,
                  const std::map<std::string, std::string>& metadata) {
  const TensorMap map = TensorsOf(tensors, &DenseTensorOf);
  const std::string text = PathText(path);
  const py::gil_scoped_release release;
  WriteSafetensors(text, map, metadata);
}

}  // namespace

std::string PathText(py::handle path) {
  std::string text = py::bytes(py::module_::import("os").attr("fsencode")(path));
  if (text.find('\0') != std::string::npos) {
    throw py::value_error(StrCat("found the path ", std::string(py::str(py::repr(path))),
                                 ", expected one without a NUL"));
  }
  return text;
}

void BindFiles(py::module_& module) {
  Tuples().saved_checkpoint =
      NamedTupleClass(module, "SavedCheckpoint", {"path", "removed", "not_removed"});
  Tuples().loaded_checkpoint =
      NamedTupleClass(module, "LoadedCheckpoint", {"path", "step", "state", "refused"});
  Tuples().inference_model =
      NamedTupleClass(module, "InferenceModel", {"program", "feed_names", "fetch_names"});
  module.def("save_checkpoint", &Save, py::arg("directory"), py::arg("program"), py::arg("scope"),
             py::arg("step"), py::arg("state") = py::dict(), py::arg("keep_last") = 2,
             "Saves the persistables of the program, and a state of any texts or bytes by name. "
             "Then deletes all but the newest complete checkpoints. After an Error nothing is "
             "half-written and older checkpoints are untouched.");
  module.def(
      "load_latest_checkpoint", &Load, py::arg("directory"), py::arg("program"), py::arg("scope"),
      py::arg("ignore_extra_variables") = false,
      "Loads the newest checkpoint that is complete. After an Error the scope is as it was.");
  module.def("save_inference_model", &SaveModel, py::arg("directory"), py::arg("feeds"),
             py::arg("fetches"), py::arg("program"), py::arg("scope"),
             py::arg("params_filename") = kCombinedParamsFile,
             "Saves the part of the program that computes the fetches from the feeds, and its "
             "parameters: in one file, or in one each if params_filename is empty.");
  module.def(
      "load_inference_model", &LoadModel, py::arg("directory"), py::arg("scope"),
      py::arg("params_filename") = py::none(), py::arg("model_filename") = py::none(),
      "Loads the program and its parameters into the scope. Finds what is in the folder: the "
      "program __model__ or a *.pdmodel, the parameters in __params__, a *.pdiparams or one "
      "file each. If there are several, a name says which; an empty params_filename means "
      "one file each.");
  const OnnxExportOptions defaults;
  module.def(
      "import_onnx", &Import, py::arg("path"), py::arg("scope"), py::arg("widen_half") = false,
      py::arg("feed_dims") = std::map<std::string, std::vector<int64_t>>(),
      "Reads a model of ONNX as a program that runs and can be trained, with its weights in "
      "the scope. With widen_half, float16 and bfloat16 become float32. feed_dims has all dims "
      "of inputs whose dims the file leaves open, for a program of these dims alone. One "
      "UnimplementedError lists all parts that aren't supported. After an Error the scope "
      "is as it was.");
  module.def("export_onnx", &Export, py::arg("path"), py::arg("feeds"), py::arg("fetches"),
             py::arg("program"), py::arg("scope"), py::arg("opset") = defaults.opset,
             py::arg("graph_name") = defaults.graph_name,
             "Writes the part of the program that computes the fetches from the feeds, in "
             "evaluation, as a model of ONNX with its weights. opset is 13 to 24. One "
             "UnimplementedError lists all ops without a form in ONNX.");
  module.def("weights_hash", &Hash, py::arg("scope"), py::arg("names"),
             "Returns sixteen hexadecimal digits that tell whether two runs have the same values, "
             "on all machines.");
  module.def(
      "read_npz", &ReadArchive, py::arg("path"), py::arg("names") = py::none(),
      "Returns the arrays of a .npz archive by name, the offsets of a ragged x as x.lod0, x.lod1, "
      "…. With names, returns these arrays and looks at nothing else, so that others may be of any "
      "type. Nothing in the file is executed.");
  module.def(
      "write_npz", &WriteArchive, py::arg("path"), py::arg("arrays"), py::arg("compress") = false,
      "Writes a .npz archive. Arrays x.lod0, x.lod1, … are the offsets of a ragged x; so is the "
      "LoD of a Tensor. Equal arrays give equal bytes.");
  module.def(
      "read_safetensors", &ReadTensors, py::arg("path"), py::arg("mmap") = false,
      py::arg("names") = py::none(),
      "Returns the Tensors of a safetensors file by name. With names, returns these Tensors, "
      "and others may be of any type. With mmap, elements are read when "
      "they are touched, except bools, which must be checked, and elements whose place in "
      "the file isn't a multiple of their size; writing to them changes the memory, not the "
      "file. No process may shorten the file or write to it as long as a Tensor of it "
      "exists: that would end this process. write_safetensors may replace it.");
  module.def("read_safetensors_metadata", &ReadMetadata, py::arg("path"),
             "Returns the texts that describe a safetensors file, by name. Reads its header only.");
  module.def("write_safetensors", &WriteTensors, py::arg("path"), py::arg("tensors"),
             py::arg("metadata") = std::map<std::string, std::string>(),
             "Writes arrays or Tensors by name as a safetensors file, and texts that describe it.");
}

}  // namespace skiff::python
