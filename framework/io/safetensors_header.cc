#include "framework/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/io/json.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";
constexpr int64_t kLengthBytes = sizeof(uint64_t);
constexpr int64_t kHeaderLimitBytes = 100'000'000;
// Of the format's own library. Only what isn't looked at is nested more than three times.
constexpr int kNestingLimit = 127;
constexpr std::array<std::string_view, 3> kMembers{"dtype", "shape", "data_offsets"};

// In the order in which their tensors are written.
constexpr std::array<std::pair<std::string_view, DType>, 10> kDTypes{{
    {"I64", DType::kInt64},
    {"F64", DType::kFloat64},
    {"F32", DType::kFloat32},
    {"I32", DType::kInt32},
    {"BF16", DType::kBFloat16},
    {"F16", DType::kFloat16},
    {"I16", DType::kInt16},
    {"I8", DType::kInt8},
    {"U8", DType::kUint8},
    {"BOOL", DType::kBool},
}};

std::optional<DType> FindDType(std::string_view name) {
  for (const auto& [known, dtype] : kDTypes) {
    if (known == name) return dtype;
  }
  return {};
}

// Returns the place in kDTypes, which has them all.
size_t PlaceOf(DType dtype) {
  size_t place = 0;
  while (kDTypes[place].second != dtype) ++place;
  return place;
}

std::string ReadText(ByteSource* source) {
  const auto length = source->ReadNumber<uint64_t>("length of the header");
  if (length > static_cast<uint64_t>(kHeaderLimitBytes)) {
    source->ThrowCorrupt(0, "header of ", length, " bytes, expected at most ", kHeaderLimitBytes);
  }
  std::string text = source->ReadString(static_cast<int64_t>(length), "header");
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (!std::string_view(text).substr(begin).starts_with('{')) {
    source->ThrowCorrupt(kLengthBytes + static_cast<int64_t>(begin), "header: expected '{'");
  }
  return text;
}

Json ParseText(const std::string& text, const ByteSource& source) {
  bool is_metadata = false;
  // An object of tensors, and the object of each. What else others write isn't looked at.
  const auto keeps = [&](int depth, const std::string& key) {
    if (depth == 1) is_metadata = key == kMetadataKey;
    return depth == 1 || (depth == 2 && (is_metadata || std::ranges::count(kMembers, key) > 0));
  };
  return ParseJson(text, source.name() + ": header", ErrorCode::kDataLoss, kNestingLimit, keeps);
}

// The checks of an entry. `where` is the name of the file and that of the tensor.
int64_t CountOf(const Json& value, const std::string& where) {
  SKIFF_ENFORCE(value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX, kDataLoss, where,
                ": found ", QuotedJson(value), ", expected a count");
  return value.get<int64_t>();
}

std::vector<int64_t> CountsOf(const Json& list, const std::string& where) {
  SKIFF_ENFORCE(list.is_array(), kDataLoss, where, ": found ", QuotedJson(list),
                ", expected a list of counts");
  std::vector<int64_t> counts;
  for (const Json& value : list) counts.push_back(CountOf(value, where));
  return counts;
}

int64_t ByteCountOf(const SafetensorsEntry& entry, const std::string& where) {
  try {
    return ByteCount(ElementCount(entry.dims), *entry.dtype);
  } catch (const Error& error) {
    Throw(ErrorCode::kDataLoss, where, ": ", error.what());
  }
}

void CheckEntry(const SafetensorsEntry& entry, const std::string& where, int64_t data_bytes) {
  SKIFF_ENFORCE(entry.begin <= entry.end && entry.end <= data_bytes, kDataLoss, where,
                ": data_offsets [", entry.begin, ", ", entry.end, "], expected a range within the ",
                data_bytes, " bytes of elements");
  if (!entry.dtype) return;
  const int64_t bytes = ByteCountOf(entry, where);
  SKIFF_ENFORCE(entry.end - entry.begin == bytes, kDataLoss, where, ": ", entry.dtype_name, " [",
                Join(entry.dims, ", "), "] takes ", bytes, " bytes, found ",
                entry.end - entry.begin);
}

SafetensorsEntry ReadEntry(const Json& json, const std::string& where) {
  // ParseText drops others.
  const bool complete = json.is_object() && json.size() == kMembers.size();
  SKIFF_ENFORCE(complete, kDataLoss, where, ": found ", QuotedJson(json),
                ", expected dtype, shape and data_offsets");
  SKIFF_ENFORCE(json["dtype"].is_string(), kDataLoss, where, ": dtype: found ",
                QuotedJson(json["dtype"]), ", expected a string");
  const std::vector<int64_t> offsets = CountsOf(json["data_offsets"], where + ": data_offsets");
  SKIFF_ENFORCE(offsets.size() == 2, kDataLoss, where, ": ", offsets.size(),
                " data_offsets, expected 2");
  SafetensorsEntry entry{.dtype_name = json["dtype"].get<std::string>(),
                         .dims = CountsOf(json["shape"], where + ": shape"),
                         .begin = offsets[0],
                         .end = offsets[1]};
  entry.dtype = FindDType(entry.dtype_name);
  return entry;
}

std::map<std::string, std::string> ReadMetadata(const Json& json, const std::string& where) {
  std::map<std::string, std::string> metadata;
  if (json.is_null()) return metadata;
  SKIFF_ENFORCE(json.is_object(), kDataLoss, where, ": found ", QuotedJson(json),
                ", expected an object of strings");
  for (const auto& [key, value] : json.items()) {
    SKIFF_ENFORCE(value.is_string(), kDataLoss, where, ": \"", key, "\": found ", QuotedJson(value),
                  ", expected a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// Throws Error unless the tensors, in the order of their offsets, follow each other from the first
// byte of the elements to the last.
void CheckCovered(const SafetensorsHeader& header, const std::string& file, int64_t data_bytes) {
  std::vector<std::tuple<int64_t, int64_t, const std::string*>> ranges;
  for (const auto& [name, entry] : header.entries) {
    ranges.emplace_back(entry.begin, entry.end, &name);
  }
  std::ranges::sort(ranges);
  int64_t covered = 0;
  for (const auto& [begin, end, name] : ranges) {
    SKIFF_ENFORCE(begin == covered, kDataLoss, file, ": tensor \"", *name, "\" begins at offset ",
                  begin, ", expected ", covered, ", where the one before it ends");
    covered = end;
  }
  SKIFF_ENFORCE(covered == data_bytes, kDataLoss, file, ": the tensors end at offset ", covered,
                ", expected ", data_bytes, ", where the file ends");
}

// Returns a string in JSON.
std::string Quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    Throw(ErrorCode::kInvalidArgument, "\"", text, "\" isn't UTF-8");
  }
}

std::string MetadataText(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : metadata) pairs.push_back(Quoted(key) + ":" + Quoted(value));
  return StrCat('"', kMetadataKey, "\":{", Join(pairs, ","), "}");
}

}  // namespace

SafetensorsHeader ReadSafetensorsHeader(ByteSource* source) {
  const std::string text = ReadText(source);
  const Json json = ParseText(text, *source);
  const int64_t data_bytes = source->remaining();
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata = ReadMetadata(value, StrCat(source->name(), ": ", kMetadataKey));
      continue;
    }
    const std::string where = StrCat(source->name(), ": tensor \"", name, "\"");
    SafetensorsEntry entry = ReadEntry(value, where);
    CheckEntry(entry, where, data_bytes);
    header.entries.emplace(name, std::move(entry));
  }
  CheckCovered(header, source->name(), data_bytes);
  return header;
}

std::vector<std::string> SafetensorsOrder(const TensorMap& tensors) {
  std::vector<std::string> order;
  for (const auto& [name, tensor] : tensors) order.push_back(name);
  std::ranges::stable_sort(
      order, {}, [&](const std::string& name) { return PlaceOf(tensors.at(name).dtype()); });
  return order;
}

std::string SafetensorsHeaderBytes(const TensorMap& tensors, const std::vector<std::string>& order,
                                   const std::map<std::string, std::string>& metadata) {
  SKIFF_ENFORCE(!tensors.contains(kMetadataKey), kInvalidArgument, "a tensor can't be named \"",
                kMetadataKey, "\", where the format has metadata");
  std::vector<std::string> members;
  if (!metadata.empty()) members.push_back(MetadataText(metadata));
  int64_t begin = 0;
  for (const std::string& name : order) {
    const Tensor& tensor = tensors.at(name);
    const int64_t end = AddCounts(begin, tensor.byte_count());
    members.push_back(StrCat(Quoted(name), ":{\"dtype\":\"", kDTypes[PlaceOf(tensor.dtype())].first,
                             "\",\"shape\":[", Join(tensor.shape().dims(), ","),
                             "],\"data_offsets\":[", begin, ",", end, "]}"));
    begin = end;
  }
  std::string text = "{" + Join(members, ",") + "}";
  const int64_t unpadded_bytes = kLengthBytes + static_cast<int64_t>(text.size());
  text.append(static_cast<size_t>(RoundUp(unpadded_bytes, kBufferAlignment) - unpadded_bytes), ' ');
  SKIFF_ENFORCE(static_cast<int64_t>(text.size()) <= kHeaderLimitBytes, kOutOfRange, "a header of ",
                text.size(), " bytes, expected at most ", kHeaderLimitBytes);
  std::string bytes;
  AppendNumber(uint64_t{text.size()}, &bytes);
  return bytes + text;
}

}  // namespace skiff
