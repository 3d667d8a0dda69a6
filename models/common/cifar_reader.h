// Reads the binary files of CIFAR-10 and CIFAR-100.
//
// A file is a sequence of records without a header: the label (CIFAR-100: the coarse, then the fine
// one), then the red, the green and the blue 32x32 plane. Source: A. Krizhevsky, "Learning Multiple
// Layers of Features from Tiny Images" (2009), and the description of the "binary version" on its
// page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/common/dataset.h"

namespace skiff::models {

enum class CifarKind { kCifar10, kCifar100 };

// Returns the records of the files in order; with CIFAR-100, their fine labels. Throws Error:
// kNotFound for a missing file, kDataLoss for an empty file or a size that isn't a multiple of the
// record size, and for a label outside the classes.
ImageDataset ReadCifarFiles(const std::vector<std::string>& paths, CifarKind kind);

// Reads data_batch_1.bin … data_batch_5.bin and test_batch.bin, or train.bin and test.bin. Throws
// what ReadCifarFiles throws.
DatasetPair ReadCifar(const std::string& directory, CifarKind kind);

}  // namespace skiff::models
