// An IDX file is two zero bytes, a byte for the element type, a byte for the rank, the dims as
// big-endian 32-bit integers, and the elements in row-major order. Nothing in it is trusted: dims
// are compared with the size of the file before memory for the elements is allocated.
#include "models/common/idx_reader.h"

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/unpacked_file.h"

namespace skiff::models {
namespace {

constexpr uint8_t kUnsignedByteType = 8;
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
