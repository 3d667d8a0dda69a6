// What a program needs to train with several ranks, beside skiff/skiff.h: the ranks that a launcher
// such as mpirun has started, their share of the threads, devices and batches, and gathers.
//
//   const std::shared_ptr<skiff::Communicator> ranks = skiff::LaunchedRanks();
//   CompiledProgram step = exe.Compile(program, {.data_parallel = {.communicator = ranks}});
#pragma once

#include "framework/comm/communicator.h"
#include "framework/comm/gather.h"
#include "framework/comm/launched_ranks.h"
#include "framework/comm/nccl_communicator.h"
#include "framework/comm/rank_resources.h"
#include "framework/training/sharded_reader.h"
