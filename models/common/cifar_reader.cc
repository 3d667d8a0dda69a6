// The binary format has no header: a record is one label byte (CIFAR-10) or a coarse and a fine one
// (CIFAR-100), and 3072 bytes of pixels, the planes of red, green and blue one after the other. A
// wrong file can be told only by its size and by labels out of range, so both are checked.
#include "models/common/cifar_reader.h"

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr int32_t kExtent = 32;
constexpr int kCoarseClasses = 20;  // of CIFAR-100
constexpr int64_t kImageBytes = 3 * kExtent * kExtent;

// Appends the records of a file, each of `label_bytes` labels and the pixels. The size of the file
// is checked before memory for the pixels is allocated.
void AppendFile(const std::string& path, int64_t label_bytes, ImageDataset* dataset) {
  InputFile file(path);
  const int64_t record_bytes = label_bytes + kImageBytes;
  SKIFF_ENFORCE(file.size() > 0 && file.size() % record_bytes == 0, kDataLoss, path, " has ",
                file.size(), " bytes: expected a multiple of ", record_bytes,
                ", the size of a record");
  const int64_t records = file.size() / record_bytes;
  const int64_t first = dataset->size();
  dataset->pixels.resize((first + records) * kImageBytes);
  dataset->labels.reserve(first + records);
  for (int64_t i = 0; i < records; ++i) {
    uint8_t labels[2];
    file.Read(labels, label_bytes, "a label");
    SKIFF_ENFORCE(label_bytes == 1 || labels[0] < kCoarseClasses, kDataLoss, path,
                  ": coarse label ", int{labels[0]}, " of record ", i, " is outside [0, ",
                  kCoarseClasses, ")");
    // The last byte is the label to learn: the only one of CIFAR-10, the fine one of CIFAR-100.
    const int64_t label = labels[label_bytes - 1];
    SKIFF_ENFORCE(label < dataset->classes, kDataLoss, path, ": label ", label, " of record ", i,
                  " is outside [0, ", dataset->classes, ")");
    dataset->labels.push_back(label);
    file.Read(dataset->pixels.data() + (first + i) * kImageBytes, kImageBytes, "an image");
  }
}

}  // namespace

ImageDataset ReadCifarFiles(const std::vector<std::string>& paths, CifarKind kind) {
  ImageDataset dataset;
  dataset.name = kind == CifarKind::kCifar10 ? "cifar10" : "cifar100";
  dataset.channels = 3;
  dataset.height = kExtent;
  dataset.width = kExtent;
  dataset.classes = kind == CifarKind::kCifar10 ? 10 : 100;
  const int64_t label_bytes = kind == CifarKind::kCifar10 ? 1 : 2;
  for (const std::string& path : paths) AppendFile(path, label_bytes, &dataset);
  return dataset;
}

DatasetPair ReadCifar(const std::string& directory, CifarKind kind) {
  if (kind == CifarKind::kCifar100) {
    return {ReadCifarFiles({JoinPath(directory, "train.bin")}, kind),
            ReadCifarFiles({JoinPath(directory, "test.bin")}, kind)};
  }
  // CIFAR-10 comes in five training files of 10,000 images, CIFAR-100 in one.
  std::vector<std::string> train;
  for (int i = 1; i <= 5; ++i) {
    train.push_back(JoinPath(directory, StrCat("data_batch_", i, ".bin")));
  }
  return {ReadCifarFiles(train, kind),
          ReadCifarFiles({JoinPath(directory, "test_batch.bin")}, kind)};
}

}  // namespace skiff::models
