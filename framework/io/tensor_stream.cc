// The reader meets files of any origin. It follows one rule: no size from the file is used to take
// memory or to read before it has been compared with the bytes that remain.
#include "framework/io/tensor_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/ir/codec.h"
#include "framework/tensor/bools.h"

namespace skiff {
namespace {

constexpr int64_t kOffsetBytes = sizeof(uint64_t);

// Runs `check` and reports its Errors as damage to the file.
template <typename Check>
auto AsDataLoss(const ByteSource& source, int64_t position, Check check) {
  try {
    return check();
  } catch (const Error& error) {
    // No memory isn't the file's fault.
    if (error.code() == ErrorCode::kResourceExhausted) throw;
    const ErrorCode code =
        error.code() == ErrorCode::kUnimplemented ? error.code() : ErrorCode::kDataLoss;
    Throw(code, source.name(), ", byte ", position, ": ", error.what());
  }
}

void ReadVersion(ByteSource* source, std::string_view what) {
  const int64_t position = source->offset();
  const auto version = source->ReadNumber<uint32_t>(what);
  if (version != 0) source->ThrowCorrupt(position, what, " is ", version, ", expected 0");
}

std::vector<uint64_t> ReadLoDLevel(uint64_t level, ByteSource* source) {
  const int64_t position = source->offset();
  const auto bytes = source->ReadNumber<uint64_t>("size of a LoD level");
  if (bytes % kOffsetBytes != 0 || bytes < 2 * kOffsetBytes) {
    source->ThrowCorrupt(position, "LoD level ", level, " has ", bytes,
                         " bytes, expected a multiple of 8, at least 16");
  }
  if (bytes > static_cast<uint64_t>(source->remaining())) {
    source->ThrowCorrupt(position, "LoD level ", level, " has ", bytes, " bytes, but only ",
                         source->remaining(), " remain");
  }
  std::vector<uint64_t> offsets(bytes / kOffsetBytes);
  source->Read(offsets.data(), static_cast<int64_t>(bytes), "LoD offsets");
  return offsets;
}

LoD ReadLoD(ByteSource* source) {
  const int64_t position = source->offset();
  const auto levels = source->ReadNumber<uint64_t>("number of LoD levels");
  // A level takes at least its size and two offsets.
  const auto limit = static_cast<uint64_t>(source->remaining() / (3 * kOffsetBytes));
  if (levels > limit) {
    source->ThrowCorrupt(position, levels, " LoD levels, but the ", source->remaining(),
                         " bytes that remain hold at most ", limit);
  }
  LoD lod;
  for (uint64_t level = 0; level < levels; ++level) lod.push_back(ReadLoDLevel(level, source));
  return lod;
}

struct TensorHead {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> dims;
};

TensorHead ReadTensorHead(ByteSource* source) {
  ReadVersion(source, "version of the tensor");
  const auto bytes = source->ReadNumber<int32_t>("size of the TensorDesc");
  const int64_t position = source->offset();
  const std::string desc = source->ReadString(bytes, "TensorDesc");
  TensorHead head;
  AsDataLoss(*source, position, [&] { ParseTensorDesc(desc, &head.dtype, &head.dims); });
  return head;
}

void RefuseBadBools(const Tensor& tensor, const ByteSource& source) {
  const std::optional<int64_t> bad = FindBadBool(tensor);
  if (!bad) return;
  source.ThrowCorrupt(source.offset() - tensor.byte_count() + *bad, "bool of value ",
                      static_cast<int>(static_cast<const uint8_t*>(tensor.raw_data())[*bad]),
                      ", expected 0 or 1");
}

}  // namespace

void WriteElements(const Tensor& tensor, ByteSink* sink) {
  if (tensor.place().is_cpu()) {
    sink->Write(tensor.raw_data(), tensor.byte_count());
    return;
  }
  const Tensor copy = CopyToCpu(tensor);
  sink->Write(copy.raw_data(), copy.byte_count());
}

void WriteTensorStream(const Tensor& tensor, ByteSink* sink) {
  SKIFF_ENFORCE(tensor.has_data(), kFailedPrecondition, "a tensor without storage can't be saved");
  SKIFF_ENFORCE(tensor.layout().is_plain(), kFailedPrecondition, "a tensor of layout ",
                tensor.layout(), " can't be saved: expected plain");
  // Everything before the elements in one piece, and one write for it.
  std::string head;
  AppendNumber<uint32_t>(0, &head);
  AppendNumber<uint64_t>(tensor.lod().size(), &head);
  for (const std::vector<uint64_t>& offsets : tensor.lod()) {
    AppendNumber<uint64_t>(offsets.size() * kOffsetBytes, &head);
    for (uint64_t offset : offsets) AppendNumber(offset, &head);
  }
  const std::string desc = SerializeTensorDesc(tensor.dtype(), tensor.shape().ToVector());
  AppendNumber<uint32_t>(0, &head);
  AppendNumber<int32_t>(static_cast<int32_t>(desc.size()), &head);
  sink->Write(head + desc);
  WriteElements(tensor, sink);
}

Tensor ReadElements(DType dtype, const std::vector<int64_t>& dims, ByteSource* source) {
  const int64_t position = source->offset();
  if (dims.size() > Shape::kMaxRank) {
    source->ThrowCorrupt(position, "tensor of rank ", dims.size(), ", expected at most ",
                         Shape::kMaxRank);
  }
  const Shape shape{std::span<const int64_t>(dims)};
  const int64_t bytes =
      AsDataLoss(*source, position, [&] { return ByteCount(ElementCount(dims), dtype); });
  // Before the tensor takes its memory.
  source->CheckRemaining(bytes, StrCat("elements of ", DTypeName(dtype), " ", shape));
  Tensor tensor(shape, dtype);
  source->Read(tensor.raw_data(), tensor.byte_count(), "elements");
  RefuseBadBools(tensor, *source);
  return tensor;
}

Tensor ReadTensorStream(ByteSource* source) {
  ReadVersion(source, "version of the stream");
  const int64_t lod_position = source->offset();
  LoD lod = ReadLoD(source);
  const TensorHead head = ReadTensorHead(source);
  Tensor tensor = ReadElements(head.dtype, head.dims, source);
  if (!lod.empty()) {
    // Only now is the number of rows known, with which the offsets must end.
    AsDataLoss(*source, lod_position, [&] { tensor.set_lod(std::move(lod)); });
  }
  return tensor;
}

}  // namespace skiff
