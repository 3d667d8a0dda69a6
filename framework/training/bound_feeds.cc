#include "framework/training/bound_feeds.h"

#include <algorithm>
#include <utility>

#include "framework/ir/program.h"

namespace skiff::training {

BoundProgram& BoundFeeds::For(const FeedList& feeds) {
  // Assigned one by one, so that strings and tensors use the memory that they have.
  size_t count = 0;
  for (const auto& feed : feeds) {
    if (program_.program().root()->FindVar(feed.first) == nullptr) continue;
    if (count == known_.size()) known_.emplace_back();
    known_[count++] = feed;
  }
  known_.resize(count);
  // The parameters may have moved since, for example when flatten_parameters stored them flat.
  bound_.remove_if([](const BoundProgram& bound) { return !bound.is_current(); });
  const auto found =
      std::ranges::find_if(bound_, [&](BoundProgram& bound) { return bound.Feed(known_); });
  if (found != bound_.end()) {
    bound_.splice(bound_.begin(), bound_, found);
    return bound_.front();
  }
  bound_.push_front(program_.Bind(known_, fetches_));
  if (bound_.size() > capacity_) bound_.pop_back();
  return bound_.front();
}

const BoundProgram& BoundFeeds::Step(const FeedList& feeds) {
  BoundProgram& bound = For(feeds);
  bound.Step();
  return bound;
}

void BoundFeeds::Prepare(const std::vector<FeedShape>& feeds) {
  FeedList like;
  for (const FeedShape& feed : feeds) {
    like.emplace_back(feed.name, Tensor(feed.shape, feed.dtype));
  }
  For(like);
}

}  // namespace skiff::training
