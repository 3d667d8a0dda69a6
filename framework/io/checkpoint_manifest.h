// The files of one checkpoint folder, and whether they are intact. Internal to framework/io.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/io/checkpoint.h"

namespace skiff {

inline constexpr const char* kTensorsFile = "tensors";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kManifestFile = "manifest.json";

struct ManifestEntry {
  std::string name;
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

struct CheckpointManifest {
  int64_t step = 0;
  std::vector<std::string> variables;  // in the order of their streams
  std::vector<ManifestEntry> files;
};

// JSON that carries its own CRC-32.
std::string PrintManifest(const CheckpointManifest& manifest);
// Error (kDataLoss), starting with `source`, unless the text is an intact manifest that lists both
// files.
CheckpointManifest ParseManifest(std::string_view text, const std::string& source);

// JSON; values that are no UTF-8 are written as hexadecimal digits.
std::string PrintTrainerState(const TrainerState& state);
// Error (kDataLoss), starting with `source`.
TrainerState ParseTrainerState(std::string_view text, const std::string& source);

enum class FileCheck { kSizes, kContents };

// Reads the manifest of a folder and checks its files. Error (kDataLoss or as InputFile) if one is
// missing, or differs from the manifest.
CheckpointManifest CheckCheckpoint(const std::string& folder, FileCheck check);

}  // namespace skiff
