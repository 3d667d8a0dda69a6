// Runs one model of ONNX as its node tests do: MODEL, then the files of the inputs, which
// have their names in them, then OUT, a folder that gets output_0.pb, output_1.pb, … With
// --feed_dims before them, the model is imported for the dims of these inputs alone.
//
// Exits with 0 if the outputs are written, with 3 if the import refuses the model, and with 4 if
// its run fails. The reason is on standard error.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/onnx/import.h"
#include "framework/onnx/onnx.pb.h"
#include "framework/onnx/tensor_proto.h"

namespace {

constexpr int kRefused = 3;
constexpr int kFailed = 4;

int32_t TypeOf(skiff::DType dtype) {
  for (int32_t type = 1; type <= skiff::onnx::TensorProto::BFLOAT16; ++type) {
    if (skiff::DTypeFromOnnx(type) == dtype) return type;
  }
  return 0;
}

void WriteTensor(const std::string& path, const skiff::Tensor& tensor) {
  skiff::onnx::TensorProto proto;
  for (const int64_t dim : tensor.shape().dims()) proto.add_dims(dim);
  proto.set_data_type(TypeOf(tensor.dtype()));
  const auto bytes = static_cast<size_t>(tensor.byte_count());
  proto.set_raw_data(std::string(static_cast<const char*>(tensor.raw_data()), bytes));
  skiff::AtomicWriteFile(path, proto.SerializeAsString());
}

// Returns the inputs by their names.
skiff::FeedList ReadInputs(const std::vector<std::string>& paths) {
  skiff::FeedList inputs;
  for (const std::string& path : paths) {
    skiff::onnx::TensorProto proto;
    SKIFF_ENFORCE(proto.ParseFromString(skiff::ReadFile(path)), kDataLoss, path);
    inputs.emplace_back(proto.name(), skiff::TensorFromOnnx(proto, "."));
  }
  return inputs;
}

int RunModel(const std::string& model_path, const skiff::FeedList& inputs, bool for_their_dims,
             const std::string& out) {
  skiff::Executor exe;
  skiff::InferenceModel model;
  skiff::OnnxImportOptions options;
  for (const auto& [name, tensor] : inputs) {
    if (for_their_dims) options.feed_dims[name] = tensor.shape().ToVector();
  }
  try {
    model = skiff::ImportOnnx(model_path, &exe.scope(), options);
  } catch (const skiff::Error& error) {
    std::cerr << error.what() << "\n";
    return kRefused;
  }
  try {
    const auto outputs = exe.Compile(*model.program).Run(inputs, model.fetch_names);
    for (size_t i = 0; i < outputs.size(); ++i) {
      WriteTensor(skiff::JoinPath(out, "output_" + std::to_string(i) + ".pb"), outputs[i]);
    }
  } catch (const skiff::Error& error) {
    std::cerr << error.what() << "\n";
    return kFailed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool for_their_dims = !arguments.empty() && arguments.front() == "--feed_dims";
  if (for_their_dims) arguments.erase(arguments.begin());
  if (arguments.size() < 2) {
    std::cerr << "usage: onnx_node_runner [--feed_dims] MODEL INPUT... OUT\n";
    return 2;
  }
  const skiff::FeedList inputs = ReadInputs({arguments.begin() + 1, arguments.end() - 1});
  return RunModel(arguments.front(), inputs, for_their_dims, arguments.back());
}
