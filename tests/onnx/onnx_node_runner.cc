// Runs one model of ONNX as its node tests do: MODEL, then the files of the inputs in the order of
// the graph, then OUT, a folder that gets output_0.pb, output_1.pb, …
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

int RunModel(const std::vector<std::string>& arguments) {
  skiff::Executor exe;
  skiff::InferenceModel model;
  try {
    model = skiff::ImportOnnx(arguments.front(), &exe.scope());
  } catch (const skiff::Error& error) {
    std::cerr << error.what() << "\n";
    return kRefused;
  }
  try {
    skiff::FeedList feeds;
    for (size_t i = 1; i + 1 < arguments.size(); ++i) {
      skiff::onnx::TensorProto proto;
      if (!proto.ParseFromString(skiff::ReadFile(arguments[i]))) return kFailed;
      feeds.emplace_back(model.feed_names.at(i - 1), skiff::TensorFromOnnx(proto, "."));
    }
    const auto outputs = exe.Compile(*model.program).Run(feeds, model.fetch_names);
    for (size_t i = 0; i < outputs.size(); ++i) {
      WriteTensor(skiff::JoinPath(arguments.back(), "output_" + std::to_string(i) + ".pb"),
                  outputs[i]);
    }
  } catch (const skiff::Error& error) {
    std::cerr << error.what() << "\n";
    return kFailed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: onnx_node_runner MODEL INPUT... OUT\n";
    return 2;
  }
  return RunModel({argv + 1, argv + argc});
}
