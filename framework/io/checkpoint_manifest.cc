#include "framework/io/checkpoint_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/json.h"

namespace skiff {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "skiff-checkpoint";
constexpr int64_t kFormatVersion = 1;
constexpr int64_t kCrcChunkBytes = int64_t{1} << 20;

uint32_t CrcOf(std::string_view bytes) {
  return Crc32(0, bytes.data(), static_cast<int64_t>(bytes.size()));
}

// Runs `read`; what the JSON library finds wrong is the file's fault: a member that is missing or
// of another type.
template <typename Read>
auto Reading(const std::string& source, Read read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    Throw(ErrorCode::kDataLoss, source, ": ", error.what());
  }
}

// The library checks strings only when it prints them.
bool IsUtf8(const std::string& text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

int HexDigit(char digit, const std::string& source) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  Throw(ErrorCode::kDataLoss, source, ": '", digit, "' is no hexadecimal digit");
}

std::string FromHex(const std::string& hex, const std::string& source) {
  SKIFF_ENFORCE(hex.size() % 2 == 0, kDataLoss, source, ": odd number of hexadecimal digits");
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(HexDigit(hex[i], source) * 16 + HexDigit(hex[i + 1], source));
  }
  return bytes;
}

// nlohmann's get() converts types; a file must have the exact ones.
int64_t CountOf(const Json& object, const char* key, const std::string& source) {
  const Json& value = object.at(key);
  SKIFF_ENFORCE(value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX, kDataLoss, source,
                ": \"", key, "\" is ", value.dump(), ", expected a count");
  return value.get<int64_t>();
}

ManifestEntry ReadEntry(const Json& object, const std::string& source) {
  ManifestEntry entry;
  entry.name = object.at("name").get<std::string>();
  entry.bytes = CountOf(object, "bytes", source);
  const std::string crc = object.at("crc32").get<std::string>();
  SKIFF_ENFORCE(crc.size() == 8, kDataLoss, source, ": crc32 \"", crc, "\", expected 8 digits");
  for (char digit : crc) {
    entry.crc32 = entry.crc32 << 4 | static_cast<uint32_t>(HexDigit(digit, source));
  }
  return entry;
}

Json WriteEntry(const ManifestEntry& entry) {
  return {{"name", entry.name}, {"bytes", entry.bytes}, {"crc32", Crc32Text(entry.crc32)}};
}

// The manifest's CRC is that of its compact text. Parsing and printing it again gives the same
// bytes: nlohmann's objects are sorted by key.
void CheckIntact(const Json& document, const std::string& source) {
  const std::string found = Crc32Text(CrcOf(document.at("manifest").dump()));
  const auto expected = document.at("crc32").get<std::string>();
  SKIFF_ENFORCE(found == expected, kDataLoss, source, ": CRC-32 of the manifest is ", found,
                ", expected ", expected);
}

void CheckFormat(const Json& manifest, const std::string& source) {
  const auto format = manifest.at("format").get<std::string>();
  SKIFF_ENFORCE(format == kFormat, kDataLoss, source, ": format \"", format, "\", expected \"",
                kFormat, "\"");
  const int64_t version = CountOf(manifest, "version", source);
  SKIFF_ENFORCE(version == kFormatVersion, kUnimplemented, source, ": version ", version,
                ", expected ", kFormatVersion);
}

void CheckFileList(const CheckpointManifest& manifest, const std::string& source) {
  const auto& files = manifest.files;
  const bool complete = files.size() == 2 && files[kTensorsEntry].name == kTensorsFile &&
                        files[kStateEntry].name == kStateFile;
  SKIFF_ENFORCE(complete, kDataLoss, source, ": expected the files ", kTensorsFile, " and ",
                kStateFile);
}

CheckpointManifest ReadManifest(const Json& object, const std::string& source) {
  CheckFormat(object, source);
  CheckpointManifest manifest;
  manifest.step = CountOf(object, "step", source);
  manifest.variables = object.at("variables").get<std::vector<std::string>>();
  for (const Json& entry : object.at("files")) {
    manifest.files.push_back(ReadEntry(entry, source));
  }
  CheckFileList(manifest, source);
  return manifest;
}

uint32_t CrcOfFile(InputFile* file) {
  std::vector<char> chunk(static_cast<size_t>(std::min(file->size(), kCrcChunkBytes)));
  uint32_t crc = 0;
  while (file->remaining() > 0) {
    const int64_t bytes = std::min(file->remaining(), kCrcChunkBytes);
    file->Read(chunk.data(), bytes, "contents");
    crc = Crc32(crc, chunk.data(), bytes);
  }
  return crc;
}

void CheckFile(const std::string& folder, const ManifestEntry& entry, FileCheck check) {
  InputFile file(JoinPath(folder, entry.name));
  SKIFF_ENFORCE(file.size() == entry.bytes, kDataLoss, file.name(), " has ", file.size(),
                " bytes, expected ", entry.bytes);
  // A torn write mostly shows in the size, which costs nothing to compare.
  if (check == FileCheck::kSizes) return;
  const uint32_t crc = CrcOfFile(&file);
  SKIFF_ENFORCE(crc == entry.crc32, kDataLoss, file.name(), ": CRC-32 is ", Crc32Text(crc),
                ", expected ", Crc32Text(entry.crc32));
}

}  // namespace

std::string PrintManifest(const CheckpointManifest& manifest) {
  // Names are any bytes of the user, but every program file also needs them in UTF-8.
  Json object = {{"format", kFormat},
                 {"version", kFormatVersion},
                 {"step", manifest.step},
                 {"variables", manifest.variables},
                 {"files", Json::array()}};
  for (const ManifestEntry& entry : manifest.files) object["files"].push_back(WriteEntry(entry));
  std::string text;
  try {
    const std::string crc = Crc32Text(CrcOf(object.dump()));
    text = Json{{"manifest", std::move(object)}, {"crc32", crc}}.dump(1) + "\n";
  } catch (const Json::type_error& error) {
    Throw(ErrorCode::kInvalidArgument, "a variable's name can't be saved: ", error.what());
  }
  SKIFF_ENFORCE(std::ssize(text) <= kManifestLimitBytes, kOutOfRange, "the names of ",
                manifest.variables.size(), " variables make a manifest of ", text.size(),
                " bytes: expected at most ", kManifestLimitBytes);
  return text;
}

CheckpointManifest ParseManifest(std::string_view text, const std::string& source) {
  return Reading(source, [&] {
    const Json document = ParseJson(text, source);
    CheckIntact(document, source);
    return ReadManifest(document.at("manifest"), source);
  });
}

std::string PrintTrainerState(const TrainerState& state) {
  Json text = Json::object();
  Json hex = Json::object();
  for (const auto& [name, value] : state) {
    SKIFF_ENFORCE(IsUtf8(name), kInvalidArgument, "a name of the trainer's state is no UTF-8");
    // JSON has no bytes, and readable text helps people who look into a checkpoint.
    if (IsUtf8(value)) {
      text[name] = value;
    } else {
      hex[name] = ToHex(value);
    }
  }
  return Json{{"text", std::move(text)}, {"hex", std::move(hex)}}.dump(1) + "\n";
}

TrainerState ParseTrainerState(std::string_view text, const std::string& source) {
  return Reading(source, [&] {
    const Json document = ParseJson(text, source);
    TrainerState state;
    for (const auto& [name, value] : document.at("text").items()) {
      state[name] = value.get<std::string>();
    }
    for (const auto& [name, value] : document.at("hex").items()) {
      state[name] = FromHex(value.get<std::string>(), source);
    }
    return state;
  });
}

CheckpointManifest CheckCheckpoint(const std::string& folder, FileCheck check) {
  const std::string path = JoinPath(folder, kManifestFile);
  CheckpointManifest manifest = ParseManifest(ReadFile(path, kManifestLimitBytes), path);
  for (const ManifestEntry& entry : manifest.files) CheckFile(folder, entry, check);
  return manifest;
}

}  // namespace skiff
