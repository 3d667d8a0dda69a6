// Runs the instructions of a loop's body that have a batching: on the rows of several iterations at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "framework/executor/run/body_memory.h"
#include "framework/executor/run/bound_kernel.h"
#include "framework/executor/run/loop_batch.h"
#include "framework/executor/run/loop_stacks.h"
#include "framework/executor/run/loop_sums.h"
#include "framework/executor/run/plan_runner.h"
#include "framework/op/kernel.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"

namespace skiff {

class LoopBatches {
 public:
  // `tensors` have been placed. All must outlive the batches.
  LoopBatches(const Loop& loop, const BodyOffsets& offsets, const LoopStacks& stacks,
              LoopSums* sums, BodyTensors* tensors);

  bool Has(size_t instruction) const { return batches_[instruction] != nullptr; }
  // Returns the tensors that the kernel of an instruction of the body sees.
  ValueTensors* ValuesOf(size_t instruction) const;
  // Returns whether a batch adds up the values of this fetch, a sum.
  bool Sums(const LoopFetch& fetch) const { return summed_.contains(&fetch); }

  // Must come when the body's tensors have been placed.
  void Place();
  // Must come before the first iteration. `poisons`: fills the memory of the rows with NaN.
  void Start(bool poisons);
  // Runs the instruction in the iteration after the first `done` iterations. `count`: the number of
  // all iterations; -1 if unknown.
  void Run(const KernelContext& context, size_t instruction, int64_t count, int64_t done,
           BoundKernel* kernel);
  // Adds up the rows that are left after `count` iterations. `runner` is the body's.
  void Finish(const KernelContext& context, int64_t count, PlanRunner* runner);

 private:
  struct Batch {
    LoopBatch rows;
    // Before: where the rows of later iterations are, in the parts of a stack or in the elements of
    // an array from the index on.
    const LoopFeed* part = nullptr;
    ValueId array = {};
    ValueId index = {};
    // After: the sums that leave the loop, and how many have been added up in this run.
    std::vector<const LoopFetch*> sums = {};
    int64_t added = 0;
  };

  void FindSums(const Instruction& instruction, Batch* batch);
  void FindSource(const Instruction& instruction, Batch* batch) const;
  void Fill(const KernelContext& context, int64_t count, int64_t done, Batch* batch) const;
  void AddSums(const KernelContext& context, Batch* batch, BoundKernel* kernel);

  const Loop& loop_;
  const Plan& body_;
  const BodyOffsets& offsets_;
  const LoopStacks& stacks_;
  LoopSums& sums_;
  BodyTensors& tensors_;
  std::vector<std::unique_ptr<Batch>> batches_;  // by instruction, nullptr for others
  std::set<const LoopFetch*> summed_;
};

}  // namespace skiff
