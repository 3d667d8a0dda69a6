// Random programs of blocks in blocks, for analyses: loop bodies, gradient blocks of these, names
// that mean another variable inside, persistables, an array (f). The ops compute nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// mix: reads the data of X and the shape of S, writes Out. loop: runs `sub_block` any number of
// times, reads X, may write Out. loop_grad: the same. The op runs the block, a gradient block, once
// for each run of the forward block by this block or by the forward block of this block.
void RegisterBlockOps(OpRegistry& registry);

struct RandomBlocks {
  std::unique_ptr<Program> program;
  // Of the root block.
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

// The same for the same seed.
RandomBlocks MakeRandomBlocks(uint32_t seed);

}  // namespace skiff
