#include "framework/io/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "framework/base/number_text.h"
#include "framework/io/read_files.h"
#include "framework/io/system_error.h"

namespace skiff {
namespace {

// Linux transfers at most 0x7ffff000 bytes per call.
constexpr int64_t kBytesPerCall = int64_t{1} << 30;

// Returns the path for a call of the system, which would take a NUL for its end. Throws Error
// (kInvalidArgument) for a path that has one.
const char* SystemPath(const std::string& path) {
  const size_t nul = path.find('\0');
  // The message must not end there, too.
  SKIFF_ENFORCE(nul == std::string::npos, kInvalidArgument, "a path with a NUL after \"",
                path.substr(0, nul), "\": expected one without");
  return path.c_str();
}

int OpenForWriting(const std::string& path) {
  const int descriptor =
      // O_EXCL and O_NOFOLLOW: a link planted under this name must not choose which file is
      // written.
      open(SystemPath(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  // Here a missing directory means that a path can't be written, not that something wasn't found.
  if (descriptor < 0 && errno == ENOENT) {
    Throw(ErrorCode::kIo, "create ", path, ": the directory doesn't exist");
  }
  if (descriptor < 0) ThrowSystemError("create", path, errno);
  return descriptor;
}

void SyncPath(const std::string& path, int flags) {
  const int descriptor = open(SystemPath(path), flags | O_CLOEXEC);
  if (descriptor < 0) ThrowSystemError("open", path, errno);
  const int error_number = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  // Some file systems have no fsync for directories.
  const bool is_directory = (flags & O_DIRECTORY) != 0;
  if (error_number == 0 || (error_number == EINVAL && is_directory)) return;
  ThrowSystemError("sync", path, error_number);
}

}  // namespace

InputFile::Opened InputFile::Open(const std::string& path) {
  // Non-blocking, since opening a named pipe would otherwise wait for a writer before we see what
  // it is.
  const int descriptor = open(SystemPath(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) ThrowSystemError("open", path, errno);
  struct stat status {};
  try {
    if (fstat(descriptor, &status) != 0) ThrowSystemError("inspect", path, errno);
    SKIFF_ENFORCE(S_ISREG(status.st_mode), kIo, "open ", path, ": expected a regular file");
    NoteReadFile(path, descriptor);
  } catch (...) {
    close(descriptor);
    throw;
  }
  return {descriptor, status.st_size};
}

InputFile::InputFile(const std::string& path) : InputFile(path, Open(path)) {}

InputFile::InputFile(const std::string& path, Opened opened)
    : ByteSource(path, opened.size), descriptor_(opened.descriptor) {}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::Seek(int64_t offset) {
  if (offset < 0 || offset > size()) {
    ThrowCorrupt(offset, "the file has only ", size(), " bytes");
  }
  set_offset(offset);
}

void InputFile::ThrowShrunk(int64_t end) const {
  ThrowCorrupt(end, "the file ends, but had ", size(), " bytes when it was opened");
}

void InputFile::CheckNotShrunk() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) ThrowSystemError("inspect", name(), errno);
  if (status.st_size < size()) ThrowShrunk(status.st_size);
}

void InputFile::ReadNext(void* out, int64_t bytes) {
  auto* next = static_cast<char*>(out);
  int64_t position = offset();
  const int64_t end = position + bytes;
  while (position < end) {
    const auto wanted = static_cast<size_t>(std::min(end - position, kBytesPerCall));
    // pread, since offset() is the only position that counts.
    const ssize_t got = pread(descriptor_, next, wanted, position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowSystemError("read", name(), errno);
    if (got == 0) ThrowShrunk(position);
    next += got;
    position += got;
  }
}

OutputFile::OutputFile(const std::string& path) : path_(path), descriptor_(OpenForWriting(path)) {}

OutputFile::~OutputFile() { close(descriptor_); }

void OutputFile::Write(const void* data, int64_t bytes) {
  const auto* next = static_cast<const char*>(data);
  int64_t left = bytes;
  while (left > 0) {
    const ssize_t put =
        write(descriptor_, next, static_cast<size_t>(std::min(left, kBytesPerCall)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) ThrowSystemError("write", path_, errno);
    next += put;
    left -= put;
  }
  // Of the bytes as they are in memory. Reading the file back would only check the page cache.
  crc32_ = Crc32(crc32_, data, bytes);
  bytes_written_ += bytes;
}

void OutputFile::Sync() {
  if (fsync(descriptor_) != 0) ThrowSystemError("sync", path_, errno);
}

namespace {

// Renaming over a device, a pipe or a directory would destroy what a file can't replace.
const std::string& CheckReplaceable(const std::string& path) {
  struct stat status {};
  const bool replaceable = stat(SystemPath(path), &status) != 0 || S_ISREG(status.st_mode);
  SKIFF_ENFORCE(replaceable, kIo, "write ", path, ": expected a regular file, or none yet");
  return path;
}

constexpr std::string_view kTempInfix = ".tmp-";
constexpr int kTempDigits = 16;

bool IsTempName(std::string_view name) {
  const size_t infix = name.rfind(kTempInfix);
  if (infix == std::string_view::npos) return false;
  const std::string_view digits = name.substr(infix + kTempInfix.size());
  return digits.size() == size_t{kTempDigits} &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns random bits of the system. A generator seeded by time or process id won't do: two forks
// of one process, or processes of equal id in two containers, must not draw the same name.
uint64_t RandomBits() {
  uint64_t bits = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&bits, sizeof(bits), 0);
  } while (got < 0 && errno == EINTR);
  SKIFF_ENFORCE(got == sizeof(bits), kIo,
                "the system gives no random bytes: ", std::generic_category().message(errno));
  return bits;
}

}  // namespace

std::unique_ptr<OutputFile> AtomicFile::CreateTempFile(const std::string& path) {
  // Of 2^64 names hardly one is taken. Many in a row are no accident, so this gives up.
  constexpr int kMaxAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    try {
      return std::make_unique<OutputFile>(
          StrCat(path, kTempInfix, FormatHex(RandomBits(), kTempDigits)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kAlreadyExists || attempt == kMaxAttempts) throw;
    }
  }
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(CheckReplaceable(path)), file_(CreateTempFile(path)) {}

AtomicFile::~AtomicFile() {
  if (!committed_) unlink(temp_path().c_str());
}

void AtomicFile::Commit() {
  // Syncs by name, since users of temp_path() may have put another file there. The order matters:
  // contents to disk, rename, directory to disk. Without the first sync, a crash may leave an empty
  // file under the final name.
  SyncPath(temp_path(), O_RDONLY);
  RenamePath(temp_path(), path_);
  committed_ = true;
  SyncDirectory(ParentDirectory(path_));
}

void RemoveTempFiles(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return;
  std::vector<std::filesystem::path> found;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const bool is_file = std::filesystem::is_regular_file(entry->symlink_status(error));
    if (is_file && IsTempName(entry->path().filename().string())) found.push_back(entry->path());
  }
  if (error) ThrowSystemError("list", directory, error.value());
  for (const std::filesystem::path& path : found) {
    std::filesystem::remove(path, error);
    if (error) ThrowSystemError("remove", path.string(), error.value());
  }
}

std::string ReadFile(const std::string& path, int64_t limit_bytes) {
  InputFile file(path);
  SKIFF_ENFORCE(file.size() <= limit_bytes, kOutOfRange, path, " has ", file.size(),
                " bytes: expected at most ", limit_bytes);
  return file.ReadString(file.size(), "contents");
}

void AtomicWriteFile(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.sink().Write(bytes);
  file.Commit();
}

namespace {

// Returns the directories at the end of a path that don't exist, the deepest one first.
std::vector<std::string> MissingDirectories(const std::string& path) {
  std::vector<std::string> missing;
  std::string next = path;
  std::error_code ignored;  // creating them reports what is wrong
  while (std::filesystem::status(next, ignored).type() == std::filesystem::file_type::not_found) {
    missing.push_back(next);
    const std::string parent = ParentDirectory(next);
    if (parent == next) break;
    next = parent;
  }
  return missing;
}

}  // namespace

void CreateDirectories(const std::string& path) {
  // Noted before they exist, since each new entry must be synced in its parent.
  const std::vector<std::string> missing = MissingDirectories(path);
  std::error_code error;
  std::filesystem::create_directories(SystemPath(path), error);
  if (!error && !std::filesystem::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) ThrowSystemError("create directory", path, error.value());
  // From the outermost directory inwards, so that whatever is on the disk can be reached from the
  // root.
  for (auto created = missing.rbegin(); created != missing.rend(); ++created) {
    SyncDirectory(ParentDirectory(*created));
  }
}

void CreateNewDirectory(const std::string& path) {
  if (mkdir(SystemPath(path), 0777) != 0) ThrowSystemError("create directory", path, errno);
}

bool PathExists(const std::string& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(SystemPath(path), error);
  if (error) ThrowSystemError("look for", path, error.value());
  return exists;
}

void SyncDirectory(const std::string& path) { SyncPath(path, O_RDONLY | O_DIRECTORY); }

void RenamePath(const std::string& from, const std::string& to) {
  if (rename(SystemPath(from), SystemPath(to)) == 0) return;
  ThrowSystemError(StrCat("rename ", from, " to"), to, errno);
}

std::string ParentDirectory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string JoinPath(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

}  // namespace skiff
