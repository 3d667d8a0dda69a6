// The binary files of CIFAR-10 and CIFAR-100.
//
// Records without a header: the label (CIFAR-100: the coarse, then the fine one), then the red, the
// green and the blue 32x32 plane. Source: A. Krizhevsky, "Learning Multiple Layers of Features from
// Tiny Images" (2009), and the description of the "binary version" on its page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/common/dataset.h"

namespace skiff::models {

enum class CifarKind { kCifar10, kCifar100 };

// The records of some files, one after the other; CIFAR-100 gives the fine labels. Error: kNotFound
// for a file that isn't there, kDataLoss for one that is empty or whose size is no whole number of
// records, and for a label that is no class.
ImageDataset ReadCifarFiles(const std::vector<std::string>& paths, CifarKind kind);

// data_batch_1.bin … data_batch_5.bin and test_batch.bin, or train.bin and test.bin.
DatasetPair ReadCifar(const std::string& directory, CifarKind kind);

}  // namespace skiff::models
