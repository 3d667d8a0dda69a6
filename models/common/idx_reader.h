// Reads the IDX files of MNIST, plain or compressed with gzip.
//
// The format, big-endian: two zero bytes, the element type (8: unsigned byte), the rank, a uint32
// per dim, the elements in row-major order. Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST
// database of handwritten digits", section "File formats".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/common/dataset.h"

namespace skiff::models {

struct IdxArray {
  std::vector<int64_t> dims;
  std::vector<uint8_t> elements;
};

// Reads a file. Throws Error: kNotFound if there is no such file, kDataLoss for anything but an
// intact IDX file of unsigned bytes with `rank` dims (truncation, bytes after the last element, a
// corrupt gzip stream, sizes beyond what the file can hold). As in gzip itself, bytes after a gzip
// stream that aren't another gzip stream count as padding.
IdxArray ReadIdx(const std::string& path, int32_t rank);

// Reads images [n, height, width] and labels [n] from two files. Throws what ReadIdx throws, and
// Error (kDataLoss) if the two counts differ or a label isn't a digit.
ImageDataset ReadIdxImages(const std::string& images_path, const std::string& labels_path);

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte in `directory`, each plain or with .gz.
// The last `validation_images` are the validation set. Throws what ReadIdxImages and HoldBackLast
// throw.
DatasetPair ReadMnist(const std::string& directory, int64_t validation_images);

}  // namespace skiff::models
