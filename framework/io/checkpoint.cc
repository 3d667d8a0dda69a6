// How a checkpoint survives a crash at any moment. A save writes a folder under a temporary name,
// syncs its files and the folder itself, renames it, and syncs the directory. rename(2) is atomic,
// so under its final name a folder is always complete. Older checkpoints are removed only after
// that, and are renamed to a temporary name before. The manifest has the size and CRC-32 of each
// file, for disks that lose or change bytes all the same.
#include "framework/io/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "framework/base/number_text.h"
#include "framework/io/checkpoint_manifest.h"
#include "framework/io/file.h"
#include "framework/io/parameters.h"
#include "framework/io/system_error.h"
#include "framework/io/temp_folder.h"
#include "framework/tensor/replaced_values.h"

namespace skiff {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTempPrefix = ".tmp-save-";
constexpr std::string_view kSavePrefix = "save-";
constexpr std::string_view kStepInfix = "-step-";
constexpr int64_t kSequenceLimit = INT64_MAX;

struct CheckpointFolder {
  int64_t sequence = 0;
  std::string path;
};

std::optional<int64_t> ParseCount(std::string_view digits) {
  const std::optional<int64_t> count = ParseNumber<int64_t>(digits);
  return digits.starts_with('-') ? std::nullopt : count;
}

// Returns the sequence number in a folder's name, or none if the name isn't a checkpoint's.
std::optional<int64_t> SequenceOf(std::string_view name) {
  // Everything else in the directory belongs to others and is left alone.
  if (name.substr(0, kSavePrefix.size()) != kSavePrefix) return {};
  name.remove_prefix(kSavePrefix.size());
  const size_t infix = name.find(kStepInfix);
  if (infix == std::string_view::npos) return {};
  if (!ParseCount(name.substr(infix + kStepInfix.size()))) return {};
  const std::optional<int64_t> sequence = ParseCount(name.substr(0, infix));
  // The next save needs a number, too, so the largest one is no checkpoint.
  return sequence && *sequence < kSequenceLimit ? sequence : std::nullopt;
}

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) ThrowSystemError("list", directory, error.value());
  return names;
}

// Newest first.
std::vector<CheckpointFolder> ListCheckpoints(const std::string& directory) {
  std::vector<CheckpointFolder> folders;
  for (const std::string& name : EntriesOf(directory)) {
    const std::optional<int64_t> sequence = SequenceOf(name);
    if (sequence) folders.push_back({*sequence, JoinPath(directory, name)});
  }
  // By path as well, so that the order never depends on the file system.
  std::sort(folders.begin(), folders.end(),
            [](const CheckpointFolder& a, const CheckpointFolder& b) {
              return a.sequence != b.sequence ? a.sequence > b.sequence : a.path > b.path;
            });
  return folders;
}

std::string FolderName(int64_t sequence, int64_t step) {
  return StrCat(kSavePrefix, FormatPadded(static_cast<uint64_t>(sequence), 6), kStepInfix, step);
}

void RemoveLeftovers(const std::string& directory) {
  for (const std::string& name : EntriesOf(directory)) {
    if (name.rfind(kTempPrefix, 0) != 0) continue;
    std::error_code error;
    const std::string path = JoinPath(directory, name);
    fs::remove_all(path, error);
    if (error) ThrowSystemError("remove", path, error.value());
  }
}

ManifestEntry Finish(const char* name, OutputFile* file) {
  file->Sync();
  return {name, file->bytes_written(), file->crc32()};
}

void WriteFolder(const std::string& folder, const std::vector<std::string>& names,
                 const Scope& scope, int64_t step, const TrainerState& state) {
  CheckpointManifest manifest;
  manifest.step = step;
  manifest.variables = names;
  OutputFile tensors(JoinPath(folder, kTensorsFile));
  WriteTensorStreams(scope, names, &tensors);
  manifest.files.push_back(Finish(kTensorsFile, &tensors));
  OutputFile state_file(JoinPath(folder, kStateFile));
  state_file.Write(PrintTrainerState(state));
  manifest.files.push_back(Finish(kStateFile, &state_file));
  // The manifest comes last: a folder without one is incomplete.
  OutputFile manifest_file(JoinPath(folder, kManifestFile));
  manifest_file.Write(PrintManifest(manifest));
  manifest_file.Sync();
  // fsync of a file doesn't bring its name to disk; that is in the folder.
  SyncDirectory(folder);
}

bool IsComplete(const std::string& folder, FileCheck check) {
  try {
    CheckCheckpoint(folder, check);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Renames a folder before deleting it, so that an interrupted deletion doesn't leave a torn
// checkpoint.
void RemoveFolder(const std::string& directory, const std::string& path, SavedCheckpoint* saved) {
  const std::string doomed =
      JoinPath(directory, StrCat(kTempPrefix, "removed-", fs::path(path).filename().string()));
  std::error_code error;
  fs::rename(path, doomed, error);
  if (!error) fs::remove_all(doomed, error);
  if (error) {
    saved->not_removed.push_back(StrCat("remove ", path, ": ", error.message()));
  } else {
    saved->removed.push_back(path);
  }
}

void RemoveBeyond(const std::string& directory, const SaveCheckpointOptions& options,
                  SavedCheckpoint* saved) {
  const std::vector<CheckpointFolder> folders = ListCheckpoints(directory);
  if (std::ssize(folders) <= options.keep_last) return;
  const FileCheck check = options.verify_kept ? FileCheck::kContents : FileCheck::kSizes;
  // From the newest on. Only complete checkpoints count: a damaged newer one must never cause an
  // intact older one to be deleted.
  int complete = 0;
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string& path = folders[i].path;
    if (complete >= options.keep_last) {
      RemoveFolder(directory, path, saved);
      continue;
    }
    // No deletion depends on the last one in the list, so it isn't read.
    if (i + 1 == folders.size()) return;
    if (path == saved->path || IsComplete(path, check)) ++complete;
  }
}

void CheckKeepLast(const SaveCheckpointOptions& options) {
  SKIFF_ENFORCE(options.keep_last >= 1, kInvalidArgument, "keep_last = ", options.keep_last,
                ", expected at least 1");
}

struct CheckpointContents {
  CheckpointManifest manifest;
  TrainerState state;
  NamedTensors tensors;
};

CheckpointContents ReadCheckpoint(const std::string& folder) {
  CheckpointContents contents;
  contents.manifest = CheckCheckpoint(folder, FileCheck::kContents);
  const std::string state_path = JoinPath(folder, kStateFile);
  const int64_t state_bytes = contents.manifest.files[kStateEntry].bytes;
  contents.state = ParseTrainerState(ReadFile(state_path, state_bytes), state_path);
  InputFile tensors(JoinPath(folder, kTensorsFile));
  contents.tensors = ReadTensorStreams(contents.manifest.variables, &tensors);
  return contents;
}

bool IsOptional(const LoadCheckpointOptions& options, const std::string& name) {
  return options.is_optional && options.is_optional(name);
}

void DropExtras(const std::vector<std::string>& expected, const LoadCheckpointOptions& options,
                NamedTensors* tensors) {
  std::erase_if(*tensors, [&](const auto& named) {
    if (std::binary_search(expected.begin(), expected.end(), named.first)) return false;
    SKIFF_ENFORCE(options.ignore_extra_variables || IsOptional(options, named.first),
                  kInvalidArgument, "the checkpoint holds a variable \"", named.first,
                  "\", which is no persistable of the program");
    return true;
  });
}

void CheckAllThere(const std::vector<std::string>& expected, const LoadCheckpointOptions& options,
                   const NamedTensors& tensors) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) found.push_back(name);
  std::sort(found.begin(), found.end());
  for (const std::string& name : expected) {
    SKIFF_ENFORCE(std::binary_search(found.begin(), found.end(), name) || IsOptional(options, name),
                  kInvalidArgument, "the checkpoint lacks the program's persistable \"", name,
                  "\"");
  }
}

// Returns the variables of a checkpoint: the program's persistables, and the step counter, which no
// program declares.
std::vector<std::string> SavedNames(const Program& program, const Scope& scope) {
  std::vector<std::string> names = PersistableNames(program);
  if (scope.Find(kStepCounterName) != nullptr) names.push_back(kStepCounterName);
  return names;
}

void CheckStepCounter(const Tensor& counter) {
  const bool fits = counter.dtype() == DType::kInt64 && counter.element_count() == 1 &&
                    counter.shape().rank() == 1 && counter.Item<int64_t>() >= 0;
  SKIFF_ENFORCE(fits, kInvalidArgument, "the checkpoint's step counter \"", kStepCounterName,
                "\" is ", counter.dtype(), " ", counter.shape(),
                ", expected int64 [1], not below 0");
}

void Install(const Program& program, const LoadCheckpointOptions& options, NamedTensors tensors,
             Scope* scope) {
  const std::vector<std::string> expected = PersistableNames(program);
  const auto counter =
      std::ranges::find(tensors, std::string(kStepCounterName), &NamedTensors::value_type::first);
  // The step counter is no persistable of the program, so the checks below don't apply to it.
  std::optional<Tensor> steps;
  if (counter != tensors.end()) {
    CheckStepCounter(counter->second);
    steps = counter->second;
    tensors.erase(counter);
  }
  DropExtras(expected, options, &tensors);
  CheckAllThere(expected, options, tensors);
  // All checks come before the first change of the scope.
  CheckFitsProgram(program, tensors);
  StoreTensors(std::move(tensors), scope);
  if (steps) scope->Assign(kStepCounterName, *steps);
}

[[noreturn]] void ThrowAllRefused(const std::string& directory,
                                  const std::vector<RefusedCheckpoint>& refused) {
  std::string reasons;
  for (const RefusedCheckpoint& one : refused) {
    reasons += StrCat("\n  ", one.path, ": ", one.reason);
  }
  Throw(ErrorCode::kDataLoss, directory, ": none of ", refused.size(),
        " checkpoints is intact:", reasons);
}

std::vector<CheckpointFolder> FindCheckpoints(const std::string& directory) {
  std::vector<CheckpointFolder> folders = ListCheckpoints(directory);
  SKIFF_ENFORCE(!folders.empty(), kNotFound, directory, " holds no checkpoint");
  return folders;
}

bool IsThere(const std::string& path) {
  std::error_code ignored;  // if the system can't tell, assume it exists
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// Sets path and refused of `loaded`. Returns nullopt if another process has deleted a folder of the
// list, since there are newer ones then.
std::optional<CheckpointContents> ReadNewestIntact(const std::string& directory,
                                                   LoadedCheckpoint* loaded) {
  loaded->refused.clear();
  for (const CheckpointFolder& folder : FindCheckpoints(directory)) {
    loaded->path = folder.path;
    try {
      return ReadCheckpoint(folder.path);
    } catch (const Error& error) {
      // If memory ran out, older checkpoints would fail the same way.
      if (error.code() == ErrorCode::kResourceExhausted) throw;
      if (!IsThere(folder.path)) return {};
      loaded->refused.push_back({folder.path, error.what()});
    }
  }
  ThrowAllRefused(directory, loaded->refused);
}

// Sets all of `loaded`; returns the variables.
NamedTensors ReadLatest(const std::string& directory, LoadedCheckpoint* loaded) {
  std::optional<CheckpointContents> contents;
  // If a folder vanishes while it is read, another process has saved a newer one: list again.
  while (!contents) contents = ReadNewestIntact(directory, loaded);
  loaded->step = contents->manifest.step;
  loaded->state = std::move(contents->state);
  return std::move(contents->tensors);
}

}  // namespace

SavedCheckpoint SaveCheckpoint(const std::string& directory, const Program& program,
                               const Scope& scope, int64_t step, const TrainerState& state,
                               const SaveCheckpointOptions& options) {
  SKIFF_ENFORCE(step >= 0, kInvalidArgument, "step = ", step, ", expected at least 0");
  CheckKeepLast(options);
  std::vector<std::string> names = SavedNames(program, scope);
  CheckSavable(scope, &names);
  // A checkpoint with averages in place of weights would train on from the averages.
  for (const std::string& name : names)
    ReplacedValues::CheckNotReplaced(scope, name, "save a checkpoint");
  CreateDirectories(directory);
  // Before the space for the new one is needed.
  RemoveLeftovers(directory);
  const std::vector<CheckpointFolder> older = ListCheckpoints(directory);
  const int64_t sequence = older.empty() ? 1 : older.front().sequence + 1;
  const std::string name = FolderName(sequence, step);

  SavedCheckpoint saved;
  saved.path = JoinPath(directory, name);
  // Until the rename, loading doesn't see the folder; after it, the folder is complete.
  TempFolder folder(JoinPath(directory, StrCat(".tmp-", name)));
  WriteFolder(folder.path(), names, scope, step, state);
  folder.RenameTo(saved.path);
  SyncDirectory(directory);
  // The rename is on disk now, so older checkpoints may go.
  RemoveBeyond(directory, options, &saved);
  return saved;
}

SavedCheckpoint FinishLastSave(const std::string& directory, const SaveCheckpointOptions& options) {
  CheckKeepLast(options);
  SavedCheckpoint saved;
  if (!PathExists(directory)) return saved;
  RemoveLeftovers(directory);
  RemoveBeyond(directory, options, &saved);
  return saved;
}

bool HasCheckpoint(const std::string& directory) {
  std::error_code ignored;  // a directory that can't be read can't be written either
  return fs::exists(directory, ignored) && !ListCheckpoints(directory).empty();
}

LoadedCheckpoint LoadLatestCheckpoint(const std::string& directory, const Program& program,
                                      Scope* scope, const LoadCheckpointOptions& options) {
  LoadedCheckpoint loaded;
  NamedTensors tensors = ReadLatest(directory, &loaded);
  try {
    if (options.check_state) options.check_state(loaded.state);
    for (const auto& [name, tensor] : tensors) {
      if (options.check_variable) options.check_variable(name, tensor);
    }
    Install(program, options, std::move(tensors), scope);
  } catch (const Error& error) {
    throw error.WithContext(loaded.path);
  }
  return loaded;
}

LoadedCheckpoint LoadVariablesOfLatestCheckpoint(const std::string& directory, Scope* scope) {
  LoadedCheckpoint loaded;
  StoreTensors(ReadLatest(directory, &loaded), scope);
  return loaded;
}

}  // namespace skiff
