#include "framework/io/lod_entries.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::string_view kLevelMark = ".lod";

std::string LevelName(std::string_view name, size_t level) {
  return StrCat(name, kLevelMark, level);
}

// Returns the name of the tensor that a level belongs to.
std::string_view OwnerOf(std::string_view level_name) {
  return level_name.substr(0, level_name.rfind(kLevelMark));
}

Tensor OffsetsTensor(const std::vector<uint64_t>& offsets) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(offsets.size())},
                                     {offsets.begin(), offsets.end()});
}

std::vector<uint64_t> OffsetsFrom(const Tensor& tensor, const std::string& where) {
  SKIFF_ENFORCE(tensor.dtype() == DType::kInt64 && tensor.shape().rank() == 1, kDataLoss, where,
                ": ", tensor.dtype(), " ", tensor.shape(),
                ", expected offsets of int64 in one dim");
  std::vector<uint64_t> offsets;
  for (const int64_t offset : tensor.values<int64_t>()) {
    SKIFF_ENFORCE(offset >= 0, kDataLoss, where, ": offset ", offset, ", expected at least 0");
    offsets.push_back(static_cast<uint64_t>(offset));
  }
  return offsets;
}

// Removes the arrays of `levels` levels from `tensors` and returns their offsets.
LoD TakeLevels(const std::string& path, const std::string& owner, size_t levels,
               TensorMap* tensors) {
  LoD lod;
  for (size_t level = 0; level < levels; ++level) {
    const std::string name = LevelName(owner, level);
    const auto entry = tensors->find(name);
    SKIFF_ENFORCE(entry != tensors->end(), kDataLoss, path, ": \"", owner, "\" has ", levels,
                  " arrays of offsets, but \"", name, "\" isn't among them");
    lod.push_back(OffsetsFrom(entry->second, StrCat(path, ": \"", name, "\"")));
    tensors->erase(entry);
  }
  return lod;
}

void GiveLoD(const std::string& path, const std::string& owner, LoD lod, TensorMap* tensors) {
  const auto tensor = tensors->find(owner);
  SKIFF_ENFORCE(tensor != tensors->end(), kDataLoss, path, ": \"", LevelName(owner, 0),
                "\" has the offsets of \"", owner, "\", which isn't there");
  SKIFF_ENFORCE(tensor->second.lod().empty(), kDataLoss, path, ": \"", LevelName(owner, 0),
                "\" has the offsets of \"", owner, "\", which has a LoD already");
  try {
    tensor->second.set_lod(std::move(lod));
  } catch (const Error& error) {
    Throw(ErrorCode::kDataLoss, path, ": offsets of \"", owner, "\": ", error.what());
  }
}

// As a message shows them: there may be many.
std::string FirstOf(const std::vector<std::string>& entries) {
  constexpr size_t kShown = 10;
  const std::vector<std::string> shown(
      entries.begin(), entries.begin() + std::min<std::ptrdiff_t>(kShown, std::ssize(entries)));
  return Join(shown, ", ") + (entries.size() > kShown ? ", …" : "");
}

}  // namespace

bool IsLoDEntry(std::string_view name) {
  const size_t mark = name.rfind(kLevelMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view number = name.substr(mark + kLevelMark.size());
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> EntriesOf(const std::string& path, const std::vector<std::string>& names,
                                   const std::vector<std::string>& entries) {
  const std::set<std::string_view> found(entries.begin(), entries.end());
  for (const std::string& name : names) {
    SKIFF_ENFORCE(!IsLoDEntry(name), kInvalidArgument, path, ": \"", name,
                  "\" has offsets and is read with its array: expected \"", OwnerOf(name), "\"");
    SKIFF_ENFORCE(found.contains(name), kNotFound, path, " has no array \"", name,
                  "\", expected one of ", FirstOf(entries));
  }
  const std::set<std::string_view> wanted(names.begin(), names.end());
  std::vector<std::string> chosen;
  for (const std::string& entry : entries) {
    if (wanted.contains(IsLoDEntry(entry) ? OwnerOf(entry) : entry)) chosen.push_back(entry);
  }
  return chosen;
}

TensorMap WithLoDEntries(const TensorMap& tensors) {
  TensorMap all;
  for (const auto& [name, tensor] : tensors) {
    SKIFF_ENFORCE(!IsLoDEntry(name), kInvalidArgument, "tensor \"", name,
                  "\" would be read as offsets of \"", OwnerOf(name), "\": expected another name");
    all.emplace(name, tensor).first->second.ShareLoD(nullptr);
    for (size_t level = 0; level < tensor.lod().size(); ++level) {
      all.emplace(LevelName(name, level), OffsetsTensor(tensor.lod()[level]));
    }
  }
  return all;
}

void TakeLoDEntries(const std::string& path, TensorMap* tensors) {
  std::map<std::string, size_t> levels;  // by owner
  for (const auto& [name, tensor] : *tensors) {
    if (IsLoDEntry(name)) ++levels[std::string(OwnerOf(name))];
  }
  for (const auto& [owner, count] : levels) {
    GiveLoD(path, owner, TakeLevels(path, owner, count, tensors), tensors);
  }
}

}  // namespace skiff
