// Checkpoints, inference models, archives of arrays, and the fingerprint of weights.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/checkpoint.h"
#include "framework/io/inference_model.h"
#include "framework/io/npz.h"
#include "framework/io/safetensors.h"
#include "framework/io/weights_hash.h"
#include "python_stub/binding.h"

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

std::string PathText(const py::object& path) {
  return py::str(py::module_::import("os").attr("fspath")(path));
}

TrainerState StateOf(const py::object& state) {
  TrainerState texts;
  for (const auto& [name, value] : py::dict(state)) {
    texts.emplace(py::cast<std::string>(name), py::cast<std::string>(value));
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
  return Tuples().saved_checkpoint(saved.path, saved.removed, saved.not_removed);
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
    refused.append(py::make_tuple(checkpoint.path, checkpoint.reason));
  }
  return Tuples().loaded_checkpoint(loaded.path, loaded.step, StateObject(loaded.state), refused);
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
                     const std::string& params_filename) {
  const std::string path = PathText(directory);
  InferenceModel model;
  {
    const ScopeLock lock(scope);
    model = LoadInferenceModel(path, &scope.scope, {.params_filename = params_filename});
  }
  return Tuples().inference_model(std::move(model.program), model.feed_names, model.fetch_names);
}

std::string Hash(SharedScope& scope, const py::iterable& names) {
  const std::vector<std::string> texts = NamesOf(names);
  const ScopeLock lock(scope);
  return WeightsHash(scope.scope, texts);
}

py::dict ReadArchive(const py::object& path) {
  py::dict arrays;
  for (const auto& [name, tensor] : ReadNpz(PathText(path))) {
    arrays[py::str(name)] = ArrayOf(tensor);
  }
  return arrays;
}

TensorMap TensorsOf(const py::object& arrays) {
  TensorMap tensors;
  for (const auto& [name, value] : py::dict(arrays)) {
    std::string text = py::cast<std::string>(name);
    Tensor tensor = TensorOf(value, text);
    tensors.emplace(std::move(text), std::move(tensor));
  }
  return tensors;
}

void WriteArchive(const py::object& path, const py::object& arrays, bool compress) {
  const TensorMap tensors = TensorsOf(arrays);
  const std::string text = PathText(path);
  const py::gil_scoped_release release;
  WriteNpz(text, tensors, compress);
}

// Tensors, since the format has bfloat16.
py::dict ReadTensors(const py::object& path) {
  py::dict tensors;
  for (const auto& [name, tensor] : ReadSafetensors(PathText(path))) {
    tensors[py::str(name)] = PythonTensor{.tensor = tensor};
  }
  return tensors;
}

void WriteTensors(const py::object& path, const py::object& tensors,
                  const std::map<std::string, std::string>& metadata) {
  const TensorMap map = TensorsOf(tensors);
  const std::string text = PathText(path);
  const py::gil_scoped_release release;
  WriteSafetensors(text, map, metadata);
}

}  // namespace

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
  module.def("load_inference_model", &LoadModel, py::arg("directory"), py::arg("scope"),
             py::arg("params_filename") = kCombinedParamsFile,
             "Loads the program and its parameters into the scope.");
  module.def("weights_hash", &Hash, py::arg("scope"), py::arg("names"),
             "Returns sixteen hexadecimal digits that tell whether two runs have the same values, "
             "on all machines.");
  module.def("read_npz", &ReadArchive, py::arg("path"),
             "Returns the arrays of a .npz archive by name. Nothing in the file is executed.");
  module.def("write_npz", &WriteArchive, py::arg("path"), py::arg("arrays"),
             py::arg("compress") = false, "Writes a .npz archive. Equal arrays give equal bytes.");
  module.def("read_safetensors", &ReadTensors, py::arg("path"),
             "Returns the Tensors of a safetensors file by name.");
  module.def("write_safetensors", &WriteTensors, py::arg("path"), py::arg("tensors"),
             py::arg("metadata") = std::map<std::string, std::string>(),
             "Writes arrays or Tensors by name as a safetensors file.");
}

}  // namespace skiff::python
