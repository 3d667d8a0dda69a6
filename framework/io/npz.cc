// A .npz is a zip archive of .npy entries; libzip reads and writes it. Archives may be hostile, so
// sizes are checked before any memory is taken: an entry can't expand beyond what deflate allows,
// all entries together can't take more compressed bytes than the file has (overlapping entries
// would), and their growth is limited. Writing puts the archive into an AtomicFile's temporary
// file.
#include "framework/io/npz.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "framework/io/array_names.h"
#include "framework/io/file.h"
#include "framework/io/lod_entries.h"
#include "framework/io/npy_header.h"
#include "framework/io/system_error.h"

namespace skiff {
namespace {

constexpr std::string_view kEntrySuffix = ".npy";
// Deflate expands a byte to at most 1032 (and some of the few that end a stream).
constexpr uint64_t kDeflateRatioLimit = 1032;
constexpr std::string_view kEmptyArchive("PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
// The time of all entries, fixed so that equal tensors give equal archives. zip can't store a time
// before 1980.
constexpr time_t kEntryTime = 315619200;  // 1980-01-02 00:00 UTC

std::string ZipErrorText(int zip_code) {
  zip_error_t error;
  zip_error_init_with_code(&error, zip_code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

// Discards what wasn't closed.
struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using EntryFile = std::unique_ptr<zip_file_t, CloseEntry>;

// The uncompressed bytes of an archive's entry.
class EntrySource : public ByteSource {
 public:
  EntrySource(std::string name, int64_t size, EntryFile file)
      : ByteSource(std::move(name), size), file_(std::move(file)) {}

  // libzip compares the CRC-32 at the end of an entry.
  void CheckEnd() {
    char byte;
    const zip_int64_t got = zip_fread(file_.get(), &byte, 1);
    if (got > 0) ThrowCorrupt(offset(), "the entry is longer than the archive says");
    if (got < 0) ThrowEntryError();
  }

 private:
  [[noreturn]] void ThrowEntryError() const {
    ThrowCorrupt(offset(), zip_error_strerror(zip_file_get_error(file_.get())));
  }

  void ReadNext(void* out, int64_t bytes) override {
    auto* next = static_cast<char*>(out);
    while (bytes > 0) {
      const zip_int64_t got = zip_fread(file_.get(), next, static_cast<zip_uint64_t>(bytes));
      if (got < 0) ThrowEntryError();
      if (got == 0) ThrowCorrupt(offset(), "the entry is shorter than the archive says");
      next += got;
      bytes -= got;
    }
  }

  EntryFile file_;
};

Archive OpenForReading(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  SKIFF_ENFORCE(archive != nullptr, kDataLoss, path, ": ", ZipErrorText(code));
  return archive;
}

zip_stat_t StatOf(zip_t* archive, zip_uint64_t index, const std::string& path) {
  // libzip leaves out what it couldn't read, and says so only in `valid`.
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  zip_stat_t stat;
  zip_stat_init(&stat);
  const bool known =
      zip_stat_index(archive, index, 0, &stat) == 0 && (stat.valid & kNeeded) == kNeeded;
  SKIFF_ENFORCE(known, kDataLoss, path, ": entry ", index, " of the archive is unreadable");
  return stat;
}

// Returns the uncompressed size that the archive claims. Throws Error if its compressed bytes can't
// expand to that.
int64_t PlausibleSize(const zip_stat_t& stat, int64_t file_bytes, const std::string& name) {
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  SKIFF_ENFORCE(stored || stat.comp_method == ZIP_CM_DEFLATE, kUnimplemented, name,
                ": compression method ", stat.comp_method, ", expected stored or deflated");
  const bool plausible =
      stat.comp_size <= static_cast<uint64_t>(file_bytes) &&
      (stored ? stat.size == stat.comp_size : stat.size / kDeflateRatioLimit <= stat.comp_size);
  SKIFF_ENFORCE(plausible, kDataLoss, name, ": ", stat.size, " bytes from a compressed size of ",
                stat.comp_size, " of a file of ", file_bytes);
  return static_cast<int64_t>(stat.size);
}

// Returns the name of the array in an entry; empty if it holds none.
std::string ArrayName(std::string_view entry) {
  const bool has_suffix = entry.ends_with(kEntrySuffix);
  return std::string(entry.substr(0, has_suffix ? entry.size() - kEntrySuffix.size() : 0));
}

// The arrays of an archive, in its order, and the statistics of their entries.
struct Listing {
  std::vector<std::string> names;
  std::vector<zip_stat_t> stats;
};

Listing List(zip_t* archive, const std::string& path, bool skips_others) {
  Listing listing;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const zip_stat_t stat = StatOf(archive, static_cast<zip_uint64_t>(i), path);
    std::string name = ArrayName(stat.name);
    SKIFF_ENFORCE(skips_others || !name.empty(), kDataLoss, path, ": entry \"", stat.name,
                  "\", expected a name in .npy; to leave it out, name the arrays to read");
    if (name.empty()) continue;
    listing.names.push_back(std::move(name));
    listing.stats.push_back(stat);
  }
  return listing;
}

// What an archive claims about an entry.
struct EntryHead {
  zip_uint64_t index = 0;
  std::string name;   // of the tensor
  std::string where;  // for messages
  int64_t bytes = 0;  // uncompressed
};

// Examines all entries that are to be read before reading one: their names, and whether the bytes
// of the archive can expand to what they claim.
std::vector<EntryHead> EntryHeads(zip_t* archive, const std::string& path, int64_t file_bytes,
                                  const ReadNpzOptions& options) {
  const Listing listing = List(archive, path, options.names.has_value());
  const std::vector<std::string> chosen =
      options.names ? EntriesOf(path, *options.names, listing.names) : listing.names;
  const std::set<std::string> wanted(chosen.begin(), chosen.end());
  std::vector<EntryHead> heads;
  std::set<std::string> names;
  int64_t compressed_bytes = 0;
  int64_t grown_bytes = 0;
  for (size_t i = 0; i < listing.names.size(); ++i) {
    if (!wanted.contains(listing.names[i])) continue;
    const zip_stat_t& stat = listing.stats[i];
    EntryHead head{
        .index = stat.index, .name = listing.names[i], .where = StrCat(path, "(", stat.name, ")")};
    head.bytes = PlausibleSize(stat, file_bytes, head.where);
    const auto compressed = static_cast<int64_t>(stat.comp_size);
    SKIFF_ENFORCE(compressed <= file_bytes - compressed_bytes, kDataLoss, path,
                  ": the entries take more bytes than the ", file_bytes, " of the file");
    compressed_bytes += compressed;
    const int64_t growth = std::max<int64_t>(head.bytes - compressed, 0);
    SKIFF_ENFORCE(growth <= options.limit_bytes - grown_bytes, kOutOfRange, path,
                  " would take more than ", options.limit_bytes,
                  " bytes beyond those of the file, uncompressed");
    grown_bytes += growth;
    // Which of two entries a reader takes depends on the reader.
    SKIFF_ENFORCE(names.insert(head.name).second, kDataLoss, head.where, " is there twice");
    heads.push_back(std::move(head));
  }
  return heads;
}

Tensor ReadEntry(zip_t* archive, const EntryHead& head) {
  EntryFile file(zip_fopen_index(archive, head.index, 0));
  SKIFF_ENFORCE(file != nullptr, kDataLoss, head.where, ": ", zip_strerror(archive));
  EntrySource source(head.where, head.bytes, std::move(file));
  Tensor tensor = ReadNpy(&source);
  source.CheckEnd();
  return tensor;
}

void SwapBytes(Tensor* tensor) {
  const auto size = static_cast<std::ptrdiff_t>(SizeOf(tensor->dtype()));
  auto* const begin = static_cast<char*>(tensor->raw_data());
  for (char* next = begin; next < begin + tensor->byte_count(); next += size) {
    std::reverse(next, next + size);
  }
}

// Copies all elements, of `kBytes` bytes each, to `to`, whose dims are in the opposite order.
template <size_t kBytes>
void Transpose(const Tensor& from, Tensor* to) {
  const std::span<const int64_t> dims = to->shape().dims();
  std::vector<int64_t> strides;  // of these dims in `from`, in elements
  int64_t stride = 1;
  for (const int64_t dim : dims) {
    strides.push_back(stride);
    stride *= dim;
  }
  const auto* const begin = static_cast<const char*>(from.raw_data());
  auto* next = static_cast<char*>(to->raw_data());
  std::vector<int64_t> index(dims.size());
  int64_t position = 0;
  for (int64_t i = 0; i < to->element_count(); ++i, next += kBytes) {
    std::memcpy(next, begin + static_cast<size_t>(position) * kBytes, kBytes);
    for (size_t k = dims.size(); k-- > 0;) {
      position += strides[k];
      if (++index[k] < dims[k]) break;
      position -= strides[k] * dims[k];
      index[k] = 0;
    }
  }
}

// Returns the tensor with its dims in the opposite order.
Tensor Transposed(const Tensor& tensor) {
  const std::span<const int64_t> order = tensor.shape().dims();
  const std::vector<int64_t> dims(order.rbegin(), order.rend());
  Tensor result(Shape(std::span<const int64_t>(dims)), tensor.dtype());
  switch (SizeOf(tensor.dtype())) {
    case 1:
      Transpose<1>(tensor, &result);
      break;
    case 2:
      Transpose<2>(tensor, &result);
      break;
    case 4:
      Transpose<4>(tensor, &result);
      break;
    default:
      Transpose<8>(tensor, &result);
  }
  return result;
}

void CheckWritable(const Tensor& tensor) {
  SKIFF_ENFORCE(tensor.has_data() && tensor.layout().is_plain(), kFailedPrecondition,
                "a tensor can't be saved: expected one with storage, of plain layout");
}

// Data that an archive being written refers to until it is closed.
struct PendingEntry {
  Tensor tensor;  // on the CPU
  std::string header;
  std::vector<zip_buffer_fragment_t> fragments;
};

PendingEntry MakeEntry(const Tensor& tensor) {
  CheckWritable(tensor);
  PendingEntry entry;
  entry.tensor = tensor.place().is_cpu() ? tensor : CopyToCpu(tensor);
  entry.header = NpyHeaderBytes(tensor.dtype(), tensor.shape());
  return entry;
}

void AddEntry(zip_t* archive, const std::string& name, bool compress, PendingEntry* entry) {
  entry->fragments.push_back(
      {reinterpret_cast<zip_uint8_t*>(entry->header.data()), entry->header.size()});
  if (entry->tensor.byte_count() > 0) {
    entry->fragments.push_back({static_cast<zip_uint8_t*>(entry->tensor.raw_data()),
                                static_cast<zip_uint64_t>(entry->tensor.byte_count())});
  }
  zip_source_t* source =
      zip_source_buffer_fragment(archive, entry->fragments.data(), entry->fragments.size(), 0);
  const std::string file_name = name + std::string(kEntrySuffix);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(archive, file_name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0 && source != nullptr) zip_source_free(source);
  const bool added =
      index >= 0 &&
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                               compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0 &&
      zip_file_set_mtime(archive, static_cast<zip_uint64_t>(index), kEntryTime, 0) == 0;
  SKIFF_ENFORCE(added, kInvalidArgument, "entry \"", file_name, "\": ", zip_strerror(archive));
}

[[noreturn]] void ThrowWriteError(zip_t* archive, const std::string& path) {
  const zip_error_t* error = zip_get_error(archive);
  if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error) != 0) {
    ThrowSystemError("write", path, zip_error_code_system(error));
  }
  Throw(ErrorCode::kIo, "write ", path, ": ", zip_strerror(archive));
}

}  // namespace

Tensor ReadNpy(ByteSource* source) {
  NpyHeader header = ReadNpyHeader(source);
  if (header.fortran_order) std::ranges::reverse(header.dims);
  Tensor tensor = ReadElements(header.dtype, header.dims, source);
  if (header.big_endian) SwapBytes(&tensor);
  if (header.fortran_order) tensor = Transposed(tensor);
  if (source->remaining() == 0) return tensor;
  source->ThrowCorrupt(source->offset(), source->remaining(),
                       " bytes remain after the array, expected none");
}

Tensor ReadNpyFile(const std::string& path) {
  InputFile file(path);
  return ReadNpy(&file);
}

void WriteNpyFile(const std::string& path, const Tensor& tensor) {
  SKIFF_ENFORCE(tensor.lod().empty(), kFailedPrecondition, path,
                ": a single array has no place for a LoD of ", tensor.lod().size(),
                " levels, expected none");
  const PendingEntry entry = MakeEntry(tensor);
  AtomicFile file(path);
  file.sink().Write(entry.header);
  file.sink().Write(entry.tensor.raw_data(), entry.tensor.byte_count());
  file.Commit();
}

TensorMap ReadNpz(const std::string& path, const ReadNpzOptions& options) {
  // Our own errors say more than libzip's.
  const int64_t file_bytes = InputFile(path).size();
  // libzip takes an empty file for an archive without entries.
  SKIFF_ENFORCE(file_bytes > 0, kDataLoss, path, " is empty, expected an archive");
  const Archive archive = OpenForReading(path);
  TensorMap tensors = ReadNamed(options.names, [&] {
    TensorMap read;
    for (const EntryHead& head : EntryHeads(archive.get(), path, file_bytes, options)) {
      read.emplace(head.name, ReadEntry(archive.get(), head));
    }
    return read;
  });
  TakeLoDEntries(path, &tensors);
  return tensors;
}

void WriteNpz(const std::string& path, const TensorMap& ragged, bool compress) {
  const TensorMap tensors = WithLoDEntries(ragged);
  // libzip reads headers and tensors only in zip_close, from the addresses it was given. So they
  // live until then, in a vector that doesn't grow.
  std::vector<PendingEntry> entries;
  entries.reserve(tensors.size());
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    bytes += tensor.byte_count();
    // Data that deflates well could exceed what ReadNpz accepts.
    SKIFF_ENFORCE(!compress || bytes <= kNpzLimitBytes, kOutOfRange, path, ": more than ",
                  kNpzLimitBytes, " bytes to compress: write them uncompressed");
    entries.push_back(MakeEntry(tensor));
  }

  AtomicFile file(path);
  if (tensors.empty()) {
    // libzip makes no file of an archive without entries.
    file.sink().Write(kEmptyArchive);
    return file.Commit();
  }
  int code = 0;
  Archive archive(zip_open(file.temp_path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  SKIFF_ENFORCE(archive != nullptr, kIo, "create ", path, ": ", ZipErrorText(code));
  auto entry = entries.begin();
  for (const auto& [name, tensor] : tensors) AddEntry(archive.get(), name, compress, &*entry++);
  if (zip_close(archive.get()) != 0) ThrowWriteError(archive.get(), path);
  // zip_close has freed it. If zip_close fails, the archive is still ours to discard.
  (void)archive.release();
  file.Commit();
}

}  // namespace skiff
