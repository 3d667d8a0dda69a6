// The files of a checkpoint folder, and checks that they are intact. Internal to framework/io.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/trainer_state.h"

namespace skiff {

inline constexpr const char* kTensorsFile = "tensors";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kManifestFile = "manifest.json";

// No manifest is longer. So reading one takes no more memory than this, whatever a file claims.
inline constexpr int64_t kManifestLimitBytes = int64_t{64} << 20;

struct ManifestEntry {
  std::string name;
  int64_t bytes = 0;
  uint32_t crc32 = 0;
};

struct CheckpointManifest {
  int64_t step = 0;
  std::vector<std::string> variables;  // in the order of their streams
  std::vector<ManifestEntry> files;    // tensors, state
};

inline constexpr size_t kTensorsEntry = 0;
inline constexpr size_t kStateEntry = 1;

// Returns JSON that contains its own CRC-32. Throws Error (kInvalidArgument) for a name that isn't
// UTF-8, (kOutOfRange) if the text would exceed kManifestLimitBytes.
std::string PrintManifest(const CheckpointManifest& manifest);
// Parses a manifest. Throws Error (kDataLoss), starting with `source`, unless the text is an intact
// manifest that lists both files.
CheckpointManifest ParseManifest(std::string_view text, const std::string& source);

// Returns JSON. Values that aren't UTF-8 are written as hexadecimal digits.
std::string PrintTrainerState(const TrainerState& state);
// Parses PrintTrainerState's text. Throws Error (kDataLoss), starting with `source`.
TrainerState ParseTrainerState(std::string_view text, const std::string& source);

enum class FileCheck { kSizes, kContents };

// Reads the manifest of a folder and checks the files it lists. Throws Error (kDataLoss, or as
// InputFile) if one is missing or differs from the manifest.
CheckpointManifest CheckCheckpoint(const std::string& folder, FileCheck check);

}  // namespace skiff
