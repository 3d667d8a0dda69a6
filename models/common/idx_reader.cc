// An IDX file is two zero bytes, a byte for the element type, a byte for the rank, the dims as
// big-endian 32-bit integers, and the elements in row-major order. Nothing in it is trusted: dims
// are compared with the size of the file before memory for the elements is allocated.
#include "models/common/idx_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr uint8_t kUnsignedByteType = 8;
// No deflate stream expands more than this (zlib, "Maximum Compression Factor").
constexpr int64_t kDeflateLimit = 1032;

int64_t FileSize(const std::string& path) {
  std::error_code error;
  SKIFF_ENFORCE(std::filesystem::exists(path, error), kNotFound, "no file ", path);
  SKIFF_ENFORCE(std::filesystem::is_regular_file(path, error), kIo, path, " isn't a regular file");
  const auto size = std::filesystem::file_size(path, error);
  SKIFF_ENFORCE(!error, kIo, "cannot read the size of ", path, ": ", error.message());
  return static_cast<int64_t>(size);
}

// The bytes of a file that may be compressed: zlib passes plain files through.
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::string& path)
      : path_(path), file_bytes_(FileSize(path)), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) ThrowSystemError("cannot open", path, errno);
  }
  ~UnpackedFile() { gzclose(file_); }
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  void Read(uint8_t* out, int64_t bytes, std::string_view what) {
    constexpr int64_t kPiece = int64_t{1} << 30;  // zlib counts with int
    int64_t done = 0;
    while (done < bytes) {
      const auto piece = static_cast<unsigned>(std::min(kPiece, bytes - done));
      const int got = gzread(file_, out + done, piece);
      if (got < 0) ThrowCorrupt();
      SKIFF_ENFORCE(got > 0, kDataLoss, path_, " ends after ", done, " of ", bytes, " bytes of ",
                    what);
      done += got;
    }
  }

  void EnforceEnd() {
    uint8_t byte;
    const int got = gzread(file_, &byte, 1);
    // zlib checks the CRC only when it reads past the last byte. Z_BUF_ERROR: all elements are
    // there, but the file ends before the CRC.
    int code = Z_OK;
    gzerror(file_, &code);
    if (got < 0 || code == Z_BUF_ERROR) ThrowCorrupt();
    SKIFF_ENFORCE(got == 0, kDataLoss, path_, " continues after its last element");
  }

  // Throws if the file can't hold `bytes` bytes. Called before they are allocated, so that a
  // corrupt header can't make the program allocate terabytes.
  void CheckHolds(int64_t bytes) const {
    const int64_t limit =
        gzdirect(file_) ? file_bytes_ : MultiplyCounts(file_bytes_, kDeflateLimit);
    SKIFF_ENFORCE(bytes <= limit, kDataLoss, path_, " says that it has ", bytes,
                  " elements, but a file of ", file_bytes_, " bytes holds no more than ", limit);
  }

 private:
  [[noreturn]] void ThrowCorrupt() {
    int code = 0;
    const char* reason = gzerror(file_, &code);
    Throw(ErrorCode::kDataLoss, "cannot unpack ", path_, ": ", reason);
  }

  std::string path_;
  int64_t file_bytes_;
  gzFile file_;
};

std::string PlainOrPacked(const std::string& directory, const std::string& name) {
  const std::string plain = JoinPath(directory, name);
  const std::string packed = plain + ".gz";
  if (PathExists(plain)) return plain;
  SKIFF_ENFORCE(PathExists(packed), kNotFound, "neither ", plain, " nor ", packed, " exists");
  return packed;
}

}  // namespace

IdxArray ReadIdx(const std::string& path, int32_t rank) {
  UnpackedFile file(path);
  uint8_t magic[4];
  file.Read(magic, sizeof(magic), "the magic number");
  SKIFF_ENFORCE(magic[0] == 0 && magic[1] == 0 && magic[2] == kUnsignedByteType, kDataLoss, path,
                " starts with bytes ", int{magic[0]}, " ", int{magic[1]}, " ", int{magic[2]},
                ": expected 0 0 8, an IDX file of unsigned bytes");
  SKIFF_ENFORCE(magic[3] == rank, kDataLoss, path, " holds an array of rank ", int{magic[3]},
                ": expected ", rank);
  IdxArray array;
  for (int32_t axis = 0; axis < rank; ++axis) {
    // Four unsigned bytes can't give a negative dim, but the product of dims may overflow.
    uint8_t raw[4];
    file.Read(raw, sizeof(raw), "the dims");
    array.dims.push_back(int64_t{raw[0]} << 24 | int64_t{raw[1]} << 16 | int64_t{raw[2]} << 8 |
                         int64_t{raw[3]});
  }
  int64_t elements = 0;
  try {
    elements = ElementCount(array.dims);
  } catch (const Error& error) {
    Throw(ErrorCode::kDataLoss, path, ": ", error.what());
  }
  file.CheckHolds(elements);
  array.elements.resize(elements);
  file.Read(array.elements.data(), elements, "elements");
  file.EnforceEnd();
  return array;
}

ImageDataset ReadIdxImages(const std::string& images_path, const std::string& labels_path) {
  IdxArray images = ReadIdx(images_path, 3);
  const IdxArray labels = ReadIdx(labels_path, 1);
  SKIFF_ENFORCE(images.dims[0] == labels.dims[0], kDataLoss, images_path, " holds ", images.dims[0],
                " images, but ", labels_path, " holds ", labels.dims[0], " labels");
  constexpr int64_t kLargestExtent = 1 << 16;
  SKIFF_ENFORCE(images.dims[1] > 0 && images.dims[1] <= kLargestExtent && images.dims[2] > 0 &&
                    images.dims[2] <= kLargestExtent,
                kDataLoss, images_path, " holds images of ", images.dims[1], "x", images.dims[2],
                " pixels: expected extents from 1 to ", kLargestExtent);
  ImageDataset dataset;
  dataset.name = images_path;
  dataset.channels = 1;
  dataset.height = static_cast<int32_t>(images.dims[1]);
  dataset.width = static_cast<int32_t>(images.dims[2]);
  dataset.classes = 10;
  dataset.pixels = std::move(images.elements);
  dataset.labels.assign(labels.elements.begin(), labels.elements.end());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    SKIFF_ENFORCE(dataset.labels[i] < dataset.classes, kDataLoss, labels_path, ": label ",
                  dataset.labels[i], " of image ", i, " isn't a digit");
  }
  return dataset;
}

DatasetPair ReadMnist(const std::string& directory, int64_t validation_images) {
  // Named variables fix the order of the look-ups: for an empty directory, the Error always names
  // the images.
  const std::string images = PlainOrPacked(directory, "train-images-idx3-ubyte");
  const std::string labels = PlainOrPacked(directory, "train-labels-idx1-ubyte");
  ImageDataset all = ReadIdxImages(images, labels);
  all.name = "mnist";
  auto [train, validation] = HoldBackLast(all, validation_images);
  return {std::move(train), std::move(validation)};
}

}  // namespace skiff::models
