// Binds a program to storage of its own for each kind of batch.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "framework/executor/executor.h"
#include "framework/training/reader.h"

namespace skiff::training {

// Batches of one kind have feeds of the same names, shapes, dtypes and LoD. Keeps the programs of
// the last `capacity` kinds.
class BoundFeeds {
 public:
  BoundFeeds(CompiledProgram program, FetchList fetches, size_t capacity = 8)
      : program_(std::move(program)), fetches_(std::move(fetches)), capacity_(capacity) {}

  // Copies the feeds into the storage of their kind and runs the program once. Passes over feeds
  // that the program lacks: the reader may serve another program that reads more. Returns the bound
  // program, valid until the next call. Throws what CompiledProgram::Bind and BoundProgram::Step
  // throw.
  const BoundProgram& Step(const FeedList& feeds);
  // Makes the plan for a kind of batch.
  void Prepare(const std::vector<FeedShape>& feeds);

 private:
  struct Bound {
    FeedList feeds;
    std::unique_ptr<BoundProgram> program;
  };
  // Returns the program bound for feeds of this kind; their values don't matter.
  Bound& For(const FeedList& feeds);

  CompiledProgram program_;
  FetchList fetches_;
  size_t capacity_;
  std::list<Bound> bound_;  // used last first
};

}  // namespace skiff::training
