#include "framework/onnx/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff {

namespace pb = google::protobuf;

onnx::ModelProto ParseOnnxModel(std::string_view bytes, std::string_view what) {
  SKIFF_ENFORCE(static_cast<int64_t>(bytes.size()) <= kOnnxFileLimitBytes, kOutOfRange, what,
                ": has ", bytes.size(), " bytes, expected at most ", kOnnxFileLimitBytes);
  pb::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  pb::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kOnnxNestingLimit);
  onnx::ModelProto model;
  SKIFF_ENFORCE(model.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage(), kDataLoss,
                what, ": is no ONNX model: its ", bytes.size(),
                " bytes aren't a ModelProto, or are one that is truncated or corrupt");
  SKIFF_ENFORCE(model.has_graph(), kDataLoss, what, ": is an ONNX model without a graph");
  return model;
}

onnx::ModelProto ReadOnnxModel(const std::string& path) {
  return ParseOnnxModel(ReadFile(path, kOnnxFileLimitBytes), path);
}

void WriteOnnxModel(const std::string& path, const onnx::ModelProto& model) {
  const auto size = static_cast<int64_t>(model.ByteSizeLong());
  SKIFF_ENFORCE(size <= kOnnxFileLimitBytes, kOutOfRange, path, ": the model takes ", size,
                " bytes, more than the ", kOnnxFileLimitBytes, " of an ONNX file");
  std::string bytes;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    model.SerializeToCodedStream(&coded);
  }
  AtomicWriteFile(path, bytes);
}

}  // namespace skiff
