// Runs a program on the batches of a reader, with a plan for each kind of batch.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/training/reader.h"

namespace skiff::training {

// Batches of one kind have feeds of the same names, shapes and dtypes; ragged ones, counts that
// round up to the same capacity (BoundProgram::Feed). Keeps the plans of the last `capacity` kinds,
// which share one arena.
class BoundFeeds {
 public:
  BoundFeeds(CompiledProgram program, FetchList fetches, size_t capacity = 32)
      : program_(std::move(program)), fetches_(std::move(fetches)), capacity_(capacity) {}

  // Runs the program once on these feeds. Passes over feeds that the program lacks: the reader may
  // serve another program that reads more. Returns the bound program, valid until the next call.
  // Throws what CompiledProgram::Bind and BoundProgram::Step throw.
  const BoundProgram& Step(const FeedList& feeds);
  // Makes the plan for a kind of batch.
  void Prepare(const std::vector<FeedShape>& feeds);

  // Returns what CompiledProgram::GatherScope returns.
  std::unique_ptr<Scope> GatherScope() { return program_.GatherScope(); }

  // What making plans has taken so far.
  PreparationStatistics preparation() const { return program_.preparation(); }

 private:
  // Returns the program bound to these feeds.
  BoundProgram& For(const FeedList& feeds);

  CompiledProgram program_;
  FetchList fetches_;
  size_t capacity_;
  std::list<BoundProgram> bound_;  // used last first
  FeedList known_;                 // the feeds that the program has
};

}  // namespace skiff::training
