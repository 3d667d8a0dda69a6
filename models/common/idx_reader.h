// The IDX files of MNIST, plain or compressed with gzip.
//
// Big-endian: two zero bytes, the element type (8: unsigned byte), the rank, then for each dim a
// uint32, then the elements, row-major. Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database
// of handwritten digits", section "File formats".
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

// Error: kNotFound if there is no such file, kDataLoss for anything but an intact IDX file of
// unsigned bytes with `rank` dims (truncation, bytes that remain, a corrupt gzip stream, sizes
// beyond what the file can hold). As in gzip itself, what follows a gzip stream and is none counts
// as padding.
IdxArray ReadIdx(const std::string& path, int32_t rank);

// Images [n, height, width] and labels [n] in two files. Error as ReadIdx; kDataLoss if the numbers
// differ or a label is not a digit.
ImageDataset ReadIdxImages(const std::string& images_path, const std::string& labels_path);

// train-images-idx3-ubyte and train-labels-idx1-ubyte in `directory`, each plain or with .gz. The
// last `validation_images` are held back. Error as ReadIdxImages and HoldBackLast.
DatasetPair ReadMnist(const std::string& directory, int64_t validation_images);

}  // namespace skiff::models
